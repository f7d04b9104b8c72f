"""Two-electron integrals of a molecule over all processes: stored on disk or recomputed, contracted to J and K."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.arrays.global_array import GlobalArray
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import molecule, operations, problem
from outcore.chem.hf import accuracy, kept, plan
from outcore.chem.hf.accuracy import EnergyError, Finer
from outcore.chem.hf.settings import DENSITY_FACTOR, Settings
from outcore.chem.hf.skeleton import DensityPart, Skeletons
from outcore.job import launch, resources
from outcore.job.processes import free_memory
from outcore.job.resources import Allowance
from outcore.job.scratch import bytes_here, check_room, find_scratch
from outcore.job.world import shared
from outcore.keep.problem import Problem
from outcore.parallel.tasks import run_tasks

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm
    from pyscf.gto import Mole

    from outcore.job.world import World

Matrices = NDArray[np.float64]
Progress = Callable[[float], None]


_NO_LIMIT = (1 << 63) - 1
_SMALL = 127.0  # times the cutoff: smaller integrals are cheap to keep, and soon negligible in an SCF
_PREFETCH = 2  # least number of records read ahead
_SMALLEST_PART = (
    1e-11  # parts of a density change in an irrep with a smaller norm are left out, if screening is allowed
)
_PAIR_BYTES = 16  # most bytes of the lists of pairs of shells, for each pair of functions
_DIIS_MATRICES = 40  # of n*n doubles: an SCF driver with DIIS over 8 vectors, two spins, may hold so many


@dataclass(frozen=True)
class Estimate:
    """Numbers that are known before any integral is computed."""

    functions: int
    integrals: int  # number that passes the screening
    disk_bytes: int  # all processes: an upper bound if everything is kept, else the budget
    free_bytes: int  # in this node's scratch directory
    record_memory_bytes: int  # all processes: for records that stay in memory
    memory_bytes: int  # of each process
    scratch: str


@dataclass(frozen=True)
class Summary:
    """Numbers of integrals that were computed and kept, for all processes together."""

    quartets: int
    computed: int
    stored: int  # integrals kept, of those that pass the screening
    memory_bytes: int  # of records in memory
    disk_bytes: int  # of records on disk
    records: int
    damaged: int  # records that were read back damaged
    lost_tasks: int  # tasks with integrals that found no place; these are recomputed
    seconds: float

    @property
    def bytes(self) -> int:
        return self.memory_bytes + self.disk_bytes


@dataclass(frozen=True)
class IntegralWork:
    """The work for integrals so far. Seconds are by the clock of this process, counts are of all processes."""

    store_seconds: float
    contractions: int  # how often J and K were made
    contract_seconds: float
    expected_seconds: float | None  # predicted seconds for all of that, if a sample was measured
    damaged: int  # records that were read back damaged
    lost_tasks: int  # tasks with integrals that found no place; these are recomputed
    whole_bytes: int  # what is read from disk if each J and K, and each error of the energy, takes all, once


class TwoElectronIntegrals:
    """J and K of a molecule. Every method is collective over `comm` (None: a process on its own), or over a given
    `world`; all processes raise the first error of any.

    `Settings` say which integrals are computed, and how accurately they are kept.
    """

    def __init__(
        self,
        mol: Mole,
        settings: Settings,
        comm: Intracomm | None = None,
        *,
        world: World | None = None,
        finer: Finer | None = None,
    ) -> None:
        """finer: the basis of steps in addition to crude densities. With it integrals are recomputed, even if
        others are kept. None: that of kept integrals, if there are any."""
        self.settings = settings
        self.key = molecule.integrals_key(mol)
        self.world = shared(comm) if world is None else world
        self._stored = False
        self._store_seconds = self._seconds_before = 0.0
        self.contractions, self.contract_seconds = 0, 0.0  # of all J and K so far
        self._passes, self._whole_before = 0, 0  # over all integrals; bytes of those that these replace
        self._threads = settings.threads or launch.threads_per_rank()
        self._sums: GlobalArray | None = None
        self.symmetry = operations.find_at_all(self.world, mol, settings.group)
        with self.world.together("basis"):
            found = self.symmetry.operations
            self._basis = molecule.native_basis(mol, None if found is None else found.coordinates)
            self._group = None if found is None else _core.ShellGroup(self._basis, found.shells.ravel())
            self._skeletons = Skeletons(mol, found)
        self._mol = mol
        self._crude_densities: Matrices | None = None
        with self.world.together("two-electron integrals"):
            self.scratch = "" if settings.storage == "direct" else self._find_scratch()
            self._small_below = 0.0
            self._prefetch = self._fit_memory()
        # The same at all processes: a process may read records of others.
        self._small_below = float(self.world.all_reduce(self._small_below, "min"))
        self.finer = self._find_finer() if finer is None else finer
        self._accuracy, self._term = self._choose_accuracy()
        with self.world.together("screening of two-electron integrals"):
            self._screening = self._choose_screening()
            self._cost = np.array(self._screening.task_integrals(), dtype=float)
        self._memory_budget, self._disk_budget = self._budgets()
        self.sample: plan.Sample | None = None
        self._kept = self._find_kept() if finer is None else None
        self.rule = self._choose() if self._kept is None else self._kept.rule
        rule = self.rule.native(self._basis)
        self._native = _core.TwoElectron(self._basis, self._screening, rule, self._threads)
        self._keeps, self._keeps_all = not rule.keeps_none, rule.keeps_all
        self._counter = self.world.counter()
        # One budget of disk for all: a process that computes faster may keep more.
        self._disk_used = self.world.counter() if self._keeps and settings.storage != "disk" else None
        # The counter for passes over the records of all processes.
        self._tickets = self.world.counter() if self._keeps and settings.records == "any" else None

    @property
    def keeps(self) -> bool:
        """Whether integrals are stored; then `store` must come before `jk`."""
        return self._keeps

    @property
    def reused(self) -> bool:
        """Whether the integrals are those that an earlier run has kept."""
        return self._kept is not None

    def estimate(self) -> Estimate:
        disk = self.settings.storage == "disk"
        return Estimate(
            functions=self._basis.functions,
            integrals=self._screening.integrals,
            disk_bytes=self._screening.stored_bytes_bound(self._accuracy)
            if disk
            else self._disk_budget * self.world.size,
            free_bytes=_core.file_system(self.scratch).free_bytes if self.scratch else 0,
            record_memory_bytes=self._memory_budget * self.world.size,
            memory_bytes=resources.resident_bytes() + self._work_bytes(self._prefetch) + self._memory_budget,
            scratch=self.scratch,
        )

    @property
    def task_integrals(self) -> NDArray[np.float64]:
        """Number of integrals of each task. Tasks are dealt out to threads of all processes."""
        return self._cost

    def expected(self, contractions: int = plan.CYCLES) -> plan.Work | None:
        """The predicted work of making J and K so often; None if no sample was measured. Not collective."""
        return None if self.sample is None else self.sample.work(self.rule, cycles=contractions)

    def work(self) -> IntegralWork:
        """The work so far. Collective."""
        summary = self.summary()
        expected = self.expected(max(1, self.contractions))
        return IntegralWork(
            store_seconds=self._seconds_before + self._store_seconds,
            contractions=self.contractions,
            contract_seconds=self.contract_seconds,
            expected_seconds=None if expected is None else expected.seconds,
            damaged=summary.damaged,
            lost_tasks=summary.lost_tasks,
            whole_bytes=self._whole_before + self._passes * summary.disk_bytes,
        )

    def count_before(self, work: IntegralWork) -> None:
        """Adds the work of the integrals that these replace."""
        self._seconds_before += work.store_seconds
        self.contractions += work.contractions
        self.contract_seconds += work.contract_seconds
        self._whole_before += work.whole_bytes

    def survey(self) -> plan.Sample:
        """A measured sample of the work, made once. Collective."""
        if self.sample is None:
            self.sample = plan.survey(
                self.world,
                self._basis,
                self._screening,
                self._accuracy,
                self._crude()[:1],
                self._threads,
                (self.settings.density_cutoff or self.settings.cutoff * DENSITY_FACTOR) / DENSITY_FACTOR,
            )
        return self.sample

    def _find_scratch(self) -> str:
        settings = self.settings
        if settings.keep or settings.records == "own":
            return find_scratch(settings.keep or settings.scratch)
        mine = str(self.world.scratch)
        if settings.scratch is not None and os.path.abspath(settings.scratch) != os.path.abspath(mine):
            raise OutcoreError(
                errno.EINVAL,
                "let any process read any integral record",
                path=settings.scratch,
                detail=f"they lie in the scratch directory of the world, {mine}; "
                "give a World(scratch=...) as comm",
            )
        return mine

    def _choose_accuracy(self) -> tuple[_core.Accuracy, float]:
        """The accuracy of stored integrals, and about the largest contribution to the energy of a quartet that may
        be left out. Collective."""
        error = self.settings.allowed_error
        if error is None or self.settings.storage == "direct":
            return _core.Accuracy(self.settings.cutoff), self.settings.cutoff
        densities, finer = self._crude(), self.finer
        if finer is not None:
            densities, error = finer.with_crude(densities), error * finer.factor
        return accuracy.for_error(self._basis, densities, error, self._threads, self.world, self._group)

    def _crude(self) -> Matrices:
        """Crude densities [2][n][n], made once. Collective."""
        if self._crude_densities is None:
            densities = np.empty((2, self._mol.nao, self._mol.nao))
            with self.world.together("crude densities"):
                if self.world.rank == 0:
                    densities = accuracy.crude_densities(self._mol)
            self._crude_densities = self.world.broadcast(densities)
        return self._crude_densities

    def _choose_screening(self) -> _core.Screening:
        steps = self._accuracy
        if steps.least == steps.largest:
            return _core.Screening(self._basis, self.settings.cutoff, self._threads, None, self._group)
        return _core.Screening(self._basis, steps.share * steps.least, self._threads, steps, self._group)

    def _budgets(self) -> tuple[int, int]:
        """Bytes of memory and of disk for the records of each process. Collective."""
        settings = self.settings
        memory, disk = 0, 0
        with self.world.together("budgets of the integrals"):
            if settings.storage in ("mixed", "auto"):
                free = int(_core.file_system(self.scratch).free_bytes) // self.world.node_size
                disk = (
                    free if settings.disk_bytes is None else min(free, settings.disk_bytes // self.world.size)
                )
            if settings.storage == "auto" and not settings.keep:  # records in memory cannot be kept
                memory = max(0, self._free_memory().bytes - self._work_bytes(self._prefetch))
        return int(self.world.all_reduce(memory, "min")), int(self.world.all_reduce(disk, "min"))

    def _choose(self) -> plan.Rule:
        """Chooses the integrals to keep. Collective."""
        settings = self.settings
        if settings.storage in ("disk", "direct"):
            return plan.KEEP_ALL if settings.storage == "disk" else plan.KEEP_NONE
        sample = self.survey()
        rule = plan.KEEP_NONE
        with self.world.together("choose the integrals to keep"):
            if self.world.rank == 0:
                size = self.world.size
                rule = sample.rule(
                    self._memory_budget * size,
                    self._disk_budget * size,
                    self._seconds_per_byte() if settings.storage == "auto" else 0.0,
                )
        return self.world.broadcast(rule)

    def store(self, progress: Progress | None = None) -> Summary:
        """Computes the integrals to keep and stores them, once. If they may not fit, it refuses before it computes.
        If an earlier run has kept integrals, it opens these instead."""
        start = time.monotonic()
        self._counter.reset()
        if self._kept is None and self.settings.storage == "disk":
            self._check_disk()
        with self.world.together("open the store of integrals"):
            if self._kept is None:
                name = self.world.broadcast(kept.new_name())
                self._open_store(f"{name}.{self.world.rank}" if self.settings.keep else "")
            else:
                self._open_kept(self._kept.files)
        if self._kept is None:
            with self.world.together("store two-electron integrals"):
                run_tasks(self._counter, self._cost, self._threads, self._native.store, progress)
                self._native.close_store()
            if self.settings.keep:
                self._keep()
            elif self._tickets is not None:
                indices = self.world.gather(self._native.index())
                with self.world.together("share the records of integrals"):
                    self._native.share(indices)
        self._stored = True
        self._store_seconds = time.monotonic() - start
        return self.summary()

    def _find_finer(self) -> Finer | None:
        """The basis of finer steps of the integrals that an earlier run has kept."""
        found = None
        with self.world.together("find kept integrals"):
            if self.settings.keep and self.settings.storage != "direct" and self.world.rank == 0:
                found = kept.find_finer(self.scratch, self._problem(), self._basis.functions)
        return self.world.broadcast(found)

    def _find_kept(self) -> kept.Kept | None:
        found = None
        with self.world.together("find kept integrals"):
            if self.settings.keep and self.settings.storage != "direct" and self.world.rank == 0:
                found = kept.find(self.scratch, self._problem(), self._numbering(), self.finer)
        return self.world.broadcast(found)

    def _keep(self) -> None:
        """Commits the stored integrals for later runs."""
        with self.world.together("keep integrals"):
            mine = self._native.commit()
        files = self.world.gather(mine)
        with self.world.together("keep integrals"):
            if self.world.rank == 0:
                kept.save(
                    self.scratch, self._problem(), self._numbering(), kept.Kept(self.rule, files, self.finer)
                )
            if self._tickets is not None:
                self._native.drop()
                self._open_kept(files)

    def _open_kept(self, files: kept.Files) -> None:
        self._native.open_kept(self._options(""), files, self.world.rank, self.world.size)

    def _problem(self) -> Problem:
        """Everything that kept integrals depend on. Steps for an allowed error also depend on nuclei and
        electrons."""
        settings, mol, found = self.settings, self._mol, self.symmetry.operations
        of_molecule = problem.integrals if settings.allowed_error is None else problem.molecule
        what = {
            "storage": settings.storage,
            "screening": settings.screening,
            "error": settings.allowed_error,
            "record": settings.record_bytes,
            "small": self._small_below,
            "symmetry operations": None if found is None else found.atoms,
            **of_molecule(mol),
        }
        return Problem(kept.WHAT, kept.FORMAT, what, problem.ROUNDED)

    def _numbering(self) -> dict[str, int]:
        """The lists that numbers in records and in the rule refer to: of tasks, and of pairs of kinds of shells."""
        kinds = self._basis.kinds
        return {
            "tasks": len(self._cost),
            "screened": self._screening.integrals,
            "pairs of kinds": kinds * (kinds + 1) // 2,
        }

    def summary(self) -> Summary:
        counts = self._native.counts()
        names = (
            "quartets",
            "computed",
            "stored",
            "memory_bytes",
            "disk_bytes",
            "records",
            "damaged",
            "lost_tasks",
        )
        mine = np.array([getattr(counts, name) for name in names], np.int64)
        counted = (int(value) for value in self.world.all_reduce(mine))
        return Summary(**dict(zip(names, counted, strict=True)), seconds=self._store_seconds)

    def jk(
        self, densities: Matrices, symmetry: Sequence[int], *, screened: bool = True
    ) -> tuple[Matrices, Matrices]:
        """J and K, each [count][n][n] of doubles. densities: [count][n][n] of any real type; those of rank 0 count.
        symmetry: +1 for symmetric, -1 for antisymmetric ones. screened: False: nothing is left out because of small
        densities. All processes get the same result."""
        start = time.monotonic()
        cutoff = self.settings.density_cutoff if screened else 0.0
        parts = self._parts(densities, _SMALLEST_PART if cutoff > 0 else 0.0)
        alone = len(parts) == 1 and len(parts[0].which) == len(densities)
        shape = (0 if alone else len(densities), *densities.shape[1:])
        coulomb, exchange = np.zeros(shape), np.zeros(shape)
        for part in parts:
            self._reset_counters()
            with self.world.together("J and K", list(symmetry)):
                of_part = self._contracted(part, [symmetry[number] for number in part.which], cutoff)
            if alone:
                coulomb, exchange = of_part
            else:
                coulomb[part.which] += of_part[0]
                exchange[part.which] += of_part[1]
        if self.world.size > 1:
            coulomb, exchange = self._sum(coulomb, exchange)
        self.contractions += 1
        self._passes += 1
        self.contract_seconds += time.monotonic() - start
        return coulomb, exchange

    def _parts(self, densities: Matrices, floor: float = 0.0) -> list[DensityPart]:
        """Splits the densities of rank 0 into parts by irreps. Collective."""
        parts: list[DensityPart] = []
        with self.world.together("densities by irreps"):
            if self.world.rank == 0:
                parts = self._skeletons.parts(np.ascontiguousarray(densities, dtype=np.float64), floor)
        return self.world.broadcast(parts)

    def _contracted(self, part: DensityPart, symmetry: list[int], cutoff: float) -> tuple[Matrices, Matrices]:
        """J and K of a part, from the integrals of this process."""
        if self._keeps and not self._stored:
            raise OutcoreError(errno.EINVAL, "J and K", detail="the integrals have not been stored")
        self._native.begin(part.matrices, symmetry, cutoff)
        self._native.contract_kept(self._tickets)
        if not self._keeps_all:
            run_tasks(self._counter, self._cost, self._threads, self._native.contract_rest)
        coulomb, exchange = self._native.end(len(symmetry))
        return self._skeletons.average(part, coulomb), self._skeletons.average(part, exchange)

    def energy_error(self, densities: Matrices) -> EnergyError:
        """The error of the energy by rounding of stored integrals. densities: [1][n][n] for closed shells, or
        [2][n][n] for each spin; those of rank 0 count."""
        self._passes += 1
        parts = self._parts(densities)
        variance = worst = largest = 0.0
        for part in parts:
            spins = np.zeros(densities.shape)
            spins[part.which] = part.matrices
            self._reset_counters()
            with self.world.together("error of the energy"):
                *sums, most = self._native.energy_error(spins, self._counter, self._tickets)
            of_part = self.world.all_reduce(np.array(sums))
            # All parts use the same integrals: in the worst case their errors add up.
            variance += len(parts) * float(of_part[0])
            worst += float(of_part[1])
            largest += len(parts) * float(self.world.all_reduce(most, "max"))
        sigma = accuracy.sigma(variance, largest, self._term)
        return EnergyError(sigma, worst, self.settings.allowed_error)

    def close(self) -> None:
        """Drops the integrals and their file. Collective if any process may read any record."""
        if self._tickets is None:
            self._native.drop()
        else:
            with self.world.together("drop the integrals"):
                self._native.drop()
        self.abandon()

    def abandon(self) -> None:
        """As `close`, but not collective: a file of all processes stays on the disks until the world closes."""
        del self._native
        self._sums = None
        self._stored = False

    def _reset_counters(self) -> None:
        if not self._keeps_all:
            self._counter.reset()
        if self._tickets is not None:
            self._tickets.reset()

    def _sum(self, coulomb: Matrices, exchange: Matrices) -> tuple[Matrices, Matrices]:
        """The sums over processes, bit by bit the same at all: each process adds its matrices to global ones, which
        are distributed over the processes."""
        size = coulomb.size
        if self._sums is None or self._sums.size != 2 * size:
            self._sums = GlobalArray(self.world, 2 * size)
        else:
            self._sums.local[...] = 0.0  # all processes are here again, so none still reads earlier sums
            self._sums.sync()
        self._sums.acc(np.s_[:size], coulomb.ravel())
        self._sums.acc(np.s_[size:], exchange.ravel())
        self._sums.sync()
        both = self._sums[...].reshape(2, *coulomb.shape)
        return both[0], both[1]

    def _open_store(self, kept_name: str) -> None:
        self._native.open_store(self._options(kept_name))

    def _options(self, kept_name: str) -> _core.IntegralFileOptions:
        limited = self.settings.storage != "disk"
        expected = 0 if limited or self._kept else self.estimate().disk_bytes // self.world.size
        return _core.IntegralFileOptions(
            scratch=self.scratch,
            record_bytes=self.settings.record_bytes,
            prefetch=self._prefetch,
            accuracy=self._accuracy,
            page_cache=self.settings.page_cache,
            expected_bytes=expected,
            memory_bytes=self._memory_budget,
            disk_bytes=self._disk_budget * self.world.size if limited else _NO_LIMIT,
            disk_used=self._disk_used,
            small_below=self._small_below,
            may_overflow=limited,
            kept_name=kept_name,
            world=self.world if self._tickets is not None else None,
        )

    def _check_disk(self) -> None:
        """Raises OutcoreError (ENOSPC, EFBIG) if the integrals may not fit. Collective."""
        with self.world.together("look at the scratch disk"):
            size = self.estimate().disk_bytes
            here = bytes_here(self.world, self.scratch, size)
        check_room(
            self.world,
            "store two-electron integrals",
            [(Path(self.scratch), here)],
            largest_file=size // self.world.size,
            advice="give a larger --scratch, a larger --error, or --storage direct",
        )

    def _work_bytes(self, prefetch: int) -> int:
        """Bytes of matrices, buffers and work space of this process."""
        return work_bytes(self._basis, self.settings, self._threads, prefetch, self._small_below)

    def _seconds_per_byte(self) -> float:
        """Core seconds that this node may lose by waiting, for a byte that is written once and read in every
        cycle."""
        from outcore.job import machine

        rates, _ = machine.planning_disk(self.scratch)
        cores = self._threads * self.world.node_size
        return cores * (1 / rates.write_bytes_per_s + plan.CYCLES / rates.read_bytes_per_s)

    def _free_memory(self) -> Allowance:
        """The part of the memory budget of this process that is still free."""
        return free_memory(self.world, self.settings.memory_bytes, self._threads)

    def _fit_memory(self) -> int:
        """The deepest prefetch within the memory budget, at most the requested one. Also sets the limit of small
        integrals: they get records of their own, which later cycles may skip, if there is memory for them."""
        free = self._free_memory()
        for small in (_SMALL * self.settings.cutoff, 0.0) if self.settings.density_cutoff > 0 else (0.0,):
            self._small_below = small
            for prefetch in range(max(_PREFETCH, self.settings.prefetch), _PREFETCH - 1, -1):
                if self._work_bytes(prefetch) <= free.bytes:
                    return prefetch
        need = self._work_bytes(_PREFETCH)
        raise OutcoreError(
            errno.ENOMEM,
            "two-electron integrals",
            detail=f"{self._basis.functions} functions on {self._threads} threads need at least "
            f"{in_words(need)} more in each of {self.world.size} processes, {in_words(need * self.world.size)} in "
            f"all, but {free.reason} leaves {in_words(free.bytes)} to each",
        )


def work_bytes(
    basis: _core.Basis, settings: Settings, threads: int, prefetch: int = _PREFETCH, small_below: float = 0.0
) -> int:
    """Memory of an SCF in one process, without records in memory: matrices, buffers, work space, the list of pairs
    of shells. With the least prefetch it is the least memory of an SCF."""
    native = _core.integral_memory_bytes(
        basis,
        threads,
        2,
        0 if settings.storage == "direct" else settings.record_bytes,
        prefetch,
        small_below,
    )
    n = basis.functions
    return int(native) + (_DIIS_MATRICES * n * n * 8) + _PAIR_BYTES * n * (n + 1) // 2
