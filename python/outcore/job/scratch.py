"""The directory of scratch files, and room on disks."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.job.preflight import check_file_size

if TYPE_CHECKING:
    from outcore.job.world import World


def find_scratch(directory: str | os.PathLike[str] | None = None) -> str:
    """The scratch directory to use: the given one, which must be a writable directory, else the fastest of this
    node. Raises OutcoreError."""
    if directory is None:
        return str(_core.default_scratch())
    problem = None
    if not os.path.exists(directory):
        problem = errno.ENOENT, "no such directory"
    elif not os.path.isdir(directory):
        problem = errno.ENOTDIR, "it has to be a directory"
    elif not os.access(directory, os.W_OK | os.X_OK):
        problem = errno.EACCES, "not writable"
    if problem is not None:
        raise OutcoreError(problem[0], "use scratch directory", path=directory, detail=problem[1])
    return os.path.abspath(directory)


def allocated_bytes(directories: Iterable[Path]) -> int:
    """Bytes that files in these directories take on the disk; 0 for a path that is no directory. Raises OSError."""
    files = (file for each in directories if each.is_dir() for file in each.rglob("*") if file.is_file())
    return sum(512 * file.stat().st_blocks for file in files)


def bytes_here(world: World, directory: str | os.PathLike[str], size_bytes: int) -> int:
    """All processes write `size_bytes` together, in equal parts, below a directory of that name: the bytes of these
    that go to this node's file system; all of them if nodes share it. Raises OutcoreError."""
    if _core.file_system(directory).network:
        return size_bytes
    return -(-size_bytes * world.node_size // world.size)


def free_bytes_of_all(world: World, directory: str | os.PathLike[str]) -> float:
    """Free bytes below a directory of that name, at all nodes together; a file system that nodes share counts once.
    Collective. Raises OutcoreError."""
    mine = 0.0
    with world.together("look at a disk"):
        system = _core.file_system(directory)
        mine = system.free_bytes / (world.size if system.network else world.node_size)
    return float(world.all_reduce(mine))


def check_room(
    world: World,
    attempted: str,
    needs: Sequence[tuple[Path, int]],
    *,
    largest_file: int = 0,
    advice: str = "",
) -> None:
    """Checks whether the disks of these directories have room for so many bytes, and whether the largest file may
    be written. Bytes are those of all processes that use the same disk (`bytes_here`); needs on one file system are
    added up. Collective. Raises OutcoreError: ENOSPC, which names the directory that needs most and contains the
    `advice`; EFBIG."""
    with world.together("room on disks"):
        if needs:
            check_file_size(attempted, max(needs, key=lambda need: need[1])[0], largest_file)
        of_disks: dict[int, list[tuple[int, Path]]] = {}
        for directory, size in needs:
            place = directory if directory.exists() else directory.absolute().parent
            of_disks.setdefault(place.stat().st_dev, []).append((size, place))
        for parts in of_disks.values():
            size, (_, place) = sum(each for each, _ in parts), max(parts)
            free = int(_core.file_system(str(place)).free_bytes)
            if size > free:
                raise OutcoreError(
                    errno.ENOSPC,
                    attempted,
                    path=place,
                    detail=f"arrays take {in_words(size)}, there are {in_words(free)}"
                    + (f"; {advice}" if advice else ""),
                )
