"""Finished parts of NEVPT2 in the directory of a checkpoint, from which another run continues.

Each root has two records: three-particle densities contracted with integrals, which depend on the state alone, and
sums and norms of perturbers, which also depend on integrals with outer orbitals.
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

_FIRST = "same_"  # prefix of the names of arrays on which the others depend
_SAME = 1e-8  # densities and integrals of the same state differ by less, those of a recomputed state by more
_GO_ON = "go on with NEVPT2"


class KeptParts:
    """Arrays by name, the same at all processes, in one file that process 0 writes.

    path: None: nothing is kept. same: arrays on which all others depend. If those of a file differ, its states or
    orbitals were recomputed: then the other arrays are not used, and `is_other` is True. The constructor and `put`
    are collective.

    Raises OutcoreError: EINVAL (another problem; the error names the settings that differ), ENOTSUP (another
    format), EIO (damaged), and errors of writing."""

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
        """The kept array; None if there is none. Raises OutcoreError (EIO) if it has another shape."""
        found = self._arrays.get(name)
        if found is not None and found.shape != shape:
            raise self._damaged(f"'{name}' has the shape {found.shape}, not {shape}")
        return found

    def put(self, arrays: Mapping[str, Matrix], *, at_once: bool = False) -> None:
        """Keeps arrays in place of earlier ones with the same names. The caller may continue to fill them, and then
        calls again. at_once: commits now, whenever the last commit was."""
        self._arrays |= arrays
        if self._path is None or not (self._clock.is_late() or at_once):
            return
        with self._clock.committing(), self._world.together(_GO_ON, str(self._path)):
            if self._world.rank == 0:
                stages.save(self._path, self._problem, self._same | self._arrays, {})

    def _found(self, path: Path) -> tuple[dict[str, Matrix], bool]:
        """Reads the kept arrays, and whether they belong to another state. Called by process 0."""
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
