"""CASCI(20,20) of all pi orbitals of perylene, with packed vectors on disk.

One command, `outcore fci --checkpoint`, which goes on with what it has kept where it was ended. With --keep the
benchmark does so too, and iterations of all its runs count. What `--estimate` has said before is beside what a run
took.

--quick: anthracene, CASCI(14,14), in the same way.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import parse_bytes

from . import _killed_runs
from ._fci_runs import Iteration
from ._workers import Failed
from .casscf import ANTHRACENE, PERYLENE, Case

HAS_CASES = True
BOUND = 1e-6  # Hartree
LEAST = 8e9  # determinants


@dataclass(frozen=True)
class Run:
    case: Case
    active: str  # pi orbitals of each irrep, whose axis x is normal to the molecule
    memory: str
    least: float | None = None  # determinants


PERYLENE_RUN = Run(PERYLENE, "B3u=6,B2g=6,B1g=4,Au=4", "8GB", LEAST)
ANTHRACENE_RUN = Run(ANTHRACENE, "B3u=4,B2g=4,B1g=3,Au=3", "300MB")


def run(options: BenchOptions) -> list[Claim]:
    asked = ANTHRACENE_RUN if options.quick else PERYLENE_RUN
    size = asked.case.orbitals
    name = f"CASCI({size},{size}) of {asked.case.name}, {asked.memory}"
    found = options.case(name, lambda: _measured(options, asked, name))
    shutil.rmtree(options.place(name))
    results, predicted = found["results"], found["predicted"]
    options.ran(name, results, peak_memory_bytes=found["peak_bytes"], run_seconds=found["seconds"])
    iterations, budget = found["iterations"], parse_bytes(asked.memory)
    seconds = statistics.median(each["seconds"] for each in iterations)
    waited = sum(each["seconds"] * each["waiting"] for each in iterations) / sum(
        each["seconds"] for each in iterations
    )
    how = (
        f"{results['determinants']} determinants, {len(os.sched_getaffinity(0))} cores, {found['runs']} runs"
    )
    raised = max(each["raised"] for each in results["bounds"])
    determinants = at_least(asked.least) if asked.least else None
    return [
        Claim(f"{name}: energy", results["energies_hartree"][0], "Eh", None, "", how),
        Claim(f"{name}: energy above the exact one, at most", raised, "Eh", at_most(BOUND), "", how),
        Claim(f"{name}: determinants", results["determinants"], "", determinants, "", how),
        Claim(f"{name}: iteration", seconds, "s", None, "", f"{how}; median of {len(iterations)}"),
        Claim(
            f"{name}: iteration, predicted", predicted["iteration_seconds"], "s", None, "", "outcore fci --estimate"
        ),
        Claim(f"{name}: share of iterations that waited", waited, "%", None, "", how),
        Claim(f"{name}: iterations of all runs", len(iterations), "", None, "", how),
        Claim(f"{name}: all iterations", sum(each["seconds"] for each in iterations), "s", None, "", how),
        Claim(f"{name}: disk", results["peak_disk_bytes"] / 1e9, "GB", None, "", how),
        Claim(
            f"{name}: disk, predicted", predicted["disk_bytes"] / 1e9, "GB", None, "", "outcore fci --estimate"
        ),
        Claim(
            f"{name}: peak resident over the memory that it was given",
            found["peak_bytes"] / budget, "", at_most(1.0), "", how,
        ),
    ]  # fmt: skip


def _measured(options: BenchOptions, asked: Run, name: str) -> dict[str, Any]:
    place = options.place(name)
    told, runs, results = place / "iterations.txt", place / "runs.txt", place / "results.json"
    if not (place / "predicted.json").exists():
        _estimate(options, asked, place / "predicted.json")
    with runs.open("a") as file:
        file.write("begun\n")
    command = _command(options, asked, "--checkpoint", str(place / "kept"), "--json", str(results))
    _, peak = _killed_runs.run(options, name, command, Iteration.of_line, log=told)
    every = [each for line in told.read_text().splitlines() if (each := Iteration.of_line(line))]
    return {
        "results": json.loads(results.read_text()),
        "predicted": json.loads((place / "predicted.json").read_text())["estimate"],
        "iterations": [vars(each) for each in every],
        "seconds": math.fsum(each.seconds for each in every),
        "peak_bytes": peak,
        "runs": len(runs.read_text().splitlines()),
    }


def _estimate(options: BenchOptions, asked: Run, path: Path) -> None:
    command = _command(options, asked, "--estimate", "--json", str(path))
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Failed(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")


def _command(options: BenchOptions, asked: Run, *more: str) -> list[str]:
    geometry = options.scratch / "molecule.xyz"
    atoms = asked.case.atom.split("; ")
    geometry.write_text("\n".join([str(len(atoms)), asked.case.name, *atoms, ""]))
    return [
        sys.executable, "-m", "outcore", "fci", str(geometry), "--basis", asked.case.basis,
        "--active", asked.active, "--irrep", "Ag", "--error-bound", str(BOUND), "--memory", asked.memory,
        "--energy-only", "--scratch", str(options.scratch), *more,
    ]  # fmt: skip
