"""Ways to carry out a statement of a program: memory for panels against seconds, for each way to place its arrays,
and for each operand that it may make for itself."""

from __future__ import annotations

import errno
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import Facts, Where, numbered, plain
from outcore.tensor.plan.bound import bound
from outcore.tensor.plan.order import Cost, order
from outcore.tensor.plan.plan import contract, least_memory, product_of
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.schedule import min_workspace, trade
from outcore.tensor.plan.statements import Contract, Map, Point
from outcore.tensor.program.fusion import (
    Candidate,
    Within,
    box_bytes,
    cut_facts,
    labels_of,
    largest,
    own_letter,
    ways_to_cut,
)

if TYPE_CHECKING:
    from outcore.tensor.program.program import Program
    from outcore.tensor.program.recorded import Variable

LEVELS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.95)  # shares of the memory that panels may get
PANELS = 0.95  # share of this memory that panels take: the rest is for pieces that are put
_BOXES = (0.6, 0.25, 0.05)  # shares of the memory for boxes of an operand that a statement makes
_BOX_S = 2e-3  # seconds of the interpreter for each box
_MAP_S = 1e-3  # seconds of requests and of the interpreter for each block
_MAP_BYTES = 8 << 20  # bytes of a block that a function of tiles works on
_MAP_SHARE = 0.1  # share of the memory for all such blocks


@dataclass(frozen=True)
class Way:
    """One way to carry out a statement: which of the movable arrays are in memory, and its cost.

    Attributes:
        workspace_bytes: work space of a process, boxes of an operand that the statement makes for itself included.
        within: the operand that the statement makes for itself.
        skips: it does nothing, as the statements that need the result make it for themselves.
    """

    inside: dict[int, bool]
    workspace_bytes: float
    seconds: float
    moved: float
    bound: float
    within: Within | None = None
    skips: bool = False


class Ways:
    """Ways of all statements of a program.

    Args:
        movable: arrays that may be in memory or on disk, by number.
        made_within: intermediate arrays that need not be stored.
    """

    def __init__(
        self,
        program: Program,
        memory_bytes: int,
        rates: Rates,
        movable: dict[int, Variable],
        made_within: dict[int, Candidate],
    ) -> None:
        self.program, self.memory_bytes, self.rates = program, memory_bytes, rates
        self.movable, self.made_within = movable, made_within
        self.inside_where: Where = "process" if rates.processes == 1 else "global"
        self._known: dict[tuple[object, ...], list[Point]] = {}

    def share(self, number: int) -> float:
        """Bytes of a process that an array in memory takes."""
        return self.movable[number].facts.bytes / self.rates.processes

    def of(self, number: int) -> list[Way]:
        statement = self.program.statements[number]
        arrays = list(dict.fromkeys([*statement.operands, statement.out]))
        result = []
        for inside in self._placements(arrays):
            facts = self.facts_of(statement, inside)
            result += [Way(inside, *point) for point in self.points(number, facts)]
        own = [each for each in self.made_within.values() if each.producer == number]
        for each in own:
            others = [v for v in arrays if v is not each.variable]
            result += [Way(inside, 0, 0, 0, 0, skips=True) for inside in self._placements(others)]
        for each in self.made_within.values():
            if number in each.consumers:
                result += self._within(each, number, arrays)
        return result

    def _placements(self, arrays: Sequence[Variable]) -> Iterator[dict[int, bool]]:
        numbers = [v.number for v in arrays if v.number in self.movable]
        for choice in itertools.product((False, True), repeat=len(numbers)):
            inside = dict(zip(numbers, choice, strict=True))
            if sum(self.share(n) for n, there in inside.items() if there) <= self.memory_bytes:
                yield inside

    def placed(self, variable: Variable, inside: Mapping[int, bool]) -> Facts:
        if variable.number not in inside:
            return variable.facts
        if inside[variable.number]:
            return replace(variable.facts, where=self.inside_where)
        facts = replace(variable.facts, where="disk")
        if variable.source is None and variable.layout is None and variable.shape:
            # As it will be made.
            facts = replace(facts, chunk=_core.usual_chunk(facts.shape, facts.item_bytes))
        return facts

    def facts_of(self, statement: Contract | Map, inside: Mapping[int, bool]) -> list[Facts]:
        """Facts of the arrays of a statement, with these placed."""
        operands = [self.placed(v, inside) for v in statement.operands]
        return [*numbered(statement.operands, operands), self.placed(statement.out, inside)]

    # ---- an operand made by the statement that uses it ----

    def _within(self, candidate: Candidate, number: int, arrays: Sequence[Variable]) -> Iterator[Way]:
        user, maker = self.program.statements[number], self.program.statements[candidate.producer]
        made = candidate.variable
        involved = [v for v in dict.fromkeys([*arrays, *maker.operands]) if v is not made]
        most = [level * self.memory_bytes * self.rates.processes for level in _BOXES]
        for within in ways_to_cut(candidate, self.program, number, most):
            box = box_bytes(made, within.axis, largest(within.cuts)) / self.rates.processes
            rest = self.memory_bytes - box
            letter = own_letter(user, made, within.axis)
            kinds = _kinds(within, put_once=letter not in labels_of(user)[-1])
            for inside in self._placements(involved):
                in_memory = {**inside, made.number: True}
                for limit in (rest, 0.4 * rest):
                    point = self._of_boxes(candidate, within, number, in_memory, kinds, limit)
                    if point is not None:
                        seconds = point.seconds + _BOX_S * (len(within.cuts) - 1)
                        workspace = box + point.workspace_bytes
                        yield Way(inside, workspace, seconds, point.moved, point.bound, within)

    def _of_boxes(
        self,
        candidate: Candidate,
        within: Within,
        number: int,
        inside: dict[int, bool],
        kinds: Counter[tuple[int, bool]],
        limit: float,
    ) -> Point | None:
        total = Point(0, 0, 0, 0)
        for (length, adds), times in kinds.items():
            begin = next(a for a, b in itertools.pairwise(within.cuts) if b - a == length)
            point = self._both(candidate, within, number, inside, (begin, begin + length), adds, limit)
            if point is None:
                return None
            total = total.then(point, times)
        return total

    def _both(
        self,
        candidate: Candidate,
        within: Within,
        number: int,
        inside: dict[int, bool],
        box: tuple[int, int],
        adds: bool,
        limit: float,
    ) -> Point | None:
        """The cost of making and using one box in `limit` bytes of memory."""
        total = Point(0, 0, 0, 0)
        for s in (candidate.producer, number):
            is_user = s == number
            facts = self._cut(candidate, within, s, inside, box, is_user=is_user)
            fitting = self.points(s, facts, adds=adds and is_user, levels=[limit * PANELS])
            if not fitting or fitting[-1].workspace_bytes > limit:
                return None
            total = total.then(fitting[-1])
        return total

    def _cut(
        self,
        candidate: Candidate,
        within: Within,
        number: int,
        inside: dict[int, bool],
        box: tuple[int, int],
        *,
        is_user: bool,
    ) -> list[Facts]:
        """Facts of the arrays of the statement that makes the operand, or of the one that uses it, for one box."""
        statement = self.program.statements[number]
        labels = labels_of(statement)
        axis = within.axis
        letter = own_letter(statement, candidate.variable, axis) if is_user else labels[-1][axis]
        return [
            cut_facts(self.placed(v, inside), word, letter, *box)
            for v, word in zip([*statement.operands, statement.out], labels, strict=True)
        ]

    # ---- choices ----

    def exact(self, number: int, way: Way) -> Way:
        """The way with the exact seconds and bytes of the plans that are made when it runs.

        It gets more memory for panels where they need it, as processes that share panels may divide a result
        unevenly."""
        if way.skips:
            return way
        statement = self.program.statements[number]
        memory = math.ceil(way.workspace_bytes)
        if way.within is None:
            facts = self.facts_of(statement, way.inside)
            seconds, moved = self._exactly(statement, facts, memory, statement.accumulate)
            if seconds is None:
                enough = least_memory(
                    lambda given: self._exactly(statement, facts, given, statement.accumulate)[0] is not None,
                    memory,
                )
                seconds, moved = self._exactly(statement, facts, enough, statement.accumulate)
                way = replace(way, workspace_bytes=enough)
            return way if seconds is None else replace(way, seconds=seconds, moved=moved)
        within = way.within
        candidate = next(each for each in self.made_within.values() if each.variable.name == within.variable)
        letter = own_letter(statement, candidate.variable, within.axis)
        kinds = _kinds(within, put_once=letter not in labels_of(statement)[-1])
        inside = {**way.inside, candidate.variable.number: True}
        total_seconds, total_moved = _BOX_S * (len(within.cuts) - 1), 0.0
        for (length, adds), times in kinds.items():
            begin = next(a for a, b in itertools.pairwise(within.cuts) if b - a == length)
            box = begin, begin + length
            held = math.ceil(box_bytes(candidate.variable, within.axis, length) / self.rates.processes)
            for user in (False, True):
                s = number if user else candidate.producer
                facts = self._cut(candidate, within, s, inside, box, is_user=user)
                adding = user and (adds or statement.accumulate)
                seconds, moved = self._exactly(self.program.statements[s], facts, memory - held, adding)
                if seconds is None:
                    return way
                total_seconds, total_moved = total_seconds + times * seconds, total_moved + times * moved
        return replace(way, seconds=total_seconds, moved=total_moved)

    def _exactly(
        self, statement: Contract | Map, facts: Sequence[Facts], memory_bytes: int, adds: bool
    ) -> tuple[float, float] | tuple[None, float]:
        if not isinstance(statement, Contract):
            point = self._of_map(facts, facts[-1].bytes if adds and facts[-1].where == "disk" else 0)
            return point.seconds, point.moved
        expression = parse(statement.subscripts, [each.shape for each in facts[:-1]])
        try:
            predicted = contract(expression, facts, memory_bytes, self.rates, adds=adds).predicted
        except OutcoreError as error:
            if error.errno != errno.ENOMEM:
                raise
            return None, 0.0
        return predicted.seconds, predicted.disk + predicted.network

    # ---- a statement by itself ----

    def points(
        self,
        number: int,
        facts: Sequence[Facts],
        *,
        adds: bool = False,
        levels: Sequence[float] | None = None,
    ) -> list[Point]:
        """Points of a statement whose operands and result have these facts, in some amounts of memory for panels.
        `adds`: it adds to its result, whatever the statement says."""
        statement = self.program.statements[number]
        adds = adds or statement.accumulate
        if levels is None:
            levels = [self.memory_bytes * level for level in LEVELS]
        key = (number, adds, *levels, *((each.shape, each.where, each.chunk, each.array) for each in facts))
        if key not in self._known:
            self._known[key] = self._points(statement, facts, adds, levels)
        return self._known[key]

    def _points(
        self, statement: Contract | Map, facts: Sequence[Facts], adds: bool, levels: Sequence[float]
    ) -> list[Point]:
        if not isinstance(statement, Contract):
            return [self._of_map(facts, facts[-1].bytes if adds and facts[-1].where == "disk" else 0)]
        problem = self._problem(statement, facts, adds)
        if problem is not None:
            least = bound(problem, self.memory_bytes * self.rates.processes)
            return [
                Point(p.workspace_bytes / PANELS, p.seconds, p.moved, least)
                for p in trade(problem, levels, self.rates)
            ]
        return self._of_many(statement, facts, adds, levels)

    def _problem(self, statement: Contract, facts: Sequence[Facts], adds: bool) -> ProductProblem | None:
        """The problem of one product; None: the statement takes several."""
        expression = parse(statement.subscripts, [f.shape for f in facts[:-1]])
        dtype = np.result_type(*(f.dtype for f in facts))
        on_disk = [f.where == "disk" for f in facts[:-1]]
        pairs = order(Cost(expression, on_disk, self.rates, self.memory_bytes / 2, dtype.itemsize))
        if len(pairs) > 1:
            return None
        (pair,) = pairs
        product = product_of(pair, expression.inputs, expression.extents)
        extents = {label: expression.extents[label] for label in "".join(product.groups)}
        ones = plain(expression.shape(product.right), facts[0].dtype, "process")
        right = facts[pair.right] if pair.right >= 0 else ones
        return ProductProblem(product, extents, facts[pair.left], right, facts[-1], adds)

    def _of_many(
        self, statement: Contract, facts: Sequence[Facts], adds: bool, levels: Sequence[float]
    ) -> list[Point]:
        """Points of several products, planned together in some amounts of memory."""
        result: list[Point] = []
        expression = parse(statement.subscripts, [each.shape for each in facts[:-1]])
        for level in levels[1::2] if len(levels) > 2 else levels[-1:]:
            try:
                plan = contract(expression, facts, int(level), self.rates, adds=adds)
            except OutcoreError as error:
                if error.errno != errno.ENOMEM:
                    raise
                continue
            total = plan.predicted
            if not result or total.seconds < 0.999 * result[-1].seconds:
                result.append(Point(level, total.seconds, total.disk + total.network, plan.bound_bytes))
        return result

    def _of_map(self, facts: Sequence[Facts], read_again: float) -> Point:
        rates = self.rates
        disk = sum(f.bytes for f in facts if f.where == "disk") + read_again
        network = sum(f.bytes for f in facts if f.where == "global")
        workers = rates.threads * rates.processes
        work = sum(f.bytes for f in facts) / (rates.copy * workers) + network / (
            rates.network * rates.processes
        )
        blocks = (len(facts) + 1) * rates.threads
        wanted = min(blocks * min(_MAP_BYTES, max(f.bytes for f in facts)), _MAP_SHARE * self.memory_bytes)
        block = max(wanted, self._min_of_map(facts)) / blocks
        work += math.ceil(max(f.bytes for f in facts) / max(1.0, block)) * _MAP_S / workers
        moving = disk / (min(rates.read, rates.write) * rates.nodes)
        # Each thread reads, computes and writes in turn.
        seconds = max(work, moving) + min(work, moving) / rates.threads
        return Point(max(self._min_of_map(facts), wanted), seconds, disk + network, disk)

    def _min_of_map(self, facts: Sequence[Facts]) -> float:
        blocks = (len(facts) + 1) * self.rates.threads
        return blocks * max(max(_largest_tile(f), f.item_bytes) for f in facts)

    # ---- the least memory ----

    def least_memory(self, number: int) -> int:
        """The least memory of a statement with all movable arrays on disk."""
        statement = self.program.statements[number]
        facts = self.facts_of(statement, {n: False for n in self.movable})
        if not isinstance(statement, Contract):
            return math.ceil(self._min_of_map(facts))
        problem = self._problem(statement, facts, statement.accumulate)
        least = math.inf if problem is None else min_workspace(problem, self.rates)
        if math.isfinite(least):
            return math.ceil(least / PANELS / LEVELS[-1])

        def fits(memory_bytes: int) -> bool:
            return bool(self._of_many(statement, facts, statement.accumulate, [memory_bytes * LEVELS[-1]]))

        return least_memory(fits)


def _kinds(within: Within, *, put_once: bool) -> Counter[tuple[int, bool]]:
    """How many boxes there are of each length, and whether the statement adds to its result for them: all but the
    first do if each box contributes to all of the result (`put_once`)."""
    return Counter((b - a, put_once and a > 0) for a, b in itertools.pairwise(within.cuts))


def _largest_tile(facts: Facts) -> int:
    """Bytes of the largest tile; 0 where boxes may be cut anywhere."""
    if any(cuts is None for cuts in facts.tiles):
        return 0
    sides = [max(b - a for a, b in itertools.pairwise(cuts)) for cuts in facts.tiles if cuts is not None]
    return math.prod(sides) * facts.item_bytes
