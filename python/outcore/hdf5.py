"""HDF5 files from and to disk arrays, by h5py: for exchange with other programs.

    outcore.hdf5.export_array(disk, "t2.h5", "t2")
    disk = outcore.hdf5.import_array(world, "t2.h5", "t2", path="t2.array")

All of it is collective. The first process reads or writes the HDF5 file, in pieces that fit into memory, while all
of them serve the disk array.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.disk_array import DiskArray
from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from outcore.world import World

PIECE_BYTES = 64 << 20
_METADATA = "outcore metadata"  # attribute of a dataset


def export_array(array: DiskArray, file: str | os.PathLike[str], dataset: str) -> None:
    """Writes a disk array into a new dataset of an HDF5 file, which is made if it is not there. Collective.

    Raises OutcoreError, the same at all processes: EEXIST (there is such a dataset), ENOSPC and the like.
    """
    world = array.world
    with _opened(world, file, "a") as target:
        with world.together(f"export to {os.fspath(file)}", dataset):
            if target is not None:
                _make_dataset(target, dataset, array)
        for box in _pieces(array):
            piece = np.empty(_shape(box), array.dtype) if target is not None else None
            array.read(_or_nothing(piece, array), box if piece is not None else None).wait()
            with world.together(f"export to {os.fspath(file)}"):
                if target is not None:
                    with _translated("write", file):
                        target[dataset][box] = piece


def import_array(
    world: World,
    file: str | os.PathLike[str],
    dataset: str,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> DiskArray:
    """A new disk array with the elements of a dataset. `path` and `options` are those of DiskArray. Collective.

    Raises OutcoreError, the same at all processes: ENOENT (no such file or dataset), EINVAL (a type that disk
    arrays do not have).
    """
    with _opened(world, file, "r") as source:
        facts: Any = None
        with world.together(f"import from {os.fspath(file)}", dataset):
            if source is not None:
                facts = _facts(source, file, dataset)
        shape, dtype, metadata = world.broadcast(facts)
        array = DiskArray(world, shape, dtype, path=path, metadata=metadata, **options)
        try:
            _fill(array, source, dataset, file)
        except OutcoreError:  # at all processes
            array.remove()
            raise
    return array


def _fill(array: DiskArray, source: Any, dataset: str, file: str | os.PathLike[str]) -> None:
    for box in _pieces(array):
        piece = None
        with array.world.together(f"import from {os.fspath(file)}"):
            if source is not None:
                with _translated("read", file):
                    piece = source[dataset][box]
        array.write(_or_nothing(piece, array), box if piece is not None else None).wait()


class _opened:
    """The HDF5 file at the first process, None at the others; problems are everybody's."""

    def __init__(self, world: World, file: str | os.PathLike[str], mode: str) -> None:
        self.world, self.file, self.mode = world, file, mode
        self.handle: Any = None

    def __enter__(self) -> Any:
        with self.world.together(f"open {os.fspath(self.file)}", self.mode):
            if self.world.rank == 0:
                import h5py

                with _translated("open", self.file):
                    self.handle = h5py.File(self.file, self.mode)
        return self.handle

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:  # at all processes
            with suppress(OSError, RuntimeError, ValueError):
                self._close()
            return
        with self.world.together(f"close {os.fspath(self.file)}"), _translated("close", self.file):
            self._close()  # the others find it complete

    def _close(self) -> None:
        if self.handle is not None:
            self.handle.close()


class _translated:
    """Errors of h5py as ours."""

    def __init__(self, attempted: str, file: str | os.PathLike[str]) -> None:
        self.attempted, self.file = attempted, file

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if isinstance(error, OutcoreError) or not isinstance(error, OSError | RuntimeError | ValueError):
            return
        number = getattr(error, "errno", None) or errno.EIO
        raise OutcoreError(number, self.attempted, path=self.file, detail=str(error)) from error


def _make_dataset(target: Any, dataset: str, array: DiskArray) -> None:
    if dataset in target:
        raise OutcoreError(errno.EEXIST, f"export to dataset '{dataset}'", path=target.filename)
    made = target.create_dataset(dataset, array.shape, array.dtype)
    made.attrs[_METADATA] = json.dumps(array.metadata)


def _facts(source: Any, file: Any, dataset: str) -> tuple[tuple[int, ...], str, Any]:
    if dataset not in source or not hasattr(source[dataset], "shape"):
        raise OutcoreError(
            errno.ENOENT,
            f"import dataset '{dataset}'",
            path=file,
            detail=f"it has {', '.join(source) or 'none'}",
        )
    found = source[dataset]
    return found.shape, found.dtype.name, json.loads(found.attrs.get(_METADATA, "null"))


def _pieces(array: DiskArray) -> Iterator[tuple[slice, ...]]:
    """Boxes of whole chunks that cover the array, in memory order, of at most PIECE_BYTES where that can be."""
    step = list(array.shape)
    for axis, chunk in enumerate(array.chunk):
        others = int(np.prod(step, dtype=np.int64)) // step[axis] * array.dtype.itemsize
        fits = max(PIECE_BYTES // others, 1)
        if fits >= step[axis]:
            break
        step[axis] = max(fits - fits % chunk, chunk)
    counts = [-(-n // s) for n, s in zip(array.shape, step, strict=True)]
    for index in np.ndindex(*counts):
        yield tuple(slice(i * s, min(i * s + s, n)) for i, s, n in zip(index, step, array.shape, strict=True))


def _shape(box: tuple[slice, ...]) -> tuple[int, ...]:
    return tuple(axis.stop - axis.start for axis in box)


def _or_nothing(piece: np.ndarray[Any, Any] | None, array: DiskArray) -> np.ndarray[Any, Any]:
    return np.empty((0,) * array.ndim, array.dtype) if piece is None else piece
