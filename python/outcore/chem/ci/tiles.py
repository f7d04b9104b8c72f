"""The tiles [alpha strings][beta strings] of a vector of determinants, and their order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers, Masks, Space, StringList

_MIN_SIDE, _MAX_SIDE = 128, 352  # limits of the most strings of a tile
_TILES = 1_500  # wanted number of tiles: with more, requests take longer than moves; fewer move too much


def side_of(space: Space) -> int:
    """The most strings of a tile. It depends on the space alone, so that a run with another budget can use kept
    vectors."""
    side = isqrt(space.determinants // (2 * _TILES)) // 16 * 16
    return min(max(side, _MIN_SIDE), _MAX_SIDE)


def boundaries(strings: StringList, side: int) -> list[int]:
    """Boundaries that cut the list into tiles of at most `side` strings. They include the borders of sectors. As
    far as possible, strings that share their highest orbitals lie in one tile, as in the groups of tasks."""
    cuts = [0]
    for begin, end in zip(strings.offsets[:-1], strings.offsets[1:], strict=True):
        _cut(strings.strings, int(begin), int(end), side, cuts)
    return cuts


def _cut(values: Masks, begin: int, end: int, side: int, cuts: list[int]) -> None:
    """Cuts strings that share their highest orbitals. Strings with the same next orbital form a run. Runs stay
    together as long as a tile has room; a run that is longer than a tile is cut in the same way."""
    if end - begin <= side:
        if end > begin:
            cuts.append(end)
        return
    changed = values[begin + 1 : end] ^ values[begin : end - 1]
    lowest = 1 << (int(changed.max()).bit_length() - 1)
    # The run with the highest orbital of all, and the strings before it.
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
    """A tile of a vector: its number, its place in the grid, the indices of its first strings, and its shape."""

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
        """Whether the tile lies on the diagonal. In a folded vector it holds both of its halves."""
        return self.first[0] == self.first[1] and self.row == self.column


class VectorTiling:
    """The tiles of vectors of a space. Of folded vectors there are the tiles on and below the diagonal; those on
    the diagonal are square.

    rows, columns: boundaries. number[row, column]: of a tile, -1 where there is none. offsets[number]: elements
    before the tile in a list of all tiles."""

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
        """For kernels: for each tile the elements before it, the indices of its first strings, its shape."""
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
        """Numbers of the tiles that hold the elements with these indices; -1: in the other half of a folded
        vector."""
        places = (
            np.searchsorted(self.rows, rows, side="right") - 1,
            np.searchsorted(self.columns, columns, side="right") - 1,
        )
        return np.asarray(self.number[places])

    @property
    def elements(self) -> int:
        """Number of stored elements of a vector."""
        return int(self.offsets[-1])

    @cached_property
    def largest(self) -> int:
        """Elements of the largest tile."""
        return int(self.sizes.max())

    def weight(self, tile: VectorTile) -> float:
        """How often the elements of a tile count in a sum over all determinants."""
        return 2.0 if self.parity and not tile.on_diagonal else 1.0


def _irreps(cuts: list[int], strings: StringList) -> Integers:
    """The irrep of each tile of an axis."""
    return np.searchsorted(strings.offsets, cuts[:-1], side="right") - 1
