"""What an iteration of coupled cluster has come to, and how far it is."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.chem.cc.moved import NOTHING, Moved

if TYPE_CHECKING:
    from outcore.parallel.tasks import Progress


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
