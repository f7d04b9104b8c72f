"""Perturbation theory beyond an active space that full CI has solved.

Names are loaded at first use: `outcore.chem.nevpt2.NEVPT2`, `outcore.chem.nevpt2.QDNEVPT2`.

Files:

    nevpt2, settings:
        strongly contracted NEVPT2 of one state
    quasi:
        QD-NEVPT2, in which states mix
    orbitals:
        canonical core and virtual orbitals, and integrals of active electrons
    kept:
        finished parts, for another run
    integrals:
        three-index integrals with outer orbitals, and their memory
    active:
        densities of electrons and holes, and the Hamiltonian with them
    classes:
        perturbers with several outer orbitals
    perturbers:
        perturbers with one outer orbital, as vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.nevpt2.nevpt2 import NEVPT2 as NEVPT2
    from outcore.chem.nevpt2.quasi import QDNEVPT2 as QDNEVPT2

__all__ = ["NEVPT2", "QDNEVPT2"]


def __getattr__(name: str) -> Any:
    if name == "NEVPT2":
        from outcore.chem.nevpt2 import nevpt2

        return nevpt2.NEVPT2
    if name == "QDNEVPT2":
        from outcore.chem.nevpt2 import quasi

        return quasi.QDNEVPT2
    raise AttributeError(f"module 'outcore.chem.nevpt2' has no attribute '{name}'")
