"""The Coulomb metric (P|Q) of an auxiliary basis, and what makes fitted integrals out of three-centre ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outcore.chem.ri.plan import PANEL

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

Matrix = NDArray[np.float64]

LINEAR_DEPENDENCE = 1e-7  # of eigenvalues that are left out; PySCF's bound
_ROUNDINGS = 10  # times the rounding of a sum of all functions: a metric whose condition is worse is singular
_PIECE_BYTES = 8 << 20  # broadcast at once


class Metric:
    """Makes B with sum_P B_Pmn B_Pls = sum_PQ (mn|P) (P|Q)^-1 (Q|ls), for any P of B.

    B = L^-1 (P|mn) with the Cholesky factor L of the metric. A metric that is singular within rounding, whether it
    has such a factor or not, is diagonalised instead, eigenvalues up to LINEAR_DEPENDENCE are left out, and B has
    `rank` rows, fewer than `functions`. Those of range-separated operators are as a rule. Collective to make;
    rank 0 decides, all have the same factor, bit by bit. Making it takes twice the memory of the metric, as
    eigenvectors have a place of their own; once made, once.
    """

    def __init__(self, world: World, auxmol: Mole) -> None:
        self.functions = int(auxmol.nao)
        self.smallest: float | None = None  # eigenvalue, if it was diagonalised
        factor: Matrix | None = None
        with world.together("Coulomb metric"):
            if world.rank == 0:
                factor = self._factorize(auxmol)
        self.rank, self.smallest = world.broadcast((0 if factor is None else len(factor), self.smallest))
        if factor is None:
            factor = np.empty((self.rank, self.functions))
        if world.size > 1:
            rows = max(1, _PIECE_BYTES // (8 * self.functions))
            for first in range(0, self.rank, rows):
                factor[first : first + rows] = world.broadcast(factor[first : first + rows])
        self._factor = factor

    @property
    def dropped(self) -> int:
        """Combinations of functions that depend on others, and were left out."""
        return self.functions - self.rank

    def _factorize(self, auxmol: Mole) -> Matrix:
        """L^-1, or the scaled eigenvectors."""
        inverse = _inverse_factor(_overlap(auxmol))
        if inverse is not None:
            return inverse
        overlap = _overlap(auxmol)
        values, vectors = linalg.eigh(overlap, overwrite_a=True, check_finite=False)
        del overlap  # destroyed, and as large as the vectors
        self.smallest = float(values[0])
        first = int(np.searchsorted(values, LINEAR_DEPENDENCE, side="right"))
        kept = vectors[:, first:]
        kept /= np.sqrt(values[first:])
        return np.asarray(kept.T)

    def fit(self, block: Matrix) -> Matrix:
        """(P|x) as rows of `block` [functions][any] becomes B: in place, in its first `rank` rows, which are
        returned. Any thread."""
        if self.smallest is None:
            # Rows depend on those above, so the last come first.
            for first in range((self.rank - 1) // PANEL * PANEL, -1, -PANEL):
                last = min(first + PANEL, self.rank)
                block[first:last] = self._factor[first:last, :last] @ block[:last]
            return block
        columns = max(1, PANEL * block.shape[1] // self.functions)  # a copy as large as a panel
        for begin in range(0, block.shape[1], columns):
            piece = block[:, begin : begin + columns]
            piece[: self.rank] = self._factor @ piece
        return block[: self.rank]

    def coefficients(self, block: Matrix) -> Matrix:
        """B as rows of `block` [functions][any] becomes (P|Q)^-1 (Q|x), in place, and is returned. Any thread. Of a
        metric that was not diagonalised."""
        assert self.smallest is None
        # Rows depend on those below, so the first come first.
        for first in range(0, self.rank, PANEL):
            last = min(first + PANEL, self.rank)
            block[first:last] = self._factor[first:, first:last].T @ block[first:]
        return block


def _overlap(auxmol: Mole) -> Matrix:
    # The transpose of a symmetric matrix is itself, and one of both LAPACK works on in place.
    overlap = np.asarray(auxmol.intor("int2c2e", hermi=1))
    return overlap if overlap.flags.f_contiguous else overlap.T


def _inverse_factor(overlap: Matrix) -> Matrix | None:
    """L^-1, in place of the metric; None if it is singular within rounding: with eigenvalues of 1e-14 a factor may
    well be found, and B has their rounding divided by their roots."""
    norm = linalg.lapack.dlange("1", overlap)
    try:
        upper = linalg.cholesky(overlap, lower=False, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    reciprocal_condition, status = linalg.lapack.dpocon(upper, norm)
    assert status == 0
    if reciprocal_condition < _ROUNDINGS * len(overlap) * np.finfo(np.float64).eps:
        return None
    inverse, status = linalg.lapack.dtrtri(upper, lower=0, overwrite_c=1)
    assert status == 0
    return np.asarray(inverse).T
