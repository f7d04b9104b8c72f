"""The Coulomb metric (P|Q) of an auxiliary basis, which turns three-centre integrals into fitted ones."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outcore.chem.ri.plan import PANEL

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.chem.operations import FewInRows
    from outcore.job.world import World

Matrix = NDArray[np.float64]

LINEAR_DEPENDENCE = 1e-7  # eigenvalues up to it are left out; PySCF's bound
_ROUNDINGS = 10  # times the rounding of a sum over all functions: a metric with a worse condition is singular
_PIECE_BYTES = 8 << 20  # bytes of one broadcast


class Metric:
    """Makes B with sum_P B_Pmn B_Pls = sum_PQ (mn|P) (P|Q)^-1 (Q|ls).

    B = L^-1 (P|mn) with the Cholesky factor L of the metric. A metric that is singular within rounding is
    diagonalised instead, even if a factor can be computed: eigenvalues up to LINEAR_DEPENDENCE are left out, and B
    has `rank` rows, fewer than `functions`. The metrics of range-separated operators usually are singular. The
    constructor is collective; rank 0 decides, and all processes have the same factor, bit by bit. The constructor
    needs twice the memory of the metric, as eigenvectors need their own place; afterwards the object needs it once.

    Args:
        adapted, irreps: orthonormal combinations of functions in rows, one irrep after the other, and their number
            in each irrep. Between different irreps the metric is 0, so it is factorised block by block. Rows of B
            have one irrep each, too, `ranks` of each. None: there is one irrep.
    """

    def __init__(
        self, world: World, auxmol: Mole, adapted: FewInRows | None = None, irreps: tuple[int, ...] = ()
    ) -> None:
        self.functions = int(auxmol.nao)
        self.smallest: float | None = None  # smallest eigenvalue, if the metric was diagonalised
        factors = list[Matrix]()
        with world.together("Coulomb metric"):
            if world.rank == 0:
                factors = self._factorize(auxmol, adapted, irreps)
        shapes, self.smallest = world.broadcast(([each.shape for each in factors], self.smallest))
        if not factors:
            factors = [np.empty(shape) for shape in shapes]
        if world.size > 1:
            rows = max(1, _PIECE_BYTES // (8 * self.functions))
            for factor in factors:
                for first in range(0, len(factor), rows):
                    factor[first : first + rows] = world.broadcast(factor[first : first + rows])
        self._factors = factors
        self._adapted = adapted

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of rows of B of each irrep."""
        return tuple(map(len, self._factors))

    @property
    def rank(self) -> int:
        return sum(self.ranks)

    @property
    def dropped(self) -> int:
        """Number of linearly dependent combinations of functions that were left out."""
        return self.functions - self.rank

    def _factorize(self, auxmol: Mole, adapted: FewInRows | None, irreps: tuple[int, ...]) -> list[Matrix]:
        """L^-1, or the scaled eigenvectors, of each block."""
        inverses = _inverse_factors(_overlaps(auxmol, adapted, irreps))
        if inverses is not None:
            return inverses
        overlaps, found = _overlaps(auxmol, adapted, irreps), list[Matrix]()
        while overlaps:
            if not len(overlaps[0]):
                found.append(overlaps.pop(0))
                continue
            values, vectors = linalg.eigh(overlaps.pop(0), overwrite_a=True, check_finite=False)
            self.smallest = min(float(values[0]), np.inf if self.smallest is None else self.smallest)
            first = int(np.searchsorted(values, LINEAR_DEPENDENCE, side="right"))
            kept = vectors[:, first:]
            kept /= np.sqrt(values[first:])
            found.append(np.asarray(kept.T))
        return found

    def fit(self, block: Matrix) -> Matrix:
        """Turns (P|x), the rows of `block` [functions][any], into B in place. Returns the first `rank` rows, which
        have B. Any thread may call it."""
        if self._adapted is not None:
            return self._fit_by_irreps(self._adapted, block)
        (factor,) = self._factors
        if self.smallest is None:
            # Rows depend on those above, so the last rows are computed first.
            for first in range((self.rank - 1) // PANEL * PANEL, -1, -PANEL):
                last = min(first + PANEL, self.rank)
                block[first:last] = factor[first:last, :last] @ block[:last]
            return block
        columns = max(1, PANEL * block.shape[1] // self.functions)  # a copy as large as a panel
        for begin in range(0, block.shape[1], columns):
            piece = block[:, begin : begin + columns]
            piece[: self.rank] = factor @ piece
        return block[: self.rank]

    def _fit_by_irreps(self, combinations: FewInRows, block: Matrix) -> Matrix:
        columns = max(
            1, PANEL * block.shape[1] // (2 * self.functions)
        )  # two copies, together as large as a panel
        for begin in range(0, block.shape[1], columns):
            piece = block[:, begin : begin + columns]
            adapted, at, row = combinations @ piece, 0, 0
            for factor in self._factors:
                rank, functions = factor.shape
                for first in range(0, rank, PANEL):
                    last = min(first + PANEL, rank)
                    above = last if self.smallest is None else functions
                    piece[row + first : row + last] = factor[first:last, :above] @ adapted[at : at + above]
                at, row = at + functions, row + rank
        return block[: self.rank]

    def coefficients(self, block: Matrix) -> Matrix:
        """Turns B, the rows of `block` [functions][any], into (P|Q)^-1 (Q|x) in place, and returns it. Any thread
        may call it. Only for a metric without irreps that was not diagonalised."""
        assert self.smallest is None and self._adapted is None
        (factor,) = self._factors
        # Rows depend on those below, so the first rows are computed first.
        for first in range(0, self.rank, PANEL):
            last = min(first + PANEL, self.rank)
            block[first:last] = factor[first:, first:last].T @ block[first:]
        return block


def _overlaps(auxmol: Mole, adapted: FewInRows | None, irreps: tuple[int, ...]) -> list[Matrix]:
    """The blocks of the metric."""
    # A symmetric matrix equals its transpose, and LAPACK can work on one of the two in place.
    overlap = np.asarray(auxmol.intor("int2c2e", hermi=1))
    if adapted is None:
        return [overlap if overlap.flags.f_contiguous else overlap.T]
    overlap = overlap if overlap.flags.c_contiguous else overlap.T  # rows are read
    blocks = list[Matrix]()
    for begin, end in pairwise(accumulate(irreps, initial=0)):
        combinations = adapted.rows(slice(begin, end))
        block = np.empty((end - begin, end - begin), order="F")
        for first in range(0, len(block), PANEL):
            some = combinations.rows(slice(first, first + PANEL))
            block[:, first : first + PANEL] = combinations @ np.ascontiguousarray((some @ overlap).T)
        blocks.append(block)
    return blocks


def _inverse_factors(overlaps: list[Matrix]) -> list[Matrix] | None:
    """L^-1 of the blocks of a metric, in place; None if it is singular within rounding. With eigenvalues of 1e-14 a
    factor may exist, but B then has their rounding errors divided by their roots."""
    norms = [linalg.lapack.dlange("1", each) if len(each) else 0.0 for each in overlaps]
    functions, uppers, inverse_norm = sum(map(len, overlaps)), list[Matrix](), 0.0
    for norm, overlap in zip(norms, overlaps, strict=True):
        if not len(overlap):  # no function has this irrep
            uppers.append(overlap)
            continue
        try:
            upper = linalg.cholesky(overlap, lower=False, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        reciprocal_condition, status = linalg.lapack.dpocon(upper, norm)
        assert status == 0
        if reciprocal_condition * norm == 0.0:
            return None
        inverse_norm = max(inverse_norm, 1.0 / (reciprocal_condition * norm))
        uppers.append(upper)
    if max(norms) * inverse_norm * _ROUNDINGS * functions * np.finfo(np.float64).eps > 1.0:
        return None
    inverses = list[Matrix]()
    for upper in uppers:
        inverse, status = linalg.lapack.dtrtri(upper, lower=0, overwrite_c=1) if len(upper) else (upper, 0)
        assert status == 0
        inverses.append(np.asarray(inverse).T)
    return inverses
