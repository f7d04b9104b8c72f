"""Tiles that are boxes of a global array or a disk array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.tensor.arrays.backends.backend import Backend, Values

if TYPE_CHECKING:
    from outcore import _core
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout


class SectionTiles(Backend):
    """The caller owns and closes the array; the layout is dense, and has its shape."""

    def __init__(self, world: World, layout: Layout, array: GlobalArray | DiskArray) -> None:
        super().__init__(world, layout, array.dtype)
        self.array = array
        self.where = "disk" if isinstance(array, DiskArray) else "global"
        self.read_only = isinstance(array, DiskArray) and array.read_only

    @property
    def storage(self) -> object:
        return self.array

    def get_async(self, number: int, out: Values | None = None) -> Request:
        return self.array.get_async(self.layout.box(self.layout.stored[number]), out)

    def put_async(self, number: int, value: Values) -> Request:
        return self.array.put_async(self.layout.box(self.layout.stored[number]), value)

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        return self.array.acc_async(self.layout.box(self.layout.stored[number]), value, alpha)

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes | None:
        return self.array.boxes() if self.layout.rank else None

    def prefetch(self, numbers: Iterable[int]) -> None:
        if isinstance(self.array, DiskArray):
            self.array.prefetch(self.layout.box(self.layout.stored[number]) for number in numbers)

    def sync(self) -> None:
        if isinstance(self.array, DiskArray):
            with self.world.together("synchronize tiles on disk"):
                self.array.sync()
        self.array.sync()

    def close(self) -> None:
        pass
