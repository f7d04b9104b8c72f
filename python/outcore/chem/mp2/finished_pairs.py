"""Energies of pairs of orbitals that several processes have finished, kept for another run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.arrays.disk_array import DiskArray
from outcore.keep.stages import damaged

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.keep.stages import Stage

Matrix = NDArray[np.float64]
Range = tuple[int, int]

INTERVAL_S = 10.0  # between commits: a kill loses no more work than that
_CACHE_BYTES = 1 << 20


class FinishedPairs:
    """`sums` [direct, exchange][i][j] are filled by this process; `finish` says which are complete. With `kept` all
    processes commit them every INTERVAL_S: each works until `deadline`, then all call `more`. The constructor,
    `more` and `result` are collective. `integrals`: the identity of the integrals. If these were recomputed, pairs
    that had been finished before are not used, as degenerate orbitals may be other ones."""

    def __init__(self, world: World, shape: Range, kept: Stage | None, integrals: str) -> None:
        self.sums = np.zeros((2, *shape))
        self.exhausted = False  # this process found no more tasks
        self._world = world
        self._kept, self._integrals = kept, integrals
        self._disk: DiskArray | None = None
        self._new = np.zeros(shape, bool)  # finished here since the last commit
        self._started = False
        self.before = np.zeros((3, *shape))  # direct, exchange, and 1 where another run has finished
        if kept is not None:
            shape_of_all = (3, *shape)

            def wrong(found: DiskArray) -> str:
                return (
                    "" if found.shape == shape_of_all else f"its shape is {found.shape}, not {shape_of_all}"
                )

            found = kept.open(wrong, cache_bytes=_CACHE_BYTES)
            if found is not None and (found.metadata or {}).get("integrals") != integrals:
                found.close()
                found = None
            if found is None:
                self._disk = kept.make(shape_of_all, shape_of_all, _CACHE_BYTES)
            else:
                self._disk = found
                found.read_all(self.before)
                self._check(kept)

    def _check(self, kept: Stage) -> None:
        """Checks that the kept numbers are energies, and flags of finished pairs."""
        with self._world.together("finished pairs", kept.name):
            flags = self.before[2]
            if not (np.isfinite(self.before[:2]).all() and ((flags == 0) | (flags == 1)).all()):
                raise damaged(
                    "go on from kept arrays",
                    kept.path,
                    "an energy is no number, or a pair neither finished nor unfinished; remove it and run again",
                )

    def has(self, rows: Range, columns: Range, *, lower: bool) -> bool:
        """Whether another run has finished all of these pairs; `lower`: only pairs with j <= i count."""
        flags = self.before[2, rows[0] : rows[1], columns[0] : columns[1]] > 0
        if lower:
            i, j = np.ogrid[rows[0] : rows[1], columns[0] : columns[1]]
            flags = flags | (j > i)
        return bool(flags.all())

    def finish(self, rows: Range, columns: Range) -> None:
        """Notes that `sums` has these pairs."""
        self._new[rows[0] : rows[1], columns[0] : columns[1]] = True

    def deadline(self) -> float:
        """When to stop work for the next commit, on the clock of time.monotonic."""
        return time.monotonic() + INTERVAL_S if self._disk is not None else float("inf")

    def more(self) -> bool:
        """Commits; false once all processes are exhausted."""
        if self._started and self._kept is not None and self._disk is not None:
            flags = (self._new & (self.before[2] == 0)).astype(float)  # a task may reach over finished ones
            here = np.concatenate([self.sums * flags, flags[None]])
            self._disk.acc(np.s_[...], here)
            self.sums[...] = 0.0
            self._new[...] = False
            self._disk.sync()
            self._world.barrier()
            self._kept.complete(self._disk, integrals=self._integrals)
        first, self._started = not self._started, True
        return first or bool(self._world.all_reduce(0 if self.exhausted else 1, "max"))

    def result(self) -> Matrix:
        """The sums of all pairs, at all processes."""
        if self._disk is None:
            return np.asarray(self._world.all_reduce(self.sums))
        everything = np.empty_like(self.before)
        self._disk.read_all(everything)
        self._disk.close()
        return everything[:2]
