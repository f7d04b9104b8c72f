"""The number of vectors of the small space follows from the memory; with few of them a search begins anew from its
states, and finds the same energies."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any

import pytest
from cc_support import WATER, mean_field
from eom_support import TIGHT

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.excited import describe
from outcore.chem.cc.excited.search import LEAST, Search
from outcore.chem.cc.excited.vectors_of_plan import fitted
from outcore.chem.cc.inherited import Inherited
from outcore.chem.cc.plan import fitting
from outcore.chem.cc.plan.plan import Plan, make_plan
from outcore.chem.cc.plan.sizes import Sizes
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.statements import Role

SIZES = Sizes(70, 250, (10,), (60,), 6, tuple(range(0, 251, 50)))
RATES = Rates(((1024, 40e9),), copy=10e9, read=2e9, write=2e9, network=1e30, threads=2)
WHAT = partial(describe.states, kind="ee", roots=2)


def planned(size_bytes: float) -> tuple[int, bool] | None:
    """The number of vectors for each root that so much memory has room for, and whether all are in memory; None:
    there is no plan."""

    def plan(what: Any) -> Plan:
        return make_plan(SIZES, int(size_bytes), RATES, ladder="rebuild", block=15, what=what)

    try:
        found, vectors = fitted(plan, WHAT)
    except OutcoreError as error:
        assert error.errno == errno.ENOMEM
        return None
    return vectors, all(each.in_memory for each in found.arrays.values() if each.spec.role is Role.VECTOR)


def test_less_memory_has_fewer_vectors_and_then_puts_them_on_disk() -> None:
    assert [planned(size) for size in (4e8, 1.26e8, 8.5e7, 3e7)] == [(8, True), (6, True), (6, False), None]


def test_a_search_in_little_memory_restarts_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least memory that the search has a plan for, found by bisection."""
    for each in ("CACHE_BYTES", "_LARGEST_CACHE"):  # arrays are small, too
        monkeypatch.setattr(fitting, each, 512)
    restarts, shrunk, plan = list[int](), Search.shrunk, Inherited.plan

    def counted(self: Search, active: Any) -> Any:
        rows = shrunk(self, active)
        restarts[-1] += rows is not None
        return rows

    def is_enough(left: Inherited, size_bytes: int) -> bool:
        left._bytes = size_bytes
        try:
            plan(left, partial(describe.states, kind="ee", roots=2, vectors=LEAST))
        except OutcoreError:
            return False
        return True

    def in_least(left: Inherited, what: Any) -> Plan:
        few, many = 1 << 20, left._bytes
        while many - few > 1 << 10:
            middle = (few + many) // 2
            few, many = (few, middle) if is_enough(left, middle) else (middle, many)
        left._bytes = many
        return plan(left, what)

    monkeypatch.setattr(Search, "shrunk", counted)
    found, kept = [], list[int]()
    mf = mean_field(WATER, "6-31g")
    for is_small in (False, True):
        with (
            monkeypatch.context() as patched,
            CCSD(mf, 1, comm=None, memory="4GB", threads=1, ladder="rebuild", block=4, **TIGHT) as cc,
        ):
            cc.kernel()
            if is_small:
                patched.setattr(Inherited, "plan", in_least)
            restarts.append(0)
            states = cc.states("ee", nroots=2, residual=1e-10)
            found.append(states.energies)
            names = [name for name in states.plan.arrays if name.startswith("ee") and name[2:].isdigit()]
            kept.append(len(names) // 2 - 1)  # one vector of each root is a correction
    assert kept == [8, LEAST]
    assert restarts[1] > restarts[0]
    assert abs(found[1] - found[0]).max() < 1e-9
