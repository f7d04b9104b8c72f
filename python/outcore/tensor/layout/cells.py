"""A group of axes of a product is cut into cells, which are boxes of it. Cells are put together to panels: the
rows, the columns or the inner indices of one step.

A cell is an interval of each axis. Tiles that an array fixes are never cut.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Cuts = tuple[int, ...]  # boundaries of one axis: 0, ..., extent
Interval = tuple[int, int]
Cell = tuple[Interval, ...]


@dataclass(frozen=True)
class Axis:
    """An axis of a product. `fixed`: the boundaries of tiles that must stay whole; None: the axis may be cut
    anywhere. `mergeable`: consecutive tiles may form one interval, as none of them is missing. `chunk`: elements of
    a chunk on disk; where no cut goes through a chunk, only wanted elements are read or written."""

    label: str
    extent: int
    fixed: Cuts | None = None
    mergeable: bool = True
    chunk: int = 1

    def cut(self, most: int, *, by_chunks: bool = False) -> Cuts:
        """The boundaries of nearly equal intervals of at most `most` elements. A tile that is larger is an interval
        by itself. `by_chunks`: an interval with elements of several chunks has these whole."""
        if self.fixed is None:
            if by_chunks and self.chunk > 1 and most < self.extent:
                return self._by_chunks(max(1, most))
            parts = max(1, math.ceil(self.extent / max(1, most)))
            return tuple(self.extent * i // parts for i in range(parts + 1))
        if not self.mergeable:
            return self.fixed
        kept = [0]
        for begin, end in itertools.pairwise(self.fixed):
            if end - kept[-1] > most and begin > kept[-1]:
                kept.append(begin)
        return (*kept, self.extent) if self.extent else (0, 0)

    def count(self, most: int, *, by_chunks: bool = False) -> int:
        """The number of these intervals. Where the axis may be cut anywhere it follows from the sizes alone."""
        if self.fixed is not None:
            return len(self.cut(most)) - 1
        most = max(1, most)
        if not (by_chunks and self.chunk > 1 and most < self.extent):
            return max(1, math.ceil(self.extent / most))
        whole, rest = divmod(self.extent, self.chunk)
        if most >= self.chunk:
            return math.ceil((whole + (rest > 0)) / (most // self.chunk))
        parts = math.ceil(self.chunk / most)
        return whole * parts + math.ceil(rest * parts / self.chunk)

    def _by_chunks(self, most: int) -> Cuts:
        count = math.ceil(self.extent / self.chunk)
        if most >= self.chunk:
            parts = math.ceil(count / (most // self.chunk))
            return (*(count * i // parts * self.chunk for i in range(parts)), self.extent)
        parts = math.ceil(self.chunk / most)
        inside = [self.chunk * i // parts for i in range(parts)]
        places = (chunk * self.chunk + place for chunk in range(count) for place in inside)
        return (*(place for place in places if place < self.extent), self.extent)

    def whole_chunks(self, cuts: Cuts) -> float:
        """The share of elements whose chunk has no boundary inside."""
        if self.chunk == 1 or self.fixed is not None:
            return 1.0
        places = np.array(cuts[1:-1], np.int64)
        begins = np.unique(places[places % self.chunk != 0] // self.chunk) * self.chunk
        return 1.0 - float(np.minimum(self.chunk, self.extent - begins).sum()) / max(1, self.extent)

    @cached_property
    def smallest(self) -> int:
        """The smallest extent that the largest interval can have."""
        if self.fixed is None:
            return min(1, self.extent)
        return max((end - begin for begin, end in itertools.pairwise(self.fixed)), default=0)


@dataclass(frozen=True)
class Cut:
    """How a group is cut: the boundaries of each of its axes. A group without axes is one cell of one element."""

    cuts: tuple[Cuts, ...]

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells, in row-major order."""
        return list(itertools.product(*(list(itertools.pairwise(axis)) for axis in self.cuts)))

    @cached_property
    def sizes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Number of elements of each cell."""
        sizes = np.ones(1, np.int64)
        for axis in self.cuts:
            sizes = np.outer(sizes, np.diff(axis)).ravel()
        return sizes

    def whole_chunks(self, axes: Sequence[Axis]) -> float:
        """The share of elements in chunks that lie in one cell."""
        return math.prod(axis.whole_chunks(cuts) for axis, cuts in zip(axes, self.cuts, strict=True))


Panels = tuple[tuple[int, ...], ...]  # the numbers of the cells of each panel


def panels(sizes: Sequence[int], classes: Sequence[int], most: int) -> Panels:
    """Panels of at most `most` elements, each of consecutive cells of one class. The panels of a class have nearly
    equal sizes. A larger cell is a panel by itself."""
    members: dict[int, list[int]] = {}
    for cell, kind in enumerate(classes):
        members.setdefault(int(kind), []).append(cell)
    result: list[tuple[int, ...]] = []
    for cells in members.values():
        total = sum(int(sizes[cell]) for cell in cells)
        count = max(1, math.ceil(total / max(1, most)))
        best = _filled(sizes, cells, most)
        for target in (math.ceil(total / count), (math.ceil(total / count) + most) // 2):
            even = _filled(sizes, cells, target)
            if len(even) <= len(best):
                best = even
                break
        result += best
    return tuple(result)


def _filled(sizes: Sequence[int], cells: Sequence[int], most: int) -> list[tuple[int, ...]]:
    result: list[tuple[int, ...]] = []
    current: list[int] = []
    held = 0
    for cell in cells:
        size = int(sizes[cell])
        if current and held + size > most:
            result.append(tuple(current))
            current, held = [], 0
        current.append(cell)
        held += size
    if current:
        result.append(tuple(current))
    return result


def cut_for(axes: Sequence[Axis], most: int, pieces: int = 1, *, by_chunks: bool = False) -> Cut:
    """The cut into cells of at most `most` elements where tiles allow it. Inner axes stay whole, one axis is cut,
    and outer axes are cut into single elements or tiles. `pieces`: the axis that is cut gets so many times as many
    intervals, so that several cells fill a panel. `by_chunks`: see Axis.cut."""
    intervals = _intervals(axes, most, pieces, by_chunks)
    return Cut(
        tuple(axis.cut(each, by_chunks=chunks) for axis, (each, chunks) in zip(axes, intervals, strict=True))
    )


def cells_for(axes: Sequence[Axis], most: int, pieces: int = 1, *, by_chunks: bool = False) -> int:
    """The number of cells of that cut, which may be too large to make."""
    intervals = _intervals(axes, most, pieces, by_chunks)
    return math.prod(
        axis.count(each, by_chunks=chunks) for axis, (each, chunks) in zip(axes, intervals, strict=True)
    )


def _intervals(axes: Sequence[Axis], most: int, pieces: int, by_chunks: bool) -> list[tuple[int, bool]]:
    """For each axis the most elements of an interval, and whether chunks matter."""
    result: list[tuple[int, bool]] = []
    room = max(1, most)
    cutting = True
    for axis in reversed(axes):
        if not cutting:
            result.append((1, False))
        elif axis.extent <= room and axis.mergeable:
            result.append((max(1, axis.extent), False))
            room = max(1, room // max(1, axis.extent))
        else:
            result.append((max(1, room // pieces), by_chunks))
            cutting = axis.fixed is not None and not axis.mergeable
            room = max(1, room // max(1, axis.smallest))
    return result[::-1]
