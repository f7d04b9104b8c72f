"""Tiles in the memory of a process: each process of a world has a copy of its own."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.parallel.requests import done
from outcore.tensor.arrays.backends.backend import Backend, Values, as_tile, given, tiles_in
from outcore.tensor.layout import kernels

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout


class InProcess(Backend):
    """Parts that all back-ends in the memory of a process share."""

    where = "process"

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(world, layout, dtype)
        self.copies = world.size
        self._adds = _core.Mutex()  # held while a thread adds, in native code too

    @abstractmethod
    def view(self, number: int) -> Values:
        """The tile itself."""

    def get_async(self, number: int, out: Values | None = None) -> Request:
        return done(given(self.view(number), out))

    def put_async(self, number: int, value: Values) -> Request:
        self.view(number)[...] = value
        return done()

    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        with self._adds:
            kernels.add(self.view(number), value, alpha)
        return done()

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes:
        boxes = self._boxes(max_bytes)
        return boxes.adding_under(self._adds) if adds else boxes

    @abstractmethod
    def _boxes(self, max_bytes: int) -> _core.Boxes: ...

    def filled(self) -> list[int]:
        return list(range(len(self.layout.stored)))

    def sync(self) -> None:
        if self.world.size > 1:
            with self.world.together("synchronize tiles"):
                pass


class ProcessTiles(InProcess):
    """Tiles in memory from the budget of each process."""

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any]) -> None:
        super().__init__(world, layout, dtype)
        self._flat: Values | None = None
        self._native: _core.Boxes | None = None  # of all tiles, one after another
        with world.together("take memory for tiles"):
            world.budget.reserve(self.nbytes, f"{layout!r} in the memory of each process")
            try:
                self._flat = np.zeros(layout.elements, dtype)
            except BaseException:
                world.budget.release(self.nbytes)
                raise
            # The budget gets it back with the memory itself, which views of tiles keep, too.
            weakref.finalize(self._flat, world.budget.release, self.nbytes).atexit = False

    @property
    def flat(self) -> Values:
        """All tiles, one after another, as `Layout.offsets` has them."""
        if self._flat is None:
            raise self.refuse("use", "the array is closed")
        return self._flat

    def view(self, number: int) -> Values:
        return as_tile(self.flat, self.layout, number)

    def _boxes(self, max_bytes: int) -> _core.Boxes:
        if self._flat is None:
            raise self.refuse("use", "the array is closed")
        if self._native is None:
            self._native = _core.Boxes.of_memory(
                self._flat, self._flat.shape, kernels.type_name(self.dtype), True
            )
        return tiles_in(self._native, self, max_bytes)

    def close(self) -> None:
        self._flat = self._native = None


class NumpyTiles(InProcess):
    """Tiles that are boxes of a NumPy array of the caller, equal at all processes."""

    def __init__(self, world: World, layout: Layout, values: Values) -> None:
        super().__init__(world, layout, values.dtype)
        self._values: Values | None = values
        self.read_only = not values.flags.writeable

    @property
    def storage(self) -> object:
        return self._values

    def view(self, number: int) -> Values:
        if self._values is None:
            raise self.refuse("use", "the array is closed")
        box = self.layout.box(self.layout.stored[number])
        index: tuple[Any, ...] = (*box, ...)  # a view of a number too
        view: Values = self._values[index]
        return view

    def get_async(self, number: int, out: Values | None = None) -> Request:
        view = self.view(number)
        return done(given(view if out is not None else np.asarray(view, order="C"), out))

    def _boxes(self, max_bytes: int) -> _core.Boxes:
        if self._values is None:
            raise self.refuse("use", "the array is closed")
        return _core.Boxes.of_memory(
            self._values, self._values.shape, kernels.type_name(self.dtype), not self.read_only
        )

    def close(self) -> None:
        self._values = None
