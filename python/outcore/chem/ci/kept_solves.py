"""States of a solver that solves many times, as the orbitals of a CASSCF change, in one directory.

Each solve has a directory of its own there, `step.N`, as states of a solve may be needed until the next one has
ended. A run that goes on begins with the states that the last step of another run has left, whatever the orbitals
of that step were.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from outcore.chem.ci.restart import STATES
from outcore.keep.stages import Stages

if TYPE_CHECKING:
    from outcore.job.world import World

_NAME = re.compile(r"step\.(\d+)")


class KeptSolves:
    """Methods are collective. Raises OutcoreError: ENOENT (the directory that this one lies in is not there)."""

    def __init__(self, world: World, directory: Path) -> None:
        self._world, self._directory = world, directory
        Stages(world, directory)
        there, kept = world.broadcast(
            (self._there(), [each for each in self._there() if self._is_kept(each)])
        )
        self._found: int | None = max(kept, default=None)
        self._next = max(there, default=-1) + 1
        self.keep([] if self._found is None else [self._path(self._found)])

    def next(self) -> Path:
        """Where the next solve keeps its states. The first one finds there what another run has left."""
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

    def _is_kept(self, number: int) -> bool:
        """States were committed: a kill may come between the directory and these."""
        return any(self._path(number).glob(f"{STATES}.*/manifest"))

    def _there(self) -> list[int]:
        matches = (_NAME.fullmatch(each.name) for each in self._directory.iterdir())
        return [int(match[1]) for match in matches if match]

    def _path(self, number: int) -> Path:
        return self._directory / f"step.{number}"
