"""How a coupled-cluster calculation gets its integrals, and plans its arrays for the memory and disks given."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem import reference as references
from outcore.chem.cc import disks, fno, least
from outcore.chem.cc.least import AfterIterations
from outcore.chem.cc.plan import describe
from outcore.chem.cc.plan import plan as plans
from outcore.chem.cc.plan.room import Room
from outcore.chem.cc.plan.sizes import Sizes
from outcore.chem.gradients.two_electron import auxbasis_of
from outcore.chem.least import LATER_BYTES
from outcore.chem.logs import NOTE
from outcore.chem.ri import auxiliary
from outcore.chem.ri import given as given_integrals
from outcore.chem.ri.cholesky import Cholesky
from outcore.chem.ri.fitting import DensityFitting
from outcore.chem.ri.source import Fitted, Source
from outcore.job import resources
from outcore.job.scratch import bytes_here, check_room, free_bytes_of_all
from outcore.tensor.plan.rates import measured

if TYPE_CHECKING:
    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.cc.plan.fitting import Entry
    from outcore.job.resources import Allowance


class Planning:
    """The part of a CCSD object that plans.

    Attributes:
        plan: the plan of iterations, once it is made.
        follows: stages known to come after iterations; `prepare` checks that there is memory for them, and `set_up`
            that disks have room.
    """

    follows = AfterIterations()
    _free_before: Allowance | None = None  # free memory of each process, before anything was computed

    plan: plans.Plan | None = None
    spins: list[CorrelatedOrbitals]
    natural: fno.TruncatedOrbitals | None
    _source: Source | None

    def prepare(self: CCSD) -> plans.Plan:  # type: ignore[misc]
        """Makes the three-index functions and the plan, once; returns the plan. Collective."""
        if self.plan is not None:
            return self.plan
        self._free_before = self._free_before or self._free()
        self._source = self._source or self._make_source()
        self.check_memory(self.follows)
        self.spins = self._every  # an earlier call may have failed
        if self.settings.fno:
            self._truncate(self._source)
        if self._checkpoint is not None:
            self.spins = self._checkpoint.orbitals(self.reference.overlap, self.spins)
        self.plan = self._make_plan(self._source)
        return self.plan

    def estimate(self: CCSD, what: Describe = describe.iterations) -> plans.Plan:  # type: ignore[misc]
        """A plan for an estimate: nothing but three-index functions is computed. It has all virtual orbitals, as
        nobody knows yet how many natural ones `fno` leaves. what: the stage to plan, in the memory that was free
        before anything was computed. Collective."""
        self._source = self._source or self._make_source()
        return self._make_plan(self._source, what, self._free_before)

    # ---- memory, before anything is computed ----

    def begin(self: CCSD, wanted: AfterIterations) -> None:  # type: ignore[misc]
        """Runs iterations, if they have not run, and checks first that there is memory and room on disks for the
        `wanted` stages after them. Collective. Raises OutcoreError (ENOMEM, ENOSPC) before anything is computed."""
        if self.uncorrelated:
            return
        if self.plan is None:
            self.follows = wanted
            self.prepare()
        else:
            self.check_memory(wanted)
        if self.equations is None:
            self.follows = wanted
            self.kernel()
        elif self._multipliers is None:
            disks.check(self, wanted)

    def check_memory(self: CCSD, wanted: AfterIterations) -> None:  # type: ignore[misc]
        """Raises OutcoreError (ENOMEM) if iterations, or the `wanted` stages after them, need more memory than was
        free before they began. A command has checked that already. Collective."""
        free = self._free_before
        if self.world.held_bytes is not None or free is None:
            return
        stages = self._stages(wanted)
        stage = max(stages, key=lambda name: stages[name])
        needed, further = stages[stage], 0
        possible = self._possible()
        if possible is not None and not wanted.multipliers:
            further = max(self._stages(possible).values())
        with self.world.together("memory of coupled cluster"):
            if free.bytes < needed:
                raise OutcoreError(
                    errno.ENOMEM,
                    stage,
                    detail=f"it needs at least {in_words(needed)} more in each of {self.world.size} processes, but "
                    f"{free.reason} leaves {in_words(max(0, free.bytes))} to each"
                    f"{self._enough(free, needed, further)}",
                )
        if free.bytes < further and self.plan is None:
            self.log(
                NOTE,
                "memory: enough for the energy; densities and gradients%s",
                self._enough(free, further).replace("; ", " need ").replace(" are enough", ""),
            )

    def _enough(self: CCSD, free: Allowance, needed: int, further: int = 0) -> str:  # type: ignore[misc]
        """For people: the least memory for the wanted stages and, if it is more, for all stages that may follow."""
        if free.reason != "--memory" or self.memory_bytes is None:
            return ""
        given, processes = self.memory_bytes, self.world.size

        def told(each: int) -> str:
            return plans.enough(given + (each - free.bytes) * processes)

        more = f", {told(further)} with densities and gradients" if further > needed else ""
        return f"; {told(needed)} for all of them are enough{more}"

    def _possible(self: CCSD) -> AfterIterations | None:  # type: ignore[misc]
        """All stages that may follow iterations; None without any."""
        if not self.method_facts.has_densities or self.settings.fno:
            return None
        closed_or_pairs = self.restricted or not references.is_restricted_open(self._mf)
        relaxed = self.settings.integrals == "ri" and closed_or_pairs
        return AfterIterations(
            triples=self.method_facts.has_triples, multipliers=True, relaxed=relaxed, gradient=relaxed
        )

    def _stages(self: CCSD, wanted: AfterIterations) -> dict[str, int]:  # type: ignore[misc]
        """The least bytes of each stage in each process. Collective."""
        assert self._source is not None
        sizes, block = self._sizes(self._source, self._every), self.settings.block
        fitting = self._fitting() if wanted.relaxed or wanted.gradient else None
        left = LATER_BYTES if wanted.multipliers else 0
        return least.stages(
            self.world, self.mol, sizes, self.threads, wanted, fitting, left=left, block=block
        )

    def _fitting(self: CCSD) -> least.FittedSets:  # type: ignore[misc]
        """Auxiliary sets of the integrals whose derivatives a gradient needs."""
        assert isinstance(self._source, Fitted)
        of_scf = vars(self._mf).get("with_df")
        made_anew = isinstance(of_scf, DensityFitting) and of_scf.three_index is None
        return least.FittedSets(
            auxmol=self._source.auxmol,
            of_scf=None if of_scf is None else auxiliary.build(self.mol, auxbasis_of(of_scf)),
            jk_bytes=of_scf.min_bytes() if made_anew else 0,
            screening=self._screening,
            storage=getattr(of_scf, "storage", "auto"),
        )

    def _sizes(self: CCSD, source: Source, spins: list[CorrelatedOrbitals]) -> Sizes:  # type: ignore[misc]
        return Sizes(
            len(self.reference.overlap),
            source.rank,
            tuple(each.occupied for each in spins),
            tuple(each.virtual for each in spins),
            self.settings.diis_space,
            tuple(source.cuts),
            self.settings.method,
            self.settings.ladder_type,
        )

    # ---- plans ----

    def plan_of(  # type: ignore[misc]
        self: CCSD, what: Describe, free_bytes: int, block: int, ladder: str, given: Mapping[str, Entry]
    ) -> plans.Plan:
        """A plan of another stage of the calculation, in `free_bytes` of each process; see `plan.make_plan`.
        Collective."""
        assert self.plan is not None
        rates = measured(self.world, self.threads)
        free = min(self.world.gather(free_bytes))
        disk, sizes = free_bytes_of_all(self.world, self.world.scratch), self.plan.sizes
        return self._of_rank_0(
            lambda: plans.make_plan(
                sizes,
                free,
                rates,
                storage=self._storage,
                ladder=ladder,
                block=block,
                disk_bytes=disk,
                what=what,
                later=self.later or self._usual_next(),
                given=given,
                budget_bytes=self.memory_bytes,
            )
        )

    def _make_plan(  # type: ignore[misc]
        self: CCSD, source: Source, what: Describe = describe.iterations, free: Allowance | None = None
    ) -> plans.Plan:
        free = free or self._free()
        disk = free_bytes_of_all(self.world, self.world.scratch)
        rates = measured(self.world, self.threads)
        sizes = self._sizes(source, self.spins)
        return self._of_rank_0(
            lambda: plans.make_plan(
                sizes,
                free.bytes,
                rates,
                storage=self._storage,
                ladder=self.settings.ladder,
                block=self.settings.block,
                limit=free.reason,
                budget_bytes=self.memory_bytes if free.reason == "--memory" else None,
                disk_bytes=disk,
                what=what,
                later=self.later or self._usual_next(),
            )
        )

    def _usual_next(self: CCSD) -> Describe | None:  # type: ignore[misc]
        """The stage that may follow iterations though the caller has not asked for it yet: the multipliers, which
        go on with the blocks of amplitudes, and have more arrays."""
        if not self.method_facts.has_densities or self.settings.fno:
            return None
        return describe.response_of_triples if self.restricted else describe.response

    def _of_rank_0(self: CCSD, look: Callable[[], plans.Plan]) -> plans.Plan:  # type: ignore[misc]
        """The plan that rank 0 makes: the solver of linear programs may find another on each process.
        Collective."""
        with self.world.together("coupled cluster"):
            found = look() if self.world.rank == 0 else None
        resources.trim_heap()  # linear programs have filled it with pieces
        made = self.world.broadcast(found)
        assert made is not None
        return made

    def _truncate(self: CCSD, source: Source) -> None:  # type: ignore[misc]
        """Virtual orbitals become natural ones; those with little density are left out."""
        plan = self._make_plan(source, describe.second_order)
        room = Room(self.world, self.threads, plan, source.signs)
        found = fno.truncate(room, plan.spaces[0], source, self.spins[0], self.settings.fno)
        room.close()
        self.natural, self.spins = found, [found.active]

    def _make_source(self: CCSD) -> Source:  # type: ignore[misc]
        settings = self.settings
        if settings.integrals == "ri":
            return Fitted(self.world, self.mol, self._auxbasis, self.threads, self._screening)
        limit = self._free().bytes // 2
        if self._integrals is not None:
            return given_integrals.vectors(self.world, self._integrals, settings.decomposed_to, limit)
        return Cholesky(self.world, self.mol, settings.decomposed_to, limit)

    def _check_disks(self: CCSD, plan: plans.Plan) -> None:  # type: ignore[misc]
        scratch = self.world.scratch
        with self.world.together("look at the scratch disk"):
            needs = [(Path(scratch), bytes_here(self.world, scratch, plan.disk_bytes))]
        # Once amplitudes have converged, the checkpoint gets no more of them; `disks` checks for later stages.
        if self._checkpoint is not None and not self._checkpoint.has_converged(self.settings):
            needs.append((self._checkpoint.directory, self._checkpoint.room_bytes(plan.kept_bytes)))
        check_room(self.world, "coupled cluster", needs, largest_file=self.largest_file(plan))
        disks.check(self, self.follows)

    def largest_file(self: CCSD, plan: plans.Plan) -> int:  # type: ignore[misc]
        """Bytes of the largest file of each process."""
        files = [entry.bytes // self.world.size for entry in plan.arrays.values() if not entry.in_memory]
        return max(files, default=0)
