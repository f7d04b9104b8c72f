"""Arrays that are kept in a directory, so that another run goes on from them.

Each array says in its metadata what it is, of which problem, and which stage is complete; it is committed when a
stage is, so a killed run leaves complete stages only. Of another problem, or damaged, it is refused.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem import molecule
from outcore.disk_array import DiskArray
from outcore.errors import OutcoreError
from outcore.plain_file import sync_directory

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.world import World


def identity(*molecules: Mole, settings: tuple[float, ...] = ()) -> list[float]:
    """What makes integrals of molecules with their basis sets, as numbers; JSON keeps them exactly."""
    parts = [molecule.problem(mol) for mol in molecules]
    return [float(number) for number in np.concatenate([*parts, settings])]


class Keeper:
    """Named arrays in a directory. Methods are collective.

    Raises OutcoreError: ENOENT (no such directory), EINVAL (of another problem), EIO (damaged).
    """

    def __init__(self, world: World, directory: Path) -> None:
        self.world, self.directory = world, directory
        with world.together("checkpoint", str(directory)):
            if not directory.absolute().parent.is_dir():
                raise OutcoreError(errno.ENOENT, "keep arrays", path=directory, detail="no such directory")
            directory.mkdir(exist_ok=True)
            if world.rank == 0:
                sync_directory(directory.absolute().parent)  # a run that was killed may have made it

    def open(self, name: str, facts: dict[str, Any], *, cache: int, read_only: bool) -> DiskArray | None:
        """The array that is there, or None; its metadata have what `facts` has, but for rounding of numbers."""
        path = self.directory / name
        try:
            with offering(path):
                array = DiskArray.open(self.world, path, read_only=read_only, cache=cache)
        except OutcoreError as error:
            if error.errno != errno.ENOENT or Path(error.path or path).name not in (name, "manifest"):
                raise
            return None
        differs = [key for key, value in facts.items() if not _alike((array.metadata or {}).get(key), value)]
        if differs:
            array.close()
            raise OutcoreError(
                errno.EINVAL,
                "go on from kept arrays",
                path=path,
                detail=f"they are of another {' and '.join(differs)}; name another directory, or remove this one",
            )
        return array

    def make(self, name: str, shape: tuple[int, ...], chunk: tuple[int, ...], cache: int) -> DiskArray:
        """A new array, in place of what is there. It counts from its first flush on."""
        path = self.directory / name
        return DiskArray(self.world, shape, path=path, chunk=chunk, cache=cache, overwrite=True)


def _alike(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return (
            isinstance(found, list) and len(found) == len(wanted) and np.allclose(found, wanted, 1e-9, 1e-12)
        )
    return bool(found == wanted)


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
