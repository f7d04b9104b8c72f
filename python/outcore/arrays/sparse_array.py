"""Block-sparse arrays on disk: only tiles that are not zero are stored.

b = outcore.BlockSparseArray(world, [[0, 3, 10], [0, 4, 8, 16]], nonzero, path="t2.tiles")
b.put_tile((1, 2), block)
for tile in b.tiles:
    work(tile, b.get_tile(tile))
b.acc_tile((0, 0), block, alpha=2.0)
b.close()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore import _core
from outcore._core import Request
from outcore.arrays import codecs
from outcore.arrays.as_numpy import AsNumpy
from outcore.arrays.disk_array import caches, metadata_or_none
from outcore.arrays.indexing import as_elements
from outcore.base import html
from outcore.base import metadata as metadata_module
from outcore.base.sizes import times
from outcore.job import arguments
from outcore.job.collective import Closing, in_gate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from outcore.job.world import World

    Array = np.ndarray[Any, np.dtype[Any]]


class BlockSparseArray(AsNumpy, Closing):
    """An array whose axes are cut at boundaries into tiles of different sizes; tiles that are not zero lie
    in files, each in one piece at one process, dealt out in turn.

    Making and opening it, `flush`, `close` and `remove` are collective. Any process and any thread moves tiles at
    any time, without the others; order and errors are those of DiskArrayAccess.

    Args:
        world: the processes that share it.
        tilings: for each axis (1 to 8) its boundaries: 0, ..., extent, rising.
        nonzero: which tiles are stored: an array of booleans with one entry for each tile, or their indices.
        dtype, path, codec, placement, overwrite, metadata, cache_bytes, client_cache_bytes: as for DiskArray, but
            `cache_bytes` is the same at all processes: if it has room for several, large tiles get larger chunks.

    Raises (the same at all processes): OutcoreError EINVAL (arguments), EEXIST (`path` is there), ENOSPC.
    """

    _native: _core.BlockSparseArray
    _world: World

    def __init__(
        self,
        world: World,
        tilings: Sequence[Sequence[int]],
        nonzero: ArrayLike | Iterable[Sequence[int]],
        dtype: DTypeLike = "float64",
        *,
        path: str | os.PathLike[str] | None = None,
        codec: str = "none",
        placement: str = "auto",
        overwrite: bool = False,
        metadata: Any = None,
        cache_bytes: int | str | None = None,
        client_cache_bytes: int | str | None = None,
    ) -> None:
        def bring() -> _core.BlockSparseArguments:
            boundaries = [arguments.integers("tilings", axis) for axis in tilings]
            codecs.find(arguments.text("codec", codec))
            return _core.BlockSparseArguments(
                boundaries=boundaries,
                nonzero=_flags(nonzero, tuple(len(axis) - 1 for axis in boundaries)),
                dtype=arguments.element_type(dtype).name,
                path=arguments.path("path", path),
                codec=codec,
                placement=arguments.text("placement", placement),
                overwrite=arguments.flag("overwrite", overwrite),
                metadata=arguments.as_json("metadata", metadata),
                caches=caches(cache_bytes, client_cache_bytes),
            )

        world.unclosed.settle(world)
        native = in_gate("create block-sparse array", lambda gate: _core.BlockSparseArray(world, gate), bring)
        self._take(world, native)

    def _take(self, world: World, native: _core.BlockSparseArray) -> None:
        self._world = world
        self._native = native
        self._dtype = np.dtype(native.dtype)
        self._boundaries = native.boundaries
        self._one = np.ones((), self._dtype)
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
    ) -> Self:
        """Opens a persistent array, made by any number of processes, in the state that was committed last.

        Raises: OutcoreError as DiskArray.open does; EINVAL if it is not block-sparse.
        """
        array = cls.__new__(cls)

        def bring() -> _core.DiskArrayOpening:
            codecs.find_all()
            return _core.DiskArrayOpening(
                path=arguments.path("path", path),
                read_only=arguments.flag("read_only", read_only),
                caches=caches(cache_bytes, client_cache_bytes),
            )

        world.unclosed.settle(world)
        native = in_gate(
            "open block-sparse array", lambda gate: _core.BlockSparseArray.open(world, gate), bring
        )
        array._take(world, native)
        return array

    # ---- what it is ----

    @property
    def world(self) -> World:
        return self._world

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return self._native.shape

    @property
    def grid(self) -> tuple[int, ...]:
        """Tiles along each axis."""
        return self._native.grid

    @property
    def tilings(self) -> list[list[int]]:
        """The boundaries of each axis."""
        return [list(axis) for axis in self._boundaries]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def tiles(self) -> list[tuple[int, ...]]:
        """Indices of the tiles that are not zero, in order of their numbers."""
        return [tuple(tile) for tile in self._native.nonzero_tiles()]

    @property
    def own_tiles(self) -> list[tuple[int, ...]]:
        """Indices of the tiles that this process owns."""
        return [tile for tile in self.tiles if self.owner(tile) == self._world.rank]

    @property
    def nbytes(self) -> int:
        """Bytes of all tiles that are not zero."""
        sizes = [int(np.prod(self.tile_shape(tile), dtype=np.int64)) for tile in self.tiles]
        return sum(sizes) * self._dtype.itemsize

    @property
    def path(self) -> str | None:
        """Directory of a persistent array."""
        return self._native.path or None

    @property
    def metadata(self) -> Any:
        """The metadata that were given when the array was made, or in a later flush."""
        return metadata_module.parse(self._native.metadata, self.path or "")

    @property
    def read_only(self) -> bool:
        return self._native.read_only

    @property
    def closed(self) -> bool:
        return self._native.closed

    def boxes(self, table: _core.TileTable, max_bytes: int) -> _core.Boxes:
        """The array as native contractions read and write it: box by box. `table`: the table of its tiles;
        `max_bytes`: most bytes of tiles that are under way in buffers of their own."""
        return _core.Boxes.of_sparse(table, self._native, max_bytes)

    def owner(self, tile: Sequence[int]) -> int | None:
        """Rank of the process that owns a tile, so that it can do the work on it; None for a zero tile."""
        rank = self._native.owner(_index(tile))
        return None if rank < 0 else rank

    def box(self, tile: Sequence[int]) -> tuple[slice, ...]:
        """The elements of a tile, as slices of the whole."""
        index = _index(tile)
        self._native.owner(index)  # checks it
        return tuple(slice(axis[i], axis[i + 1]) for axis, i in zip(self._boundaries, index, strict=True))

    def tile_shape(self, tile: Sequence[int]) -> tuple[int, ...]:
        return tuple(side.stop - side.start for side in self.box(tile))

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return (
            f"<outcore.BlockSparseArray {self.shape} {self._dtype}, {self._native.count} tiles in "
            f"{self.path or 'scratch'}{state}>"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("shape", times(self.shape)),
            ("elements", self._dtype),
            ("stored tiles", self._native.count),
            ("where", "closed" if self.closed else self.path or "scratch"),
        ]
        return html.facts("outcore.BlockSparseArray", rows)

    # ---- transfers ----

    def get_tile(self, tile: Sequence[int], out: Array | None = None) -> Array:
        """A copy of a tile, zeros if it is a zero tile; into `out`, contiguous, if given. Returns it."""
        result = self._result(tile, out)
        self._native.get(_index(tile), result, waits=True)
        return result

    def get_tile_async(self, tile: Sequence[int], out: Array | None = None) -> Request:
        """Starts a get; `wait()` of the request returns the tile."""
        result = self._result(tile, out)
        return self._native.get(_index(tile), result).returning(result)

    def put_tile(self, tile: Sequence[int], value: ArrayLike) -> None:
        """Puts a tile, with NumPy's broadcasting. OutcoreError (EINVAL) for a zero tile, named in the message."""
        self._native.put(_index(tile), self._stored(tile, value), waits=True)

    def put_tile_async(self, tile: Sequence[int], value: ArrayLike) -> Request:
        """Starts a put; `value` must not be changed until it is complete."""
        return self._native.put(_index(tile), self._stored(tile, value))

    def acc_tile(self, tile: Sequence[int], value: ArrayLike, alpha: complex = 1) -> None:
        """Adds `alpha * value` to a tile; concurrent accumulates add up. OutcoreError (EINVAL) for a zero tile."""
        memory, number = self._stored(tile, value), self._number(alpha)
        self._native.accumulate(_index(tile), memory, number, waits=True)

    def acc_tile_async(self, tile: Sequence[int], value: ArrayLike, alpha: complex = 1) -> Request:
        """Starts an accumulate; `value` must not be changed until it is complete."""
        memory, number = self._stored(tile, value), self._number(alpha)
        return self._native.accumulate(_index(tile), memory, number)

    def prefetch(self, tiles: Iterable[Sequence[int]]) -> None:
        """Hints that tiles will be read soon. Returns at once."""
        self._native.prefetch([_index(tile) for tile in tiles])

    def sync(self) -> None:
        """Afterwards everything that this process has put and accumulated is complete and visible to all, and this
        process sees what others have put. Not collective. Raises the first error of a put that nobody has waited
        for."""
        self._native.sync()

    def _whole(self) -> Array:
        result = np.zeros(self.shape, self._dtype)
        transfers = [(tile, self.get_tile_async(tile)) for tile in self.tiles]
        for tile, transfer in transfers:
            result[self.box(tile)] = transfer.wait()
        return result

    # ---- life ----

    def flush(self, metadata: Any = ...) -> None:
        """As DiskArray.flush. Collective."""
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

    def stored_bytes(self) -> int:
        """Bytes on all disks. Collective."""
        return self._native.stored_bytes()

    # ---- arguments ----

    def _result(self, tile: Sequence[int], out: Array | None) -> Array:
        shape = self.tile_shape(tile)
        if out is None:
            return np.empty(shape, self._dtype)
        if out.dtype != self._dtype:
            raise TypeError(f"{self!r}: `out` has elements of type {out.dtype}")
        if out.shape != shape or not out.flags.c_contiguous:
            raise ValueError(f"{self!r}: `out` of shape {out.shape} is no contiguous {shape}")
        return out

    def _stored(self, tile: Sequence[int], value: ArrayLike) -> Array:
        elements = as_elements(value, self._dtype, "put into an array")
        return np.ascontiguousarray(np.broadcast_to(elements, self.tile_shape(tile)))

    def _number(self, alpha: complex) -> Array:
        return self._one if alpha == 1 else as_elements(alpha, self._dtype, "alpha")


def _index(tile: Sequence[int]) -> list[int]:
    return arguments.integers("tile", tile)


def _flags(nonzero: Any, grid: tuple[int, ...]) -> bytes:
    """One byte for each tile, in row-major order."""
    if isinstance(nonzero, np.ndarray) and nonzero.dtype == bool:
        if nonzero.shape != grid:
            raise ValueError(f"nonzero has shape {nonzero.shape}, there are {grid} tiles")
        return nonzero.tobytes()
    flags = np.zeros(grid, bool)
    for tile in nonzero:
        index = tuple(_index(tile))
        if len(index) != len(grid) or any(not 0 <= i < n for i, n in zip(index, grid, strict=True)):
            raise IndexError(f"tile {index} is none of {grid}")
        flags[index] = True
    return flags.tobytes()
