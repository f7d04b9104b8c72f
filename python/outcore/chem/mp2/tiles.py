"""Tiles of occupied orbitals, fetched ahead of their use."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ri.plan import TILES, TransformPlan
from outcore.parallel.prefetch import Prefetch

if TYPE_CHECKING:
    from outcore._core import Request
    from outcore.chem.ri.transformed import Transformed

Matrix = NDArray[np.float64]
Range = tuple[int, int]


@dataclass(frozen=True)
class TransformedTile:
    """B[:, begin:end, :] as `values` [P][i][a]."""

    begin: int
    end: int
    values: Matrix


class TileReader:
    """Reads blocks of `first` and tiles of `second` for a stream of tasks (ranges of each). It holds a block until
    a task names another, and reads tiles ahead. Blocks and tiles in the memory of this process are used in
    place."""

    def __init__(self, first: Transformed, second: Transformed, plan: TransformPlan) -> None:
        self._first, self._second = first, second
        self._plan = plan
        self._block_buffer: Matrix | None = None
        self._buffers: list[Matrix | None] = [None] * TILES
        self._tiles: list[TransformedTile | None] = [None] * TILES
        self._block: TransformedTile | None = None
        self._ahead: Prefetch[tuple[Range, Range]] | None = None
        self._waited_for_blocks = 0.0

    @property
    def waited_seconds(self) -> float:
        """Seconds of waiting for tiles and blocks, so far."""
        return self._waited_for_blocks + (0.0 if self._ahead is None else self._ahead.waited_seconds)

    def tiles(
        self, tasks: Iterable[tuple[Range, Range]]
    ) -> Iterator[tuple[TransformedTile, TransformedTile]]:
        """Block and tile of each task, valid until the next. The caller may call it once."""
        self._ahead = Prefetch(tasks, self._start, TILES)
        with self._ahead:
            for (wanted, _), slot in self._ahead.in_order():
                block, tile = self._hold(wanted), self._tiles[slot]
                assert tile is not None
                yield block, tile

    def _start(self, task: tuple[Range, Range], slot: int) -> Request | None:
        begin, end = task[1]
        local = self._second.local(begin, end)
        if local is not None:
            self._tiles[slot] = TransformedTile(begin, end, local)
            return None
        buffer = self._buffers[slot]
        if buffer is None:
            buffer = np.empty(self._plan.tile * self._second.rows * self._second.orbitals.shape[1])
            self._buffers[slot] = buffer
        values = _shaped(buffer, self._second, end - begin)
        self._tiles[slot] = TransformedTile(begin, end, values)
        return self._second.get(begin, end, values)

    def _hold(self, wanted: Range) -> TransformedTile:
        if self._block is None or (self._block.begin, self._block.end) != wanted:
            begin, end = wanted
            values = self._first.local(begin, end)
            if values is None:
                if self._block_buffer is None:
                    self._block_buffer = np.empty(
                        self._plan.block * self._first.rows * self._first.orbitals.shape[1]
                    )
                values = _shaped(self._block_buffer, self._first, end - begin)
                asked = time.monotonic()
                self._first.get(begin, end, values).wait()
                self._waited_for_blocks += time.monotonic() - asked
            self._block = TransformedTile(begin, end, values)
        return self._block


def _shaped(buffer: Matrix, source: Transformed, orbitals: int) -> Matrix:
    size = source.rows * orbitals * source.orbitals.shape[1]
    return buffer[:size].reshape(source.rows, orbitals, source.orbitals.shape[1])
