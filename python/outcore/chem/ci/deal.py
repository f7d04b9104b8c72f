"""Which node does which tasks of a product, and has which rows: of vectors in the memory of several nodes.

Each node has consecutive holes, with the same share of the work for each of its processes. It moves rows of others
from the column on that it needs, while tasks compute; rows come out of tiles before that, and go back into them
after it. A row lies at the node whose task has it at home, so that this task, and the others of its node, move it
without the network; or at the node that has most of its tiles, so that tasks move more, and the rest less.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.ci.copies import Copies
from outcore.chem.ci.groups import Holes, PanelLayout, Task, make_slabs
from outcore.parallel.tasks import uneven
from outcore.tensor.arrays.backends.global_memory import even_ranges

if TYPE_CHECKING:
    from outcore.chem.ci.groups import Flags
    from outcore.chem.ci.space import Integers, Space
    from outcore.chem.ci.tiles import VectorTiling
    from outcore.job.world import World

_ROUNDS = 2  # in which rows are given to other nodes; from the second on to those that have room
T = TypeVar("T")

LINE_BYTES = 64  # rows begin and end at multiples of it, in memory and when they move


def layout(dtype: str) -> PanelLayout:
    """Of panels whose rows move one by one."""
    return PanelLayout(LINE_BYTES // np.dtype(dtype).itemsize)


def pitch(space: Space, dtype: str) -> int:
    """Elements from a row to the next, where all rows lie."""
    unit = layout(dtype).unit
    return -(-max(space.counts[1]) // unit) * unit


class Crossing(NamedTuple):
    """Between nodes: elements in all, and how many times the mean of nodes the network of the busiest one moves."""

    elements: int
    busiest: float = 1.0

    @classmethod
    def of(cls, taken: Integers, given: Integers, sizes: Integers, *, both: bool) -> Crossing:
        """Elements that each node takes from others, and gives them; `both` ways at the same time, and back the
        same: else one after the other."""
        total = int(taken.sum())
        if not total:
            return cls(0)
        of_each = (taken + given) / 2 if both else np.maximum(taken, given)
        return cls(total, float((of_each / sizes).max() * sizes.sum() / total))


class TilesOfNodes:
    """Which node has which tiles of vectors: `node_of` each process."""

    def __init__(self, tiling: VectorTiling, node_of: Sequence[int]) -> None:
        nodes, space = max(node_of) + 1, tiling.space
        first = np.array(even_ranges(tiling.offsets, len(node_of)))
        process = np.searchsorted(first, np.arange(len(tiling)), side="right") - 1
        self._node, self._index = np.asarray(node_of)[process], tiling.index
        heights, widths = np.diff(tiling.rows), np.diff(tiling.columns)
        rows, columns = tiling.index.T
        # [rows of tiles][node]: elements of a row that the node has.
        self._elements = np.zeros((len(heights), nodes), np.int64)
        np.add.at(self._elements, (rows, self._node), widths[columns])
        self._folded = space.folded
        if space.folded:
            off = rows != columns
            np.add.at(self._elements, (columns[off], self._node[off]), heights[rows[off]])
        self._of_row = np.repeat(np.arange(len(heights)), heights)

    def owners(self) -> Integers:
        """Of each row the node that has most of it."""
        found: Integers = self._elements.argmax(axis=1)[self._of_row]
        return found

    def turning(self, owners: Integers, sizes: Integers) -> Crossing:
        """What crosses when tiles become rows of these owners."""
        here = np.zeros_like(self._elements)  # rows that a node owns
        np.add.at(here, (self._of_row, owners), 1)
        heights = here.sum(axis=1, keepdims=True)
        taken = (here * (self._elements.sum(axis=1, keepdims=True) - self._elements)).sum(axis=0)
        given = ((heights - here) * self._elements).sum(axis=0)
        return Crossing.of(taken, given, sizes, both=False)

    def boxes(self, owners: Integers) -> int:
        """Parts of tiles whose rows have one owner each."""
        cut = np.ones(len(owners), np.int64)  # where a part begins
        cut[1:] = (owners[1:] != owners[:-1]) | (self._of_row[1:] != self._of_row[:-1])
        parts = np.bincount(self._of_row, cut).astype(np.int64)
        rows, columns = self._index.T
        found = parts[rows].sum()
        return int(found + parts[columns[rows != columns]].sum() if self._folded else found)


class NodeTasks:
    """Tasks between neighbouring cuts of the holes, and those of columns alone, shared out among nodes.

    Attributes:
        nodes: processes of each.
        first: number of the first task of each node, and how many tasks there are.
        largest: elements of the largest panel.
        slabs: tasks of columns alone.
        rows: that tasks with holes move.
        node_of: of each of `rows` the node of its task.
        costs: of tasks with holes.
    """

    def __init__(
        self, nodes: tuple[int, ...], rows: _Rows, costs: list[float], slabs: list[Task], slab: int
    ) -> None:
        """`slab`: elements of the largest panel of `slabs`."""
        self.nodes, self.rows, self.costs, self.slabs = nodes, rows, costs, slabs
        self.largest = max(rows.largest, slab)
        # Of tasks with holes, and of slabs, as they are there.
        self._firsts = first_of_nodes(costs, nodes), first_of_nodes([each.cost for each in slabs], nodes)
        self.first = [one + other for one, other in zip(*self._firsts, strict=True)]
        self.node_of: Integers = np.repeat(np.arange(len(nodes)), np.diff(self._firsts[0]))[rows.task]

    @cached_property
    def tasks(self) -> list[Task]:
        """Of the first node, then of the second, and so on; of each those with holes first."""
        return self._by_nodes(self.rows.tasks(self.costs), self.slabs)

    @cached_property
    def uneven(self) -> float:
        """How much longer the last process computes than their mean."""
        return uneven(self._by_nodes(self.costs, [slab.cost for slab in self.slabs]), sum(self.nodes))

    def _by_nodes(self, holes: list[T], slabs: list[T]) -> list[T]:
        """Of each node, one after another."""
        found = list[T]()
        for (begin, end), (begin_slab, end_slab) in zip(*map(pairwise, self._firsts), strict=True):
            found += [*holes[begin:end], *slabs[begin_slab:end_slab]]
        return found


@dataclass(frozen=True)
class Deal:
    """Tasks of a product, and where rows lie.

    Attributes:
        owners: [row] = node that has it.
        crossing: of rows that tasks read of x and another node has; as much is added there.
        turning: of rows from tiles, and back.
        boxes: parts of tiles that move then, each way.
        copies: that nodes have of rows of others; None: each task moves them for itself.
    """

    work: NodeTasks
    owners: Integers
    crossing: Crossing
    turning: Crossing
    boxes: int
    copies: Copies | None

    @property
    def nodes(self) -> tuple[int, ...]:
        """Processes of each."""
        return self.work.nodes

    @property
    def first(self) -> list[int]:
        """Number of the first task of each node, and how many tasks there are."""
        return self.work.first

    @property
    def tasks(self) -> list[Task]:
        return self.work.tasks

    @property
    def moved(self) -> int:
        """Elements of rows that tasks read of x; they add as many."""
        return int(self.work.rows.sizes.sum())

    @property
    def visits(self) -> int:
        """Rows of all tasks."""
        return len(self.work.rows.row)

    @cached_property
    def rows_of_process(self) -> int:
        """At most, copies among them."""
        of_nodes = np.bincount(self.owners, minlength=len(self.nodes))
        own = max(1, int((-(-of_nodes // np.array(self.nodes))).max()))
        return own + (0 if self.copies is None else self.copies.most(self.nodes))

    def check(self, world: World) -> None:
        """Raises OutcoreError (EINVAL) if it is of other nodes than the world has, or if processes have different
        ones, as they might whose processors round differently: they would compute some parts twice, others never.
        Collective."""
        sizes = tuple(np.bincount(world.gather(world.node)).tolist())
        with world.together_with("share out a CI product", self._fingerprint):
            if sizes != self.nodes:
                raise OutcoreError(
                    errno.EINVAL,
                    "share out a CI product",
                    detail=f"planned for nodes of {self.nodes} processes, but the world has nodes of {sizes}",
                )

    def _fingerprint(self) -> str:
        parts = [np.array(self.first), self.work.rows.task, self.work.rows.row, self.owners]
        if self.copies is not None:
            parts += [self.copies.nodes, self.copies.rows, self.copies.begins, self.copies.users]
        found = sha256()
        for each in parts:
            found.update(each.astype(np.int64).tobytes())
        return found.hexdigest()

    def node(self, task: int) -> int:
        """Of the task of this number."""
        return bisect_right(self.first, task) - 1


def first_of_nodes(costs: Sequence[float], nodes: Sequence[int]) -> list[int]:
    """The number of the first task of each node, and how many tasks there are: all processes have as much to do."""
    sums = np.concatenate([[0.0], np.cumsum(np.array(costs, float))])
    wanted = np.cumsum(nodes)[:-1] * (sums[-1] / sum(nodes))
    after = np.minimum(np.searchsorted(sums, wanted), len(costs))
    before = np.maximum(after - 1, 0)
    nearest = np.where(sums[after] - wanted < wanted - sums[before], after, before)
    return [0, *nearest.tolist(), len(costs)]


def about_flops(space: Space) -> float:
    """Operations of a product, as far as they are known without integrals: see `_Flops`."""
    flops = _Flops(space)
    found = flops.opposite + flops.row * sum(space.counts[0])
    return found if space.folded else found + flops.column * sum(space.counts[1])


class _Flops:
    """Of the opposite-spin part, and of the same-spin part of a row and of a column: products of matrices of pairs
    of orbitals, for each pair of strings of one electron less, or each string of two less. Pairs of an electron of
    each spin are all, as sums and differences, or those that an alpha string leaves: see
    chem/ci/opposite_spin.cpp."""

    def __init__(self, space: Space) -> None:
        n, (alpha, beta) = space.orbitals, space.electrons
        square = min(n**4 / 2, (n * (n - alpha + 1)) ** 2) / space.groups**2
        holes = comb(n, alpha - 1) * comb(n, beta - 1)
        self.opposite = 2 * square * holes / (2 if space.folded else 1)
        self.column, self.row = (
            2 * (comb(n - count + 2, 2) / space.groups) ** 2 * comb(n, count - 2) if count > 1 else 0.0
            for count in (alpha, beta)
        )


class _Rows:
    """Of tasks between neighbouring cuts of the holes: each row once for each, with the lowest of its holes.

    Arrays of all: task, row; home; begins: first column; first, last, sizes: elements that move of the row."""

    def __init__(self, holes: Holes, cuts: Integers, dtype: str) -> None:
        space, self._cuts = holes.space, cuts
        count, width = len(space.alpha.strings), holes.reached.shape[1]
        of = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts) * width)
        keys, at = np.unique(of * count + holes.reached.ravel(), return_index=True)
        self.task, self.row = keys // count, keys % count
        lowest = at // width
        self.home: Flags = holes.home[self.row] == lowest
        sectors = holes.row_irreps[self.row].astype(np.int64) ^ space.irrep
        offsets = space.beta.offsets
        self.begins = np.where(self.home, offsets[sectors], holes.begins(self.row, lowest))
        unit = layout(dtype).unit
        self.first = (self.begins - offsets[sectors]) // unit * unit
        self.last = -(-np.diff(offsets)[sectors] // unit) * unit
        self.sizes: Integers = self.last - self.first
        self.largest = int(np.bincount(self.task, self.sizes).max())

    def tasks(self, costs: Sequence[float]) -> list[Task]:
        edges = np.searchsorted(self.task, np.arange(len(self._cuts))).tolist()
        found = []
        for k, (begin, end) in enumerate(pairwise(edges)):
            rows, home, begins = self.row[begin:end], self.home[begin:end], self.begins[begin:end]
            holes = range(int(self._cuts[k]), int(self._cuts[k + 1]))
            found.append(Task(holes, rows[home], rows[~home], begins[~home], costs[k]))
        return found


def make_node_tasks(
    holes: Holes, nodes: tuple[int, ...], of_process: int, limit: int, dtype: str
) -> NodeTasks | None:
    """About so many tasks for each process. None if a task has more than `limit` elements in a panel."""
    space = holes.space
    flops, count = _Flops(space), of_process * sum(nodes)
    cost = np.arange(float(len(holes)), 0.0, -1.0) if space.folded else np.ones(len(holes))
    cost = cost * (flops.opposite / cost.sum()) + flops.row * np.bincount(holes.home, minlength=len(holes))
    sums = np.concatenate([[0.0], np.cumsum(cost)])
    cuts = np.unique(np.searchsorted(sums, np.linspace(0.0, sums[-1], count + 1)[:-1]))
    rows = _Rows(holes, np.append(cuts, len(holes)), dtype)
    slabs = _slabs(space, min(limit, space.determinants // count), flops.column, dtype)
    slab = max([slab.elements(space, layout(dtype)) for slab in slabs], default=0)
    if max(rows.largest, slab) > limit:
        return None
    return NodeTasks(nodes, rows, np.diff(sums[np.append(cuts, len(holes))]).tolist(), slabs, slab)


def make_deal(
    work: NodeTasks, tiles: TilesOfNodes, space: Space, *, near_tiles: bool = False, copied: bool = False
) -> Deal:
    """Rows lie where tasks have them at home, or `near_tiles`; `copied`: nodes have copies of those of others."""
    rows, node_of, sizes = work.rows, work.node_of, np.array(work.nodes)
    owners = tiles.owners() if near_tiles else _owners(space, rows, node_of, sizes)
    far = owners[rows.row] != node_of
    copies = None
    where, which, moved = node_of[far], rows.row[far], rows.sizes[far]
    if copied:
        copies = Copies(where, which, rows.first[far], rows.last[far], len(owners))
        where, which, moved = copies.nodes, copies.rows, copies.sizes
    taken, given = (np.bincount(each, moved, len(sizes)).astype(np.int64) for each in (where, owners[which]))
    crossing = Crossing.of(taken, given, sizes, both=True)
    return Deal(work, owners, crossing, tiles.turning(owners, sizes), tiles.boxes(owners), copies)


def _owners(space: Space, rows: _Rows, node_of: Integers, sizes: Integers) -> Integers:
    """Of each row the node whose task has it at home; a node that would have more than its share leaves some to the
    node that moves most of them beside it. node_of: of what tasks move; sizes: processes of nodes."""
    owners = np.zeros(len(space.alpha.strings), np.int64)
    owners[rows.row[rows.home]] = node_of[rows.home]
    most = -(-len(owners) * sizes // sizes.sum())
    for number in range(_ROUNDS):
        room = most - np.bincount(owners, minlength=len(sizes))
        beside = (owners[rows.row] != node_of) & (room[owners[rows.row]] < 0)
        some = np.flatnonzero(beside & (room[node_of] > 0) if number else beside)
        order = some[np.lexsort((rows.sizes[some], rows.row[some]))]
        other = np.full(len(owners), -1)  # of each row the node that moves most of it beside its owner
        other[rows.row[order]] = node_of[order]
        moved = np.flatnonzero(other >= 0)
        moved = moved[_ranks(owners[moved]) < -room[owners[moved]]]
        moved = moved[_ranks(other[moved]) < room[other[moved]]]
        owners[moved] = other[moved]
    return owners


def _ranks(of: Integers) -> Integers:
    """How many before each are equal to it."""
    order = np.argsort(of, kind="stable")
    found = np.empty(len(of), np.int64)
    found[order] = np.arange(len(of)) - np.searchsorted(of[order], of[order])
    return found


def _slabs(space: Space, most: int, flops: float, dtype: str) -> list[Task]:
    """Of columns, each of which takes so many operations; with one at least."""
    if space.folded:
        return []
    unit = layout(dtype).unit
    column = -(-max(space.counts[0]) // unit) * unit
    found = make_slabs(space, max(most, column), layout(dtype), transposed=True)
    assert found is not None, "a column does not fit into its own size"
    return [replace(slab, cost=flops * len(slab.home)) for slab in found]
