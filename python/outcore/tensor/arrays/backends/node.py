"""Tiles in memory that the processes of a node share; each node has a copy of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.arrays.node_array import NodeArray
from outcore.parallel.requests import done
from outcore.tensor.arrays.backends.backend import Backend, Values, as_tile, given, tiles_in
from outcore.tensor.layout import kernels

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout


class NodeTiles(Backend):
    where = "node"

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(world, layout, dtype)
        self.copies = world.nodes
        self._array = NodeArray(world, max(1, layout.elements), dtype)
        self._lock = world.lock()  # for accumulates: several processes, several threads

    def _view(self, number: int) -> Values:
        return as_tile(self._array.view, self.layout, number)

    def get_async(self, number: int, out: Values | None = None) -> Request:
        return done(given(self._view(number), out))

    def put_async(self, number: int, value: Values) -> Request:
        self._view(number)[...] = value
        return done()

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        view = self._view(number)
        with self._lock:
            kernels.add(view, value, alpha)
        return done()

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes:
        view = self._array.view
        flat = _core.Boxes.of_memory(view, view.shape, kernels.type_name(self.dtype), True)
        boxes = tiles_in(flat, self, max_bytes)
        return boxes.adding_under(self._lock) if adds else boxes

    def filled(self) -> list[int]:
        return list(range(self.world.node_rank, len(self.layout.stored), self.world.node_size))

    def sync(self) -> None:
        self._array.barrier()
        with self.world.together("synchronize tiles"):
            pass

    def close(self) -> None:
        self._array.close()
