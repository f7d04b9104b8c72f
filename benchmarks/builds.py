"""Times of this build beside those of another one, for instance of an older release.

The other build is an interpreter with its own Outcore: OUTCORE_OTHER_BUILD=/path/to/bin/python. Both run the same
commands and the same contractions in turns, each as a process of its own, on the same scratch disk. A ratio is
that of two runs one after another. Energies of both builds must agree. --quick has fewer and smaller cases, and
fewer turns.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most, median_claim

from ._cc_programs import CORES
from ._molecules import acene, water
from ._peers import timed
from ._workers import Failed

OTHER = "OUTCORE_OTHER_BUILD"
SLOWEST = 0.97  # least speed over that of the other build
SMALL = 2.0  # contractions of a millisecond in memory
SAME = 1e-8  # Hartree

_SMALL = """
import statistics, time, numpy as np, outcore
a, b = np.random.default_rng(0).random((2, 250, 250))
def seconds():
    begun = time.perf_counter()
    for _ in range(20):
        outcore.einsum({index!r}, a, b)
    return (time.perf_counter() - begun) / 20
seconds()
print(statistics.median(seconds() for _ in range(15)))
"""
_SQUARE = """
import time, numpy as np, outcore
n = {n}
memory = int(0.1 * 3 * 8 * n * n)
with outcore.World() as world:
    left, right, out = (outcore.DiskArray(world, (n, n), chunk=[256, 256]) for _ in range(3))
    values = np.random.default_rng(0).random((n, n))
    for each in (left, right):
        each[:, :] = values
        each.flush()
    for _ in range({times}):
        begun = time.perf_counter()
        outcore.einsum("ik,kj->ij", left, right, out=out, memory=memory)
        out.sync()
        seconds = time.perf_counter() - begun
print(seconds)
"""


@dataclass(frozen=True)
class _Command:
    """A command of Outcore, and the names of an energy in its results."""

    name: str
    atoms: list[str]
    arguments: tuple[str, ...]
    energies: tuple[str, ...] = ("energy_hartree", "energies_hartree")


_TIGHT = ("--conv-tol", "1e-10")
_NITROGEN = ["N 0 0 0", "N 0 0 1.1"]
_QUICK = (
    _Command("rimp2, water/cc-pVDZ", water(1), ("rimp2", "--basis", "cc-pvdz"), ("total_hartree",)),
    _Command("fci, water/6-31G", water(1), ("fci", "--basis", "6-31g", "--frozen", "auto")),
)
_LONG = (
    _Command(
        "scf on disk, benzene/cc-pVDZ",
        acene(1),
        ("scf", "--basis", "cc-pvdz", "--storage", "disk", *_TIGHT),
    ),
    _Command("rimp2, benzene/cc-pVTZ", acene(1), ("rimp2", "--basis", "cc-pvtz"), ("total_hartree",)),
    _Command(
        "ccsd with (T), benzene/cc-pVDZ",
        acene(1),
        ("ccsd", "--basis", "cc-pvdz", "--frozen", "auto", "--triples", "--memory", "400MB"),
        ("ccsd_t_energy_hartree",),
    ),
    _Command(
        "fci, N2/6-31G",
        _NITROGEN,
        ("fci", "--basis", "6-31g", "--frozen", "auto", "--residual", "1e-6", "--memory", "400MB"),
    ),
    _Command(
        "mrci, N2/cc-pVDZ",
        _NITROGEN,
        ("mrci", "--basis", "cc-pvdz", "--frozen", "auto", "--cas", "6,6", "--memory", "400MB"),
    ),
)


def run(options: BenchOptions) -> list[Claim]:
    other = os.environ.get(OTHER)
    if not other:
        options.say(f"{OTHER} names no interpreter: no comparison with another build")
        return []
    pythons = {"ours": sys.executable, "other": other}
    turns = 2 if options.quick else 7
    claims = []
    for name, index in (("matrices", "ik,kj->ij"), ("one transposed", "ik,jk->ij")):
        found = _in_turns(pythons, partial(_printed, options, _SMALL.format(index=index)), turns)
        claims.append(_claim(f"einsum of a millisecond in memory, {name}", found, SMALL))
    n, times = (1000, 1) if options.quick else (4000, 4)
    found = _in_turns(pythons, partial(_printed, options, _SQUARE.format(n=n, times=times)), turns)
    claims.append(_claim(f"einsum of arrays on disk, {n} x {n} in a tenth of the memory", found, SLOWEST))
    for command in _QUICK if options.quick else _LONG:
        energies: dict[str, float] = {}
        seconds = partial(_seconds, options, command, energies)
        claims.append(_claim(command.name, _in_turns(pythons, seconds, turns), SLOWEST))
        error = abs(energies[sys.executable] - energies[other])
        claims.append(
            Claim(f"{command.name}: energy off the other build's", error, "Eh", at_most(SAME), "", "")
        )
    return claims


def _in_turns(
    pythons: dict[str, str], measure: Callable[[str], float], turns: int
) -> list[tuple[float, float]]:
    """Seconds of ours and of the other build, which takes the first turn every other time."""
    found = []
    for turn in range(turns):
        names = list(pythons) if turn % 2 else list(pythons)[::-1]
        seconds = {name: measure(pythons[name]) for name in names}
        found.append((seconds["ours"], seconds["other"]))
    return found


def _claim(name: str, found: list[tuple[float, float]], bar: float) -> Claim:
    ours, theirs = (sorted(each)[len(each) // 2] for each in zip(*found, strict=True))
    how = f"{len(found)} turns, medians {ours:.4g} and {theirs:.4g} s"
    ratios = [other / own for own, other in found]
    return median_claim(
        f"{name}: speed over that of the other build", ratios, "", at_least(bar), "other build", how
    )


def _printed(options: BenchOptions, script: str, python: str) -> float:
    _, output = timed([python, "-c", script], options.scratch, OUTCORE_SCRATCH=str(options.scratch))
    return float(output.split()[-1])


def _seconds(options: BenchOptions, command: _Command, energies: dict[str, float], python: str) -> float:
    """Seconds of the whole command. energies: by interpreter (Hartree); gets that of this one."""
    geometry, results = options.scratch / "molecule.xyz", options.scratch / "results.json"
    geometry.write_text("\n".join([str(len(command.atoms)), "", *command.atoms]) + "\n")
    name, *more = command.arguments
    seconds, _ = timed(
        [
            *(python, "-m", "outcore", name, str(geometry), "-q", "--threads", str(CORES)),
            *("--scratch", str(options.scratch), "--json", str(results), *more),
        ],
        options.scratch,
    )
    found: dict[str, Any] = json.loads(Path(results).read_text())
    results.unlink()
    energies[python] = _energy(found, command.energies)
    return seconds


def _energy(found: dict[str, Any], names: tuple[str, ...]) -> float:
    for name in names:
        if name in found:
            return float(np.ravel(found[name])[0])
    raise Failed(f"results have none of {', '.join(names)}")
