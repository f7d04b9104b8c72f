"""Second-order perturbation theory with fitted integrals (RI-MP2), of restricted, unrestricted and restricted
open-shell references.

    mf = outcore.chem.ri.RHF(mol, memory="2GB")
    mf.kernel()
    correlation = outcore.chem.mp2.MP2(mf, frozen="auto", memory="2GB").kernel()

Feyereisen, Fitzgerald, Komornicki, Chem. Phys. Lett. 208, 359 (1993); Weigend, Haeser, Theor. Chem. Acc. 97, 331
(1997). Spin-component scaling: Grimme, J. Chem. Phys. 118, 9095 (2003).
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.chem import doubts
from outcore.chem import reference as references
from outcore.chem.mp2.finished_pairs import FinishedPairs
from outcore.chem.mp2.rows import Block, FittedRows, GivenRows, Maker, Rows
from outcore.chem.mp2.tiles import Tile, TileReader
from outcore.chem.mp2.transformed import TRANSFORMED, Orbitals, Transformed
from outcore.chem.problem import ROUNDED, Settings
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.forecast import Forecast
from outcore.chem.ri.forecast import mp2 as forecast_mp2
from outcore.chem.ri.plan import (
    TransformPlan,
    TransformSizes,
    check_storage,
    matrices_at_once,
    pair_tasks,
    plan_transform,
)
from outcore.chem.ri.problem import FORMAT
from outcore.job import launch
from outcore.job.processes import JOB, free_memory, free_memory_of_each, make_world
from outcore.job.resources import parse_bytes
from outcore.job.world import World
from outcore.keep.problem import Problem
from outcore.keep.stages import Stage, Stages, offering
from outcore.parallel import team
from outcore.parallel.tasks import each_task, tasks_of

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.frozen import Asked

Matrix = NDArray[np.float64]

SCS = (6 / 5, 1 / 3)  # factors of opposite and same spin, Grimme (2003)


@dataclass(frozen=True)
class Case:
    """Pairs of one kind: occupied orbitals of `first` with those of `second`, "aa", "bb", "ab", or "" for closed
    shells, whose pairs count for both kinds of spin."""

    name: str
    first: int
    second: int

    @property
    def same(self) -> bool:
        return self.first == self.second


class MP2:
    """RI-MP2 of a converged PySCF RHF, UHF or ROHF object, with density fitting or without. Two-electron integrals
    that the object has been given (`mf._eri` of a model, or changed ones) are not fitted: MP2 of all of them.

    Args:
        mf: the reference; on several processes the orbitals of rank 0 count.
        frozen: number of lowest orbitals that are not correlated (a spin with fewer occupied ones freezes
            those), "auto" for the cores of the atoms, or a list of any orbitals; see `outcore.chem.frozen.of`.
        frozen_virtual: number of the highest virtual orbitals that are not correlated, or a list.
        auxbasis: as `auxiliary.build` takes it; the MP2 set of the orbital basis if not given. Neither this nor
            `screening` has a meaning for given integrals.
        scs: factors of opposite-spin and same-spin parts in `e_scs`.
        noncanonical, force: what becomes of ROHF and other orbitals that do not diagonalize the Fock matrix, and of
            an SCF that has not converged: see `outcore.chem.reference.of`.
        memory, scratch, threads, screening, comm, storage: as for DensityFitting.
        checkpoint: directory where integrals and finished pairs are kept, and found again by a run with the same
            orbitals, on any number of processes.

    After `kernel`: `e_corr`, its parts `e_os` and `e_ss` (opposite and same spin) and `e_singles` (of ROHF, see
    `noncanonical`), `e_scs`, `e_tot`, and
    `pair_energies`: of closed shells {"os", "ss"}, else {"ab", "aa", "bb"}, matrices over active occupied orbitals
    whose elements add up to the parts. What makes a result doubtful is in `warnings`; `kernel` gives it to
    `on_warning(line)`, or without one to Python's warnings, as `outcore.chem.doubts.DoubtfulResult`.
    Raises OutcoreError, the same on all processes.
    """

    def __init__(
        self,
        mf: Any,
        frozen: Asked = None,
        auxbasis: Any = None,
        *,
        frozen_virtual: Asked = None,
        scs: tuple[float, float] = SCS,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        screening: float | None = None,
        comm: Intracomm | World | None = JOB,
        storage: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        noncanonical: str = "refuse",
        force: bool = False,
    ) -> None:
        self._storage = "disk" if checkpoint else check_storage(storage)
        self.mol, self._mf = mf.mol, mf
        self.scs, self.screening = scs, SCREENING if screening is None else screening
        self.threads = threads or launch.threads_per_rank()
        self._auxbasis = auxbasis
        self._memory_bytes = None if memory is None else parse_bytes(memory)
        self._owns_world = not isinstance(comm, World)
        if not isinstance(comm, World):
            comm = make_world(comm, self._memory_bytes, scratch)
        self.world = comm
        self._integrals = given_integrals.of_rank_0(comm, mf)
        with comm.together("RI-MP2", auxbasis is not None, screening is not None):
            if self._integrals is not None and not (auxbasis is None and screening is None):
                word = "screening" if auxbasis is None else "auxbasis"
                raise _refused(f"{given_integrals.UNFITTED}: {word} has no effect")
        self._stages = None if checkpoint is None else Stages(comm, Path(checkpoint))
        self._settings: Settings = {}  # that the integrals of orbitals depend on
        self._noncanonical = noncanonical
        self.reference = references.of_rank_0(
            comm,
            mf,
            "RI-MP2",
            lambda given: references.of(
                given,
                frozen=frozen,
                frozen_virtual=frozen_virtual,
                noncanonical=noncanonical,
                force=force,
            ),
            noncanonical,
            force,
            repr(frozen),
            repr(frozen_virtual),
        )
        self.restricted = self.reference.restricted
        self.orbitals = [self._active(*each) for each in enumerate(self.reference.spins)]
        self.plan: TransformPlan | None = None
        self.dropped = self.auxiliary = self.integral_bytes = 0
        self._rows: Rows | None = None
        self.waited_seconds = 0.0  # for integrals from the disk, by this process
        self.found: set[str] = set()  # stages that another run had done, "" if one was not
        self.on_progress: Callable[[str, float], None] | None = (
            None  # the part, and its fraction that is done
        )
        self.on_warning: Callable[[str], None] | None = None  # None: Python's warnings
        self.e_corr = self.e_os = self.e_ss = self.e_singles = 0.0
        self.pair_energies: dict[str, Matrix] = {}

    def _active(self, number: int, spin: references.Spin) -> Orbitals:
        """Of one spin, which may have no occupied or no virtual orbitals."""
        inside, outside = self.reference.frozen.active(number, spin.numbers, spin.occupied)
        return Orbitals(
            np.ascontiguousarray(spin.coefficients[:, inside]),
            np.ascontiguousarray(spin.coefficients[:, outside]),
            np.ascontiguousarray(spin.energies[inside]),
            np.ascontiguousarray(spin.energies[outside]),
            spin.numbers[inside],
        )

    # ---- results ----

    @property
    def warnings(self) -> list[str]:
        """What makes the result doubtful, a line each; of orbitals that only `force` takes."""
        spins = [(each.occupied_energies, each.virtual_energies) for each in self.orbitals]
        return doubts.of_orbitals(spins) + doubts.of_energy(self.e_corr, 0.0)

    @property
    def frozen(self) -> Any:
        """Orbitals that are not correlated: how many of the lowest, or a list; see `outcore.chem.frozen.Frozen`."""
        return self.reference.frozen.as_json()

    @property
    def e_scs(self) -> float:
        """Spin-component scaled correlation energy; singles are not scaled."""
        return self.scs[0] * self.e_os + self.scs[1] * self.e_ss + self.e_singles

    @property
    def uncorrelated(self) -> bool:
        """No spin has both occupied and virtual orbitals: there is nothing to compute, and the energy is 0."""
        return not self._cases()

    @property
    def e_tot(self) -> float:
        return float(self._mf.e_tot) + self.e_corr

    def _repr_html_(self) -> str:
        if not self.pair_energies and not self.uncorrelated:
            return html.facts("RI-MP2", [("SCF energy", f"{self._mf.e_tot:.10f} Eh"), ("state", "not run")])
        rows: list[tuple[str, object]] = [
            ("SCF energy", f"{self._mf.e_tot:.10f} Eh"),
            ("opposite spin", f"{self.e_os:.10f} Eh"),
            ("same spin", f"{self.e_ss:.10f} Eh"),
            ("singles", f"{self.e_singles:.10f} Eh" if self.e_singles else None),
            ("correlation energy", f"{self.e_corr:.10f} Eh"),
            ("MP2 energy", f"{self.e_tot:.10f} Eh"),
            ("spin-component scaled", f"{self._mf.e_tot + self.e_scs:.10f} Eh"),
            ("frozen", self.reference.frozen),
        ]
        return html.facts("RI-MP2", [*rows, *(("warning", each) for each in self.warnings)])

    def kernel(self) -> float:
        """The correlation energy (Hartree). Collective."""
        if self.uncorrelated:
            self._take({})
            return self.e_corr
        integrals = self._transform()
        try:
            sums = {case.name: self._pair_sums(case, integrals) for case in self._cases()}
        finally:
            for each in integrals.values():
                each.close()
        self._take(sums)
        doubts.tell(self.world, self.warnings, self.on_warning)
        return self.e_corr

    def _cases(self) -> list[Case]:
        every = (
            [Case("", 0, 0)] if self.restricted else [Case("aa", 0, 0), Case("bb", 1, 1), Case("ab", 0, 1)]
        )
        return [
            case
            for case in every
            if all(self.orbitals[case.first].shape) and all(self.orbitals[case.second].shape)
        ]

    def _take(self, sums: dict[str, Matrix]) -> None:
        if not sums:
            self.pair_energies = {}
        elif self.restricted:
            direct, exchange = sums[""]
            self.pair_energies = {"os": direct, "ss": direct - exchange}
        else:
            self.pair_energies = {
                name: (both[0] if name == "ab" else (both[0] - both[1]) / 2) for name, both in sums.items()
            }
        self.e_os = sum(
            float(each.sum()) for name, each in self.pair_energies.items() if name in ("os", "ab")
        )
        self.e_ss = sum(
            float(each.sum()) for name, each in self.pair_energies.items() if name not in ("os", "ab")
        )
        self.e_singles = self.reference.singles
        self.e_corr = self.e_os + self.e_ss + self.e_singles

    def summary(self) -> str:
        """For people: what was correlated, and where the integrals were."""
        shapes = " and ".join(
            f"{occupied} x {virtual}" for occupied, virtual in (o.shape for o in self.orbitals)
        )
        if self.reference.note:
            shapes += f" {self.reference.note}"
        if self.uncorrelated:
            return f"{shapes} orbitals, {self.reference.frozen}: nothing to correlate, the energy is 0"
        assert self.plan is not None and self._rows is not None
        lost = f", {self.dropped} linearly dependent ones left out" if self.dropped else ""
        return (
            f"{shapes} orbitals, {self.reference.frozen}; {self.auxiliary} {self._rows.kind} "
            f"({self._rows.title}){lost}: {self.integral_bytes / 1e6:.0f} MB "
            f"{'in memory' if self.plan.in_memory else 'on disk'}"
        )

    # ---- integrals ----

    def prepare(self) -> TransformPlan:
        """Auxiliary basis and pairs of functions, or vectors of given integrals, and the plan. Collective."""
        self._rows = rows = self._make_rows()
        free = min(self.world.gather(free_memory(self.world, self._memory_bytes, self.threads)))
        with self.world.together("RI-MP2"):
            self._sizes = TransformSizes(
                rows.functions,
                rows.columns,
                rows.count,
                tuple(each.shape[0] for each in self.orbitals),
                tuple(each.shape[1] for each in self.orbitals),
            )
            self.plan = plan_transform(
                self._sizes, free.bytes, self.world.size, self.threads, self._storage, limit=free.reason
            )
        return self.plan

    def largest_file(self) -> int:
        """Bytes of the largest file of each process, by the plan, which is made. Collective."""
        plan, sizes = self.prepare(), self._sizes
        if plan.in_memory:
            return 0
        pairs = max(i * a for i, a in zip(sizes.occupied, sizes.virtual, strict=True))
        return 8 * sizes.auxiliary * pairs // self.world.size

    def _make_rows(self) -> Rows:
        if self._integrals is None:
            return FittedRows(self.world, self.mol, self._auxbasis, self.threads, self.screening)
        limit = free_memory_of_each(self.world, self._memory_bytes, self.threads).bytes // 2
        return GivenRows(self.world, self.mol, self._integrals, limit)

    def forecast(self) -> Forecast:
        """What it will take, by samples of this process. Not collective, after `prepare`. Raises OutcoreError
        (ENOTSUP) of given integrals."""
        assert self.plan is not None and self._rows is not None
        orbitals = max(self._sizes.occupied)
        scratch = None if self.plan.in_memory else str(self.world.scratch)
        rates = self._rows.rates(orbitals, self.threads, scratch)
        same = [(case.first, case.second) for case in self._cases()]
        return forecast_mp2(self._sizes, self.plan, same, rates, self.world.size, self.threads)

    def _transform(self) -> dict[int, Transformed]:
        """B[P, i, a] of each spin that has occupied orbitals."""
        if self.plan is None:
            self.prepare()
        assert self.plan is not None and self._rows is not None
        rows, sizes = self._rows, self._sizes
        self._settings = {
            **rows.settings,
            "frozen": self.frozen,
            "restricted": self.restricted,
            # Those that were given: what is made of them has other rounding in each run.
            "orbitals": f"{self.reference.given} {self._noncanonical}",
            "orbital energies": [
                float(energy)
                for each in self.orbitals
                for energy in (*each.occupied_energies, *each.virtual_energies)
            ],
        }
        integrals = {
            spin: Transformed(self.world, sizes.auxiliary, each, self.plan, self._kept(f"mp2.{spin}"))
            for spin, each in enumerate(self.orbitals)
            if all(each.shape)
        }
        self.found = {each.stage for each in integrals.values()}
        missing = [each for each in integrals.values() if not each.stage]
        if missing:
            self._three_center(rows, missing)
            for each in missing:
                each.complete(TRANSFORMED)
        if any(each.stage == TRANSFORMED for each in integrals.values()):
            metric = rows.fit(self.world)
            for each in integrals.values():
                if each.stage == TRANSFORMED:
                    each.fit(metric, self.threads)
                    self.waited_seconds += each.waited_seconds
        self.auxiliary = min(each.rows for each in integrals.values())
        self.dropped = sizes.auxiliary - self.auxiliary
        self.integral_bytes = sizes.bytes
        return integrals

    def _kept(self, name: str) -> Stage | None:
        if self._stages is None:
            return None
        problem = Problem(f"{name} of MP2", FORMAT, self._settings, ROUNDED, ("orbital energies",))
        return Stage(self._stages, name, problem)

    def _three_center(self, rows: Rows, integrals: list[Transformed]) -> None:
        """(P|ia), in blocks of rows that processes take as they come to them."""
        assert self.plan is not None
        blocks = rows.blocks(self.plan.batch_rows)
        counter = self.world.counter()
        with self.world.together("three-centre integrals"):
            most = max(each.stop - each.start for _, each in blocks)
            transforms = [_Transform(rows.maker(most), integrals, most) for _ in range(self.threads)]
            each_task(
                counter,
                len(blocks),
                self.threads,
                lambda thread, task: transforms[thread].work(blocks[task]),
                partial(self._tell, "three-centre integrals"),
            )

    # ---- pairs ----

    def _pair_sums(self, case: Case, integrals: dict[int, Transformed]) -> Matrix:
        """[direct, exchange][i][j] of all ordered pairs, at all processes; see `_core.pair_sums`."""
        assert self.plan is not None
        first, second = integrals[case.first], integrals[case.second]
        done = FinishedPairs(
            self.world,
            (first.orbitals.shape[0], second.orbitals.shape[0]),
            self._kept(f"pairs.{case.name or 'all'}"),
            f"{first.identity} {second.identity}",
        )
        sums = done.sums
        tasks = [
            task
            for task in pair_tasks(*sums.shape[1:], self.plan.block, self.plan.tile, case.same)
            if not done.has(*task, lower=case.same)
        ]
        counter = self.world.counter()
        reader = TileReader(first, second, self.plan)
        stream = reader.tiles(self._handed_out(case, tasks, tasks_of(counter, len(tasks))))
        while done.more():
            self._pairs_until(done.deadline(), case, first, second, stream, done)
        self.waited_seconds += reader.waited_seconds
        sums = done.result()
        if case.same:  # j above i is i above j
            lower = np.tril(sums, -1)
            sums = sums + lower.transpose(0, 2, 1)
        return sums

    def _tell(self, part: str, fraction: float) -> None:
        if self.on_progress is not None:
            self.on_progress(part, fraction)

    def _handed_out(self, case: Case, tasks: list[Any], numbers: Iterator[int]) -> Iterator[Any]:
        """Tasks by their numbers; says how far all processes are."""
        part = f"pairs {case.name}".rstrip()
        for number in numbers:
            self._tell(part, number / len(tasks))
            yield tasks[number]
        self._tell(part, 1.0)

    def _pairs_until(
        self,
        deadline: float,
        case: Case,
        first: Transformed,
        second: Transformed,
        stream: Any,
        done: FinishedPairs,
    ) -> None:
        """Works off tasks until a time, or until there are none. Collective."""
        assert self.plan is not None and self._rows is not None
        signs = self._rows.signs
        with self.world.together("pair energies", case.name), offering(self._directory(case)):
            products = [
                np.empty(first.orbitals.shape[1] * self.plan.tile * second.orbitals.shape[1])
                for _ in range(self.threads)
            ]
            done.exhausted = True
            for block, tile in stream:

                def work(thread: int, i: int, block: Tile = block, tile: Tile = tile) -> None:
                    _pairs_of(case, first, second, i, block, tile, products[thread], done.sums, signs)

                team.each(range(block.end - 1, block.begin - 1, -1), self.threads, work)
                done.finish((block.begin, block.end), (tile.begin, tile.end))
                if time.monotonic() > deadline:
                    done.exhausted = False
                    break

    def _directory(self, case: Case) -> Path | None:
        return None if self._stages is None else self._stages.directory / f"mp2.{case.first}"

    def close(self) -> None:
        """Gives back what the processes have in common. Collective."""
        if self._owns_world:
            self.world.close()


class _Transform:
    """Rows over functions into those of molecular orbitals: the part of one thread."""

    def __init__(self, maker: Maker, integrals: list[Transformed], rows: int) -> None:
        self._maker, self._integrals = maker, integrals
        n = len(integrals[0].orbitals.occupied)
        most = max(each.orbitals.shape[0] for each in integrals)
        self._half = np.empty(matrices_at_once(n) * most * n)
        self._whole = [np.empty((rows, *each.orbitals.shape)) for each in integrals]

    def work(self, block: Block) -> None:
        """(P|ia) of the rows of a block."""
        rows, first = block[1], 0
        for matrices in self._maker.matrices(block):
            count, n, _ = matrices.shape
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


def _pairs_of(
    case: Case,
    first: Transformed,
    second: Transformed,
    i: int,
    block: Any,
    tile: Any,
    product: Matrix,
    sums: Matrix,
    signs: Matrix | None,
) -> None:
    """Pairs of orbital i with those of a tile, j <= i if they are of the same kind, into `sums`. signs: see
    `Rows`."""
    end = min(tile.end, i + 1) if case.same else tile.end
    count = end - tile.begin
    if count <= 0:
        return
    a, b = first.orbitals.virtual_energies, second.orbitals.virtual_energies
    gaps = first.orbitals.occupied_energies[i] + second.orbitals.occupied_energies[tile.begin : end]
    v = product[: len(a) * count * len(b)].reshape(len(a), count, len(b))
    left = block.values[:, i - block.begin, :]
    _contract(left if signs is None else signs[:, None] * left, tile.values[:, :count, :], v)
    sums[:, i, tile.begin : end] = np.array(_core.pair_sums(v, gaps, a, b, case.same)).T


def _contract(left: Matrix, right: Matrix, out: Matrix) -> None:
    """out[a, j, b] = sum_P left[P, a] right[P, j, b]; no copies where BLAS can do without."""
    rows, count, columns = right.shape
    if count == 1 or right.strides[1] == columns * right.strides[2]:
        flat = np.lib.stride_tricks.as_strided(
            right, (rows, count * columns), (right.strides[0], right.strides[2])
        )
        np.matmul(left.T, flat, out=out.reshape(len(out), -1))
        return
    for j in range(count):
        out[:, j] = left.T @ right[:, j]


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "RI-MP2", detail=detail)
