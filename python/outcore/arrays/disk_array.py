"""Disk resident arrays: arrays larger than memory, moved between disk and memory, by all processes together or by
each for itself.

with outcore.World() as world, outcore.GlobalArray(world, (5000, 5000)) as g:
    d = outcore.DiskArray(world, (10000, 10000), path="/scratch/me/t2")
    request = d.write_all_async(g.section(np.s_[600:1600, 300:2300]), np.s_[750:1750, 500:2500])
    ...                                # compute on; the transfer goes on by itself
    request.wait()
    d.close()                          # now it is on stable storage
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore import _core
from outcore.arrays import codecs
from outcore.arrays.disk_array_access import AttachedDiskArray, DiskArrayAccess
from outcore.arrays.global_array import GlobalArray, Section
from outcore.base import html
from outcore.base import metadata as metadata_module
from outcore.base.errors import OutcoreError, as_fields
from outcore.base.sizes import shape_rows, times
from outcore.job import arguments
from outcore.job.collective import Closing, in_gate

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from outcore._core import Request
    from outcore.job.world import World

    Array = np.ndarray[Any, np.dtype[Any]]
    Move = Callable[[], Request]


class DiskArray(DiskArrayAccess, Closing):
    """An array of `shape` in files, each owned by a process. Elements that were never written are zero.

    Indexing, `get`, `put`, `acc`, their nonblocking forms, `prefetch` and `sync` are for each process alone
    (DiskArrayAccess); boxes are those of Sectioned.

    Everything else is collective: all processes of `world` call it, in the same order, with the same arguments
    (blocks of their own may differ), from one thread of a process at a time. If arguments differ, or one process
    has a problem, all raise the same OutcoreError. Names of collective transfers contain `_all`: `write_all` and
    `read_all` return when they are complete; `write_all_async` and `read_all_async` return at once, and any number
    may be under way. Asynchronous transfers go on by themselves, in the order of the calls, and deliver their
    errors at `wait`. A collective transfer sees what was put before, and a get that begins after the transfer is
    complete sees what the transfer wrote. Methods of the array as a whole are collective under their usual names:
    `open`, `share`, `flush`, `close`, `remove`, `stored_bytes`.

    Args:
        world: the processes that share it.
        shape: extents, 1 to 8 of them; scratch may have none.
        dtype: int8, int16, int32, int64, uint8, float32, float64, complex64 or complex128.
        path: directory of a persistent array, made here ("{node}" in it stands for the number of the node);
            without it the array is scratch, and vanishes with the job.
        chunk: shape of the chunks in which it is stored, read and written; chosen if not given.
        typical: shape of the sections for which the chunk is chosen; without it tall and wide sections are read
            equally fast.
        codec: "none", "blosc2" (lossless compression by zstd), "blosc2-lz4", "fixed-point" (lossless; only chunks
            of doubles that are whole multiples of a power of two shrink), or the name of an
            outcore.extend.Codec. Checksums are kept in any case.
        placement: "shared" (a directory that all processes see), "local" (a directory of the same name on each
            node) or "auto" (which of them it is).
        overwrite: replace a persistent array of the same name. It stays until the first commit of the new one
            (`flush`, `close`), also if that never comes; so the disks must have room for both.
        expected_bytes: how many bytes will be written, if fewer than the whole array: the disks must have room
            for as many.
        metadata: description of the contents, as JSON values; kept with a persistent array.
        cache_bytes: memory of a process for chunks that it owns, in bytes or as "64MB", for noncollective access;
            None: a sixteenth of its budget, at most 64 MiB.
        client_cache_bytes: memory of a process for copies of chunks of other processes, for data that is mostly
            read. After `sync`, and after its own puts, the process reads them again. None: no copies.
        identity: a text that identifies a persistent array, at most 255 printable ASCII characters; None: a
            random one.
        contained: number of names at the end of `path` that must not be symbolic links (EINVAL), for a path
            inside a directory that somebody else has made.

    Raises: OutcoreError EINVAL (arguments), EEXIST (`path` is there), ENOSPC (no room, with the numbers).
    """

    _native: _core.DiskArray
    _world: World

    def __init__(
        self,
        world: World,
        shape: int | Sequence[int],
        dtype: DTypeLike = "float64",
        *,
        path: str | os.PathLike[str] | None = None,
        chunk: Sequence[int] | None = None,
        typical: Sequence[int] | None = None,
        codec: str = "none",
        placement: str = "auto",
        overwrite: bool = False,
        expected_bytes: int | None = None,
        metadata: Any = None,
        cache_bytes: int | str | None = None,
        client_cache_bytes: int | str | None = None,
        identity: str | None = None,
        contained: int = 0,
    ) -> None:
        def bring() -> _core.DiskArrayArguments:
            extents = arguments.integers("shape", shape)
            if not extents and path is not None:
                raise ValueError(
                    "a persistent array has 1 to 8 dimensions: keep a number in one of shape (1,)"
                )
            codecs.find(arguments.text("codec", codec))
            return _core.DiskArrayArguments(
                shape=extents or [1],
                dtype=arguments.element_type(dtype).name,
                path=arguments.path("path", path),
                chunk=[] if chunk is None else arguments.integers("chunk", chunk),
                typical=[] if typical is None else arguments.integers("typical", typical),
                codec=codec,
                placement=arguments.text("placement", placement),
                overwrite=arguments.flag("overwrite", overwrite),
                expected_bytes=-1
                if expected_bytes is None
                else arguments.integer("expected_bytes", expected_bytes),
                metadata=arguments.as_json("metadata", metadata),
                caches=caches(cache_bytes, client_cache_bytes),
                identity="" if identity is None else arguments.text("identity", identity),
                contained=_contained(contained),
            )

        world.unclosed.settle(world)
        self._take(world, in_gate("create disk array", lambda gate: _core.DiskArray(world, gate), bring))
        if len(arguments.integers("shape", shape)) == 0:
            self._shape = ()

    def _take(self, world: World, native: _core.DiskArray) -> None:
        self._world = world
        self._take_shape(native, native.shape, np.dtype(native.dtype), "disk array")
        if native.path and not native.read_only:
            world.unclosed.add(self, native, native.path)

    @classmethod
    def open(
        cls,
        world: World,
        path: str | os.PathLike[str],
        *,
        read_only: bool = True,
        cache_bytes: int | str | None = None,
        client_cache_bytes: int | str | None = None,
        contained: int = 0,
    ) -> Self:
        """Opens a persistent array, made by any number of processes, in the state that was committed last.

        The array has one part for each process that made it, and one process serves each part; if there are more
        processes now, the others ask these. An array that is open to read stays in that state, complete, whatever
        another job commits meanwhile.

        Raises: OutcoreError ENOENT (no array there, or one that was never committed), EINVAL (something else is
        there), EIO (damaged; the message says what and where), ENOTSUP (of another version or byte order).
        """
        array = cls.__new__(cls)

        def bring() -> _core.DiskArrayOpening:
            codecs.find_all()
            return _core.DiskArrayOpening(
                path=arguments.path("path", path),
                read_only=arguments.flag("read_only", read_only),
                caches=caches(cache_bytes, client_cache_bytes),
                contained=_contained(contained),
            )

        world.unclosed.settle(world)
        array._take(world, in_gate("open disk array", lambda gate: _core.DiskArray.open(world, gate), bring))
        return array

    @staticmethod
    def attach(
        world: World, handle: bytes, *, client_cache_bytes: int | str | None = None
    ) -> AttachedDiskArray:
        """An array that another group of processes has shared with `world`. Not collective."""
        return AttachedDiskArray(world, handle, client_cache_bytes=client_cache_bytes)

    @staticmethod
    def transfer_bytes(world: World) -> int:
        """Bytes that a collective transfer takes from the budget of a process while it is under way, for an array
        without codec whose chunks have the usual size (128 KiB) or less."""
        return _core.DiskArray.transfer_bytes(world)

    def share(self, parent: World) -> bytes:
        """Opens the array to processes outside of its world, which was split from `parent`: any process of the
        parent that has the bytes returned can `attach` to it. Collective over the world of the array."""
        with self._world.together("share disk array"):
            if not isinstance(parent, _core.World):
                raise TypeError(f"parent is {parent!r}, no world")
        return self._native.share(parent)

    # ---- what it is ----

    @property
    def world(self) -> World:
        return self._world

    @property
    def chunk(self) -> tuple[int, ...]:
        return self._native.chunk

    @property
    def codec(self) -> str:
        return self._native.codec

    @property
    def components(self) -> int:
        """Number of files."""
        return self._native.components

    @property
    def placement(self) -> str:
        """shared or local"""
        return self._native.placement

    @property
    def path(self) -> str | None:
        """Directory of a persistent array."""
        return self._native.path or None

    @property
    def read_only(self) -> bool:
        return self._native.read_only

    @property
    def closed(self) -> bool:
        return self._native.closed

    @property
    def metadata(self) -> Any:
        """The metadata that were given when the array was made, or in a later flush."""
        return metadata_module.parse(self._native.metadata, self.path or "")

    @property
    def identity(self) -> str:
        """The identity of a persistent array, which never changes; "" for scratch."""
        return self._native.identity

    @property
    def generation(self) -> int:
        """Number of the last commit of a persistent array; 0: none."""
        return self._native.generation

    def stored_bytes(self) -> int:
        """Bytes on all disks. Collective."""
        return self._native.stored_bytes()

    def __repr__(self) -> str:
        place = self.path or "scratch"
        return f"<outcore.DiskArray {self.shape} {self.dtype} in {place}{', closed' if self.closed else ''}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [*shape_rows(self.shape, self.dtype), ("chunk", times(self.chunk))]
        if self.closed:
            return html.facts("outcore.DiskArray", [*rows, ("state", "closed")])
        return html.facts("outcore.DiskArray", [*rows, ("where", self.path or "scratch")])

    # ---- transfers ----

    def write_all(
        self, source: GlobalArray | Section | Array, box: Any = ..., *, order: Sequence[int] | None = None
    ) -> None:
        """As `write_all_async`, and waits for it."""
        self.write_all_async(source, box, order=order).wait()

    def read_all(
        self, target: GlobalArray | Section | Array, box: Any = ..., *, order: Sequence[int] | None = None
    ) -> None:
        """As `read_all_async`, and waits for it."""
        self.read_all_async(target, box, order=order).wait()

    def write_all_async(
        self, source: GlobalArray | Section | Array, box: Any = ..., *, order: Sequence[int] | None = None
    ) -> Request:
        """Starts to write `source` to a box (slices, as `numpy.s_[2:5, :]`; all of the array if not given).

        source: a global array or a section of one (`g.section(box)`), which must not be changed until the
            transfer is complete; or a NumPy array of any strides: then every process writes a block of its
            own, `box` is where it goes (None: this process has none), and blocks must not overlap, except that
            equal boxes at all processes mean that all have the same data.
        order: axes of the source in the order of the disk array, as in `numpy.transpose(source, order)`.
        """
        return self._start("write", source, box, order)

    def read_all_async(
        self, target: GlobalArray | Section | Array, box: Any = ..., *, order: Sequence[int] | None = None
    ) -> Request:
        """Starts to read a box into `target`: the reverse of `write_all_async`. Blocks of processes may overlap."""
        return self._start("read", target, box, order)

    def _start(self, what: str, other: Any, box: Any, order: Sequence[int] | None) -> Request:
        attempted = f"{what} {self!r}"
        try:
            move = self._prepare(what, other, box, order)
        except Exception as error:  # must not leave the others waiting
            return self._native.refuse(as_fields(error, attempted))
        except BaseException as error:  # Ctrl-C is raised as it is
            with suppress(OutcoreError):
                self._native.refuse(as_fields(error, attempted)).wait()
            raise
        return move()

    def _prepare(self, what: str, other: Any, box: Any, order: Sequence[int] | None) -> Move:
        native = self._native
        if box is None:
            begin, end = [0] * self.ndim, [0] * self.ndim
        else:
            selection = self._select(box, strict=True)
            if not selection.is_plain:
                raise ValueError("steps must be 1")
            begin, end = list(selection.begin), list(selection.end)
        axes = None if order is None else arguments.integers("order", order)
        if axes is not None and sorted(axes) != list(range(self.ndim)):
            raise ValueError(f"order {axes} does not name each of the {self.ndim} axes once")
        if isinstance(other, GlobalArray):
            other = other.section()
        if isinstance(other, Section):
            call = native.write_section if what == "write" else native.read_section
            begins, ends = list(other.begin), list(other.end)
            return lambda: call(other.array._native, begins, ends, axes, begin, end)
        if not isinstance(other, np.ndarray):
            raise TypeError(f"neither a global array nor a NumPy array, but {type(other).__name__}")
        if other.dtype != self.dtype:
            raise TypeError(f"elements of type {other.dtype}, the array has {self.dtype}")
        block = other if axes is None else np.transpose(other, axes)
        shape = tuple(e - b for b, e in zip(begin, end, strict=True))
        if box is None:
            block = np.empty(shape, self.dtype)
        elif block.shape != shape:
            squeezed = tuple(n for n, drop in zip(shape, selection.dropped, strict=True) if not drop)
            if block.shape != squeezed:
                raise ValueError(f"the block has shape {block.shape}, the box {shape}")
            block = selection.as_stored(block)
        if what == "read" and not block.flags.writeable:
            raise ValueError("the block is read-only")
        move = native.write_block if what == "write" else native.read_block
        return lambda: move(block, begin, end)

    # ---- life ----

    def flush(self, metadata: Any = ...) -> None:
        """Puts everything that was written on stable storage. From now on a persistent array is opened in this
        state, whatever happens; new metadata, if given, replace the old ones. Collective.

        Raises OutcoreError if this failed, or if a transfer failed that nobody waited for.
        """
        in_gate(f"flush {self!r}", self._native.flush, lambda: metadata_or_none(metadata))

    def close(self) -> None:
        """Flushes a persistent array, lets a scratch array vanish. Collective; may be repeated."""
        self._native.close()
        self._world.unclosed.remove(self)

    def _left_by_error(self) -> None:
        self._world.unclosed.leave(self)

    def drop(self) -> None:
        """As `close`, but commits nothing: a persistent array keeps the state that was committed last; if there is
        none, no array remains. Not collective, but waits for transfers of this process; may be repeated."""
        self._native.drop()

    def remove(self) -> None:
        """Deletes the array. Collective."""
        self._native.remove()
        self._world.unclosed.remove(self)


def caches(own: int | str | None, others: int | str | None) -> _core.DiskArrayCaches:
    """Memory for chunks of this process (None: the default) and for those of others."""
    return _core.DiskArrayCaches(
        own_bytes=-1 if own is None else arguments.size_bytes("cache_bytes", own),
        others_bytes=arguments.size_bytes("client_cache_bytes", others),
    )


def metadata_or_none(metadata: Any) -> str | None:
    """The metadata as files hold them; None if the caller gave none."""
    return None if metadata is ... else arguments.as_json("metadata", metadata)


def _contained(names: int) -> int:
    number = arguments.integer("contained", names)
    if not 0 <= number <= 100:
        raise ValueError(f"contained is {number}")
    return number
