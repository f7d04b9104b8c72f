"""How a vector of determinants is cut into tiles [alpha strings][beta strings], and where each lies in a list."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers, Masks, Space, StringList

_MIN_SIDE, _MAX_SIDE = 128, 352  # strings of a tile, at most
_TILES = 1_500  # about as many: more take longer to ask for than to move, fewer move more than is needed


def side_of(space: Space) -> int:
    """Strings of a tile. It depends on the space alone, so that vectors outlast a run with another budget."""
    side = isqrt(space.determinants // (2 * _TILES)) // 16 * 16
    return min(max(side, _MIN_SIDE), _MAX_SIDE)


def boundaries(strings: StringList, side: int) -> list[int]:
    """Where the list is cut into tiles of at most `side` strings: at the borders of sectors; then strings that
    share their highest orbitals share their tiles, as far as they can, as the groups of tasks do."""
    cuts = [0]
    for begin, end in zip(strings.offsets[:-1], strings.offsets[1:], strict=True):
        _cut(strings.strings, int(begin), int(end), side, cuts)
    return cuts


def _cut(values: Masks, begin: int, end: int, side: int, cuts: list[int]) -> None:
    """Of strings that share their highest orbitals: those with the same next one are a run. Runs stay together as
    long as a tile has room; what is longer than a tile is cut the same way."""
    if end - begin <= side:
        if end > begin:
            cuts.append(end)
        return
    changed = values[begin + 1 : end] ^ values[begin : end - 1]
    lowest = 1 << (int(changed.max()).bit_length() - 1)
    # The run with the highest orbital of all, and what comes before it.
    middle = begin + 1 + int(np.flatnonzero(changed >= np.uint64(lowest))[-1])
    before = len(cuts)
    _cut(values, begin, middle, side, cuts)
    _cut(values, middle, end, side, cuts)
    last = cuts[before - 1]
    merged: list[int] = []
    for cut in cuts[before:]:
        if merged and cut - (merged[-2] if len(merged) > 1 else last) <= side:
            merged[-1] = cut
        else:
            merged.append(cut)
    cuts[before:] = merged


@dataclass(frozen=True)
class VectorTile:
    """Of a vector: its number, its place in the grid, the indices of its first strings, and its shape."""

    number: int
    row: int
    column: int
    first: tuple[int, int]
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def on_diagonal(self) -> bool:
        """Of a folded vector: it holds both of its halves."""
        return self.first[0] == self.first[1] and self.row == self.column


class VectorTiling:
    """The tiles of vectors of a space. Folded: those on and below the diagonal, the former square.

    rows, columns: boundaries. number[row, column]: of a tile, -1 where there is none. offsets[number]: elements
    before it in a list of all tiles."""

    def __init__(self, space: Space, side: int | None = None) -> None:
        side = side_of(space) if side is None else side
        self.space, self.side, self.parity = space, side, space.parity
        self.rows = boundaries(space.alpha, side)
        self.columns = self.rows if space.folded else boundaries(space.beta, side)
        row_irreps = _irreps(self.rows, space.alpha)
        column_irreps = _irreps(self.columns, space.beta)
        there = (row_irreps[:, None] ^ column_irreps) == space.irrep
        if space.folded:
            there = np.tril(there)
        self.there: NDArray[np.bool_] = there
        self.index = np.argwhere(there)
        self.number = np.full(there.shape, -1, np.int64)
        self.number[there] = np.arange(len(self.index))
        heights, widths = np.diff(self.rows), np.diff(self.columns)
        self.sizes: Integers = heights[self.index[:, 0]] * widths[self.index[:, 1]]
        self.offsets: Integers = np.concatenate([[0], np.cumsum(self.sizes)])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, number: int) -> VectorTile:
        row, column = (int(each) for each in self.index[number])
        (r, r_end), (c, c_end) = self.rows[row : row + 2], self.columns[column : column + 2]
        return VectorTile(number, row, column, (r, c), (r_end - r, c_end - c))

    @cached_property
    def places(self) -> Integers:
        """[tile] = (elements before it, indices of its first strings, its shape), for kernels."""
        rows, columns = np.asarray(self.rows), np.asarray(self.columns)
        row, column = self.index.T
        found: Integers = np.stack(
            [
                self.offsets[:-1],
                rows[row],
                columns[column],
                rows[row + 1] - rows[row],
                columns[column + 1] - columns[column],
            ],
            axis=1,
        ).astype(np.int64)
        return found

    def numbers(self, rows: Integers, columns: Integers) -> Integers:
        """Of the tiles that hold elements with these indices; -1: in the other half of a folded vector."""
        places = (
            np.searchsorted(self.rows, rows, side="right") - 1,
            np.searchsorted(self.columns, columns, side="right") - 1,
        )
        return np.asarray(self.number[places])

    @property
    def elements(self) -> int:
        """Of a vector, as it is stored."""
        return int(self.offsets[-1])

    @cached_property
    def largest(self) -> int:
        """Elements of the largest tile."""
        return int(self.sizes.max())

    def weight(self, tile: VectorTile) -> float:
        """How often its elements count in a sum over all determinants."""
        return 2.0 if self.parity and not tile.on_diagonal else 1.0


def _irreps(cuts: list[int], strings: StringList) -> Integers:
    """Of each tile of an axis."""
    return np.searchsorted(strings.offsets, cuts[:-1], side="right") - 1
