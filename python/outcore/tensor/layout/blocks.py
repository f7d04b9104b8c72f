"""Blocks: panels of a result that are made at once, so that a panel of an operand in memory serves many of them.

A block is a rectangle: some columns of a band of rows. Bands may have different heights, and each is cut by itself.
Half of a symmetric result is made, in triangle blocks: see `triangles`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

Pair = tuple[int, int]  # numbers of the panels of rows and of columns

_NEXT = 2  # panels that are fetched ahead


@dataclass(frozen=True)
class PanelBlock:
    """Panels of the result that are made at once, in the order of their products."""

    pairs: tuple[Pair, ...]

    @cached_property
    def rows(self) -> frozenset[int]:
        return frozenset(row for row, _ in self.pairs)

    @cached_property
    def columns(self) -> frozenset[int]:
        return frozenset(column for _, column in self.pairs)


@dataclass(frozen=True)
class Partition:
    """All panels of a result, each in one block. Searches compare thousands of partitions and keep them. So a
    partition holds sizes alone, and makes its blocks when a caller asks for them.

    Attributes:
        count: number of blocks.
        most: the most panels of the result in a block.
        read: panels of the left and of the right operand that all blocks read for one range of inner indices. For a
            symmetric result all are panels of the left operand, and serve on both sides.
        held: panels of each operand that have to be in memory at a time, so that a block reads none twice while the
            next one is fetched.
    """

    count: int
    most: int
    read: tuple[int, int]
    held: tuple[int, int]
    make_blocks: Callable[[], Iterable[Iterable[Pair]]] = field(repr=False, compare=False)

    def blocks(self) -> Iterator[PanelBlock]:
        """All blocks, in the order in which they are made."""
        return (PanelBlock(tuple(pairs)) for pairs in self.make_blocks())


def limits(end: int, part: int) -> Iterator[int]:
    """Numbers of pairs of a block, from 2 on; each is larger by a `part`-th than the one before."""
    most = 2
    while most < end:
        yield most
        most += max(1, most // part)


@lru_cache(maxsize=4096)
def rectangles(rows: int, columns: int, most: int, shape: float) -> Partition:
    """The partition of the pairs of so many panels of rows and of columns into blocks of at most `most` pairs that
    reads least. It has bands of rows or of columns, each cut into nearly equal pieces. `shape`: elements of all
    rows over those of all columns."""
    found = [
        _of_bands(rows, columns, most, shape, turned=False),
        _of_bands(columns, rows, most, 1 / shape, turned=True),
    ]
    return min(found, key=lambda each: reads(each, rows, columns, shape))


@lru_cache(maxsize=1024)
def useful_rectangles(rows: int, columns: int, shape: float) -> tuple[tuple[int, Partition], ...]:
    """Partitions of so many panels, each with the most pairs that it was made for. They have ever more pairs, and
    each reads less than those before it."""
    best: list[tuple[int, Partition]] = []
    least = math.inf
    for most in limits(rows * columns, 3):
        found = rectangles(rows, columns, most, shape)
        if reads(found, rows, columns, shape) < 0.999 * least:
            best.append((most, found))
            least = reads(found, rows, columns, shape)
    return tuple(best)


def reads(partition: Partition, rows: int, columns: int, shape: float) -> float:
    """Elements of both operands that are read, over those of the whole right operand."""
    return shape * partition.read[0] / rows + partition.read[1] / columns


def _of_bands(count: int, other: int, most: int, shape: float, *, turned: bool) -> Partition:
    """Bands of `count` panels, cut along `other`: rows and columns, or columns and rows if turned."""
    least: list[tuple[float, tuple[tuple[int, int], ...]]] = [
        (0.0, ())
    ]  # least cost and bands of the first `end` panels
    for end in range(1, count + 1):
        ways = []
        for height in range(1, min(end, most) + 1):
            pieces = -(-other // (most // height))
            before, those = least[end - height]
            ways.append((before + shape * height * pieces / count + 1, (*those, (height, pieces))))
        least.append(min(ways))
    bands = least[-1][1]
    lengths = [-(-other // pieces) for _, pieces in bands]  # of the longest piece of each band
    longest = max(height for height, _ in bands), max(lengths)
    # A panel that passes by is used at once; a block's panels of the other side stay.
    thick = shape / count, 1 / other
    stays = int((longest[1] - 1) * thick[1] <= (longest[0] - 1) * thick[0])
    held = [_NEXT, _NEXT]
    held[stays] = longest[stays] + 1
    read = [sum(height * pieces for height, pieces in bands), len(bands) * other]
    order = slice(None, None, -1 if turned else 1)
    return Partition(
        count=sum(pieces for _, pieces in bands),
        most=max(height * length for (height, _), length in zip(bands, lengths, strict=True)),
        read=tuple(read[order]),  # type: ignore[arg-type]
        held=tuple(held[order]),  # type: ignore[arg-type]
        make_blocks=partial(_of_rectangles, bands, other, stays, turned),
    )


def _of_rectangles(
    bands: tuple[tuple[int, int], ...], other: int, stays: int, turned: bool
) -> Iterator[list[Pair]]:
    """The blocks of bands, each given by its number of panels and of pieces. Each panel of the side that passes by
    uses the panels of the side that `stays` in the reverse order of the panel before it."""
    first = 0
    for band, (height, pieces) in enumerate(bands):
        ends = [other * i // pieces for i in range(pieces + 1)]
        cut = [(range(first, first + height), range(*each)) for each in itertools.pairwise(ends)]
        for block in reversed(cut) if band % 2 else cut:
            pairs = []
            for turn, outer in enumerate(block[1 - stays]):
                for each in reversed(block[stays]) if turn % 2 else block[stays]:
                    pair = (outer, each) if stays else (each, outer)
                    pairs.append(pair[::-1] if turned else pair)
            yield pairs
        first += height
