"""Multireference configuration interaction: all single and double excitations from a list of references.

Names are loaded at first use: `outcore.chem.mrci.MRCI`.

Files:

    command, options, settings, before:
        `outcore mrci`, and checks before its SCF
    mrci:
        the object
    spaces, orbitals, references, configurations, records:
        orbitals, references and the space of their excitations
    integrals, transform, tables, operator, few_electrons:
        integrals and the Hamiltonian
    solver, checks, reference_vectors, reference_states, size_consistency:
        the search, checks of its states, the states that it follows, ACPF, AQCC and corrections
    vectors, packed, storage, kept:
        vectors in memory, packed vectors, the choice between them, kept states
    density, estimate, plan:
        densities and natural orbitals; predictions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.mrci.mrci import MRCI as MRCI

__all__ = ["MRCI"]


def __getattr__(name: str) -> Any:
    if name == "MRCI":
        from outcore.chem.mrci.mrci import MRCI

        return MRCI
    raise AttributeError(f"module 'outcore.chem.mrci' has no attribute '{name}'")
