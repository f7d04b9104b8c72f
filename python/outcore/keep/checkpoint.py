"""Checkpoints: named arrays and small data about them, saved together or not at all.

    outcore.checkpoint.save(world, "ccsd.ckpt", {"t1": t1, "t2": t2}, {"cycle": 12, "energy": -76.24})
    ...
    with outcore.checkpoint.load(world, "ccsd.ckpt") as saved:
        t2 = saved["t2"]
        cycle = saved.meta["cycle"]

A checkpoint is a directory that opens with any number of processes and nodes:

    manifest, component.0, ...    a persistent array of one number, whose metadata name the present generation
    arrays.<generation>/<name>    the persistent arrays of that generation

A new generation is written beside the old one, then committed by a commit of the small array, and only then the old
one is removed. So a process that is killed at any moment leaves the previous checkpoint or the new one.
"""

from __future__ import annotations

import errno
import fcntl
import importlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

import numpy as np

from outcore.arrays.as_numpy import AsNumpy
from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.arrays.node_array import NodeArray
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base.errors import OutcoreError
from outcore.job import arguments
from outcore.job.unclosed import only_flushed
from outcore.keep.checkpoint_facts import (
    NAME,
    CheckpointFacts,
    SavedArray,
    check_array,
    facts_of,
    hold,
    identities,
    is_checkpoint,
)

if TYPE_CHECKING:
    from types import TracebackType

    from outcore._core import Request
    from outcore.job.world import World

    Array = np.ndarray[Any, np.dtype[Any]]

_CONTAINED = 2  # names that save makes, and that must not be links: arrays.<generation>/<name>


def save(
    world: World,
    name: str | os.PathLike[str],
    arrays: Mapping[str, AsNumpy | Array],
    meta: Any = None,
    *,
    codec: str = "none",
    placement: str = "auto",
) -> None:
    """Saves arrays in the directory `name`; the new checkpoint replaces an old one there. Collective.

    arrays: arrays of this world of any kind, and NumPy arrays that are the same at all processes. Extended and
        block-sparse arrays are saved dense; node arrays as NumPy arrays, which must be the same on each node. Names
        are made of letters, digits and _ . + -
    meta: JSON values, and scalars of NumPy.
    codec, placement: as for DiskArray.

    When it returns, the checkpoint is on stable storage. If it raises OutcoreError (ENOSPC, say, the same at all
    processes), or the job is killed, the previous checkpoint is still there, unchanged.
    """
    arrays = _checked(world, arrays, meta)
    root = _root(world, name, placement)
    try:
        generation = facts_of(root.metadata, name).generation + 1
        labels = world.broadcast(identities(list(arrays), generation))
        entries: dict[str, SavedArray] = {}
        place = Path(root.path or "") / f"arrays.{generation}"  # as this process sees it
        given = Path(name) / place.name
        _together(world, root, lambda: _make_empty(place))
        files: list[DiskArray] = []
        under_way: list[Request] = []
        try:
            for key, array in arrays.items():
                file = _file_for(world, array, given / key, codec, root.placement, labels[key])
                files.append(file)
                if isinstance(array, DiskArray):
                    if array.size:
                        _copy(world, array, file)
                elif _is_extended(array):
                    if array.size:
                        _extended().put_all(array, file)
                elif array.size:
                    source = array if isinstance(array, GlobalArray) else array.reshape(file.shape)
                    under_way.append(file.write_all_async(source))
            for request in under_way:
                request.wait()
            for (key, array), file in zip(arrays.items(), files, strict=True):
                file.flush()
                entries[key] = SavedArray(
                    _kind(array),
                    tuple(array.shape),
                    file.shape,
                    file.dtype.name,
                    file.identity,
                    file.generation,
                )
                file.close()
        except OutcoreError:  # at all processes
            for file in files:
                file._native.drop()
            _together(world, root, lambda: _remove(place))
            raise
        root.flush(CheckpointFacts(generation, entries, meta).as_json())
        _together(world, root, lambda: _remove_others(place))
    finally:
        root._native.drop()


def load(world: World, name: str | os.PathLike[str]) -> Checkpoint:
    """Opens a checkpoint that any number of processes have made. Collective.

    Raises OutcoreError: ENOENT (there is none), EINVAL (something else is there), EIO (damaged).
    """
    return Checkpoint(world, name)


_held: WeakValueDictionary[int, Checkpoint] = WeakValueDictionary()  # by descriptor


def _leave_to_parent() -> None:
    """Called in a forked child. A lock belongs to the open file, which the child shares with its parent: without
    this the lock would last longer than the parent holds it."""
    for each in list(_held.values()):
        each.close()


os.register_at_fork(after_in_child=_leave_to_parent)


class Checkpoint(Mapping[str, Any]):
    """A loaded checkpoint: `meta`, and a mapping from names to arrays, which are read when the caller asks.

    `saved[name]` is collective. It returns an array of the kind that was saved: a new GlobalArray; a DiskArray,
    open to read, in place in the checkpoint (close it before the checkpoint is saved again); a new Array with
    the layout of the saved one, or with the tiles of a saved block-sparse array, in memory if there is room,
    else on disk; or a NumPy array at every process. `read_all(name, into)` reads into an existing array.
    """

    def __init__(self, world: World, name: str | os.PathLike[str]) -> None:
        self._lease: int | None = None
        generation = -1
        for attempt in range(1, 1001):
            self._read(world, name)
            if generation == self.generation:
                raise OutcoreError(errno.EIO, "load checkpoint", path=name, detail="its arrays are not there")
            generation = self.generation
            try:
                with world.together("load checkpoint"):
                    self._hold()
                return
            except OutcoreError as error:  # at all processes; a new checkpoint has been saved meanwhile
                self.close()
                if error.errno != errno.ESTALE:
                    raise
                time.sleep(min(attempt, 20) / 1000)
        raise OutcoreError(errno.EBUSY, "load checkpoint", path=name, detail="it is saved again and again")

    def _hold(self) -> None:
        """Prevents jobs that save a new checkpoint from removing this generation, as long as this process holds
        it."""
        if self._here.exists():  # else this node has no part of the checkpoint
            self._lease = hold(self._here / f"arrays.{self.generation}")
            _held[self._lease] = self

    def close(self) -> None:
        """Allows jobs that save a new checkpoint to remove this generation. Open arrays stay usable."""
        if self._lease is not None:
            _held.pop(self._lease, None)
            os.close(self._lease)
            self._lease = None

    def __del__(self) -> None:
        if getattr(self, "_lease", None) is not None:
            self.close()

    def _read(self, world: World, name: str | os.PathLike[str]) -> None:
        self._world = world
        root = DiskArray.open(world, name)
        self._path = Path(name)
        self._here = Path(root.path or name)  # as this process sees it
        try:
            facts = facts_of(root.metadata, name)
        finally:
            root._native.drop()
        if facts.generation == 0:
            raise OutcoreError(errno.ENOENT, "load checkpoint", path=name, detail="none was completed")
        self._facts = facts
        self.meta: Any = facts.meta
        self.generation: int = facts.generation

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts.arrays)

    def __len__(self) -> int:
        return len(self._facts.arrays)

    def form(self, key: str) -> tuple[tuple[int, ...], str]:
        """Shape and type of an array, from the checkpoint's metadata; it reads no array."""
        entry = self._facts.arrays[key]
        return entry.shape, entry.dtype

    def __getitem__(self, key: str) -> Any:
        file = self.open(key)
        entry = self._facts.arrays[key]
        if entry.kind == "disk":
            if file.metadata is None and 0 not in entry.shape:
                return file
            if file.metadata is None:  # its file holds one element
                file.close()
                return DiskArray(self._world, entry.shape, entry.dtype)
            with file:
                return _extended().loaded(self._world, file)
        with file:
            shape = entry.shape
            if entry.kind == "global":
                array = GlobalArray(self._world, shape, file.dtype)
                if 0 not in shape:
                    file.read_all(array)
                return array
            block = np.zeros(file.shape, file.dtype)
            if 0 not in shape:
                file.read_all(block)
            return block.reshape(shape) if 0 not in shape else np.zeros(shape, file.dtype)

    def read_all(self, key: str, into: GlobalArray | Array) -> None:
        """Reads an array into one of the same shape and type. Collective."""
        with self.open(key) as file:
            file.read_all(into)

    def open(self, key: str) -> DiskArray:
        """The file of an array, to read from. Collective. KeyError, at all processes, if there is none."""
        with self._world.together("open array of checkpoint", key):  # checks that all ask for the same array
            pass
        entry = self._facts.arrays[key]
        path = self._path / f"arrays.{self.generation}" / key
        file = DiskArray.open(self._world, path, contained=_CONTAINED)
        found = {
            "identity": file.identity,
            "file_shape": file.shape,
            "dtype": file.dtype.name,
            "commits": file.generation,
        }
        try:
            check_array(path, key, entry, found)
        except OutcoreError as error:  # at all processes
            file._native.drop()
            error.collective = True
            raise
        return file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _checked(world: World, given: Mapping[str, Any], meta: Any) -> dict[str, Any]:
    """The arrays, after a check that all processes have given the same names and kinds, and meta that is JSON."""
    arrays: dict[str, Any] = {}

    def bring() -> list[tuple[str, str]]:
        for key, each in given.items():
            if isinstance(each, NodeArray):
                arrays[key] = each.view
            elif isinstance(each, DiskArray) and not each.shape:
                arrays[key] = each.to_numpy()
            else:
                arrays[key] = np.asarray(each) if isinstance(each, np.generic) else each
        return [(str(key), _kind(array)) for key, array in arrays.items()]

    with world.together_with("save checkpoint", bring):
        arguments.as_json("meta", meta)
        for key, array in arrays.items():
            if not isinstance(key, str) or not NAME.fullmatch(key):
                raise OutcoreError(
                    errno.EINVAL,
                    f"save array '{key}'",
                    detail="names are made of letters, digits and _ . + -",
                )
            if isinstance(array, np.ma.MaskedArray):
                detail = "a masked array, whose mask would be lost; give array.filled(..)"
                raise OutcoreError(errno.EINVAL, f"save '{key}'", detail=detail)
            if _kind(array) == "unknown":
                raise OutcoreError(errno.EINVAL, f"save '{key}'", detail="it is no array")
    for key, array in arrays.items():
        if isinstance(array, BlockSparseArray):
            arrays[key] = importlib.import_module("outcore.tensor.arrays.array").Array.wrap(world, array)
    return arrays


def _is_extended(array: Any) -> bool:
    return isinstance(array, AsNumpy) and hasattr(array, "layout")


def _extended() -> Any:
    """The module that saves extended arrays. It depends on this one, so it is imported late."""
    return importlib.import_module("outcore.tensor.arrays.saved")


def _kind(array: Any) -> str:
    if isinstance(array, GlobalArray):
        return "global"
    if isinstance(array, DiskArray | BlockSparseArray) or _is_extended(array):
        return "disk"
    return "numpy" if isinstance(array, np.ndarray) else "unknown"


def _root(world: World, name: str | os.PathLike[str], placement: str) -> DiskArray:
    try:
        root = only_flushed(DiskArray.open(world, name, read_only=False))
    except OutcoreError as error:  # the same at all processes
        if error.errno != errno.ENOENT:
            raise
        # A job that was killed before its first checkpoint may have left files: they do not matter.
        nothing = CheckpointFacts(0, {}, None).as_json()
        root = DiskArray(world, 1, "int64", path=name, placement=placement, overwrite=True, metadata=nothing)
        root.flush()
        return only_flushed(root)
    try:
        ours = is_checkpoint(root.metadata)
    except OutcoreError:
        root._native.drop()
        raise
    if not ours:
        root._native.drop()
        raise OutcoreError(
            errno.EEXIST, "save checkpoint", path=name, detail="there is a disk array of that name"
        )
    return root


def _together(world: World, root: DiskArray, step: Any) -> None:
    """Runs a step at the process that acts for a directory: rank 0; with local placement, the first of each
    node."""
    acts = world.rank == 0 or (root.placement == "local" and world.node_rank == 0)
    with world.together("save checkpoint"):
        if acts:
            try:
                step()
            except OSError as error:
                raise OutcoreError(
                    error.errno or errno.EIO, "save checkpoint", path=error.filename or root.path or ""
                ) from error


def _make_empty(place: Path) -> None:
    _remove(place)
    place.mkdir()  # raises an error if somebody has put a link there meanwhile


def _remove(place: Path) -> None:
    """Removes a file or directory, if possible; of a symbolic link only the link itself."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)  # follows no links
        return
    with suppress(OSError):
        place.unlink()


def _remove_others(present: Path) -> None:
    # The checkpoint is safe: generations that cannot be removed now are removed with the next checkpoint.
    for each in present.parent.glob("arrays.*"):
        if each != present and each.name.removeprefix("arrays.").isdigit():
            _remove_unless_read(each)


def _remove_unless_read(place: Path) -> None:
    try:
        directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        _remove(place)  # no directory of ours
        return
    try:
        with suppress(OSError):  # a file system without locks cannot help
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # some process has loaded it
                return
        _remove(place)
    finally:
        os.close(directory)


def _file_for(world: World, array: Any, path: Path, codec: str, placement: str, identity: str) -> DiskArray:
    shape = array.shape if array.size else (1,)
    chunk = array.chunk if isinstance(array, DiskArray) and array.size else None
    return only_flushed(
        DiskArray(
            world,
            shape or (1,),
            array.dtype,
            path=path,
            chunk=chunk,
            codec=array.codec.split()[0] if isinstance(array, DiskArray) else codec,
            placement=placement,
            identity=identity,
            contained=_CONTAINED,
            metadata=_extended().facts(array) if _is_extended(array) else None,
        )
    )


def _copy(world: World, source: DiskArray, target: DiskArray) -> None:
    """Copies a disk array through memory, some rows of chunks at a time."""
    rows = max(1, (64 << 20) * world.size // max(1, source.nbytes // source.shape[0]))
    rows = max(source.chunk[0], rows - rows % source.chunk[0])
    for first in range(0, source.shape[0], rows):
        box = np.s_[first : min(first + rows, source.shape[0])]
        shape = (box.stop - box.start, *source.shape[1:])
        with GlobalArray(world, shape, source.dtype) as buffer:
            source.read_all(buffer, box)
            target.write_all(buffer, box)
