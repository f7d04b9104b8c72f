"""Threads that multiply: who gives them steps looks for the next panels meanwhile, on one of their cores. So parts
of a step belong to no thread: each takes the next one, and none waits for another that has less of a core."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import NamedTuple, Self

from outcore.base.errors import OutcoreError
from outcore.base.threads import start

Work = Callable[[], None]


class _Part(NamedTuple):
    """`before`: of the same part of the step before, released when it is done; `done`: of this one, and of one part
    of its step."""

    work: Work
    before: threading.Lock | None
    done: threading.Lock
    of_step: threading.Semaphore


class Crew:
    """So many threads. One thread gives them steps, and waits for them in the order in which it gave them. Part i
    of a step begins when part i of the step before is done: both may be of the same part of a result."""

    def __init__(self, threads: int) -> None:
        self._queue: SimpleQueue[_Part | None] = SimpleQueue()
        self._last: list[threading.Lock | None] = []  # parts of earlier steps, by number
        self._errors: list[BaseException] = []
        self._given: deque[tuple[threading.Semaphore, int]] = (
            deque()
        )  # steps under way: their parts that are done
        self._threads: list[threading.Thread] = []
        try:
            for _ in range(threads):
                self._threads.append(start("outcore-crew", self._work))
        except OutcoreError:
            self.__exit__()
            raise

    def give(self, parts: Sequence[Work]) -> None:
        """A step, of any number of parts."""
        of_step = threading.Semaphore(0)
        self._given.append((of_step, len(parts)))
        self._last += [None] * (len(parts) - len(self._last))
        for number, work in enumerate(parts):
            before, done = self._last[number], threading.Lock()
            done.acquire()
            self._last[number] = done
            self._queue.put(_Part(work, before, done, of_step))

    def wait(self) -> None:
        """For the step that was given first. Raises the first error of any thread."""
        of_step, count = self._given.popleft()
        for _ in range(count):
            of_step.acquire()
        if self._errors:
            raise self._errors[0]

    @property
    def under_way(self) -> int:
        """Steps that were not waited for."""
        return len(self._given)

    def _work(self) -> None:
        while (part := self._queue.get()) is not None:
            if part.before is not None:
                part.before.acquire()
            try:
                if not self._errors:
                    part.work()
            except BaseException as error:
                self._errors.append(error)
            part.done.release()
            part.of_step.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
