"""What NEVPT2 has finished lies in the directory of a checkpoint, and another run goes on from there.

Two records for each root: three-particle densities contracted with integrals (`Densities`), which follow from the
state alone, and sums and norms of perturbers, which follow from integrals with outer orbitals, too.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import OutcoreError
from outcore.keep import stages
from outcore.keep.clock import Clock

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.keep.problem import Problem

Matrix = NDArray[np.float64]

_FIRST = "same_"  # of names of arrays that the others follow from
_SAME = 1e-8  # of densities and integrals in atomic units: of one state, not of one that was found anew
_GO_ON = "go on with NEVPT2"


class KeptParts:
    """Arrays by name, alike at all processes, in one file that process 0 writes.

    path: None keeps nothing. same: arrays that all others follow from. Where those of a file differ, its states or
    orbitals were found anew: the others are not used, and `is_other` says so. Making it and `put` are collective.

    Raises OutcoreError: EINVAL (of another problem, whose settings are named), ENOTSUP (in another format), EIO
    (damaged), and what writing raises."""

    def __init__(self, world: World, path: Path | None, problem: Problem, same: Mapping[str, Matrix]) -> None:
        self._world, self._path, self._problem = world, path, problem
        self._same = {
            f"{_FIRST}{name}": np.asarray(each, np.float64) for name, each in same.items() if np.size(each)
        }
        self._arrays: dict[str, Matrix] = {}
        self._clock = Clock(world)
        self.is_other = False
        found: tuple[dict[str, Matrix], bool] = {}, False
        if path is not None:
            with world.together(_GO_ON, str(path)):
                if world.rank == 0:
                    found = self._found(path)
            arrays, self.is_other = world.broadcast(found)
            self._arrays = {name: np.array(each) for name, each in arrays.items()}

    def __bool__(self) -> bool:
        return bool(self._arrays)

    def get(self, name: str, shape: tuple[int, ...]) -> Matrix | None:
        """None: there is none. Raises OutcoreError (EIO): it has another shape."""
        found = self._arrays.get(name)
        if found is not None and found.shape != shape:
            raise self._damaged(f"'{name}' has the shape {found.shape}, not {shape}")
        return found

    def put(self, arrays: Mapping[str, Matrix], *, at_once: bool = False) -> None:
        """In place of those of the same names; the caller may go on to fill them, and calls again then. at_once:
        commits, whenever the last one was."""
        self._arrays |= arrays
        if self._path is None or not (self._clock.is_late() or at_once):
            return
        with self._clock.committing(), self._world.together(_GO_ON, str(self._path)):
            if self._world.rank == 0:
                stages.save(self._path, self._problem, self._same | self._arrays, {})

    def _found(self, path: Path) -> tuple[dict[str, Matrix], bool]:
        """What lies there, and whether it is of another state. Of process 0."""
        try:
            with stages.opened(path, self._problem, _GO_ON) as saved:
                arrays = {name: np.asarray(each, np.float64) for name, each in saved.items()}
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return {}, False
        for name, values in self._same.items():
            found = arrays.pop(name, None)
            if found is None or found.shape != values.shape:
                raise self._damaged(f"it lacks '{name.removeprefix(_FIRST)}'")
            if abs(found - values).max(initial=0.0) > _SAME:
                return {}, True
        return arrays, False

    def _damaged(self, detail: str) -> OutcoreError:
        assert self._path is not None
        return stages.damaged(_GO_ON, self._path, f"{detail}; remove it and run again")
