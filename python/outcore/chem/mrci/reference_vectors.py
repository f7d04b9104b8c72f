"""States of the references, which the roots of a multireference CI follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.mrci.vectors import Array, Integers, VectorLayout
    from outcore.chem.small_space import Matrix


class ReferenceVectors:
    """States of the references as vectors of the whole space.

    Args:
        values: [state][reference] of normalised states; references are in the order of records.
    """

    def __init__(self, layout: VectorLayout, values: Matrix) -> None:
        self._layout, self._values = layout, values
        self._records: Integers = np.flatnonzero(layout.records.is_reference)

    def __len__(self) -> int:
        return len(self._values)

    def _of(self, block: int) -> tuple[Integers, Matrix]:
        """Positions of the references in a block, and their values [state][reference]."""
        records = self._layout.records_of(block)
        first, last = np.searchsorted(self._records, [records.start, records.stop])
        offsets = self._layout.offsets
        return offsets[self._records[first:last]] - offsets[records.start], self._values[:, first:last]

    def block(self, block: int) -> Matrix | None:
        """The block of all states [state][element]; None: it has no reference."""
        at, values = self._of(block)
        if not len(at):
            return None
        found = np.zeros((len(values), self._layout.size(block)))
        found[:, at] = values
        return found

    def products(self, block: int, x: Array) -> Matrix:
        """Scalar products [state][vector] with a block of some vectors."""
        at, values = self._of(block)
        found: Matrix = (values * self._layout.weights(block)[at]) @ x[:, at].T
        return found
