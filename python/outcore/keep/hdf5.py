"""Conversion between HDF5 files and arrays, by h5py: for exchange with other programs.

    outcore.hdf5.export_array(disk, "t2.h5", "t2")
    disk = outcore.hdf5.import_array(world, "t2.h5", "t2", path="t2.array")

All functions are collective. Rank 0 reads or writes the HDF5 file, in pieces that fit into memory, while all
processes serve the disk array. Small arrays do not need these functions: `file.create_dataset("t2", data=disk)`
works.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.as_numpy import AsNumpy
from outcore.arrays.disk_array import DiskArray
from outcore.arrays.node_array import NodeArray
from outcore.arrays.sparse_array import BlockSparseArray
from outcore.base import extras, metadata
from outcore.base.checked import FormatError
from outcore.base.errors import OutcoreError
from outcore.base.plain_file import check_regular
from outcore.job import arguments
from outcore.job.arguments import DTYPES
from outcore.keep.pieces import or_nothing, pieces_of, shape_of

if TYPE_CHECKING:
    from outcore.job.world import World

PIECE_BYTES = 64 << 20
_METADATA = "outcore metadata"  # attribute of a dataset
_MAX_DIMENSIONS = 8
_MAX_NAMES = 20  # of datasets, in a message
_WIDER = {
    "bool": "uint8",
    "float16": "float32",
    "uint16": "int32",
    "uint32": "int64",
}  # types of disk arrays that hold all values


def export_array(array: AsNumpy, file: str | os.PathLike[str], dataset: str, **options: Any) -> None:
    """Writes an array of any kind into a new dataset of an HDF5 file; the file is made if it does not exist.
    `options` are those of h5py's create_dataset, such as chunks=True, compression="gzip". A node array is that of
    the first node; a block-sparse array is written with its zeros. Collective.

    Raises OutcoreError, the same at all processes: EEXIST (the dataset exists), EINVAL (options), ENOSPC and other
    errors of disks. After an error there is no new dataset.
    """
    if not isinstance(array, AsNumpy):
        raise OutcoreError(
            errno.EINVAL,
            f"export to dataset '{dataset}'",
            detail=f"{type(array).__name__} is no array of Outcore",
        )
    world = array.world
    if isinstance(array, BlockSparseArray):
        array = importlib.import_module("outcore.tensor.arrays.array").Array.wrap(world, array)
    if hasattr(array, "to_hdf5"):  # an extended one
        array.to_hdf5(file, dataset, **options)
        return
    with opened(world, file, "a") as target:
        with world.together("make a dataset of HDF5", dataset, options):
            arguments.text("dataset", dataset)
            if target is not None:
                with translated("make a dataset", file):
                    _make_dataset(target, dataset, array, options)
        try:
            _copy_out(array, target, dataset, file)
        except BaseException:
            if target is not None:
                with suppress(OSError, RuntimeError, ValueError, KeyError):
                    del target[dataset]
            raise


def _copy_out(array: Any, target: Any, dataset: str, file: str | os.PathLike[str]) -> None:
    if not isinstance(array, DiskArray):
        _write_out(array, target, dataset, file)
        return
    for box in pieces_of(array.shape, array.chunk, array.dtype.itemsize, PIECE_BYTES):
        piece = np.empty(shape_of(box), array.dtype) if target is not None else None
        array.read_all(or_nothing(piece, array), box if piece is not None else None)
        with array.world.together("write to HDF5"):
            if target is not None:
                with translated("write", file):
                    target[dataset][box] = piece


def _write_out(array: Any, target: Any, dataset: str, file: str | os.PathLike[str]) -> None:
    """Writes an array whose elements rank 0 can get without the other processes."""
    array.barrier() if isinstance(array, NodeArray) else array.world.barrier()
    get = array.view.__getitem__ if isinstance(array, NodeArray) else array.__getitem__
    with array.world.together("write to HDF5"):
        if target is not None:
            with translated("write", file):
                chunk = (1,) * array.ndim
                for box in pieces_of(array.shape, chunk, array.dtype.itemsize, PIECE_BYTES):
                    target[dataset][box] = get(box)


def import_array(
    world: World,
    file: str | os.PathLike[str],
    dataset: str,
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> DiskArray:
    """A new disk array with the elements of a dataset. `path` and `options` are those of DiskArray. Collective.

    Elements of any byte order are converted to that of this machine; bool, float16, uint16 and uint32, which disk
    arrays do not have, become wider types that hold all values. A scalar becomes an array of one element.

    Raises OutcoreError, the same at all processes: ENOENT (no such file or dataset, or a part of it is missing),
    EINVAL (no elements, or a type that disk arrays do not have: strings, records, references; the message names
    it), ENOTSUP (compressed by a filter that h5py does not have here).
    """
    with opened(world, file, "r") as source:
        facts: Any = None
        with world.together("find a dataset of HDF5", dataset):
            arguments.text("dataset", dataset)
            inspect.signature(DiskArray).bind_partial(**options)  # TypeError for an unknown option
            if source is not None:
                with translated("find a dataset", file):
                    facts = facts_of(source, file, dataset)
        shape, dtype, metadata = world.broadcast(facts)
        array = DiskArray(world, shape, dtype, path=path, metadata=metadata, **options)
        try:
            _fill(array, source, dataset, file)
        except OutcoreError:  # at all processes
            array.remove()
            raise
    return array


def _fill(array: DiskArray, source: Any, dataset: str, file: str | os.PathLike[str]) -> None:
    for box in pieces_of(array.shape, array.chunk, array.dtype.itemsize, PIECE_BYTES):
        piece = None
        with array.world.together("read from HDF5"):
            if source is not None:
                with translated("read", file):
                    found = source[dataset]
                    elements = found[box] if found.shape else found[()]
                    piece = np.asarray(elements).astype(array.dtype, copy=False).reshape(shape_of(box))
        array.write_all(or_nothing(piece, array), box if piece is not None else None)


class opened:
    """The HDF5 file at rank 0, None at the others. All processes raise an error of rank 0. Collective."""

    def __init__(self, world: World, file: str | os.PathLike[str], mode: str) -> None:
        self.world, self.file, self.mode = world, file, mode
        self.handle: Any = None

    def __enter__(self) -> Any:
        with self.world.together_with(
            "open an HDF5 file", lambda: (arguments.path("file", self.file), self.mode)
        ):
            if self.world.rank == 0:
                try:
                    import h5py
                except ImportError as error:
                    raise extras.missing(error, "use HDF5 files") or error from error
                with translated("open", self.file):
                    if os.path.exists(self.file):
                        check_regular(self.file, "open")
                    self.handle = h5py.File(self.file, self.mode)
        return self.handle

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:  # at all processes
            with suppress(OSError, RuntimeError, ValueError):
                self._close()
            return
        with self.world.together("close an HDF5 file"), translated("close", self.file):
            self._close()  # the other processes return when the file is complete

    def _close(self) -> None:
        if self.handle is not None:
            self.handle.close()


class translated:
    """Raises errors of h5py as OutcoreError."""

    def __init__(self, attempted: str, file: str | os.PathLike[str]) -> None:
        self.attempted, self.file = attempted, file

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        kinds = OSError | RuntimeError | ValueError | KeyError
        if isinstance(error, OutcoreError) or not isinstance(error, kinds):
            return
        text = str(error)
        number = getattr(error, "errno", None)
        if number is None:
            number = next((each for words, each in _ERRORS if re.search(words, text)), errno.EIO)
            number = errno.EINVAL if isinstance(error, ValueError) else number
        raise OutcoreError(number, self.attempted, path=self.file, detail=text) from error


# Parts of HDF5's messages, which come without errno.
_ERRORS = (("signature not found|not an HDF5 file", errno.EINVAL), ("filter|plugin", errno.ENOTSUP))


def _make_dataset(target: Any, dataset: str, array: Any, options: dict[str, Any]) -> None:
    if dataset in target:
        raise OutcoreError(errno.EEXIST, f"export to dataset '{dataset}'", path=target.filename)
    made = target.create_dataset(dataset, array.shape, array.dtype, **options)
    try:
        made.attrs[_METADATA] = json.dumps(getattr(array, "metadata", None))
    except BaseException:
        del target[dataset]
        raise


def facts_of(source: Any, file: Any, dataset: str) -> tuple[tuple[int, ...], str, Any]:
    """Shape, type and metadata of the array that a dataset will become."""
    import h5py

    def refuse(number: int, detail: str) -> OutcoreError:
        return OutcoreError(number, f"import dataset '{dataset}'", path=file, detail=detail)

    if dataset not in source:
        raise refuse(errno.ENOENT, f"it has {', '.join(_datasets(source)) or 'none'}")
    try:
        found = source[dataset]
    except KeyError as error:
        raise refuse(errno.ENOENT, f"its link leads nowhere: {error}") from error
    if not isinstance(found, h5py.Dataset):
        inside = (
            f", with {', '.join(map(_text, found)) or 'nothing'}" if isinstance(found, h5py.Group) else ""
        )
        raise refuse(errno.EINVAL, f"it is no dataset but a {type(found).__name__.lower()}{inside}")
    if found.shape is None:
        raise refuse(errno.EINVAL, "it is empty, with no shape")
    if len(found.shape) > _MAX_DIMENSIONS:
        raise refuse(
            errno.EINVAL, f"it has {len(found.shape)} dimensions; an array has {_MAX_DIMENSIONS} at most"
        )
    name, why = _element_type(found)
    if name is None:
        known = ", ".join(dtype.name for dtype in DTYPES)
        raise refuse(errno.EINVAL, f"its elements are {why}; an array has {known}")
    if (missing := _missing_filter(found)) is not None:
        raise refuse(errno.ENOTSUP, f"it is compressed by {missing}, which this HDF5 library does not have")
    if (part := _missing_source(found, file)) is not None:
        raise refuse(errno.ENOENT, f"it is a view of others, and {part} is not there")
    try:
        text = found.attrs.get(_METADATA, "null")
        meta = metadata.parsed(text if isinstance(text, bytes) else str(text).encode())
    except FormatError as error:
        raise refuse(errno.EINVAL, f"its attribute '{_METADATA}': {error}") from error
    return found.shape or (1,), name, meta


def _datasets(source: Any) -> list[str]:
    """Names of the datasets in a file, the first ones if there are many."""
    names: list[str] = []

    def visit(name: str | bytes, found: Any) -> bool | None:  # bytes: the name is not UTF-8
        if hasattr(found, "shape"):
            names.append(_text(name))
        return True if len(names) > _MAX_NAMES else None  # ends the visit

    source.visititems(visit)
    return [*names[:_MAX_NAMES], "..."] if len(names) > _MAX_NAMES else names


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode(errors="replace")


def _element_type(found: Any) -> tuple[str | None, str]:
    """Name of the array type that holds the elements; or None, and a description of the elements."""
    try:
        dtype = found.dtype
    except TypeError as error:
        return None, f"of a type that NumPy does not have ({error})"
    what = _no_number(dtype)
    name = _WIDER.get(dtype.name, dtype.name)
    return (name, "") if not what and name in [each.name for each in DTYPES] else (None, what or dtype.name)


def _no_number(dtype: Any) -> str:
    """The kind of elements that are not numbers."""
    import h5py

    checks = (
        (h5py.check_string_dtype, "strings"),
        (h5py.check_vlen_dtype, "lists of different lengths"),
        (h5py.check_ref_dtype, "references to objects or regions"),
    )
    for check, what in checks:
        if check(dtype) is not None:
            return what
    if dtype.names is not None:
        return f"compound, of {', '.join(dtype.names)}"
    if dtype.subdtype is not None:
        return f"arrays {dtype.subdtype[1]} of {dtype.subdtype[0]}"
    return f"{dtype.name} (opaque)" if dtype.kind == "V" else ""


def _missing_filter(found: Any) -> str | None:
    import h5py

    properties = found.id.get_create_plist()
    for i in range(properties.get_nfilters()):
        code, _, _, name = properties.get_filter(i)
        if not h5py.h5z.filter_avail(code):
            return f"filter {code} ({name.decode(errors='replace')})"
    return None


def _missing_source(found: Any, file: Any) -> str | None:
    """A missing source of a virtual dataset, which would read fill values instead of its elements; or None."""
    import h5py

    for source in found.virtual_sources() if found.is_virtual else ():
        if "%" in source.file_name + source.dset_name or source.file_name == ".":
            continue
        place = os.path.join(os.path.dirname(os.fspath(file)), source.file_name)
        try:
            check_regular(place, "open")
            with h5py.File(place, "r") as other:
                if source.dset_name in other:
                    continue
        except OSError:
            pass
        return f"{source.dset_name} of {place}"
    return None
