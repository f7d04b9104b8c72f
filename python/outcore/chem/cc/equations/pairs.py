"""Unordered pairs of orbitals as one axis, which is cut where blocks of orbitals are.

A tile of the axis is a pair of blocks P <= R: all p in P with all r in R, p slowest; of one block the pairs p <= r.
So a tile of a tensor over blocks p and r is one tile over their pairs, and the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from outcore.tensor.layout.tiling import Tiling

Values = np.ndarray[Any, np.dtype[Any]]


class PairAxis:
    """Pairs of orbitals 0 .. cuts[-1] - 1, in blocks that begin and end at `cuts`."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self.cuts = tuple(cuts)
        self.sizes = tuple(b - a for a, b in pairwise(self.cuts))
        count = len(self.sizes)
        self.blocks = [(p, r) for p in range(count) for r in range(p, count)]
        self.numbers = {blocks: number for number, blocks in enumerate(self.blocks)}

    @cached_property
    def tiling(self) -> Tiling:
        lengths = [self.length(tile) for tile in range(len(self.blocks))]
        return Tiling(sum(lengths), np.cumsum([0, *lengths]).tolist(), name="pairs")

    def length(self, tile: int) -> int:
        """Pairs in a tile."""
        p, r = self.blocks[tile]
        return self.sizes[p] * (self.sizes[p] + 1) // 2 if p == r else self.sizes[p] * self.sizes[r]

    def is_diagonal(self, tile: int) -> bool:
        p, r = self.blocks[tile]
        return p == r

    def rows(self, tile: int, values: Values) -> Values:
        """values [p][r]... of its blocks as [pairs]... ."""
        p, r = self.blocks[tile]
        if p == r:
            return values[_upper(self.sizes[p])]
        return values.reshape(-1, *values.shape[2:])

    def columns(self, tile: int, values: Values) -> Values:
        """values [any][p][r] of its blocks as [any][pairs]."""
        p, r = self.blocks[tile]
        if p == r:
            first, second = _upper(self.sizes[p])
            return values[:, first, second]
        return values.reshape(len(values), -1)

    def weighted(self, tile: int, rows: Values) -> Values:
        """Halves rows [pairs]... of p = r, in place: a sum over p, r and r, p then has each pair once."""
        p, r = self.blocks[tile]
        if p == r:
            first, second = _upper(self.sizes[p])
            rows[first == second] *= 0.5
        return rows

    def spread(self, tile: int, rows: Values, *, swap: tuple[int, ...] | None = None) -> Values:
        """The reverse of `rows`: [p][r]... . Of one block, elements r > p are those of p < r with the axes
        after the first permuted as `swap` says; None: as they are."""
        p, r = self.blocks[tile]
        rest = rows.shape[1:]
        if p != r:
            return rows.reshape(self.sizes[p], self.sizes[r], *rest)
        result = np.empty((self.sizes[p], self.sizes[p], *rest), rows.dtype)
        first, second = _upper(self.sizes[p])
        result[second, first] = rows if swap is None else rows.transpose(0, *(axis + 1 for axis in swap))
        result[first, second] = rows
        return result


@lru_cache(maxsize=8)  # of blocks of occupied and virtual orbitals; each tile asks
def _upper(size: int) -> tuple[Values, Values]:
    """Pairs p <= r of a block. Not to be written to."""
    first, second = np.triu_indices(size)
    return first, second
