"""Checkpoints of a coupled-cluster calculation in a directory, from which another run goes on: amplitudes of the
last committed iteration, and energies of the tasks of (T). `kept_steps` has the finished steps of an iteration. The
other run may have any number of processes and any memory."""

from __future__ import annotations

import errno
import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.job.unclosed import only_flushed
from outcore.keep import clock
from outcore.keep.problem import fingerprint
from outcore.keep.stages import Stage, Stages, damaged, offering
from outcore.tensor.arrays.array import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from outcore.arrays.disk_array import DiskArray
    from outcore.chem.cc.plan.room import Room
    from outcore.job.world import World
    from outcore.keep.problem import Problem
    from outcore.tensor.layout.layout import Layout, Tile

Values = np.ndarray[Any, np.dtype[Any]]

AMPLITUDES, TRIPLES = "amplitudes", "triples"
FORMAT = 3
CACHE_BYTES = 1 << 20
_SAME_ORBITALS = 1e-5  # largest difference in a sum of their coefficients
_GO_ON = "go on from kept amplitudes"


@dataclass(frozen=True)
class State:
    """The state of an iteration without its doubles. `conv_tol` and `conv_tol_normt`: limits of the run that made
    it."""

    singles: list[Values]
    iteration: int
    energy: float
    converged: bool
    conv_tol: float
    conv_tol_normt: float

    @cached_property
    def stamp(self) -> str:
        """Identifies these amplitudes."""
        values = [[each.tolist() for each in self.singles], self.energy, self.iteration]
        return fingerprint(values)[:32]


class KeptAmplitudes:
    """Amplitudes of the last committed iteration: another run finds these and no others, however this run ends.
    Collective. Nothing is written before the first commit.

    Raises OutcoreError: EINVAL (of another problem), ENOTSUP (of another format), EIO (damaged).
    """

    def __init__(
        self,
        world: World,
        directory: Path,
        problem: Problem,
        layouts: list[Layout],
        singles: list[Values],
        orbitals: list[list[float]],
        name: str = AMPLITUDES,
        mark: str = "",
    ) -> None:
        """layouts: of the doubles, which `save` gets in the same order. singles: of the shape that is expected.
        orbitals: numbers that tell these orbitals from others, as recomputed ones may differ. mark: of data that
        the amplitudes depend on beside the problem; amplitudes with another mark are not found."""
        self._name, self._mark = name, mark
        self._world, self._problem, self._orbitals = world, problem, orbitals
        self._directory, self._layouts = Stages(world, directory).directory, layouts
        self.clock = clock.Clock(world)
        self._committed = ""  # stamp of the committed state
        opened = [self._open(number, layout, singles) for number, layout in enumerate(layouts)]
        self._arrays: list[Array | None] = [array for array, _ in opened]
        found = [each for _, each in opened]
        stamps = {"" if each is None else each.stamp for each in found}
        self.found = None if None in found else found[0]
        if self.found is not None and len(stamps) == 1:
            self._committed = self.found.stamp
        elif self.found is not None:
            # A run ended between commits of two arrays. Doubles of two iterations are a start like any other. They
            # get the stamp of the newer one: no step of its iteration can be kept yet.
            self.found = replace(self.found, converged=False)

    def _path(self, number: int) -> Path:
        return self._directory / (f"{self._name}.{number}" if number else self._name)

    def _open(
        self, number: int, layout: Layout, singles: list[Values]
    ) -> tuple[Array, State | None] | tuple[None, None]:
        path = self._path(number)
        try:
            with offering(path):
                array = only_flushed(Array.open(self._world, path, read_only=False, cache_bytes=CACHE_BYTES))
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None, None
        try:
            with self._world.together(_GO_ON):
                self._problem.check(array.metadata, _GO_ON, path)
                found = self._read(array.metadata, singles, path)
                if array.shape != layout.shape or array.layout.symmetry != layout.symmetry:
                    raise _damaged(path, f"an array of shape {array.shape}, not {layout.shape}")
                if array.metadata.get("mark", "") != self._mark:
                    return array, None
        except OutcoreError:
            array.close()
            raise
        return array, found

    def _read(self, facts: dict[str, Any], wanted: list[Values], path: Path) -> State:
        try:
            values = [np.array(each, float) for each in facts["singles"]]
            found = State(
                values,
                int(facts["iteration"]),
                float(facts["energy_hartree"]),
                facts["converged"] is True,
                float(facts["conv_tol"]),
                float(facts["conv_tol_normt"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(path, f"{type(error).__name__}: {error}") from error
        if [each.shape for each in values] != [each.shape for each in wanted]:
            raise _damaged(path, f"singles of shapes {[each.shape for each in values]}")
        kept = facts.get("orbitals")
        if not isinstance(kept, list) or [len(each) for each in kept] != [
            len(each) for each in self._orbitals
        ]:
            raise _damaged(path, "it does not say which orbitals it is of")
        different = max(
            float(abs(np.subtract(one, other)).max()) for one, other in zip(kept, self._orbitals, strict=True)
        )
        if not different < _SAME_ORBITALS:
            raise OutcoreError(
                errno.EINVAL,
                _GO_ON,
                path=path,
                detail=f"it is of other orbitals or another Fock matrix, which differ by {different:.1e}; "
                "remove it",
            )
        if not all(np.isfinite(each).all() for each in values) or not math.isfinite(found.energy):
            raise _damaged(path, "singles or the energy are no numbers")
        if facts.get("stamp") != found.stamp:
            raise _damaged(path, "singles and energy are not those that were written")
        return found

    def values(self, number: int, box: tuple[slice, ...]) -> Values:
        """Doubles of a box [a,i,b,j] of one of the arrays. Not collective."""
        array = self._arrays[number]
        assert array is not None, "nothing is kept"
        found: Values = array[box]
        return found

    def save(self, room: Room, doubles: list[Array], state: State, *, is_last: bool) -> None:
        """Commits amplitudes, if the last commit is long ago or they are the last of a run."""
        if self.clock.is_late() or is_last:
            with self.clock.committing():
                self.commit(room, doubles, state)

    def commit(self, room: Room, doubles: list[Array], state: State) -> None:
        """Commits amplitudes that are not committed yet."""
        if state.stamp == self._committed:
            return
        self._committed = ""  # after an error some tiles may be of these amplitudes, others not
        facts = {
            "singles": [each.tolist() for each in state.singles],
            "orbitals": self._orbitals,
            "iteration": state.iteration,
            "energy_hartree": state.energy,
            "converged": state.converged,
            "conv_tol": state.conv_tol,
            "conv_tol_normt": state.conv_tol_normt,
            "stamp": state.stamp,
            "mark": self._mark,
        }
        arrays = [self._made(number) for number in range(len(self._layouts))]
        for array, values in zip(arrays, doubles, strict=True):
            room.each_tile(array, copying(array, values), "keep amplitudes")
        for array in arrays:
            array.flush(self._problem.as_json() | facts)
        self._committed = state.stamp

    def _made(self, number: int) -> Array:
        array = self._arrays[number]
        if array is None:
            path = self._path(number)
            array = only_flushed(
                Array(self._world, self._layouts[number], path=path, overwrite=True, cache_bytes=CACHE_BYTES)
            )
            self._arrays[number] = array
        return array

    def close(self) -> None:
        """Closes without a commit: after a commit that has failed, tiles may be of two iterations."""
        for array in self._arrays:
            if array is not None:
                array.drop()


def copying(array: Array, values: Array) -> Callable[[Tile], None]:
    """Puts a tile of an array from another of the same shape, whatever its tiles are."""
    same = array.layout.tilings == values.layout.tilings

    def copy(tile: Tile) -> None:
        array.put_tile(tile, values.get_tile(tile) if same else values[array.layout.box(tile)])

    return copy


def _damaged(path: Path, detail: str) -> OutcoreError:
    return damaged(_GO_ON, path, f"{detail}; remove it and run again")


class KeptTasks:
    """Results of tasks, `width` numbers each, for one division into blocks. Each process works until `deadline`,
    then all call `more`. The constructor, `more` and `result` are collective.

    stage: where results are kept; None: nowhere. before: results of other runs, [width + 1][task]; the last row is
    1 for finished tasks.
    """

    def __init__(
        self, world: World, tasks: int, stage: Stage | None, stamp: str, blocks: Any, width: int = 1
    ) -> None:
        self._world, self._stage = world, stage
        self._facts = {"stamp": stamp, "blocks": blocks}
        shape = (width + 1, tasks)
        self._mine, self.before = np.zeros(shape), np.zeros(shape)
        self.exhausted = False
        self._started = False
        self._disk: DiskArray | None = None
        if stage is None:
            return
        found = stage.open(lambda array: "", cache_bytes=CACHE_BYTES)
        if found is not None and any(found.metadata.get(k) != v for k, v in self._facts.items()):
            found.close()
            found = None
        if found is None:
            self._disk = stage.make(shape, shape, CACHE_BYTES)
            return
        self._disk = found
        with world.together("kept tasks"):
            if found.shape != shape:
                raise damaged("go on", stage.path, f"{found.shape[1]} tasks, not {tasks}; remove it")
        found.read_all(self.before)
        with world.together("kept tasks"):
            done = self.before[-1]
            if not (np.isfinite(self.before).all() and ((done == 0) | (done == 1)).all()):
                raise damaged("go on", stage.path, "a result is no number; remove it and run again")

    @staticmethod
    def blocks_of(stage: Stage, stamp: str) -> Any:
        """The division into blocks of kept results of these amplitudes; None without any. Collective."""
        found = stage.open(lambda array: "", cache_bytes=CACHE_BYTES)
        if found is None:
            return None
        facts = found.metadata
        found.close()
        blocks = facts.get("blocks") if facts.get("stamp") == stamp else None
        return blocks if isinstance(blocks, list) else None

    def finish(self, task: int, found: float | Values) -> None:
        self._mine[:-1, task], self._mine[-1, task] = found, 1.0

    def deadline(self) -> float:
        """When to stop work for the next commit, on the clock of time.monotonic."""
        return time.monotonic() + clock.INTERVAL_S if self._disk is not None else math.inf

    def more(self) -> bool:
        """Commits; false once all processes are exhausted."""
        if self._started and self._disk is not None and self._stage is not None:
            self._disk.acc(np.s_[...], self._mine)
            self._mine[...] = 0.0
            self._disk.sync()
            self._world.barrier()
            self._stage.complete(self._disk, **self._facts)
        first, self._started = not self._started, True
        return first or bool(self._world.all_reduce(0 if self.exhausted else 1, "max"))

    def result(self) -> Values:
        """The sum of all tasks, [width], at all processes."""
        if self._disk is None:
            found: Values = self._world.all_reduce(self._mine[:-1].sum(1))
            return found
        everything = np.empty_like(self.before)
        self._disk.read_all(everything)
        self._disk.close()
        return np.asarray(everything[:-1].sum(1))
