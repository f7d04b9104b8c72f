"""Arrays that are kept in a directory, so that another run goes on from them.

Each array says in its metadata what it is, of which problem (see `outcore.keep.problem`), and which stage is
complete; it is committed when a stage is, so a killed run leaves complete stages only. Of another problem, or
damaged, it is refused.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from outcore.chem import problem
from outcore.chem.ri import metric
from outcore.disk_array import DiskArray
from outcore.errors import OutcoreError
from outcore.keep.problem import Problem
from outcore.plain_file import sync_directory

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.world import World


FORMAT = 2  # of all arrays and their metadata

Check = Callable[[DiskArray], str]


def settings(mol: Mole, auxmol: Mole, threshold: float) -> problem.Settings:
    """What fitted integrals of a molecule and its auxiliary basis depend on."""
    return {
        **problem.integrals(mol),
        **problem.auxiliary(auxmol),
        "threshold": float(threshold),
        "cut of the metric": metric.LINEAR_DEPENDENCE,
    }


class Keeper:
    """Named arrays in a directory. Methods are collective.

    Raises OutcoreError: ENOENT (no such directory), EINVAL (of another problem), ENOTSUP (in another format), EIO
    (damaged).
    """

    def __init__(self, world: World, directory: Path) -> None:
        self.world, self.directory = world, directory
        with world.together("checkpoint", str(directory)):
            if not directory.absolute().parent.is_dir():
                raise OutcoreError(errno.ENOENT, "keep arrays", path=directory, detail="no such directory")
            directory.mkdir(exist_ok=True)
            if world.rank == 0:
                sync_directory(directory.absolute().parent)  # a run that was killed may have made it

    def open(
        self, name: str, wanted: Problem, check: Check, *, cache: int, read_only: bool
    ) -> DiskArray | None:
        """The array that is there, or None. It is of the problem `wanted`, and nothing is wrong with its shape and
        what it says of itself: `check` says what is, or nothing."""
        path = self.directory / name
        try:
            with offering(path):
                array = DiskArray.open(self.world, path, read_only=read_only, cache=cache)
        except OutcoreError as error:
            if error.errno != errno.ENOENT or Path(error.path or path).name not in (name, "manifest"):
                raise
            return None
        try:
            with self.world.together("go on from kept arrays", name):
                found = array.metadata
                wanted.check(found, "go on from kept arrays", path)
                is_wrong = f"its type is {array.dtype}" if array.dtype != "float64" else check(array)
                if is_wrong:
                    detail = f"damaged or written wrongly: {is_wrong}; remove it and run again"
                    raise OutcoreError(errno.EIO, "go on from kept arrays", path=path, detail=detail)
        except OutcoreError:  # at all processes
            array.close()
            raise
        return array

    def make(self, name: str, shape: tuple[int, ...], chunk: tuple[int, ...], cache: int) -> DiskArray:
        """A new array, in place of what is there. It counts from its first flush on."""
        path = self.directory / name
        return DiskArray(self.world, shape, path=path, chunk=chunk, cache=cache, overwrite=True)


@contextmanager
def offering(path: Path | None) -> Iterator[None]:
    """Damage to a kept array is raised with the way out of it."""
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
