"""Coupled cluster in little memory: iterations of CCSD, and (T), against PySCF.

Outcore's residuals, with arrays on disk where the memory does not hold them, are timed in turn with PySCF's update
of amplitudes in density-fitted CCSD, from the same orbitals and auxiliary functions, on the same number of threads.
Iterations and (T) of each case run in processes of their own, because Outcore's budget counts the memory of the
whole process. The rate of (T) is the number of operations in its matrix products over its whole time; it is
compared with DGEMM of the same BLAS, with 1000 x 1000 matrices, between tasks of (T). The hidden part of
reading follows from the time for which threads waited for the ladder's integrals and the time that the disk
takes to read them. --quick takes benzene in a small basis, without bars for times.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from outcore.cli.bench import BenchOptions, Claim

from ._ccsd_worker import CASES, Case
from ._workers import Failed, python_worker

REASONS = {
    r".*: \(T\), rate over that of DGEMM": (
        "integrals of pairs of blocks are recomputed, as little memory does not hold them, and are reordered"
    ),
}

HAS_CASES = True


def run(options: BenchOptions) -> list[Claim]:
    claims = []
    for case in CASES:
        if options.quick == case.has_bars:
            continue
        for part in ("iterations", "triples")[: 1 + case.triples]:
            name = f"{case.name}, {part}"
            found = options.case(name, lambda case=case, part=part: _measured(options, case, part))  # type: ignore[misc]
            claims += [Claim.of_json(each) for each in found]
    return claims


def _measured(options: BenchOptions, case: Case, part: str) -> Any:
    command = python_worker("_ccsd_worker", case.name, part, str(options.scratch))
    said: list[str] = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if said:
                options.say(said[-1])
            said.append(line.rstrip())
    if process.returncode:
        raise Failed(f"{' '.join(command)} ended with {process.returncode}")
    return json.loads(said[-1])
