"""Hartree-Fock with two-electron integrals on disk.

Names are loaded at first use: `outcore.chem.hf.RHF`.

Files:

    command, view:
        `outcore scf`, and its output
    scf:
        mean-field objects
    settings, plan, estimate, accuracy:
        which integrals are stored, how finely, and the cost
    integrals, stores, kept:
        integrals over all processes, integrals that objects share, integrals kept after a run
    skeleton:
        densities by irreps, J and K from integrals that stand for their symmetric copies
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.hf.scf import RHF as RHF
    from outcore.chem.hf.scf import ROHF as ROHF
    from outcore.chem.hf.scf import UHF as UHF
    from outcore.chem.hf.scf import out_of_core as out_of_core

__all__ = ["RHF", "ROHF", "UHF", "out_of_core"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from outcore.chem.hf import scf

        return getattr(scf, name)
    raise AttributeError(f"module 'outcore.chem.hf' has no attribute '{name}'")
