"""The Hamiltonian of one electron, and of none: a matrix between orbitals. The one for more electrons uses pairs of
electrons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.mrci.vectors import MemoryVector

if TYPE_CHECKING:
    from outcore.chem.mrci.vectors import Array, Integers, Vector, VectorLayout
    from outcore.job.world import World


class FewElectronOperator:
    """The operator for at most one electron. Each process has all of the matrix, and its blocks of the vectors.
    Methods that sum are collective.

    Args:
        one: [n][n] over internal and external orbitals (Hartree).
        constant: energy without electrons (Hartree).
    """

    waited_seconds = 0.0

    def __init__(self, world: World, layout: VectorLayout, one: Array, constant: float) -> None:
        self.world, self.layout = world, layout
        self._orbitals = _orbitals(layout)
        self._matrix = np.ascontiguousarray(one[np.ix_(self._orbitals, self._orbitals)])
        if not sum(layout.records.electrons):
            self._matrix = np.zeros((layout.space.size,) * 2)
        self._matrix[np.diag_indices_from(self._matrix)] += constant

    def make(self, *, product: bool = False) -> MemoryVector:
        return MemoryVector(self.layout)

    def make_room(self, closing: Sequence[Vector]) -> None:
        """Nothing to do: all vectors are in memory."""

    def apply(self, x: Vector, y: Vector) -> float:
        assert isinstance(x, MemoryVector) and isinstance(y, MemoryVector)
        whole = self.world.all_reduce(x.data)
        product = self._matrix @ whole
        for block in range(self.world.rank, len(self.layout.blocks), self.world.size):
            y.write(block, product[self.layout.slice(block)])
        return float(whole @ product)

    def project(self, x: Vector) -> None:
        """Nothing to do: all vectors lie in the space."""

    def diagonal(self, block: int) -> Array:
        found: Array = np.diagonal(self._matrix)[self.layout.slice(block)]
        return found

    def densities(self, x: Vector, orbitals: int) -> tuple[Array, Array]:
        """[p][q] = <p+ q> of spin alpha and of spin beta; there is no beta electron."""
        assert isinstance(x, MemoryVector)
        whole, found = self.world.all_reduce(x.data), np.zeros((orbitals, orbitals))
        if len(self._orbitals):
            found[np.ix_(self._orbitals, self._orbitals)] = np.outer(whole, whole) / (whole @ whole)
        return found, np.zeros_like(found)

    def add_density(self, x: Vector, alpha: Array, beta: Array) -> None:
        """Nothing to do: there are no pairs of electrons."""

    def exchange(self, x: Vector) -> float:
        return 0.0


def _orbitals(layout: VectorLayout) -> Integers:
    """The orbital of the electron for each element of a vector; empty without an electron."""
    records = layout.records
    if not sum(records.electrons):
        return np.zeros(0, np.int64)
    external = np.array(records.orbitals.external, np.int64)
    outside = len(records.orbitals.internal) + np.flatnonzero(external == records.irrep)
    found = [
        outside if kind else np.array([int(alpha).bit_length() - 1], np.int64)
        for kind, alpha in zip(records.kinds, records.alpha, strict=True)
    ]
    return np.concatenate(found)
