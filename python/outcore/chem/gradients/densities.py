"""Densities that a gradient needs: of one particle, for each spin, and with the energies of orbitals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Matrix = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class DensityOfSpin:
    """The density of one spin, or of one of two equal ones.

    occupied: orbitals of the SCF, [n][o]. space: orbitals that `change` is a matrix over, [n][r].
    change: the correction of a method to the density of the SCF, with orbital relaxation, symmetric [r][r]; None:
        the method has none.
    """

    occupied: Matrix
    space: Matrix
    change: Matrix | None = None

    @cached_property
    def of_scf(self) -> Matrix:
        """The density of the SCF, [n][n] over basis functions."""
        return self.occupied @ self.occupied.T

    @property
    def changed(self) -> Matrix:
        """The correction, [n][n] over basis functions."""
        if self.change is None:
            return np.zeros((len(self.occupied),) * 2)
        return self.space @ self.change @ self.space.T

    @property
    def total(self) -> Matrix:
        """The density with its correction, [n][n] over basis functions."""
        return self.of_scf + self.changed


@dataclass(frozen=True)
class Densities:
    """spins: of alpha and beta, or one for both if they are alike. weighted: W over basis functions, [n][n], with
    which derivatives of the overlap count (Hartree): dE = sum_mn W_mn (dm|n), both spins, symmetric."""

    spins: list[DensityOfSpin]
    weighted: Matrix

    @property
    def weight(self) -> int:
        """Spins that each one here stands for."""
        return 3 - len(self.spins)

    @property
    def total(self) -> Matrix:
        """One-particle density of both spins, [n][n] over basis functions."""
        total: Matrix = self.weight * np.sum([each.total for each in self.spins], axis=0)
        return total

    @property
    def both(self) -> tuple[Matrix, Matrix]:
        """Densities of alpha and of beta, [n][n] over basis functions."""
        return self.spins[0].total, self.spins[-1].total

    @property
    def spin(self) -> Matrix:
        """The spin density: that of alpha less that of beta."""
        if len(self.spins) == 1:
            return np.zeros((len(self.weighted),) * 2)
        return self.spins[0].total - self.spins[1].total


def of_scf(reference: Any) -> Densities:
    """Densities of a stationary determinant. reference: an outcore.chem.reference.Reference with Fock matrices, as
    `as_given` makes it."""
    spins, weighted = [], 0.0
    for each in reference.spins:
        occupied = np.ascontiguousarray(each.coefficients[:, : each.occupied])
        spins.append(DensityOfSpin(occupied, occupied))
        fock = each.fock[: each.occupied, : each.occupied]
        weighted = weighted + occupied @ fock @ occupied.T
    return Densities(spins, 2 * (3 - len(spins)) * np.asarray(weighted))
