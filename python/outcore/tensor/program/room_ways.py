"""Ways to carry out a statement of a room: as for a program, but in the memory that arrays of the room leave to all
statements alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.expression import parse
from outcore.tensor.plan.plan import contract
from outcore.tensor.plan.schedule import FULL
from outcore.tensor.plan.statements import Call, Contract, Pass, Point, Touched
from outcore.tensor.program.ways import PANELS, Way, Ways

if TYPE_CHECKING:
    from outcore.tensor.layout.expression import Expression
    from outcore.tensor.layout.operands import Facts
    from outcore.tensor.plan.rates import Rates
    from outcore.tensor.plan.statements import Description

_LEVELS = 7  # amounts of work space that products are planned in
_PARTS = 16  # most numbers of parts of a kernel that get an amount of work space of their own
_POINTS: dict[Any, list[Point]] = {}
_KNOWN = 5000  # entries of `_POINTS` that are kept
_FITS = PANELS * (1 - 1e-9)
_HANDLED, _MOVED = 15, 15
"""Passes over bytes, each as long as a copy in the caches (measured): over bytes that are reordered in memory that
no cache holds, and further ones over bytes that move to or from disk and are checked."""


@dataclass(frozen=True)
class Resident:
    """Facts of the arrays of a room, which stay in their places as long as the room exists.

    Attributes:
        caches: bytes in each process for each array, by number, if it is on disk.
        fixed: for arrays that are not to be placed, by number, whether they are in memory.
        work_bytes: least work space.
        panels: the share of the work space that products take.
    """

    caches: Mapping[int, int]
    fixed: Mapping[int, bool]
    work_bytes: int
    panels: float


@dataclass(frozen=True)
class Predicted:
    """The prediction for one run of a statement. bytes: to and from disk."""

    text: str
    seconds: float
    bytes: float
    bound_bytes: float
    operations: float
    repeats: int
    is_product: bool


@dataclass(frozen=True)
class Placement:
    """Attributes:
    inside: by number, whether an array is in memory.
    work_bytes: work space of each process.
    taken_bytes: memory of each process that arrays in memory and caches take.
    predicted: for each statement.
    """

    inside: Mapping[int, bool]
    work_bytes: int
    taken_bytes: int
    predicted: tuple[Predicted, ...] = field(repr=False)

    @property
    def seconds(self) -> float:
        """Predicted seconds of all statements, as often as they run."""
        return sum(each.repeats * each.seconds for each in self.predicted)


class RoomWays(Ways):
    """Ways of all statements of a description."""

    def __init__(
        self,
        description: Description,
        memory_bytes: int,
        rates: Rates,
        movable: dict[int, Any],
        room: Resident,
    ) -> None:
        super().__init__(description, memory_bytes, rates, movable, {})  # type: ignore[arg-type]
        self.room = room

    def levels(self, most: float) -> list[float]:
        """Amounts of work space, from the least to `most`."""
        least = self.room.work_bytes
        steps = max(1.0, most / least) ** (1 / (_LEVELS - 1))
        return [least * steps**n for n in range(_LEVELS)]

    def of_room(self, number: int, most: float) -> list[Way]:
        """Ways of a statement. most: the largest work space (bytes)."""
        statement = self.program.statements[number]
        if isinstance(statement, Pass):
            return [Way({}, self.room.work_bytes, 0.0, 0.0, 0.0)]
        if isinstance(statement, Call):
            return list(self._of_call(statement, most))
        return list(self._of_product(number, statement))

    def _of_product(self, number: int, statement: Contract) -> Iterator[Way]:
        for inside in self._placements(statement.arrays):
            facts = self.facts_of(statement, inside)
            works = self.levels(self.memory_bytes)
            on_disk = any(each.where == "disk" for each in facts)
            if not on_disk:
                works = works[:1]  # more is little faster
            panels = [self.room.panels * FULL * work for work in works]
            points = self._points_of(number, statement, facts, panels)
            for point in points:
                enough = (w for w, p in zip(works, panels, strict=True) if point.workspace_bytes * _FITS <= p)
                moved = point.moved if on_disk else 0.0  # traffic between processes alone does not count
                yield Way(inside, next(enough, works[-1]), point.seconds, moved, point.bound)
            if not points:  # `trade` has found none
                found = self.predicted(number, inside, int(works[0]))
                yield Way(inside, works[0], found.seconds, found.bytes, found.bound_bytes)

    def _points_of(
        self, number: int, statement: Contract, facts: Sequence[Facts], panels: Sequence[float]
    ) -> list[Point]:
        """Points of a statement; those of an equal statement are used again."""
        key = (statement.subscripts, statement.accumulate, *(each.key for each in facts), *panels, self.rates)
        if key not in _POINTS:
            if len(_POINTS) > _KNOWN:
                _POINTS.clear()
            _POINTS[key] = self.points(number, facts, levels=panels)
        return _POINTS[key]

    def placed(self, variable: Any, inside: Mapping[int, bool]) -> Facts:
        return super().placed(variable, {**self.room.fixed, **inside})

    # ---- kernels ----

    def _of_call(self, statement: Call, most: float) -> Iterator[Way]:
        kernel, fixed = statement.kernel, self.room.fixed
        varying = self.varying(statement, most)
        for inside in self._placements(varying):
            away = [v for v in statement.arrays if not {**fixed, **inside}.get(v.number, True)]
            for work in self._steps(statement, most):
                touched = kernel.moved([1.0] * kernel.parts(work))
                mine = [touched[v] for v in away if v in varying or v.number in fixed]
                seconds = max(kernel.work(away, work, self.rates), self.moving(mine))
                yield Way(inside, work, seconds, sum(each.total for each in mine), 0.0)

    def varying(self, statement: Call, most: float) -> list[Any]:
        """Arrays that are not placed yet, and that move more bytes in less memory."""
        kernel = statement.kernel
        few, many = (kernel.moved([1.0] * kernel.parts(work)) for work in (most, self.room.work_bytes))
        return [v for v in statement.arrays if v.number in self.movable and few[v] != many[v]]

    def _steps(self, statement: Call, most: float) -> list[float]:
        """The least amounts of work space that allow each number of parts of a kernel."""
        parts, low = statement.kernel.parts, float(self.room.work_bytes)
        found = [low]
        high = max(low, most)
        fewest = parts(high)
        for count in range(fewest, min(parts(low), fewest + _PARTS)):
            found.append(_least_with(parts, count, low, high))
        return sorted(set(found))

    # ---- costs of an array on disk that do not depend on other arrays ----

    def beside(self, number: int, most: float) -> dict[Any, Touched]:
        """Traffic of each array of a statement if it is on disk, as far as it does not depend on where others
        are."""
        statement = self.program.statements[number]
        if isinstance(statement, Pass):
            return dict(statement.touched)
        if isinstance(statement, Call):
            varying, kernel = self.varying(statement, most), statement.kernel
            moved = kernel.moved([1.0] * kernel.parts(most))
            return {v: each for v, each in moved.items() if not any(v is other for other in varying)}
        return {}

    def moving(self, touched: Sequence[Touched]) -> float:
        """Seconds that the disk takes for this traffic."""
        rates = self.rates
        read, written = (sum(each[n] for each in touched) / rates.nodes for n in (0, 1))
        return read / rates.read + written / rates.write

    # ---- choices ----

    def predicted(self, number: int, inside: Mapping[int, bool], work: int) -> Predicted:
        """The prediction for a statement in `work` bytes of work space."""
        statement, repeats = self.program.statements[number], self.program.repeats(number)
        copied = self.rates.copy * self.rates.threads * self.rates.processes
        if isinstance(statement, Contract):
            facts = self.facts_of(statement, inside)
            expression = parse(statement.subscripts, [each.shape for each in facts[:-1]])
            if all(each.where != "disk" for each in facts):
                seconds, operations = self._in_memory(expression, facts)
                return Predicted(str(statement), seconds, 0.0, 0.0, operations, repeats, True)
            plan = contract(
                expression, facts, int(self.room.panels * work), self.rates, adds=statement.accumulate
            )
            found = plan.predicted
            return Predicted(
                str(statement), found.seconds, found.disk, plan.bound_bytes, found.flops, repeats, True
            )
        placed = {**self.room.fixed, **inside}
        if isinstance(statement, Pass):
            away = [each for v, each in statement.touched.items() if not placed.get(v.number, True)]
            handled, moved = (sum(each.total for each in of) for of in (statement.touched.values(), away))
            seconds = (_HANDLED * handled + _MOVED * moved) / copied + self.moving(away)
            return Predicted(str(statement), seconds, moved, moved, 0.0, repeats, False)
        kernel = statement.kernel
        outside = [v for v in statement.arrays if not placed.get(v.number, True)]
        touched = kernel.moved([1.0] * kernel.parts(work))
        away = [touched[v] for v in outside]
        seconds = max(kernel.work(outside, work, self.rates), self.moving(away))
        bound = kernel.least_bytes(outside, work * self.rates.processes)
        moved = sum(each.total for each in away)
        return Predicted(str(statement), seconds, moved, bound, kernel.operations(), repeats, True)

    def _in_memory(self, expression: Expression, facts: Sequence[Facts]) -> tuple[float, float]:
        """Seconds and operations of a product of arrays in memory."""
        workers, out = self.rates.threads * self.rates.processes, facts[-1]
        stored = out.bytes / max(1, out.item_bytes * math.prod(out.shape))
        operations = 2.0 * math.prod(expression.extents.values()) * stored
        left, right = expression.inputs
        _, *sides = binary(left, right, expression.output, expression.extents).sizes(expression.extents)
        multiplied = operations / (float(self.rates.flops(min(sides))) * workers)
        return multiplied + sum(each.bytes for each in facts) / (self.rates.copy * workers), operations


def _least_with(parts: Any, count: int, low: float, high: float) -> float:
    """The least work space in which a kernel has at most `count` parts. In `high` bytes it has so few."""
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        low, high = (low, middle) if parts(middle) <= count else (middle, high)
    return high
