"""Tiles of occupied orbitals, fetched ahead of their use."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ri.plan import TILES, TransformPlan

if TYPE_CHECKING:
    from outcore.chem.ri.transformed import Transformed

Matrix = NDArray[np.float64]
Range = tuple[int, int]


@dataclass
class Tile:
    """B[:, begin:end, :] as `values` [P][i][a]."""

    begin: int
    end: int
    values: Matrix
    transfer: Any = None

    def ready(self) -> Tile:
        if self.transfer is not None:
            self.transfer.wait()
            self.transfer = None
        return self


class TileReader:
    """Blocks of `first` and tiles of `second` for a stream of tasks (ranges of each). A block is held until a task
    names another; tiles are read ahead; what this process has in its memory is used in place. A tile within
    the block that is held is not read again."""

    def __init__(self, first: Transformed, second: Transformed, plan: TransformPlan) -> None:
        self._first, self._second = first, second
        self._plan = plan
        self._block_buffer: Matrix | None = None
        self._tile_buffers: deque[Matrix] = deque()
        self._made = 0
        self._block: Tile | None = None
        self.waited_seconds = 0.0  # for tiles and blocks, so far

    def tiles(self, tasks: Iterable[tuple[Range, Range]]) -> Iterator[tuple[Tile, Tile]]:
        """Block and tile of each task; valid until the next."""
        source = iter(tasks)
        ahead: deque[tuple[Range, Tile]] = deque()
        more = True
        while more or ahead:
            while more and len(ahead) < TILES:
                task = next(source, None)
                if task is None:
                    more = False
                else:
                    ahead.append((task[0], self._start(task)))
            if not ahead:
                return
            wanted, tile = ahead.popleft()
            block = self._hold(wanted)
            yield block, self._ready(tile)
            self._give_back(tile)

    def _ready(self, tile: Tile) -> Tile:
        asked = time.monotonic()
        tile.ready()
        self.waited_seconds += time.monotonic() - asked
        return tile

    def _start(self, task: tuple[Range, Range]) -> Tile:
        begin, end = task[1]
        local = self._second.local(begin, end)
        if local is not None:
            return Tile(begin, end, local)
        buffer = self._tile_buffers.popleft() if self._tile_buffers else None
        if buffer is None:
            buffer = np.empty(self._plan.tile * self._second.rows * self._second.orbitals.shape[1])
        values = _shaped(buffer, self._second, end - begin)
        tile = Tile(begin, end, values, self._second.get(begin, end, values))
        tile.buffer = buffer  # type: ignore[attr-defined]
        return tile

    def _give_back(self, tile: Tile) -> None:
        buffer = getattr(tile, "buffer", None)
        if buffer is not None:
            self._tile_buffers.append(buffer)

    def _hold(self, wanted: Range) -> Tile:
        if self._block is None or (self._block.begin, self._block.end) != wanted:
            begin, end = wanted
            local = self._first.local(begin, end)
            if local is not None:
                self._block = Tile(begin, end, local)
            else:
                if self._block_buffer is None:
                    self._block_buffer = np.empty(
                        self._plan.block * self._first.rows * self._first.orbitals.shape[1]
                    )
                values = _shaped(self._block_buffer, self._first, end - begin)
                self._block = self._ready(Tile(begin, end, values, self._first.get(begin, end, values)))
        return self._block


def _shaped(buffer: Matrix, source: Transformed, orbitals: int) -> Matrix:
    size = source.rows * orbitals * source.orbitals.shape[1]
    return buffer[:size].reshape(source.rows, orbitals, source.orbitals.shape[1])
