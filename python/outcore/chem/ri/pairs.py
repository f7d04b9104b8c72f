"""Pairs of orbital shells that are kept, and the order of their products in a row of three-index integrals."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core

if TYPE_CHECKING:
    from pyscf.gto import Mole

Table = NDArray[np.int32]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Slab:
    """Neighbouring columns that are computed together. table: pairs of shells, with columns counted from `begin`.
    used: number of columns that are in use."""

    begin: int
    used: int
    table: Table


class Pairs:
    """Products mn of orbital functions, by pairs of shells i >= j, in columns. Columns are divided into slabs of
    `width`; the last columns of a slab may be empty. Pairs whose Schwarz bound sqrt((mn|mn)), times the largest
    bound of all pairs, is below `screening` are left out: that product bounds their contribution to any fitted
    integral. Of pairs that operations exchange only one is kept; `images` [operations][shells] has the images of
    shells.

    table: rows (i, j, column), for the native code. row, column: m and n of each column. weight: how often a sum
    over all m and n has the product of a column, divided by the number of operations that leave its pair in place;
    0 for empty columns.
    """

    def __init__(
        self,
        bounds: Matrix,
        sizes: NDArray[np.int64],
        screening: float,
        width: int,
        images: Table | None = None,
    ) -> None:
        self._sizes = sizes
        self._first = np.concatenate([[0], np.cumsum(sizes)])
        self.functions = int(self._first[-1])
        shells = len(sizes)
        i, j = np.tril_indices(shells)
        kept = bounds * bounds.max() >= screening
        if images is not None:
            kept &= _stand_for_others(i, j, images)
        i, j = i[kept], j[kept]
        fixed = np.ones(len(i), np.int64) if images is None else _leaving(i, j, images)
        lengths = sizes[i] * sizes[j]
        self.width = max(min(width, int(lengths.sum())), int(lengths.max()))
        self.slabs: list[Slab] = []
        columns = np.empty(len(i), np.int64)
        at, first = 0, 0
        ends = np.cumsum(lengths)
        while first < len(i):
            last = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + self.width, side="right"))
            columns[first:last] = at + ends[first:last] - ends[first] + lengths[first] - lengths[first:last]
            local = np.stack([i[first:last], j[first:last], columns[first:last] - at], axis=1)
            used = int(lengths[first:last].sum())
            self.slabs.append(Slab(at, used, np.ascontiguousarray(local, np.int32)))
            at, first = at + self.width, last
        self.columns = at
        self.kept = int(np.where(i == j, sizes[i] * (sizes[i] + 1) // 2, lengths).sum())  # products m >= n
        self.kept_columns = int(lengths.sum())
        self.table = np.ascontiguousarray(np.stack([i, j, columns], axis=1), np.int32)
        self._index(fixed)

    def sample(self, count: int) -> tuple[Table, int]:
        """About `count` pairs from all parts of the table, in consecutive columns; and the number of these
        columns."""
        some = self.table[:: max(1, len(self.table) // count)].copy()
        lengths = self._sizes[some[:, 0]] * self._sizes[some[:, 1]]
        some[:, 2] = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return some, int(lengths.sum())

    def _index(self, fixed: NDArray[np.int64]) -> None:
        self.row = np.zeros(self.columns, np.int32)
        self.column = np.zeros(self.columns, np.int32)
        self.weight = np.zeros(self.columns)
        for (i, j, begin), operations in zip(self.table, fixed, strict=True):
            size_i, size_j = self._sizes[i], self._sizes[j]
            box = slice(begin, begin + size_i * size_j)
            self.row[box] = np.tile(np.arange(size_i) + self._first[i], size_j)
            self.column[box] = np.repeat(np.arange(size_j) + self._first[j], size_i)
            self.weight[box] = (1.0 if i == j else 2.0) / operations

    def images(self, shells: Table) -> Table:
        """Rows (i, j, column, operation) for the native code: all pairs for which those of the table stand, in
        either order of their shells, each once. shells: [operations][shells], images without the identity, whose
        number is 0."""
        i, j, columns = self.table.T
        seen, found = list[NDArray[np.int64]](), list[Table]()
        for number, image in enumerate((np.arange(shells.shape[1]), *shells)):
            to_i, to_j = image[i], image[j]
            numbers = _numbers(to_i, to_j)
            fresh = np.all([numbers != each for each in seen], axis=0) if seen else np.ones(len(i), np.bool_)
            operation = np.full(len(i), number)
            found.append(np.stack([to_i, to_j, columns, operation], axis=1)[fresh].astype(np.int32))
            seen.append(numbers)
        return np.ascontiguousarray(np.concatenate(found))

    def gather(self, matrices: Matrix) -> Matrix:
        """Packs matrices [...][n][n] into rows [...][columns], so that the product with a row of integrals is a
        sum over all m and n. Only the symmetric part counts."""
        symmetric = matrices[..., self.row, self.column]
        symmetric += matrices[..., self.column, self.row]
        symmetric *= self.weight / 2
        return np.ascontiguousarray(symmetric)

    def elements(self, matrices: Matrix) -> Matrix:
        """Packs the symmetric parts of matrices [...][n][n] into rows [...][columns], without weights."""
        symmetric = matrices[..., self.row, self.column]
        symmetric += matrices[..., self.column, self.row]
        symmetric *= 0.5
        return np.ascontiguousarray(symmetric)


def kept_columns(
    bounds: Matrix, sizes: NDArray[np.int64], screening: float, images: Table | None = None
) -> int:
    """Number of columns of the pairs that `Pairs` keeps, without the empty columns of slabs."""
    i, j = np.tril_indices(len(sizes))
    kept = bounds * bounds.max() >= screening
    if images is not None:
        kept &= _stand_for_others(i, j, images)
    return int((sizes[i] * sizes[j])[kept].sum())


def _numbers(i: Any, j: Any) -> NDArray[np.int64]:
    """Numbers of pairs of shells, in either order."""
    high, low = np.maximum(i, j).astype(np.int64), np.minimum(i, j)
    return np.asarray(high * (high + 1) // 2 + low)


def _stand_for_others(i: Any, j: Any, images: Table) -> NDArray[np.bool_]:
    """For each pair whether its number is the lowest among those of its images under the operations."""
    own = _numbers(i, j)
    stand = np.ones(len(own), np.bool_)
    for image in images:
        stand &= own <= _numbers(image[i], image[j])
    return stand


def _leaving(i: Any, j: Any, images: Table) -> NDArray[np.int64]:
    """For each pair the number of operations, with the identity, that leave it in place."""
    own = _numbers(i, j)
    found = np.ones(len(own), np.int64)
    for image in images:
        found += own == _numbers(image[i], image[j])
    return found


def columns_of(mol: Mole, auxmol: Mole, screening: float, threads: int) -> int:
    """Number of products of functions in a row of three-index integrals."""
    bounds = np.array(native(mol, auxmol).bounds(threads))
    return kept_columns(bounds, shell_sizes(mol), screening)


def native(mol: Mole, auxmol: Mole) -> Any:
    """The integrals (mn|P) of both bases for the native code, with the libcint that PySCF has loaded."""
    from pyscf import gto
    from pyscf.gto.moleintor import libcgto

    def address(name: str) -> int:
        return int(ctypes.cast(getattr(libcgto, name), ctypes.c_void_p).value or 0)

    atm, bas, env = gto.conc_env(mol._atm, mol._bas, mol._env, auxmol._atm, auxmol._bas, auxmol._env)
    kind = "cart" if mol.cart else "sph"
    return _core.ThreeCenter(
        np.ascontiguousarray(atm, np.int32).ravel(),
        np.ascontiguousarray(bas, np.int32).ravel(),
        np.ascontiguousarray(env, np.float64),
        mol.nbas,
        bool(mol.cart),
        address(f"int3c2e_{kind}"),
        address(f"int2e_{kind}"),
        address("int3c2e_optimizer"),
        address("CINTdel_optimizer"),
    )


def shell_sizes(mol: Mole) -> NDArray[np.int64]:
    """Number of functions of each shell."""
    sizes: NDArray[np.int64] = np.diff(mol.ao_loc_nr()).astype(np.int64)
    return sizes
