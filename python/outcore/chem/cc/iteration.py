"""What an iteration of coupled cluster has come to, and how far it is."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.parallel.tasks import Progress


@dataclass(frozen=True)
class Moved:
    """Bytes to and from disk, over all processes: `planned`; `counted`, of ladders by the rows that were made,
    which is less where another run has done a part; `least`: what each product by itself has to move in the memory
    that it has, whatever its order and tiles."""

    planned: float = 0.0
    counted: float = 0.0
    least: float = 0.0

    def __add__(self, other: Moved) -> Moved:
        return Moved(self.planned + other.planned, self.counted + other.counted, self.least + other.least)

    def __sub__(self, other: Moved) -> Moved:
        return Moved(self.planned - other.planned, self.counted - other.counted, self.least - other.least)


NOTHING = Moved()


@dataclass(frozen=True)
class Iteration:
    """energy, change: Hartree. norm: of the change of the amplitudes. moved: by its products, to and from disk."""

    number: int
    energy: float
    change: float
    norm: float
    seconds: float
    moved: Moved = NOTHING


class Meter:
    """Tells how far an iteration is, by the operations of its products. Any thread.

    Args:
        expected: operations of all.
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
