"""A text in an HDF5 file that may be damaged. HDF5 keeps texts of variable length in global heaps. In a damaged
heap its library may loop for ever or read past the end. So this module reads the heap itself and checks it (HDF5
File Format Specification 3.0, III.E: Global Heap, and VIII.B)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

_REFERENCE = struct.Struct("<IQI")  # length, address of the heap, number of the object
_HEAP = struct.Struct("<4sB3xQ")  # signature, version, bytes of all of it
_OBJECT = struct.Struct("<HH4xQ")  # number, references, bytes
_ALIGNED = 8
_LARGEST_BYTES = 1 << 26  # largest heap with one text


def text_of(dataset: Any, path: Path) -> str:
    """The text of a dataset of h5py with a single text, in the file at `path`. Raises ValueError if it has none,
    or if the file is damaged."""
    import h5py

    if dataset.shape != ():
        raise ValueError(f"{dataset.name} of shape {dataset.shape} is no text")
    form = h5py.check_string_dtype(dataset.dtype)
    if form is None:
        raise ValueError(f"{dataset.name} of {dataset.dtype} is no text")
    if form.length is not None:
        return bytes(dataset[()]).decode()
    place, sizes = dataset.id.get_offset(), dataset.file.id.get_create_plist().get_sizes()
    if place is None or sizes != (8, 8):
        raise ValueError(f"{dataset.name} is stored in a form that is not read")
    content = path.read_bytes()
    first = dataset.file.userblock_size
    length, heap, number = _REFERENCE.unpack(_part(content, place, _REFERENCE.size))
    return _object(content, first + heap, number, length).decode()


def _object(content: bytes, heap: int, wanted: int, length: int) -> bytes:
    """The object with number `wanted` in a heap. It must have `length` bytes."""
    signature, version, size = _HEAP.unpack(_part(content, heap, _HEAP.size))
    if signature != b"GCOL" or version != 1 or not _HEAP.size <= size <= _LARGEST_BYTES:
        raise ValueError("its texts are damaged")
    everything = _part(content, heap, size)
    place = _HEAP.size
    while place + _OBJECT.size <= size:
        number, _, count = _OBJECT.unpack_from(everything, place)
        place += _OBJECT.size
        if number == wanted and number:
            if count != length or place + count > size:
                raise ValueError(f"a text of {length} bytes is one of {count} in {size}")
            return everything[place : place + count]
        if not number or count > size:
            break
        place += -(-count // _ALIGNED) * _ALIGNED
    raise ValueError(f"text {wanted} is not where the file says")


def _part(content: bytes, first: int, count: int) -> bytes:
    if first + count > len(content):
        raise ValueError("a text lies beyond the end of the file")
    return content[first : first + count]
