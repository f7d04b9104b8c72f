"""Choices of a search for states, by the available memory and disks: how many vectors its small space has, and
whether it keeps rings of singles from vector to vector."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.excited import kinds
from outcore.chem.cc.excited import describe
from outcore.chem.cc.excited.search import LEAST
from outcore.chem.cc.plan.describe import ITERATIONS
from outcore.tensor.plan.statements import Role

if TYPE_CHECKING:
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.cc.plan.plan import Plan

_VECTORS = (
    8,
    6,
    LEAST,
)  # vectors of the small space for each root: most that fit into memory, else the middle one that fits


@dataclass(frozen=True)
class PlannedVectors:
    """vectors: of the small space, for each root. keeps_rings: see `assembly.states`."""

    plan: Plan
    vectors: int
    keeps_rings: bool = False

    @property
    def seconds(self) -> float:
        """Predicted seconds of a usual number of iterations."""
        return self.plan.seconds_once + ITERATIONS * self.plan.iteration_s


def quickest(
    plan_of: Callable[[Describe], Plan], kind: str, roots: int, check: Callable[[Plan], None] = lambda _: None
) -> PlannedVectors:
    """The fastest plan to find right vectors of `roots` states, with or without kept rings. check: raises
    OutcoreError (ENOSPC) for a plan that disks have no room for."""
    of = partial(describe.states, kind=kind, roots=roots)
    found = PlannedVectors(*fitted(plan_of, of))
    if not kinds.of(kind).of_many:
        return found
    try:
        other = PlannedVectors(*fitted(plan_of, partial(of, keeps_rings=True)), keeps_rings=True)
        if other.seconds < found.seconds:
            check(other.plan)
            return other
    except OutcoreError as error:
        if error.errno not in (errno.ENOMEM, errno.ENOSPC):
            raise
    return found


def fitted(plan_of: Callable[[Describe], Plan], what: Describe) -> tuple[Plan, int]:
    """A plan, and how many vectors of the small space `plan_of` has room for, for each root. what: takes
    `vectors`."""
    found: list[tuple[Plan, int]] = []
    for vectors in _VECTORS:
        try:
            plan = plan_of(partial(what, vectors=vectors))
        except OutcoreError as error:  # each array on disk has a cache
            if error.errno != errno.ENOMEM or vectors == LEAST:
                raise
            continue
        found.append((plan, vectors))
        if all(e.in_memory for e in plan.arrays.values() if e.spec.role is Role.VECTOR):
            return plan, vectors
    return min(found, key=lambda each: abs(each[1] - _VECTORS[1]))
