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
    """Rows [begin : begin + len(rows), :], valid until `release` is called."""

    begin: int
    rows: Matrix
    release: Callable[[], None] = lambda: None


class DiskPass:
    """A pass over the rows of a disk array. In each round every process gets one batch of rows. All processes call
    `start`, take `batches` until there are none, and call `close`. After an error only `close` is allowed.

    Args:
        disk: two dimensions [rows][columns].
        buffers: global arrays with `size` rows at each process. They are used in turn, not when they become free:
            threads end in any order, and all processes must read into the same buffer.
        kept_at: path for errors, if the array outlasts the run.
        stop: number of rows to read; None: all.
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
        """The batches of this process; it must `release` each. Raises errors of reads, at all processes."""
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
        """Takes part in the remaining reads, for which other processes wait."""
        self._ahead.finish()

    def _read(self, begin: int, slot: int) -> Request:
        end = min(begin + self._size * self._world.size, self._stop)
        section = self._buffers[slot].section(np.s_[: end - begin, :])
        return self._disk.read_all_async(section, np.s_[begin:end, :])
