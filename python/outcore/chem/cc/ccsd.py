"""Coupled cluster with single and double excitations, from three-index integrals.

ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
ccsd.kernel()
ccsd.e_corr, ccsd.t1, ccsd.t2
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.chem import reference as references
from outcore.chem.cc import amplitude_file, divergence, fno, forecast, orbitals
from outcore.chem.cc import plan as plans
from outcore.chem.cc.diis import Diis
from outcore.chem.cc.doubles import Doubles, Equations
from outcore.chem.cc.integrals import Integrals
from outcore.chem.cc.iteration import Iteration
from outcore.chem.cc.kept import AMPLITUDES, FORMAT, TRIPLES, KeptAmplitudes, State
from outcore.chem.cc.kept_steps import STEPS, KeptSteps
from outcore.chem.cc.ladder import Ladder
from outcore.chem.cc.open_triples import OpenTriples
from outcore.chem.cc.opposite_ladder import OppositeLadder
from outcore.chem.cc.restricted import RestrictedEquations
from outcore.chem.cc.room import Room
from outcore.chem.cc.settings import Settings
from outcore.chem.cc.triples import Triples
from outcore.chem.cc.unrestricted import UnrestrictedEquations
from outcore.chem.frozen import count_frozen
from outcore.chem.ri.cholesky import EXACT, Cholesky
from outcore.chem.ri.fitting import SCREENING
from outcore.chem.ri.source import Fitted, Source
from outcore.job import launch, resources
from outcore.job.processes import JOB, free_memory_of_each, make_world
from outcore.job.resources import Allowance, parse_bytes
from outcore.job.scratch import allocated_bytes, check_room
from outcore.job.world import World
from outcore.keep.problem import Problem
from outcore.keep.stages import Stage, Stages

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class CCSD:
    """CCSD of a converged PySCF RHF, UHF or ROHF object, with density fitting or without, on one or several
    processes; each makes the same object and calls the same methods, which are collective.

    Args:
        mf: the reference; on several processes the orbitals of rank 0 count.
        frozen: number of lowest orbitals that are not correlated, "auto" for the cores of the atoms, or a list of
            the lowest ones, counted from 0.
        auxbasis: of density fitting, as for MP2.
        force: take an SCF that has not converged.
        memory, scratch, threads, screening, comm, storage: as for DensityFitting.
        from_amplitudes: HDF5 file of amplitudes to begin with, of this program or of PySCF; see `amplitude_file`.
        checkpoint: directory where amplitudes and finished parts of an iteration and of (T) are kept, and found
            again by a run of the same orbitals and integrals, on any number of processes and in any memory.
        settings: see `Settings`.

    After `kernel`: `e_corr`, `e_tot` (Hartree, of CCSD; `ccsd_t` returns what triples add), `converged`,
    `iterations`, `t1` and `t2` (`amplitudes` has them as PySCF does), and `delta_mp2` (Hartree, to be added: what
    orbitals that `fno` has left out contribute in second order; `fno_error`: by how much it is wrong then). Raises
    OutcoreError, the same on all processes.
    """

    def __init__(
        self,
        mf: Any,
        frozen: int | str | Sequence[int] | None = None,
        auxbasis: Any = None,
        *,
        force: bool = False,
        memory: int | str | None = None,
        scratch: str | None = None,
        threads: int | None = None,
        screening: float = SCREENING,
        comm: Intracomm | World | None = JOB,
        storage: str = "auto",
        from_amplitudes: str | os.PathLike[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        self.settings = Settings(**settings)
        self.mol, self._mf = mf.mol, mf
        self.threads = threads or launch.threads_per_rank()
        self._auxbasis, self._screening, self._storage = auxbasis, screening, storage
        self._memory_bytes = None if memory is None else parse_bytes(memory)
        self._owns_world = not isinstance(comm, World)
        if not isinstance(comm, World):
            comm = make_world(comm, self._memory_bytes, scratch)
        self.world = comm
        self.reference = references.of_rank_0(
            comm, mf, "coupled cluster", lambda given: references.as_given(given, force=force), force
        )
        self.restricted = self.reference.restricted
        with self.world.together("coupled cluster", frozen):
            self.frozen = count_frozen(self.mol, frozen, max(each.occupied for each in self.reference.spins))
            if self.settings.fno and not self.restricted:
                raise OutcoreError(
                    errno.ENOTSUP, "frozen natural orbitals", detail="of open shells they are not there yet"
                )
            open_shell, kind = (
                not self.restricted and references.is_restricted_open(mf),
                self.settings.orbitals,
            )
            self.spins = orbitals.take(self.reference, self.frozen, kind, open_shell=open_shell)
            self.orbitals_note = orbitals.note(self.spins, kind, open_shell=open_shell)
        self.natural: fno.NaturalOrbitals | None = None
        self.delta_mp2 = 0.0
        self.plan: plans.Plan | None = None
        self.equations: RestrictedEquations | UnrestrictedEquations | None = None
        self.on_iteration: Callable[[Iteration], None] | None = None
        self.on_progress: Callable[[str, float], None] | None = None
        self.iterations: list[Iteration] = []
        self.converged = False
        self.e_corr = self.e_t = 0.0
        self.singles: list[Values] = [np.zeros((each.occupied, each.virtual)) for each in self.spins]
        self._start = None if from_amplitudes is None else Path(from_amplitudes)
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._kept: KeptAmplitudes | None = None
        self._kept_steps: KeptSteps | None = None
        self.found = 0  # the iteration whose amplitudes another run has kept; 0: none
        self._room: Room | None = None
        self._source: Source | None = None

    # ---- results ----

    @property
    def e_tot(self) -> float:
        return float(self._mf.e_tot) + self.e_corr

    def fno_error(self, *, triples: bool = False) -> float:
        """An estimate of the error of `e_tot + delta_mp2` by frozen natural orbitals, or with `triples` of that and
        `e_t` (Hartree, not negative): a share of `delta_mp2`, which has bounded the error of small molecules."""
        return abs(self.delta_mp2) * (fno.TRIPLES_ERROR if triples else fno.ERROR)

    @property
    def uncorrelated(self) -> bool:
        """There are no occupied or no virtual orbitals: nothing to compute, and the energy is 0."""
        return not self.spins[0].occupied or not self.spins[0].virtual

    @property
    def t1(self) -> Any:
        """Singles [i,a] of orbitals `spins`; of open shells those of both spins."""
        return self.singles[0] if self.restricted else tuple(self.singles)

    @property
    def t2(self) -> Any:
        """Doubles, an Array [a,i,b,j] of orbitals `spins`; of open shells those of spins aa, ab, bb."""
        if self.equations is None:
            raise OutcoreError(errno.EINVAL, "take amplitudes", detail="run kernel() first")
        found = [each.amplitudes for each in self.equations.doubles]
        return found[0] if self.restricted else tuple(found)

    def amplitudes(self) -> tuple[Any, Any]:
        """Singles [i,a] and doubles [i,j,a,b] in memory, as PySCF has them, at each process; of the orbitals of the
        reference, but of those of `spins` where ROHF was made semicanonical before orbitals were frozen."""
        found = (self.t2,) if self.restricted else self.t2
        pairs = [(0, 0)] if self.restricted else [(0, 0), (0, 1), (1, 1)]
        singles = [orbitals.given_singles(t, spin) for t, spin in zip(self.singles, self.spins, strict=True)]
        doubles = [
            orbitals.given_doubles(each.to_numpy().transpose(1, 3, 0, 2), self.spins[s], self.spins[r])
            for each, (s, r) in zip(found, pairs, strict=True)
        ]
        return (singles[0], doubles[0]) if self.restricted else (tuple(singles), tuple(doubles))

    def save_amplitudes(self, path: str | os.PathLike[str]) -> None:
        """To an HDF5 file, in place of what is there; see `amplitude_file`. Collective."""
        if self.equations is None:
            raise OutcoreError(errno.EINVAL, "save amplitudes", path=path, detail="run kernel() first")
        amplitude_file.save(
            Path(path), self.mol, self.spins, self.e_corr, self.singles, self.equations.doubles
        )

    def t1_diagnostic(self) -> float:
        """|t1| over the root of the number of correlated electrons of closed shells; above 0.02 one determinant is
        hardly enough. Lee, Taylor, Int. J. Quantum Chem. Symp. 23, 199 (1989)."""
        if not self.restricted:
            raise OutcoreError(errno.ENOTSUP, "T1 diagnostic", detail="it is of closed shells")
        return float(np.linalg.norm(self.singles[0]) / np.sqrt(2 * self.spins[0].occupied))

    def d1_diagnostic(self) -> float:
        """The largest singular value of t1, of closed shells. Janssen, Nielsen, Chem. Phys. Lett. 290, 423
        (1998)."""
        if not self.restricted:
            raise OutcoreError(errno.ENOTSUP, "D1 diagnostic", detail="it is of closed shells")
        return float(np.linalg.norm(self.singles[0], 2))

    def run(self, **settings: Any) -> Self:
        """`set`, then `kernel`; as methods of PySCF."""
        self.set(**settings).kernel()
        return self

    def set(self, **settings: Any) -> Self:
        """Other settings, before integrals and amplitudes are made. Raises OutcoreError (EINVAL)."""
        with self.world.together("coupled cluster", sorted(settings)):
            if self.plan is not None:
                raise OutcoreError(
                    errno.EINVAL, "change settings", detail="integrals are made already; make a new object"
                )
            unknown = set(settings) - {each.name for each in fields(Settings)}
            if unknown:
                raise OutcoreError(
                    errno.EINVAL,
                    "change settings",
                    detail=f"there is no setting {', '.join(sorted(unknown))}",
                )
            self.settings = replace(self.settings, **settings)
        return self

    def summary(self) -> str:
        """For people: what is correlated, with which integrals, and where things are. Collective."""
        plan = self.prepare()
        assert self._source is not None
        notes = ", ".join(each for each in (self.reference.note, self.orbitals_note) if each)
        note = f" ({notes})" if notes else ""
        functions = f"{self._source.rank} three-index functions ({self._source.title})"
        return f"{plan}; {self.frozen} frozen orbitals{note}; {functions}"

    # ---- preparation ----

    def prepare(self) -> plans.Plan:
        """Three-index functions, and the plan. Collective."""
        if self.plan is not None:
            return self.plan
        self._source = self._make_source()
        if self.settings.fno:
            self._truncate(self._source)
        self.plan = self._make_plan(self._source)
        return self.plan

    def _make_plan(self, source: Source, only: Collection[str] | None = None) -> plans.Plan:
        free, disk = self._free(), self._free_disk()
        rates = None
        if only is None:
            pairs = max(each.occupied for each in self.spins) ** 2 // 2
            rates = forecast.Rates.measure(self.world, self.threads, pairs)
        with self.world.together("coupled cluster"):
            sizes = plans.Sizes(
                int(self.mol.nao),
                source.rank,
                tuple(each.occupied for each in self.spins),
                tuple(each.virtual for each in self.spins),
                self.settings.diis_space,
                tuple(source.cuts),
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
        room = Room(self.world, self.threads, plan)
        found = fno.truncate(room, plan.spaces[0], source, self.spins[0], self.settings.fno)
        room.close()
        self.natural, self.spins = found, [found.active]

    def _free(self) -> Allowance:
        return free_memory_of_each(self.world, self._memory_bytes, self.threads)

    def _free_disk(self) -> float:
        """Bytes on all disks."""
        mine = 0.0
        with self.world.together("look at the scratch disk"):
            mine = _core.file_system(self.world.scratch).free_bytes / self.world.node_size
        return float(self.world.all_reduce(mine))

    def _make_source(self) -> Source:
        settings = self.settings
        if settings.integrals == "ri":
            return Fitted(self.world, self.mol, self._auxbasis, self.threads, self._screening)
        tolerance = EXACT if settings.integrals == "conventional" else settings.tolerance
        return Cholesky(self.world, self.mol, tolerance, self._free().bytes // 2)

    def _tell(self, part: str) -> Callable[[float], None]:
        def tell(fraction: float) -> None:
            if self.on_progress is not None:
                self.on_progress(part, fraction)

        return tell

    def set_up(self) -> RestrictedEquations | UnrestrictedEquations:
        """Integrals, and the amplitudes of second order. Collective."""
        plan = self.prepare()
        assert self._source is not None
        self.singles = [
            spin.fock[: spin.occupied, spin.occupied :] / spin.gaps(self.settings.level_shift)
            for spin in self.spins
        ]
        if self._checkpoint is not None:
            self._find_kept(plan, self._checkpoint)
        self._check_disks(plan)
        room = self._room = Room(self.world, self.threads, plan)
        names = [""] if self.restricted else ["a", "b"]
        tell = self._tell("three-index integrals")
        integrals = [
            Integrals.build(room, spaces, self._source, spin.coefficients, name, tell)
            for spaces, spin, name in zip(plan.spaces, self.spins, names, strict=True)
        ]
        equations = self.equations = self._equations(room, plan, integrals, names)
        for each in equations.doubles:
            room.each_tile(
                each.amplitudes,
                lambda tile, each=each: each.put(tile, each.integrals(tile) / self._gaps(each, tile)),  # type: ignore[misc]
                "amplitudes of second order",
            )
        equations.sync()
        if self.natural is not None:
            self.delta_mp2 = self.natural.energy - equations.energy(
                [np.zeros_like(each) for each in self.singles]
            )
        if self._start is not None:
            amplitude_file.load(self._start, self.mol, room, self.spins, self.singles, equations.doubles)
            equations.sync()
        if self._kept is not None:
            self._take_kept(room, equations, self._kept)
        return equations

    def _check_disks(self, plan: plans.Plan) -> None:
        needs = [(Path(self.world.scratch), plan.disk_bytes)]
        # Of amplitudes that have converged, only energies of (T) are kept from now on.
        if self._checkpoint is not None and not self._is_converged(self._kept):
            names = ["T", "R"] if self.restricted else ["Taa", "Tab", "Tbb", "Waa", "Wbb"]
            names += [name for name in plan.arrays if name[0] == "A"]
            # What was committed stays beside what replaces it.
            whole = 2 * sum(plan.arrays[name].bytes for name in names)
            with self.world.together("look at what is kept"):
                kept = [each for name in (AMPLITUDES, STEPS) for each in self._checkpoint.glob(f"{name}*")]
                needs.append((self._checkpoint, max(0, whole - allocated_bytes(kept))))
        check_room(self.world, "coupled cluster", needs)

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
            return RestrictedEquations(room, plan.spaces[0], integrals[0], ladders[0], focks[0])
        opposite = OppositeLadder(room, plan.spaces, integrals, is_stored=stored)
        opposite.build(tell)
        return UnrestrictedEquations(room, plan.spaces, integrals, ladders, opposite, focks)

    def _find_kept(self, plan: plans.Plan, directory: Path) -> None:
        names = ["T"] if self.restricted else ["Taa", "Tab", "Tbb"]
        layouts, sketch = [plan.arrays[each].layout for each in names], orbitals.sketch(self.spins)
        self._kept = KeptAmplitudes(
            self.world, directory, self._problem(AMPLITUDES), layouts, self.singles, sketch
        )

    def _is_converged(self, kept: KeptAmplitudes | None) -> bool:
        """Whether amplitudes that another run has kept have converged, for the settings of this one."""
        if kept is None or kept.found is None:
            return False
        found, settings = kept.found, self.settings
        tight = settings.conv_tol >= found.conv_tol and settings.conv_tol_normt >= found.conv_tol_normt
        return found.converged and tight

    def _take_kept(self, room: Room, equations: Equations, kept: KeptAmplitudes) -> None:
        assert self._checkpoint is not None
        amplitudes = [each.amplitudes for each in equations.doubles]
        layouts, sketch = [each.layout for each in amplitudes], orbitals.sketch(self.spins)
        equations.steps = self._kept_steps = KeptSteps(
            room, self._checkpoint, self._problem(STEPS), kept, amplitudes, sketch
        )
        found = kept.found
        if found is None:
            return
        for number, each in enumerate(equations.doubles):

            def take(tile: Tile, number: int = number, each: Doubles = each) -> None:
                each.put(tile, kept.values(number, layouts[number].box(tile)))

            room.each_tile(each.amplitudes, take, "kept amplitudes")
        equations.sync()
        self.singles, self.found = found.singles, found.iteration
        self.converged, self.e_corr = self._is_converged(kept), found.energy

    def _problem(self, what: str) -> Problem:
        """All that amplitudes depend on."""
        assert self._source is not None
        settings = {
            **problem.integrals(self.mol),
            **self._source.settings,
            "frozen": self.frozen,
            "occupied": [each.occupied for each in self.spins],
            "semicanonical": self.settings.orbitals,
            "natural orbitals above": self.settings.fno,
            "orbitals": self.reference.given,
            "screening": self._screening,
        }
        return Problem(f"{what} of CCSD", FORMAT, settings, problem.ROUNDED)

    def _gaps(self, doubles: Doubles, tile: Tile) -> Values:
        """e_i + e_j - e_a - e_b of a tile [a,i,b,j]."""
        assert self.plan is not None
        first, second = (
            self.spins[s].gaps(self.settings.level_shift).T[slice(*self.plan.spaces[s].v.cuts[n : n + 2])]
            for s, n in zip(doubles.spins, (tile[0], tile[2]), strict=True)
        )
        return first[:, :, None, None] + second

    def _change(self, doubles: Doubles, tile: Tile) -> Values:
        """Of a tile [a,i,b,j] of amplitudes by its residual."""
        return (1.0 - self.settings.damping) * doubles.residual.get_tile(tile) / self._gaps(doubles, tile)

    # ---- iterations ----

    def kernel(self) -> float:
        """The correlation energy (Hartree)."""
        if self.uncorrelated:
            self.converged = True
            return self.e_corr
        equations = self.equations or self.set_up()
        if not self.converged:
            self._converge(equations)
        if self.converged and self._kept_steps is not None:
            self._kept_steps.remove()
        return self.e_corr

    def _converge(self, equations: Equations) -> None:
        """Iterations until amplitudes have converged, `max_cycle` at most."""
        assert self._room is not None
        names = [""] if self.restricted else ["aa", "ab", "bb"]
        diis = Diis(self._room, self.settings.diis_space, [(f"e{each}", f"t{each}") for each in names])
        if self._kept is None or self._kept.found is None:
            self.e_corr = equations.energy(self.singles)
        last = self.found + self.settings.max_cycle
        for number in range(self.found + 1, last + 1):
            begin = time.monotonic()
            if self._kept_steps is not None:
                self._kept_steps.begin(self._state(number - 1))
            norm, changes = self._iterate(equations, diis)
            before, self.e_corr = self.e_corr, equations.energy(self.singles)
            found = Iteration(number, self.e_corr, self.e_corr - before, norm, time.monotonic() - begin)
            self.iterations.append(found)
            if self.on_iteration is not None:
                self.on_iteration(found)
            divergence.refuse(self.world, found, self._names(), changes, equations.doubles, self._change)
            settings = self.settings
            self.converged = abs(found.change) < settings.conv_tol and norm < settings.conv_tol_normt
            if self._kept is not None:
                doubles = [each.amplitudes for each in equations.doubles]
                is_last = self.converged or number == last
                self._kept.save(self._room, doubles, self._state(number), is_last=is_last)
            if self.converged:
                break

    def _state(self, iteration: int) -> State:
        settings = self.settings
        limits = settings.conv_tol, settings.conv_tol_normt
        return State(self.singles, iteration, self.e_corr, self.converged, *limits)

    def _names(self) -> divergence.Names:
        frozen = [min(self.frozen, each.occupied) for each in self.reference.spins]
        return divergence.Names(frozen, [each.occupied for each in self.spins])

    def _iterate(self, equations: Equations, diis: Diis) -> tuple[float, list[Values]]:
        """New amplitudes; the norm of their change before extrapolation, and that change of singles."""
        residuals = equations.residual(self.singles)
        kept, shift = 1.0 - self.settings.damping, self.settings.level_shift
        changes = [kept * each / spin.gaps(shift) for each, spin in zip(residuals, self.spins, strict=True)]

        def changed(tile: Tile, each: Doubles) -> tuple[Values, Values]:
            error = self._change(each, tile)
            return each.amplitudes.get_tile(tile) + error, error

        old, change = _flat(self.singles), _flat(changes)
        norm = diis.add(old + change, change, [partial(changed, each=each) for each in equations.doubles])
        new = diis.combine(diis.coefficients(), [each.put for each in equations.doubles])
        equations.sync()
        ends = np.cumsum([each.size for each in self.singles])[:-1]
        self.singles = [
            part.reshape(each.shape) for part, each in zip(np.split(new, ends), self.singles, strict=True)
        ]
        return norm, changes

    def ccsd_t(self) -> float:
        """The energy of connected triples by perturbation theory, (T) (Hartree); `e_t` from then on. The orbitals
        must be canonical, the amplitudes converged. What only iterations need is given back for it."""
        if self.uncorrelated:
            return self.e_t
        if not self.converged:
            raise OutcoreError(
                errno.EINVAL,
                "triple excitations",
                detail="the amplitudes have not converged; run kernel() first",
            )
        assert self.equations is not None and self.plan is not None and self._room is not None
        stage = self._stage(TRIPLES)
        stamp = "" if stage is None else self._state(self._last).stamp
        planned, block = self._room.keep(*self.equations.of_triples), self.settings.block
        resources.trim_heap()
        # At least what iterations worked with: that is free, though the system may not know.
        free = max(self.plan.work_bytes, min(planned, self._free().bytes))
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

    def _stage(self, name: str) -> Stage | None:
        if self._checkpoint is None:
            return None
        return Stage(Stages(self.world, self._checkpoint), name, self._problem(name))

    def close(self) -> None:
        """Gives back what the processes have in common. Collective."""
        if self._kept_steps is not None:
            self._kept_steps.close()
            self._kept_steps = None
        if self._kept is not None:
            self._kept.close()
            self._kept = None
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


def _flat(values: list[Values]) -> Values:
    return np.concatenate([each.ravel() for each in values])
