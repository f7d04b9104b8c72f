"""Disk arrays in pieces that fit into memory, for conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Slices = tuple[slice, ...]


def pieces_of(
    shape: tuple[int, ...], chunk: tuple[int, ...], element_bytes: int, piece_bytes: int
) -> Iterator[Slices]:
    """Boxes of whole chunks that cover an array, in memory order, of at most `piece_bytes` if a chunk is
    smaller."""
    step = list(shape)
    for axis, length in enumerate(chunk[: len(shape)]):
        others = max(int(np.prod(step[:axis] + step[axis + 1 :], dtype=np.int64)) * element_bytes, 1)
        fits = max(piece_bytes // others, 1)
        if fits >= step[axis]:
            break
        step[axis] = max(fits - fits % length, length)
    counts = [-(-n // max(s, 1)) for n, s in zip(shape, step, strict=True)]
    for index in np.ndindex(*counts):
        yield tuple(slice(i * s, min(i * s + s, n)) for i, s, n in zip(index, step, shape, strict=True))


def shape_of(box: Slices) -> tuple[int, ...]:
    return tuple(axis.stop - axis.start for axis in box)


def or_nothing(piece: np.ndarray[Any, Any] | None, array: Any) -> np.ndarray[Any, Any]:
    """The piece, or an empty array for a process without a piece."""
    return np.empty((0,) * array.ndim, array.dtype) if piece is None else piece
