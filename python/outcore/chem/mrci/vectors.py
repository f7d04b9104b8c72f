"""Vectors of a multireference CI: records in blocks, in the memory of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outcore import _core
    from outcore.chem.mrci.records import Records

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK_ELEMENTS = 1 << 18  # of vectors that a pass has in memory at a time


class Layout:
    """What is the same for all vectors of a space.

    blocks: ranges of records that passes work on. penalty: metric of all but the references: 1 for CI; ACPF and
    AQCC have less.
    """

    def __init__(self, records: Records, penalty: float = 1.0, block_elements: int = BLOCK_ELEMENTS) -> None:
        self.records, self.penalty = records, penalty
        self.space: _core.MRCISpace = records.native()
        self.offsets: Integers = self.space.offsets
        self.blocks = records.blocks(block_elements)
        self._metric = records.weights * np.where(records.is_reference, 1.0, penalty)

    def size(self, block: int) -> int:
        first, last = self.blocks[block]
        return int(self.offsets[last] - self.offsets[first])

    def slice(self, block: int) -> slice:
        first, last = self.blocks[block]
        return slice(int(self.offsets[first]), int(self.offsets[last]))

    def weights(self, block: int) -> Array:
        """How often each element of a block counts."""
        return self._repeated(self.records.weights, block)

    def metric(self, block: int) -> Array:
        """The same, times what a wave function is normalised with."""
        return self._repeated(self._metric, block)

    def _repeated(self, values: Array, block: int) -> Array:
        first, last = self.blocks[block]
        return np.repeat(values[first:last], self.records.sizes[first:last])

    def fold(self, block: int, scale: float, data: Array) -> None:
        if self.records.parity:
            self.space.fold(*self.blocks[block], scale, data)


class Vector(Protocol):
    """Zero at first. Blocks may be read and written by several threads, each block by one at a time."""

    def read(self, block: int) -> Array:
        """Not to be changed."""

    def write(self, block: int, data: Array) -> Array:
        """Returns what is stored, which may be rounded."""

    def close(self) -> None: ...


class MemoryVector:
    """In one array."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.data: Array = np.zeros(layout.space.size)

    def read(self, block: int) -> Array:
        return self.data[self.layout.slice(block)]

    def write(self, block: int, data: Array) -> Array:
        self.data[self.layout.slice(block)] = data
        return data

    def close(self) -> None:
        self.data = np.zeros(0)
