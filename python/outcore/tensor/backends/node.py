"""Tiles in memory that the processes of a node share; each node has a copy of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.node_array import NodeArray
from outcore.tensor import kernels
from outcore.tensor.backends.backend import Backend, Values, as_tile, given
from outcore.tensor.requests import Done

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.prefetch import Waitable
    from outcore.tensor.layout import Layout


class NodeTiles(Backend):
    where = "node"

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(world, layout, dtype)
        self.copies = world.nodes
        self._array = NodeArray(world, max(1, layout.elements), dtype)
        self._lock = world.lock()  # for accumulates: several processes, several threads

    def _view(self, number: int) -> Values:
        return as_tile(self._array.view, self.layout, number)

    def get_async(self, number: int, out: Values | None = None) -> Waitable:
        return Done(given(self._view(number), out))

    def put_async(self, number: int, value: Values) -> Waitable:
        self._view(number)[...] = value
        return Done()

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Waitable:
        view = self._view(number)
        with self._lock:
            kernels.add(view, value, alpha)
        return Done()

    def filled(self) -> list[int]:
        return list(range(self.world.node_rank, len(self.layout.stored), self.world.node_size))

    def sync(self) -> None:
        self._array.barrier()
        with self.world.together("synchronize tiles"):
            pass

    def close(self) -> None:
        self._array.close()
