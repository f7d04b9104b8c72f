"""Checkpoint of arrays to which tasks add, and of the tasks that have added; another run goes on with the rest.
After a kill between commits of two arrays, these have sums of different tasks: each array records its own tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.keep.kept import copying
from outcore.keep.stages import damaged

if TYPE_CHECKING:
    from outcore.chem.cc.keep.kept_steps import KeptSteps
    from outcore.job.world import World
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]


class KeptSums:
    """As `KeptTasks`, for tasks that add to arrays. Each process works until `deadline`, then all call `more`. The
    constructor is collective.

    Args:
        arrays: by name; the constructor brings their kept sums.
        tasks: how many there are.
        division: how work is divided into tasks; kept sums of another division are not used.
        steps: keeps arrays; None: nothing is kept.
    """

    def __init__(
        self,
        world: World,
        arrays: Mapping[str, Array],
        tasks: int,
        division: Any,
        steps: KeptSteps | None,
    ) -> None:
        self._world, self._arrays, self._division, self._steps = world, arrays, division, steps
        self._done = {name: np.zeros(tasks, bool) for name in arrays}
        self._mine = np.zeros(tasks)
        self.exhausted = False
        self._started = False
        if steps is not None:
            for name, array in arrays.items():
                self._bring(steps, name, array)
        self.before = np.stack([np.zeros(tasks), np.min([*self._done.values()], axis=0)])

    @staticmethod
    def division_of(steps: KeptSteps, name: str) -> Any:
        """The division of a kept array; None: it is not kept. Collective."""
        kept = steps.open(name)
        return None if kept is None else kept.metadata.get("division")

    def _bring(self, steps: KeptSteps, name: str, array: Array) -> None:
        kept = steps.open(name)
        if kept is None or kept.metadata.get("division") != self._division:
            return
        with self._world.together("kept sums", name):
            done = np.array(kept.metadata.get("tasks"))
            if done.shape != self._mine.shape or kept.shape != array.shape or not np.isin(done, (0, 1)).all():
                raise damaged("go on", steps.path(name), "it is of other tasks; remove it and run again")
        steps.room.each_tile(array, copying(array, kept), "kept sums")
        self._done[name] = done.astype(bool)

    def lacking(self, task: int) -> set[str]:
        """Arrays that do not have the sums of a task."""
        return {name for name, done in self._done.items() if not done[task]}

    def finish(self, task: int, energy: float) -> None:
        self._mine[task] = 1.0

    def deadline(self) -> float:
        return math.inf if self._steps is None else self._steps.deadline()

    def more(self) -> bool:
        """Commits if a commit is due; false once all processes are exhausted."""
        first, self._started = not self._started, True
        if not first:
            for array in self._arrays.values():
                array.sync()
            mine = np.asarray(self._world.all_reduce(self._mine)) > 0
            self._mine[...] = 0.0
            self._done = {name: done | mine for name, done in self._done.items()}
        more = first or bool(self._world.all_reduce(0 if self.exhausted else 1, "max"))
        if not first and self._steps is not None:
            self._steps.change("sums", self._keep)
            if not more:
                self._steps.commit()
        return more

    def result(self) -> float:
        """0: energies are in one of the arrays."""
        return 0.0

    def _keep(self) -> None:
        assert self._steps is not None
        for name, array in self._arrays.items():
            kept = self._steps.made(name, array)
            self._steps.room.each_tile(kept, copying(kept, array), "keep sums")
            tasks = self._done[name].astype(int).tolist()
            self._steps.flush(kept, tasks=tasks, division=self._division)
