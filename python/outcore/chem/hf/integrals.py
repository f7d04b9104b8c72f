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
_SMALL = 127.0  # times the cutoff: cheapest to keep, first to be negligible for a change of the density
_PREFETCH = 2  # records read ahead, at least
_SMALLEST_PART = (
    1e-11  # norm of what a change of the density has in an irrep, where small changes are left out
)
_PAIR_BYTES = 16  # of the lists of pairs of shells, for each pair of functions at most
_DIIS_MATRICES = 40  # of n*n doubles, which an SCF driver with DIIS over 8 vectors, two spins, may hold


@dataclass(frozen=True)
class Estimate:
    """What is known before any integral is computed."""

    functions: int
    integrals: int  # that pass the screening
    disk_bytes: int  # all processes: an upper bound if everything is kept, else the budget
    free_bytes: int  # in this node's scratch directory
    record_memory_bytes: int  # all processes: for records that stay in memory
    memory_bytes: int  # of each process
    scratch: str


@dataclass(frozen=True)
class Summary:
    """What was computed and kept, all processes together."""

    quartets: int
    computed: int
    stored: int  # integrals kept, of those that pass the screening
    memory_bytes: int  # of records in memory
    disk_bytes: int  # of records on disk
    records: int
    damaged: int  # records that came back damaged
    lost_tasks: int  # whose integrals did not all find a place; those are recomputed
    seconds: float

    @property
    def bytes(self) -> int:
        return self.memory_bytes + self.disk_bytes


@dataclass(frozen=True)
class IntegralWork:
    """What the integrals have taken so far, this process's clock; counts of all processes."""

    store_seconds: float
    contractions: int  # times J and K were made
    contract_seconds: float
    expected_seconds: float | None  # for all of that, if a sample was measured
    damaged: int  # records that came back damaged
    lost_tasks: int  # whose integrals did not all find a place; those are recomputed


class TwoElectronIntegrals:
    """J and K of a molecule. Every method is collective over `comm` (None: a process on its own), or the `world`
    given instead; the first error of any process is raised by all.

    Which integrals are computed, and how well they are kept: `Settings`.
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
        """`finer`: what steps are made for beside crude densities; the integrals are made anew then, also where
        others are kept. None: as those that are kept."""
        self.settings = settings
        self.key = molecule.integrals_key(mol)
        self.world = shared(comm) if world is None else world
        self._stored = False
        self._store_seconds = self._seconds_before = 0.0
        self.contractions, self.contract_seconds = 0, 0.0  # J and K made so far, all of them together
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
        # The same at all: who reads a record need not have written it.
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
        # One budget of disk for all: whoever computes faster may keep more.
        self._disk_used = self.world.counter() if self._keeps and settings.storage != "disk" else None
        # Of passes over the records of all processes.
        self._tickets = self.world.counter() if self._keeps and settings.records == "any" else None

    @property
    def keeps(self) -> bool:
        """Something is stored, so `store` comes before `jk`."""
        return self._keeps

    @property
    def reused(self) -> bool:
        """The integrals are those that a run before has kept."""
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
        """Integrals of each task, as they are dealt out to threads of all processes, some at a time."""
        return self._cost

    def expected(self, contractions: int = plan.CYCLES) -> plan.Work | None:
        """What that many times J and K will take, if a sample was measured to plan the run. Not collective."""
        return None if self.sample is None else self.sample.work(self.rule, cycles=contractions)

    def work(self) -> IntegralWork:
        """What has been done so far. Collective."""
        summary = self.summary()
        expected = self.expected(max(1, self.contractions))
        return IntegralWork(
            store_seconds=self._seconds_before + self._store_seconds,
            contractions=self.contractions,
            contract_seconds=self.contract_seconds,
            expected_seconds=None if expected is None else expected.seconds,
            damaged=summary.damaged,
            lost_tasks=summary.lost_tasks,
        )

    def count_before(self, work: IntegralWork) -> None:
        """Counts the work of integrals whose place these have taken."""
        self._seconds_before += work.store_seconds
        self.contractions += work.contractions
        self.contract_seconds += work.contract_seconds

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
        """How finely integrals are stored, if they are, and what a quartet that may be left out adds to the energy,
        about and at most. Collective."""
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
                free = (
                    int(_core.file_system(self.scratch).free_bytes * plan.DISK_SHARE) // self.world.node_size
                )
                disk = (
                    free if settings.disk_bytes is None else min(free, settings.disk_bytes // self.world.size)
                )
            if settings.storage == "auto" and not settings.keep:  # what lies in memory cannot be kept
                memory = max(0, self._free_memory().bytes - self._work_bytes(self._prefetch))
        return int(self.world.all_reduce(memory, "min")), int(self.world.all_reduce(disk, "min"))

    def _choose(self) -> plan.Rule:
        """Which integrals are kept. Collective."""
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
        """Computes the integrals that are kept and stores them; once. Refuses before computing if they may not fit.
        Opens those that a run before has kept instead, if there are any."""
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
        """What the integrals that a run before has kept were stored for."""
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
        """Makes what was stored known to later runs."""
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
        """What kept integrals depend on. Steps that keep to an error depend on nuclei and electrons."""
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
        """What the records' numbers of tasks are of, and the rule's of kinds of shells."""
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
        """J and K, [count][n][n] of doubles each, of `densities` [count][n][n] of any real type, symmetric (+1) or
        antisymmetric (-1) as `symmetry` says. The densities of rank 0 count; all processes get the same result. Not
        `screened`: nothing is left out because of the densities."""
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
        self.contract_seconds += time.monotonic() - start
        return coulomb, exchange

    def _parts(self, densities: Matrices, floor: float = 0.0) -> list[DensityPart]:
        """The densities of rank 0 by irreps. Collective."""
        parts: list[DensityPart] = []
        with self.world.together("densities by irreps"):
            if self.world.rank == 0:
                parts = self._skeletons.parts(np.ascontiguousarray(densities, dtype=np.float64), floor)
        return self.world.broadcast(parts)

    def _contracted(self, part: DensityPart, symmetry: list[int], cutoff: float) -> tuple[Matrices, Matrices]:
        """J and K of a part, as far as this process has them."""
        if self._keeps and not self._stored:
            raise OutcoreError(errno.EINVAL, "J and K", detail="the integrals have not been stored")
        self._native.begin(part.matrices, symmetry, cutoff)
        self._native.contract_kept(self._tickets)
        if not self._keeps_all:
            run_tasks(self._counter, self._cost, self._threads, self._native.contract_rest)
        coulomb, exchange = self._native.end(len(symmetry))
        return self._skeletons.average(part, coulomb), self._skeletons.average(part, exchange)

    def energy_error(self, densities: Matrices) -> EnergyError:
        """What the rounding of the stored integrals does to the energy of `densities` [1][n][n], of closed shells,
        or [2][n][n], of each spin; those of rank 0 count."""
        parts = self._parts(densities)
        variance = worst = largest = 0.0
        for part in parts:
            spins = np.zeros(densities.shape)
            spins[part.which] = part.matrices
            self._reset_counters()
            with self.world.together("error of the energy"):
                *sums, most = self._native.energy_error(spins, self._counter, self._tickets)
            of_part = self.world.all_reduce(np.array(sums))
            # All parts take the same errors of integrals: in the worst case they add up.
            variance += len(parts) * float(of_part[0])
            worst += float(of_part[1])
            largest += len(parts) * float(self.world.all_reduce(most, "max"))
        sigma = accuracy.sigma(variance, largest, self._term)
        return EnergyError(sigma, worst, self.settings.allowed_error)

    def close(self) -> None:
        """Drops the integrals and their file. Collective if they are placed globally."""
        if self._tickets is None:
            self._native.drop()
        else:
            with self.world.together("drop the integrals"):
                self._native.drop()
        self.abandon()

    def abandon(self) -> None:
        """As close, but not collective: what is placed globally lies on the disks until the world closes."""
        del self._native
        self._sums = None
        self._stored = False

    def _reset_counters(self) -> None:
        if not self._keeps_all:
            self._counter.reset()
        if self._tickets is not None:
            self._tickets.reset()

    def _sum(self, coulomb: Matrices, exchange: Matrices) -> tuple[Matrices, Matrices]:
        """The sums over processes, bit by bit the same on all of them: each process adds its matrices to global
        ones, a part at each process."""
        size = coulomb.size
        if self._sums is None or self._sums.size != 2 * size:
            self._sums = GlobalArray(self.world, 2 * size)
        else:
            self._sums.local[...] = 0.0  # everybody is here again, so nobody reads the sums before these
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
        """Raises OutcoreError (ENOSPC, EFBIG). Collective."""
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
        """Of this process: its matrices, buffers and work space."""
        return work_bytes(self._basis, self.settings, self._threads, prefetch, self._small_below)

    def _seconds_per_byte(self) -> float:
        """Core seconds for which writing a byte once and reading it in every cycle may keep this node waiting."""
        from outcore.job import machine

        rates, _ = machine.planning_disk(self.scratch)
        cores = self._threads * self.world.node_size
        return cores * (1 / rates.write_bytes_per_s + plan.CYCLES / rates.read_bytes_per_s)

    def _free_memory(self) -> Allowance:
        """This process's part of the memory budget, without what it holds."""
        return free_memory(self.world, self.settings.memory_bytes, self._threads)

    def _fit_memory(self) -> int:
        """The deepest prefetch up to the one asked for that keeps to the memory budget. Chooses below what
        integrals are small: these have records of their own, which later cycles may leave out, if there is memory
        for them."""
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
    """What an SCF takes of one process, beside what it keeps of integrals in memory: matrices, buffers, work space,
    the list of pairs of shells. Prefetched as little as possible it is the least that an SCF takes."""
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
