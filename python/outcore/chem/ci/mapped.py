"""Vectors of one space, made of vectors of another whose strings are the same or related.

A map gives for each target string the source string that it is made of, and the sign. A vector is a sum of
products of an alpha map and a beta map. Such sums are operators E_pq, the same state in another order of strings,
or a state with a further orbital that is empty or doubly occupied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outcore.chem.ci.passes import Place
    from outcore.chem.ci.space import Integers, Masks, StringList
    from outcore.chem.ci.tiles import VectorTile
    from outcore.chem.ci.vector import Vectors

Matrix = NDArray[np.float64]

_ONE = np.uint64(1)


@dataclass(frozen=True, eq=False)
class StringMap:
    """rank[k]: index of the source string of target string k, -1 if it has none. sign[k]: 1 or -1."""

    rank: Integers
    sign: Matrix

    @classmethod
    def _of(cls, source: StringList, masks: Masks, there: NDArray[np.bool_], sign: Matrix) -> StringMap:
        """A map for target strings that are made of the source strings `masks`. there: which of them have one."""
        rank = np.full(len(masks), -1, np.int64)
        rank[there] = source.rank(masks[there])
        return cls(rank, sign)

    @classmethod
    def same(cls, source: StringList, target: StringList) -> StringMap:
        """The map between the same strings, which may be in another order."""
        masks = target.strings
        return cls._of(source, masks, np.ones(len(masks), bool), np.ones(len(masks)))

    @classmethod
    def replaced(cls, source: StringList, target: StringList, p: int, q: int) -> StringMap:
        """The map of p+ q, of one spin."""
        masks, (made, gone) = target.strings, (_ONE << np.uint64(p), _ONE << np.uint64(q))
        if p == q:
            return cls._of(source, masks, (masks & made) != 0, np.ones(len(masks)))
        low, high = sorted((p, q))
        between = np.uint64(((1 << high) - 1) & ~((1 << (low + 1)) - 1))
        there = ((masks & made) != 0) & ((masks & gone) == 0)
        sign = 1.0 - 2.0 * (np.bitwise_count(masks & between) & 1)
        return cls._of(source, masks ^ made ^ gone, there, sign)

    @classmethod
    def enlarged(cls, source: StringList, target: StringList, orbital: int, *, occupied: bool) -> StringMap:
        """The map to strings with one more orbital, which is occupied or empty."""
        masks, bit = target.strings, _ONE << np.uint64(orbital)
        low = np.uint64((1 << orbital) - 1)
        high = ~(low | bit)
        there = ((masks & bit) != 0) == occupied
        sign = 1.0 - 2.0 * (np.bitwise_count(masks & high) & 1) if occupied else np.ones(len(masks))
        return cls._of(source, (masks & low) | ((masks & high) >> _ONE), there, sign)

    def reversed(self, count: int) -> StringMap:
        """The inverse map, from target strings to the `count` source strings. Each source string must belong to one
        target string at most."""
        rank, sign = np.full(count, -1, np.int64), np.ones(count)
        there = np.flatnonzero(self.rank >= 0)
        rank[self.rank[there]], sign[self.rank[there]] = there, self.sign[there]
        return StringMap(rank, sign)


Product = tuple[StringMap, StringMap]
"""A map of alpha strings and one of beta strings."""


def write(source: Place, target: Place, products: Sequence[Product]) -> None:
    """Writes the sum of `products`, applied to `source`, to `target`. Collective."""
    vectors = target.vectors
    with vectors.world.together("map a CI vector"):
        for tile in vectors.tiles():
            vectors.put(target.index, tile, _tile(source, tile, products))
    vectors.sync()


def dots(source: Place, products: Sequence[Product], others: Sequence[Place]) -> Matrix:
    """Scalar products of `others`, all of one tiling, with the sum of `products` applied to `source`. That sum is
    made tile by tile, never as a whole. Collective; all processes get them."""
    vectors = others[0].vectors
    sums = np.zeros(len(others))
    with vectors.world.together("map a CI vector"):
        for tile in vectors.tiles():
            found, weight = _tile(source, tile, products), vectors.tiling.weight(tile)
            for k, other in enumerate(others):
                sums[k] += weight * float(np.vdot(other.vectors.get(other.index, tile), found))
    return np.asarray(vectors.world.all_reduce(sums))


def _tile(source: Place, tile: VectorTile, products: Sequence[Product]) -> Matrix:
    found = np.zeros(tile.shape)
    tiling = source.vectors.tiling
    for alpha, beta in products:
        rows = _parts(alpha, tile.first[0], tile.shape[0], tiling.rows)
        columns = _parts(beta, tile.first[1], tile.shape[1], tiling.columns)
        for row, here, from_rows, row_signs in rows:
            for column, there, from_columns, column_signs in columns:
                values = _stored(source.vectors, source.index, row, column)
                if values is not None:
                    signs = row_signs[:, None] * column_signs
                    found[np.ix_(here, there)] += signs * values[np.ix_(from_rows, from_columns)]
    return found


_Part = tuple[int, "Integers", "Integers", Matrix]


def _parts(strings: StringMap, first: int, count: int, cuts: list[int]) -> list[_Part]:
    """For `count` target strings from `first` on: for each source tile along this axis its number, places in the
    target tile, places in the source tile, signs."""
    rank, sign = strings.rank[first : first + count], strings.sign[first : first + count]
    here = np.flatnonzero(rank >= 0)
    tiles = np.searchsorted(cuts, rank[here], side="right") - 1
    found = []
    for tile in np.unique(tiles):
        some = here[tiles == tile]
        found.append((int(tile), some, rank[some] - cuts[tile], sign[some]))
    return found


def _stored(vectors: Vectors, index: int, row: int, column: int) -> Matrix | None:
    """A tile, also of the half that is not stored; None if there is none."""
    tiling = vectors.tiling
    number = int(tiling.number[row, column])
    if number >= 0:
        return np.asarray(vectors.get(index, tiling[number]))
    if tiling.parity and int(tiling.number[column, row]) >= 0:
        return np.asarray(tiling.parity * vectors.get(index, tiling[int(tiling.number[column, row])]).T)
    return None
