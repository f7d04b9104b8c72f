"""States in the space of the references alone: a multireference CI begins with them and is compared to them."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.ci import determinants
from outcore.chem.ci import hamiltonian as hamiltonians
from outcore.chem.mrci import configurations
from outcore.chem.mrci.configurations import Configurations, Masks

if TYPE_CHECKING:
    from outcore.chem.mrci.orbitals import Correlated
    from outcore.job.resources import Allowance

Matrix = NDArray[np.float64]

MAX_DETERMINANTS = 4000  # their Hamiltonian is a matrix in memory
_MATRICES = 5  # matrices over the determinants that exist while their states are found
_PURE = 0.05  # largest difference of <S^2> from the value of the wanted spin


@dataclass(frozen=True)
class ReferenceStates:
    """energies: Hartree. vectors: [state][determinant]."""

    energies: Matrix
    vectors: Matrix
    alpha: Masks
    beta: Masks

    def coefficients(self, alpha: Masks, beta: Masks) -> Matrix:
        """Coefficients [state][determinant] of these determinants, which may be some of all, in any order."""
        where = {
            (a, b): i for i, (a, b) in enumerate(zip(self.alpha.tolist(), self.beta.tolist(), strict=True))
        }
        found = [where[a, b] for a, b in zip(alpha.tolist(), beta.tolist(), strict=True)]
        return np.ascontiguousarray(self.vectors[:, found])


def check(found: Correlated, references: Configurations, electrons: tuple[int, int], irrep: int) -> None:
    """Checks references, or candidates for a choice by weight in their states. Needs no integrals.

    Raises OutcoreError: EFBIG (too many determinants)."""
    count = configurations.count_determinants(_of_irrep(found, references, irrep), *electrons)
    if count > MAX_DETERMINANTS:
        raise OutcoreError(
            errno.EFBIG,
            "multireference CI",
            detail=f"{count} determinants of the references; there may be {MAX_DETERMINANTS}: take references "
            "from a file, or by their weight in a vector of a CASCI object (a weight without a vector needs states "
            "of all of them), or fewer active orbitals",
        )


def _of_irrep(found: Correlated, references: Configurations, irrep: int) -> Configurations:
    labels = configurations.irreps(references, found.orbitals.internal)
    chosen: Configurations = references[labels == irrep]
    return chosen


def matrix_bytes(count: int) -> int:
    """Memory for finding the states of so many determinants."""
    return 8 * _MATRICES * count**2


def of(
    found: Correlated,
    references: Configurations,
    electrons: tuple[int, int],
    irrep: int,
    spin: int,
    roots: int,
    free: Allowance,
) -> ReferenceStates:
    """The `roots` lowest states with 2S = `spin` in the space of the references.

    Raises OutcoreError: EFBIG (too many references), ENOMEM (their Hamiltonian), EINVAL (fewer states)."""
    check(found, references, electrons, irrep)
    alpha, beta = configurations.determinants(_of_irrep(found, references, irrep), *electrons)
    needed = matrix_bytes(len(alpha))
    if needed > free.bytes:
        raise OutcoreError(
            errno.ENOMEM,
            "multireference CI",
            detail=f"states of {len(alpha)} determinants of the references need {in_words(needed)} "
            f"more in each process, but {free.reason} leaves {in_words(free.bytes)} to each",
        )
    energies, vectors = np.linalg.eigh(_hamiltonian(found, alpha, beta)) if len(alpha) else _none()
    squares = determinants.spin_square(alpha, beta) if len(alpha) else np.zeros((0, 0))
    energies, vectors = _of_one_spin(energies, vectors, squares)
    wanted = spin / 2 * (spin / 2 + 1)
    pure = np.abs(np.einsum("ji,jk,ki->i", vectors, squares, vectors, optimize=True) - wanted) < _PURE
    if pure.sum() < roots:
        raise OutcoreError(
            errno.EINVAL,
            "multireference CI",
            detail=f"the references have {int(pure.sum())} states of irrep {found.group.irreps[irrep]} and 2S = "
            f"{spin}, not "
            f"{roots}",
        )
    return ReferenceStates(
        energies[pure][:roots], np.ascontiguousarray(vectors[:, pure].T[:roots]), alpha, beta
    )


def _hamiltonian(found: Correlated, alpha: Masks, beta: Masks) -> Matrix:
    u = len(found.orbitals.internal)
    if not u:  # without electrons
        return np.full((len(alpha),) * 2, found.core_energy)
    rows = u * (u + 1) // 2
    inner = hamiltonians.make(found.one[:u, :u], found.two.rows[:rows, :rows], core_energy=found.core_energy)
    return determinants.matrix(inner, alpha, beta)


def _none() -> tuple[Matrix, Matrix]:
    return np.zeros(0), np.zeros((0, 0))


def _of_one_spin(energies: Matrix, vectors: Matrix, squares: Matrix) -> tuple[Matrix, Matrix]:
    """Rotates degenerate states, which may be mixed, so that each has one spin."""
    first = 0
    while first < len(energies):
        last = first + 1
        while last < len(energies) and energies[last] - energies[first] < 1e-7:
            last += 1
        if last - first > 1:
            part = vectors[:, first:last]
            vectors[:, first:last] = part @ np.linalg.eigh(part.T @ squares @ part)[1]
        first = last
    return energies, vectors
