"""Layout of the elements of a classic disk resident array: its .info file, and the bricks of its files.

Axes are in the order of C here; the .info file has the order of Fortran, which is the reverse.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.plain_file import read_bytes
from outcore.keep.pieces import Slices, shape_of

BRICK_BYTES = 1 << 20  # size of the classic DRA's buffer
MAX_AXES = 7
MAX_NAME = 71  # characters
_MAX_INFO_BYTES = 1 << 16
TYPES = {  # numbers of MA for C
    1001: "int32",
    1002: "int64",
    1003: "float32",
    1004: "float64",
    1006: "complex64",
    1007: "complex128",
}
_COLUMNS = 1  # the only layout of the classic DRA


@dataclass(frozen=True)
class ClassicLayout:
    base: Path
    shape: tuple[int, ...]
    brick: tuple[int, ...]  # its shape
    type: int
    name: str
    files: int  # 0: one file, with the name of the array

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(TYPES[self.type])

    def file(self, number: int) -> Path:
        return self.base if self.files == 0 else self.base.with_name(f"{self.base.name}.{number}")

    @property
    def numbers(self) -> range:
        """Numbers of the files."""
        return range(max(1, self.files))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Bricks along each axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.brick, strict=True))

    @cached_property
    def _offsets(self) -> tuple[np.ndarray[Any, Any], list[int]]:
        """For several files: elements before each brick in its file, and elements of each file."""
        volumes: np.ndarray[Any, Any] = np.ones((), np.int64)
        for count, brick, n in zip(self.counts, self.brick, self.shape, strict=True):
            lengths = np.full(count, brick, np.int64)
            lengths[-1] = n - (count - 1) * brick
            volumes = np.multiply.outer(volumes, lengths)
        volumes = volumes.ravel()
        offsets = np.empty_like(volumes)
        for each in range(self.files):
            mine = volumes[each :: self.files]
            offsets[each :: self.files] = np.cumsum(mine) - mine
        return offsets, [int(volumes[each :: self.files].sum()) for each in range(self.files)]

    def size_bytes(self, number: int) -> int:
        """Size of a file."""
        elements = math.prod(self.shape) if self.files == 0 else self._offsets[1][number]
        return elements * self.dtype.itemsize

    def box(self, index: tuple[int, ...]) -> Slices:
        return tuple(
            slice(i * b, min((i + 1) * b, n)) for i, b, n in zip(index, self.brick, self.shape, strict=True)
        )

    def place(self, index: tuple[int, ...]) -> tuple[int, int]:
        """The file of a brick, and its offset there, in bytes. Inside a brick the last axis varies fastest."""
        if self.files > 0:
            number = int(np.ravel_multi_index(index, self.counts))
            return number % self.files, int(self._offsets[0][number]) * self.dtype.itemsize
        # Slabs of bricks along the last axis; in each of them slabs along the one before; and so on.
        offset, before = 0, 1
        lengths = shape_of(self.box(index))
        for k in reversed(range(len(self.shape))):
            offset += before * index[k] * self.brick[k] * math.prod(self.shape[:k])
            before *= lengths[k]
        return 0, offset * self.dtype.itemsize

    def bricks_in(self, box: Slices) -> Iterator[tuple[int, ...]]:
        """Indices of the bricks that make up a box of whole bricks."""
        ranges = [range(axis.start // b, -(-axis.stop // b)) for axis, b in zip(box, self.brick, strict=True)]
        for index in np.ndindex(*map(len, ranges)):
            yield tuple(axis[i] for axis, i in zip(ranges, index, strict=True))

    def info(self) -> str:
        """The text of the .info file."""
        ioprocs = max(1, self.files)
        shape, brick = (" ".join(map(str, reversed(each))) for each in (self.shape, self.brick))
        numbers = f"{len(self.shape)} {shape} {self.type} {_COLUMNS} {brick} {ioprocs} {ioprocs} "
        return f"{numbers}\n{self.name}\n"


def read_layout(meta: str | os.PathLike[str]) -> ClassicLayout:
    """The layout of the array with this .info file, or with this name.

    Raises OutcoreError: ENOENT, EINVAL (no .info file, or one of an array that Outcore cannot have), EIO (files are
    missing, or have a wrong size).
    """
    info = Path(meta)
    if not info.name.endswith(".info"):
        info = info.with_name(f"{info.name}.info")

    def refuse(number: int, detail: str) -> OutcoreError:
        return OutcoreError(number, "import a classic array", path=info, detail=detail)

    try:
        lines = (
            read_bytes(info, "import a classic array", _MAX_INFO_BYTES).decode(errors="replace").split("\n")
        )
    except OutcoreError as error:
        detail = f": {error.detail}" if error.detail else ""
        raise refuse(error.errno or errno.EIO, f"its .info cannot be read{detail}") from error
    try:
        numbers = [int(word) for word in lines[0].split()]
        axes = numbers[0]
        if not 1 <= axes <= MAX_AXES or len(numbers) != 2 * axes + 5:
            raise ValueError
    except (ValueError, IndexError):
        raise refuse(errno.EINVAL, "it is no .info of a disk resident array") from None
    shape = tuple(reversed(numbers[1 : axes + 1]))
    kind = numbers[axes + 1]
    brick = tuple(reversed(numbers[axes + 3 : 2 * axes + 3]))
    if kind not in TYPES:
        known = ", ".join(f"{number} ({name})" for number, name in TYPES.items())
        raise refuse(errno.EINVAL, f"its type is {kind}; types that can be imported are {known}")
    if min(shape) < 1 or min(brick) < 1:
        raise refuse(errno.EINVAL, f"its shape is {shape}, that of its bricks {brick}")
    base = info.with_name(info.name.removesuffix(".info"))
    named = numbers[2 * axes + 3]
    each_node = (
        named <= 1 and not base.exists()
    )  # each node's disk had a file: the .info file does not tell how many
    files = _count(base) if each_node else named if named > 1 else 0
    if each_node and files == 0:
        raise refuse(errno.EIO, f"neither {base} nor {base}.0 is there")
    found = ClassicLayout(base, shape, brick, kind, lines[1] if len(lines) > 1 else "", files)
    missing = next((each for each in map(found.file, found.numbers) if not each.exists()), None)
    if missing is not None:
        raise refuse(errno.EIO, f"{missing} is not there")
    for each in found.numbers:
        there, wanted = found.file(each).stat().st_size, found.size_bytes(each)
        # A file may be longer, if an earlier array has left it. But if files are counted, it may not: a file too
        # many, of an earlier array, would change the place of every brick.
        if there < wanted or (each_node and there > wanted):
            raise refuse(errno.EIO, f"{found.file(each)} has {there} bytes, not {wanted}")
    return found


def _count(base: Path) -> int:
    return next(i for i in itertools.count() if not base.with_name(f"{base.name}.{i}").exists())


def usual_brick(shape: tuple[int, ...], element_bytes: int, files: int = 1) -> tuple[int, ...]:
    """Shape of a brick: nearly cubic, at most BRICK_BYTES, and so small that each of several files gets some."""
    brick = list(shape)
    wanted = 4 * files if files > 1 else 1

    def count() -> int:
        return math.prod(-(-n // b) for n, b in zip(shape, brick, strict=True))

    while max(brick) > 1 and (math.prod(brick) * element_bytes > BRICK_BYTES or count() < wanted):
        longest = brick.index(max(brick))
        brick[longest] = -(-brick[longest] // 2)
    return tuple(brick)
