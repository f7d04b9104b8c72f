"""Fetches items ahead of their use: some requests are under way while a thread works on earlier items.

def start(item, slot):
    return array.get_async(item, buffers[slot])

with Prefetch(boxes, start, slots=3) as ahead:
    for box, slot in ahead.in_order():
        use(buffers[slot])
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from outcore.base.errors import OutcoreError
from outcore.parallel.requests import Request

T = TypeVar("T")


@dataclass(frozen=True)
class Fetched(Generic[T]):
    """An item whose request is complete: the fetched data are in its slot until `release`, which any thread calls,
    once."""

    item: T
    slot: int
    release: Callable[[], None]


class Prefetch(Generic[T]):
    """Iterates over items in their order, fetched ahead into slots. Slots are used in turn, not in the order in
    which they become free: threads release them in any order, but processes that fetch collectively must all use
    the same slot for an item.

    One thread at a time iterates. After an error of `start` or of a request it yields no more items; the caller
    can only `close` or `finish`.

    Args:
        items: asked for one at a time, by the thread that iterates.
        start: `start(item, slot)` begins to fetch into that slot, which is free, and returns the request; None
            if there is nothing to wait for.
        slots: number of items in use and under way together. The caller keeps the memory of the slots until
            `close`.
    """

    def __init__(self, items: Iterable[T], start: Callable[[T, int], Request | None], slots: int) -> None:
        if slots < 1:
            raise ValueError(f"{slots} slots")
        self._items, self._start_item = iter(items), start
        self._free = [threading.Semaphore() for _ in range(slots)]
        self._next: list[T] = []  # the item that was asked for and whose request has not begun, if any
        self._begun = 0
        self._exhausted = False
        self._under_way: deque[tuple[T, int, Request | None]] = deque()
        self.waited_seconds = 0.0  # for requests, by the thread that iterates

    def start(self) -> None:
        """Begins requests for all free slots. Callers need not call it."""
        while self._start_one(wait=False):
            pass

    def __iter__(self) -> Iterator[Fetched[T]]:
        """The caller releases each item; if no slot is free, the iteration waits for a release."""
        while True:
            self._start_one(wait=not self._under_way)
            self.start()
            if not self._under_way:
                return
            item, slot, request = self._under_way.popleft()
            if request is not None:
                self._wait(request)
            yield Fetched(item, slot, self._free[slot].release)

    def in_order(self) -> Iterator[tuple[T, int]]:
        """Items and their slots, each valid until the caller asks for the next."""
        for fetched in self:
            try:
                yield fetched.item, fetched.slot
            finally:
                fetched.release()

    def finish(self) -> None:
        """Begins all remaining requests and waits for them, because collective requests need all processes, also
        after an error. It uses slots whether they were released or not. Raises errors of `start`; errors of
        requests are dropped."""
        try:
            while self._ask():
                self._begin(self._begun % len(self._free))
        finally:
            self.close()

    def close(self) -> None:
        """Waits for requests under way, so that no data arrive in slots that are gone. Errors are dropped."""
        self._exhausted, self._next = True, []
        while self._under_way:
            _, _, request = self._under_way.popleft()
            with suppress(OutcoreError):
                if request is not None:
                    request.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _wait(self, request: Request) -> None:
        asked = time.monotonic()
        try:
            request.wait()
        finally:
            self.waited_seconds += time.monotonic() - asked

    def _ask(self) -> bool:
        """Whether there is an item whose request has not begun."""
        if not self._next and not self._exhausted:
            for item in self._items:
                self._next.append(item)
                break
            self._exhausted = not self._next
        return bool(self._next)

    def _start_one(self, *, wait: bool) -> bool:
        slot = self._begun % len(self._free)
        if not self._ask() or not self._free[slot].acquire(blocking=wait):
            return False
        try:
            self._begin(slot)
        except BaseException:
            self._free[slot].release()
            raise
        return True

    def _begin(self, slot: int) -> None:
        """Begins the request for the next item; if this fails, the item stays the next."""
        item = self._next[0]
        request = self._start_item(item, slot)
        self._under_way.append((item, slot, request))
        self._next.clear()
        self._begun += 1
