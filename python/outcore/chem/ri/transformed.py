"""Integrals (P|ia) over occupied and virtual orbitals, or B[P, i, a] made from them, in memory or on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.chem.ri.plan import matrices_at_once
from outcore.parallel import team
from outcore.parallel.tasks import each_task

if TYPE_CHECKING:
    from outcore._core import Request
    from outcore.chem.ri.plan import TransformPlan
    from outcore.chem.ri.rows import Block, Fit, Maker, Rows
    from outcore.job.world import World
    from outcore.keep.stages import Stage
    from outcore.parallel.tasks import Progress

Matrix = NDArray[np.float64]

_COLUMNS = 512  # columns that are fitted at once


TRANSFORMED, FITTED = "transformed", "fitted"  # stages


@dataclass(frozen=True)
class ActiveOrbitals:
    """Active orbitals of one spin: coefficients [n][any] and energies (Hartree). numbers: of occupied ones in the
    mean-field object, from 0. Any orbitals that are combined with the occupied ones may replace the virtual
    ones."""

    occupied: Matrix
    virtual: Matrix
    occupied_energies: Matrix
    virtual_energies: Matrix
    numbers: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        return self.occupied.shape[1], self.virtual.shape[1]


class Transformed:
    """B[P, i, a] of one spin: a global array with some orbitals i at each process, or a disk array. It is written
    in rows P, and fitted and read in orbitals i. The constructor, `close` and `fit` are collective."""

    def __init__(
        self,
        world: World,
        auxiliary: int,
        orbitals: ActiveOrbitals,
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
        self.waited_seconds = 0.0  # in which threads waited for reads, the mean of threads
        self.stage = ""  # the last complete stage
        if kept is not None and (found := kept.open(self._wrong, cache_bytes=plan.cache_bytes)) is not None:
            self._array, self.stage, self.rows = found, found.metadata["stage"], found.metadata["rows"]
        elif plan.in_memory:
            # With fewer orbitals than processes some have none.
            begins = sorted({occupied * rank // world.size for rank in range(world.size)})
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
        """After it all processes see the data that was put before. Collective."""
        if isinstance(self._array, DiskArray):
            self._array.sync()
            self.world.barrier()
        else:
            self._array.sync()

    def complete(self, stage: str) -> None:
        """Marks the elements that were put so far as a complete stage, which another run need not repeat.
        Collective."""
        self.sync()
        self.stage = stage
        if self._kept is not None and isinstance(self._array, DiskArray):
            self._kept.complete(self._array, stage=stage, rows=self.rows)

    def fit(self, metric: Fit, threads: int) -> None:
        """Turns (P|ia) into B, in place. Collective."""
        self.apply(metric.fit, threads)
        self.rows = metric.rank
        self.complete(FITTED)

    def apply(self, function: Callable[[Matrix], Matrix], threads: int) -> None:
        """Applies `function` to the columns [P] of all pairs of orbitals, in blocks. It changes a block in place,
        and returns its first rows that count. Any thread may call it. Other processes see the result after
        `sync`."""
        with self.world.together("transform integrals"):
            if isinstance(self._array, GlobalArray):
                local = self._array.local.reshape(self._array.shape[0], -1)

                def in_memory(_thread: int, begin: int) -> None:
                    function(local[: self.rows, begin : begin + _COLUMNS])

                team.each(range(0, local.shape[1], _COLUMNS), threads, in_memory)
            else:
                self._apply_on_disk(function, threads)

    def _apply_on_disk(self, function: Callable[[Matrix], Matrix], threads: int) -> None:
        """As `apply`: each process and thread works on its share of the tiles."""
        occupied, virtual = self.orbitals.shape
        tile, rows = self._plan.tile, self.rows
        buffers = [np.empty(rows * tile * virtual) for _ in range(threads)]
        waited = [0.0] * threads

        def on_disk(thread: int, begin: int) -> None:
            width = min(tile, occupied - begin)
            block = buffers[thread][: rows * width * virtual].reshape(rows, width, virtual)
            asked = time.monotonic()
            self._array.get(np.s_[:rows, begin : begin + width], block)
            waited[thread] += time.monotonic() - asked
            kept = len(function(block.reshape(rows, -1)))
            self._array.put(np.s_[:kept, begin : begin + width], block[:kept])

        team.each(self._own_tiles(), threads, on_disk)
        self.waited_seconds += sum(waited) / threads

    def _own_tiles(self) -> range:
        """First orbitals of the tiles of this process, for an array on disk."""
        tile = self._plan.tile
        return range(self.world.rank * tile, self.orbitals.shape[0], tile * self.world.size)

    def tiles(self) -> Iterator[tuple[int, Matrix]]:
        """Yields the share of this process of the orbitals: the number of the first orbital, and [P][some][a],
        valid until the next is requested. All processes together get all orbitals. Not collective."""
        occupied, virtual = self.orbitals.shape
        tile = self._plan.tile
        if isinstance(self._array, GlobalArray):
            mine = self._array.patch[1]
            for begin in range(mine.start, mine.stop, tile):
                end = min(begin + tile, mine.stop)
                yield begin, self._array.local[: self.rows, begin - mine.start : end - mine.start]
            return
        buffer = np.empty(self.rows * tile * virtual)
        for begin in self._own_tiles():
            width = min(tile, occupied - begin)
            block = buffer[: self.rows * width * virtual].reshape(self.rows, width, virtual)
            asked = time.monotonic()
            self._array.get(np.s_[: self.rows, begin : begin + width], block)
            self.waited_seconds += time.monotonic() - asked
            yield begin, block

    @property
    def identity(self) -> str:
        """A text that identifies this array, the same in runs that find it; "" for an array in memory."""
        return self._array.identity if isinstance(self._array, DiskArray) else ""

    # ---- orbitals ----

    def local(self, begin: int, end: int) -> Matrix | None:
        """A view of B[:, begin:end, :] as [P][i][a], if this process has all of it in memory; else None."""
        if not isinstance(self._array, GlobalArray):
            return None
        patch = self._array.patch[1]
        if begin < patch.start or end > patch.stop:
            return None
        return self._array.local[: self.rows, begin - patch.start : end - patch.start]

    def get(self, begin: int, end: int, buffer: Matrix) -> Request:
        """Starts to read B[:, begin:end, :] into `buffer` [P][i][a]."""
        return self._array.get_async(np.s_[: self.rows, begin:end], buffer)

    def get_rows(self, begin: int, end: int, buffer: Matrix) -> Request:
        """Starts to read rows [begin, end) of all orbitals into `buffer` [rows][i][a]."""
        return self._array.get_async(np.s_[begin:end], buffer)

    def put_orbital(self, orbital: int, begin: int, block: Matrix) -> Request:
        """Starts to write [:, orbital, begin ...) from `block` [P][some of a]."""
        box = np.s_[: self.rows, orbital : orbital + 1, begin : begin + block.shape[1]]
        return self._array.put_async(box, block.reshape(len(block), 1, -1))

    def close(self) -> None:
        """Collective."""
        self._array.close()


def transform(
    world: World,
    rows: Rows,
    integrals: list[Transformed],
    batch_rows: int,
    threads: int,
    progress: Progress | None = None,
    use: Callable[[int, Matrix], None] | None = None,
) -> None:
    """Computes (P|ia) for all rows P, in blocks of about `batch_rows`; processes take the next block when they are
    free. use: any thread calls it with the number of the first of some rows (P|mn), and these rows [some][n][n],
    when they are made. Collective."""
    blocks = rows.blocks(batch_rows)
    counter = world.counter()
    with world.together("three-centre integrals"):
        most = max(each.stop - each.start for _, each in blocks)
        workers = [_Worker(rows.maker(most), integrals, most, use) for _ in range(threads)]
        each_task(
            counter, len(blocks), threads, lambda thread, task: workers[thread].work(blocks[task]), progress
        )


class _Worker:
    """Transforms rows from functions to molecular orbitals, in one thread."""

    def __init__(
        self,
        maker: Maker,
        integrals: list[Transformed],
        rows: int,
        use: Callable[[int, Matrix], None] | None,
    ) -> None:
        self._maker, self._integrals, self._use = maker, integrals, use
        n = len(integrals[0].orbitals.occupied)
        most = max(each.orbitals.shape[0] for each in integrals)
        self._half = np.empty(matrices_at_once(n) * most * n)
        self._whole = [np.empty((rows, *each.orbitals.shape)) for each in integrals]

    def work(self, block: Block) -> None:
        """Computes (P|ia) for the rows of a block."""
        rows, first = block[1], 0
        for matrices in self._maker.matrices(block):
            count, n, _ = matrices.shape
            if self._use is not None:
                self._use(rows.start + first, matrices)
            for each, whole in zip(self._integrals, self._whole, strict=True):
                occupied, virtual = each.orbitals.shape
                half = self._half[: count * occupied * n].reshape(count, occupied, n)
                np.matmul(each.orbitals.occupied.T, matrices, out=half)
                target = whole[first : first + count].reshape(-1, virtual)
                np.matmul(half.reshape(-1, n), each.orbitals.virtual, out=target)
            first += count
        transfers = [
            each.put(rows.start, whole[:first])
            for each, whole in zip(self._integrals, self._whole, strict=True)
        ]
        for transfer in transfers:
            transfer.wait()
