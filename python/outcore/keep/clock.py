"""When the processes of a run commit what they have finished: seldom enough to cost little, often enough that a
kill loses little."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.job.world import World

INTERVAL_S = 20.0
"""Between commits, at least: a kill loses no more than that and what is done at a time, such as a task."""
_QUICK_S = 1.0  # commits that take longer are as much rarer: they take a twentieth of the time at most


class Clock:
    """When the processes commit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last, self._interval_s = time.monotonic(), INTERVAL_S

    def is_late(self) -> bool:
        """Collective, the same at all."""
        return bool(self._world.broadcast(time.monotonic() > self.deadline()))

    def deadline(self) -> float:
        """Of the next commit, on the clock of time.monotonic."""
        return self._last + self._interval_s

    def restart(self) -> None:
        """Everything has been kept just now, in a commit that is made in any case."""
        self._last = time.monotonic()

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Collective."""
        begin = time.monotonic()
        yield
        # Of rank 0, as the interval is the same at all.
        took = float(self._world.broadcast(time.monotonic() - begin))
        self._last, self._interval_s = time.monotonic(), INTERVAL_S * max(1.0, took / _QUICK_S)
