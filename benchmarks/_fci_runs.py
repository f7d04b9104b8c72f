"""Runs of `outcore fci` for benchmarks; they are killed in an iteration and restarted."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import sys
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.job.resources import parse_bytes

from . import _killed_runs, _least

_KILLED_IN = 4  # iteration
_FEW = 3  # iterations of the run with less memory
_T3D_SECONDS, _T3D_ITERATIONS = 15050, 27  # Be2, 1.06e9 determinants, 64 processors
_LINE = re.compile(r" *(\d+) +1 +(-[\d.]+) +(?:\S+ +)?(\S+) +([\d.]+) +(\d+) %")


@dataclass(frozen=True)
class Case:
    name: str
    geometry: str
    basis: str  # its name, or the text of a basis file
    group: str
    memory: str
    energy: float | None = None  # Hartree
    source: str = ""
    max_seconds: float | None = None
    less_memory: str | None = None
    frozen: int = 0
    t3d: bool = False


@dataclass
class Iteration:
    number: int
    energy: float
    residual: float
    seconds: float
    waiting: float  # %

    @classmethod
    def of_line(cls, line: str) -> Iteration | None:
        found = _LINE.match(line)
        if found is None:
            return None
        number, energy, residual, seconds, waiting = found.groups()
        return cls(int(number), float(energy), float(residual), float(seconds), float(waiting))

    def claim(self, name: str, run: int) -> Claim:
        how = f"energy {self.energy:.10f} Eh, residual {self.residual:.1e} Eh, {self.waiting:.0f} % of it waiting"
        return Claim(f"{name}, run {run}, iteration {self.number}", self.seconds, "s", None, "", how)


def _command(options: BenchOptions, case: Case, *more: str) -> list[str]:
    geometry, basis = options.scratch / "molecule.xyz", options.scratch / "basis.nw"
    geometry.write_text(case.geometry)
    if "\n" in case.basis:
        basis.write_text(case.basis)
    return [
        sys.executable, "-m", "outcore", "fci", str(geometry),
        "--basis", str(basis) if "\n" in case.basis else case.basis, "--group", case.group,
        "--frozen", str(case.frozen),
        "--precision", "mixed", "--scratch", str(options.scratch), "--energy-only", *more,
    ]  # fmt: skip


def converged(options: BenchOptions, case: Case) -> list[Claim]:
    results, kept = options.scratch / "results.json", options.scratch / "kept"
    name = f"{case.name}, {case.memory}"
    more = ("--memory", case.memory, "--checkpoint", str(kept), "--json", str(results))
    command = _command(options, case, *more)
    before, peak_before = _killed_runs.run(options, name, command, Iteration.of_line, _KILLED_IN)
    after, peak_after = _killed_runs.run(options, name, command, Iteration.of_line)
    found: dict[str, Any] = json.loads(results.read_text())
    shutil.rmtree(kept)  # only this case needs it, and it is large
    every = before + after
    threads = len(os.sched_getaffinity(0))
    how = f"{found['determinants']} determinants, mixed precision, {threads} cores, killed once"
    typical, peak = statistics.median(each.seconds for each in every), max(peak_before, peak_after)
    options.ran(case.name, found, peak_memory_bytes=peak, run_seconds=sum(each.seconds for each in every))
    waiting = sum(each.seconds * each.waiting for each in every) / sum(each.seconds for each in every)
    energy, peer = found["energies_hartree"][0], f"Cray T3D, 64 processors: {_T3D_SECONDS} s"
    claims = [
        Claim(f"{name}: iteration", typical, "s", _bar(case.max_seconds), peer if case.t3d else "", how),
        Claim(f"{name}: share of iterations that waited", waiting, "%", _bar(15.0), "", how),
        Claim(
            f"{name}: iterations", len(every), "", None, f"T3D: {_T3D_ITERATIONS}" if case.t3d else "",
            f"{how}; residual {found['residuals'][0]:.1e} Eh",
        ),
        Claim(
            f"{name}: peak resident over the memory that it was given",
            peak / parse_bytes(case.memory), "", at_most(1.0), "", how,
        ),
    ]  # fmt: skip
    if case.energy is not None:
        error = abs(energy - case.energy)
        text = f"{energy:.10f} against {case.energy} Eh"
        claims.insert(0, Claim(f"{name}: energy", error, "Eh", at_most(1e-6), case.source, text))
    else:
        claims.insert(0, Claim(f"{name}: energy", energy, "Eh", None, "", how))
    moved = found["moved_by_products"]
    claims += _least.claims(f"{name}, products", found, moved["read"] + moved["added"], moved["least"])
    if case.less_memory is not None:
        claims += _with_less(options, case, typical)
    claims += [each.claim(name, 1) for each in before] + [each.claim(name, 2) for each in after]
    return claims


def _bar(most: float | None) -> Any:
    return None if most is None else at_most(most)


def _with_less(options: BenchOptions, case: Case, typical: float) -> list[Claim]:
    """Measures a few iterations. The first does not count: it has no previous direction."""
    assert case.less_memory is not None
    name = f"{case.name}, {case.less_memory}"
    command = _command(options, case, "--memory", case.less_memory)
    found, most = _killed_runs.run(options, name, command, Iteration.of_line, _FEW + 2)
    seconds = statistics.median(each.seconds for each in found[1:])
    how = f"{len(found) - 1} iterations, after the first"
    budget = parse_bytes(case.less_memory)
    return [
        Claim(f"{name}: iteration, over that with {case.memory}", seconds / typical, "", at_most(1.3), "", how),
        Claim(f"{name}: peak resident over the memory that it was given", most / budget, "", at_most(1.0), "", how),
    ]  # fmt: skip
