"""The tasks that a product H x is made of, each with the parts of x and of the product that it has in memory.

The opposite-spin part goes through *holes*, alpha strings of one electron less, in order of their values. Holes
that share their highest orbitals meet the same rows, so consecutive ones form a group: it loads its rows once.
The same-spin part of the beta electrons needs whole rows: each row gets it in the group of its lowest hole,
which meets the most columns.
Without folding the same-spin part of the alpha electrons has slabs of columns of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ci.space import list_strings

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers, Masks, Space, StringList
    from outcore.chem.ci.tiles import Tiling

Flags = NDArray[np.bool_]

OPPOSITE, BETA, ALPHA = "opposite", "beta", "alpha"


@dataclass(frozen=True)
class Part:
    """Of a task: what a panel of x and one of the product hold. rows, columns: indices of alpha and beta strings;
    of the kind ALPHA panels are transposed."""

    kind: str
    rows: Integers
    columns: Integers

    def elements(self, space: Space) -> int:
        """Of x in its panel."""
        heights = np.diff(np.searchsorted(self.rows, space.alpha.offsets))
        widths = np.diff(np.searchsorted(self.columns, space.beta.offsets))
        return int(heights @ widths[np.arange(space.groups) ^ space.irrep])


@dataclass(frozen=True)
class Task:
    """holes: a range, empty if there is no opposite-spin part."""

    holes: range
    parts: tuple[Part, ...]
    cost: float  # operations, as far as they are known without integrals

    def touched(self, tiling: Tiling) -> list[Flags]:
        """For each part: which places of the grid of all tiles, both halves, it holds something of."""
        found = []
        for part in self.parts:
            rows = _tiles_of(part.rows, tiling.rows)
            columns = _tiles_of(part.columns, tiling.columns)
            found.append(np.outer(rows, columns))
        return found

    def tiles(self, tiling: Tiling) -> Integers:
        """Numbers of the stored tiles that it reads and adds to."""
        anywhere = np.logical_or.reduce(self.touched(tiling))
        if tiling.parity:
            anywhere |= anywhere.T
        return np.asarray(tiling.number[anywhere & tiling.there])


def _tiles_of(indices: Integers, cuts: Sequence[int]) -> Flags:
    flags = np.zeros(len(cuts) - 1, bool)
    flags[np.searchsorted(cuts, indices, side="right") - 1] = True
    return flags


class Holes:
    """How holes, rows and columns of a space with electrons of both spins belong together."""

    def __init__(self, space: Space) -> None:
        self.space = space
        alpha = space.electrons[0]
        holes = list_strings(space.irreps, space.groups, alpha - 1)
        self.masks: Masks = np.sort(holes.strings)
        self.home = np.searchsorted(self.masks, _without_highest(space.alpha.strings, alpha))
        self.highest = np.searchsorted(self.masks, _without_lowest(space.beta.strings))

    def __len__(self) -> int:
        return len(self.masks)

    def runs(self, depth: int) -> Integers:
        """Boundaries of runs of holes that share their `depth` highest orbitals."""
        shared = self.masks
        for _ in range(max(self.space.electrons[0] - 1 - depth, 0)):
            shared = _without_lowest(shared)
        cuts = np.flatnonzero(np.diff(shared)) + 1
        return np.concatenate([[0], cuts, [len(shared)]]) if len(shared) else np.zeros(1, np.int64)

    @cached_property
    def _rows(self) -> NDArray[np.int32]:
        """[hole][electron]: indices of the alpha strings with one electron more."""
        space = self.space
        found = np.empty((len(self), space.orbitals - space.electrons[0] + 1), np.int32)
        places = np.zeros(len(self), np.int64)
        for orbital in range(space.orbitals):
            bit = np.uint64(1 << orbital)
            empty = np.flatnonzero((self.masks & bit) == 0)
            found[empty, places[empty]] = space.alpha.rank(self.masks[empty] | bit)
            places[empty] += 1
        return found

    def rows(self, first: int, last: int) -> Integers:
        """Alpha strings that these holes reach, ascending."""
        return np.unique(self._rows[first:last]).astype(np.int64)

    def columns(self, first: int) -> Integers:
        """Beta strings that holes from `first` on meet: all; with folding those that contain one of them, the last
        of each sector."""
        if self.space.folded:
            return np.flatnonzero(self.highest >= first)
        return np.arange(len(self.space.beta.strings), dtype=np.int64)

    def home_rows(self, first: int, last: int) -> Integers:
        """Alpha strings whose lowest hole is one of these."""
        return np.flatnonzero((self.home >= first) & (self.home < last))

    # ---- how many of each irrep, for sizes of panels ----

    @cached_property
    def row_irreps(self) -> NDArray[np.int8]:
        return _irreps(self.space.alpha)

    @cached_property
    def column_counts(self) -> Integers:
        """[first][irrep] of `columns`."""
        whole = np.array(self.space.counts[1], np.int64)
        if self.space.folded:
            return whole - _cumulative(self.highest, _irreps(self.space.beta), len(self), self.space.groups)
        return np.broadcast_to(whole, (len(self) + 1, self.space.groups))

    @cached_property
    def home_counts(self) -> Integers:
        """[last][irrep] of `home_rows` of all holes before."""
        return _cumulative(self.home, self.row_irreps, len(self), self.space.groups)


def _irreps(strings: StringList) -> NDArray[np.int8]:
    """Of each string."""
    return np.repeat(np.arange(len(strings.offsets) - 1, dtype=np.int8), np.diff(strings.offsets))


def _cumulative(holes: Integers, irreps: NDArray[np.int8], count: int, groups: int) -> Integers:
    """[last][irrep]: strings of an irrep whose hole comes before `last`."""
    found = np.zeros((count + 1, groups), np.int64)
    np.add.at(found, (holes + 1, irreps), 1)
    return np.asarray(np.cumsum(found, axis=0))


def _without_lowest(masks: Masks) -> Masks:
    return masks & (masks - np.uint64(1))


def _without_highest(masks: Masks, electrons: int) -> Masks:
    highest = masks
    for _ in range(electrons - 1):
        highest = _without_lowest(highest)
    return masks ^ highest


def make_tasks(space: Space, limit: int, most_share: float = 1.0) -> list[Task] | None:
    """All tasks, none with more than `limit` elements in its panels of x, nor with more than `most_share` of the
    cost as long as it can be cut; the most expensive runs of holes first. None if a task does not fit."""
    tasks: list[Task] = []
    if min(space.electrons) > 0:
        made = _groups(space, limit, most_share)
        if made is None:
            return None
        tasks += made
    else:
        made = _slabs(space, BETA, limit)
        if made is None:
            return None
        tasks += made
    if not space.folded:
        slabs = _slabs(space, ALPHA, limit)
        if slabs is None:
            return None
        tasks += slabs
    return tasks


def _groups(space: Space, limit: int, most_share: float) -> list[Task] | None:
    """With runs that share as few orbitals as possible: joined, as long as they fit."""
    holes = Holes(space)
    cost = np.arange(float(len(holes)), 0.0, -1.0) if space.folded else np.ones(len(holes))
    costs = np.concatenate([[0.0], np.cumsum(cost)])
    for depth in range(space.electrons[0]):
        cuts = holes.runs(depth)
        deepest = depth == space.electrons[0] - 1
        if not deepest and np.diff(costs[cuts]).max(initial=0) > most_share * costs[-1]:
            continue
        tasks: list[Task] = []
        first, count = 0, len(cuts) - 1
        while first < count:
            joined = _Joined(holes, int(cuts[first]))
            last = first
            while last < count and joined.fits(int(cuts[last + 1]), limit):
                begin, end = int(cuts[first]), int(cuts[last + 1])
                if last > first and costs[end] - costs[begin] > most_share * costs[-1]:
                    break
                joined.take()
                last += 1
            if last == first:
                break  # a run that is too large
            tasks.append(joined.task(float(costs[cuts[last]] - costs[cuts[first]])))
            first = last
        if first == count:
            return tasks
    return None


class _Joined:
    """Holes from `begin` on that are taken together, run by run."""

    def __init__(self, holes: Holes, begin: int) -> None:
        self._holes, self._space, self.begin, self.end = holes, holes.space, begin, begin
        self._flags = np.zeros(len(self._space.alpha.strings), bool)
        self._counts = np.zeros(self._space.groups, np.int64)
        irreps = np.arange(self._space.groups) ^ self._space.irrep  # of columns, by that of rows
        self._columns = holes.column_counts[begin][irreps]
        self._whole = np.array(self._space.counts[1], np.int64)[irreps]

    def fits(self, end: int, limit: int) -> bool:
        """Whether the panels have at most so many elements of x with the holes before `end`, too."""
        rows = self._holes.rows(self.end, end)
        self._next, self._new = end, rows[~self._flags[rows]]
        counts = np.bincount(self._holes.row_irreps[self._new], minlength=self._space.groups)
        self._next_counts = self._counts + counts
        home = self._holes.home_counts[end] - self._holes.home_counts[self.begin]
        return int(self._next_counts @ self._columns + home @ self._whole) <= limit

    def take(self) -> None:
        """What was asked for last."""
        self.end, self._counts = self._next, self._next_counts
        self._flags[self._new] = True

    def task(self, cost: float) -> Task:
        holes, begin, end = self._holes, self.begin, self.end
        everything = np.arange(len(self._space.beta.strings), dtype=np.int64)
        parts = (
            Part(OPPOSITE, np.flatnonzero(self._flags), holes.columns(begin)),
            Part(BETA, holes.home_rows(begin, end), everything),
        )
        there = tuple(part for part in parts if len(part.rows) and len(part.columns))
        return Task(range(begin, end), there, cost)


def _slabs(space: Space, kind: str, limit: int) -> list[Task] | None:
    """Whole rows (BETA) or columns (ALPHA), as many as fit."""
    transposed = kind == ALPHA
    strings = space.beta if transposed else space.alpha
    others = space.alpha if transposed else space.beta
    tasks = []
    everything = np.arange(len(others.strings), dtype=np.int64)
    for g in range(space.groups):
        sector, width = strings.sector(g), len(others.sector(g ^ space.irrep))
        if not len(sector) or not width:
            continue
        rows = limit // width
        if rows < 1:
            return None
        for begin in range(sector.start, sector.stop, rows):
            some = np.arange(begin, min(begin + rows, sector.stop), dtype=np.int64)
            part = Part(kind, everything, some) if transposed else Part(kind, some, everything)
            tasks.append(Task(range(0), (part,), float(len(some))))
    return tasks
