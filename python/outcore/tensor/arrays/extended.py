"""Extended arrays in contractions: tiles of layouts with symmetry, read in any order, written where stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from outcore import _core
from outcore.job.world import World
from outcore.parallel.requests import Request
from outcore.tensor.arrays.array import Array as ExtendedArray
from outcore.tensor.layout import stored_types
from outcore.tensor.layout.layout import Layout, Tile
from outcore.tensor.layout.operands import Box, Facts, Operand, Tiled, Use, Where, plain_operand, tiles_of

Values = np.ndarray[Any, np.dtype[Any]]


class ExtendedOperand(Tiled):
    """An `outcore.Array`."""

    def __init__(self, array: ExtendedArray) -> None:
        layout = array.layout
        where: Where = "process"
        place = array.backend.planned_as or array.where
        if place in ("node", "global", "disk"):
            where = place  # type: ignore[assignment]
        self.array, self.world = array, array.world
        self.facts = layout_facts(layout, array.dtype, where, array.store_dtype.itemsize)

    @property
    def storage(self) -> Any:
        return self.array.backend.storage

    @property
    def read_only(self) -> bool:
        return bool(self.array.backend.read_only)

    def native(self, use: Use) -> _core.Boxes | None:
        array: ExtendedArray = self.array
        several = use != "get" and array.backend.copies > 1
        if not array.layout.rank or array.store_dtype != array.dtype or several:
            return None
        return array.backend.native(self.max_bytes, adds=use == "add")

    def _lands_in(self, tile: Tile, target: Values) -> bool:
        return bool(self.array.lands_in(tile, target))

    def _bring(self, tile: Tile, target: Values) -> Request:
        found: Request = self.array.get_tile_into(tile, target)
        return found

    def put(self, box: Box, value: Values, *, add: bool) -> list[Request]:
        """Puts a box; if there are copies, only into that of this process or of its node."""
        if self.array.backend.copies == 1:
            return super().put(box, value, add=add)
        stored = self.array.layout.numbers
        return [
            self._put_copy(tile, stored[tile], value[inside], add=add)
            for tile, inside in tiles_of(self.facts.tiles, box)
            if tile in stored
        ]

    def _put_copy(self, tile: Tile, number: int, value: Values, *, add: bool) -> Request:
        array: ExtendedArray = self.array
        values = np.asarray(value + array.get_tile(tile) if add else value, array.dtype, order="C")
        return array.backend.put_async(number, stored_types.rounded(values, array.store_dtype, array))

    def copies(self, world: World) -> int:
        return int(self.array.backend.copies)

    def take(self, world: World, source: Operand, *, add: bool) -> None:
        array: ExtendedArray = self.array
        array.fill_copies(lambda number: self._taken(source, number, add=add), "einsum")

    def _taken(self, source: Operand, number: int, *, add: bool) -> Values:
        """The final elements of a stored tile."""
        layout = self.array.layout
        tile = layout.stored[number]
        block = np.empty(layout.tile_shape(tile), self.facts.dtype)
        for request in source.get([(side.start, side.stop) for side in layout.box(tile)], block):
            request.wait()
        return block + self.array.get_tile(tile) if add else block

    def sync(self) -> None:
        self.array.sync()


def layout_facts(layout: Layout, dtype: np.dtype[Any], where: Where, item_bytes: int) -> Facts:
    """Facts of an array of this layout."""
    key = "facts", dtype.str, where, item_bytes
    found: Facts | None = layout.derived.get(key)
    if found is None:
        found = layout.derived[key] = _facts(layout, dtype, where, item_bytes)
    return found


def _facts(layout: Layout, dtype: np.dtype[Any], where: Where, item_bytes: int) -> Facts:
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
    """The operand of an array of any kind. Raises TypeError for other objects."""
    if isinstance(array, Operand):
        return array
    return ExtendedOperand(array) if isinstance(array, ExtendedArray) else plain_operand(array)
