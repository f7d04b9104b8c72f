"""Exchange of densities that have the symmetry of the molecule.

Each orbital of such a density has one irrep: C[o(m), i] = c_o s_o(m) C[m, i] with the characters c of i. Rows of
integrals have one irrep, too, and a half-transformed row x[m] = sum_n B[P, mn] C[n, i] has the product of both
irreps. So functions that stand for others are enough: K[m, m'] = sum x[m] x[m'] over all x of one irrep, for each
irrep by itself, and

    K[o(m), o'(m')] = s_o(m) s_o'(m') sum_irreps c_o c_o' K_irrep[m, m'].

With g operations the first product takes 1/g of the operations without symmetry, the second 1/g^2.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outcore.chem import operations

if TYPE_CHECKING:
    from outcore.chem.ri.symmetry import FittingSymmetry

Matrix = NDArray[np.float64]

_NEGLIGIBLE = 1e-14  # occupations below it, relative to the largest, are rounding
_ROUNDING = 1e-12  # a smaller part between irreps, relative to the norm of a density, is rounding


class Blocks:
    """A symmetric density matrix [n][n] along the axes, over combinations of functions that each have one irrep.

    is_symmetric: all elements between different irreps are zero, except for rounding, and for the deviation of
    nearly symmetric atoms from symmetry."""

    def __init__(self, symmetry: FittingSymmetry, density: Matrix) -> None:
        self._combinations, counts = symmetry.combinations
        self._blocks = list(pairwise(accumulate(counts, initial=0)))
        self._matrix = self._combinations.turned(density)
        kept = np.zeros_like(density)
        for first, last in self._blocks:
            kept[first:last, first:last] = self._matrix[first:last, first:last]
        norm, rest = float(np.linalg.norm(density)), float(np.linalg.norm(self._matrix - kept))
        self.is_symmetric = rest <= _ROUNDING * norm
        used = symmetry.found.operations
        if not self.is_symmetric and used is not None and used.change > 0:
            overlap = self._combinations.turned(symmetry.mol.intor_symmetric("int1e_ovlp"))
            of_rest, of_all = (
                operations.norm_of(overlap, each) for each in (self._matrix - kept, self._matrix)
            )
            self.is_symmetric = of_rest <= operations.left_out(used.change, of_all)

    def orbitals(self) -> list[tuple[int, float, Matrix]]:
        """Irrep, sign, and orbitals as rows [some][n] along the axes: the density is the sum of sign C^T C."""
        back, found, pairs = self._combinations.transposed, list[tuple[int, float, Matrix]](), []
        for first, last in self._blocks:
            pairs.append(linalg.eigh(self._matrix[first:last, first:last]))
        largest = max((float(abs(values).max(initial=0.0)) for values, _ in pairs), default=0.0)
        for irrep, ((first, last), (values, vectors)) in enumerate(zip(self._blocks, pairs, strict=True)):
            for sign in (1.0, -1.0):
                kept = sign * values > _NEGLIGIBLE * max(largest, 1e-300)
                if kept.any():
                    whole = np.zeros((len(self._matrix), int(kept.sum())))
                    whole[first:last] = vectors[:, kept] * np.sqrt(abs(values[kept]))
                    found.append((irrep, sign, np.ascontiguousarray((back @ whole).T)))
        return found


def unfolded(symmetry: FittingSymmetry, sums: Matrix) -> Matrix:
    """K [n][n] along the axes, from sums [irreps][standing][standing] over half-transformed rows."""
    standing, n = symmetry.standing, symmetry.images.shape[1]
    by_operation = np.tensordot(symmetry.characters, sums, axes=(0, 0))
    found = np.zeros((n, n))
    for a, (image, sign) in enumerate(zip(symmetry.images, symmetry.signs, strict=True)):
        for b, (other, of_other) in enumerate(zip(symmetry.images, symmetry.signs, strict=True)):
            block = by_operation[a ^ b] * np.outer(sign[standing], of_other[standing])
            found[np.ix_(image[standing], other[standing])] = block
    return found
