"""Vectors of a multireference CI: records in blocks, in the memory of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.chem.mrci.records import ranges

if TYPE_CHECKING:
    from outcore.chem.mrci.records import Records

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK_ELEMENTS = 1 << 18  # of vectors that a pass has in memory at a time
UNIT_ELEMENTS = 1 << 12  # of records that are moved together, if one is not larger


class VectorLayout:
    """What is the same for all vectors of a space.

    units: ranges of records that are moved together. blocks: ranges of units that passes work on. penalty: metric
    of all but the references: 1 for CI; ACPF and AQCC have less.
    """

    def __init__(self, records: Records, penalty: float = 1.0, block_elements: int = BLOCK_ELEMENTS) -> None:
        self.records, self.penalty = records, penalty
        self.space: _core.MRCISpace = records.native()
        self.singlets = (
            None if records.interacting is None else _core.MRCISinglets(self.space, records.interacting)
        )
        self.offsets: Integers = self.space.offsets
        self.units: Integers = np.array([0, *(last for _, last in ranges(records.sizes, UNIT_ELEMENTS))])
        self.unit_sizes: Integers = np.diff(self.offsets[self.units])
        self.unit_of: Integers = np.repeat(np.arange(len(self.unit_sizes)), np.diff(self.units))
        self.blocks = ranges(self.unit_sizes, block_elements)
        self._metric = records.weights * np.where(records.is_reference, 1.0, penalty)

    def records_of(self, block: int) -> slice:
        first, last = self.blocks[block]
        return slice(int(self.units[first]), int(self.units[last]))

    def slice(self, block: int) -> slice:
        """Of a vector."""
        records = self.records_of(block)
        return slice(int(self.offsets[records.start]), int(self.offsets[records.stop]))

    def size(self, block: int) -> int:
        found = self.slice(block)
        return int(found.stop - found.start)

    def weights(self, block: int) -> Array:
        """How often each element of a block counts."""
        return self._repeated(self.records.weights, block)

    def metric(self, block: int) -> Array:
        """The same, times what a wave function is normalised with."""
        return self._repeated(self._metric, block)

    def _repeated(self, values: Array, block: int) -> Array:
        records = self.records_of(block)
        return np.repeat(values[records], self.records.sizes[records])

    def fold(self, block: int, scale: float, data: Array) -> None:
        if self.records.parity:
            records = self.records_of(block)
            self.space.fold(records.start, records.stop, scale, data)


class Vector(Protocol):
    """Zero at first. Blocks may be read and written by several threads, each block by one at a time."""

    def read(self, block: int) -> Array:
        """Not to be changed."""

    def write(self, block: int, data: Array) -> Array:
        """Returns what is stored, which may be rounded."""

    def expect(self, size: float | None, *, idle: bool = False) -> None:
        """About the norm of what is written from now on, which is a correction of states; None: of states. idle: it
        is not multiplied, nor added to, soon."""

    def close(self) -> None: ...


class MemoryVector:
    """In one array."""

    def __init__(self, layout: VectorLayout) -> None:
        self.layout = layout
        self.data: Array = np.zeros(layout.space.size)

    def read(self, block: int) -> Array:
        return self.data[self.layout.slice(block)]

    def write(self, block: int, data: Array) -> Array:
        self.data[self.layout.slice(block)] = data
        return data

    def expect(self, size: float | None, *, idle: bool = False) -> None:
        """It is stored as it is."""

    def close(self) -> None:
        self.data = np.zeros(0)
