"""One-particle densities of states of a multireference CI, and their natural orbitals."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.chem.mrci.orbitals import Correlated

Matrix = NDArray[np.float64]
_ORTHONORMAL = 1e-6
AddTo = Callable[[Matrix, Matrix], None]  # adds the results of tasks to the sums of each spin


@dataclass(frozen=True)
class NaturalOrbitals:
    """Natural orbitals: occupations, descending; coefficients [function][orbital], None without a molecule; names
    of irreps."""

    occupations: Matrix
    coefficients: Matrix | None
    irreps: list[str]


def check_pairs(electrons: tuple[int, int]) -> None:
    """Raises OutcoreError (ENOTSUP) if there are two or more electrons, but no pair of an alpha and a beta
    electron."""
    if min(electrons) == 0 and sum(electrons) > 1:
        raise OutcoreError(
            errno.ENOTSUP, "density of a multireference CI", detail="all electrons have one spin"
        )


def of_sums(
    alpha: Matrix, beta: Matrix, electrons: tuple[int, int], norm: float, *, folded: bool
) -> tuple[Matrix, Matrix]:
    """[p][q] = <p+ q> of spin alpha and of spin beta, from sums over pairs of an alpha and a beta electron.

    Raises OutcoreError (ENOTSUP) without such pairs."""
    check_pairs(electrons)
    of_alpha = alpha / (electrons[1] * norm)
    return of_alpha, of_alpha if folded else beta / (electrons[0] * norm)


def in_functions(found: Correlated, spins: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
    """Alpha and beta densities over basis functions, with frozen orbitals. spins: densities over the correlated
    orbitals, in their order. Raises OutcoreError (EINVAL) if there is no molecule with these functions."""
    c, frozen, mol = found.coefficients, found.frozen, found.mol
    if c is None or frozen is None or mol is None:
        raise _refused("the integrals are of a file, which has no molecule")
    every, overlap = np.hstack([frozen, c]), mol.intor_symmetric("int1e_ovlp")
    if (
        len(overlap) != len(every)
        or abs(every.T @ overlap @ every - np.eye(every.shape[1])).max() > _ORTHONORMAL
    ):
        raise _refused("the functions of a model lie nowhere in space")
    core = frozen @ frozen.T
    return c @ spins[0] @ c.T + core, c @ spins[1] @ c.T + core


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "density of a multireference CI", detail=detail)


def natural(found: Correlated, density: Matrix) -> NaturalOrbitals:
    """Natural orbitals of a density over the correlated orbitals, in their order. Each belongs to one irrep."""
    labels = np.array([*found.orbitals.internal, *found.orbitals.external])
    vectors, values = np.zeros_like(density), np.zeros(len(labels))
    for irrep in range(found.orbitals.groups):
        inside = np.flatnonzero(labels == irrep)
        if len(inside):
            values[inside], vectors[np.ix_(inside, inside)] = np.linalg.eigh(density[np.ix_(inside, inside)])
    order = np.argsort(-values, kind="stable")
    coefficients = None if found.coefficients is None else found.coefficients @ vectors[:, order]
    return NaturalOrbitals(values[order], coefficients, [found.group.irreps[each] for each in labels[order]])
