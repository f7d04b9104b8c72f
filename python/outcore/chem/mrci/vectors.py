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

BLOCK_ELEMENTS = 1 << 18  # elements of each vector that a pass has in memory at a time
UNIT_ELEMENTS = 1 << 12  # elements of records that are moved together, unless one record is larger


class VectorLayout:
    """The common layout of all vectors of a space.

    units: ranges of records that are moved together. blocks: ranges of units that passes work on. penalty: metric
    of all determinants except the references: 1 for CI, less for ACPF and AQCC.
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
        """The elements of a block in a vector."""
        records = self.records_of(block)
        return slice(int(self.offsets[records.start]), int(self.offsets[records.stop]))

    def size(self, block: int) -> int:
        found = self.slice(block)
        return int(found.stop - found.start)

    def weights(self, block: int) -> Array:
        """How often each element of a block counts."""
        return self._repeated(self.records.weights, block)

    def metric(self, block: int) -> Array:
        """The weight of each element of a block, times the metric of the functional."""
        return self._repeated(self._metric, block)

    def _repeated(self, values: Array, block: int) -> Array:
        records = self.records_of(block)
        return np.repeat(values[records], self.records.sizes[records])

    def fold(self, block: int, scale: float, data: Array) -> None:
        if self.records.parity:
            records = self.records_of(block)
            self.space.fold(records.start, records.stop, scale, data)


class Vector(Protocol):
    """A vector, zero at first. Several threads may read and write blocks, but only one at a time the same block."""

    def read(self, block: int) -> Array:
        """The elements of a block. The caller must not change them."""

    def write(self, block: int, data: Array) -> Array:
        """Writes a block. Returns the stored elements, which may be rounded."""

    def expect(self, size: float | None, *, idle: bool = False) -> None:
        """Tells the vector what the caller is going to write. size: about the norm, if that is a correction of a
        state; None: states. idle: the vector will not soon be multiplied or added to."""

    def close(self) -> None: ...


class MemoryVector:
    """A vector in one array."""

    def __init__(self, layout: VectorLayout) -> None:
        self.layout = layout
        self.data: Array = np.zeros(layout.space.size)

    def read(self, block: int) -> Array:
        return self.data[self.layout.slice(block)]

    def write(self, block: int, data: Array) -> Array:
        self.data[self.layout.slice(block)] = data
        return data

    def expect(self, size: float | None, *, idle: bool = False) -> None:
        """Nothing to do: elements are not rounded."""

    def close(self) -> None:
        self.data = np.zeros(0)
