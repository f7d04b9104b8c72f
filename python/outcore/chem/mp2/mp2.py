"""Second-order perturbation theory with fitted integrals (RI-MP2), of restricted, unrestricted and restricted
open-shell references.

    mf = outcore.chem.ri.RHF(mol, memory="2GB")
    mf.kernel()
    correlation = outcore.chem.mp2.MP2(mf, frozen="auto", memory="2GB").kernel()

Feyereisen, Fitzgerald, Komornicki, Chem. Phys. Lett. 208, 359 (1993); Weigend, Haeser, Theor. Chem. Acc. 97, 331
(1997). Spin-component scaling: Grimme, J. Chem. Phys. 118, 9095 (2003).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore.base import html, keywords
from outcore.chem import doubts, problem
from outcore.chem import reference as references
from outcore.chem.gradients.geometries import GeometryCheckpoint, run_scf
from outcore.chem.logs import INFO, NOTE
from outcore.chem.method import Method
from outcore.chem.mp2.finished_pairs import FinishedPairs
from outcore.chem.mp2.gradient import response
from outcore.chem.mp2.pairs import PairKind, pairs_of
from outcore.chem.mp2.settings import SCS, Settings
from outcore.chem.mp2.tiles import TileReader, TransformedTile
from outcore.chem.problem import ROUNDED
from outcore.chem.ri import bound
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.fitting import SCREENING, DensityFitting
from outcore.chem.ri.forecast import Forecast
from outcore.chem.ri.forecast import mp2 as forecast_mp2
from outcore.chem.ri.plan import (
    TransformPlan,
    TransformSizes,
    check_storage,
    pair_tasks,
    plan_transform,
)
from outcore.chem.ri.problem import FORMAT
from outcore.chem.ri.rows import FittedRows, GivenRows, Rows
from outcore.chem.ri.transformed import TRANSFORMED, ActiveOrbitals, Transformed, transform
from outcore.job.processes import JOB, free_memory
from outcore.job.world import World
from outcore.keep.problem import Problem
from outcore.keep.stages import Stage, Stages, offering
from outcore.parallel import team
from outcore.parallel.tasks import tasks_of

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.frozen import Asked
    from outcore.chem.mp2.objects import Gradients

Matrix = NDArray[np.float64]


class MP2(Method):
    """RI-MP2 of a converged PySCF RHF, UHF or ROHF object, with density fitting or without. Two-electron integrals
    that the object has been given (`mf._eri` of a model, or changed ones) are not fitted: MP2 takes all of them.

    Args:
        mf: the reference; on several processes the orbitals of rank 0 count.
        frozen: number of lowest orbitals that are not correlated (a spin with fewer occupied ones freezes
            those), "auto" for the cores of the atoms, or a list of any orbitals; see `outcore.chem.frozen.of`.
        frozen_virtual: number of the highest virtual orbitals that are not correlated, or a list.
        auxbasis: as `auxiliary.build` takes it; the MP2 set of the orbital basis if not given. Neither this nor
            `screening` has a meaning for given integrals.
        scs: factors of opposite-spin and same-spin parts in `e_scs`.
        noncanonical, force: how to treat ROHF and other orbitals that do not diagonalize the Fock matrix, and an
            SCF that has not converged: see `outcore.chem.reference.of`.
        memory, scratch, threads, screening, comm, storage: as for DensityFitting.
        checkpoint: directory where integrals and finished pairs are kept, and found again by a run with the same
            orbitals, on any number of processes.

    After `kernel`: `e_corr`, its parts `e_os` and `e_ss` (opposite and same spin) and `e_singles` (of ROHF, see
    `noncanonical`), `e_scs`, `e_tot`, and
    `pair_energies`: of closed shells {"os", "ss"}, else {"ab", "aa", "bb"}, matrices over active occupied orbitals
    whose elements add up to the parts. `warnings` has the reasons to doubt a result. `kernel` passes them to
    `on_warning(line)`, or, without such a function, to Python's warnings, as `outcore.chem.doubts.DoubtfulResult`.
    `verbose` and `stdout` are those of `mf` at first; see `outcore.chem.logs.tell`.
    Raises OutcoreError, the same on all processes.
    """

    title = "RI-MP2"
    fixed = ("screening", "checkpoint")
    settings: Settings

    @keywords.checked()
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
        self._given = {
            "frozen": frozen,
            "auxbasis": auxbasis,
            "frozen_virtual": frozen_virtual,
            "scs": scs,
            "memory": memory,
            "threads": threads,
            "screening": screening,
            "storage": storage,
            "noncanonical": noncanonical,
            "force": force,
        }
        self._asked_storage = check_storage(storage)
        self.mol, self._mf = mf.mol, mf
        settings = Settings(scs=scs, screening=SCREENING if screening is None else screening)
        means: Any = {"memory": memory, "scratch": scratch, "threads": threads, "comm": comm}
        self._open(settings, **means, checkpoint=checkpoint, told_by=mf)
        self._auxbasis = auxbasis
        self._integrals = given_integrals.of_rank_0(self.world, mf)
        with self.world.together("RI-MP2", auxbasis is not None, screening is not None):
            if self._integrals is not None and not (auxbasis is None and screening is None):
                word = "screening" if auxbasis is None else "auxbasis"
                raise self._refused(f"{given_integrals.UNFITTED}: {word} has no effect")
        self._keep_in(self._kept_in)
        self._depends: problem.Settings = {}  # settings that the integrals over orbitals depend on
        self._noncanonical = noncanonical
        self.reference = references.of_rank_0(
            self.world,
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
        self.waited_seconds = 0.0  # this process waited so long for integrals from the disk
        self.found: set[str] = set()  # stages that another run had finished, "" for one that was not
        self.e_corr = self.e_os = self.e_ss = self.e_singles = 0.0
        self.pair_energies: dict[str, Matrix] = {}
        self._opened()

    def _keep_in(self, directory: Path | None) -> None:
        super()._keep_in(directory)
        self._stages = None if directory is None else Stages(self.world, directory)
        self._storage = "disk" if directory is not None else self._asked_storage

    def _active(self, number: int, spin: references.Spin) -> ActiveOrbitals:
        """Active orbitals of one spin, which may have no occupied or no virtual ones."""
        inside, outside = self.reference.frozen.active(number, spin.numbers, spin.occupied)
        return ActiveOrbitals(
            np.ascontiguousarray(spin.coefficients[:, inside]),
            np.ascontiguousarray(spin.coefficients[:, outside]),
            np.ascontiguousarray(spin.energies[inside]),
            np.ascontiguousarray(spin.energies[outside]),
            spin.numbers[inside],
        )

    @property
    def _is_fixed(self) -> bool:
        return self._rows is not None

    def _take_settings(self, settings: dict[str, Any]) -> None:
        if "screening" in settings and self._integrals is not None:
            raise self._refused(f"{given_integrals.UNFITTED}: screening has no effect")
        super()._take_settings(settings)

    # ---- results ----

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the result, a line each; for correlated orbitals those that only `force` accepts."""
        every = [(each.energies, each.occupied) for each in self.reference.spins]
        of_orbitals = doubts.of_orbitals([(e[:o], e[o:]) for e, o in every])
        return of_orbitals + doubts.of_energy(self.e_corr, 0.0)

    @property
    def frozen(self) -> Any:
        """Orbitals that are not correlated: how many of the lowest, or a list; see `outcore.chem.frozen.Frozen`."""
        return self.reference.frozen.as_json()

    @property
    def e_scs(self) -> float:
        """Spin-component scaled correlation energy; singles are not scaled."""
        return self.settings.scs[0] * self.e_os + self.settings.scs[1] * self.e_ss + self.e_singles

    @property
    def uncorrelated(self) -> bool:
        """Whether no spin has both occupied and virtual orbitals. Then the energy is 0 without a calculation."""
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
        self.log(INFO, "RI-MP2: %s", self.summary())
        self.log(NOTE, "E(RI-MP2) = %.15g  E_corr = %.15g", self.e_tot, self.e_corr)
        doubts.tell(self.world, self.warnings, self.on_warning)
        return self.e_corr

    def _cases(self) -> list[PairKind]:
        every = (
            [PairKind("", 0, 0)]
            if self.restricted
            else [PairKind("aa", 0, 0), PairKind("bb", 1, 1), PairKind("ab", 0, 1)]
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

    # ---- densities and gradients ----

    def make_rdm1(self, *, ao_repr: bool = False, relaxed: bool = True) -> Any:
        """The one-particle density, for closed shells of both spins together, for open ones of each: over orbitals
        [N][N], or with `ao_repr` over basis functions. relaxed: properties that it gives are derivatives of the
        energy; else it is the density of fixed orbitals, as PySCF's `make_rdm1`. Collective."""
        with response(self) as found:
            densities = found.densities if relaxed else found.unrelaxed
        every = []
        for spin, density in zip(self.reference.spins, densities.spins, strict=True):
            over = density.total
            if not ao_repr:
                inverse = spin.coefficients.T @ self.reference.overlap
                over = np.empty((len(spin.numbers),) * 2)
                over[np.ix_(spin.numbers, spin.numbers)] = inverse @ density.total @ inverse.T
            every.append(densities.weight * over)
        return every[0] if len(every) == 1 else np.stack(every)

    def nuc_grad_method(self) -> Gradients:
        """Nuclear gradients, as PySCF's: `.kernel()`, `.as_scanner()`, `.optimizer()`."""
        from outcore.chem.mp2.objects import Gradients

        return Gradients(self)

    def as_scanner(self) -> Any:
        """A function of a molecule, which gives its energy (Hartree). Collective, as its calls are."""
        return _Scanner(self)

    @property
    def converged(self) -> bool:
        """Whether the SCF has converged: MP2 has nothing to converge."""
        return bool(self._mf.converged)

    @property
    def scf_object(self) -> Any:
        return self._mf

    @property
    def storage(self) -> str:
        return self._storage

    @property
    def given_integrals(self) -> bool:
        """Whether integrals are not fitted, but those that the mean field was given."""
        return self._integrals is not None

    @property
    def given_auxbasis(self) -> Any:
        return self._auxbasis

    def sizes(self, rows: Rows) -> TransformSizes:
        """Sizes of the integrals over orbitals."""
        return TransformSizes(
            rows.functions,
            rows.columns,
            rows.count,
            tuple(each.shape[0] for each in self.orbitals),
            tuple(each.shape[1] for each in self.orbitals),
        )

    def fitted_integrals(self, plan: TransformPlan) -> dict[int, Transformed]:
        """B[P, i, a] of each spin that has both kinds of orbitals, as `plan` has them. The caller closes them.
        Collective."""
        self.prepare()
        self.plan = plan
        return self._transform()

    def summary(self) -> str:
        """For people: the correlated orbitals, and the place of the integrals."""
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
        """Makes the auxiliary basis and pairs of functions, or vectors of given integrals, and the plan.
        Collective."""
        self._rows = rows = self._make_rows()
        free = min(self.world.gather(free_memory(self.world, self.memory_bytes, self.threads)))
        self._free_bytes = free.bytes * self.world.size
        with self.world.together("RI-MP2"):
            self._sizes = self.sizes(rows)
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
            return FittedRows(self.world, self.mol, self._auxbasis, self.threads, self.settings.screening)
        limit = self._free().bytes // 2
        return GivenRows(self.world, self.mol, self._integrals, limit)

    def forecast(self) -> Forecast:
        """Predicted time, traffic and memory, by samples of this process. Not collective; called after `prepare`.
        Raises OutcoreError (ENOTSUP) for given integrals."""
        assert self.plan is not None and self._rows is not None
        orbitals = max(self._sizes.occupied)
        scratch = None if self.plan.in_memory else str(self.world.scratch)
        rates = self._rows.rates(orbitals, self.threads, scratch)
        same = [(case.first, case.second) for case in self._cases()]
        return forecast_mp2(self._sizes, self.plan, same, rates, self.world.size, self.threads)

    def least_bytes(self) -> float:
        """Bytes that all processes together write and read at least, in this memory; 0 if integrals are in memory,
        or were found."""
        if self.plan is None or self.plan.in_memory or self.found - {""}:
            return 0.0
        kinds = [(case.first, case.second) for case in self._cases()]
        return bound.pairs(replace(self._sizes, auxiliary=self.auxiliary), kinds, self._free_bytes)

    def _transform(self) -> dict[int, Transformed]:
        """B[P, i, a] of each spin that has occupied orbitals."""
        if self.plan is None:
            self.prepare()
        assert self.plan is not None and self._rows is not None
        rows, sizes = self._rows, self._sizes
        self._depends = {
            **rows.settings,
            "frozen": self.frozen,
            "restricted": self.restricted,
            # The given orbitals: orbitals that are made from them differ by rounding in each run.
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
            transform(
                self.world,
                rows,
                missing,
                self.plan.batch_rows,
                self.threads,
                self.progress("three-centre integrals"),
            )
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
        kept_as = Problem(f"{name} of MP2", FORMAT, self._depends, ROUNDED, ("orbital energies",))
        return Stage(self._stages, name, kept_as)

    # ---- pairs ----

    def _pair_sums(self, case: PairKind, integrals: dict[int, Transformed]) -> Matrix:
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

    def _handed_out(self, case: PairKind, tasks: list[Any], numbers: Iterator[int]) -> Iterator[Any]:
        """Tasks by their numbers; reports the progress of all processes."""
        tell = self.progress(f"pairs {case.name}".rstrip())
        for number in numbers:
            tell(number / len(tasks))
            yield tasks[number]
        tell(1.0)

    def _pairs_until(
        self,
        deadline: float,
        case: PairKind,
        first: Transformed,
        second: Transformed,
        stream: Any,
        done: FinishedPairs,
    ) -> None:
        """Does tasks until `deadline`, or until none is left. Collective."""
        assert self.plan is not None and self._rows is not None
        signs = self._rows.signs
        with self.world.together("pair energies", case.name), offering(self._directory(case)):
            products = [
                np.empty(first.orbitals.shape[1] * self.plan.tile * second.orbitals.shape[1])
                for _ in range(self.threads)
            ]
            done.exhausted = True
            for block, tile in stream:

                def work(
                    thread: int, i: int, block: TransformedTile = block, tile: TransformedTile = tile
                ) -> None:
                    pairs_of(case, first, second, i, block, tile, products[thread], done.sums, signs)

                team.each(range(block.end - 1, block.begin - 1, -1), self.threads, work)
                done.finish((block.begin, block.end), (tile.begin, tile.end))
                if time.monotonic() > deadline:
                    done.exhausted = False
                    break

    def _directory(self, case: PairKind) -> Path | None:
        return None if self._stages is None else self._stages.directory / f"mp2.{case.first}"


class _Scanner:
    """Energies of one MP2 after another, with the settings of the first; its attributes are those of the newest. If
    the first has a checkpoint, each geometry has its own in a directory below that, see `GeometryCheckpoint`."""

    def __init__(self, mp2: MP2) -> None:
        self._mp2, self._scf = mp2, mp2.scf_object.as_scanner()
        kept = mp2.checkpoint
        self._places = None if kept is None else GeometryCheckpoint(mp2.world, kept)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mp2, name)

    def __call__(self, mol: Any) -> float:
        old = self._mp2
        if not hasattr(mol, "atom_coords"):
            mol = old.scf_object.mol.set_geom_(mol, inplace=False)
        place = None if self._places is None else self._places.at(mol)
        run_scf(self._scf, mol, old.world, place)
        fitting = vars(self._scf).get("with_df")
        if isinstance(fitting, DensityFitting):  # its integrals are recomputed where they are needed
            fitting.close_integrals()
        self._mp2 = MP2(self._scf, comm=old.world, checkpoint=place, **old._given)
        self._mp2.memory_bytes, self._mp2._owns_world = old.memory_bytes, old._owns_world
        self._mp2.settings = old.settings
        self._mp2.on_progress, self._mp2.on_warning = old.on_progress, old.on_warning
        self._mp2.kernel()
        return self._mp2.e_tot

    def remove_checkpoint(self) -> None:
        """Removes the checkpoint of the last geometry. Collective."""
        if self._places is not None:
            self._places.remove()
