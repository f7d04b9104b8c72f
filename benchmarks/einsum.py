"""Contractions of matrices on disk by `outcore.einsum`, in a tenth of their size and less.

Products of matrices that lie in disk arrays, in memory that is given. Told are the bytes moved over the lower
bound of Smith et al., the part of the time that products of matrices alone would take, and how far bytes and time
are from what was predicted; on 1 and 2 processes. NumPy multiplies in core, from files it loads whole; Dask's
tensordot works on zarr with chunks that fit into the same memory. On up to 1024 processes the same plan runs on a
simulated clock.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most, claim_memory
from outcore.tensor.canonical import binary
from outcore.tensor.geometry import Problem
from outcore.tensor.operands import plain
from outcore.tensor.product_plan import Planned, make_plan
from outcore.tensor.rates import ASSUMED
from outcore.tensor.simulate import simulate

from ._workers import Failed, python_worker

LIMIT_S = 900


@dataclass(frozen=True)
class Case:
    """out[m, n] = left[m, k] right[k, n] in so many bytes of memory. `near`: memory is so small beside the arrays
    that the bound can be reached."""

    name: str
    m: int
    n: int
    k: int
    memory_bytes: int
    near: bool = False


QUICK = (
    Case("square", 1500, 1500, 1500, 4 << 20),
    Case("narrow", 256, 4096, 4096, 8 << 20, near=True),
)
FULL = (
    Case("square", 4000, 4000, 4000, 32 << 20),
    Case("narrow", 400, 10000, 10000, 16 << 20, near=True),
    Case("thin", 5000, 5000, 256, 16 << 20),
    Case("long", 600, 600, 60000, 8 << 20, near=True),
)


def run(options: BenchOptions) -> list[Claim]:
    cases = QUICK if options.quick else FULL
    times = 2 if options.quick else 3
    claims: list[Claim] = []
    for case in cases:
        ours = measure(options, case, "outcore", times)
        options.say(ours["table"])
        claims += claims_of(case, ours, times)
        if case.name == "square":
            claims += peers(options, case, ours, times)
        if not options.quick:
            two = measure(options, case, "outcore", times, processes=2)
            claims.append(
                Claim(
                    f"{case.name}: two processes against one",
                    median(ours) / median(two),
                    "x",
                    None,
                    "",
                    "two threads of one process, and two processes of one thread",
                )
            )
    return claims + scaling(options)


def scaling(options: BenchOptions) -> list[Claim]:
    """A ladder of coupled cluster, 100 occupied and 1000 virtual orbitals, on nodes of 16 processes of one thread
    and 2 GB each: on a simulated clock."""
    claims = []
    for kind in ("strong", "weak"):
        base: float | None = None
        for processes in (16, 64, 256, 1024):
            occupied = 100 if kind == "strong" else round(100 * (processes / 1024) ** 0.5)
            rates = replace(
                ASSUMED, processes=processes, nodes=processes // 16, network=2e9, read=3e9, write=3e9
            )
            pairs, virtual = occupied * (occupied + 1) // 2, 1000 * 1001 // 2
            shapes = [(pairs, virtual), (virtual, virtual), (pairs, virtual)]
            extents = {"p": pairs, "c": virtual, "v": virtual}
            left, right, out = (plain(shape, np.dtype(np.float64), "disk") for shape in shapes)
            problem = Problem(binary("pc", "cv", "pv", extents), extents, left, right, out)
            planned = Planned(problem, make_plan(problem, 2 << 30, rates))
            found = simulate(planned, rates, seed=1)
            work = found.seconds * processes / (pairs if kind == "weak" else 1)
            base = work if base is None else base
            options.say(f"{kind:6s} {processes:5d} processes: {found.seconds:9.1f} s, idle {found.idle:.3f}")
            claims += [
                Claim(
                    f"simulated, {kind} scaling: efficiency on {processes} processes",
                    base / work,
                    "",
                    at_least(0.8) if kind == "strong" else None,
                    "16 processes",
                    f"{found.seconds:.0f} s, {planned.plan.choice.keep} kept, {len(planned.units)} pieces of work",
                ),
                Claim(f"simulated, {kind}: idle share on {processes}", found.idle, "", None, "", ""),
                Claim(
                    f"simulated, {kind}: read by a process of {processes}",
                    float(found.read_bytes.mean()) / 1e9,
                    "GB",
                    None,
                    "",
                    f"the most {float(found.read_bytes.max()) / 1e9:.3g} GB",
                ),
            ]
    return claims


def measure(options: BenchOptions, case: Case, way: str, times: int, processes: int = 1) -> dict[str, Any]:
    arguments = [way, *(str(each) for each in (case.m, case.n, case.k, case.memory_bytes, times))]
    claim_memory(256 << 20)
    done = subprocess.run(
        python_worker("_einsum_worker", *arguments, mpi_processes=processes),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, "OUTCORE_SCRATCH": str(options.scratch)},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Failed(f"{way}, {case.name}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not answer["good"]:
        raise Failed(f"{way}, {case.name}: the result is wrong")
    options.say(f"{way:8s} {case.name:8s} {processes} processes {median(answer):8.3f} s")
    return answer


def median(answer: dict[str, Any]) -> float:
    return float(statistics.median(answer["seconds"]))


def claims_of(case: Case, ours: dict[str, Any], times: int) -> list[Claim]:
    flops = 2.0 * case.m * case.n * case.k
    seconds = median(ours)
    size = f"{case.m} x {case.n} x {case.k} in {case.memory_bytes / 1e6:.0f} MB, median of {times} runs"
    share = case.memory_bytes / 8 / (case.m * case.k + case.k * case.n + case.m * case.n)
    return [
        Claim(
            f"{case.name}: bytes over the bound",
            ours["moved"] / ours["bound"],
            "x",
            at_most(1.25) if case.near else None,
            "",
            f"{size}; memory is {share:.3f} of the arrays; {ours['moved'] / 1e6:.0f} MB moved",
        ),
        Claim(
            f"{case.name}: bytes against prediction",
            ours["moved"] / ours["predicted_bytes"],
            "x",
            at_most(1.02),
            "",
            size,
        ),
        Claim(
            f"{case.name}: time against prediction",
            seconds / ours["predicted_seconds"],
            "x",
            at_most(1.2),
            "",
            f"{size}; {seconds:.3f} s, {ours['predicted_seconds']:.3f} s predicted",
        ),
        Claim(
            f"{case.name}: part of the speed of products alone",
            flops / seconds / ours["gemm"],
            "",
            at_least(0.85) if case.name == "square" else None,
            "the same BLAS, 1024 x 1024 x 1024, threads of one thread each",
            f"{size}; {flops / seconds / 1e9:.1f} of {ours['gemm'] / 1e9:.1f} Gflop/s",
        ),
    ]


def peers(options: BenchOptions, case: Case, ours: dict[str, Any], times: int) -> list[Claim]:
    result = []
    for way, bar, peer in (
        ("numpy", None, "NumPy in core, files loaded whole"),
        ("dask", at_least(2.0), "Dask tensordot on zarr"),
    ):
        name = f"{case.name}: against {way}"
        if way == "dask" and any(importlib.util.find_spec(each) is None for each in ("dask", "zarr")):
            result.append(Claim(name, None, "x", bar, peer, "dask or zarr is not installed"))
            continue
        theirs = measure(options, case, way, times)
        how = f"median of {times} runs; ours {median(ours):.3f} s, theirs {median(theirs):.3f} s"
        if "peak" in theirs:
            how += f", {theirs['peak'] / 1e6:.0f} MB resident at most"
        result.append(Claim(name, median(theirs) / median(ours), "x", bar, peer, how))
    return result
