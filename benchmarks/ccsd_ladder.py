"""The ladder of coupled cluster: integrals on disk or recomputed in each iteration, for several disk rates.

OUTCORE_THROTTLE delays requests and so emulates slower disks, so that on this machine reading is faster at some
rates and recomputing at others, with one thread and with two. The products have the sizes of a calculation of
naphthalene in a double-zeta basis (--quick: benzene), with random numbers; each is timed three times in one
process, and the median counts. In the same process `--ladder auto` chooses, with the rates that it measures
there. Modelled seconds are those of its forecast. The last claims show the forecast for other numbers of cores.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from typing import Any

from outcore.chem.cc.plan.describe import ITERATIONS
from outcore.chem.cc.plan.plan import make_plan
from outcore.chem.cc.plan.sizes import Sizes
from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job.resources import cores
from outcore.tensor.plan.rates import Rates

from ._peers import timed
from ._workers import python_worker

NAPHTHALENE, BENZENE = (
    (180, 672, 24, 146),
    (114, 420, 15, 93),
)  # basis functions, auxiliary functions, occupied orbitals, virtual orbitals
BANDWIDTHS_MB = (50, 100, 200, 400, 800)
_MEMORY_BYTES = 1 << 40
CORES = (1, 2, 4, 8, 16, 32, 64)
HAS_CASES = True
NEAR = 1.05  # largest time of the chosen way over that of the faster way


def run(options: BenchOptions) -> list[Claim]:
    sizes = BENZENE if options.quick else NAPHTHALENE
    bandwidths = BANDWIDTHS_MB[1::2] if options.quick else BANDWIDTHS_MB
    claims: list[Claim] = []
    rates: dict[int, list[float]] = {}
    for threads in range(1, min(2, cores()) + 1):
        name = f"{threads} thread{'s' * (threads > 1)}"
        for bandwidth in bandwidths:

            def measure(threads: int = threads, bandwidth: int = bandwidth) -> Any:
                return _measure(options, sizes, threads, bandwidth)

            found = options.case(f"{name}, {bandwidth} MB/s", measure)
            claims += _claims(name, bandwidth, found)
            rates[threads] = found["rates"]
            options.say(f"{name}, {bandwidth} MB/s: {found['measured']}, auto: {found['auto']}")
    return [*claims, *_crossings(sizes, rates)]


def _measure(options: BenchOptions, sizes: Sequence[int], threads: int, bandwidth: int) -> Any:
    command = python_worker(
        "_ladder_worker",
        json.dumps(sizes),
        str(threads),
        str(options.scratch),
        "1" if options.quick else "3",
        "disk,rebuild",
    )
    with tempfile.TemporaryDirectory(dir=options.scratch) as cache:  # an empty cache: rates are measured now
        _, output = timed(
            command,
            OUTCORE_THROTTLE=f"bandwidth={bandwidth}MB",
            OUTCORE_CACHE=cache,
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
        )
    return json.loads(output.splitlines()[-1])


def _claims(name: str, bandwidth: int, found: Any) -> list[Claim]:
    titles = {"disk": "on disk", "rebuild": "recomputed"}
    claims = []
    for kind in ("measured", "modelled"):
        for way, title in titles.items():
            once, seconds = found[kind][way]
            how = f"{once:.3g} s once" if way == "disk" else ""
            claims.append(
                Claim(f"{name}, {title} {kind}, {bandwidth} MB/s: an iteration", seconds, "s", None, "", how)
            )
    seconds = {way: found["measured"][way][1] for way in titles}
    chosen, total = found["auto"], {}
    for way in titles:
        total[way] = found["measured"][way][0] * (way == "disk") + ITERATIONS * seconds[way]
    how = f"{titles[chosen]}; a calculation of {ITERATIONS} iterations"
    value = total[chosen] / min(total.values())
    claims.append(
        Claim(f"{name}, {bandwidth} MB/s: auto over the better side", value, "", at_most(NEAR), "", how)
    )
    return claims


def _crossings(sizes: Sequence[int], measured: dict[int, list[float]]) -> list[Claim]:
    """The disk rate at which both ways take the same time in the forecast, for cores as fast as one of this
    machine."""
    functions, auxiliary, occupied, virtual = sizes
    of = Sizes(functions, auxiliary, (occupied,), (virtual,), 6, (0, auxiliary))
    flops, copied, narrow = measured[1]
    claims = []
    for count in CORES:
        low, high = 1e6, 1e12
        for _ in range(60):
            middle = (low * high) ** 0.5
            gemm = ((occupied**2 // 2, narrow), (1024, flops))
            rates = Rates(gemm, copied, middle, middle, math.inf, threads=count)
            ways = make_plan(of, _MEMORY_BYTES, rates, ladder="disk").ways
            low, high = (middle, high) if ways["disk"].seconds > ways["rebuild"].seconds else (low, middle)
        claims.append(Claim(f"modelled, crossing on {count} cores", low / 1e6, "MB/s", None, "", ""))
    return claims
