"""One pass of all processes over the rows of a disk array, read ahead of their use."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ri.keep import offering
from outcore.disk_array import DiskArray
from outcore.errors import OutcoreError
from outcore.global_array import GlobalArray

if TYPE_CHECKING:
    from outcore._core import Request
    from outcore.world import World

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """Some rows [begin : begin + len(rows), :], valid until they are released."""

    begin: int
    rows: Matrix
    release: Callable[[], None] = lambda: None


class DiskPass:
    """Rows in rounds of a batch for each process, from disk to where they are needed. All processes `start` it, go
    on with `batches` until there are none, and `close` it, which is all that remains after an error.

    Args:
        disk: two dimensions [rows][columns].
        buffers: of global arrays, each of `size` rows at each process; used in turn, not as they come free: threads
            end in any order, and all processes must read into the same.
        kept_at: named in errors, if the array outlasts the run.
    """

    def __init__(
        self, world: World, disk: DiskArray, buffers: Sequence[GlobalArray], size: int, kept_at: Path | None
    ) -> None:
        self._world, self._disk, self._buffers = world, disk, buffers
        self._size, self._kept_at = size, kept_at
        self.waited_seconds = 0.0
        self._free = [threading.Semaphore() for _ in buffers]
        self._waiting = deque(enumerate(range(0, len(disk), size * world.size)))
        self._under_way: deque[tuple[int, int, Request]] = deque()

    def start(self) -> None:
        """Begins as many reads as there are buffers. Collective."""
        self._start_free()

    def batches(self) -> Generator[Batch, None, None]:
        """This process's; `release` each. Throws what a read throws, at all processes."""
        while self._waiting or self._under_way:
            self._start_free()
            turn, begin, transfer = self._under_way.popleft()
            asked = time.monotonic()
            with offering(self._kept_at):
                transfer.wait()
            self.waited_seconds += time.monotonic() - asked
            mine = begin + self._world.rank * self._size
            rows = self._buffers[turn].local[: max(0, min(self._size, len(self._disk) - mine))]
            if len(rows):
                yield Batch(mine, rows, self._free[turn].release)
            else:
                self._free[turn].release()

    def close(self) -> None:
        """Takes part in the reads that are left, for which others wait."""
        try:
            while self._waiting:
                self._start_next()
        finally:
            while self._under_way:
                with suppress(OutcoreError):
                    self._under_way.popleft()[2].wait()

    def _start_free(self) -> None:
        """Begins reads into buffers that are free, at least one."""
        while self._waiting:
            turn = self._waiting[0][0] % len(self._free)
            if not self._free[turn].acquire(blocking=not self._under_way):
                break
            self._start_next()

    def _start_next(self) -> None:
        """Stays the next if it cannot be started."""
        count, begin = self._waiting[0]
        turn = count % len(self._free)
        end = min(begin + self._size * self._world.size, len(self._disk))
        section = self._buffers[turn].section(np.s_[: end - begin, :])
        self._under_way.append((turn, begin, self._disk.read(section, np.s_[begin:end, :])))
        self._waiting.popleft()
