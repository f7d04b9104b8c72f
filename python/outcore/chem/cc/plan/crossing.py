"""The cost of an iteration of coupled cluster whose arrays are on many nodes: bytes that processes get from one
another, and how evenly products are dealt out. Pure arithmetic, from the same description of equations as the
plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from outcore.chem.cc.plan import describe
from outcore.chem.cc.plan.ladder_kernels import LadderProduct
from outcore.chem.cc.plan.work import PANELS
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.operands import numbered
from outcore.tensor.plan.plan import contract
from outcore.tensor.plan.statements import Call, Contract

if TYPE_CHECKING:
    from outcore.chem.cc.plan.plan import Plan
    from outcore.tensor.layout.operands import Facts, Where
    from outcore.tensor.plan.rates import Rates


@dataclass(frozen=True)
class ProductOfNodes:
    """A product of an iteration.

    Attributes:
        seconds: predicted; for a ladder as if no process were ever idle.
        operations: two for each multiplication.
        moved: bytes that all processes together get from arrays in memory and on disk, and give to them.
        disk: the bytes of `moved` that go to and from disks.
        rows: for a ladder, sizes of the rows of tiles; one thread makes a row. Empty for other products.
    """

    seconds: float
    operations: float
    moved: float
    disk: float
    rows: tuple[int, ...] = ()


def products(plan: Plan, rates: Rates) -> list[ProductOfNodes]:
    """The products of an iteration. Work on single tiles, which processes do where the tiles lie, is left out."""
    block, stored = plan.spaces[0].block, plan.ladder in ("memory", "disk")
    recording = describe.iterations(plan.sizes, block, rates.threads, rates.processes, is_stored=stored)
    found = list(_of_statements(plan, recording.description, rates))
    describe.forget()
    return found


def _of_statements(plan: Plan, description: Any, rates: Rates) -> Iterator[ProductOfNodes]:
    for number, each in enumerate(description.statements):
        if description.repeats(number) == 1:
            continue
        if isinstance(each, Contract):
            yield _of_contraction(plan, each, rates)
        elif isinstance(each, Call):
            yield _of_kernel(plan, each.kernel, rates)


def _of_contraction(plan: Plan, statement: Contract, rates: Rates) -> ProductOfNodes:
    facts = numbered(statement.operands, [_placed(plan, each, rates) for each in statement.operands])
    every = [*facts, _placed(plan, statement.out, rates)]
    expression = parse(statement.subscripts, [each.shape for each in every[:-1]])
    found = contract(expression, every, int(PANELS * plan.work_bytes), rates, adds=statement.accumulate)
    each = found.predicted
    return ProductOfNodes(each.seconds, each.flops, each.network + each.disk, each.disk)


def _of_kernel(plan: Plan, kernel: Any, rates: Rates) -> ProductOfNodes:
    touched = kernel.moved([1.0] * kernel.parts(plan.work_bytes))
    away = [each for each in touched if not plan.arrays[each.name].in_memory]
    seconds = kernel.work(away, plan.work_bytes, rates)
    rows: tuple[int, ...] = ()
    if isinstance(kernel, LadderProduct):
        cuts = kernel.results[0].layout.tilings[0].cuts
        rows = tuple(end - begin for begin, end in pairwise(cuts))
    return ProductOfNodes(
        seconds,
        kernel.operations(),
        sum(each.total for each in touched.values()),
        sum(touched[each].total for each in away),
        rows,
    )


def _placed(plan: Plan, array: Any, rates: Rates) -> Facts:
    facts: Facts = array.facts
    entry = plan.arrays.get(array.name)
    if entry is None:
        return facts
    inside: Where = "process" if rates.processes == 1 else "global"
    return replace(facts, where=inside if entry.in_memory else "disk")
