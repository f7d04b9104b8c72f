"""Whether a converged determinant is a minimum of the energy: the lowest eigenvalue of the orbital Hessian (Seeger,
Pople, J. Chem. Phys. 66, 3045 (1977)), and orbitals along its eigenvector if it is negative.

The Hessians are PySCF's, made of J and K of the mean-field object. The search starts from vectors without symmetry,
so that it also finds a direction in which only spins or mirror images separate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float64]]

UNSTABLE = (
    -1e-5
)  # Hartree, as in PySCF: an eigenvalue below it is an instability; nearer to 0 it may be rounding
_CONVERGED = 1e-6  # convergence of the eigenvalue (Hartree)
_MOST = 60  # most products with the Hessian
_SEED = 1977  # fixed, for the same vectors in every run


@dataclass(frozen=True)
class Stability:
    """The lowest eigenvalue (Hartree), and orbitals rotated towards a lower energy; None if it is stable."""

    eigenvalue: float
    orbitals: Any = None

    @property
    def stable(self) -> bool:
        return self.eigenvalue >= UNSTABLE


def internal(mf: Any) -> Stability:
    """Stability under rotations that keep the kind of the determinant (RHF, UHF, ROHF), and its irreps if the
    molecule has symmetry. For the process that drives the SCF."""
    from pyscf.scf import hf
    from pyscf.soscf import newton_ah

    if mf.istype("UHF"):
        make = newton_ah.gen_g_hop_uhf
    elif mf.istype("ROHF"):
        make = newton_ah.gen_g_hop_rohf
    else:
        make = newton_ah.gen_g_hop_rhf
    _, product, diagonal = make(mf, mf.mo_coeff, mf.mo_occ)
    if not np.any(diagonal):
        return Stability(0.0)  # nothing can be rotated
    value, vector = _lowest(lambda x: 2 * product(x).real, 2 * diagonal)
    if value >= UNSTABLE:
        return Stability(value)
    if not mf.istype("UHF"):
        return Stability(value, _rotated(mf.mo_coeff, hf.unpack_uniq_var(vector, mf.mo_occ)))
    alpha, beta = (np.asarray(each) for each in mf.mo_occ)
    cut = int(np.count_nonzero(alpha > 0) * np.count_nonzero(alpha == 0))
    parts = zip(mf.mo_coeff, (vector[:cut], vector[cut:]), (alpha, beta), strict=True)
    return Stability(value, np.array([_rotated(c, hf.unpack_uniq_var(x, o)) for c, x, o in parts]))


def towards_uhf(mf: Any) -> Stability:
    """Stability of closed shells under rotations that differ for both spins. For the process that drives the
    SCF."""
    from pyscf.scf import stability

    _, _, product, diagonal = stability._gen_hop_rhf_external(mf)
    return Stability(_lowest(product, diagonal)[0] if np.any(diagonal) else 0.0)


def _rotated(coefficients: Any, angles: Any) -> Any:
    from pyscf.soscf.newton_ah import expmat

    return np.asarray(coefficients) @ expmat(angles)


def _lowest(product: Callable[[Vector], Vector], diagonal: Vector) -> tuple[float, Vector]:
    """The lowest eigenvalue of a symmetric matrix, and its eigenvector. Symmetry forbids a rotation whose diagonal
    element is 0."""
    from pyscf import lib

    allowed = diagonal != 0
    size = int(np.count_nonzero(allowed))

    def preconditioned(residual: Vector, value: float, _: Vector) -> Vector:
        gap = diagonal - value
        gap[abs(gap) < 1e-8] = 1e-8
        return residual / gap

    any_direction = np.random.default_rng(_SEED).standard_normal(len(diagonal)) * allowed
    any_direction /= np.maximum(abs(diagonal), 1e-3)
    steepest = np.zeros_like(diagonal)
    steepest[np.argmin(np.where(allowed, diagonal, np.inf))] = 1
    starts = [steepest, any_direction / np.linalg.norm(any_direction)][: min(2, size)]
    value, vector = lib.davidson(
        product, starts, preconditioned, tol=_CONVERGED, max_cycle=_MOST, verbose=0, max_memory=4000
    )
    return float(value), np.asarray(vector)
