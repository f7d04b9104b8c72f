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

    The constructor, `sync` and `close` are collective. Tiles are moved one-sidedly, by any process, any thread, at
    any time. Accumulates of one tile add up. Others see tiles that a process has put after `sync`. Callers check
    that the tiles that they give have the right shape, are contiguous and of the type `dtype`.
    """

    where: str
    planned_as: str | None = None
    """The place ("process", "node", "global" or "disk") that plans take this one for; None: `where`."""
    copies = 1
    """How many copies of each tile there are, at different processes or nodes; a put changes one copy."""
    read_only = False

    def __init__(self, world: World, layout: Layout, dtype: np.dtype[Any]) -> None:
        self.world, self.layout, self.dtype = world, layout, dtype

    @abstractmethod
    def get_async(self, number: int, out: Values | None = None) -> Request:
        """`wait()` of the request returns the tile: `out`, if that is given, else an array that the caller must not
        write to. This may be the tile itself, and changes with it."""

    @abstractmethod
    def put_async(self, number: int, value: Values) -> Request:
        """`value` must not change until it is complete."""

    @abstractmethod
    def acc_async(self, number: int, value: Values, alpha: complex = 1) -> Request:
        """Adds alpha * value, which must not change until it is complete."""

    def native(self, max_bytes: int, *, adds: bool) -> _core.Boxes | None:
        """The object by which native code moves boxes of the array, or adds to it if it `adds`; None: only the
        functions above move tiles. `max_bytes`: largest memory for tiles that need a buffer on their way."""
        return None

    def owner(self, number: int) -> int | None:
        """The process that has the tile; None if all are equally far."""
        return None

    def own(self) -> list[int]:
        """Tiles that this process works on when processes divide all of them: each is that of one process, of the
        one that has it, if one has."""
        return list(range(self.world.rank, len(self.layout.stored), self.world.size))

    def filled(self) -> list[int]:
        """Tiles that this process puts when all processes together fill all copies."""
        return self.own()

    def prefetch(self, numbers: Iterable[int]) -> None:
        """Hints that tiles will be read soon. Returns at once."""
        return

    @property
    def storage(self) -> object:
        """The object that has the elements; several back-ends may share it."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of all tiles, once."""
        return self.layout.elements * self.dtype.itemsize

    @abstractmethod
    def sync(self) -> None:
        """Makes tiles that were put and added visible to all. Collective."""

    @abstractmethod
    def close(self) -> None:
        """Collective; may be repeated."""

    def drop(self) -> None:
        """As `close`, but does not commit a persistent array. Collective; may be repeated."""
        self.close()

    def left_by_error(self) -> None:
        """Called after an error: the end of the world does not commit a persistent array then."""
        return

    def refuse(self, what: str, why: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, f"{what} a tile in {self.where} memory", detail=why)


def as_tile(flat: Values, layout: Layout, number: int) -> Values:
    """A tile in an array of one dimension in which all lie one after another."""
    begin, end = layout.offsets[number : number + 2]
    return flat[begin:end].reshape(layout.tile_shape(layout.stored[number]))


def tiles_in(flat: _core.Boxes, backend: Backend, max_bytes: int) -> _core.Boxes:
    """Boxes of an array of one dimension in which the tiles lie one after another."""
    return _core.Boxes.of_tiles(backend.layout.table, flat, kernels.type_name(backend.dtype), max_bytes)


def read_only(view: Values) -> Values:
    view = view.view()
    view.flags.writeable = False
    return view


def given(view: Values, out: Values | None) -> Values:
    """A tile in the memory of this process: a copy in `out`, or the tile itself, which must not be written to."""
    if out is None:
        return read_only(view)
    out[...] = view
    return out
