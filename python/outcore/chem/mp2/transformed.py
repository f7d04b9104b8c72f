"""Integrals B[P, i, a] of occupied and virtual orbitals, in memory or on disk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore._core import Request
    from outcore.chem.mp2.rows import Fit
    from outcore.chem.ri.plan import TransformPlan
    from outcore.job.world import World
    from outcore.keep.stages import Stage

Matrix = NDArray[np.float64]

_COLUMNS = 512  # fitted at once


TRANSFORMED, FITTED = "transformed", "fitted"  # stages


@dataclass(frozen=True)
class Orbitals:
    """Active orbitals of one spin: coefficients [n][any] and energies (Hartree). numbers: of occupied ones in the
    mean-field object, from 0."""

    occupied: Matrix
    virtual: Matrix
    occupied_energies: Matrix
    virtual_energies: Matrix
    numbers: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return self.occupied.shape[1], self.virtual.shape[1]


class Transformed:
    """B[P, i, a] of one spin: a global array of which each process has some orbitals i, or a disk array. Written in
    rows P, fitted and read in orbitals i. Making and closing it, and `fit`, are collective."""

    def __init__(
        self,
        world: World,
        auxiliary: int,
        orbitals: Orbitals,
        plan: TransformPlan,
        kept: Stage | None = None,
    ) -> None:
        self.world, self._kept = world, kept
        self.orbitals = orbitals
        self._plan = plan
        self.rows = auxiliary  # fewer after the fit if the metric has linear dependences
        occupied, virtual = orbitals.shape
        shape = (auxiliary, occupied, virtual)
        self._shape = shape
        self._array: GlobalArray | DiskArray
        self.waited_seconds = 0.0  # of reading by `fit`, the mean of threads
        self.stage = ""  # the last that is complete
        if kept is not None and (found := kept.open(self._wrong, cache_bytes=plan.cache_bytes)) is not None:
            self._array, self.stage, self.rows = found, found.metadata["stage"], found.metadata["rows"]
        elif plan.in_memory:
            begins = [occupied * rank // world.size for rank in range(world.size)]
            self._array = GlobalArray(world, shape, distribution=[[0], begins, [0]])
        else:
            deep, wide = plan.chunk
            chunk = (min(deep, auxiliary), min(wide, occupied), virtual)
            if kept is not None:
                self._array = kept.make(shape, chunk, plan.cache_bytes)
            else:
                self._array = DiskArray(world, shape, chunk=chunk, cache_bytes=plan.cache_bytes)

    def _wrong(self, found: DiskArray) -> str:
        stage, rows, functions = found.metadata.get("stage"), found.metadata.get("rows"), self._shape[0]
        if found.shape != self._shape:
            return f"its shape is {found.shape}, not {self._shape}"
        if stage not in (TRANSFORMED, FITTED):
            return f"its stage is {str(stage)[:99]}"
        if type(rows) is not int or not 0 < rows <= functions or (stage == TRANSFORMED and rows != functions):
            return f"{str(rows)[:99]} of {functions} rows count"
        return ""

    def put(self, begin: int, block: Matrix) -> Request:
        """Starts to write rows [begin ...) of all orbitals, [rows][i][a]."""
        return self._array.put_async(np.s_[begin : begin + len(block)], block)

    def sync(self) -> None:
        """What all processes have put is visible to all. Collective."""
        if isinstance(self._array, DiskArray):
            self._array.sync()
            self.world.barrier()
        else:
            self._array.sync()

    def complete(self, stage: str) -> None:
        """What was put so far is a stage that another run needs not do again. Collective."""
        self.sync()
        self.stage = stage
        if self._kept is not None and isinstance(self._array, DiskArray):
            self._kept.complete(self._array, stage=stage, rows=self.rows)

    def fit(self, metric: Fit, threads: int) -> None:
        """(P|ia) becomes B, in place."""
        with self.world.together("fit integrals"):
            if isinstance(self._array, GlobalArray):
                local = self._array.local.reshape(self._array.shape[0], -1)

                def fit(_thread: int, begin: int) -> None:
                    metric.fit(local[:, begin : begin + _COLUMNS])

                columns = range(0, local.shape[1], _COLUMNS)
                team.each(columns, threads, fit)
            else:
                self._fit_on_disk(metric, threads)
        self.rows = metric.rank
        self.complete(FITTED)

    def _fit_on_disk(self, metric: Fit, threads: int) -> None:
        """Each process and thread its share of the tiles."""
        rows, occupied, virtual = self._array.shape
        tile = self._plan.tile
        buffers = [np.empty(rows * tile * virtual) for _ in range(threads)]
        waited = [0.0] * threads

        def fit(thread: int, begin: int) -> None:
            width = min(tile, occupied - begin)
            block = buffers[thread][: rows * width * virtual].reshape(rows, width, virtual)
            asked = time.monotonic()
            self._array.get(np.s_[:, begin : begin + width], block)
            waited[thread] += time.monotonic() - asked
            metric.fit(block.reshape(rows, -1))
            self._array.put(np.s_[: metric.rank, begin : begin + width], block[: metric.rank])

        team.each(range(self.world.rank * tile, occupied, tile * self.world.size), threads, fit)
        self.waited_seconds += sum(waited) / threads

    @property
    def identity(self) -> str:
        """Of this array alone, the same in runs that find it; empty in memory."""
        return self._array.identity if isinstance(self._array, DiskArray) else ""

    # ---- orbitals ----

    def local(self, begin: int, end: int) -> Matrix | None:
        """B[:, begin:end, :] in place, [P][i][a], if this process has all of it in memory."""
        if not isinstance(self._array, GlobalArray):
            return None
        patch = self._array.patch[1]
        if begin < patch.start or end > patch.stop:
            return None
        return self._array.local[: self.rows, begin - patch.start : end - patch.start]

    def get(self, begin: int, end: int, buffer: Matrix) -> Request:
        """Starts to read B[:, begin:end, :] into `buffer` [P][i][a]."""
        return self._array.get_async(np.s_[: self.rows, begin:end], buffer)

    def close(self) -> None:
        """Collective."""
        self._array.close()
