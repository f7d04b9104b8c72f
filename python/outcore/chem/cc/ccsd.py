"""Coupled cluster with single and double excitations, from three-index integrals.

ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
e_corr, t1, t2 = ccsd.kernel()
e_tot = ccsd.e_tot + ccsd.ccsd_t()
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import doubts, problem
from outcore.chem import frozen as frozen_orbitals
from outcore.chem import reference as references
from outcore.chem.cc import amplitude_file, divergence, fno, forecast, methods, orbitals
from outcore.chem.cc import plan as plans
from outcore.chem.cc.checkpoint import Checkpoint
from outcore.chem.cc.doubles import Equations
from outcore.chem.cc.integrals import Integrals
from outcore.chem.cc.iteration import Iteration, Meter
from outcore.chem.cc.kept import FORMAT, State
from outcore.chem.cc.ladder import Ladder
from outcore.chem.cc.open_triples import OpenTriples
from outcore.chem.cc.opposite_ladder import OppositeLadder
from outcore.chem.cc.restricted import RestrictedEquations
from outcore.chem.cc.results import Results
from outcore.chem.cc.room import Room
from outcore.chem.cc.settings import LATE, Settings
from outcore.chem.cc.triples import Triples
from outcore.chem.cc.unrestricted import UnrestrictedEquations
from outcore.chem.cc.updates import Updates
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.cholesky import Cholesky
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.source import Fitted, Source
from outcore.job import launch, resources
from outcore.job.processes import JOB, free_memory_of_each, make_world
from outcore.job.resources import Allowance, parse_bytes
from outcore.job.scratch import bytes_here, check_room, free_bytes_of_all
from outcore.job.world import World
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.chem.frozen import Asked

Values = np.ndarray[Any, np.dtype[Any]]


class CCSD(Results):
    """CCSD, or another `method`, of a converged PySCF RHF, UHF or ROHF object, with density fitting or without, on
    one or several processes; each makes the same object and calls the same methods, which are collective.

    Args:
        mf: the reference; on several processes the orbitals of rank 0 count.
        frozen: number of lowest orbitals that are not correlated, "auto" for the cores of the atoms, or a list of
            any orbitals of `mf` as they are; see `outcore.chem.frozen.of`.
        frozen_virtual: number of the highest virtual orbitals that are not correlated, or a list.
        auxbasis: of density fitting; None: that of MP2 for the basis, also where the SCF has another.
        force: take an SCF that has not converged.
        memory, scratch, threads, screening, comm, storage: as for DensityFitting.
        from_amplitudes: HDF5 file of amplitudes to begin with, of this program or of PySCF; see `amplitude_file`.
        checkpoint: directory where amplitudes and finished parts of an iteration and of (T) are kept, and found
            again by a run of the same orbitals and integrals, on any number of processes and in any memory.
        source: three-index functions of these integrals that are there already.
        settings: see `Settings`. They are attributes, as in PySCF: `ccsd.max_cycle = 100` is
            `ccsd.set(max_cycle=100)`, and so it is with `frozen` and `frozen_virtual`. A name that is not there is
            an error.

    After `kernel`: `e_hf`, `e_corr`, `e_tot` (Hartree, of CCSD; `ccsd_t` returns what triples add), `converged`,
    `iterations`, `t1` and `t2`, and `delta_mp2` (Hartree, to be added: what orbitals that `fno` has left out
    contribute in second order; `fno_error`: by how much it is wrong then). Raises OutcoreError, the same on all
    processes.

    What makes a result doubtful is in `warnings`; `kernel` gives it to `on_warning(line)`, or without one to
    Python's warnings, as `outcore.chem.doubts.DoubtfulResult`.

    `on_iteration(found)` is called after each iteration, by the thread of the caller; `on_progress(part, fraction)`
    while integrals are made, in iterations and in (T), by any thread, one at a time in each iteration.
    """

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
        self.settings = self._resolved(Settings(**settings))
        self.threads = threads or launch.threads_per_rank()
        self._auxbasis, self._storage = auxbasis, storage
        self._screening = SCREENING if screening is None else screening
        self._given = {"auxbasis": auxbasis is not None, "screening": screening is not None}
        self._asked: dict[str, Asked] = {"frozen": frozen, "frozen_virtual": frozen_virtual}
        self._memory_bytes = None if memory is None else parse_bytes(memory)
        self._owns_world = not isinstance(comm, World)
        if not isinstance(comm, World):
            comm = make_world(comm, self._memory_bytes, scratch)
        self.world = comm
        self._integrals = given_integrals.of_rank_0(comm, mf)
        self.reference = references.of_rank_0(
            comm, mf, "coupled cluster", lambda given: references.as_given(given, force=force), force
        )
        self.restricted = self.reference.restricted
        with self.world.together("coupled cluster", repr(self._asked)):
            self._take_orbitals()
        self.natural: fno.NaturalOrbitals | None = None
        self.delta_mp2 = 0.0
        self.plan: plans.Plan | None = None
        self.equations: RestrictedEquations | UnrestrictedEquations | None = None
        self.on_iteration: Callable[[Iteration], None] | None = None
        self.on_progress: Callable[[str, float], None] | None = None
        self.on_warning: Callable[[str], None] | None = None
        self.iterations: list[Iteration] = []
        self.converged = False
        self.e_corr = self.e_t = 0.0
        self._start = None if from_amplitudes is None else Path(from_amplitudes)
        self._checkpoint = (
            None if checkpoint is None else Checkpoint(self.world, Path(checkpoint), self._problem)
        )
        self.found = 0  # the iteration whose amplitudes another run has kept; 0: none
        self._room: Room | None = None
        self._source = source
        self._updates: Updates | None = None
        self._why_broken = ""
        self._is_made = True

    def _resolved(self, settings: Settings) -> Settings:
        """With integrals as the reference has them, where nothing was said."""
        if settings.integrals is not None:
            return settings
        # Not as an attribute: PySCF would import all of itself to look for one that is not there.
        fitted = vars(self._mf).get("with_df") is not None
        return replace(settings, integrals="ri" if fitted else "conventional")

    def _take_orbitals(self) -> None:
        """Those that are correlated, as the settings say. Raises OutcoreError."""
        settings, open_shell = self.settings, not self.restricted and references.is_restricted_open(self._mf)
        ineffective = [name for name, given in self._given.items() if given and settings.integrals != "ri"]
        if ineffective:
            raise _refused(f"integrals are {settings.integrals}, for which there is no {ineffective[0]}")
        if settings.orbitals is not None and not open_shell:
            raise _refused(f"orbitals='{settings.orbitals}' is of ROHF alone")
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
            raise _refused(f"{given_integrals.UNFITTED}: integrals='ri' is refused, take 'conventional'")
        of_each = [(each.numbers, each.occupied) for each in self.reference.spins]
        self._frozen = frozen_orbitals.of(
            self.mol, self._asked["frozen"], self._asked["frozen_virtual"], of_each
        )
        if settings.orbitals is not None and not self._frozen:
            raise _refused(f"orbitals='{settings.orbitals}' without frozen orbitals has no effect")
        kind = self._kind
        if self._frozen.has_list and kind == "semicanonical" and open_shell:
            raise _refused(
                "a list of frozen orbitals names those of the reference, before they are made semicanonical; take "
                "orbitals='standard', or a number of them"
            )
        self.spins = orbitals.take(self.reference, self._frozen, kind, open_shell=open_shell)
        self.orbitals_note = orbitals.note(self.spins, kind, open_shell=open_shell)
        self._every = self.spins
        self.singles: list[Values] = [np.zeros((each.occupied, each.virtual)) for each in self.spins]

    @property
    def _kind(self) -> str:
        """When orbitals of ROHF are made semicanonical: lists of frozen ones are of orbitals before that."""
        return self.settings.orbitals or ("standard" if self._frozen.has_list else orbitals.KINDS[0])

    # ---- settings as attributes ----

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name in _SETTABLE:
                self.set(**{name: value})
            elif "_is_made" in vars(self) and not (
                name[0] == "_" or name in vars(self) or hasattr(type(self), name)
            ):
                raise AttributeError(
                    f"CCSD of Outcore has no {name}; its settings are {', '.join(_SETTABLE)}"
                )
            else:
                super().__setattr__(name, value)

        def __getattr__(self, name: str) -> Any:
            if name in _SETTABLE and "settings" in vars(self):
                return getattr(self.settings, name)
            raise AttributeError(f"CCSD of Outcore has no {name}")

    def run(self, **settings: Any) -> Self:
        """`set`, then `kernel`; as methods of PySCF."""
        self.set(**settings).kernel()
        return self

    def set(self, **settings: Any) -> Self:
        """Other settings, `frozen` and `frozen_virtual` among them, before integrals and amplitudes are made; those
        of iterations alone at any time. Raises OutcoreError (EINVAL)."""
        with self.world.together("coupled cluster", sorted((k, repr(v)) for k, v in settings.items())):
            unknown = sorted(set(settings) - set(_SETTABLE))
            if unknown:
                raise _refused(f"there is no setting {', '.join(unknown)}")
            early = sorted(set(settings) - set(LATE))
            if self.plan is not None and early:
                raise _refused(
                    f"integrals are made already; make a new object for another {', '.join(early)}"
                )
            before = self.settings, self._asked
            self._asked = {name: settings.pop(name, asked) for name, asked in self._asked.items()}
            try:
                self.settings = self._resolved(replace(self.settings, **settings))
                if early:
                    self._take_orbitals()
                    self._source = None
            except OutcoreError:
                self.settings, self._asked = before
                raise
        if self._broken and not self.converged:
            return self  # no limits make a result of what there is
        if self.iterations:
            self.converged = self._is_last(self.iterations[-1])
        elif self._checkpoint is not None and self.found:
            self.converged = self._checkpoint.has_converged(self.settings)
        return self

    def summary(self, plan: plans.Plan | None = None) -> str:
        """For people: what is correlated, with which integrals, and where things are; `plan`: of an estimate.
        Collective."""
        plan = plan or self.prepare()
        assert self._source is not None
        notes = ", ".join(each for each in (self.reference.note, self.orbitals_note) if each)
        note = f" ({notes})" if notes else ""
        functions = f"{self._source.rank} three-index functions ({self._source.title})"
        of_plan = self.spins if self.plan is plan else self._every
        correlated = orbitals.described(of_plan, plan.spaces[0].block)
        return f"{correlated}; {plan}; {self._frozen}{note}; {functions}"

    # ---- preparation ----

    def prepare(self) -> plans.Plan:
        """Three-index functions, and the plan. Collective."""
        if self.plan is not None:
            return self.plan
        self._source = self._source or self._make_source()
        self.spins = self._every  # this may have failed before
        if self.settings.fno:
            self._truncate(self._source)
        if self._checkpoint is not None:
            self.spins = self._checkpoint.orbitals(self.reference.overlap, self.spins)
        self.plan = self._make_plan(self._source)
        return self.plan

    def estimate(self) -> plans.Plan:
        """A plan for which nothing is computed but three-index functions: of all virtual orbitals, as nobody knows
        yet how many natural ones `fno` leaves. Collective."""
        self._source = self._source or self._make_source()
        return self._make_plan(self._source)

    def _make_plan(self, source: Source, only: Collection[str] | None = None) -> plans.Plan:
        free, disk = self._free(), free_bytes_of_all(self.world, self.world.scratch)
        rates = None
        if only is None:
            pairs = max(each.occupied for each in self.spins) ** 2 // 2
            rates = forecast.Rates.measure(self.world, self.threads, pairs)
        with self.world.together("coupled cluster"):
            sizes = plans.Sizes(
                len(self.reference.overlap),
                source.rank,
                tuple(each.occupied for each in self.spins),
                tuple(each.virtual for each in self.spins),
                self.settings.diis_space,
                tuple(source.cuts),
                self.settings.method,
            )
            return plans.make_plan(
                sizes,
                free.bytes,
                self.world.size,
                self.threads,
                storage=self._storage,
                ladder=self.settings.ladder,
                block=self.settings.block,
                limit=free.reason,
                budget_bytes=self._memory_bytes if free.reason == "--memory" else None,
                only=only,
                rates=rates,
                disk_bytes=disk,
            )

    def _truncate(self, source: Source) -> None:
        """Virtual orbitals become natural ones, of which some are left out."""
        plan = self._make_plan(source, fno.ARRAYS)
        room = Room(self.world, self.threads, plan, source.signs)
        found = fno.truncate(room, plan.spaces[0], source, self.spins[0], self.settings.fno)
        room.close()
        self.natural, self.spins = found, [found.active]

    def _free(self, *, strict: bool = False) -> Allowance:
        return free_memory_of_each(self.world, self._memory_bytes, self.threads, strict=strict)

    def _make_source(self) -> Source:
        settings = self.settings
        if settings.integrals == "ri":
            return Fitted(self.world, self.mol, self._auxbasis, self.threads, self._screening)
        limit = self._free().bytes // 2
        if self._integrals is not None:
            return given_integrals.vectors(self.world, self._integrals, settings.decomposed_to, limit)
        return Cholesky(self.world, self.mol, settings.decomposed_to, limit)

    def _tell(self, part: str) -> Callable[[float], None]:
        def tell(fraction: float) -> None:
            if self.on_progress is not None:
                self.on_progress(part, fraction)

        return tell

    def set_up(self) -> RestrictedEquations | UnrestrictedEquations:
        """Integrals, and the amplitudes of second order. Collective."""
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
        names = [""] if self.restricted else ["a", "b"]
        tell = self._tell("three-index integrals")
        integrals = [
            Integrals.build(room, spaces, self._source, spin.coefficients, name, tell)
            for spaces, spin, name in zip(plan.spaces, self.spins, names, strict=True)
        ]
        equations = self._equations(room, plan, integrals, names)
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

    def _check_disks(self, plan: plans.Plan) -> None:
        scratch = self.world.scratch
        with self.world.together("look at the scratch disk"):
            needs = [(Path(scratch), bytes_here(self.world, scratch, plan.disk_bytes))]
        # Of amplitudes that have converged, only energies of (T) are kept from now on.
        if self._checkpoint is not None and not self._checkpoint.has_converged(self.settings):
            needs.append((self._checkpoint.directory, self._checkpoint.room_bytes(plan.kept_bytes)))
        check_room(self.world, "coupled cluster", needs, largest_file=self.largest_file(plan))

    def largest_file(self, plan: plans.Plan) -> int:
        """Bytes of the largest file of each process."""
        files = [entry.bytes // self.world.size for entry in plan.arrays.values() if not entry.in_memory]
        return max(files, default=0)

    def _equations(
        self, room: Room, plan: plans.Plan, integrals: list[Integrals], names: list[str]
    ) -> RestrictedEquations | UnrestrictedEquations:
        stored, tell = plan.ladder != "rebuild", self._tell("ladder integrals")
        signs = (0, 1) if self.restricted else (1,)
        ladders = [
            Ladder(room, spaces, each, is_stored=stored, name=name, signs=signs)
            for spaces, each, name in zip(plan.spaces, integrals, names, strict=True)
        ]
        for each in ladders:
            each.build(tell)
        focks = [spin.fock for spin in self.spins]
        if self.restricted:
            made = methods.equations(self.settings.method)
            return made(room, plan.spaces[0], integrals[0], ladders[0], focks[0])
        opposite = OppositeLadder(room, plan.spaces, integrals, is_stored=stored)
        opposite.build(tell)
        return UnrestrictedEquations(room, plan.spaces, integrals, ladders, opposite, focks)

    def _take_kept(self, room: Room, equations: Equations, checkpoint: Checkpoint) -> None:
        found = checkpoint.take(room, equations, self.spins)
        if found is not None:
            self.singles, self.found, self.e_corr = found.singles, found.iteration, found.energy
            self.converged = checkpoint.has_converged(self.settings)

    def _problem(self, what: str) -> Problem:
        """All that amplitudes depend on."""
        assert self._source is not None
        settings = {
            **problem.integrals(self.mol),
            **self._source.settings,
            "frozen": self.frozen,
            "occupied": [each.occupied for each in self.spins],
            "semicanonical": self._kind,
            "natural orbitals above": self.settings.fno,
            "orbitals": self.reference.given,
            "screening": self._screening,
        }
        return Problem(f"{what} of {self.method_facts.title}", FORMAT, settings, problem.ROUNDED)

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
            raise _refused(f"{self._broken}; make a new object")
        equations = self.equations or self.set_up()
        if not self.converged:
            self._converge(equations)
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
        expected = forecast.operations(self._room.plan.sizes)
        for number in range(first, last + 1):
            begin, moved = time.monotonic(), self._room.moved
            meter = self._room.meter = Meter(expected, self._tell(f"iteration {number}"))
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
            if self.on_iteration is not None:
                self.on_iteration(found)
            self._why_broken = "iterations have diverged"
            change = partial(self._updates.change, self.settings)
            divergence.refuse(self.world, found, self._names(), changes, equations.doubles, change)
            self._why_broken = ""
            self.converged = self._is_last(found)
            if self._checkpoint is not None:
                doubles = [each.amplitudes for each in equations.doubles]
                is_last = self.converged or number == last
                self._checkpoint.save(self._room, doubles, self._state(number), is_last=is_last)
            if self.converged:
                break

    def _is_last(self, found: Iteration) -> bool:
        settings = self.settings
        return abs(found.change) < settings.conv_tol and found.norm < settings.conv_tol_normt

    def _state(self, iteration: int) -> State:
        settings = self.settings
        limits = settings.conv_tol, settings.conv_tol_normt
        return State(self.singles, iteration, self.e_corr, self.converged, *limits)

    def _names(self) -> divergence.Names:
        """Orbitals that are made for a spin that has none of a kind are 0."""
        inside, outside = [], []
        for number, (spin, given) in enumerate(zip(self.spins, self.reference.spins, strict=True)):
            occupied, virtual = (
                given.numbers[each] + 1 for each in self._frozen.active(number, given.numbers, given.occupied)
            )
            inside.append([*occupied.tolist(), 0][: spin.occupied])
            outside.append([*virtual.tolist(), 0][: spin.virtual])
        return divergence.Names(inside, outside)

    def ccsd_t(self) -> float:
        """The energy of connected triples by perturbation theory, (T) (Hartree); `e_t` from then on. The orbitals
        must be canonical, the amplitudes converged. What only iterations need is given back for it."""
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
        assert self.equations is not None and self.plan is not None and self._room is not None
        stage = None if self._checkpoint is None else self._checkpoint.triples()
        stamp = "" if stage is None else self._state(self._last).stamp
        self._why_broken = "what iterations need was given back for (T)"
        planned, block = self._room.keep(*self.equations.of_triples), self.settings.block
        resources.trim_heap()
        # At least what iterations worked with: that is free, though the system may not know. Blocks fill what they
        # are given, so pages that heaps keep are not given twice.
        free = max(self.plan.work_bytes, min(planned, self._free(strict=True).bytes))
        triples: Triples | OpenTriples
        if isinstance(self.equations, RestrictedEquations):
            triples = Triples(self.equations, self.singles[0], free, block, stage=stage, stamp=stamp)
        else:
            triples = OpenTriples(self.equations, self.singles, free, block, stage=stage, stamp=stamp)
        self.e_t = triples.run(self._tell("triple excitations"))
        return self.e_t

    @property
    def _last(self) -> int:
        """The number of the iteration that the amplitudes are of."""
        return self.iterations[-1].number if self.iterations else self.found

    def close(self) -> None:
        """Gives back what the processes have in common. Collective."""
        if self._checkpoint is not None:
            self._checkpoint.close()
        if self._room is not None:
            self._room.close()
            self._room = None
        if self._owns_world:
            self.world.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self.close()


_SETTABLE = (*(each.name for each in fields(Settings)), "frozen", "frozen_virtual")


def _refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, "coupled cluster", detail=detail)
