"""Threads that multiply, each its own part of a result, one step after another without waiting for the others: who
gives them steps looks for the next panels meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Self

Work = Callable[[], None]


class Crew:
    """So many threads. One thread gives them steps, and waits for them in the order in which it gave them."""

    def __init__(self, threads: int) -> None:
        self._queues: list[SimpleQueue[Work | None]] = [SimpleQueue() for _ in range(threads)]
        self._done = [threading.Semaphore(0) for _ in range(threads)]
        self._errors: list[BaseException] = []
        self._given: list[int] = []  # of each step that is under way, how many threads work on it
        self._threads = [
            threading.Thread(target=self._work, args=pair, daemon=True)
            for pair in zip(self._queues, self._done, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def give(self, parts: Sequence[Work]) -> None:
        """A step: part i for thread i, as many as there are threads at most."""
        self._given.append(len(parts))
        for queue, part in zip(self._queues, parts, strict=False):
            queue.put(part)

    def wait(self) -> None:
        """For the step that was given first. Raises the first error of any thread."""
        for done in self._done[: self._given.pop(0)]:
            done.acquire()
        if self._errors:
            raise self._errors[0]

    @property
    def under_way(self) -> int:
        """Steps that were not waited for."""
        return len(self._given)

    def _work(self, queue: SimpleQueue[Work | None], done: threading.Semaphore) -> None:
        while (part := queue.get()) is not None:
            try:
                if not self._errors:
                    part()
            except BaseException as error:
                self._errors.append(error)
            done.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()
