"""Second-order perturbation theory on three-index integrals.

Names are loaded at first use: `outcore.chem.mp2.MP2`.

Files:

    mp2:
        RI-MP2 of closed and open shells
    settings:
        factors of spin-component scaling, and the screening of integrals
    pairs:
        energies of pairs of orbitals
    tiles:
        integrals of occupied and virtual orbitals, fetched ahead
    densities, gradient, objects:
        relaxed densities and nuclear gradients, and by PySCF's names
    finished_pairs:
        checkpoint of pair energies, from which another run goes on
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.mp2.mp2 import MP2 as MP2

__all__ = ["MP2"]


def __getattr__(name: str) -> Any:
    if name == "MP2":
        from outcore.chem.mp2 import mp2

        return mp2.MP2
    raise AttributeError(f"module 'outcore.chem.mp2' has no attribute '{name}'")
