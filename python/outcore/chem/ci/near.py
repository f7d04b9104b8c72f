"""Rows of other nodes, near to the tasks of a node that need them: each comes over the network once in a product,
however many tasks need it, and what they add to it goes back once.

Each process of a node gets some of the rows of x ahead of the tasks, in their order, into memory that all processes
of the node reach, and posts each that has come. A row of T is summed there; the last task that adds to it sends the
sum. Which tasks need a row is known before; a counter for each row says how many are left, and goes down once what
a task has added has arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.arrays.node_array import NodeArray
from outcore.chem.ci.deal import pitch
from outcore.job.collective import Closing

if TYPE_CHECKING:
    from outcore.chem.ci.copies import Copies
    from outcore.chem.ci.space import Integers, Space
    from outcore.chem.ci.vector import Array
    from outcore.job.world import World
    from outcore.parallel.requests import Request

_AHEAD = 32  # rows under way
_LOOK_S = 0.05  # between looks whether the product has failed

Stopped = Callable[[], bool]


class Near(Closing):
    """Copies of rows of x, and sums of rows of T, of this type. Making it, `clear`, `begin`, `sync` and `close` are
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
        node_of = np.array(world.gather(world.node))
        process = copies.processes(node_of)
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
        here = np.flatnonzero(node_of[process] == world.node)
        self._elements = np.full(len(process), -1, np.int64)  # of `_there`, of copies of this node
        self._elements[here] = np.arange(len(here))
        count, width = int(room.sum()), pitch(space, dtype)
        shape, cuts = (count, width), [begins.tolist(), [0]]
        self._x, self._t = (GlobalArray(world, shape, dtype, distribution=cuts) for _ in range(2))
        # Of each copy of this node whether x is there; the last: whether a process of the node has failed.
        self._failed = len(here)
        self._there = NodeArray(world, (len(here) + 1,), "int32")
        # Of each copy how many tasks are left that add to T.
        self._left = GlobalArray(world, (count,), "int64", distribution=[begins.tolist()])

    def close(self) -> None:
        for each in (self._x, self._t, self._there, self._left):
            each.close()

    # ---- life of a product ----

    def begin(self) -> None:
        """Of a new x, none of whose tasks are done; `clear` follows, after which no process is in an earlier
        product."""
        self._there.view[self._elements[self._own]] = 0
        self._there.view[self._failed] = 0
        self._left.local[: len(self._own)] = self._copies.users[self._own]

    def clear(self) -> None:
        """Sums are zero."""
        self._t.local[...] = 0
        self.sync()

    def sync(self) -> None:
        """What any process has added and counted is there for all."""
        self._left.sync()
        self._t.sync()

    def fetch(self, stopped: Stopped) -> int:
        """Gets the copies of this process, in the order of tasks, those that are not there yet. Returns bytes."""
        moved, under_way = 0, deque[tuple[int, "Request"]]()
        elements = self._elements[self._own]
        there, local = self._there.view[elements] > 0, self._x.local

        def arrived() -> None:
            element, request = under_way.popleft()
            request.wait()
            self._there.post(element, 1)

        for number in np.flatnonzero(~there).tolist():
            if stopped():
                break
            if len(under_way) == _AHEAD:
                arrived()
            copy = self._own[number]
            begin, end = int(self._copies.begins[copy]), int(self._copies.ends[copy])
            row = int(self._copies.rows[copy])
            into = local[number, begin:end]
            request = self._all_x.get_async(np.s_[int(self._all_places[row]), begin:end], into)
            under_way.append((int(elements[number]), request))
            moved += into.nbytes
        while under_way:
            arrived()
        return moved

    def fail(self) -> None:
        """Nobody of this node waits for a copy any more."""
        self._there.post(self._failed, 1)

    def send_rest(self) -> int:
        """Sends the sums of this process that wait for tasks which another round does, after `sync`. Returns
        bytes."""
        left = np.flatnonzero(self._left.local[: len(self._own)] > 0)
        return self._send(
            (copy, self._t.local[number]) for number, copy in zip(left, self._own[left], strict=True)
        )

    # ---- tasks ----

    def find(self, node: int, rows: Integers) -> Integers:
        """The copy of each of these rows at a node, or -1."""
        return self._copies.find(node, rows)

    def wait(self, copies: Integers, stopped: Stopped) -> bool:
        """Until copies of this node are there; false if they will not come. Raises OutcoreError (ECONNRESET): a
        process of the node has died."""
        for element in self._elements[copies].tolist():
            while not self._there.wait_for(element, 1, _LOOK_S):
                if stopped() or self._there.view[self._failed]:
                    return False
        return True

    def get_x(self, copy: int, begin: int, values: Array) -> Request:
        return self._x.get_async(np.s_[int(self._places[copy]), begin : begin + len(values)], values)

    def add_t(self, copy: int, begin: int, values: Array) -> Request:
        return self._t.acc_async(np.s_[int(self._places[copy]), begin : begin + len(values)], values)

    def done(self, copies: Integers, stopped: Stopped) -> int:
        """A task has added to them, there or where the rows lie: the last one sends the sums. Returns bytes."""
        self._world.flush()  # a request ends before what it adds has arrived
        places = self._places[copies].tolist()
        return self._send(
            (copy, self._t.get(np.s_[place]))
            for copy, place in zip(copies.tolist(), places, strict=True)
            if not stopped() and self._left.read_increment(place, -1) == 1
        )

    def _send(self, sums: Iterable[tuple[int, Any]]) -> int:
        """Adds the sum of each copy to its row. Returns bytes."""
        moved, under_way = 0, deque["Request"]()
        for copy, values in sums:
            if len(under_way) == _AHEAD:
                under_way.popleft().wait()
            begin, end = int(self._copies.begins[copy]), int(self._copies.ends[copy])
            place = int(self._all_places[int(self._copies.rows[copy])])
            under_way.append(self._all_t.acc_async(np.s_[place, begin:end], values[begin:end]))
            moved += int(values[begin:end].nbytes)
        for request in under_way:
            request.wait()
        return moved
