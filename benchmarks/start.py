"""Start-up time and memory of commands, and times of small jobs.

Commands run in processes of their own. Processor seconds of all threads and wall seconds are the least of several
runs, so that other work on the machine does not count. PySCF's import is measured alone, for comparison with
the SCF of a water molecule, which includes it. A process that holds arrays has one array of each kind and does
nothing else. The iteration of CCSD is the median for water in cc-pVDZ, without the first two. A small
contraction is planned a second time for arrays of the same form. --quick has fewer runs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from outcore.cli.bench import BenchOptions, Claim, at_most

from ._molecules import water

_HOLDS_ARRAYS = """
import numpy as np, outcore
values = np.ones((32, 32))
with outcore.World("self", memory="64MB") as world:
    arrays = [kind(world, (32, 32)) for kind in (outcore.GlobalArray, outcore.DiskArray)]
    for array in arrays:
        array[:, :] = values
    tiled = outcore.Array(world, outcore.Layout([32, 32]), where="process")
    tiled.put_tile((0, 0), values)
"""

_PLANS = """
import time, numpy as np, outcore
a, b = np.ones((19, 5, 19, 5)), np.ones((5, 19))
def plan():
    begun = time.perf_counter()
    outcore.einsum.plan("aibj,jb->ai", a, b)
    return time.perf_counter() - begun
print(plan(), min(plan() for _ in range(200)))
"""


class _Used(NamedTuple):
    processor_s: float
    clock_s: float
    peak_mb: float
    output: str


def _used(command: list[str]) -> _Used:
    """Runs a command and returns its times and memory. Python may write compiled modules, as for an installed
    package. Raises CalledProcessError if the command fails."""
    keeps = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=keeps) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    seconds = time.perf_counter() - begun
    return _Used(usage.ru_utime + usage.ru_stime, seconds, usage.ru_maxrss * 1024 / 1e6, output)


def run(options: BenchOptions) -> list[Claim]:
    runs = 5 if options.quick else 20
    geometry = options.scratch / "water.xyz"
    geometry.write_text("\n".join(["3", "", *water(1)]) + "\n")
    python, outcore = [sys.executable, "-c"], [sys.executable, "-m", "outcore"]
    cases = {
        "outcore --version": [*outcore, "--version"],
        "outcore scf --help": [*outcore, "scf", "--help"],
        "outcore scf": [*outcore, "scf", str(geometry), "--basis", "sto-3g"],
        "PySCF's import": [*python, "import pyscf.scf"],
        "arrays": [*python, _HOLDS_ARRAYS],
    }
    found: dict[str, list[_Used]] = {name: [] for name in cases}
    for _ in range(runs):
        for name, command in cases.items():
            found[name].append(_used(command))
    for name, each in found.items():
        least = (min(used.processor_s for used in each), min(used.clock_s for used in each))
        options.say(f"{name:20} {least[0]:.3f} s of the processor, {least[1]:.3f} s by the clock")
    first, again = map(float, _used([*python, _PLANS]).output.split())
    results = options.scratch / "ccsd.json"
    _used([*outcore, "ccsd", str(geometry), "--basis", "cc-pvdz", "-q", "--json", str(results)])
    return [
        *_claims(found, runs),
        _of_iterations(results),
        Claim("small einsum, planned again", 1e3 * again, "ms", at_most(1.0), "", "least of 200"),
        Claim(
            "small einsum, planned first", 1e3 * first, "ms", None, "", "with what it imports and measures"
        ),
    ]


def _claims(found: dict[str, list[_Used]], runs: int) -> list[Claim]:
    how = f"least of {runs} runs"
    bars = {"outcore --version": at_most(0.1), "outcore scf": at_most(0.4)}
    titles = {"outcore scf": "outcore scf, water/STO-3G"}
    claims = []
    for name, each in found.items():
        if name == "arrays":
            continue
        title, bar = titles.get(name, name), bars.get(name)
        peer = "PySCF" if name == "PySCF's import" else ""
        claims.append(Claim(f"{title}: clock", min(used.clock_s for used in each), "s", bar, peer, how))
        processor = min(used.processor_s for used in each)
        claims.append(Claim(f"{title}: processor", processor, "s", None, peer, f"{how}, of all threads"))
    for name, title, bar in (
        ("arrays", "a process that holds arrays: memory", at_most(60.0)),
        ("outcore scf", "outcore scf, water/STO-3G: memory", None),
        ("PySCF's import", "PySCF's import: memory", None),
    ):
        most = max(used.peak_mb for used in found[name])
        claims.append(Claim(title, most, "MB", bar, "", f"most resident, of {runs} runs"))
    return claims


def _of_iterations(results: Path) -> Claim:
    seconds = json.loads(results.read_text())["iteration_seconds"][2:]
    return Claim(
        "CCSD iteration, water/cc-pVDZ",
        1e3 * statistics.median(seconds),
        "ms",
        at_most(10.0),
        "",
        f"median of {len(seconds)} iterations",
    )


REASONS = {
    "outcore scf, water/STO-3G: (clock|processor)": "most of it is the import of NumPy, SciPy and PySCF.",
    "CCSD iteration, water/cc-pVDZ": "each of its contractions is checked and prepared in Python.",
}
