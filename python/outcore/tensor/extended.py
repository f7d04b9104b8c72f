"""Extended arrays in contractions: tiles of layouts with symmetry, read in any order, written where stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore.tensor import kernels
from outcore.tensor.array import Array as ExtendedArray
from outcore.tensor.layout import Layout
from outcore.tensor.operands import Array, Box, Facts, Operand, Waitable, Where, plain_operand, tiles_of
from outcore.tensor.requests import Then


class ExtendedOperand(Operand):
    """An `outcore.Array`."""

    def __init__(self, array: ExtendedArray) -> None:
        layout = array.layout
        where: Where = "process"
        if array.where in ("node", "global", "disk"):
            where = array.where  # type: ignore[assignment]
        self.array, self.world = array, array.world
        self.facts = layout_facts(layout, array.dtype, where, array.store_dtype.itemsize)

    def get(self, box: Box, out: Array) -> list[Waitable]:
        started: list[Waitable] = []
        for tile, inside in tiles_of(self.facts.tiles, box):
            if self.facts.readable is not None and not self.facts.readable[tile]:
                continue
            target = out[inside]
            if target.flags.c_contiguous:
                started.append(self.array.get_tile_async(tile, target))
            else:
                started.append(_copied(self.array.get_tile_async(tile), target))
        return started

    def put(self, box: Box, value: Array, *, add: bool) -> list[Waitable]:
        move = self.array.acc_tile_async if add else self.array.put_tile_async
        return [
            move(tile, value[inside])
            for tile, inside in tiles_of(self.facts.tiles, box)
            if self.facts.stored is None or self.facts.stored[tile]
        ]

    def sync(self) -> None:
        self.array.sync()


def layout_facts(layout: Layout, dtype: np.dtype[Any], where: Where, item_bytes: int) -> Facts:
    """Of an array of this layout."""
    return Facts(
        shape=layout.shape,
        dtype=dtype,
        where=where,
        item_bytes=item_bytes,
        tiles=tuple(axis.cuts for axis in layout.tilings),
        readable=None if layout.there.all() else layout.there,
        stored=None if layout.is_dense else layout.canonical_flags,
    )


def operand(array: Any) -> Operand:
    """An array of any kind. Raises TypeError for what is none."""
    if isinstance(array, Operand):
        return array
    return ExtendedOperand(array) if isinstance(array, ExtendedArray) else plain_operand(array)


def _copied(request: Waitable, target: Array) -> Waitable:
    def copy(values: Array) -> None:
        kernels.permute(target, np.asarray(values), range(target.ndim))

    return Then(request, copy)
