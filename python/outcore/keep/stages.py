"""Stages: finished parts of a calculation stay on disk, so that another run can continue after them.

A stage has the results of a part of a calculation: named arrays, facts beside them, and a record of their
meaning, format and problem (see `outcore.keep.problem`). A stage exists only when it is complete: a killed run
leaves complete stages only. A run refuses stages of another problem, in another format, or damaged; it never uses
them.

    stages = Stages(world, directory)                      large arrays of all processes
    found = Stage(stages, "amplitudes", problem).open(wrong, cache_bytes=..)

    save(path, problem, arrays, facts)                     small arrays of one process
    with opened(path, problem, "restart") as saved: ...
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore.arrays.disk_array import DiskArray
from outcore.base.errors import OutcoreError
from outcore.base.plain_file import sync_directory
from outcore.job.unclosed import only_flushed
from outcore.job.world import World
from outcore.keep import checkpoint

if TYPE_CHECKING:
    from outcore.keep.checkpoint import Checkpoint
    from outcore.keep.problem import Problem

Check = Callable[[DiskArray], str]  # returns the fault of an array or of its facts, or ""

_GO_ON = "go on from kept arrays"


class Stages:
    """A directory of stages. Methods are collective.

    Raises OutcoreError: ENOENT (no such directory).
    """

    def __init__(self, world: World, directory: Path) -> None:
        self.world, self.directory = world, directory
        with world.together("checkpoint", str(directory)):
            if not directory.absolute().parent.is_dir():
                raise OutcoreError(errno.ENOENT, "keep arrays", path=directory, detail="no such directory")
            directory.mkdir(exist_ok=True)
            if world.rank == 0:
                sync_directory(directory.absolute().parent)  # a killed run may have made it without this


@dataclass(frozen=True)
class Stage:
    """One array of a stage: its directory, its name, and the problem that its record must have. Methods are
    collective."""

    stages: Stages
    name: str
    problem: Problem

    @property
    def path(self) -> Path:
        return self.stages.directory / self.name

    def open(
        self, check: Check, *, cache_bytes: int, read_only: bool = False, dtype: str = "float64"
    ) -> DiskArray | None:
        """Opens the array of the stage; None if there is none. `check` returns the fault of its shape or its facts
        (`metadata`), or "".

        Raises OutcoreError: EINVAL (of another problem), ENOTSUP (in another format), EIO (damaged: another
        type, or a fault that `check` finds)."""
        world, path = self.stages.world, self.path
        try:
            with offering(path):
                array = only_flushed(
                    DiskArray.open(world, path, read_only=read_only, cache_bytes=cache_bytes)
                )
        except OutcoreError as error:
            if error.errno != errno.ENOENT or Path(error.path or path).name not in (self.name, "manifest"):
                raise
            return None
        try:
            with world.together(_GO_ON, self.name):
                self.problem.check(array.metadata, _GO_ON, path)
                wrong = f"its type is {array.dtype}" if array.dtype != dtype else check(array)
                if wrong:
                    raise damaged(_GO_ON, path, f"{wrong}; remove it and run again")
        except OutcoreError:  # at all processes
            array.close()
            raise
        return array

    def make(
        self, shape: tuple[int, ...], chunk: tuple[int, ...], cache_bytes: int, dtype: str = "float64"
    ) -> DiskArray:
        """A new array, which replaces an old one. It is a stage only after `complete`."""
        return only_flushed(
            DiskArray(
                self.stages.world,
                shape,
                dtype,
                path=self.path,
                chunk=chunk,
                cache_bytes=cache_bytes,
                overwrite=True,
            )
        )

    def complete(self, array: DiskArray, **facts: Any) -> None:
        """Commits the elements put into the array so far: they are a stage now, which another run need not repeat.
        `facts`: JSON values."""
        array.flush(self.problem.as_json() | facts)


@contextmanager
def offering(path: Path | None) -> Iterator[None]:
    """Adds to an error of a damaged array in `path` that the user can remove it and run again."""
    try:
        yield
    except OutcoreError as error:
        if path is None or error.errno != errno.EIO or "recompute" in error.detail:
            raise
        better = OutcoreError(
            error.errno,
            error.attempted,
            path=error.path,
            offset=error.offset,
            size_bytes=error.size_bytes,
            detail=f"{error.detail}; remove {path} and run again: this stage is recomputed, others are kept",
            rank=error.rank,
        )
        better.collective = error.collective
        raise better from error


# ---- of one process ----


def save(
    path: str | os.PathLike[str],
    problem: Problem | Mapping[str, Any],
    arrays: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> None:
    """Keeps small arrays of this process, all of them or none; they replace old ones. Not collective. `problem`: a
    Problem or its record, so that a caller can make the record once for many saves."""
    record = problem if isinstance(problem, Mapping) else problem.as_json()
    with World("self") as world:
        checkpoint.save(world, path, dict(arrays), {**record, **facts})


@contextmanager
def opened(
    path: str | os.PathLike[str], problem: Problem, attempted: str, *, of_any_method: bool = False
) -> Iterator[Checkpoint]:
    """The arrays that `save` has kept, with the facts in `meta`, after a check that they are of this problem
    (`of_any_method`: see Problem.check). The caller checks the forms of arrays before it reads them. Not
    collective.

    Raises OutcoreError: ENOENT (there is nothing), EINVAL (of something else, or another problem), ENOTSUP (in
    another format), EIO (damaged)."""
    with World("self") as world, checkpoint.load(world, path) as saved:
        problem.check(saved.meta, attempted, path, of_any_method=of_any_method)
        yield saved


def damaged(attempted: str, path: str | os.PathLike[str], detail: str) -> OutcoreError:
    """The error for kept values that cannot be those that were written."""
    return OutcoreError(errno.EIO, attempted, path=path, detail=f"damaged or written wrongly: {detail}")
