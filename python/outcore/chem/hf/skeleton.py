"""J and K of a molecule with symmetry, from quartets of shells that stand for their symmetric copies.

Sums over these quartets only are skeletons. A skeleton is averaged over the operations of the group. That is exact
for a density of one irrep: an operation turns it into itself or its negative, and the skeleton is averaged with the
same signs. Any other density is the sum of its parts in the irreps, and each part has its own skeleton.
Source: Dupuis, King, Int. J. Quantum Chem. 11, 613 (1977).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem import operations

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.operations import FewInRows, Operations

Matrices = NDArray[np.float64]

# A part of a density in an irrep is left out if its norm, relative to that of the density, is less: an SCF in
# double precision leaves so much.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class DensityPart:
    """The parts of some densities in one irrep. signs: [generators], factors of the parts under the operations."""

    signs: tuple[int, ...]
    which: list[int]  # numbers of the densities
    matrices: Matrices  # [which][n][n]


class Skeletons:
    """Skeletons for the operations of a molecule; None: there are none, and all densities have one irrep."""

    def __init__(self, mol: Mole, found: Operations | None) -> None:
        self._generators: list[tuple[FewInRows, FewInRows]] = []  # U and its transpose, for each
        self._change = 0.0
        if found is not None:
            self._generators = [(u, u.transposed) for u in operations.matrices(mol, found)]
            self._change = found.change
            self._overlap = mol.intor_symmetric("int1e_ovlp")

    def parts(self, densities: Matrices, floor: float = 0.0) -> list[DensityPart]:
        """Splits densities [count][n][n] by irreps, the totally symmetric parts first. floor: parts with a smaller
        norm are left out."""
        if not self._generators:
            return [DensityPart((), list(range(len(densities))), densities)]
        found: dict[tuple[int, ...], list[tuple[int, Matrices]]] = {}
        for number, density in enumerate(densities):
            norm = self._norm(density)
            least = max(floor, _ROUNDING * norm, operations.left_out(self._change, norm))
            for signs, part in self._split(density, least).items():
                found.setdefault(signs, []).append((number, part))
        return [
            DensityPart(signs, [number for number, _ in of], np.array([part for _, part in of]))
            for signs, of in sorted(found.items(), reverse=True)
        ]

    def average(self, part: DensityPart, matrices: Matrices) -> Matrices:
        """Averages skeletons [which][n][n] to J or K of a part, in place."""
        for sign, (_, transposed) in zip(part.signs, self._generators, strict=True):
            for number, matrix in enumerate(matrices):
                matrices[number] = (matrix + sign * transposed.turned(matrix)) / 2
        return matrices

    def _norm(self, matrix: Matrices) -> float:
        return operations.norm_of(self._overlap, matrix)

    def _split(self, density: Matrices, least: float) -> dict[tuple[int, ...], Matrices]:
        """The parts of one density by their signs, without those whose norm is less than `least`; at least one."""
        parts: dict[tuple[int, ...], Matrices] = {(): density}
        for generator, _ in self._generators:
            halves = {}
            for signs, part in parts.items():
                turned = generator.turned(part)
                odd = (part - turned) / 2
                if self._norm(odd) > least:
                    halves[*signs, -1] = odd
                halves[*signs, 1] = (part + turned) / 2
            parts = halves
        of_weight = {signs: part for signs, part in parts.items() if self._norm(part) > least}
        symmetric = (1,) * len(self._generators)
        return of_weight or {symmetric: parts[symmetric]}
