"""RI-SCF of ten water molecules with 1720 functions, with integrals larger than memory, against PySCF and Psi4.

As the benchmark `ri`, with 4 GB for each program and one run of each; a peer is stopped after three times Outcore's
time. --quick does the same as that of `ri`.
"""

from __future__ import annotations

from outcore.cli.bench import BenchOptions, Claim

from . import ri
from ._molecules import waters

MEMORY = 4_000_000_000  # for each program


def run(options: BenchOptions) -> list[Claim]:
    if options.quick:
        return ri.run(options)
    case = ri.Case(
        "RI-SCF/aug-cc-pVQZ", "aug-cc-pvqz", False, False, MEMORY, "(H2O)10", waters(10), large=True
    )
    return ri.measure(case, options)
