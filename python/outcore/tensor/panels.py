"""Panels of the operands of a product, brought ahead of their use: into memory of this process, or into memory that
all processes of a node have, so that each panel is read once a node."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from outcore.arrays.node_array import NodeArray
from outcore.base.errors import OutcoreError
from outcore.base.threads import start
from outcore.parallel import tasks as dealt
from outcore.parallel.prefetch import Waitable
from outcore.tensor.geometry import Step
from outcore.tensor.operands import Array
from outcore.tensor.panel import Side
from outcore.tensor.product_plan import Held

if TYPE_CHECKING:
    from outcore._core import Counter
    from outcore.job.world import World

Sides = tuple[Side, Side]
Panel = tuple[int, int, int]

_ALIGNED = 4096  # bytes: of panels in memory that is shared
_LOOK_S = 0.05  # between two looks at whether another process has failed
_BEYOND = 1  # steps that are asked for beyond those that have slots


def wanted(step: Step) -> tuple[Panel, Panel]:
    """The panels of a step."""
    return (step.batch, step.rows, step.inner), (step.batch, step.inner, step.columns)


class OwnPanels:
    """Of one process, in its own memory."""

    def __init__(self, sides: Sides, slots: tuple[int, int], largest: Sequence[int]) -> None:
        """`largest`: elements of a panel of each side."""
        self._sides, self._largest = sides, largest
        self.slots = self.ahead = min(slots)
        self.read = [0.0, 0.0]  # bytes
        self._held = [Held(each) for each in slots]
        self._buffers: list[list[Array | None]] = [[None] * each for each in slots]
        self._here: list[dict[int, tuple[Array, list[Waitable]]]] = [{}, {}]
        self._asked: deque[tuple[list[Array], list[list[Waitable]]]] = deque()
        self._hinted: list[Panel | None] = [None, None]  # last

    def begin(self, step: Step) -> None:
        """Asks for the panels of a step that are not here."""
        panels: list[Array] = []
        requests: list[list[Waitable]] = []  # shared with other steps that use a panel
        for side, panel in enumerate(wanted(step) if step.inner >= 0 else ()):
            slot, missing = self._held[side].take(panel)
            if missing:
                buffer = self._buffers[side][slot]
                if buffer is None:
                    buffer = self._buffers[side][slot] = np.empty(
                        self._largest[side], self._sides[side].dtype
                    )
                self._here[side][slot] = self._sides[side].get(panel, buffer)
                self.read[side] += self._sides[side].bytes_of(panel)
            matrices, started = self._here[side][slot]
            panels.append(matrices)
            requests.append(started)
        self._asked.append((panels, requests))

    def hint(self, step: Step) -> None:
        """The panels of a step will be asked for soon: what of them is on disk is read by its owner, into the
        memory that he has for it."""
        for side, panel in enumerate(wanted(step) if step.inner >= 0 else ()):
            if panel not in self._held[side] and panel != self._hinted[side]:
                self._sides[side].prefetch(panel)
                self._hinted[side] = panel

    def wait(self, stopped: Callable[[], bool]) -> list[Array] | None:
        """The panels of the step that was begun first of those that were not waited for, when they are here."""
        panels, requests = self._asked.popleft()
        for started in requests:
            while started:
                started.pop(0).wait()
        return panels

    def release(self) -> None:
        """The first step that was not released is done."""

    def stop(self) -> None:
        return

    def close(self) -> None:
        return


class NodeMemory:
    """What the processes of a node share for a product: slots of panels, and signals. Made and closed by all
    processes of the world.

    Signals, by number: whether a process has failed; of each process how many steps it has done; of each slot of
    each side the number of the panel that is in it; for each turn the piece of work that is dealt to the node, from
    1.
    """

    def __init__(
        self, world: World, slots: tuple[int, int], largest: Sequence[int], dtype: np.dtype[Any], turns: int
    ) -> None:
        self.rank, self.size = world.node_rank, world.node_size
        self.slots, self._dtype = slots, dtype
        self._largest = largest
        self.failed, self._done = 0, 1
        self._in_slot = self._done + self.size
        self._dealt = self._in_slot + sum(slots)
        made: list[NodeArray] = []
        error: OutcoreError | None = None
        try:
            made.append(NodeArray(world, max(1, shared_bytes(slots, largest, dtype)), "uint8"))
            made.append(NodeArray(world, self._dealt + turns, "int32"))
        except OutcoreError as caught:  # the same at all of this node
            error = caught
        try:
            with world.together("einsum"):
                if error is not None:
                    raise error
        except BaseException:
            for each in made:
                each.close()
            raise
        self._memory, self.signals = made
        self._view = self._memory.view

    def slot(self, side: int, number: int) -> Array:
        begin = _slot_begin(self.slots, self._largest, self._dtype, side, number)
        return self._view[begin : begin + self._largest[side] * self._dtype.itemsize].view(self._dtype)

    def done(self, process: int) -> int:
        return self._done + process

    def in_slot(self, side: int, number: int) -> int:
        return self._in_slot + side * self.slots[0] + number

    def dealt(self, turn: int) -> int:
        return self._dealt + turn

    def close(self) -> None:
        self._view = np.empty(0, np.uint8)
        self.signals.close()
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def shared_bytes(slots: tuple[int, int], largest: Sequence[int], dtype: np.dtype[Any]) -> int:
    """Of panels that the processes of a node share."""
    return _slot_begin(slots, largest, dtype, 1, slots[1])


def _slot_begin(
    slots: tuple[int, int], largest: Sequence[int], dtype: np.dtype[Any], side: int, number: int
) -> int:
    bytes_ = [-(-each * dtype.itemsize // _ALIGNED) * _ALIGNED for each in largest]
    return side * slots[0] * bytes_[0] + number * bytes_[side]


class _Fetch(NamedTuple):
    """`number`: of the panel among those of its side, from 1; `after`: steps that all must have done, for the slot
    had another panel."""

    side: int
    slot: int
    panel: Panel
    number: int
    after: int


class SharedPanels:
    """Of a process that goes through the same steps as the others of its node, each with its share of the result.
    A panel is filled by the process that has filled least until then. A thread waits for what this one fills, and
    for slots to come free: a process that has its panels goes on, wherever the others are."""

    def __init__(self, sides: Sides, memory: NodeMemory) -> None:
        self._sides, self._memory, self._signals = sides, memory, memory.signals
        self.slots = min(memory.slots)
        self.ahead = max(memory.slots) + _BEYOND
        self.read = [0.0, 0.0]
        self._held = [Held(each) for each in memory.slots]
        self._fetched = [0, 0]  # panels of each side
        self._filled = [0] * memory.size  # bytes, by each process
        self._in_slot: list[dict[int, int]] = [{}, {}]  # number of the panel
        self._last_used: list[dict[int, int]] = [{}, {}]  # steps that are done then
        self._begun = self._done = 0
        self._hints = [0, 0]
        self._hinted: list[Panel | None] = [None, None]
        self._asked: deque[list[tuple[Array, int, int]]] = deque()
        self._to_fetch: queue.SimpleQueue[_Fetch | None] = queue.SimpleQueue()
        self._closed = False
        self._error: BaseException | None = None
        try:
            self._thread = start("outcore-panels", self._fill)
        except OutcoreError:
            self.stop()
            raise

    def units(self, counter: Counter | None, count: int) -> Iterator[int]:
        """Pieces of work of this node: all, or those that its first process asks for."""
        if counter is None:
            yield from range(count)
            return
        signals, turn = self._signals, 0
        asked = dealt.tasks_of(counter, count)
        while True:
            place = self._memory.dealt(turn)
            if self._memory.rank == 0:
                unit = next(asked, count)
                signals.post(place, unit + 1)
            elif not self._sleep(place, 1):
                return
            else:
                unit = int(signals.view[place]) - 1
            if unit >= count:
                return
            yield unit
            turn += 1

    def begin(self, step: Step) -> None:
        self._begun += 1
        asked = []
        for side, panel in enumerate(wanted(step) if step.inner >= 0 else ()):
            slot, missing = self._held[side].take(panel)
            if missing:
                self._fetched[side] += 1
                self._in_slot[side][slot] = self._fetched[side]
                nbytes = self._sides[side].bytes_of(panel)
                filler = self._filled.index(min(self._filled))
                self._filled[filler] += nbytes
                if filler == self._memory.rank:
                    after = self._last_used[side].get(slot, 0)
                    self._to_fetch.put(_Fetch(side, slot, panel, self._fetched[side], after))
                    self.read[side] += nbytes
            self._last_used[side][slot] = self._begun
            matrices = self._sides[side].matrices(self._memory.slot(side, slot), panel)
            asked.append((matrices, self._memory.in_slot(side, slot), self._in_slot[side][slot]))
        self._asked.append(asked)

    def hint(self, step: Step) -> None:
        """As of OwnPanels: the processes of the node take turns."""
        for side, panel in enumerate(wanted(step) if step.inner >= 0 else ()):
            if panel not in self._held[side] and panel != self._hinted[side]:
                self._hinted[side] = panel
                self._hints[side] += 1
                if self._hints[side] % self._memory.size == self._memory.rank:
                    self._sides[side].prefetch(panel)

    def wait(self, stopped: Callable[[], bool]) -> list[Array] | None:
        """None if this process or another one has to stop."""
        panels = []
        for matrices, place, number in self._asked.popleft():
            while not self._signals.wait_for(place, number, _LOOK_S):
                if stopped() or self._has_failed():
                    if self._error is not None:
                        raise self._error
                    return None
            panels.append(matrices)
        return panels

    def release(self) -> None:
        self._done += 1
        self._signals.post(self._memory.done(self._memory.rank), self._done)

    def stop(self) -> None:
        """Of this process something has failed: the others are to stop."""
        self._signals.post(self._memory.failed, 1)

    def close(self) -> None:
        """Nothing arrives in slots afterwards."""
        self._closed = True
        self._to_fetch.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _has_failed(self) -> bool:
        return self._signals.wait_for(self._memory.failed, 1, 0)

    def _sleep(self, place: int, least: int) -> bool:
        """Until a signal has come; False if all stop before."""
        while not self._signals.wait_for(place, least, _LOOK_S):
            if self._closed or self._has_failed():
                return False
        return True

    # ---- the thread that fills slots ----

    def _fill(self) -> None:
        under_way: deque[tuple[_Fetch, list[Waitable]]] = deque()
        try:
            while True:
                try:
                    fetch = self._to_fetch.get(block=not under_way)
                except queue.Empty:
                    self._arrived(*under_way.popleft())
                    continue
                if fetch is None:
                    break
                while not self._is_free(fetch, wait=not under_way):
                    if not under_way:
                        return
                    self._arrived(*under_way.popleft())
                side = self._sides[fetch.side]
                buffer = self._memory.slot(fetch.side, fetch.slot)
                under_way.append((fetch, side.get(fetch.panel, buffer, in_place=False)[1]))
            while under_way:
                self._arrived(*under_way.popleft())
        except BaseException as error:
            self._error = error
            self.stop()
        finally:
            for _, requests in under_way:
                for request in requests:
                    with suppress(Exception):
                        request.wait()

    def _is_free(self, fetch: _Fetch, *, wait: bool) -> bool:
        places = [self._memory.done(process) for process in range(self._memory.size)]
        if wait:
            return all(self._sleep(place, fetch.after) for place in places)
        return all(self._signals.wait_for(place, fetch.after, 0) for place in places)

    def _arrived(self, fetch: _Fetch, requests: list[Waitable]) -> None:
        while requests:
            requests.pop(0).wait()
        self._signals.post(self._memory.in_slot(fetch.side, fetch.slot), fetch.number)
