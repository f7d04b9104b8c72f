"""Resolution of the identity: SCF with three-index integrals on disk resident arrays.

Names are loaded at first use: `outcore.chem.ri.RHF`.

Files:

    command, options:
        `outcore ri-scf` and `outcore rimp2`
    scf, fitting, jk, exchange:
        mean-field objects, their fitting, J and K in one pass, K of symmetric densities
    auxiliary, metric, pairs:
        auxiliary bases, the Coulomb metric, pairs of shells
    axes, symmetry:
        molecules along the axes of their point group, and the functions that its operations exchange there
    source, three_index, cholesky, given:
        sources of three-index integrals: fitting, Cholesky decomposition, integrals that the caller gives
    rows, transformed:
        rows over basis functions, and integrals over occupied and virtual orbitals made from them
    plan, forecast, traffic, bound, problem, disk_pass:
        memory, predictions, traffic and the least of it, settings of kept integrals, passes over disk arrays
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore.chem.ri.fitting import DensityFitting as DensityFitting
    from outcore.chem.ri.scf import RHF as RHF
    from outcore.chem.ri.scf import ROHF as ROHF
    from outcore.chem.ri.scf import UHF as UHF
    from outcore.chem.ri.scf import density_fit as density_fit

__all__ = ["RHF", "ROHF", "UHF", "DensityFitting", "density_fit"]


def __getattr__(name: str) -> Any:
    if name == "DensityFitting":
        from outcore.chem.ri.fitting import DensityFitting

        return DensityFitting
    if name in __all__:
        from outcore.chem.ri import scf

        return getattr(scf, name)
    raise AttributeError(f"module 'outcore.chem.ri' has no attribute '{name}'")
