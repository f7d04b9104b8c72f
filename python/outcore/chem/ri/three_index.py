"""Three-index integrals B[P, mn] of all processes. They are made in slabs of columns mn and stored in rows P: in
memory as far as they fit, the others on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.arrays.disk_array import DiskArray
from outcore.arrays.global_array import GlobalArray
from outcore.chem.problem import ROUNDED
from outcore.chem.ri import auxiliary, bound
from outcore.chem.ri import pairs as pair_lists
from outcore.chem.ri.disk_pass import Batch, DiskPass
from outcore.chem.ri.forecast import FittingRates, Forecast
from outcore.chem.ri.forecast import scf as forecast_scf
from outcore.chem.ri.metric import Metric
from outcore.chem.ri.plan import READ_AHEAD, IntegralPlan, IntegralSizes, plan_integrals
from outcore.chem.ri.problem import FORMAT, settings
from outcore.chem.ri.symmetry import Columns, FittingSymmetry, sizes
from outcore.job.resources import Allowance
from outcore.keep.problem import Problem
from outcore.keep.stages import Stage, Stages
from outcore.parallel.tasks import each_task

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore._core import Request
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

Matrix = NDArray[np.float64]

STAGE = "three-index integrals"
NAME = "three_index"  # name of the kept array
_ROUNDING = 1e-12  # a smaller part of a density in an irrep, relative to the largest, is rounding


class ThreeIndex:
    """B[P, mn]: the fitted (mn|ls) is sum_P B[P,mn] B[P,ls]. Columns are those of `pairs`. Of products that the
    point group exchanges only one is stored, and each row has one irrep, one irrep after the other; see `symmetry`.

    Rows below `plan.memory_rows` lie in a global array, distributed over the processes. The others lie in a disk
    array, whose chunks are some rows of one slab, so that slabs of columns are written, and rows are read, in whole
    chunks. The constructor (which only plans), `build` and `close` are collective.

    Args:
        world: the processes.
        mol, auxmol: with the orbital basis, and with the auxiliary one.
        orbitals, spins: number of orbitals of one spin for exchange, and of spins that differ: for the plan of
        memory.
        free_memory: returns the free memory of this process; called when the tables for the plan exist.
        screening: bound below which pairs are left out (see Pairs).
        storage: see plan.STORAGES.
        group: point group whose symmetry is used (None: the largest that there is; "C1": none).
        stages: directory where all rows are kept on disk, or found, if another run has made them.
    """

    def __init__(
        self,
        world: World,
        mol: Mole,
        auxmol: Mole,
        *,
        orbitals: int,
        spins: int,
        free_memory: Callable[[], Allowance],
        threads: int,
        screening: float,
        storage: str = "auto",
        stages: Stages | None = None,
        group: str | None = None,
    ) -> None:
        self.world, self._threads = world, threads
        storage = "disk" if stages else storage
        self._memory: GlobalArray | None = None
        self._disk: DiskArray | None = None
        self._buffers: list[GlobalArray] | None = None
        self.symmetry = FittingSymmetry.find(world, mol, auxmol, group)
        with world.together(STAGE, orbitals, screening):
            self.native = pair_lists.native(self.symmetry.mol, self.symmetry.auxmol)
            bounds = np.array(self.native.bounds(threads))
            self.sizes: IntegralSizes = sizes(
                self.symmetry, bounds, screening=screening, orbitals=orbitals, spins=spins
            )
        free = min(world.gather(free_memory()))
        with world.together(STAGE):
            self.plan: IntegralPlan = plan_integrals(
                self.sizes,
                free.bytes,
                world.size,
                threads,
                storage,
                limit=free.reason,
                transfer_bytes=DiskArray.transfer_bytes(world),
            )
            depends = settings(mol, auxmol, screening) | self.symmetry.settings
            problem = Problem(STAGE, FORMAT, depends, ROUNDED)
            self._kept = None if stages is None else Stage(stages, NAME, problem)
        self.metric_functions = int(auxmol.nao)
        self.orbitals, self.spins = orbitals, spins
        self.rows_in_memory = 0
        self.rows, self.dropped, self.seconds = self.metric_functions, 0, 0.0
        self._ranks: Sequence[int] = self.sizes.irreps or (self.metric_functions,)  # rows of each irrep
        self.waited_seconds = 0.0  # in which this process has waited for rows from the disk
        self.least_bytes = 0.0  # that all processes write and read at least, so far
        self._memory_bytes = free.bytes * world.size
        shells = pair_lists.shell_sizes(mol)
        self._pairs_of = partial(pair_lists.Pairs, bounds, shells, screening, images=self.symmetry.shells)
        self.resumed = self._kept is not None and self._open(self._kept)
        self.pairs = self._pairs_of(self.plan.width)
        self.columns = Columns(self.symmetry, self.pairs, self.native)

    def build(self, progress: Progress | None = None) -> bool:
        """Makes the integrals, unless they exist. Returns whether it made them. Collective."""
        if self.resumed or self._memory is not None or self._disk is not None:
            return False
        start = time.monotonic()
        symmetry = self.symmetry
        metric = Metric(self.world, symmetry.auxmol, symmetry.adapted, symmetry.irreps)
        self.rows, self.dropped, self._ranks = metric.rank, metric.dropped, metric.ranks
        self.rows_in_memory = min(self.plan.memory_rows, self.rows)
        self._make_arrays()
        self._fill(metric, progress)
        self.least_bytes += bound.once(self.bytes, self._memory_bytes)
        if self._kept is not None and self._disk is not None:
            facts = {"width": self.pairs.width, "dropped": self.dropped, "irreps": list(self._ranks)}
            self._kept.complete(self._disk, **facts)
        self.seconds = time.monotonic() - start
        return True

    def forecast(self, cycles: int) -> Forecast:
        """What making them and an SCF of so many cycles with them will take, by samples of this process. Not
        collective."""
        rates = FittingRates.measure(
            self.native,
            self.pairs,
            self.metric_functions,
            self.orbitals,
            self._threads,
            self.world.scratch if self.plan.memory_rows < self.metric_functions else None,
        )
        return forecast_scf(self, rates, self._threads, cycles)

    def _open(self, kept: Stage) -> bool:
        """Opens the integrals that another run has kept, with their layout. False if there are none."""
        disk = self._disk = kept.open(self._wrong, cache_bytes=self.plan.cache_bytes, read_only=True)
        if disk is None:
            return False
        self.rows, self.dropped = disk.shape[0], disk.metadata["dropped"]
        self._ranks = disk.metadata["irreps"]
        self.plan = replace(self.plan, width=disk.metadata["width"], chunk_rows=disk.chunk[0])
        return True

    def _wrong(self, found: DiskArray) -> str:
        width, dropped, ranks = (found.metadata.get(key) for key in ("width", "dropped", "irreps"))
        functions = self.metric_functions
        if type(width) is not int or not 0 < width < 1 << 30:
            return f"its slabs are {str(width)[:99]} columns wide"
        if type(dropped) is not int or not 0 <= dropped < functions:
            return f"{str(dropped)[:99]} of {functions} auxiliary basis functions were left out"
        counts = ranks if isinstance(ranks, list) and all(type(each) is int for each in ranks) else []
        most = self.sizes.irreps or (functions,)
        if (
            len(counts) != len(most)
            or sum(counts) != functions - dropped
            or any(not 0 <= count <= each for count, each in zip(counts, most, strict=True))
        ):
            return f"its irreps have {str(ranks)[:99]} rows"
        pairs = self._pairs_of(width)
        if found.shape != (functions - dropped, pairs.columns) or found.chunk[1:] != (pairs.width,):
            return f"its shape is {found.shape} in chunks of {found.chunk}"
        return ""

    @property
    def bytes(self) -> int:
        """Bytes of all rows, in memory and on disk."""
        return self.rows * self.pairs.columns * 8

    def summary(self, auxmol: Mole) -> str:
        """A line for the user about the integrals and their place."""
        every = self.pairs.functions * (self.pairs.functions + 1) // 2
        lost = f", {self.dropped} linearly dependent ones left out" if self.dropped else ""
        inside = self.rows_in_memory * self.pairs.columns * 8
        return (
            f"{self.rows} auxiliary basis functions ({auxiliary.title(auxmol)}){lost}, {self.pairs.kept} of "
            f"{every} products of functions: {self.bytes / 1e6:.0f} MB, {inside / 1e6:.0f} MB of it in memory, "
            f"{'found' if self.resumed else 'made'} in {self.seconds:.1f} s"
        )

    def _make_arrays(self) -> None:
        columns, inside = self.pairs.columns, self.rows_in_memory
        if inside:
            begins = [inside * rank // self.world.size for rank in range(self.world.size)]
            self._memory = GlobalArray(self.world, (inside, columns), distribution=[begins, [0]])
        if inside < self.rows:
            shape, chunk = (self.rows - inside, columns), (self.plan.chunk_rows, self.pairs.width)
            cache = self.plan.cache_bytes
            if self._kept is not None:
                self._disk = self._kept.make(shape, chunk, cache)
            else:
                self._disk = DiskArray(self.world, shape, chunk=chunk, cache_bytes=cache)

    def _fill(self, metric: Metric, progress: Progress | None) -> None:
        """Makes the integrals. Threads of all processes take the next slab when they are free; while one slab is
        written, others are computed."""
        counter = self.world.counter()
        slabs = self.pairs.slabs
        with self.world.together(STAGE):
            buffers = [np.zeros((metric.functions, self.pairs.width)) for _ in range(self._threads)]

            def make(thread: int, task: int) -> None:
                slab, buffer = slabs[task], buffers[thread]
                buffer[:, slab.used :] = 0.0
                self.native.integrals(slab.table, 0, self.native.auxiliary_shells, buffer, 1)
                for transfer in self._put(slab.begin, metric.fit(buffer)):
                    transfer.wait()

            each_task(counter, len(slabs), self._threads, make, progress)
            if self._disk is not None:
                self._disk.sync()
        if self._memory is not None:
            self._memory.sync()
        self.world.barrier()

    def _put(self, begin: int, block: Matrix) -> list[Request]:
        box = slice(begin, begin + self.pairs.width)
        inside = self.rows_in_memory
        transfers = []
        if self._memory is not None:
            transfers.append(self._memory.put_async((slice(0, inside), box), block[:inside]))
        if self._disk is not None:
            transfers.append(self._disk.put_async((slice(None), box), block[inside:]))
        return transfers

    # ---- reading ----

    def batches(self, stop: int | None = None) -> Batches:
        """The share of this process of the rows below `stop` (None: of all), in batches; all processes together
        get all rows. Each thread may use one batch at a time, and must `release` it. Collective, see Batches."""
        stop = self.rows if stop is None else stop
        self.least_bytes += bound.once(stop * self.pairs.columns * 8, self._memory_bytes)
        memory = None
        if self._memory is not None:
            begin = self._memory.patch[0].start
            memory = begin, self._memory.local[: max(0, stop - begin)]
        below = stop - self.rows_in_memory
        disk = None if self._disk is None or below <= 0 else self._pass(self._disk, below)
        return Batches(self, memory, disk)

    def needed(self, columns: Matrix) -> int:
        """How many of the first rows a product with densities needs: rows of later irreps give only rounding.
        columns: the densities, packed by `columns.gather`. The first process decides. Collective."""
        norms = np.linalg.norm(columns, axis=(1, 2))
        last = int(np.flatnonzero(norms > _ROUNDING * norms.max()).max(initial=0))
        return int(self.world.broadcast(sum(self._ranks[: last + 1])))

    def by_irreps(self, batch: Batch) -> Iterator[tuple[int, Matrix]]:
        """Yields the number of each irrep, and the rows of a batch with this irrep."""
        for irrep, (first, last) in enumerate(pairwise(accumulate(self._ranks, initial=0))):
            rows = batch.rows[max(0, first - batch.begin) : max(0, last - batch.begin)]
            if len(rows):
                yield irrep, rows

    def _pass(self, disk: DiskArray, stop: int) -> DiskPass:
        size, world = self.plan.batch_rows, self.world
        if self._buffers is None:
            begins = [size * rank for rank in range(world.size)]
            rounds = -(-len(disk) // (size * world.size))
            self._buffers = [
                GlobalArray(world, (size * world.size, self.pairs.columns), distribution=[begins, [0]])
                for _ in range(min(self._threads + READ_AHEAD, rounds))
            ]
        kept_at = None if self._kept is None else self._kept.path
        return DiskPass(world, disk, self._buffers, size, kept_at, stop)

    def matrices(self, batch: Batch) -> Matrix:
        """The rows of a batch as symmetric matrices [count][n][n] over the functions of the molecule."""
        n, at = self.pairs.functions, 0
        result = np.zeros((len(batch.rows), n, n))
        for irrep, rows in self.by_irreps(batch):
            self.columns.expand(irrep, rows, result[at : at + len(rows)])
            at += len(rows)
        return self.symmetry.from_axes(result)

    def rows_of(self, size: int) -> Iterator[Batch]:
        """All rows, in batches of at most `size`, for this process alone. Not collective."""
        for begin in range(0, self.rows, size):
            end = min(begin + size, self.rows)
            rows = np.empty((end - begin, self.pairs.columns))
            for transfer in self._get(begin, end, rows):
                transfer.wait()
            yield Batch(begin, rows)

    def _get(self, begin: int, end: int, buffer: Matrix) -> list[Request]:
        """Starts to read rows, from memory, from disk, or from both."""
        inside = self.rows_in_memory
        transfers = []
        if begin < inside and self._memory is not None:
            part = buffer[: min(end, inside) - begin]
            transfers.append(self._memory.get_async(np.s_[begin : begin + len(part), :], part))
        if end > inside and self._disk is not None:
            first = max(begin, inside)
            part = buffer[first - begin : end - begin]
            transfers.append(self._disk.get_async(np.s_[first - inside : end - inside, :], part))
        return transfers

    def close(self) -> None:
        """Frees memory and disk. Collective."""
        for array in (self._memory, self._disk, *(self._buffers or ())):
            if array is not None:
                array.close()
        self._memory = self._disk = self._buffers = None


class Batches:
    """Batches of rows in memory, then of rows on disk, which are read ahead collectively. So all processes take
    batches until there are none, or call `close`; after an error only `close` is allowed."""

    def __init__(
        self, integrals: ThreeIndex, memory: tuple[int, Matrix] | None, disk: DiskPass | None
    ) -> None:
        self._integrals, self._memory, self._disk = integrals, memory, disk
        self._every = self._generate()

    def __iter__(self) -> Iterator[Batch]:
        return self._every

    def _generate(self) -> Iterator[Batch]:
        if self._disk is not None:
            self._disk.start()  # before anything else; its errors are raised where batches are taken
        if self._memory is not None:
            (begin, rows), size = self._memory, self._integrals.plan.batch_rows
            for first in range(0, len(rows), size):
                yield Batch(begin + first, rows[first : first + size])
        if self._disk is not None:
            for batch in self._disk.batches():
                yield replace(batch, begin=self._integrals.rows_in_memory + batch.begin)

    def close(self) -> None:
        """Takes part in the remaining reads of other processes."""
        if self._disk is not None:
            self._disk.close()
            self._integrals.waited_seconds += self._disk.waited_seconds
            self._disk = None
