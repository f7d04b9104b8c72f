"""Multireference CI of 168 million determinants in less memory than its unpacked vectors take, killed and
restarted.

H2CO in cc-pVQZ, cores frozen, 12 electrons in 9 active orbitals, as one command, `outcore mrci --checkpoint`. It
gets SIGKILL in its fourth iteration and then runs again. Vectors are packed for an error of 1e-7 Hartree; integrals
between external pairs are read from disk.

--quick: 6-31G, in the same way.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
from dataclasses import dataclass
from typing import Any

from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import parse_bytes

from . import _killed_runs, _least

FORMALDEHYDE = "4\nH2CO\nO 0 0 1.2050\nC 0 0 0\nH 0 0.9429 -0.5876\nH 0 -0.9429 -0.5876\n"
BOUND = 1e-7
_KILLED_IN = 4  # iteration
_LINE = re.compile(
    r"iteration (\d+): correlation energy (\S+) Eh, residual (\S+), ([\d.]+) s, waited ([\d.]+) s"
)


@dataclass(frozen=True)
class _Iteration:
    number: int
    energy: float
    residual: float
    seconds: float
    waited: float

    @classmethod
    def of_line(cls, line: str) -> _Iteration | None:
        if (told := _LINE.match(line)) is None:
            return None
        number, *numbers = told.groups()
        return cls(int(number), *(float(each) for each in numbers))


def run(options: BenchOptions) -> list[Claim]:
    basis, memory = ("6-31g", "310MB") if options.quick else ("cc-pvqz", "1500MB")
    geometry, results, kept = (options.scratch / each for each in ("h2co.xyz", "results.json", "kept"))
    geometry.write_text(FORMALDEHYDE)
    name = f"H2CO/{basis}, CAS(12,9), {memory}"
    command = [
        sys.executable, "-m", "outcore", "mrci", str(geometry), "--basis", basis, "--frozen", "2", "--active", "9",
        "--error-bound", str(BOUND), "--memory", memory, "--scratch", str(options.scratch),
        "--checkpoint", str(kept), "--json", str(results),
    ]  # fmt: skip
    before, peak_before = _killed_runs.run(options, name, command, _Iteration.of_line, _KILLED_IN)
    after, peak_after = _killed_runs.run(options, name, command, _Iteration.of_line)
    found: dict[str, Any] = json.loads(results.read_text())
    shutil.rmtree(kept)
    every, peak = before + after, max(peak_before, peak_after)
    options.ran(name, found, peak_memory_bytes=peak, run_seconds=sum(each.seconds for each in every))
    return _claims(name, every, found, peak, memory, bars=not options.quick)


def _claims(
    name: str, every: list[_Iteration], found: dict[str, Any], most: int, memory: str, *, bars: bool
) -> list[Claim]:
    budget, vectors = parse_bytes(memory), found["vectors"]
    how = f"{found['determinants']} determinants, {found['elements']} coefficients stored, killed once"
    seconds = sum(each.seconds for each in every)
    claims = [
        Claim(f"{name}: energy", found["energies_hartree"][0], "Eh", None, "", how),
        Claim(
            f"{name}: error of packing", found["packing_error_hartree"], "Eh", at_most(BOUND), "",
            f"{vectors['bits']:.1f} bits an element",
        ),
        Claim(f"{name}: determinants", found["determinants"], "", at_least(1e8) if bars else None, "", how),
        Claim(
            f"{name}: vectors over memory", 8 * vectors["elements"] / budget, "",
            at_least(1.0) if bars else None, "",
            f"of the search, as they are; packed {vectors['packed_bytes'] / budget:.2f}, of which "
            f"{vectors['spilled']:.2f} were in the file",
        ),
        Claim(
            f"{name}: integrals on disk", found["integrals_on_disk_bytes"] / budget, "times the memory", None, "",
            "between external pairs, read in each product",
        ),
        Claim(f"{name}: iterations", len(every), "", None, "", f"{how}; residual {every[-1].residual:.1e} Eh"),
        Claim(
            f"{name}: iteration", statistics.median(each.seconds for each in every), "s", None, "",
            f"median; {sum(each.waited for each in every) / seconds:.2f} of a thread waited for records",
        ),
        Claim(
            f"{name}: peak resident over the memory that it was given", most / budget, "", at_most(1.0), "", how,
        ),
    ]  # fmt: skip
    moved = sum(vectors[kind]["bytes"] for kind in ("file_reads", "file_writes"))
    claims += _least.claims(f"{name}, packed vectors", found, moved, vectors["least_bytes"])
    return claims + [
        Claim(
            f"{name}, iteration {number}",
            each.seconds,
            "s",
            None,
            "",
            f"correlation energy {each.energy:.9f} Eh",
        )
        for number, each in enumerate(every, 1)
    ]
