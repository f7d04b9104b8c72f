"""The kept states of a solver that solves many times while the orbitals of a CASSCF change, in one directory.

Each solve has a directory of its own there, `step.N`, because states of a solve may be needed until the next solve
has ended. Another run begins with the states of the last step, whatever its orbitals were. They must be of the same
molecule, which is recorded beside the steps.
"""

from __future__ import annotations

import errno
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.chem.ci.restart import STATES
from outcore.keep import stages
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

_NAME = re.compile(r"step\.(\d+)")
_MOLECULE = "molecule"  # the record of the molecule beside the steps
_FORMAT = 1
_GO_ON = "go on from kept states"


class KeptSolves:
    """The kept solves of a molecule (None: of a model without one). Methods are collective.

    Raises OutcoreError: ENOENT (the parent directory does not exist), EINVAL (states of another molecule; the error
    names the settings that differ), ENOTSUP (another format), EIO (damaged)."""

    def __init__(self, world: World, directory: Path, mol: Mole | None) -> None:
        self._world, self._directory = world, directory
        stages.Stages(world, directory)
        there: list[int] = []
        kept: list[int] = []
        with world.together("find kept states", str(directory)):
            if world.rank == 0:
                there = self._there()
                kept = [each for each in there if self._is_kept(each)]
                self._check(mol, bool(kept))
        there, kept = world.broadcast((there, kept))
        self._found: int | None = max(kept, default=None)
        self._next = max(there, default=-1) + 1
        self.keep([] if self._found is None else [self._path(self._found)])

    def next(self) -> Path:
        """The directory in which the next solve keeps its states. The first solve finds the states of another run
        there."""
        if self._found is not None:
            number, self._found = self._found, None
        else:
            number, self._next = self._next, self._next + 1
        return self._path(number)

    def keep(self, paths: list[Path]) -> None:
        """Removes all steps but these."""
        with self._world.together("remove kept states", str(self._directory)):
            if self._world.node_rank == 0:
                for number in self._there():
                    if (path := self._path(number)) not in paths:
                        with suppress(FileNotFoundError):
                            shutil.rmtree(path)

    def _check(self, mol: Mole | None, any_states: bool) -> None:
        """Checks the record of the molecule, or writes it if there is none. For one process."""
        settings = {} if mol is None else problem.molecule(mol)
        wanted = Problem("states of many solves", _FORMAT, settings, problem.ROUNDED)
        path = self._directory / _MOLECULE
        try:
            with stages.opened(path, wanted, _GO_ON):
                return
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
        if any_states:
            detail = (
                "it does not say of which molecule its states are; name another directory, or remove this one"
            )
            raise OutcoreError(errno.EINVAL, _GO_ON, path=self._directory, detail=detail)
        stages.save(path, wanted, {}, {})

    def _is_kept(self, number: int) -> bool:
        """Whether states of this step were committed: a kill may leave a directory without states."""
        return any(self._path(number).glob(f"{STATES}.*/manifest"))

    def _there(self) -> list[int]:
        matches = (_NAME.fullmatch(each.name) for each in self._directory.iterdir())
        return [int(match[1]) for match in matches if match]

    def _path(self, number: int) -> Path:
        return self._directory / f"step.{number}"
