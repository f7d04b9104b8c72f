"""Rows of other nodes, near to the tasks of a node that need them: each comes over the network once in a product,
however many tasks need it, and what they add to it goes back once.

Each process of a node gets some of the rows of x ahead of the tasks, in their order, into memory that all processes
of the node reach. A row of T is summed there; the last task that adds to it sends the sum. Which tasks need a row
is known before; a counter for each row says how many are left.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.chem.ci.deal import pitch
from outcore.job.collective import Closing

if TYPE_CHECKING:
    from outcore.chem.ci.copies import Copies
    from outcore.chem.ci.space import Integers, Space
    from outcore.chem.ci.vector import Array
    from outcore.job.world import World
    from outcore.parallel.requests import Request

_AHEAD = 32  # rows under way
_POLL_S = 0.0002

Stopped = Callable[[], bool]


class Near(Closing):
    """Copies of rows of x, and sums of rows of T, of this type. Making it, `clear`, `begin` and `close` are
    collective; the rest is for each process alone. `x`, `t`: all rows, each at its place of `places`."""

    def __init__(
        self,
        world: World,
        space: Space,
        dtype: str,
        copies: Copies,
        x: GlobalArray,
        t: GlobalArray,
        places: Integers,
    ) -> None:
        self._world, self._all_x, self._all_t, self._all_places = world, x, t, places
        process = copies.processes(world.gather(world.node))
        room = np.maximum(
            np.bincount(process, minlength=world.size), 1
        )  # a process without any has one for none
        begins = np.cumsum(room) - room
        order = np.argsort(process, kind="stable")
        within = np.arange(len(order)) - np.searchsorted(process[order], process[order])
        self._places = np.empty(len(process), np.int64)
        self._places[order] = begins[process[order]] + within
        self._copies = copies
        self._own = order[process[order] == world.rank]
        count, width = int(room.sum()), pitch(space, dtype)
        shape, cuts = (count, width), [begins.tolist(), [0]]
        self._x, self._t = (GlobalArray(world, shape, dtype, distribution=cuts) for _ in range(2))
        # Of each copy whether x is there, and how many tasks are left that add to T.
        self._there, self._left = (
            GlobalArray(world, (count,), "int64", distribution=[begins.tolist()]) for _ in range(2)
        )
        self._failed = GlobalArray(world, (world.size,), "int64")

    def close(self) -> None:
        for each in (self._x, self._t, self._there, self._left, self._failed):
            each.close()

    # ---- life of a product ----

    def begin(self) -> None:
        """Of a new x, none of whose tasks are done."""
        self._there.local[...] = 0
        self._failed.local[...] = 0
        self._left.local[: len(self._own)] = self._copies.users[self._own]
        self.clear()  # after which no process is in an earlier product

    def clear(self) -> None:
        """Sums are zero."""
        self._t.local[...] = 0
        for each in (self._there, self._left, self._failed, self._t):
            each.sync()

    def fetch(self, stopped: Stopped) -> int:
        """Gets the copies of this process, in the order of tasks, those that are not there yet. Returns bytes."""
        moved, under_way = 0, deque[tuple[int, "Request"]]()
        first = int(self._places[self._own[0]]) if len(self._own) else 0
        there = self._there.local[: len(self._own)] > 0

        def arrived() -> None:
            place, request = under_way.popleft()
            request.wait()
            self._there.read_increment(place)

        for number in np.flatnonzero(~there).tolist():
            if stopped():
                break
            if len(under_way) == _AHEAD:
                arrived()
            copy = self._own[number]
            begin, end = int(self._copies.begins[copy]), int(self._copies.ends[copy])
            row = int(self._copies.rows[copy])
            into = self._x.local[number, begin:end]
            request = self._all_x.get_async(np.s_[int(self._all_places[row]), begin:end], into)
            under_way.append((first + number, request))
            moved += into.nbytes
        while under_way:
            arrived()
        return moved

    def fail(self) -> None:
        """Nobody waits for a copy any more."""
        for rank in range(self._world.size):
            self._failed.read_increment(rank)

    def send_rest(self) -> int:
        """Sends the sums of this process that wait for tasks which another round does. Returns bytes."""
        moved = 0
        for number in np.flatnonzero(self._left.local[: len(self._own)] > 0).tolist():
            moved += self._send(int(self._own[number]), self._t.local[number])
        return moved

    # ---- tasks ----

    def find(self, node: int, rows: Integers) -> Integers:
        """The copy of each of these rows at a node, or -1."""
        return self._copies.find(node, rows)

    def wait(self, copies: Integers, stopped: Stopped) -> bool:
        """Until they are there; false if they will not come."""
        places = self._places[copies][:, None]
        while True:
            places = places[self._there.gather(places) == 0]
            failed = self._failed.read_increment(self._world.rank, 0)  # atomic: copies are read after that
            if not len(places) or failed or stopped():
                return not len(places)
            time.sleep(_POLL_S)

    def get_x(self, copy: int, begin: int, values: Array) -> Request:
        return self._x.get_async(np.s_[int(self._places[copy]), begin : begin + len(values)], values)

    def add_t(self, copy: int, begin: int, values: Array) -> Request:
        return self._t.acc_async(np.s_[int(self._places[copy]), begin : begin + len(values)], values)

    def done(self, copy: int) -> int:
        """A task has added to it, there or where the row lies: the last one sends the sum. Returns bytes."""
        place = int(self._places[copy])
        if self._left.read_increment(place, -1) != 1:
            return 0
        return self._send(copy, self._t.get(np.s_[place]))

    def _send(self, copy: int, values: Any) -> int:
        begin, end = int(self._copies.begins[copy]), int(self._copies.ends[copy])
        place = int(self._all_places[int(self._copies.rows[copy])])
        self._all_t.acc(np.s_[place, begin:end], values[begin:end])
        return int(values[begin:end].nbytes)
