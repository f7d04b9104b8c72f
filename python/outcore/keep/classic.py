"""Conversion between disk resident arrays (DRA) of Global Arrays and disk arrays of Outcore.

    disk = outcore.classic.import_dra(world, "t2.info", path="t2.array")
    outcore.classic.export_dra(disk, "t2")

All functions are collective. A classic array is a text, NAME.info, and one file NAME or several, NAME.0,
NAME.1, ..; all processes see their directory. The order of axes is reversed: Fortran's first axis is the last
one here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.disk_array import DiskArray
from outcore.base.errors import OutcoreError
from outcore.job import arguments
from outcore.keep.classic_layout import MAX_AXES, MAX_NAME, TYPES, ClassicLayout, read_layout, usual_brick
from outcore.keep.pieces import Slices, or_nothing, pieces_of, shape_of

if TYPE_CHECKING:
    from outcore.job.world import World

PIECE_BYTES = 32 << 20
_MARK = "pario "  # begins the metadata of arrays of liboutcore_pario; a type and the name follow


def import_dra(
    world: World,
    meta: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> DiskArray:
    """A new disk array with the elements of the classic array whose .info file is `meta`. `path` and `options` are
    those of DiskArray. Programs with liboutcore_pario can open it by dra_open, with its type and name. Collective.

    Raises OutcoreError, the same at all processes: ENOENT (no such file), EINVAL (no .info file), EIO (files are
    missing, or have a wrong size), and errors of DiskArray.
    """
    found: ClassicLayout | None = None
    with world.together_with("import a classic array", lambda: arguments.path("meta", meta)):
        found = read_layout(meta)
    assert found is not None
    if options.get("metadata") is None:
        options["metadata"] = f"{_MARK}{found.type}\n{found.name}"
    array = DiskArray(world, found.shape, found.dtype, path=path, **options)
    try:
        for box in _shares(world, found):
            piece = None
            with world.together("read a classic array"):
                if box is not None:
                    piece = _read(found, box)
            array.write_all(or_nothing(piece, array), box)
    except OutcoreError:  # at all processes
        array.remove()
        raise
    return array


def export_dra(
    array: DiskArray, name: str | os.PathLike[str], *, files: int = 1, overwrite: bool = False
) -> None:
    """Writes a disk array as a classic one: NAME.info and one file, or `files` files. Collective.

    Programs of Global Arrays can open it; with several files they need at least as many processes.

    Raises OutcoreError, the same at all processes: EEXIST (there is a classic array, and no `overwrite`), EINVAL (a
    type or a number of axes that the classic DRA does not have), ENOSPC and other errors of disks. After an error
    there is no classic array.
    """
    world = array.world
    target: ClassicLayout | None = None
    with world.together_with(
        "export a classic array", lambda: (arguments.path("name", name), files, overwrite)
    ):
        target = _layout_of(array, Path(name), files)
        if world.rank == 0:
            _make(target, overwrite)
    assert target is not None
    try:
        for box in _shares(world, target):
            piece = np.empty(shape_of(box), array.dtype) if box is not None else None
            array.read_all(or_nothing(piece, array), box)
            with world.together("write a classic array"):
                if box is not None and piece is not None:
                    _write(target, box, piece)
        with world.together("write a classic array"):
            if world.rank == 0:
                with _named(_info(target)):
                    _info(target).write_text(target.info())
    except BaseException:
        if world.rank == 0:
            _remove(target)
        raise


def _shares(world: World, layout: ClassicLayout) -> Iterator[Slices | None]:
    """Boxes of whole bricks, dealt out in turn: yields the boxes of this process, and None if it has none in a
    round in which others have one."""
    own: Slices | None = None
    pieces = pieces_of(layout.shape, layout.brick, layout.dtype.itemsize, PIECE_BYTES)
    position = -1
    for position, box in enumerate(pieces):
        if position % world.size == world.rank:
            own = box
        if position % world.size == world.size - 1:
            yield own
            own = None
    if (position + 1) % world.size:
        yield own


def _read(layout: ClassicLayout, box: Slices) -> np.ndarray[Any, Any]:
    piece = np.empty(shape_of(box), layout.dtype)
    with _opened(layout, "rb") as files:
        for number, offset, brick in _bricks(layout, box):
            values = np.empty(shape_of(brick), layout.dtype)
            with _named(layout.file(number)):
                source = files(number)
                source.seek(offset)
                count = source.readinto(_bytes(values))
            if count < values.nbytes:
                raise OutcoreError(
                    errno.EIO, "read a classic array", path=layout.file(number), detail="it became shorter"
                )
            piece[_inside(brick, box)] = values
    return piece


def _write(layout: ClassicLayout, box: Slices, piece: np.ndarray[Any, Any]) -> None:
    with _opened(layout, "r+b", buffering=0) as files:
        for number, offset, brick in _bricks(layout, box):
            data = _bytes(np.ascontiguousarray(piece[_inside(brick, box)]))
            with _named(layout.file(number)):
                target = files(number)
                target.seek(offset)
                while data:
                    data = data[target.write(data) :]


@contextmanager
def _opened(layout: ClassicLayout, mode: str, buffering: int = -1) -> Iterator[Callable[[int], Any]]:
    """A function that returns a file by its number; each is opened once, because bricks may be many and small."""
    with ExitStack() as stack:
        yield cache(lambda number: stack.enter_context(layout.file(number).open(mode, buffering)))


def _bytes(values: np.ndarray[Any, Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _bricks(layout: ClassicLayout, box: Slices) -> Iterator[tuple[int, int, Slices]]:
    """File, offset in bytes and box of each brick in a box."""
    for index in layout.bricks_in(box):
        yield *layout.place(index), layout.box(index)


def _inside(part: Slices, box: Slices) -> Slices:
    """The place of a part in the memory of a box."""
    return tuple(slice(p.start - b.start, p.stop - b.start) for p, b in zip(part, box, strict=True))


def _layout_of(array: DiskArray, base: Path, files: int) -> ClassicLayout:
    def refuse(detail: str) -> OutcoreError:
        return OutcoreError(errno.EINVAL, "export a classic array", path=base, detail=detail)

    kinds = {name: number for number, name in TYPES.items()}
    if array.dtype.name not in kinds:
        raise refuse(f"its elements are {array.dtype.name}; the classic DRA has {', '.join(kinds)}")
    if array.ndim > MAX_AXES:
        raise refuse(f"it has {array.ndim} axes; the classic DRA has {MAX_AXES} at most")
    if not 1 <= files <= 1000:
        raise refuse(f"{files} files; there are 1 to 1000")
    metadata, name = array.metadata, ""
    if isinstance(metadata, str) and metadata.startswith(_MARK):
        name = metadata.partition("\n")[2]
    name = " ".join(name.split("\n"))[:MAX_NAME] or base.name[:MAX_NAME]
    brick = usual_brick(array.shape, array.dtype.itemsize, files)
    return ClassicLayout(base, array.shape, brick, kinds[array.dtype.name], name, files if files > 1 else 0)


def _info(layout: ClassicLayout) -> Path:
    return layout.base.with_name(f"{layout.base.name}.info")


def _make(layout: ClassicLayout, overwrite: bool) -> None:
    """Makes the files in their final size, without the .info file: so they are no array yet."""
    there = [each for each in (_info(layout), *map(layout.file, layout.numbers)) if each.exists()]
    if there and not overwrite:
        raise OutcoreError(errno.EEXIST, "export a classic array", path=there[0])
    with suppress(OutcoreError):  # all files of the old array: the new one may have fewer
        _remove(read_layout(_info(layout)))
    _remove(layout)
    for number in layout.numbers:
        with _named(layout.file(number)), layout.file(number).open("wb") as file:
            file.truncate(layout.size_bytes(number))


def _remove(layout: ClassicLayout) -> None:
    for each in (_info(layout), *map(layout.file, layout.numbers)):
        with suppress(OSError):
            each.unlink()


class _named:
    """Raises errors of the system as OutcoreError."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if isinstance(error, OSError) and not isinstance(error, OutcoreError):
            raise OutcoreError(error.errno or errno.EIO, "move a classic array", path=self.file) from error
