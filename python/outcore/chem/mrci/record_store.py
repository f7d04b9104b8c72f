"""Records of numbers that all processes share: packed, in their memory while there is room, else in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.arrays.global_array import GlobalArray
from outcore.files.shared_file import RecordFile

if TYPE_CHECKING:
    from outcore.job.world import World

LOCKS = 128
SMALLEST_MEMORY = 4096


class RecordStore:
    """sizes: numbers of each record. memory_bytes: of this process. reserve: bytes that idle records leave to
    others. The work is done by `native`. Collective to make and to close."""

    def __init__(self, world: World, sizes: NDArray[np.int64], memory_bytes: int, reserve: int = 0) -> None:
        self._memory = GlobalArray(world, world.size * max(SMALLEST_MEMORY, memory_bytes), "uint8")
        self._directory = GlobalArray(world, 2 * len(sizes), "int64")
        self._file = RecordFile(world, "records", len(sizes), typical_record=int(np.mean(sizes)) * 4 + 64)
        self._locks = [world.lock() for _ in range(LOCKS)]
        self.native = _core.RecordStore(
            self._memory._native,
            world.counter(),
            self._directory._native,
            self._file,
            self._locks,
            sizes.tolist(),
            reserve,
        )

    def close(self) -> None:
        for each in (self._file, self._directory, self._memory):
            each.close()
