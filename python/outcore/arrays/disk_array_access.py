"""Noncollective access to disk arrays: any process moves any section, without the others.

row = d[17, :]                              # a copy, from whoever owns the chunks
d.acc(np.s_[0:10, 0:10], block, alpha=2.0)  # atomic
requests = [d.get_async(box) for box in boxes]
d.sync()                                    # what this process has put is visible to all
"""

from __future__ import annotations

import errno
from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.arrays.indexing import Selection
from outcore.arrays.sectioned import Sectioned
from outcore.base.errors import OutcoreError
from outcore.job.resources import parse_bytes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from outcore.job.world import World

    Array = np.ndarray[Any, np.dtype[Any]]


class DiskArrayAccess(Sectioned):
    """Any process and any thread may call these methods at any time; the owners of the chunks serve them while
    they compute. Every get that begins after a put is complete sees it, at any process; operations on one chunk
    happen one at a time, so concurrent accumulates add up. Errors of an owner (ENOSPC, EIO) are raised at the
    process that asked.
    """

    _native: _core.DiskArrayAccess

    @property
    @abstractmethod
    def chunk(self) -> tuple[int, ...]:
        """Shape of the chunks in which it is stored."""

    @property
    def chunks(self) -> tuple[int, ...]:
        """As `chunk`, under the name that h5py, zarr and dask use."""
        return self.chunk

    def prefetch(self, boxes: Iterable[Any]) -> None:
        """Hints that boxes will be read soon; their owners begin to read them from disk. Returns at once."""
        selections = [self._select(box, strict=True) for box in boxes]
        self._native.prefetch([(each.begin, each.end) for each in selections])

    def boxes(self) -> _core.Boxes:
        return _core.Boxes.of_disk(self._native)

    def sync(self) -> None:
        """Afterwards everything that this process has put and accumulated is complete and visible to all, and this
        process sees what others have put, in spite of caches. Not collective. Raises the first error of a put that
        nobody has waited for."""
        self._native.sync()

    def _get(self, selection: Selection, result: Array) -> None:
        memory = selection.as_stored(result)
        self._native.get(selection.begin, selection.end, selection.step, memory, waits=True)

    def _put(self, selection: Selection, value: ArrayLike) -> None:
        memory = self._to_store(selection, value)
        self._native.put(selection.begin, selection.end, selection.step, memory, waits=True)

    def _acc(self, selection: Selection, value: ArrayLike, alpha: complex) -> None:
        memory = self._to_store(selection, value)
        number = self._number(alpha)
        self._native.accumulate(selection.begin, selection.end, selection.step, memory, number, waits=True)


class AttachedDiskArray(DiskArrayAccess):
    """A disk array of another group of processes, reached through a world that has all of them.

    Args:
        world: the world with which it was shared.
        handle: the bytes that `DiskArray.share` returned there.
        client_cache_bytes: memory for copies of chunks, as for DiskArray.

    Not collective. It has no files and no collective methods. Once the group has closed the array, calls raise
    OutcoreError (EBADF).
    """

    def __init__(self, world: World, handle: bytes, *, client_cache_bytes: int | str | None = None) -> None:
        if not isinstance(handle, bytes):
            raise OutcoreError(
                errno.EINVAL,
                "attach to a disk array",
                detail=f"a handle is bytes, not {type(handle).__name__}",
            )
        native = _core.DiskArrayAccess.attach(
            world, handle, 0 if client_cache_bytes is None else parse_bytes(client_cache_bytes)
        )
        self._world = world
        self._take_shape(native, native.shape, np.dtype(native.dtype), "disk array")

    @property
    def world(self) -> World:
        return self._world

    @property
    def chunk(self) -> tuple[int, ...]:
        return self._native.chunk

    def __repr__(self) -> str:
        return f"<outcore.AttachedDiskArray {self._shape} {self._dtype}>"
