"""Tiles that a function makes whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.parallel.requests import done, then
from outcore.tensor.arrays.backends.backend import Backend, Values, given

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout

Function = Callable[[tuple[slice, ...]], Any]


class GeneratedTiles(Backend):
    """`function(box)` returns the elements of a box, at any process, in any thread; equal ones each time."""

    where = "generated"
    read_only = True

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any], function: Function) -> None:
        super().__init__(world, layout, dtype)
        self._function = function

    def get_async(self, number: int, out: Values | None = None) -> Request:
        """The waiting thread makes the tile."""
        return then(done(), lambda _: given(self.made(number), out))

    def made(self, number: int) -> Values:
        return made(self._function, self.layout, number, self.dtype)

    def put_async(self, number: int, value: Values) -> Request:
        raise self.refuse("put", "a function makes it")

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        raise self.refuse("accumulate", "a function makes it")

    @property
    def nbytes(self) -> int:
        return 0

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


def made(function: Function, layout: Layout, number: int, dtype: np.dtype[Any]) -> Values:
    """A tile as the function makes it, contiguous. Raises ValueError or TypeError if it does not fit."""
    tile = layout.stored[number]
    value = np.asarray(function(layout.box(tile)))
    if value.shape != layout.tile_shape(tile):
        raise ValueError(
            f"the function made {value.shape} elements of tile {tile}, {layout.tile_shape(tile)}"
        )
    if not np.can_cast(value.dtype, dtype, "same_kind"):
        raise TypeError(f"the function made elements of type {value.dtype}, the array has {dtype}")
    return np.asarray(value, dtype, order="C")
