"""A molecule along the axes of its point group, where an operation o turns each function m into plus or minus
another one, s_o(m) o(m). Without operations it is the molecule itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem import operations

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.operations import FewInRows, FoundOperations
    from outcore.chem.problem import Settings

Matrix = NDArray[np.float64]
Integers = NDArray[np.int32]

_DIGITS = 12  # digits of axes, so that they are the same in every run


class Axes:
    """
    Attributes:
        found: the operations, and a note about them.
        order: number of operations, with the identity; 1 without symmetry.
        mol: along the axes, for integrals only.
        shells: [operations][shells], the image of each shell, without the identity; None: there are no operations.
        images, signs: [operations][functions], image and sign of each function, the identity first.
    """

    def __init__(self, mol: Mole, found: FoundOperations) -> None:
        self.found, used = found, found.operations
        self.mol, self.order = mol, 1
        self.shells: Integers | None = None
        if used is None:
            return
        self.mol, self.order, self.shells = operations.along_axes(mol, used), used.order, used.shells
        self.images, self.signs = operations.functions(mol, used)
        self._turn = operations.to_axes(mol, used)
        self._back = self._turn.transposed

    @property
    def aligned(self) -> bool:
        """Whether the axes are those of the frame, in any order."""
        return self.order == 1 or bool(np.count_nonzero(self._turn.values) == len(self._turn.values))

    @property
    def settings(self) -> Settings:
        """Settings that integrals along the axes depend on: permutations of atoms, and the axes."""
        used = self.found.operations
        return {
            "symmetry operations": None if used is None else used.atoms,
            "symmetry axes": None if used is None else [np.round(used.axes, _DIGITS), used.signs],
        }

    def orbitals_to_axes(self, orbitals: Matrix) -> Matrix:
        """Transforms coefficients [n][any] to the functions along the axes."""
        return orbitals if self.order == 1 else self._turn @ orbitals

    def densities_to_axes(self, matrices: Matrix) -> Matrix:
        """Transforms density matrices [count][n][n] to the functions along the axes."""
        if self.order == 1:
            return matrices
        return np.array([_turned(self._turn, each) for each in matrices])

    def from_axes(self, matrices: Matrix) -> Matrix:
        """Transforms matrices [count][n][n] of operators to the functions of the molecule, in place."""
        if self.order > 1:
            for number, each in enumerate(matrices):
                matrices[number] = _turned(self._back, each)
        return matrices


def _turned(matrix: FewInRows, each: Matrix) -> Matrix:
    """U D U^T."""
    turned: Matrix = (matrix @ (matrix @ each).T).T
    return turned
