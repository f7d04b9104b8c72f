"""Full CI with packed vectors, against the same search with unpacked vectors, both on disk.

Bytes on disk are the largest size of the files in scratch. Bytes moved are all reads and writes of an iteration, as
the Linux kernel counts them for the process (/proc/self/io). Only iterations with a full small space count. Both
searches get slightly too little memory for vectors, and begin with the same states. The search with unpacked
vectors converges to a residual of 1e-6 Eh, so its energy is exact within 1e-11 Eh. --quick takes the smallest
molecule.
"""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcore.chem import ci
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most
from outcore.job.resources import cores

BOUND = 1e-8  # Hartree
REASONS = {
    ".*: seconds of an iteration": "packing and unpacking take two cores longer than this disk takes for the bytes "
    "that packing saves",
}
_POLL_S = 0.02
_LARGE = 8 << 30  # bytes of memory that suffice for all cases


@dataclass(frozen=True)
class Case:
    name: str
    atom: str
    basis: str
    frozen: int
    roots: int = 1


CASES = [
    Case("N2/6-31G", "N 0 0 0; N 0 0 1.0977", "6-31g", 2),
    Case("N2/6-31G, 3 roots", "N 0 0 0; N 0 0 1.0977", "6-31g", 2, 3),
    Case("H2O/cc-pVDZ, frozen core", "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", "cc-pvdz", 1),
    Case("Be2/cc-pVDZ", "Be 0 0 1.225; Be 0 0 -1.225", "cc-pvdz", 0),
]


def run(options: BenchOptions) -> list[Claim]:
    return [claim for case in CASES[: 1 if options.quick else None] for claim in _compare(options, case)]


@dataclass
class _Run:
    energies: Any = None
    raised: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0
    iterations: int = 0
    moved: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)


def _compare(options: BenchOptions, case: Case) -> list[Claim]:
    plain = _solve(options, case, 0.0)
    packed = _solve(options, case, BOUND)
    above = float((packed.energies - plain.energies).max())
    text = f"{plain.memory_bytes / 1e6:.0f} MB of memory, {min(2, cores())} threads"

    def ratio(name: str, of: Any, unit: str, bar: Any, scale: float = 1e-6) -> Claim:
        a, b = float(of(packed)), float(of(plain))
        how = f"{a * scale:.3g} against {b * scale:.3g} {unit}; {text}"
        return Claim(f"{case.name}: {name}", a / b, "of plain", bar, "vectors as they are", how)

    def median(values: list[Any]) -> float:
        return float(statistics.median(values))

    return [
        ratio("bytes on disk", lambda each: each.disk_bytes, "MB", at_most(0.4)),
        ratio("bytes moved by an iteration", lambda each: median(each.moved), "MB", at_most(0.4)),
        ratio("seconds of an iteration", lambda each: median(each.seconds), "s", at_most(1.1), 1.0),
        ratio("processor seconds of an iteration", lambda each: median(each.processor_seconds), "s", None, 1.0),
        Claim(
            f"{case.name}: energy above the exact one, over the bound",
            above / BOUND, "", at_most(1.0), "", f"{above:.1e} Eh, the run says {packed.raised:.1e} Eh",
        ),
        Claim(
            f"{case.name}: energy above the exact one", above, "Eh", at_least(-1e-11), "",
            "it is that of the vectors as they are stored",
        ),
        Claim(
            f"{case.name}: iterations", packed.iterations, "", None, "",
            f"bound {BOUND:g} Eh; {plain.iterations} for a residual of 1e-6 Eh",
        ),
        Claim(
            f"{case.name}: share of an iteration that waited", 100 * median(packed.waited), "%", None, "",
            f"{100 * median(plain.waited):.0f} % with vectors as they are",
        ),
    ]  # fmt: skip


def _solve(options: BenchOptions, case: Case, bound: float) -> _Run:
    from pyscf import gto, scf

    mol = gto.M(atom=case.atom, basis=case.basis, symmetry=True, verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-12)
    found, marks = _Run(), list[tuple[int, float, float, float]]()
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.wait(_POLL_S):
            found.disk_bytes = max(found.disk_bytes, _on_disk(options.scratch))

    def told(iteration: Any, _: Any) -> None:
        marks.append((_moved(), time.perf_counter(), time.process_time(), iteration.waited_seconds))

    watch = threading.Thread(target=poll)
    given: dict[str, Any] = {"threads": min(2, cores()), "scratch": str(options.scratch)}
    with ci.FCI(mf, frozen=case.frozen, roots=case.roots, error_bound=bound, **given) as each:
        each.on_iteration = told
        found.memory_bytes = each.memory_bytes = _memory_for_disk(each)
        watch.start()
        try:
            each.kernel()
            found.energies = each.e_states
        finally:
            stopped.set()
            watch.join()
        solved = each.solved
        if not (solved.plan.kind == "disk" or solved.plan.packed) or not solved.converged:
            raise RuntimeError(f"{case.name}: vectors are {solved.plan.in_words}, {solved.why}")
        found.raised = max(one.raised for one in solved.bounds)
    found.iterations = len(marks)
    for (moved, at, used, _), (later, end, use, waited) in itertools.pairwise(marks[2:]):
        found.moved.append(later - moved)
        found.seconds.append(end - at)
        found.processor_seconds.append(use - used)
        found.waited.append(waited / (end - at))
    options.say(
        f"{case.name}, error bound {bound:g}: {found.iterations} iterations, {found.disk_bytes / 1e6:.0f} MB"
    )
    return found


def _memory_for_disk(each: ci.FCI) -> int:
    """Slightly too little memory for vectors: goes down in steps of a tenth until the plan puts them on disk or
    packs them."""
    memory = _LARGE
    while True:
        memory = memory * 9 // 10
        each.memory_bytes = memory
        plan = each.forecast().plan
        if plan.kind == "disk" or plan.packed:
            return memory


def _on_disk(directory: Path) -> int:
    """Bytes on disk of all files below a directory that this process has open, with or without a name."""
    every: dict[tuple[int, int], int] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith(str(directory)):
                state = os.fstat(int(name))
                every[state.st_dev, state.st_ino] = 512 * state.st_blocks
        except OSError:  # closed meanwhile
            continue
    return sum(every.values())


def _moved() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["read_bytes"]) + int(lines["write_bytes"])
