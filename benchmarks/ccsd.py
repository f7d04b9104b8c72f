"""Coupled cluster in little memory: iterations of CCSD, and (T), against PySCF.

Residuals of ours, with arrays on disk where the memory does not hold them, are timed in turn with PySCF's update of
amplitudes of density-fitted CCSD, from the same orbitals and auxiliary functions, on the same number of threads.
Iterations and (T) of each case are processes of their own, as the memory of ours counts what the process holds.
The rate of (T) is operations of its products of matrices over the time of all that is done, against DGEMM of the
same BLAS with 1000 x 1000 matrices between tasks of (T). What is hidden of reading is told by how long threads
waited for the integrals of the ladder, against the time that the disk takes for them. --quick takes benzene in a
small basis, whose times are told without a bar.
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
