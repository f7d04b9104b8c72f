"""Integrals and amplitudes that the iterations leave. A calculation with converged amplitudes begins with them, in
a room with a plan of its own."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.restricted import RestrictedEquations
from outcore.chem.cc.plan import assembly, describe
from outcore.chem.cc.plan.room import Room
from outcore.job import resources
from outcore.job.processes import free_memory_of_each
from outcore.job.scratch import bytes_here, check_room

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from outcore.chem.cc.ccsd import CCSD
    from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations
    from outcore.chem.cc.keep.checkpoint import Checkpoint
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.cc.plan.plan import Plan
    from outcore.tensor.arrays.array import Array


class Inherited:
    """Arrays of a CCSD object, or `arrays` of a later room, which the next plan takes over by their names. The
    constructor is collective, and gives back all other arrays.

    beside: further arrays that stay.

    Attributes:
        is_stored: integrals of ladders are stored, not recomputed in each iteration.
        builds: some of them are gone, and have to be made.
    """

    def __init__(
        self,
        of: CCSD,
        before: Room | None = None,
        arrays: Mapping[str, Array] | None = None,
        *,
        beside: Mapping[str, Array] = MappingProxyType({}),
    ) -> None:
        equations, before = of.equations, before or of.room
        assert before is not None and equations is not None
        self._of, self._before = of, before
        arrays = {**(_named(equations) if arrays is None else arrays), **beside}
        self._kept = {name: each for name, each in arrays.items() if before.has(each)}
        self._stored = set(_integrals(equations))
        with of.world.together("take over arrays of iterations"):
            self._check(set(arrays) - set(self._kept) - self._stored)
        self.is_stored, self.builds = bool(self._stored), not self._stored <= set(self._kept)
        free = before.keep(*self._kept.values())
        resources.trim_heap()
        if of.memory_bytes is not None and of.world.held_bytes is None:
            # A command has predicted the memory beside arrays; an object has the memory that its process leaves
            # now.
            free = min(free, free_memory_of_each(*of.means()).bytes)
        self._entries = {name: before.entry_of(each) for name, each in self._kept.items()}
        processes = of.world.size
        self._bytes = free + sum(e.bytes_of_process(processes) for e in self._entries.values())

    def _check(self, lost: set[str]) -> None:
        if lost:
            raise OutcoreError(
                errno.EINVAL,
                "go on from converged amplitudes",
                detail=f"{', '.join(sorted(lost))} were given to a step that has failed, or back after relaxed "
                "densities; make a new object, which a checkpoint gives the amplitudes",
            )

    def plan(self, what: Describe) -> Plan:
        """A plan that leaves inherited arrays where they are, if there is room for the rest; else the largest ones
        go to disk. Collective. Raises OutcoreError: ENOMEM."""
        entries = dict(self._entries)
        inside = sorted((e.bytes, name) for name, e in entries.items() if e.in_memory)
        while True:
            places = [entries[name].in_memory for name in self._stored & set(entries)]
            ladder = "rebuild" if not self._stored else "memory" if places and all(places) else "disk"
            try:
                return self._of.plan_of(what, self._bytes, self._before.plan.spaces[0].block, ladder, entries)
            except OutcoreError as error:
                if error.errno != errno.ENOMEM or not inside:
                    raise
                name = inside.pop()[1]
                entries[name] = replace(entries[name], in_memory=False)

    def check_disks(
        self,
        plan: Plan,
        kept: Callable[[Checkpoint], int] | None = None,
        attempted: str = "coupled cluster",
    ) -> None:
        """Raises OutcoreError (ENOSPC) if scratch disks have no room for new arrays of the plan, or the disk of the
        checkpoint has none for the bytes that `kept` returns. attempted: for the message. Collective."""
        of, scratch = self._of, self._of.world.scratch
        there = {name for name, entry in self._entries.items() if not entry.in_memory}
        new = sum(e.bytes for name, e in plan.arrays.items() if not e.in_memory and name not in there)
        with of.world.together("look at the scratch disk"):
            needs = [(Path(scratch), bytes_here(of.world, scratch, new))]
        if of.kept is not None and kept is not None:
            needs.append((of.kept.directory, kept(of.kept)))
        check_room(of.world, attempted, needs, largest_file=of.largest_file(plan))

    def room(self, plan: Plan) -> Room:
        """A room of the plan with the inherited arrays in it. Collective."""
        describe.forget()
        resources.trim_heap()
        made = Room(self._of.world, self._of.threads, plan, self._before.signs)
        made.take(self._before, self._kept)
        return made


def _named(equations: RestrictedEquations | UnrestrictedEquations) -> dict[str, Array]:
    """Arrays that outlast iterations, by their names in the plan."""
    return three_index(equations) | _integrals(equations)


def three_index(equations: RestrictedEquations | UnrestrictedEquations) -> dict[str, Array]:
    """Doubles and three-index integrals, by their names in the plan."""
    found = amplitudes(equations)
    integrals = (
        [equations.integrals] if isinstance(equations, RestrictedEquations) else list(equations.integrals)
    )
    for each, name in zip(integrals, assembly.spin_names(len(integrals)), strict=True):
        found |= {f"Boo{name}": each.boo, f"Bvo{name}": each.bvo, f"Bvv{name}": each.bvv}
    return found


def amplitudes(equations: RestrictedEquations | UnrestrictedEquations) -> dict[str, Array]:
    """Amplitudes of doubles, by their names in the plan."""
    if isinstance(equations, RestrictedEquations):
        return {"T": equations.t2}
    return {"Taa": equations.same[0], "Tab": equations.mixed, "Tbb": equations.same[1]}


def _integrals(equations: RestrictedEquations | UnrestrictedEquations) -> dict[str, Array]:
    """Stored integrals of ladders, by their names in the plan."""
    if isinstance(equations, RestrictedEquations):
        return equations.ladder.named_integrals
    first, second = (each.named_integrals for each in equations.ladders)
    return first | second | equations.opposite.named_integrals
