"""Coupled cluster with single and double excitations, from three-index integrals.

ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
e_corr, t1, t2 = ccsd.kernel()
e_tot = ccsd.e_tot + ccsd.ccsd_t()
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.base import keywords
from outcore.base.errors import OutcoreError
from outcore.chem import doubts, problem
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import reference as references
from outcore.chem.cc import divergence
from outcore.chem.cc.equations import orbitals
from outcore.chem.cc.equations.doubles import Equations
from outcore.chem.cc.equations.integrals import Integrals
from outcore.chem.cc.equations.open_triples import OpenTriples
from outcore.chem.cc.equations.restricted import RestrictedEquations
from outcore.chem.cc.equations.triples import Triples
from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations
from outcore.chem.cc.excited.states import StateResults
from outcore.chem.cc.iteration import Iteration, Meter, Moved
from outcore.chem.cc.keep import amplitude_file
from outcore.chem.cc.keep.checkpoint import Checkpoint
from outcore.chem.cc.keep.kept import FORMAT, State
from outcore.chem.cc.least import AfterIterations
from outcore.chem.cc.plan import assembly
from outcore.chem.cc.plan import plan as plans
from outcore.chem.cc.plan.room import Room
from outcore.chem.cc.planning import Planning
from outcore.chem.cc.response import LambdaResults
from outcore.chem.cc.results import Results
from outcore.chem.cc.scanner import Scanner
from outcore.chem.cc.settings import LATE, Settings
from outcore.chem.cc.updates import Updates
from outcore.chem.logs import INFO, NOTE
from outcore.chem.method import Method
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri import problem as fitting
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.source import Source
from outcore.job import resources
from outcore.job.processes import JOB
from outcore.job.world import World
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.frozen import Asked

Values = np.ndarray[Any, np.dtype[Any]]


class CCSD(Planning, Results, LambdaResults, StateResults, Method):
    """CCSD, or another `method`, of a converged PySCF RHF, UHF or ROHF object, with density fitting or without, on
    one or several processes; each makes the same object and calls the same methods, which are collective.

    Args:
        mf: the reference; on several processes the orbitals of rank 0 count.
        frozen: number of lowest orbitals that are not correlated, "auto" for the cores of the atoms, or a list of
            any orbitals of `mf` as they are; see `outcore.chem.frozen.of`.
        frozen_virtual: number of the highest virtual orbitals that are not correlated, or a list.
        auxbasis: auxiliary basis of density fitting; None: the one for MP2 that belongs to the orbital basis, also
            where the SCF has another.
        force: take an SCF that has not converged.
        memory, scratch, threads, screening, comm, storage: as for DensityFitting.
        from_amplitudes: HDF5 file of amplitudes to begin with, of this program or of PySCF; see `amplitude_file`.
        checkpoint: directory where amplitudes and finished parts of an iteration and of (T) are kept, and found
            again by a run of the same orbitals and integrals, on any number of processes and in any memory.
        source: three-index functions of these integrals, if the caller has made them already.
        settings: see `Settings`. They are attributes, as in PySCF: `ccsd.max_cycle = 100` is
            `ccsd.set(max_cycle=100)`. `frozen` and `frozen_virtual` are attributes, too. An unknown name is an
            error.

    After `kernel`: `e_hf`, `e_corr`, `e_tot` (Hartree, of CCSD; `ccsd_t` returns what triples add), `converged`,
    `iterations`, `t1` and `t2`, and `delta_mp2` (Hartree): the second-order energy of the orbitals that `fno`
    leaves out, to be added to `e_tot`; `fno_error` estimates the error of the sum. Raises OutcoreError, the same on
    all processes.

    `warnings` has the reasons to doubt a result. `kernel` passes them to `on_warning(line)`, or, without such a
    function, to Python's warnings, as `outcore.chem.doubts.DoubtfulResult`.

    `on_iteration(found)` is called after each iteration, by the thread of the caller; `on_progress(part, fraction)`
    while integrals are made, in iterations and in (T), by any thread, one at a time in each iteration.
    `verbose` and `stdout` are those of `mf` at first; see `outcore.chem.logs.tell`.
    """

    title = "coupled cluster"
    beside = ("frozen", "frozen_virtual")
    fixed = (
        *(n for n in (*(each.name for each in fields(Settings)), *beside) if n not in LATE),
        "checkpoint",
    )

    @keywords.checked(Settings)
    def __init__(
        self,
        mf: Any,
        frozen: Asked = None,
        *,
        frozen_virtual: Asked = None,
        auxbasis: Any = None,
        force: bool = False,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        screening: float | None = None,
        comm: Intracomm | World | None = JOB,
        storage: str = "auto",
        from_amplitudes: str | os.PathLike[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        source: Source | None = None,
        **settings: Any,
    ) -> None:
        self._mf = mf
        chosen = self._resolved(Settings(**settings))
        means: Any = {"memory": memory, "scratch": scratch, "threads": threads, "comm": comm}
        self._open(chosen, **means, checkpoint=checkpoint, told_by=mf)
        self._auxbasis, self._storage = auxbasis, storage
        self._screening = SCREENING if screening is None else screening
        self._given = {"auxbasis": auxbasis is not None, "screening": screening is not None}
        self._as_given: dict[str, Any] = {"auxbasis": auxbasis, "screening": screening, "storage": storage}
        self._asked: dict[str, Asked] = {"frozen": frozen, "frozen_virtual": frozen_virtual}
        self._integrals = given_integrals.of_rank_0(self.world, mf)
        self.reference = references.of_rank_0(
            self.world, mf, "coupled cluster", lambda given: references.as_given(given, force=force), force
        )
        self.restricted = self.reference.restricted
        with self.world.together("coupled cluster", repr(self._asked)):
            self._take_orbitals()
        self.natural = None
        self.delta_mp2 = 0.0
        self.later: Describe | None = None  # the stage after iterations, which plans take account of
        self.equations: RestrictedEquations | UnrestrictedEquations | None = None
        self.iterations: list[Iteration] = []
        self.converged = False
        self.e_corr = self.e_t = 0.0
        self.moved_by_triples: Moved | None = None
        self._start = None if from_amplitudes is None else Path(from_amplitudes)
        self._keep_in(self._kept_in)
        self.found = 0  # the iteration whose amplitudes the checkpoint had; 0: none
        self._room: Room | None = None
        self._source = source
        self._updates: Updates | None = None
        self._why_broken = ""
        self._opened()

    def _resolved(self, settings: Settings) -> Settings:
        """The settings, with `integrals` as the reference has them if the caller chose none."""
        if settings.integrals is not None:
            return settings
        # Not as an attribute: PySCF would import all of itself to look for one that is not there.
        fitted = vars(self._mf).get("with_df") is not None
        return replace(settings, integrals="ri" if fitted else "conventional")

    def _take_orbitals(self) -> None:
        """Selects the correlated orbitals, as the settings say. Raises OutcoreError."""
        settings, open_shell = self.settings, not self.restricted and references.is_restricted_open(self._mf)
        ineffective = [name for name, given in self._given.items() if given and settings.integrals != "ri"]
        if ineffective:
            raise self._refused(f"integrals are {settings.integrals}, for which there is no {ineffective[0]}")
        if settings.orbitals is not None and not open_shell:
            raise self._refused(f"orbitals='{settings.orbitals}' is of ROHF alone")
        if not self.restricted and not self.method_facts.is_for_open_shells:
            raise OutcoreError(
                errno.ENOTSUP,
                self.method_facts.title,
                detail="it is of closed shells; open shells have CCSD",
            )
        if settings.fno and not self.restricted:
            raise OutcoreError(
                errno.ENOTSUP, "frozen natural orbitals", detail="of open shells they are not there yet"
            )
        if settings.integrals == "ri" and self._integrals is not None:
            raise self._refused(f"{given_integrals.UNFITTED}: integrals='ri' is refused, take 'conventional'")
        of_each = [(each.numbers, each.occupied) for each in self.reference.spins]
        self._frozen = frozen_orbitals.of(
            self.mol, self._asked["frozen"], self._asked["frozen_virtual"], of_each
        )
        if settings.orbitals is not None and not self._frozen:
            raise self._refused(f"orbitals='{settings.orbitals}' without frozen orbitals has no effect")
        kind = self._kind
        if self._frozen.has_list and kind == "semicanonical" and open_shell:
            raise self._refused(
                "a list of frozen orbitals names those of the reference, before they are made semicanonical; take "
                "orbitals='standard', or a number of them"
            )
        self.spins = orbitals.take(self.reference, self._frozen, kind, open_shell=open_shell)
        self.orbitals_note = orbitals.note(self.spins, kind, open_shell=open_shell)
        self._every = self.spins
        self.singles: list[Values] = [np.zeros((each.occupied, each.virtual)) for each in self.spins]

    @property
    def _kind(self) -> str:
        """Whether orbitals of ROHF become semicanonical before they are frozen, or after ("standard"). A list of
        frozen orbitals names those of the reference, so the default is "standard" for it."""
        return self.settings.orbitals or ("standard" if self._frozen.has_list else orbitals.KINDS[0])

    # ---- settings as attributes ----

    def run(self, **settings: Any) -> Self:
        """`set`, then `kernel`; as methods of PySCF."""
        self.set(**settings).kernel()
        return self

    def set(self, **settings: Any) -> Self:
        """Changes settings, `frozen` and `frozen_virtual` among them, before integrals and amplitudes are made.
        Settings of iterations alone (`LATE`) may change at any time. Raises OutcoreError (EINVAL)."""
        super().set(**settings)
        if self._broken and not self.converged:
            return self  # broken amplitudes are no result, whatever the limits
        if self.iterations:
            self.converged = self._is_last(self.iterations[-1])
        elif self._checkpoint is not None and self.found:
            self.converged = self._checkpoint.has_converged(self.settings)
        return self

    @property
    def _is_fixed(self) -> bool:
        return self.plan is not None

    def _take_settings(self, settings: dict[str, Any]) -> None:
        is_early = bool(set(settings) - set(LATE))
        before = self.settings, self._asked
        self._asked = {name: settings.pop(name, asked) for name, asked in self._asked.items()}
        try:
            self.settings = self._resolved(replace(self.settings, **settings))
            if is_early:
                self._take_orbitals()
                self._source = None
        except OutcoreError:
            self.settings, self._asked = before
            raise

    def _check_stored_ladder(self) -> None:
        """Raises OutcoreError (EINVAL) if amplitudes are to converge below what stored ladders allow."""
        plan, wanted = self.plan, self.settings.ladder_type
        if plan is None or plan.ladder in ("", "rebuild") or plan.sizes.ladder_type in (wanted, "float64"):
            return
        raise OutcoreError(
            errno.EINVAL,
            self.title,
            detail=f"conv_tol_normt={self.settings.conv_tol_normt:g} needs integrals of ladders in double "
            "precision; those of this object are stored in single precision: make another object",
        )

    def summary(self, plan: plans.Plan | None = None) -> str:
        """For people: the correlated orbitals, the integrals, and the places of arrays. plan: of an estimate; None:
        the plan of this object. Collective."""
        plan = plan or self.prepare()
        assert self._source is not None
        notes = ", ".join(each for each in (self.reference.note, self.orbitals_note) if each)
        note = f" ({notes})" if notes else ""
        of_plan = self.spins if self.plan is plan else self._every
        correlated = orbitals.described(of_plan, plan.spaces[0].block)
        return f"{correlated}; {plan}; {self._frozen}{note}; {self._source.title}"

    # ---- other geometries ----

    def as_scanner(self) -> Scanner:
        """A function of a molecule, which gives its energy (Hartree), with (T) if that has been computed here.
        Collective, as its calls are."""
        return Scanner(self)

    def another(self, mf: Any, **settings: Any) -> CCSD:
        """A CCSD object of another reference, with the processes, threads, memory, callbacks and settings of this
        one. This object must not be used any more. Collective."""
        given: dict[str, Any] = {**self._asked, **self._as_given, **settings}
        made = CCSD(mf, comm=self.world, threads=self.threads, **given)
        made.memory_bytes, made.verbose, made.stdout = self.memory_bytes, self.verbose, self.stdout
        made.on_progress, made.on_warning, made.on_iteration = (
            self.on_progress,
            self.on_warning,
            self.on_iteration,
        )
        made._owns_world, self._owns_world = self._owns_world, False
        made._free_before = self._free_before  # heaps keep memory of earlier geometries
        return made

    def give_back(self) -> None:
        """Gives back all arrays; energies stay."""
        self._give_back()

    # ---- what later steps ask for ----

    def _keep_in(self, directory: Path | None) -> None:
        super()._keep_in(directory)
        self._checkpoint = None if directory is None else Checkpoint(self.world, directory, self._problem)

    @property
    def kept(self) -> Checkpoint | None:
        """The contents of the checkpoint."""
        return self._checkpoint

    @property
    def state(self) -> State:
        """The state of the present amplitudes."""
        return self._state(self._last)

    @property
    def room(self) -> Room | None:
        """The present arrays; None: not made yet, or given back."""
        return self._room

    def replace_room(self, room: Room, equations: RestrictedEquations | UnrestrictedEquations) -> None:
        """Closes the present room: from now on amplitudes are in another."""
        if self._room is not None:
            self._room.close()
        self._room, self.equations = room, equations
        self._why_broken = "memory that iterations need was given back for multipliers"

    def set_up(self) -> RestrictedEquations | UnrestrictedEquations:
        """Makes the integrals, and the amplitudes of second order, of a file or of the checkpoint. Collective."""
        plan = self.prepare()
        assert self._source is not None
        self._why_broken = "integrals and first amplitudes were not finished"
        self.singles = [
            spin.fock[: spin.occupied, spin.occupied :] / spin.gaps(self.settings.level_shift)
            for spin in self.spins
        ]
        self._without_singles()
        if self._checkpoint is not None:
            names = ["T"] if self.restricted else ["Taa", "Tab", "Tbb"]
            self._checkpoint.find([plan.entry(each).layout for each in names], self.singles, self.spins)
        self._check_disks(plan)
        room = self._room = Room(self.world, self.threads, plan, self._source.signs)
        names = assembly.spin_names(len(self.spins))
        tell = self.progress("three-index integrals")
        integrals = [
            Integrals.build(room, spaces, self._source, spin.coefficients, name, tell)
            for spaces, spin, name in zip(plan.spaces, self.spins, names, strict=True)
        ]
        equations = assembly.equations(
            room,
            integrals,
            [spin.fock for spin in self.spins],
            is_stored=plan.ladder != "rebuild",
            progress=self.progress("ladder integrals"),
        )
        updates = self._updates = Updates(room, self.spins, equations, self.settings.diis_space)
        if self.natural is not None:
            updates.put_second_order(0.0)
            of_doubles = equations.energy([np.zeros_like(each) for each in self.singles])
            self.delta_mp2 = self.natural.energy - of_doubles
        if self.natural is None or self.settings.level_shift:
            updates.put_second_order(self.settings.level_shift)
        if self._start is not None:
            amplitude_file.load(
                self._start,
                self.mol,
                self.reference.overlap,
                room,
                self.spins,
                self.singles,
                equations.doubles,
            )
            equations.sync()
            self._without_singles()
        if self._checkpoint is not None:
            self._take_kept(room, equations, self._checkpoint)
        self.equations, self._why_broken = equations, ""
        return equations

    def _without_singles(self) -> None:
        """Singles are 0 where the method has none."""
        if not self.method_facts.has_singles:
            self.singles = [np.zeros_like(each) for each in self.singles]

    def _take_kept(self, room: Room, equations: Equations, checkpoint: Checkpoint) -> None:
        found = checkpoint.take(room, equations, self.spins)
        if found is not None:
            self.singles, self.found, self.e_corr = found.singles, found.iteration, found.energy
            self.converged = checkpoint.has_converged(self.settings)

    def _problem(self, what: str) -> Problem:
        """All settings and orbitals that amplitudes depend on."""
        assert self._source is not None
        settings = {
            **problem.integrals(self.mol),
            **self._source.settings,
            **fitting.of_mean_field(self._mf),
            "frozen": self.frozen,
            "occupied": [each.occupied for each in self.spins],
            "semicanonical": self._kind,
            "natural orbitals above": self.settings.fno,
            "orbitals": self.reference.given,
            "screening": self._screening,
        }
        return Problem(f"{what} of {self.method_facts.title}", FORMAT, settings, fitting.ROUNDED)

    @property
    def _broken(self) -> str:
        """Why iterations cannot go on with this object; empty: they can."""
        if self._updates is not None and self._updates.is_mixed:
            return "an error has left amplitudes of two iterations"
        return self._why_broken

    # ---- iterations ----

    def kernel(self) -> tuple[float, Any, Any]:
        """The correlation energy (Hartree), `t1` and `t2`. Called again before amplitudes have converged, it goes
        on."""
        if self.uncorrelated:
            self.converged = True
            return self.e_corr, self.t1, self.t2
        if self._broken and not self.converged:
            raise self._refused(f"{self._broken}; make a new object")
        equations = self.equations or self.set_up()
        self.log(INFO, "%s: %s", self.method_facts.title, self.summary())
        if not self.converged:
            self._check_stored_ladder()
            self._converge(equations)
        self._log_energy()
        if self.converged and self._checkpoint is not None:
            self._checkpoint.finish()
        doubts.tell(self.world, self.warnings, self.on_warning)
        return self.e_corr, self.t1, self.t2

    def _converge(self, equations: Equations) -> None:
        """Iterations until amplitudes have converged, `max_cycle` at most."""
        assert self._room is not None and self._updates is not None
        if not self._last:
            self.e_corr = equations.energy(self.singles)
        first, last = self._last + 1, self._last + self.settings.max_cycle
        expected = self._room.plan.operations
        for number in range(first, last + 1):
            begin, moved = time.monotonic(), self._room.moved
            meter = self._room.meter = Meter(expected, self.progress(f"iteration {number}"))
            if self._checkpoint is not None:
                self._checkpoint.begin(self._state(number - 1))
            self.singles, norm, changes = self._updates.advance(self.singles, self.settings)
            before, self.e_corr = self.e_corr, equations.energy(self.singles)
            found = Iteration(
                number,
                self.e_corr,
                self.e_corr - before,
                norm,
                time.monotonic() - begin,
                self._room.moved - moved,
            )
            self.iterations.append(found)
            expected = meter.done
            self.log(
                INFO,
                "cycle = %d  E_corr(%s) = %.15g  dE = %.9g  norm of the change = %.6g",
                *(number, self.method_facts.title, found.energy, found.change, found.norm),
            )
            if self.on_iteration is not None:
                self.on_iteration(found)
            self._why_broken = "iterations have diverged"
            change = partial(self._updates.change, self.settings)
            divergence.refuse(self.world, found, self.orbital_names(), changes, equations.doubles, change)
            self._why_broken = ""
            self.converged = self._is_last(found)
            if self._checkpoint is not None:
                doubles = [each.amplitudes for each in equations.doubles]
                is_last = self.converged or number == last
                self._checkpoint.save(self._room, doubles, self._state(number), is_last=is_last)
            if self.converged:
                break

    def _log_energy(self) -> None:
        title = self.method_facts.title
        self.log(INFO if self.converged else NOTE, "%s %sconverged", title, "" if self.converged else "not ")
        self.log(NOTE, "E(%s) = %.15g  E_corr = %.15g", title, self.e_tot, self.e_corr)

    def _is_last(self, found: Iteration) -> bool:
        settings = self.settings
        return abs(found.change) < settings.conv_tol and found.norm < settings.conv_tol_normt

    def _state(self, iteration: int) -> State:
        settings = self.settings
        limits = settings.conv_tol, settings.conv_tol_normt
        return State(self.singles, iteration, self.e_corr, self.converged, *limits)

    def orbital_names(self) -> divergence.Names:
        """Numbers of the correlated orbitals. The placeholder orbital of a spin that has none of a kind is 0."""
        inside, outside = [], []
        for number, (spin, given) in enumerate(zip(self.spins, self.reference.spins, strict=True)):
            occupied, virtual = (
                given.numbers[each] + 1 for each in self._frozen.active(number, given.numbers, given.occupied)
            )
            inside.append([*occupied.tolist(), 0][: spin.occupied])
            outside.append([*virtual.tolist(), 0][: spin.virtual])
        return divergence.Names(inside, outside)

    def ccsd_t(self, *, derivatives: bool = False) -> float:
        """The energy of connected triples by perturbation theory, (T) (Hartree); also sets `e_t`. The orbitals must
        be canonical, the amplitudes converged. Arrays that only iterations need are given back.

        From then on multipliers, densities and gradients are those of CCSD(T). derivatives: the caller will ask for
        them, so multipliers are solved for now; later, (T) would have to be recomputed."""
        if not self.method_facts.has_triples:
            raise OutcoreError(
                errno.ENOTSUP,
                "triple excitations",
                detail=f"(T) is of CCSD, not of {self.method_facts.title}",
            )
        if self.uncorrelated:
            return self.e_t
        if not self.converged:
            raise OutcoreError(
                errno.EINVAL,
                "triple excitations",
                detail="the amplitudes have not converged; run kernel() first",
            )
        assert self.equations is not None and self._room is not None
        if not all(self._room.has(each) for each in self.equations.of_triples):
            raise OutcoreError(
                errno.EINVAL,
                "triple excitations",
                detail="integrals were given back for relaxed densities; run ccsd_t() before these",
            )
        if derivatives:
            self.check_memory(AfterIterations(triples=True, multipliers=True))
        self._multipliers = None  # their arrays go as well
        self.has_triples = True
        if derivatives:
            self.solve_lambda()
            self._log_triples()
            return self.e_t
        stage = None if self._checkpoint is None else self._checkpoint.triples()
        stamp = "" if stage is None else self._state(self._last).stamp
        self._why_broken = "memory that iterations need was given back for (T)"
        planned, block = self._room.keep(*self.equations.of_triples), self.settings.block
        resources.trim_heap()
        # At least the work space of iterations: it is free, though the system may not know. Blocks fill all memory
        # that they get, so pages that heaps keep must not count twice.
        free = max(self._room.plan.work_bytes, min(planned, self._free().bytes))
        triples: Triples | OpenTriples
        if isinstance(self.equations, RestrictedEquations):
            triples = Triples(self.equations, self.singles[0], free, block, stage=stage, stamp=stamp)
        else:
            triples = OpenTriples(self.equations, self.singles, free, block, stage=stage, stamp=stamp)
        self.moved_by_triples, before = None, self._room.moved

        def run() -> list[float]:
            self.e_t = triples.run(self.progress("triple excitations"))
            return triples.shares()

        self._room.kernel(triples.kernel, run, free)
        self.moved_by_triples = self._room.moved - before
        self._log_triples()
        return self.e_t

    def _log_triples(self) -> None:
        total, e_t = self.e_tot + self.e_t, self.e_t
        self.log(NOTE, "E(CCSD(T)) = %.15g  E_corr = %.15g  (T) = %.15g", total, self.e_corr + e_t, e_t)

    @property
    def _last(self) -> int:
        """The number of the iteration that made the present amplitudes; 0: none."""
        return self.iterations[-1].number if self.iterations else self.found

    def _give_back(self) -> None:
        if self._relaxed is not None:
            self._relaxed.close()
            self._relaxed = None
        if self._checkpoint is not None:
            self._checkpoint.close()
        if self._room is not None:
            self._room.close()
            self._room = None
