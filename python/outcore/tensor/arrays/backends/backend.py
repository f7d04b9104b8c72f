"""The interface of all places where tiles lie. A tile is named by its number among the stored ones of a layout."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.tensor.layout import kernels

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.layout import Layout

Values = np.ndarray[Any, np.dtype[Any]]


class Backend(ABC):
    """Tiles of one layout and element type, zero at first.

    Making, `sync` and `close` are collective. Tiles are moved one-sidedly, by any process, any thread, at any time.
    Accumulates of one tile add up. What a process has put others see after `sync`. Tiles that are given have the
    shape of theirs, are contiguous and of the type `dtype`: the caller has checked it.
    """

    where: str
    planned_as: str | None = None
    """The place, of "process", "node", "global" and "disk", that plans take this one for; None: `where`."""
    copies = 1
    """How often each tile is there, at different processes or nodes; a put changes one copy."""
    read_only = False

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any]) -> None:
        self.world, self.layout, self.dtype = world, layout, dtype

    @abstractmethod
    def get_async(self, number: int, out: Values | None = None) -> Request:
        """`wait()` of what is returned returns the tile: `out`, if that is given, else an array that the caller
        must not write to; it may be the tile itself, which changes with it."""

    @abstractmethod
    def put_async(self, number: int, value: Values) -> Request:
        """`value` must not change until it is complete."""

    @abstractmethod
    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        """Adds alpha * value, which must not change until it is complete."""

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes | None:
        """As native code moves boxes of the array, to add to it if it `adds`; None: only the functions above move
        tiles. `max_bytes`: of tiles in memory of their own on their way."""
        return None

    def owner(self, number: int) -> int | None:
        """The process that has the tile; None if all are equally far."""
        return None

    def own(self) -> list[int]:
        """Tiles that this process works on when each process works on its own: each is that of one process, of
        the one that has it, if one has."""
        return list(range(self.world.rank, len(self.layout.stored), self.world.size))

    def filled(self) -> list[int]:
        """Tiles that this process puts when all processes together fill all copies."""
        return self.own()

    def prefetch(self, numbers: Iterable[int]) -> None:
        """Hints that tiles will be read soon. Returns at once."""
        return

    @property
    def storage(self) -> object:
        """What has the elements; several backends may share it."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of all tiles, once."""
        return self.layout.elements * self.dtype.itemsize

    @abstractmethod
    def sync(self) -> None:
        """What was put and added is there for all. Collective."""

    @abstractmethod
    def close(self) -> None:
        """Collective; may be repeated."""

    def drop(self) -> None:
        """As `close`, but commits nothing of what is persistent. Collective; may be repeated."""
        self.close()

    def left_by_error(self) -> None:
        """Of what is persistent: the end of its world does not commit it."""
        return

    def refuse(self, what: str, why: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, f"{what} a tile in {self.where} memory", detail=why)


def as_tile(flat: Values, layout: Layout, number: int) -> Values:
    """A tile in an array of one dimension in which all lie one after another."""
    begin, end = layout.offsets[number : number + 2]
    return flat[begin:end].reshape(layout.tile_shape(layout.stored[number]))


def tiles_in(flat: _core.Boxes, backend: Backend, max_bytes: int) -> _core.Boxes:
    """Of an array of one dimension in which the tiles lie one after another."""
    return _core.Boxes.of_tiles(backend.layout.table, flat, kernels.type_name(backend.dtype), max_bytes)


def read_only(view: Values) -> Values:
    view = view.view()
    view.flags.writeable = False
    return view


def given(view: Values, out: Values | None) -> Values:
    """Of a tile in the memory of this process: a copy in `out`, or itself, not to be written to."""
    if out is None:
        return read_only(view)
    out[...] = view
    return out
