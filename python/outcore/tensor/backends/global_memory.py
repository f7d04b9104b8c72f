"""Tiles in the memory of all processes: each process has a range of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.job import arguments
from outcore.tensor.backends.backend import Backend, Values, read_only
from outcore.tensor.requests import Done, Then

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.prefetch import Waitable
    from outcore.tensor.layout import Layout


class GlobalTiles(Backend):
    """first: the number of the first tile of each process, rising from 0; fewer than processes: the last ones have
    none. None: ranges of nearly equal bytes."""

    where = "global"

    def __init__(
        self, world: World, layout: Layout, dtype: np.dtype[Any], first: Sequence[int] | None = None
    ) -> None:
        super().__init__(world, layout, dtype)
        with world.together("distribute tiles"):
            self._first = _even(layout, world.size) if first is None else _checked(layout, world.size, first)
        begins = [int(layout.offsets[each]) for each in self._first]
        self._array = GlobalArray(world, max(1, layout.elements), dtype, distribution=[begins])

    def get_async(self, number: int, out: Values | None = None) -> Waitable:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        if out is None:
            if self.owner(number) == self.world.rank:
                return Done(read_only(self._local(number)))
            out = np.empty(self.layout.tile_shape(self.layout.stored[number]), self.dtype)
        result = out
        return Then(self._array.get_async(slice(begin, end), result.reshape(-1)), lambda _: result)

    def put_async(self, number: int, value: Values) -> Waitable:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        return self._array.put_async(slice(begin, end), value.reshape(-1))

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Waitable:
        begin, end = (int(each) for each in self.layout.offsets[number : number + 2])
        return self._array.acc_async(slice(begin, end), value.reshape(-1), alpha)

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


def _even(layout: Layout, processes: int) -> list[int]:
    """No process is left out before another, and no range is empty."""
    tiles = len(layout.stored)
    wanted = np.searchsorted(layout.offsets, np.linspace(0, layout.elements, processes + 1)[:-1])
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
