"""Extended arrays from and to HDF5 and zarr, for exchange with other programs: dense there, with zeros, and tiles
that follow by symmetry. All functions are collective; the first process reads and writes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base import extras
from outcore.base.errors import OutcoreError
from outcore.job import arguments
from outcore.keep import hdf5
from outcore.tensor.arrays.array import Array
from outcore.tensor.arrays.numpy_like import ahead
from outcore.tensor.layout.description import as_layout, element_type, tiled
from outcore.tensor.layout.fits import check_fits
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling

if TYPE_CHECKING:
    from outcore.job.world import World

_LAYOUT = "outcore_layout"  # attribute of an exported array
_EXACT = 2.0**53

PathLike = str | os.PathLike[str]


def to_hdf5(array: Array, file: PathLike, dataset: str, **options: Any) -> None:
    """Writes all of an array into a new dataset of an HDF5 file, which is made if it does not exist. `options` are
    those of h5py's create_dataset; without `chunks` these are as large as the largest tiles.

    Raises OutcoreError, the same at all processes: EEXIST (the dataset exists), EINVAL (options), ENOSPC and the
    like. After an error no new dataset remains.
    """
    array.sync()
    with (
        hdf5.opened(array.world, file, "a") as target,
        array.world.together("write an HDF5 dataset", dataset),
    ):
        arguments.text("dataset", dataset)
        if target is not None:
            with hdf5.translated("write a dataset", file):
                if dataset in target:
                    raise OutcoreError(errno.EEXIST, f"write dataset '{dataset}'", path=file)
                _chunks(options, array.layout)
                try:
                    _write(array, target.create_dataset(dataset, array.shape, array.dtype, **options))
                except BaseException:
                    with suppress(OSError, RuntimeError, ValueError, KeyError):
                        del target[dataset]
                    raise


def from_hdf5(
    world: World,
    file: PathLike,
    dataset: str,
    layout: Layout | Sequence[Tiling | int] | None = None,
    where: str = "auto",
    *,
    tolerance: float | None = None,
    **options: Any,
) -> Array:
    """A new array with the elements of a dataset. Without `layout` it gets that of the exported array, or a dense
    one. `tolerance` is that of Array.from_numpy, `options` are those of Array. Elements of any byte order become
    those of this machine; integers, booleans and float16 become float32 or float64, which hold them.

    Raises OutcoreError, the same at all processes: ENOENT (no such file or dataset), EINVAL (elements that arrays
    do not have, integers above 2^53, or elements that the layout cannot hold).
    """
    with hdf5.opened(world, file, "r") as source:

        def found() -> Any:
            if dataset not in source:
                raise OutcoreError(errno.ENOENT, f"read dataset '{dataset}'", path=file)
            return source[dataset]

        return _read(world, source is not None, found, lambda: hdf5.translated("read", file), layout, where,
                     tolerance, options)  # fmt: skip


def to_zarr(array: Array, path: PathLike, **options: Any) -> None:
    """Writes all of an array into a new zarr array at `path`. `options` are those of zarr.create_array; without
    `chunks` these are as large as the largest tiles. Raises as `to_hdf5`."""
    array.sync()
    with array.world.together_with("write a zarr array", lambda: (arguments.path("path", path),)):
        if array.world.rank == 0:
            with _zarr("write a zarr array", path) as zarr:
                if os.path.exists(path) and not options.get("overwrite"):
                    raise OutcoreError(errno.EEXIST, "write a zarr array", path=path)
                _chunks(options, array.layout)
                _write(
                    array,
                    zarr.create_array(store=os.fspath(path), shape=array.shape, dtype=array.dtype, **options),
                )


def from_zarr(
    world: World,
    path: PathLike,
    layout: Layout | Sequence[Tiling | int] | None = None,
    where: str = "auto",
    *,
    tolerance: float | None = None,
    **options: Any,
) -> Array:
    """A new array with the elements of a zarr array. The rest is as for `from_hdf5`."""
    with world.together_with("read a zarr array", lambda: (arguments.path("path", path),)):
        pass

    def found() -> Any:
        with _zarr("read a zarr array", path) as zarr:
            return zarr.open_array(os.fspath(path), mode="r")

    def translated() -> AbstractContextManager[Any]:
        return _zarr("read a zarr array", path)

    return _read(world, world.rank == 0, found, translated, layout, where, tolerance, options)


# ---- parts that they share ----


def _write(array: Array, target: Any) -> None:
    """Writes all tiles, at the process that writes."""
    target.attrs[_LAYOUT] = json.dumps(array.layout.as_json())
    tiles = (tile for tile in np.ndindex(*array.layout.grid) if array.layout.there[tile])
    for tile, (values,) in ahead(tiles, [array]):
        target[array.layout.box(tile)] = values


def _read(
    world: World,
    reads: bool,
    found: Callable[[], Any],
    translated: Callable[[], AbstractContextManager[Any]],
    layout: Layout | Sequence[Tiling | int] | None,
    where: str,
    tolerance: float | None,
    options: dict[str, Any],
) -> Array:
    source: Any = None
    facts: Any = None
    with world.together("read an array"):
        if reads:
            with translated():
                source = found()
                if not hasattr(source, "shape"):
                    raise ValueError(f"it is no array but a {type(source).__name__.lower()}")
                wanted = _layout_of(source) if layout is None else as_layout(layout)
                check_fits(source, wanted, tolerance)
                facts = wanted, _type_of(source.dtype)
    its_layout, dtype = world.broadcast(facts)
    # One process puts all tiles, which copies of other processes would not get.
    first = where if where in ("auto", "global", "disk") else "global"
    array = Array(world, its_layout, dtype, first, **options)
    try:
        with world.together("read tiles of an array"):
            if reads:
                with translated():
                    for tile in its_layout.stored:
                        array.put_tile(tile, _taken(source[its_layout.box(tile)], dtype))
        array.check_symmetry(tolerance)
        return array if first == where else array.move(where)
    except OutcoreError:
        array.close()
        raise


def _layout_of(source: Any) -> Layout:
    text = source.attrs.get(_LAYOUT)
    if source.shape is None:
        raise ValueError("it has no shape, and no elements")
    if text is None:
        return Layout(tiled(source.shape, np.dtype(source.dtype).itemsize))
    try:
        return Layout.from_json(json.loads(text))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"its attribute '{_LAYOUT}': {error}") from error


def _type_of(found: Any) -> np.dtype[Any]:
    """The element type of an array for elements of type `found`: the same in the byte order of this machine;
    numbers of other kinds become floats that hold them."""
    dtype: np.dtype[Any] = np.dtype(found).newbyteorder("=")
    if dtype.kind in "biu" or dtype == np.float16:
        dtype = np.result_type(dtype, np.float32)
    return element_type(dtype)


def _taken(values: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The elements as this type. Raises ValueError for an integer that the type does not hold."""
    found = np.asarray(values)
    taken = found.astype(dtype)
    if found.dtype.kind in "iu" and found.dtype.itemsize == 8 and (np.abs(taken) > _EXACT).any():
        raise ValueError(f"integers above 2^53 are not held by {dtype}")
    return np.asarray(taken, order="C")


def _chunks(options: dict[str, Any], layout: Layout) -> None:
    """Sets chunks as large as the largest tiles, if there are elements and the caller has set no others."""
    if layout.shape and 0 not in layout.shape:
        options.setdefault("chunks", tuple(max(axis.sizes) for axis in layout.tilings))


@contextmanager
def _zarr(attempted: str, path: PathLike) -> Iterator[Any]:
    """The module zarr; its errors become OutcoreError."""
    try:
        import zarr
    except ImportError as error:
        raise extras.missing(error, "use zarr arrays") or error from error
    try:
        yield zarr
    except OutcoreError:
        raise
    except FileNotFoundError as error:
        raise OutcoreError(errno.ENOENT, attempted, path=path, detail=str(error)) from error
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        raise OutcoreError(number, attempted, path=path, detail=str(error)) from error
