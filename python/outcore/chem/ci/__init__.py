"""Configuration interaction: all determinants of some orbitals.

Names are loaded at first use: `outcore.chem.ci.FCI`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.ci.fci import FCI as FCI
    from outcore.chem.ci.fci_solver import FCISolver as FCISolver

__all__ = ["FCI", "FCISolver"]


def __getattr__(name: str) -> Any:
    if name == "FCI":
        from outcore.chem.ci.fci import FCI

        return FCI
    if name == "FCISolver":
        from outcore.chem.ci.fci_solver import FCISolver

        return FCISolver
    raise AttributeError(f"module 'outcore.chem.ci' has no attribute '{name}'")
