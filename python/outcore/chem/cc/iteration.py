"""The result of an iteration of coupled cluster, and its progress."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.parallel.tasks import Progress


@dataclass(frozen=True)
class Moved:
    """Bytes to and from disk, over all processes. planned: as the plan predicts. counted: actual; for ladders by
    the rows that were made, fewer where another run has made some. least: the least traffic of each product by
    itself in its memory, for any order and tiles."""

    planned: float = 0.0
    counted: float = 0.0
    least: float = 0.0

    def __add__(self, other: Moved) -> Moved:
        return Moved(self.planned + other.planned, self.counted + other.counted, self.least + other.least)

    def __sub__(self, other: Moved) -> Moved:
        return Moved(self.planned - other.planned, self.counted - other.counted, self.least - other.least)

    @property
    def over_least(self) -> float:
        """Planned bytes over the least."""
        return self.planned / max(self.least, 1.0)


NOTHING = Moved()


@dataclass(frozen=True)
class Iteration:
    """energy, change: Hartree. norm: of the change of the amplitudes. moved: disk traffic of its products."""

    number: int
    energy: float
    change: float
    norm: float
    seconds: float
    moved: Moved = NOTHING


class Meter:
    """Tells how far an iteration is, by the operations of its products. Any thread.

    Args:
        expected: operations of all products of the iteration.
    """

    def __init__(self, expected: float = 0.0, tell: Progress | None = None) -> None:
        self.done = 0.0
        self._expected, self._tell = expected, tell
        self._guard = threading.Lock()

    def add(self, operations: float) -> None:
        with self._guard:
            self.done += operations
            if self._tell is not None and self._expected > 0:
                self._tell(min(self.done / self._expected, 1.0))
