"""Tiles in the memory of all processes: each process has a range of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.job import arguments
from outcore.parallel.requests import done
from outcore.tensor.arrays.backends.backend import Backend, Values, read_only, tiles_in

if TYPE_CHECKING:
    from outcore import _core
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout


Integers = np.ndarray[Any, np.dtype[np.int64]]


class GlobalTiles(Backend):
    """first: the number of the first tile of each process, rising from 0; fewer than processes: the last ones have
    none. None: ranges of nearly equal bytes."""

    where = "global"

    def __init__(
        self, world: World, layout: Layout, dtype: np.dtype[Any], first: Sequence[int] | None = None
    ) -> None:
        super().__init__(world, layout, dtype)
        with world.together("distribute tiles"):
            self._first = (
                even_ranges(layout.offsets, world.size)
                if first is None
                else _checked(layout, world.size, first)
            )
        begins = [int(layout.offsets[each]) for each in self._first]
        self._array = GlobalArray(world, max(1, layout.elements), dtype, distribution=[begins])

    def get_async(self, number: int, out: Values | None = None) -> Request:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        if out is None:
            if self.owner(number) == self.world.rank:
                return done(read_only(self._local(number)))
            out = np.empty(self.layout.tile_shape(self.layout.stored[number]), self.dtype)
        return self._array.get_async(slice(begin, end), out.reshape(-1)).returning(out)

    def put_async(self, number: int, value: Values) -> Request:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        return self._array.put_async(slice(begin, end), value.reshape(-1))

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        return self._array.acc_async(slice(begin, end), value.reshape(-1), alpha)

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes | None:
        return tiles_in(self._array.boxes(), self, max_bytes)

    def _local(self, number: int) -> Values:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        start = int(self.layout.offsets[self._first[self.world.rank]])
        shape = self.layout.tile_shape(self.layout.stored[number])
        return self._array.local[begin - start : end - start].reshape(shape)

    def owner(self, number: int) -> int | None:
        return bisect_right(self._first, number) - 1

    def own(self) -> list[int]:
        rank = self.world.rank
        edges = [*self._first, len(self.layout.stored)]
        return list(range(edges[rank], edges[rank + 1])) if rank < len(self._first) else []

    def sync(self) -> None:
        self._array.sync()

    def close(self) -> None:
        self._array.close()


def even_ranges(offsets: Integers, processes: int) -> list[int]:
    """The first tile of each process, where offsets[tile] elements lie before a tile, and offsets[-1] are all. No
    process is left out before another, and no range is empty."""
    tiles = len(offsets) - 1
    wanted = np.searchsorted(offsets, np.linspace(0, offsets[-1], processes + 1)[:-1])
    first: list[int] = []
    for each in wanted.tolist():
        number = max(each, first[-1] + 1) if first else 0
        if number < tiles or not first:
            first.append(number)
    return first


def _checked(layout: Layout, processes: int, first: Sequence[int]) -> list[int]:
    numbers = arguments.integers("distribution", first)
    rising = all(a < b for a, b in pairwise(numbers))
    if not rising or len(numbers) > processes or numbers[:1] != [0] or numbers[-1] >= len(layout.stored):
        raise ValueError(
            f"distribution {numbers}: the first of {len(layout.stored)} tiles for each of at most {processes} "
            "processes, rising from 0"
        )
    return numbers
