"""The tasks that a product H x is made of, each with the parts of x and of the product that it has in memory.

The opposite-spin part goes through *holes*, alpha strings of one electron less, in order of their values. Holes
that share their highest orbitals meet the same rows, so consecutive ones form a group: it loads its rows once.
The same-spin part of the beta electrons needs whole rows: each row gets it in the group of its highest hole.
Without folding the same-spin part of the alpha electrons has slabs of columns of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ci.space import list_strings

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers, Masks, Space
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
        alpha, beta = space.electrons
        holes = list_strings(space.irreps, space.groups, alpha - 1)
        self.masks: Masks = np.sort(holes.strings)
        self.home = np.searchsorted(self.masks, _without_lowest(space.alpha.strings))
        self.lowest = np.searchsorted(self.masks, _without_highest(space.beta.strings, beta))

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
        """[orbital][hole]: index of the alpha string with one electron more, -1 if that orbital is occupied."""
        found = np.full((self.space.orbitals, len(self)), -1, np.int32)
        for orbital in range(self.space.orbitals):
            bit = np.uint64(1 << orbital)
            empty = (self.masks & bit) == 0
            found[orbital, empty] = self.space.alpha.rank(self.masks[empty] | bit)
        return found

    def rows(self, first: int, last: int) -> Flags:
        """Alpha strings that these holes reach."""
        flags = np.zeros(len(self.space.alpha.strings) + 1, bool)
        flags[self._rows[:, first:last]] = True
        return flags[:-1]

    def columns(self, last: int) -> Flags:
        """Beta strings that holes before `last` meet: all; with folding those that contain one of them."""
        if self.space.folded:
            return np.asarray(self.lowest < last)
        return np.ones(len(self.space.beta.strings), bool)

    def home_rows(self, first: int, last: int) -> Flags:
        """Alpha strings whose highest hole is one of these."""
        return np.asarray((self.home >= first) & (self.home < last))


def _without_lowest(masks: Masks) -> Masks:
    return masks & (masks - np.uint64(1))


def _without_highest(masks: Masks, electrons: int) -> Masks:
    highest = masks
    for _ in range(electrons - 1):
        highest = _without_lowest(highest)
    return masks ^ highest


def panel_elements(space: Space, rows: Flags, columns: Flags, *, transposed: bool = False) -> int:
    """Of a panel with these alpha (transposed: beta) and beta (alpha) strings."""
    of_rows, of_columns = (space.beta, space.alpha) if transposed else (space.alpha, space.beta)
    total = 0
    for g in range(space.groups):
        here, there = of_rows.sector(g), of_columns.sector(g ^ space.irrep)
        height = int(np.count_nonzero(rows[here.start : here.stop]))
        total += height * int(np.count_nonzero(columns[there.start : there.stop]))
    return total


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
    costs = np.cumsum(
        np.concatenate([[0.0], np.arange(len(holes)) + 1.0 if space.folded else np.ones(len(holes))])
    )
    for depth in range(space.electrons[0]):
        cuts = holes.runs(depth)
        fits = all(_task_elements(space, holes, int(a), int(b)) <= limit for a, b in itertools.pairwise(cuts))
        if fits and (
            depth == space.electrons[0] - 1 or np.diff(costs[cuts]).max(initial=0) <= most_share * costs[-1]
        ):
            return list(_joined(space, holes, cuts, costs, limit, most_share))
    return None


def _task_elements(space: Space, holes: Holes, first: int, last: int) -> int:
    """In panels of x: of the opposite-spin part, and of the rows whose same-spin part is done here."""
    opposite = panel_elements(space, holes.rows(first, last), holes.columns(last))
    return opposite + panel_elements(
        space, holes.home_rows(first, last), np.ones(len(space.beta.strings), bool)
    )


def _joined(
    space: Space, holes: Holes, cuts: Integers, costs: NDArray[np.float64], limit: int, most_share: float
) -> Iterator[Task]:
    last = len(cuts) - 1
    while last > 0:
        first = last - 1
        end = int(cuts[last])
        while first > 0:
            begin = int(cuts[first - 1])
            if costs[end] - costs[begin] > most_share * costs[-1]:
                break
            if _task_elements(space, holes, begin, end) > limit:
                break
            first -= 1
        begin = int(cuts[first])
        everything = np.arange(len(space.beta.strings), dtype=np.int64)
        parts = [
            Part(OPPOSITE, np.flatnonzero(holes.rows(begin, end)), np.flatnonzero(holes.columns(end))),
            Part(BETA, np.flatnonzero(holes.home_rows(begin, end)), everything),
        ]
        parts = [part for part in parts if len(part.rows) and len(part.columns)]
        yield Task(range(begin, end), tuple(parts), float(costs[end] - costs[begin]))
        last = first


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
