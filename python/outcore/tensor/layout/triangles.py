"""Blocks of a symmetric result. Half of it is made, in triangle blocks (Beaumont, Eyraud-Dubois, Verite, Langou,
arXiv 2202.10217). A triangle block has all pairs of a set of panels of rows.

If each two sets share one row at most, each pair is made once. The lines of a projective plane are such sets. A
point of the plane is one panel of rows, or several: with more panels the diagonal wastes less, where panels of
the result are whole. If memory is a bit too small for the pairs of a line, each line gives some of its pairs to
further sets. For few panels a search finds the sets one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial

from outcore.tensor.layout.blocks import Pair, PanelBlock, Partition, limits

_DIFFERENCES = (
    (0, 1),
    (0, 1, 3),
    (0, 1, 3, 9),
    (0, 1, 4, 14, 16),
    (0, 1, 3, 8, 12, 18),
    (0, 1, 3, 13, 32, 36, 43, 52),
    (0, 1, 3, 7, 15, 31, 36, 54, 63),
    (0, 1, 3, 9, 27, 49, 56, 61, 77, 81),
    (0, 1, 3, 12, 20, 34, 38, 81, 88, 94, 104, 109),
    (0, 1, 3, 16, 23, 28, 42, 76, 82, 86, 119, 137, 154, 175),
)
"""A line of each projective plane of q^2+q+1 points. The other lines are shifts of it. Each nonzero difference of
two of its points occurs once (Singer 1938). The lines of the first, q = 1, are the sides of a triangle."""
MOST_ROWS = 183  # the most panels of rows for triangle blocks
_SPLIT_ROWS = 64  # the most panels of rows if a point has several: with more the diagonal wastes little
_RELIEVED = {
    28: 2,
    39: 3,
    42: 4,
    31: 5,
    62: 5,
    57: 7,
}  # panels of rows, and q: planes whose lines give pairs away
_RELIEF, _RELIEFS = 24, 7  # a line gives a 24th of its pairs, or up to seven times that
_STARTS = 4  # rows from which further sets grow
_SEARCHED = 12  # the most panels of rows for which sets are searched one after another
_AHEAD = 2  # the least number of steps whose panels are held: one is multiplied, the next one fetches


@lru_cache(maxsize=1024)
def triangles(count: int, most: int) -> Partition:
    """The partition of the pairs (row, column <= row) of `count` panels into blocks of at most `most` pairs that
    reads least."""
    found = [_of_plane(count, line) for line in _planes(count)]
    if most in _reliefs(count):
        found.append(_of_blocks(partial(_relieved, count, _line(_RELIEVED[count]), most)))
    if count <= _SEARCHED:
        found.append(_of_blocks(partial(_one_after_another, count, most)))
    fit = [each for each in found if each.most <= most]
    if not fit:
        pairs = count * (count + 1) // 2
        return Partition(pairs, 1, (count**2, 0), (2 * _AHEAD, 0), partial(_singles, count))
    return min(fit, key=lambda each: (each.read, each.most))


@lru_cache(maxsize=256)
def useful_triangles(count: int) -> tuple[tuple[int, Partition], ...]:
    """Partitions of `count` panels of rows, each with the most pairs that it was made for. They have ever more
    pairs at a time, and each reads less than those before it."""
    best: list[tuple[int, Partition]] = []
    for most in sorted({*limits(count * (count + 1) // 2, 5), *_reliefs(count)}):
        found = triangles(count, most)
        if found.most > 1 and (not best or found.read < best[-1][1].read):
            best.append((most, found))
    return tuple(best)


@cache
def counts_of_planes() -> tuple[int, ...]:
    """Panels of rows of which each point of a plane has equally many."""
    several = {x for x in range(1, _SPLIT_ROWS + 1) if any(x % _points(line) == 0 for line in _DIFFERENCES)}
    return tuple(sorted(several.union(map(_points, _DIFFERENCES))))


def _of_blocks(make_blocks: Callable[[], Iterable[Iterable[Pair]]]) -> Partition:
    blocks = (PanelBlock(tuple(pairs)) for pairs in make_blocks())
    return _of_sizes([(len(block.pairs), len(block.rows | block.columns)) for block in blocks], make_blocks)


def _of_sizes(
    sizes: Sequence[tuple[int, int]], make_blocks: Callable[[], Iterable[Iterable[Pair]]]
) -> Partition:
    """Of blocks of so many panels of the result and of rows. The first panels of a range of inner indices come in
    place of those that the last steps of the range before need no more: no others have to be there."""
    panels, read = zip(*sizes, strict=True)
    return Partition(len(sizes), max(panels), (sum(read), 0), (max(*read, 2 * _AHEAD), 0), make_blocks)


def _singles(count: int) -> Iterator[list[Pair]]:
    """Each pair as a block of its own."""
    return ([(row, column)] for row in range(count) for column in range(row + 1))


# ---- lines of planes ----


def _points(line: tuple[int, ...]) -> int:
    return len(line) * (len(line) - 1) + 1


def _line(order: int) -> tuple[int, ...]:
    return next(line for line in _DIFFERENCES if len(line) == order + 1)


def _planes(count: int) -> Iterator[tuple[int, ...]]:
    """A line of each that has no more points than there are panels, and of the next one."""
    for line in _DIFFERENCES if 1 < count <= MOST_ROWS else ():
        yield line
        if _points(line) >= count:
            return


@lru_cache(maxsize=1024)
def _of_plane(count: int, line: tuple[int, ...]) -> Partition:
    lines = _lines(count, line)
    are_alike = count % _points(line) == 0
    sizes = [_size(next(lines))] * _points(line) if are_alike else [*map(_size, lines)]
    return _of_sizes(sizes, partial(_pairs_on_lines, count, line))


def _size(points: Sequence[range]) -> tuple[int, int]:
    """Of a line: panels of the result and of rows."""
    each = [len(panels) for panels in points]
    return (sum(each) ** 2 - sum(x * x for x in each)) // 2 + each[0] * (each[0] + 1) // 2, sum(each)


def _lines(count: int, line: tuple[int, ...]) -> Iterator[list[range]]:
    """The panels of each point of the lines on which there are pairs. Pairs within a point go to that one of its
    lines of which it is the first."""
    panels = _of_points(count, line)
    for shift in range(len(panels)):
        points = [panels[(place + shift) % len(panels)] for place in line]
        if points[0] or sum(map(bool, points)) > 1:
            yield points


def _of_points(count: int, line: tuple[int, ...]) -> list[range]:
    """The panels of each point, nearly equally many. Where there are fewer panels than points, those of the first
    line have none before others do, as the lines are equally long then."""
    points = _points(line)
    found = [range(0)] * points
    first = 0
    for place, point in enumerate(sorted(range(points), key=lambda point: (point in line, point))):
        last = first + count // points + (place < count % points)
        found[point], first = range(first, last), last
    return found


def _pairs_on_lines(count: int, line: tuple[int, ...]) -> Iterator[list[Pair]]:
    for points in _lines(count, line):
        point_of = {panel: number for number, panels in enumerate(points) for panel in panels}
        rows = sorted(point_of)
        yield [
            (row, column)
            for row in rows
            for column in rows
            if column <= row and (point_of[row] == 0 or point_of[row] != point_of[column])
        ]


# ---- lines that give pairs to further sets ----


def _reliefs(count: int) -> list[int]:
    """Pairs that lines have then at most, from the most on."""
    if count not in _RELIEVED:
        return []
    most = _of_plane(count, _line(_RELIEVED[count])).most
    return [most - max(times, most * times // _RELIEF) for times in range(1, _RELIEFS + 1)]


def _relieved(count: int, line: tuple[int, ...], most: int) -> Iterator[list[Pair]]:
    """Lines with at most so many pairs, and the sets that take the others, no larger than a line."""
    relief = _Relief(count, line, most)
    further = []
    while any(relief.over):
        found = relief.best_set()
        relief.take(found)
        further.append(sorted(pair for pair, _ in found))
    yield from (sorted(pairs) for pairs in relief.lines)
    yield from further


_Taken = list[tuple[Pair, int]]  # pairs, and the line that gives each
_Members = list[
    tuple[int, int]
]  # lines of a row that have too many pairs, and rows with which it has pairs there


class _Relief:
    """Pairs that are on lines still. Sets of rows are bits of a number.

    Attributes:
        over: pairs that each line has to give.
    """

    def __init__(self, count: int, line: tuple[int, ...], most: int) -> None:
        self._most, self._most_rows = most, _of_plane(count, line).held[0]
        self.lines = [*map(set, _pairs_on_lines(count, line))]
        self.over = [max(0, len(pairs) - most) for pairs in self.lines]
        self._others = [(1 << count) - 1] * count  # rows with which a row has a pair on a line
        self._on: list[_Members] = [[] for _ in range(count)]
        for number, points in enumerate(_lines(count, line)):
            bits = [sum(1 << row for row in panels) for panels in points]
            for place, panels in enumerate(points):
                for row in panels:
                    self._on[row].append((number, sum(bits) - (bits[place] if place else 0)))

    def best_set(self) -> _Taken:
        """Which takes most pairs for each of its rows, of those that grow from several rows."""
        others = self._others
        there = {
            row: on
            for row, members in enumerate(self._on)
            if (on := [(line, rows & others[row]) for line, rows in members if self.over[line]])
        }
        starts = [row for row, on in there.items() if any(rows for _, rows in on)]
        return max(
            (self._grown(start, there) for start in starts[:: max(1, len(starts) // _STARTS)]),
            key=lambda taken: (len(taken) / len({row for pair, _ in taken for row in pair}), len(taken)),
        )

    def _grown(self, row: int, there: Mapping[int, _Members]) -> _Taken:
        """A set that grows by the row that takes most pairs."""
        over, rows, left = [*self.over], 0, set(there)
        taken: _Taken = []
        while True:
            rows |= 1 << row
            left.discard(row)
            for line, members in there[row]:
                pairs = [*_bits(rows & members)][: over[line]]
                over[line] -= len(pairs)
                taken += [((max(row, other), min(row, other)), line) for other in pairs]
            room, most = self._most - len(taken), 0
            for each in left if rows.bit_count() < self._most_rows else ():
                own, gain = rows | 1 << each, 0
                for line, members in there[each]:
                    gain += min(over[line], (own & members).bit_count())
                if most < gain <= room:
                    row, most = each, gain
            if not most:
                return taken

    def take(self, taken: _Taken) -> None:
        for (row, column), line in taken:
            self.over[line] -= 1
            self.lines[line].discard((row, column))
            self._others[row] &= ~(1 << column)
            self._others[column] &= ~(1 << row)


def _bits(rows: int) -> Iterator[int]:
    while rows:
        lowest = rows & -rows
        yield lowest.bit_length() - 1
        rows ^= lowest


# ---- sets one after another ----


def _one_after_another(count: int, most: int) -> Iterator[list[Pair]]:
    """A set grows from a row: the next row is the one that has most unmade pairs with the set. Of the sets from all
    rows the one with most pairs per row is taken."""
    left = [(1 << count) - 1] * count  # rows with which a row has an unmade pair, as bits
    while any(left):
        found = [_grown(start, left, most) for start in range(count) if left[start]]
        pairs = max(
            found, key=lambda each: (len(each) / len({row for pair in each for row in pair}), len(each))
        )
        for row, column in pairs:
            left[row] &= ~(1 << column)
            left[column] &= ~(1 << row)
        yield sorted(pairs)


def _grown(start: int, left: Sequence[int], most: int) -> list[Pair]:
    rows, order, others = 1 << start, [start], set(range(len(left))) - {start}
    pairs: list[Pair] = []
    while others:
        _, _, row = max(((left[each] & rows).bit_count(), left[each].bit_count(), -each) for each in others)
        shared = left[-row] & rows
        if not 0 < shared.bit_count() <= most - len(pairs):
            break
        pairs += [(max(-row, other), min(-row, other)) for other in _bits(shared)]
        rows |= 1 << -row
        order.append(-row)
        others.discard(-row)
    diagonals = [(row, row) for row in order if left[row] >> row & 1]
    return pairs + diagonals[: most - len(pairs)]
