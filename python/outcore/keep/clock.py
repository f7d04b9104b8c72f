"""Times at which the processes of a run commit finished work: rarely enough to cost little, often enough that a
kill loses little."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.job.world import World

INTERVAL_S = 20.0
"""Least time between commits: a kill loses the work of this time, and the current unit of work, such as a task."""
_QUICK_S = 1.0  # longer commits lengthen the interval in proportion, to take a twentieth of the time at most


class Clock:
    """Tells when the processes commit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last, self._interval_s = time.monotonic(), INTERVAL_S

    def is_late(self) -> bool:
        """Whether the next commit is due. Collective, the same at all."""
        return bool(self._world.broadcast(time.monotonic() > self.deadline()))

    def deadline(self) -> float:
        """Time of the next commit, on the clock of time.monotonic."""
        return self._last + self._interval_s

    def restart(self) -> None:
        """Called after a commit that is made in any case: the interval begins anew."""
        self._last = time.monotonic()

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Measures the commit in the block, and begins a new interval. Collective."""
        begin = time.monotonic()
        yield
        # The time at rank 0 counts, so that the interval is the same at all.
        took = float(self._world.broadcast(time.monotonic() - begin))
        self._last, self._interval_s = time.monotonic(), INTERVAL_S * max(1.0, took / _QUICK_S)
