"""Rows of a vector x and of a product T in the memory of all processes, each at a node whose tasks need it: see
deal.py.

Of a folded vector both halves are there. A task moves its rows, each from the column on that it needs, and nothing
else. Each process puts the tiles of x that it has into rows before tasks begin, and adds rows of T to the tiles of
the product when they have ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.chem.ci.deal import pitch
from outcore.chem.ci.near import Near
from outcore.job.collective import Closing

if TYPE_CHECKING:
    from outcore.chem.ci.copies import Copies
    from outcore.chem.ci.passes import Place
    from outcore.chem.ci.space import Integers
    from outcore.chem.ci.tiles import VectorTile, VectorTiling
    from outcore.chem.ci.vector import Array
    from outcore.job.world import World
    from outcore.parallel.requests import Request

_AHEAD = 64  # rows under way

Stopped = Callable[[], bool]


class NodeRows(Closing):
    """Of one x and one T at a time, of this type. `owners`: of each row the node that has it, the same at all
    processes; `copies` of rows that nodes have, None: tasks move them. Making it, `clear`, `begin`, `sync` and
    `close` are collective; the rest is for each process alone, and ends early once it is `stopped`. Methods return
    bytes that were moved. Errors are those of GlobalArray."""

    def __init__(
        self, world: World, tiling: VectorTiling, dtype: str, owners: Integers, copies: Copies | None = None
    ) -> None:
        space = tiling.space
        self._tiling, self._word = tiling, np.dtype(dtype).itemsize
        self._row_offsets, self._column_offsets = space.alpha.offsets, space.beta.offsets
        self._nothing = np.zeros(space.groups, np.int64)
        self._places, begins, count = _places(owners, world.gather(world.node))
        self._x, self._t = (
            GlobalArray(world, (count, pitch(space, dtype)), dtype, distribution=[begins, [0]])
            for _ in range(2)
        )
        self._node = world.node
        self.near = (
            None if copies is None else Near(world, space, dtype, copies, self._x, self._t, self._places)
        )

    def clear(self) -> None:
        """T is zero."""
        self._t.local[...] = 0
        self._t.sync()
        if self.near is not None:
            self.near.clear()

    def sync(self) -> None:
        """What any process has put and added is there for all."""
        self._x.sync()
        self._t.sync()

    def close(self) -> None:
        if self.near is not None:
            self.near.close()
        self._x.close()
        self._t.close()

    # ---- panels ----

    def read_x(self, panel: Any, stopped: Stopped, node: int | None = None) -> int:
        """All that a panel has, of a task of this node; None: that does not use copies."""
        copies = self._copies(panel, node)
        near = self.near
        if near is None or node is None or node != self._node:
            return self._each_row(panel, stopped, self._x.get_async)
        if not near.wait(copies[copies >= 0], stopped):
            return 0  # the product ends with an error
        return self._each_row(panel, stopped, self._x.get_async, copies, near.get_x)

    def add_t(self, panel: Any, stopped: Stopped, node: int | None = None) -> tuple[int, int]:
        """Adds the rows of a panel, of a task of this node; None: that does not use copies. Returns bytes read, and
        added."""
        copies, near = self._copies(panel, node), self.near
        if near is None or node is None:
            return 0, self._each_row(panel, stopped, self._t.acc_async)
        if node == self._node:
            moved = self._each_row(panel, stopped, self._t.acc_async, copies, near.add_t)
        else:
            moved = self._each_row(panel, stopped, self._t.acc_async)
        return 0, moved + near.done(copies[copies >= 0], stopped)

    def _copies(self, panel: Any, node: int | None) -> Integers:
        """Of each row of a panel, or -1."""
        if self.near is None or node is None:
            return np.full(len(panel.rows), -1)
        return self.near.find(node, panel.rows)

    def _each_row(
        self,
        panel: Any,
        stopped: Stopped,
        move: Callable[[Any, Array], Request],
        copies: Integers | None = None,
        move_copy: Callable[[int, int, Array], Request] | None = None,
    ) -> int:
        """`move` for each row, but `move_copy` for those that have one."""
        rows, moved, under_way = panel.rows, 0, deque["Request"]()
        places = self._places[rows].tolist()
        near = [-1] * len(rows) if copies is None else copies.tolist()
        for first in range(0, len(rows), _AHEAD):
            if stopped():
                break
            last = min(first + _AHEAD, len(rows))
            ranges = panel.ranges(self._nothing, self._nothing, first, last)  # each counted in its row
            for place, copy, (offset, values) in zip(
                places[first:last], near[first:last], ranges, strict=True
            ):
                if len(under_way) == _AHEAD:
                    under_way.popleft().wait()
                begin = offset // self._word
                if not len(values):
                    continue
                if copy >= 0 and move_copy is not None:
                    under_way.append(move_copy(copy, begin, values))
                else:
                    under_way.append(move(np.s_[place, begin : begin + len(values)], values))
                moved += values.nbytes
        for each in under_way:
            each.wait()
        return moved

    # ---- tiles ----

    def put_x(self, x: Place, numbers: Sequence[int], stopped: Stopped) -> tuple[int, int]:
        """Tiles of x into rows. Returns bytes read, and put."""
        read = put = 0
        for number in numbers:
            if stopped():
                break
            tile = self._tiling[number]
            values = x.vectors.get(x.index, tile)
            under_way = [
                self._x.put_async(box, values[part]) for box, part in self._boxes(tile.first, tile.shape)
            ]
            read, put = read + values.nbytes, put + values.nbytes
            if self._is_twice(tile):
                other = values.T if self._tiling.parity > 0 else -values.T
                boxes = self._boxes(tile.first[::-1], tile.shape[::-1])
                under_way += [self._x.put_async(box, other[part]) for box, part in boxes]
                put += values.nbytes
            for each in under_way:
                each.wait()
        return read, put

    def add_to_tiles(self, y: Place, numbers: Sequence[int], stopped: Stopped) -> tuple[int, int]:
        """Adds T, and of a folded vector T + parity T^T, to tiles of y. Returns bytes read, and added."""
        read = added = 0
        for number in numbers:
            if stopped():
                break
            tile = self._tiling[number]
            values = self._get(tile.first, tile.shape, y.vectors.dtype)
            read += values.nbytes
            if self._is_twice(tile):
                values += self._tiling.parity * self._get(tile.first[::-1], tile.shape[::-1], values.dtype).T
                read += values.nbytes
            elif self._tiling.parity:
                values = values + self._tiling.parity * values.T  # exactly (anti)symmetric
            y.vectors.acc(y.index, tile, values)
            added += values.nbytes
        return read, added

    def _is_twice(self, tile: VectorTile) -> bool:
        """Whether it is also, transposed, in other rows."""
        return bool(self._tiling.parity) and not tile.on_diagonal

    def _get(self, first: tuple[int, int], shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
        found = np.empty(shape, dtype)
        under_way = [self._t.get_async(box, found[part]) for box, part in self._boxes(first, shape)]
        for each in under_way:
            each.wait()
        return found

    def _boxes(self, first: tuple[int, int], shape: tuple[int, int]) -> Iterator[tuple[Any, slice]]:
        """Of rows and columns, those that lie together: where, and which of these rows."""
        (row, column), (height, width) = first, shape
        sectors = self._column_offsets
        begin = column - int(sectors[np.searchsorted(sectors, column, side="right") - 1])
        places = self._places[row : row + height]
        cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), height]
        for k, end in pairwise(cuts):
            place = int(places[k])
            yield np.s_[place : place + end - k, begin : begin + width], slice(k, end)


def _places(owners: Integers, node_of: Sequence[int]) -> tuple[Integers, list[int], int]:
    """Of each row its place among those of all processes; the first place of each process; how many there are. Rows
    of a node lie at its processes, as many at each; a process without any has a place for none."""
    process = np.empty(len(owners), np.int64)
    for node in range(max(node_of) + 1):
        ranks = np.flatnonzero(np.asarray(node_of) == node)
        rows = np.flatnonzero(owners == node)
        process[rows] = ranks[np.arange(len(rows)) * len(ranks) // max(len(rows), 1)]
    room = np.maximum(np.bincount(process, minlength=len(node_of)), 1)
    begins = np.cumsum(room) - room
    order = np.argsort(process, kind="stable")
    sorted_by = process[order]
    within = np.arange(len(order)) - np.searchsorted(sorted_by, sorted_by)
    places = np.empty(len(owners), np.int64)
    places[order] = begins[sorted_by] + within
    return places, begins.tolist(), int(room.sum())
