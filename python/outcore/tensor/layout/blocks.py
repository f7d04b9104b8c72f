"""Which panels of a result are made at once, so that a panel of an operand that is in memory serves many of them.

A block is a rectangle: of a band of rows some columns. Bands may have different heights, and each is cut by itself.
Of a symmetric result half is made, in triangle blocks (Beaumont, Eyraud-Dubois, Verite, Langou, arXiv 2202.10217):
all pairs of a set of rows. Sets of which each two share one row at most give each pair once. Where there are few
panels, sets are found one after another; lines of a projective plane are such sets for many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

Pair = tuple[int, int]  # numbers of the panels of rows and of columns

_DIFFERENCES = (
    (0, 1, 3),
    (0, 1, 3, 9),
    (0, 1, 4, 14, 16),
    (0, 1, 3, 8, 12, 18),
    (0, 1, 3, 13, 32, 36, 43, 52),
    (0, 1, 3, 7, 15, 31, 36, 54, 63),
)
"""Of each projective plane of q^2+q+1 points a line; the others are this one moved round. Each difference but zero
comes once (Singer 1938)."""
_NEXT = 2  # panels on their way
_SEARCHED = 12  # panels of rows for which sets are looked for one after another


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
    """All panels of a result, each in one block. Searches compare thousands of partitions and keep them, so that
    these are sizes alone: blocks are made when they are asked for.

    Attributes:
        count: number of blocks.
        most: panels of the result that a block has at most.
        read: panels of the left and of the right operand that all blocks read of one range of inner indices. Of a
            symmetric result all are of the left one, and serve on both sides.
        held: panels of each that have to be in memory at a time, so that a block reads none twice, and the next one
            comes meanwhile.
    """

    count: int
    most: int
    read: tuple[int, int]
    held: tuple[int, int]
    make_blocks: Callable[[], Iterable[Iterable[Pair]]] = field(repr=False, compare=False)

    def blocks(self) -> Iterator[PanelBlock]:
        """Each block, in the order in which they are made."""
        return (PanelBlock(tuple(pairs)) for pairs in self.make_blocks())


def _triangles(make_blocks: Callable[[], Iterable[Iterable[Pair]]]) -> Partition:
    blocks = (PanelBlock(tuple(pairs)) for pairs in make_blocks())
    sizes = [(len(block.pairs), len(block.rows | block.columns)) for block in blocks]
    panels, read = zip(*sizes, strict=True)
    return Partition(len(sizes), max(panels), (sum(read), 0), (max(read) + _NEXT, 0), make_blocks)


@lru_cache(maxsize=1024)
def triangles(count: int, most: int) -> Partition:
    """Of the pairs (row, column <= row) of so many panels, in blocks of at most `most` pairs: that which reads
    least."""
    found = [_of_plane(count, line) for line in _DIFFERENCES if count <= _points(line)]
    if count <= _SEARCHED:
        found.append(_triangles(partial(_one_after_another, count, most)))
    fit = [each for each in found if each.most <= most]
    if not fit:
        pairs = count * (count + 1) // 2
        return Partition(pairs, 1, (count**2, 0), (min(count, 2) + _NEXT, 0), partial(_singles, count))
    return min(fit, key=lambda each: (each.read, each.most))


@lru_cache(maxsize=256)
def useful_triangles(count: int) -> tuple[tuple[int, Partition], ...]:
    """Partitions of so many panels of rows, and the most pairs they were made for: with more pairs at a time each
    reads less than those before it."""
    best: list[tuple[int, Partition]] = []
    for most in _limits(count * (count + 1) // 2, 5):
        found = triangles(count, most)
        if found.most > 1 and (not best or found.read < best[-1][1].read):
            best.append((most, found))
    return tuple(best)


def _limits(end: int, part: int) -> Iterator[int]:
    """Pairs of a block, from 2 on, each by a `part`-th more than the one before."""
    most = 2
    while most < end:
        yield most
        most += max(1, most // part)


def _points(line: tuple[int, ...]) -> int:
    return len(line) * (len(line) - 1) + 1


def _singles(count: int) -> Iterator[list[Pair]]:
    """Each pair by itself."""
    return ([(row, column)] for row in range(count) for column in range(row + 1))


@lru_cache(maxsize=256)
def _of_plane(count: int, line: tuple[int, ...]) -> Partition:
    return _triangles(partial(_lines, count, line))


def _lines(count: int, line: tuple[int, ...]) -> Iterator[list[Pair]]:
    """The lines of a plane, of which some points are left out: those of its first line before others, as the lines
    are equally long then. The diagonal of each point goes to another line."""
    points = _points(line)
    order = sorted(range(points), key=lambda point: (point in line, point))
    number = {point: place for place, point in enumerate(order) if place < count}
    for shift in range(points):
        rows = [number[point] for place in line if (point := (place + shift) % points) in number]
        pairs = {(row, column) for row in rows for column in rows if column < row}
        own = number.get((line[0] + shift) % points)
        if own is not None:
            pairs.add((own, own))
        if pairs:
            yield sorted(pairs)


def _one_after_another(count: int, most: int) -> Iterator[list[Pair]]:
    """Each set grows from a row by that row which has most pairs with it that are not made yet, and the set that
    makes most pairs for each of its rows is taken."""
    left = [set(range(count)) for _ in range(count)]  # rows with which a row has a pair that is not made
    while any(left):
        found = [_grown(start, left, most) for start in range(count) if left[start]]
        pairs = max(
            found, key=lambda each: (len(each) / len({row for pair in each for row in pair}), len(each))
        )
        for row, column in pairs:
            left[row].discard(column)
            left[column].discard(row)
        yield sorted(pairs)


def _grown(start: int, left: list[set[int]], most: int) -> set[Pair]:
    rows, others = [start], set(range(len(left))) - {start}
    pairs: set[Pair] = set()
    shared = {row: int(start in left[row]) for row in others}
    while others:
        row = max(others, key=lambda each: (shared[each], len(left[each]), -each))
        if not 0 < shared[row] <= most - len(pairs):
            break
        pairs |= {(max(row, other), min(row, other)) for other in rows if other in left[row]}
        rows.append(row)
        others.discard(row)
        for other in others:
            shared[other] += row in left[other]
    diagonals = [(row, row) for row in rows if row in left[row]]
    return pairs | set(diagonals[: most - len(pairs)])


# ---- rectangles ----


@lru_cache(maxsize=4096)
def rectangles(rows: int, columns: int, most: int, shape: float) -> Partition:
    """Of the pairs of so many panels of rows and of columns, in blocks of at most `most` pairs: bands of rows or
    columns, each cut into pieces that are nearly equal. `shape`: elements of all rows over those of all columns."""
    found = [
        _of_bands(rows, columns, most, shape, turned=False),
        _of_bands(columns, rows, most, 1 / shape, turned=True),
    ]
    return min(found, key=lambda each: reads(each, rows, columns, shape))


@lru_cache(maxsize=1024)
def useful_rectangles(rows: int, columns: int, shape: float) -> tuple[tuple[int, Partition], ...]:
    """Partitions of so many panels, and the most pairs they were made for. With more pairs each reads less than
    those before it."""
    best: list[tuple[int, Partition]] = []
    least = math.inf
    for most in _limits(rows * columns, 3):
        found = rectangles(rows, columns, most, shape)
        if reads(found, rows, columns, shape) < 0.999 * least:
            best.append((most, found))
            least = reads(found, rows, columns, shape)
    return tuple(best)


def reads(partition: Partition, rows: int, columns: int, shape: float) -> float:
    """Elements of both operands, over those of one column of panels of the right one."""
    return shape * partition.read[0] / rows + partition.read[1] / columns


def _of_bands(count: int, other: int, most: int, shape: float, *, turned: bool) -> Partition:
    """Bands of `count` panels, cut along `other`: rows and columns, or columns and rows if turned."""
    least: list[tuple[float, tuple[tuple[int, int], ...]]] = [
        (0.0, ())
    ]  # of the first panels, and their bands
    for end in range(1, count + 1):
        ways = []
        for height in range(1, min(end, most) + 1):
            pieces = -(-other // (most // height))
            before, those = least[end - height]
            ways.append((before + shape * height * pieces / count + 1, (*those, (height, pieces))))
        least.append(min(ways))
    bands = least[-1][1]
    lengths = [-(-other // pieces) for _, pieces in bands]  # of the longest piece
    longest = max(height for height, _ in bands), max(lengths)
    # What passes by is used at once; of the other side a block's panels stay.
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
    """Blocks of bands of so many panels, each cut into so many pieces. Each panel of the side that passes by uses
    those of the side that `stays` in the reverse order of the one before it."""
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
