"""How many vectors the small space of a search for states has, by the memory and disks that there are."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.chem.cc.excited.search import LEAST
from outcore.tensor.plan.statements import Role

if TYPE_CHECKING:
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.cc.plan.plan import Plan

_VECTORS = (
    8,
    6,
    LEAST,
)  # of the small space for each root: the most of which all are in memory, else about the middle


def fitted(plan_of: Callable[[Describe], Plan], what: Describe) -> tuple[Plan, int]:
    """The plan, and vectors of the small space for each root, as `plan_of` has room for. what: takes `vectors`."""
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
