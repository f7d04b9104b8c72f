"""The tasks that a product H x is made of, each with the rows of x and of the product that it has in memory.

The opposite-spin part goes through *holes*, alpha strings of one electron less, in order of their values. Holes
that share their highest orbitals meet the same rows, so consecutive ones form a group: it loads its rows once, with
folding each from the column on that its lowest hole of the group meets first.
The same-spin part of the beta electrons needs whole rows. The beta-beta part of a row belongs to the task of its
first N-1 electron string, which meets the most columns.
Without folding the same-spin part of the alpha electrons has slabs of columns of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ci.finished import borders
from outcore.chem.ci.space import list_strings

if TYPE_CHECKING:
    from outcore.chem.ci.finished import Finished
    from outcore.chem.ci.space import Integers, Masks, Space, StringList
    from outcore.chem.ci.tiles import VectorTiling

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class PanelLayout:
    """Layout of rows in a panel: they begin and end at multiples of `unit` elements of their sector, with `apart`
    elements between them."""

    unit: int = 1
    apart: int = 0

    def room(self, begins: Integers, widths: Integers) -> Integers:
        """Elements of rows of these widths, from these columns on, counted in their sector."""
        found: Integers = -(-widths // self.unit) * self.unit - begins // self.unit * self.unit + self.apart
        return found


@dataclass(frozen=True)
class Task:
    """A task: the rows in its panel of x and in its panel of the product.

    holes: a range, empty if there is no opposite-spin part. home: rows with all columns, which get the same-spin
    part. others: rows with the columns from `begins` on. Rows are alpha strings, columns beta strings, or the other
    way round if it is `transposed`, as panels are. cost: operations, as far as they are known without integrals.
    """

    holes: range
    home: Integers
    others: Integers
    begins: Integers
    cost: float
    transposed: bool = False

    def elements(self, space: Space, layout: PanelLayout | None = None) -> int:
        """Number of elements of a panel."""
        rows, columns = (space.beta, space.alpha) if self.transposed else (space.alpha, space.beta)
        irreps = [np.searchsorted(rows.offsets, each, side="right") - 1 for each in (self.home, self.others)]
        sectors = [each ^ space.irrep for each in irreps]
        sizes = np.diff(columns.offsets)
        layout = layout or PanelLayout()
        home = layout.room(np.zeros(len(self.home), np.int64), sizes[sectors[0]])
        others = layout.room(self.begins - columns.offsets[sectors[1]], sizes[sectors[1]])
        return int(home.sum() + others.sum())

    def touched(self, tiling: VectorTiling) -> Flags:
        """Which tiles of the whole grid, both halves, overlap its panels."""
        space = tiling.space
        cuts, other_cuts = (tiling.columns, tiling.rows) if self.transposed else (tiling.rows, tiling.columns)
        end = other_cuts[-1]
        first = np.full(len(cuts) - 1, end, np.int64)
        rows, columns = (space.beta, space.alpha) if self.transposed else (space.alpha, space.beta)
        sectors = (np.searchsorted(rows.offsets, self.home, side="right") - 1) ^ space.irrep
        for indices, begins in ((self.home, columns.offsets[sectors]), (self.others, self.begins)):
            np.minimum.at(first, np.searchsorted(cuts, indices, side="right") - 1, begins)
        found: Flags = first[:, None] < np.asarray(other_cuts[1:])
        return found.T if self.transposed else found

    def tiles(self, tiling: VectorTiling) -> Integers:
        """Numbers of the stored tiles that it reads and adds to."""
        anywhere = self.touched(tiling)
        if tiling.parity:
            anywhere = anywhere | anywhere.T
        return np.asarray(tiling.number[anywhere & tiling.there])


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
    def reached(self) -> NDArray[np.int32]:
        """[hole][electron]: indices of the alpha strings with one electron more."""
        space = self.space
        found = np.empty((len(self), space.orbitals - space.electrons[0] + 1), np.int32)
        places = np.zeros(len(self), np.int64)
        by_value = np.argsort(space.alpha.strings)
        values = space.alpha.strings[by_value]
        for orbital in range(space.orbitals):
            bit = np.uint64(1 << orbital)
            empty = np.flatnonzero((self.masks & bit) == 0)
            found[empty, places[empty]] = by_value[np.searchsorted(values, self.masks[empty] | bit)]
            places[empty] += 1
        return found

    def rows(self, first: int, last: int) -> tuple[Integers, Integers]:
        """Alpha strings that these holes reach, ascending, and the lowest hole that reaches each."""
        block = self.reached[first:last]
        rows, places = np.unique(block, return_index=True)
        return rows.astype(np.int64), first + places // max(block.shape[1], 1)

    def begins(self, rows: Integers, holes: Integers) -> Integers:
        """For each row the first column that its hole meets. The hole meets all columns from there to the end of
        the sector."""
        sectors = self.row_irreps[rows].astype(np.int64) ^ self.space.irrep
        found: Integers = self.space.beta.offsets[sectors + 1] - self.column_counts[holes, sectors]
        return found

    # ---- how many of each irrep, for sizes of panels ----

    @cached_property
    def row_irreps(self) -> NDArray[np.int8]:
        return _irreps(self.space.alpha)

    @cached_property
    def column_counts(self) -> Integers:
        """[hole][irrep]: columns that it meets: all; with folding those that contain it or a later one, which are
        the last of their sector."""
        whole = np.array(self.space.counts[1], np.int64)
        if self.space.folded:
            return whole - _cumulative(self.highest, _irreps(self.space.beta), len(self), self.space.groups)
        return np.broadcast_to(whole, (len(self) + 1, self.space.groups))


def _irreps(strings: StringList) -> NDArray[np.int8]:
    """The irrep of each string."""
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


def make_tasks(
    space: Space,
    limit: int,
    max_share: float = 1.0,
    layout: PanelLayout | None = None,
    finished: Finished | None = None,
) -> list[Task] | None:
    """All tasks for the part of a product that is not `finished`. No task has more than `limit` elements in a
    panel of this layout, nor more than `max_share` of the cost as long as it can be cut; the most expensive runs
    of holes come first. None if a task does not fit."""
    layout = layout or PanelLayout()
    tasks: list[Task] = []
    if min(space.electrons) > 0:
        made = _groups(space, limit, max_share, layout, None if finished is None else finished.holes)
        if made is None:
            return None
        tasks += made
    else:
        done = None if finished is None else finished.rows
        made = make_slabs(space, limit, layout, done, transposed=False)
        if made is None:
            return None
        tasks += made
    if not space.folded:
        done = None if finished is None else finished.columns
        slabs = make_slabs(space, limit, layout, done, transposed=True)
        if slabs is None:
            return None
        tasks += slabs
    return tasks


def _groups(
    space: Space, limit: int, max_share: float, layout: PanelLayout, done: Flags | None
) -> list[Task] | None:
    """Tasks with holes, from runs that share as few orbitals as possible. Runs are joined as long as they fit and
    none is `done`. None if a run does not fit."""
    holes = Holes(space)
    done = np.zeros(len(holes), bool) if done is None else done
    cost = np.arange(float(len(holes)), 0.0, -1.0) if space.folded else np.ones(len(holes))
    costs = np.concatenate([[0.0], np.cumsum(cost)])
    for depth in range(space.electrons[0]):
        cuts = np.union1d(holes.runs(depth), borders(done))
        deepest = depth == space.electrons[0] - 1
        if not deepest and np.diff(costs[cuts]).max(initial=0) > max_share * costs[-1]:
            continue
        tasks: list[Task] = []
        first, count = 0, len(cuts) - 1
        while first < count:
            if done[cuts[first]]:
                first += 1
                continue
            joined = _Joined(holes, int(cuts[first]), layout)
            last = first
            while last < count and not done[cuts[last]] and joined.fits(int(cuts[last + 1]), limit):
                begin, end = int(cuts[first]), int(cuts[last + 1])
                if last > first and costs[end] - costs[begin] > max_share * costs[-1]:
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

    def __init__(self, holes: Holes, begin: int, layout: PanelLayout) -> None:
        self._holes, self._layout, self.begin, self.end = holes, layout, begin, begin
        self._flags = np.zeros(len(holes.space.alpha.strings), bool)
        self._elements = 0
        self._rows: list[Integers] = []
        self._lowest: list[Integers] = []

    def fits(self, end: int, limit: int) -> bool:
        """Whether a panel has at most so many elements with the holes before `end`, too."""
        holes, offsets = self._holes, self._holes.space.beta.offsets
        rows, lowest = holes.rows(self.end, end)
        new = ~self._flags[rows]
        self._next, self._new, self._new_lowest = end, rows[new], lowest[new]
        sectors = holes.row_irreps[self._new].astype(np.int64) ^ holes.space.irrep
        begins = holes.begins(self._new, self._new_lowest) - offsets[sectors]
        begins[holes.home[self._new] == self._new_lowest] = 0
        more = self._layout.room(begins, np.diff(offsets)[sectors])
        self._next_elements = self._elements + int(more.sum())
        return self._next_elements <= limit

    def take(self) -> None:
        """Takes the run that `fits` was last asked about."""
        self.end, self._elements = self._next, self._next_elements
        self._flags[self._new] = True
        self._rows.append(self._new)
        self._lowest.append(self._new_lowest)

    def task(self, cost: float) -> Task:
        holes = self._holes
        rows, lowest = np.concatenate(self._rows), np.concatenate(self._lowest)
        order = np.argsort(rows)
        rows, lowest = rows[order], lowest[order]
        home = holes.home[rows] == lowest
        others = rows[~home]
        return Task(
            range(self.begin, self.end), rows[home], others, holes.begins(others, lowest[~home]), cost
        )


def make_bands(tiling: VectorTiling, limit: int, layout: PanelLayout) -> list[Task] | None:
    """Whole rows of the vector, each row once, at most `limit` elements in a panel of this layout: as many rows of
    tiles as fit, or parts of one. None if a row does not fit."""
    space, nothing = tiling.space, np.zeros(0, np.int64)
    irreps = np.searchsorted(space.alpha.offsets, tiling.rows[:-1], side="right") - 1
    widths = np.array(space.counts[1], np.int64)[irreps ^ space.irrep]
    rooms = layout.room(np.zeros(len(widths), np.int64), widths)
    bands: list[Task] = []
    rows: list[range] = []
    left = limit

    def end() -> None:
        if rows:
            some = np.concatenate([np.arange(each.start, each.stop, dtype=np.int64) for each in rows])
            bands.append(Task(range(0), some, nothing, nothing, float(len(some))))
        rows.clear()

    for begin, last, width, room in zip(tiling.rows[:-1], tiling.rows[1:], widths, rooms, strict=True):
        if not width:
            continue
        most = limit // int(room)
        if most < 1:
            return None
        if (last - begin) * int(room) > left:
            end()
            left = limit
        for first in range(begin, last, most):
            if first > begin:
                end()
                left = limit
            rows.append(range(first, min(first + most, last)))
            left -= len(rows[-1]) * int(room)
    end()
    return bands


def make_slabs(
    space: Space, limit: int, layout: PanelLayout, done: Flags | None = None, *, transposed: bool
) -> list[Task] | None:
    """Whole rows that are not `done`, as many as fit into `limit` elements. None if a row does not."""
    rows, columns = (space.beta, space.alpha) if transposed else (space.alpha, space.beta)
    tasks, nothing = [], np.zeros(0, np.int64)
    for g in range(space.groups):
        sector, width = rows.sector(g), len(columns.sector(g ^ space.irrep))
        if not len(sector) or not width:
            continue
        most = limit // int(layout.room(np.zeros(1, np.int64), np.array([width]))[0])
        if most < 1:
            return None
        left = np.arange(sector.start, sector.stop, dtype=np.int64)
        left = left if done is None else left[~done[left]]
        for begin in range(0, len(left), most):
            some = left[begin : begin + most]
            tasks.append(Task(range(0), some, nothing, nothing, float(len(some)), transposed))
    return tasks
