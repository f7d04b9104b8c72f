"""Checkpoints of relaxed densities and gradients: the multipliers of orbitals, and sums of slabs of derivative
integrals."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.cc.keep.kept import KeptTasks
from outcore.keep import clock, stages
from outcore.keep.problem import fingerprint

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.keep.problem import Problem
    from outcore.keep.stages import Stage

Values = np.ndarray[Any, np.dtype[Any]]

_GO_ON = "go on with the orbital response"


class KeptResponse:
    """Multipliers of orbitals, at the process that solves for them: a `gradients.response.ResponseKeeper`. Not
    collective.

    mark: of the densities; multipliers for other densities are not found. stamp: the mark, and once multipliers
    have converged their own, as recomputed densities differ by rounding.
    """

    def __init__(self, path: Path, problem: Problem, mark: str) -> None:
        self._path, self._problem, self._mark = path, problem, mark
        self.stamp = mark
        self._record: dict[str, Any] | None = None
        self._last = time.monotonic()

    def find(self, size: int) -> tuple[Values | None, bool]:
        """Multipliers [size] of another run, None without any; and whether they had converged.
        Raises OutcoreError: EINVAL (of another problem), ENOTSUP (of another format), EIO (damaged)."""
        try:
            with stages.opened(self._path, self._problem, _GO_ON) as saved:
                facts = saved.meta
                if facts.get("mark") != self._mark:
                    return None, False
                found = np.asarray(saved["multipliers"])
        except OutcoreError as error:
            if error.errno != errno.ENOENT:
                raise
            return None, False
        if found.shape != (size,) or not np.isfinite(found).all():
            raise stages.damaged(_GO_ON, self._path, "multipliers are no numbers; remove it and run again")
        converged = facts.get("converged") is True
        if converged:
            self.stamp = mark_of(self._mark, found)
        return found, converged

    def keep(self, multipliers: Values, *, converged: bool = False) -> None:
        """Writes multipliers, if they were last written long ago or have converged."""
        if not converged and time.monotonic() < self._last + clock.INTERVAL_S:
            return
        self._record = self._record or self._problem.as_json()
        facts = {"mark": self._mark, "converged": converged}
        stages.save(self._path, self._record, {"multipliers": multipliers}, facts)
        self._last = time.monotonic()
        if converged:
            self.stamp = mark_of(self._mark, multipliers)


class KeptSlabs:
    """Results of slabs of one pass over derivative integrals; see `gradients.three_index.SlabKeeper`.
    Collective."""

    def __init__(self, world: World, stage: Stage, mark: str) -> None:
        self._world, self._stage, self._mark = world, stage, mark

    def rows(self, most: int) -> int:
        """Rows of a slab, at most `most`: as many as in another run, if those are not more."""
        found = KeptTasks.blocks_of(self._stage, self._mark)
        return found[0] if found and type(found[0]) is int and 0 < found[0] <= most else most

    def tasks(self, count: int, rows: int, width: int) -> KeptTasks:
        """The results of `count` slabs of at most `rows` rows. width: numbers of a result."""
        return KeptTasks(self._world, count, self._stage, self._mark, [rows], width)


def mark_of(*values: Any) -> str:
    """Identifies numbers and words that a result was made from, bit by bit."""
    return fingerprint([each.tolist() if isinstance(each, np.ndarray) else each for each in values])[:32]
