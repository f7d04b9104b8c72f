"""Extended arrays in contractions: tiles of layouts with symmetry, read in any order, written where stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.tensor.array import Array as ExtendedArray
from outcore.tensor.layout import Layout
from outcore.tensor.operands import Facts, Operand, Tiled, Where, plain_operand


class ExtendedOperand(Tiled):
    """An `outcore.Array`."""

    def __init__(self, array: ExtendedArray) -> None:
        layout = array.layout
        where: Where = "process"
        if array.where in ("node", "global", "disk"):
            where = array.where  # type: ignore[assignment]
        self.array, self.world = array, array.world
        self.facts = layout_facts(layout, array.dtype, where, array.store_dtype.itemsize)

    def sync(self) -> None:
        self.array.sync()


def layout_facts(layout: Layout, dtype: np.dtype[Any], where: Where, item_bytes: int) -> Facts:
    """Of an array of this layout."""
    return Facts(
        shape=layout.shape,
        dtype=dtype,
        where=where,
        item_bytes=item_bytes,
        tilings=layout.tilings,
        readable=None if layout.there.all() else layout.there,
        stored=None if layout.is_dense else layout.canonical_flags,
    )


def operand(array: Any) -> Operand:
    """An array of any kind. Raises TypeError for what is none."""
    if isinstance(array, Operand):
        return array
    return ExtendedOperand(array) if isinstance(array, ExtendedArray) else plain_operand(array)
