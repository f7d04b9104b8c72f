"""Coupled cluster with single and double excitations of closed shells, from three-index integrals.

ccsd = outcore.chem.cc.CCSD(mf, frozen="auto", memory="2GB")
ccsd.kernel()
ccsd.e_corr, ccsd.t1, ccsd.t2
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import problem
from outcore.chem import reference as references
from outcore.chem.cc import plan as plans
from outcore.chem.cc.cholesky import EXACT, Cholesky
from outcore.chem.cc.diis import Diis
from outcore.chem.cc.integrals import Fitted, Integrals, Source
from outcore.chem.cc.iteration import Iteration
from outcore.chem.cc.kept import AMPLITUDES, FORMAT, TRIPLES, KeptAmplitudes
from outcore.chem.cc.ladder import Ladder
from outcore.chem.cc.restricted import RestrictedEquations
from outcore.chem.cc.room import Room
from outcore.chem.cc.settings import Settings
from outcore.chem.cc.triples import Triples
from outcore.chem.driver import RootDriven
from outcore.chem.frozen import count_frozen
from outcore.chem.ri.fitting import SCREENING
from outcore.job import launch
from outcore.job.processes import JOB, free_memory, make_world
from outcore.job.resources import Allowance, parse_bytes
from outcore.job.world import World
from outcore.keep.problem import Problem
from outcore.keep.stages import Stage, Stages

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from outcore.tensor.array import Array
    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

_DIVERGED = 1e6  # norm of a change of the amplitudes


class CCSD:
    """CCSD of a converged PySCF RHF object, with density fitting or without, on one or several processes; each
    makes the same object and calls the same methods, which are collective.

    Args:
        mf: the reference; on several processes the orbitals of rank 0 count.
        frozen: number of lowest orbitals that are not correlated, "auto" for the cores of the atoms, or a list of
            the lowest ones, counted from 0.
        auxbasis: of density fitting, as for MP2.
        force: take an SCF that has not converged.
        memory, scratch, threads, screening, comm, storage: as for DensityFitting.
        checkpoint: directory where amplitudes and finished parts of (T) are kept, and found again by a run of the
            same orbitals and integrals, on any number of processes and in any memory.
        settings: see `Settings`.

    After `kernel`: `e_corr`, `e_tot` (Hartree, of CCSD; `ccsd_t` returns what triples add), `converged`,
    `iterations`, `t1` [i,a] and `t2`, an Array [a,i,b,j] (`amplitudes` has them as PySCF does). Raises
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
        self.reference = self._take_reference(force)
        spin = self.reference.spins[0]
        with self.world.together("coupled cluster", frozen):
            if not self.reference.restricted:
                raise OutcoreError(
                    errno.ENOTSUP, "coupled cluster", detail="the reference has open shells; take closed ones"
                )
            self.frozen = count_frozen(self.mol, frozen, spin.occupied)
        self.coefficients = np.ascontiguousarray(spin.coefficients[:, self.frozen :])
        self.energies = np.ascontiguousarray(spin.energies[self.frozen :])
        assert spin.fock is not None
        self.fock = np.ascontiguousarray(spin.fock[self.frozen :, self.frozen :])
        self.occupied = spin.occupied - self.frozen
        self.virtual = len(self.energies) - self.occupied
        self.plan: plans.Plan | None = None
        self.equations: RestrictedEquations | None = None
        self.on_iteration: Callable[[Iteration], None] | None = None
        self.on_progress: Callable[[str, float], None] | None = None
        self.iterations: list[Iteration] = []
        self.converged = False
        self.e_corr = self.e_t = 0.0
        self.t1: Values = np.zeros((self.occupied, self.virtual))
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._kept: KeptAmplitudes | None = None
        self._stamp = ""  # of converged amplitudes
        self.found = 0  # the iteration whose amplitudes another run has kept; 0: none
        self._room: Room | None = None
        self._source: Source | None = None

    def _take_reference(self, force: bool) -> references.Reference:
        """Of rank 0, whose orbitals count. Others take part where its Fock matrix is collective."""
        collective = isinstance(self._mf, RootDriven)
        found: Any = None
        with self.world.together("coupled cluster", force):
            if collective or self.world.rank == 0:
                found = references.as_given(self._mf, force=force)
        reference: references.Reference = self.world.broadcast(found)
        return reference

    # ---- results ----

    @property
    def e_tot(self) -> float:
        return float(self._mf.e_tot) + self.e_corr

    @property
    def uncorrelated(self) -> bool:
        """There are no occupied or no virtual orbitals: nothing to compute, and the energy is 0."""
        return not self.occupied or not self.virtual

    @property
    def t2(self) -> Array:
        """Doubles [a,i,b,j]."""
        if self.equations is None:
            raise OutcoreError(errno.EINVAL, "take amplitudes", detail="run kernel() first")
        return self.equations.t2

    def amplitudes(self) -> tuple[Values, Values]:
        """t1 [i,a] and t2 [i,j,a,b] in memory, as PySCF has them, at each process."""
        return self.t1.copy(), np.ascontiguousarray(self.t2.to_numpy().transpose(1, 3, 0, 2))

    def summary(self) -> str:
        """For people: what is correlated, with which integrals, and where things are. Collective."""
        plan = self.prepare()
        assert self._source is not None
        note = f" ({self.reference.note})" if self.reference.note else ""
        functions = f"{self._source.rank} three-index functions ({self._source.title})"
        return f"{plan}; {self.frozen} frozen orbitals{note}; {functions}"

    # ---- preparation ----

    def prepare(self) -> plans.Plan:
        """Three-index functions, and the plan. Collective."""
        if self.plan is not None:
            return self.plan
        self._source = self._make_source()
        source = self._source
        free = self._free()
        with self.world.together("coupled cluster"):
            sizes = plans.Sizes(
                int(self.mol.nao),
                source.rank,
                self.occupied,
                self.virtual,
                self.settings.diis_space,
                tuple(source.cuts),
            )
            self.plan = plans.restricted(
                sizes,
                free.bytes,
                self.world.size,
                self.threads,
                storage=self._storage,
                ladder=self.settings.ladder,
                block=self.settings.block,
                limit=free.reason,
            )
        return self.plan

    def _free(self) -> Allowance:
        budget = self.world.budget
        mine = min(
            free_memory(self.world, self._memory_bytes, self.threads),
            Allowance(budget.limit_bytes - budget.used_bytes, "the budget of the world"),
        )
        return min(self.world.gather(mine))

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

    def set_up(self) -> RestrictedEquations:
        """Integrals, and the amplitudes of second order. Collective."""
        plan = self.prepare()
        assert self._source is not None
        room = self._room = Room(self.world, self.threads, plan)
        integrals = Integrals.build(
            room, plan.spaces, self._source, self.coefficients, progress=self._tell("three-index integrals")
        )
        ladder = Ladder(room, plan.spaces, integrals, stored=plan.ladder != "rebuild")
        ladder.build(self._tell("ladder integrals"))
        equations = RestrictedEquations(room, plan.spaces, integrals, ladder, self.fock)

        def second_order(tile: Tile) -> None:
            equations.put_amplitudes(tile, equations.ovov.get_tile(tile) / self._gaps(tile))

        room.each_tile(equations.t2, second_order, "amplitudes of second order")
        equations.u2.sync()
        gaps = self.energies[: self.occupied, None] - self.energies[self.occupied :]
        self.t1 = self.fock[: self.occupied, self.occupied :] / gaps
        self.equations = equations
        if self._checkpoint is not None:
            self._take_kept(room, equations, self._checkpoint)
        return equations

    def _take_kept(self, room: Room, equations: RestrictedEquations, directory: Path) -> None:
        kept = self._kept = KeptAmplitudes(
            self.world, directory, self._problem(AMPLITUDES), equations.t2.layout, self.t1
        )
        found = kept.found
        if found is None:
            return
        layout = equations.t2.layout
        room.each_tile(
            equations.t2,
            lambda tile: equations.put_amplitudes(tile, kept.values(layout.box(tile))),
            "kept amplitudes",
        )
        equations.u2.sync()
        settings = self.settings
        self.t1, self.found, self._stamp = found.t1, found.iteration, found.stamp
        tight = settings.conv_tol >= found.conv_tol and settings.conv_tol_normt >= found.conv_tol_normt
        self.converged, self.e_corr = found.converged and tight, found.energy

    def _problem(self, what: str) -> Problem:
        """All that amplitudes depend on."""
        assert self._source is not None
        settings = {
            **problem.integrals(self.mol),
            **self._source.settings,
            "frozen": self.frozen,
            "occupied": self.occupied,
            "orbitals": self.reference.given,
            "screening": self._screening,
        }
        return Problem(f"{what} of CCSD", FORMAT, settings, problem.ROUNDED)

    def _gaps(self, tile: Tile) -> Values:
        """e_i + e_j - e_a - e_b of a tile [a,i,b,j]."""
        assert self.plan is not None
        cuts = self.plan.spaces.v.cuts
        o = self.energies[: self.occupied]
        virtual = self.energies[self.occupied :] + self.settings.level_shift
        first, second = (o - virtual[cuts[n] : cuts[n + 1], None] for n in (tile[0], tile[2]))
        return first[:, :, None, None] + second

    # ---- iterations ----

    def kernel(self) -> float:
        """The correlation energy (Hartree)."""
        if self.uncorrelated:
            self.converged = True
            return self.e_corr
        equations = self.equations or self.set_up()
        assert self._room is not None
        if self.converged:
            return self.e_corr
        diis = Diis(self._room, self.settings.diis_space, [("e", "t")])
        self.e_corr = equations.energy(self.t1)
        for number in range(self.found + 1, self.found + self.settings.max_cycle + 1):
            begin = time.monotonic()
            norm = self._iterate(equations, diis)
            before, self.e_corr = self.e_corr, equations.energy(self.t1)
            found = Iteration(number, self.e_corr, self.e_corr - before, norm, time.monotonic() - begin)
            self.iterations.append(found)
            if self.on_iteration is not None:
                self.on_iteration(found)
            self._refuse_divergence(found)
            settings = self.settings
            self.converged = abs(found.change) < settings.conv_tol and norm < settings.conv_tol_normt
            if self._kept is not None:
                self._stamp = self._kept.save(
                    self._room,
                    self.t1,
                    equations.t2,
                    found,
                    (settings.conv_tol, settings.conv_tol_normt),
                    self.converged,
                )
            if self.converged:
                break
        return self.e_corr

    def _iterate(self, equations: RestrictedEquations, diis: Diis) -> float:
        """New amplitudes; the norm of their change before extrapolation."""
        singles = equations.residual(self.t1)
        o, kept = self.energies[: self.occupied], 1.0 - self.settings.damping
        virtual = self.energies[self.occupied :] + self.settings.level_shift
        change = kept * singles / (o[:, None] - virtual)

        def changed(tile: Tile) -> tuple[Values, Values]:
            error = kept * equations.w2.get_tile(tile) / self._gaps(tile)
            return equations.t2.get_tile(tile) + error, error

        norm = diis.add(self.t1 + change, change, [changed])
        self.t1 = diis.combine(diis.coefficients(), [equations.put_amplitudes])
        equations.t2.sync()
        equations.u2.sync()
        return norm

    def _refuse_divergence(self, found: Iteration) -> None:
        if np.isfinite(found.norm) and np.isfinite(found.energy) and found.norm < _DIVERGED:
            return
        raise OutcoreError(
            errno.ERANGE,
            "converge coupled cluster",
            detail=f"iteration {found.number} diverged: the amplitudes changed by {found.norm:.1e}, the energy is "
            f"{found.energy:.6g} Eh; try level_shift=0.3 or damping=0.5",
        )

    def ccsd_t(self) -> float:
        """The energy of connected triples by perturbation theory, (T) (Hartree); `e_t` from then on. The orbitals
        must be canonical, the amplitudes converged."""
        if self.uncorrelated:
            return self.e_t
        if not self.converged:
            raise OutcoreError(
                errno.EINVAL,
                "triple excitations",
                detail="the amplitudes have not converged; run kernel() first",
            )
        assert self.equations is not None and self.plan is not None
        stage = None
        if self._checkpoint is not None:
            stage = Stage(Stages(self.world, self._checkpoint), TRIPLES, self._problem(TRIPLES))
        triples = Triples(
            self.equations, self.t1, self.plan.work_bytes, self.settings.block, stage=stage, stamp=self._stamp
        )
        self.e_t = triples.run(self._tell("triple excitations"))
        return self.e_t

    def close(self) -> None:
        """Gives back what the processes have in common. Collective."""
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
