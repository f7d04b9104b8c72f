"""Extended arrays: tensors of tiles. The same program uses them wherever they lie.

t = outcore.Array(world, (o, o, v, v), symmetry="pair", where="disk")
t.put_tile((0, 1, 0, 0), block)
block = t.get_tile((1, 0, 0, 0))       # of the same block, permuted
t.move("global")
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.arrays.indexing import as_elements
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words, times
from outcore.job.collective import Closing
from outcore.parallel.requests import done, then
from outcore.tensor.arrays.backends import places
from outcore.tensor.arrays.backends.backend import Backend
from outcore.tensor.arrays.backends.disk import DiskTiles
from outcore.tensor.arrays.backends.generated import GeneratedTiles, made
from outcore.tensor.arrays.backends.process import NumpyTiles
from outcore.tensor.arrays.backends.sections import SectionTiles
from outcore.tensor.arrays.numpy_like import NumpyLike
from outcore.tensor.layout import kernels, stored_types
from outcore.tensor.layout.description import (
    as_layout,
    callers_metadata,
    element_type,
    facts_of,
    layout_of_sparse,
    read_facts,
    tiled,
)
from outcore.tensor.layout.fits import Survey, check_fits
from outcore.tensor.layout.layout import Layout, Tile
from outcore.tensor.layout.tiling import Tiling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from outcore.job.world import World
    from outcore.parallel.requests import Request
    from outcore.tensor.layout.sparsity import Sparsity
    from outcore.tensor.layout.symmetry import Symmetry

    Values = np.ndarray[Any, np.dtype[Any]]


class Array(NumpyLike, Closing):
    """A tensor of tiles, zero at first.

    The constructor, `sync`, `move`, `flush`, `close` and everything that works on all of the array (arithmetic,
    reductions) are collective. Any process and any thread may get, put and accumulate tiles at any time; other
    processes see the new tiles after `sync`. Accumulates of one tile by several processes add up.

    Args:
        world: the processes that share it.
        layout: a Layout; or its tilings, a Tiling or a number for each axis.
        dtype: float32, float64, complex64 or complex128.
        where: "process" (memory of each process, which has a copy of its own), "node" (memory that the processes of
            a node share; each node has a copy), "global" (memory of all processes together), "disk"; "auto": in
            memory if all of it takes no more than half of the rest of the budget, else on disk. If there are
            several copies no single tile can be put: fill all of it (`from_function`, `move`).
        symmetry, sparsity: of the layout, if tilings are given.
        store_dtype: the type of the elements where they lie; float32 of float64 (complex64 of complex128) halves
            the room. Elements that are read then differ from those that were put by `storage_error` at most; each
            accumulate rounds once more.
        path: directory of a persistent array on disk, which `flush` and `close` commit; without it the array is
            scratch.
        distribution: of global memory: the number of the first stored tile of each process, rising from 0.
        options: of arrays on disk: those of BlockSparseArray (codec, placement, overwrite, metadata, cache_bytes,
            client_cache_bytes).

    Raises (the same at all processes): OutcoreError EINVAL (arguments), ENOMEM (more than the budget of a process),
    EEXIST (`path` exists), ENOSPC.
    """

    def __init__(
        self,
        world: World,
        layout: Layout | Sequence[Tiling | int],
        dtype: DTypeLike = "float64",
        where: str = "auto",
        *,
        symmetry: Symmetry | str | Sequence[str] | None = None,
        sparsity: Sparsity = None,
        store_dtype: DTypeLike | None = None,
        path: str | os.PathLike[str] | None = None,
        distribution: Sequence[int] | None = None,
        **options: Any,
    ) -> None:
        def bring() -> Any:
            self._layout = as_layout(layout, sparsity, symmetry)
            self._dtype = element_type(dtype)
            self._stored = self._dtype if store_dtype is None else np.dtype(store_dtype)
            stored_types.check(self._dtype, self._stored)
            places.check(where, path, distribution, options)
            return self._layout.as_json(), self._dtype.name, self._stored.name, where, distribution

        with world.together_with("make an extended array", bring):
            pass
        self._world = world
        self._backend: Backend = self._placed(where, path=path, distribution=distribution, **options)

    def _placed(
        self,
        where: str,
        *,
        path: str | os.PathLike[str] | None = None,
        distribution: Sequence[int] | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> Backend:
        where = places.settle(where, path, self._world, self._layout.elements * self._stored.itemsize)
        if path is not None or metadata is not None:
            options |= {"path": path, "metadata": facts_of(self._layout, self._dtype, metadata)}
        return places.make(where, self._world, self._layout, self._stored, distribution, **options)

    @classmethod
    def _of(cls, world: World, layout: Layout, dtype: np.dtype[Any], backend: Backend) -> Self:
        array = cls.__new__(cls)
        array._world, array._layout, array._dtype = world, layout, dtype
        array._backend, array._stored = backend, backend.dtype
        return array

    # ---- from something else ----

    @classmethod
    def open(
        cls, world: World, path: str | os.PathLike[str], *, read_only: bool = True, **caches: Any
    ) -> Self:
        """A persistent array, made by any number of processes, in the state that was committed last. `caches` are
        those of BlockSparseArray.open. Collective.

        Raises: OutcoreError as BlockSparseArray.open; EINVAL if it was not made by this class.
        """
        array = BlockSparseArray.open(world, path, read_only=read_only, **caches)
        with world.together("open an extended array"):
            layout, dtype = read_facts(array)
        return cls._of(world, layout, dtype, DiskTiles(world, layout, array.dtype, array))

    @classmethod
    def wrap(
        cls,
        world: World,
        array: Values | GlobalArray | DiskArray | BlockSparseArray,
        layout: Layout | Sequence[Tiling | int] | None = None,
    ) -> Self:
        """An extended array over an array of the caller, whose elements stay where they are; closing the extended
        array does not close the other. Collective.

        Args:
            array: a NumPy array, equal at all processes; a GlobalArray; a DiskArray; a BlockSparseArray.
            layout: dense, of the shape of the array; of a block-sparse array one whose stored tiles are its own.
                None: the tilings of a block-sparse array; tiles of moderate size that fit the chunks of a disk
                array; else tiles of moderate size.
        """
        found: Layout
        dtype: np.dtype[Any]

        def bring() -> tuple[Any, ...]:
            nonlocal found, dtype
            if not isinstance(array, np.ndarray | GlobalArray | DiskArray | BlockSparseArray):
                raise TypeError(f"{type(array).__name__} is none of the arrays that can be wrapped")
            dtype = element_type(array.dtype)
            if isinstance(array, BlockSparseArray):
                found = layout_of_sparse(array, layout)
            else:
                chunk = array.chunk if isinstance(array, DiskArray) else (1,) * array.ndim
                found = as_layout(layout if layout is not None else tiled(array.shape, dtype.itemsize, chunk))
                if not found.is_dense or found.shape != array.shape:
                    raise ValueError(f"{found!r} is no dense layout of {array.shape} elements")
            return type(array).__name__, found.as_json(), dtype.name

        with world.together_with("wrap an array", bring):
            pass
        backend: Backend
        if isinstance(array, BlockSparseArray):
            backend = DiskTiles(world, found, dtype, array, closes=False)
        elif isinstance(array, np.ndarray):
            backend = NumpyTiles(world, found, array)
        else:
            backend = SectionTiles(world, found, array)
        return cls._of(world, found, dtype, backend)

    @classmethod
    def generated(
        cls,
        world: World,
        layout: Layout | Sequence[Tiling | int],
        function: Callable[[tuple[slice, ...]], ArrayLike],
        dtype: DTypeLike = "float64",
        *,
        symmetry: Symmetry | str | Sequence[str] | None = None,
        sparsity: Sparsity = None,
    ) -> Self:
        """An array whose tiles take no room: `function(box)` makes the elements of a box (a tuple of slices)
        whenever a tile is asked for, at any process, in any thread, equal ones each time. Collective."""
        found = Layout([1])
        kind = np.dtype(float)

        def bring() -> tuple[Any, ...]:
            nonlocal found, kind
            found, kind = as_layout(layout, sparsity, symmetry), element_type(dtype)
            if not callable(function):
                raise TypeError(f"{function!r} is no function of boxes")
            return found.as_json(), kind.name

        with world.together_with("generate an extended array", bring):
            pass
        return cls._of(world, found, kind, GeneratedTiles(world, found, kind, function))

    @classmethod
    def from_function(
        cls,
        world: World,
        layout: Layout | Sequence[Tiling | int],
        function: Callable[[tuple[slice, ...]], ArrayLike],
        dtype: DTypeLike = "float64",
        where: str = "auto",
        **options: Any,
    ) -> Self:
        """A new array; `function(box)` makes the elements of each stored tile (a tuple of slices), once, at the
        process near to it. `options` are those of the constructor. Collective.

        Raises OutcoreError EINVAL if its elements do not fit, or do not have the symmetry.
        """
        array = cls(world, layout, dtype, where, **options)
        array._fill_new(lambda number: made(function, array._layout, number, array._dtype), "from_function")
        return array

    @classmethod
    def from_numpy(
        cls,
        world: World,
        values: Values,
        layout: Layout | Sequence[Tiling | int] | None = None,
        where: str = "auto",
        *,
        tolerance: float | None = None,
        **options: Any,
    ) -> Self:
        """A copy of a NumPy array, equal at all processes. `options` are those of the constructor. Collective.

        Raises OutcoreError EINVAL, with place and size, if the layout cannot hold the elements (symmetry, tiles
        that are zero) within `tolerance`; None: within the rounding of the largest element.
        """
        with world.together("make an extended array of a NumPy array"):
            if isinstance(values, np.generic):  # NumPy's form of arrays without axes
                values = np.asarray(values)
            if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
                raise TypeError(f"{type(values).__name__} is no NumPy array; numpy.asarray makes one")
            dtype = element_type(values.dtype)
            if layout is None:
                layout = tiled(values.shape, dtype.itemsize)
        options.setdefault("store_dtype", None)
        array = cls(world, layout, dtype, where, **options)
        with world.together("take elements of a NumPy array"):
            check_fits(values, array._layout, tolerance)
        array._fill_new(
            lambda number: np.asarray(values[array._layout.box(array._layout.stored[number])], order="C"),
            "from_numpy",
        )
        return array

    @classmethod
    def from_hdf5(cls, world: World, file: Any, dataset: str, layout: Any = None, **options: Any) -> Array:
        """A new array with the elements of a dataset of an HDF5 file: `tensor.files.from_hdf5`. Collective."""
        from outcore.tensor.arrays import files

        return files.from_hdf5(world, file, dataset, layout, **options)

    @classmethod
    def from_zarr(cls, world: World, path: Any, layout: Any = None, **options: Any) -> Array:
        """A new array with the elements of a zarr array: `tensor.files.from_zarr`. Collective."""
        from outcore.tensor.arrays import files

        return files.from_zarr(world, path, layout, **options)

    def to_hdf5(self, file: Any, dataset: str, **options: Any) -> None:
        """Writes all of it, dense, into a new dataset of an HDF5 file: `tensor.files.to_hdf5`. Collective."""
        from outcore.tensor.arrays import files

        files.to_hdf5(self, file, dataset, **options)

    def to_zarr(self, path: Any, **options: Any) -> None:
        """Writes all of it, dense, into a new zarr array: `tensor.files.to_zarr`. Collective."""
        from outcore.tensor.arrays import files

        files.to_zarr(self, path, **options)

    # ---- form ----

    @property
    def world(self) -> World:
        return self._world

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def store_dtype(self) -> np.dtype[Any]:
        """The type of the elements where they lie."""
        return self._stored

    @property
    def storage_error(self) -> stored_types.RoundingBound:
        """The largest difference between an element that is read and the one that was put."""
        return stored_types.bound(self._dtype, self._stored)

    @property
    def where(self) -> str:
        """process, node, global, disk or generated"""
        return self._backend.where

    @property
    def backend(self) -> Backend:
        return self._backend

    @property
    def read_only(self) -> bool:
        """Whether no single tile can be put: it is open to read, made by a function, or has several copies."""
        return self._backend.read_only or self._backend.copies > 1

    @property
    def nbytes(self) -> int:
        """Bytes of the stored tiles, without copies."""
        return self._backend.nbytes

    @property
    def metadata(self) -> Any:
        """The metadata that the caller has given to an array on disk."""
        array = self._backend.array if isinstance(self._backend, DiskTiles) else None
        found = None if array is None else array.metadata
        return callers_metadata(found)

    def __repr__(self) -> str:
        layout = self._layout
        stored = f", stored as {self._stored}" if self._stored != self._dtype else ""
        return (
            f"<outcore.Array {layout.shape} {self._dtype}{stored}, {len(layout.stored)} of "
            f"{int(np.prod(layout.grid))} tiles, {self.nbytes / 1e6:.1f} MB, {self.where}>"
        )

    def _repr_html_(self) -> str:
        layout = self._layout
        rows: list[tuple[str, object]] = [
            ("shape", times(layout.shape)),
            ("elements", self._dtype),
            ("stored as", self._stored if self._stored != self._dtype else None),
            ("tiles", f"{len(layout.stored)} stored of {int(np.prod(layout.grid))}"),
            ("size", in_words(self.nbytes)),
            ("where", self.where),
        ]
        return html.facts("outcore.Array", rows)

    # ---- tiles ----

    def get_tile_async(self, tile: Sequence[int], out: Values | None = None) -> Request:
        """Starts to get any tile of the grid. `wait()`, by one thread, returns it: in `out` if that is given
        (contiguous, of its shape), else an array not to be written to, which in memory may be the tile itself."""
        number = self._layout.numbers.get(tile) if type(tile) is tuple else None
        if out is not None:
            self._check_out(tile, out)
        if number is not None and self._stored == self._dtype:
            return self._backend.get_async(number, out)
        return self.get_tile_into(self._layout.check(tile), out)

    def get_tile_into(self, tile: Tile, out: Values | None) -> Request:
        """As `get_tile_async`, into `out` with any strides."""
        stored, axes, sign = self._layout.canonical(tile)
        if stored is None:
            return done(self._zeros(tile, out))

        def finish(values: Values) -> Values:
            result = np.empty(self._layout.tile_shape(tile), self._dtype) if out is None else out
            return kernels.permute(result, values.astype(self._dtype, copy=False), axes, sign)

        return then(self._backend.get_async(self._layout.numbers[stored]), finish)

    def lands_in(self, tile: Tile, out: Values) -> bool:
        """Whether a tile is read straight into `out`, without another buffer."""
        return out.flags.c_contiguous and tile in self._layout.numbers and self._stored == self._dtype

    def put_tile_async(self, tile: Sequence[int], value: ArrayLike) -> Request:
        """Starts to put a stored tile; `value`, of its shape, must not change until it is complete. A tile that the
        symmetry maps to itself must have that symmetry: `check_symmetry` tells.

        Raises OutcoreError EINVAL: the tile is zero, or not stored (`layout.canonical` says which is); ERANGE: an
        element does not fit into `store_dtype`.
        """
        number = self._number("put", tile)
        values = self._values(tile, value)
        return self._backend.put_async(number, stored_types.rounded(values, self._stored, self))

    def acc_tile_async(self, tile: Sequence[int], value: ArrayLike, alpha: complex = 1) -> Request:
        """Starts to add alpha * value to a stored tile; `value` must not change until it is complete. In the end a
        tile that the symmetry maps to itself must have that symmetry. Raises as `put_tile_async`."""
        number = self._number("accumulate", tile)
        values = self._values(tile, value)
        if alpha != 1:
            as_elements(alpha, self._dtype, "alpha")
            if self._stored != self._dtype:
                values, alpha = values * self._dtype.type(alpha), 1
        return self._backend.acc_async(number, stored_types.rounded(values, self._stored, self), alpha)

    def get_tile(self, tile: Sequence[int], out: Values | None = None) -> Values:
        found: Values = self.get_tile_async(tile, out).wait()
        return found

    def put_tile(self, tile: Sequence[int], value: ArrayLike) -> None:
        self.put_tile_async(tile, value).wait()

    def acc_tile(self, tile: Sequence[int], value: ArrayLike, alpha: complex = 1) -> None:
        self.acc_tile_async(tile, value, alpha).wait()

    def tile_shape(self, tile: Sequence[int]) -> tuple[int, ...]:
        """The shape of any tile of the grid. Raises IndexError for a tile outside."""
        return self._layout.tile_shape(self._layout.check(tile))

    def prefetch(self, tiles: Iterable[Sequence[int]]) -> None:
        """Hints that tiles will be read soon. Returns at once."""
        found = [self._layout.canonical(self._layout.check(tile))[0] for tile in tiles]
        self._backend.prefetch(self._layout.numbers[tile] for tile in found if tile is not None)

    def owner(self, tile: Sequence[int]) -> int | None:
        """The process that has a stored tile; None: all are equally far."""
        return self._backend.owner(self._number("find", tile, writes=False))

    def own_tiles(self) -> list[Tile]:
        """The stored tiles that this process works on when processes divide all of them: each tile is that of one
        process, near to it if possible."""
        return [self._layout.stored[number] for number in self._backend.own()]

    # ---- all of it ----

    def sync(self) -> None:
        """Makes all tiles that processes have put and added visible to all. Collective."""
        self._backend.sync()

    def move(self, where: str, **options: Any) -> Self:
        """Moves all tiles to "process", "node", "global" or "disk" (with `options` of the constructor), and gives
        their old room back. Collective. Returns itself. After an error it stays where it was."""
        with self._world.together("move an extended array", where, sorted(options)):
            places.check(where, options.get("path"), options.get("distribution"), options)
        old = self._backend
        old.sync()
        new = self._placed(where, **options)
        try:
            with self._world.together("copy tiles"):
                for number in new.filled():
                    values = old.get_async(number).wait()
                    new.put_async(number, np.asarray(values, self._stored)).wait()
            new.sync()
        except OutcoreError:
            new.close()
            raise
        self._backend = new
        old.close()
        return self

    def flush(self, metadata: Any = ...) -> None:
        """Commits a persistent array: the state that will be found from now on, whatever happens. Collective.
        Raises OutcoreError EINVAL for an array that does not lie on disk."""
        with self._world.together("flush an extended array"):
            if not isinstance(self._backend, DiskTiles):
                raise ValueError(f"{self!r} does not lie on disk")
            array = self._backend.array
        if metadata is ...:
            array.flush()
        else:
            array.flush(facts_of(self._layout, self._dtype, metadata))

    def close(self) -> None:
        """Gives back memory and disk; commits a persistent array. Collective; may be repeated."""
        self._backend.close()

    def _left_by_error(self) -> None:
        self._backend.left_by_error()

    def drop(self) -> None:
        """As `close`, but commits nothing: a persistent array keeps its last committed state. Without one no array
        remains. Collective; may be repeated."""
        self._backend.drop()

    def check_symmetry(self, tolerance: float | None = None) -> None:
        """Raises OutcoreError EINVAL, at all processes, if a tile that the symmetry maps to itself differs from its
        image by more than `tolerance`; None: the rounding of the largest element. Collective."""
        survey = Survey(self._layout)
        if self._layout.symmetry:
            self.sync()
            with self._world.together("check the symmetry of an extended array"):
                for number in self._backend.own():
                    survey.see(number, self._backend.get_async(number).wait())
        survey.judge(self, tolerance)

    # ---- parts ----

    def _new(self, layout: Layout, dtype: np.dtype[Any]) -> Self:
        where = self.where if places.is_place(self.where) else "auto"
        return type(self)(self._world, layout, dtype, where)

    def _wrapped(self, other: Any) -> Self:
        return type(self).wrap(self._world, other, self._layout.tilings)

    def _fill(self, tiles: Callable[[list[int]], Iterable[tuple[int, Values]]], what: str) -> None:
        """Puts tiles, which must have the symmetry up to rounding: nobody checks it."""
        with self._world.together(f"fill an extended array ({what})"):
            for number, values in tiles(self._backend.filled()):
                self._backend.put_async(number, stored_types.rounded(values, self._stored, self)).wait()
        self._backend.sync()

    def fill_copies(self, make: Callable[[int], Values], what: str) -> None:
        """Puts all stored tiles, `make(number)`, into each copy. They must have the symmetry. Collective."""
        self._fill(lambda numbers: ((number, make(number)) for number in numbers), what)

    def _fill_new(self, make: Callable[[int], Values], what: str) -> None:
        """Puts all tiles into each copy, and checks their symmetry. After an error the array is closed, at all
        processes."""
        survey = Survey(self._layout)

        def seen(number: int) -> Values:
            values = make(number)
            survey.see(number, values)
            return values

        try:
            self.fill_copies(seen, what)
            survey.judge(self)
        except OutcoreError:
            self._backend.close()
            raise

    def _number(self, what: str, tile: Sequence[int], *, writes: bool = True) -> int:
        index = self._layout.check(tile)
        number = self._layout.numbers.get(index)
        if number is None:
            stored, _, _ = self._layout.canonical(index)
            detail = (
                "it is zero in this layout" if stored is None else f"tile {stored} is stored in its place"
            )
            raise OutcoreError(errno.EINVAL, f"{what} tile {index} of {self!r}", detail=detail)
        if writes and self._backend.copies > 1:
            detail = f"there are {self._backend.copies} copies; fill all of it"
            raise OutcoreError(errno.EINVAL, f"{what} tile {index} of {self!r}", detail=detail)
        if writes and self._backend.read_only:
            raise OutcoreError(errno.EROFS, f"{what} tile {index} of {self!r}")
        return number

    def _values(self, tile: Sequence[int], value: ArrayLike) -> Values:
        elements = as_elements(value, self._dtype, "put into an extended array")
        shape = self._layout.tile_shape(tile)
        if elements.shape != shape:
            elements = np.broadcast_to(elements, shape)
        return np.asarray(elements, order="C")

    def _check_out(self, tile: Sequence[int], out: Values) -> None:
        if not isinstance(out, np.ndarray):
            raise TypeError(f"{self!r}: `out` is {type(out).__name__}, no NumPy array")
        if out.dtype != self._dtype:
            raise TypeError(f"{self!r}: `out` has elements of type {out.dtype}")
        shape = self._layout.tile_shape(self._layout.check(tile))
        if out.shape != shape or not out.flags.c_contiguous:
            raise ValueError(f"{self!r}: `out` of shape {out.shape} is no contiguous {shape}")

    def _zeros(self, tile: Sequence[int], out: Values | None) -> Values:
        if out is None:
            return np.broadcast_to(np.zeros((), self._dtype), self._layout.tile_shape(tile))
        out[...] = 0
        return out
