"""One pass of all processes over the rows of a disk array, read ahead of their use."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.keep.stages import offering
from outcore.parallel.prefetch import Prefetch

if TYPE_CHECKING:
    from outcore._core import Request
    from outcore.job.world import World

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
        stop: how many rows there are to read; None: all.
    """

    def __init__(
        self,
        world: World,
        disk: DiskArray,
        buffers: Sequence[GlobalArray],
        size: int,
        kept_at: Path | None,
        stop: int | None = None,
    ) -> None:
        self._world, self._disk, self._buffers = world, disk, buffers
        self._size, self._kept_at = size, kept_at
        self._stop = len(disk) if stop is None else stop
        rounds = range(0, self._stop, size * world.size)
        self._ahead = Prefetch(rounds, self._read, len(buffers))

    @property
    def waited_seconds(self) -> float:
        return self._ahead.waited_seconds

    def start(self) -> None:
        """Begins as many reads as there are buffers. Collective."""
        self._ahead.start()

    def batches(self) -> Generator[Batch, None, None]:
        """This process's; `release` each. Throws what a read throws, at all processes."""
        rounds = iter(self._ahead)
        while True:
            with offering(self._kept_at):
                fetched = next(rounds, None)
            if fetched is None:
                return
            mine = fetched.item + self._world.rank * self._size
            rows = self._buffers[fetched.slot].local[: max(0, min(self._size, self._stop - mine))]
            if len(rows):
                yield Batch(mine, rows, fetched.release)
            else:
                fetched.release()

    def close(self) -> None:
        """Takes part in the reads that are left, for which others wait."""
        self._ahead.finish()

    def _read(self, begin: int, slot: int) -> Request:
        end = min(begin + self._size * self._world.size, self._stop)
        section = self._buffers[slot].section(np.s_[: end - begin, :])
        return self._disk.read_all_async(section, np.s_[begin:end, :])
