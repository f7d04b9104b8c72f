"""Tiles on the disks of all processes: a block-sparse array has one for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.sparse_array import BlockSparseArray
from outcore.tensor.arrays.backends.backend import Backend, Values

if TYPE_CHECKING:
    from outcore import _core
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout


class DiskTiles(Backend):
    """array: an existing one, with the tiles of the layout; None: one is made, with `options`, those of
    BlockSparseArray. `closes`: closing this closes the array."""

    where = "disk"

    def __init__(
        self,
        world: World,
        layout: Layout,
        dtype: np.dtype[Any],
        array: BlockSparseArray | None = None,
        *,
        closes: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(world, layout, dtype)
        self._closes = closes
        self.array = (
            BlockSparseArray(
                world,
                [axis.cuts for axis in layout.tilings] or [(0, 1)],
                layout.canonical_flags if layout.rank else layout.canonical_flags.reshape(1),
                dtype,
                **options,
            )
            if array is None
            else array
        )
        self.read_only = self.array.read_only

    def _tile(self, number: int) -> tuple[int, ...]:
        return self.layout.stored[number] or (0,)  # an array without axes is kept with one

    @property
    def storage(self) -> object:
        return self.array

    def get_async(self, number: int, out: Values | None = None) -> Request:
        if self.layout.rank:
            return self.array.get_tile_async(self._tile(number), out)
        result = np.empty((), self.dtype) if out is None else out
        return self.array.get_tile_async((0,), result.reshape(1)).returning(result)

    def put_async(self, number: int, value: Values) -> Request:
        return self.array.put_tile_async(self._tile(number), value)

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        return self.array.acc_tile_async(self._tile(number), value, alpha)

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes | None:
        return self.array.boxes(self.layout.table, max_bytes)

    def owner(self, number: int) -> int | None:
        return self.array.owner(self._tile(number))

    def own(self) -> list[int]:
        return [number for number in range(len(self.layout.stored)) if self.owner(number) == self.world.rank]

    def prefetch(self, numbers: Iterable[int]) -> None:
        self.array.prefetch(self._tile(number) for number in numbers)

    def sync(self) -> None:
        with self.world.together("synchronize tiles on disk"):
            self.array.sync()
        self.array.sync()  # for tiles of other processes, in spite of caches

    def close(self) -> None:
        if self._closes:
            self.array.close()

    def left_by_error(self) -> None:
        if self._closes:
            self.array._left_by_error()

    def drop(self) -> None:
        if self._closes:
            self.array.drop()
