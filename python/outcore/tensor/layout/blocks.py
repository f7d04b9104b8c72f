"""Blocks: panels of a result that are made at once, so that a panel of an operand in memory serves many of them.

A block is a rectangle: some columns of a band of rows. Bands may have different heights, and each is cut by itself.
Half of a symmetric result is made, in triangle blocks (Beaumont, Eyraud-Dubois, Verite, Langou, arXiv 2202.10217).
A triangle block has all pairs of a set of rows. If each two sets share one row at most, each pair is made once.
For few panels a search finds the sets one after another; for many the lines of a projective plane are such sets.
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
"""A line of each projective plane of q^2+q+1 points. The other lines are shifts of it. Each nonzero difference of
two of its points occurs once (Singer 1938)."""
_NEXT = 2  # panels that are fetched ahead
_SEARCHED = 12  # the most panels of rows for which sets are searched one after another


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


def _triangles(make_blocks: Callable[[], Iterable[Iterable[Pair]]]) -> Partition:
    blocks = (PanelBlock(tuple(pairs)) for pairs in make_blocks())
    sizes = [(len(block.pairs), len(block.rows | block.columns)) for block in blocks]
    panels, read = zip(*sizes, strict=True)
    return Partition(len(sizes), max(panels), (sum(read), 0), (max(read) + _NEXT, 0), make_blocks)


@lru_cache(maxsize=1024)
def triangles(count: int, most: int) -> Partition:
    """The partition of the pairs (row, column <= row) of `count` panels into blocks of at most `most` pairs that
    reads least."""
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
    """Partitions of `count` panels of rows, each with the most pairs that it was made for. They have ever more
    pairs at a time, and each reads less than those before it."""
    best: list[tuple[int, Partition]] = []
    for most in _limits(count * (count + 1) // 2, 5):
        found = triangles(count, most)
        if found.most > 1 and (not best or found.read < best[-1][1].read):
            best.append((most, found))
    return tuple(best)


def _limits(end: int, part: int) -> Iterator[int]:
    """Numbers of pairs of a block, from 2 on; each is larger by a `part`-th than the one before."""
    most = 2
    while most < end:
        yield most
        most += max(1, most // part)


def _points(line: tuple[int, ...]) -> int:
    return len(line) * (len(line) - 1) + 1


def _singles(count: int) -> Iterator[list[Pair]]:
    """Each pair as a block of its own."""
    return ([(row, column)] for row in range(count) for column in range(row + 1))


@lru_cache(maxsize=256)
def _of_plane(count: int, line: tuple[int, ...]) -> Partition:
    return _triangles(partial(_lines, count, line))


def _lines(count: int, line: tuple[int, ...]) -> Iterator[list[Pair]]:
    """The lines of a plane without some of its points. Points of the first line are left out before others, as the
    lines are equally long then. The diagonals of different points go to different lines."""
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
    """A set grows from a row: the next row is the one that has most unmade pairs with the set. Of the sets from all
    rows the one with most pairs per row is taken."""
    left = [set(range(count)) for _ in range(count)]  # rows with which a row has an unmade pair
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
    for most in _limits(rows * columns, 3):
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
