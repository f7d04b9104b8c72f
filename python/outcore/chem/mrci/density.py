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
AddTo = Callable[[Matrix, Matrix], None]  # what tasks of the kernel add to sums of each spin


@dataclass(frozen=True)
class NaturalOrbitals:
    """Occupations, descending; coefficients [function][orbital], None without a molecule; names of irreps."""

    occupations: Matrix
    coefficients: Matrix | None
    irreps: list[str]


def check_pairs(electrons: tuple[int, int]) -> None:
    """Whether there are pairs of an alpha and a beta electron, if there are two. Raises OutcoreError (ENOTSUP)."""
    if min(electrons) == 0 and sum(electrons) > 1:
        raise OutcoreError(
            errno.ENOTSUP, "density of a multireference CI", detail="all electrons have one spin"
        )


def of_sums(alpha: Matrix, beta: Matrix, electrons: tuple[int, int], norm: float, *, folded: bool) -> Matrix:
    """[p][q] = <p+ q> of both spins together, from sums over pairs of an alpha and a beta electron.

    Raises OutcoreError (ENOTSUP) without such pairs."""
    check_pairs(electrons)
    if folded:
        return 2 * alpha / (electrons[1] * norm)
    return (alpha / electrons[1] + beta / electrons[0]) / norm


def natural(found: Correlated, density: Matrix) -> NaturalOrbitals:
    """Of a density over the correlated orbitals, in their order; each of one irrep."""
    labels = np.array([*found.orbitals.internal, *found.orbitals.external])
    vectors, values = np.zeros_like(density), np.zeros(len(labels))
    for irrep in range(found.orbitals.groups):
        inside = np.flatnonzero(labels == irrep)
        if len(inside):
            values[inside], vectors[np.ix_(inside, inside)] = np.linalg.eigh(density[np.ix_(inside, inside)])
    order = np.argsort(-values, kind="stable")
    coefficients = None if found.coefficients is None else found.coefficients @ vectors[:, order]
    return NaturalOrbitals(values[order], coefficients, [found.group.irreps[each] for each in labels[order]])
