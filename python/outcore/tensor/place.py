"""Where the arrays of a program lie, and with how much memory each statement works: one mixed-integer linear
program.

For each statement and each way to place its arrays a few points are known: memory for panels against seconds. The
solver (SciPy's HiGHS) takes one point for each statement, so that arrays in memory and panels fit at all times,
what is on disk fits there, and the program takes least time. Disk arrays of the caller may be copied into memory,
once.
"""

from __future__ import annotations

import errno
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor import rates as rates_module
from outcore.tensor.bound import Moved, least_bytes
from outcore.tensor.canonical import size
from outcore.tensor.expression import parse
from outcore.tensor.geometry import Problem
from outcore.tensor.operands import Facts, Where, plain
from outcore.tensor.order import Cost, order
from outcore.tensor.plan import contract, product_of
from outcore.tensor.rates import Rates
from outcore.tensor.schedule import trade

if TYPE_CHECKING:
    from outcore.tensor.program import Contract, Map, Program, Variable

_SHARE = 0.75  # of what is left of the budget, if the caller names no memory
_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.95)  # of the memory, for panels
_IDLE_DISK = (
    1e-3  # of the seconds of the disk count where they are hidden: without it placements are arbitrary
)
_LEAST = 1e-6  # of a second for the use of all memory
_MAP_BYTES = 8 << 20  # of a block that a function of tiles works on
_MAP_SHARE = 0.1  # of the memory for all such blocks


@dataclass(frozen=True)
class Placed:
    """Of one statement: what was chosen, and what is predicted, of one time that it runs."""

    text: str
    memory_bytes: int
    seconds: float
    moved_bytes: float
    bound_bytes: float
    repeats: int


@dataclass(frozen=True)
class ProgramPlan:
    """A plan of a whole program.

    Attributes:
        text: the statements.
        where: of each variable, by name: process, node, global or disk.
        copied: disk arrays of the caller that are copied into memory first.
        memory: of a process, in the time of each statement: arrays in memory and panels.
    """

    text: str
    where: dict[str, Where]
    copied: tuple[str, ...]
    statements: tuple[Placed, ...]
    memory: tuple[int, ...]
    memory_bytes: int
    disk_bytes: float
    bound_bytes: float
    solver_seconds: float
    rates: Rates

    @property
    def seconds(self) -> float:
        return sum(each.seconds * each.repeats for each in self.statements)

    @property
    def moved_bytes(self) -> float:
        """Of disk and network."""
        return sum(each.moved_bytes * each.repeats for each in self.statements)

    def as_json(self) -> str:
        return json.dumps({"format": 1, **asdict(self)})

    @staticmethod
    def from_json(text: str) -> ProgramPlan:
        """Raises OutcoreError (EINVAL) for what is no plan of a program."""
        try:
            values = json.loads(text)
            if values.pop("format") != 1:
                raise ValueError("another format")
            return ProgramPlan(
                **{
                    **values,
                    "copied": tuple(values["copied"]),
                    "statements": tuple(Placed(**each) for each in values["statements"]),
                    "memory": tuple(values["memory"]),
                    "rates": Rates.from_json(values["rates"]),
                }
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise OutcoreError(errno.EINVAL, "read the plan of a program", detail=str(error)) from error

    def table(self) -> str:
        """For people."""
        team = f"{self.rates.processes} x {self.rates.threads} threads"
        lines = [f"{self.memory_bytes / 1e6:.4g} MB of memory, {team}"]
        for place in ("process", "node", "global", "disk"):
            names = [name for name, where in self.where.items() if where == place]
            if names:
                lines.append(f"  {place}: {', '.join(names)}")
        if self.copied:
            lines.append(f"  copied into memory first: {', '.join(self.copied)}")
        lines.append(f"  {'seconds':>9s} {'moved':>11s} {'bound':>11s} {'memory':>11s}  statement")
        for each, memory in zip(self.statements, self.memory, strict=True):
            times = f" ({each.repeats} times)" if each.repeats > 1 else ""
            lines.append(
                f"  {each.seconds:9.3g} {each.moved_bytes / 1e6:8.1f} MB {each.bound_bytes / 1e6:8.1f} MB "
                f"{memory / 1e6:8.1f} MB  {each.text}{times}"
            )
        lines.append(
            f"  in all {self.seconds:.3g} s, {self.moved_bytes / 1e6:.1f} MB moved (at least "
            f"{self.bound_bytes / 1e6:.1f} "
            f"MB), {self.disk_bytes / 1e6:.1f} MB on disk at a time"
        )
        return "\n".join(lines)

    __str__ = table


@dataclass(frozen=True)
class _Way:
    """One way to carry out a statement: which of its movable arrays are in memory, and what it takes."""

    inside: dict[int, bool]
    workspace_bytes: float
    seconds: float
    moved: float
    bound: float


def plan_program(program: Program, rates: Rates | None = None) -> ProgramPlan:
    """Collective; the same at all processes.

    Raises: OutcoreError ENOMEM (no placement fits: says the least that does), ENOSPC (more than the disk given).
    """
    world = program.world
    free = int(world.all_reduce(world.budget.limit_bytes - world.budget.used_bytes, "min"))
    memory = int(free * _SHARE) if program.memory is None else program.memory
    if rates is None:
        rates = rates_module.measured(world, rates_module.threads_of(world))
    found: ProgramPlan | None = None
    with world.together("plan a program", program.text(), memory):
        if world.rank == 0:
            found = _Solver(program, memory, rates).solve()
    plan = world.broadcast(found)
    assert plan is not None
    return plan


class _Solver:
    def __init__(self, program: Program, memory_bytes: int, rates: Rates) -> None:
        self.program, self.memory_bytes, self.rates = program, memory_bytes, rates
        self.inside_where: Where = "process" if rates.processes == 1 else "global"
        # Arrays that may be in memory or on disk: those of the program, and disk arrays of the caller, as copies.
        self.movable = {
            v.number: v
            for v in program.variables
            if program.life(v) is not None and v.shape and (v.source is None or self._can_be_copied(v))
        }
        self.lives = {number: program.life(v) or (0, -1) for number, v in self.movable.items()}

    def _can_be_copied(self, variable: Variable) -> bool:
        """What is on disk and only read, without tiles."""
        written = any(each.out is variable for each in self.program.statements)
        has_tiles = any(cuts is not None for cuts in variable.facts.tiles)
        return variable.facts.where == "disk" and not written and not has_tiles

    def share(self, number: int) -> float:
        """Bytes of a process that an array in memory takes."""
        return self.movable[number].facts.bytes / self.rates.processes

    def ways(self, statement: Contract | Map) -> list[_Way]:
        arrays = list(dict.fromkeys([*statement.operands, statement.out]))
        movable = [v.number for v in arrays if v.number in self.movable]
        result = []
        for choice in itertools.product((False, True), repeat=len(movable)):
            inside = dict(zip(movable, choice, strict=True))
            if sum(self.share(number) for number, there in inside.items() if there) > self.memory_bytes:
                continue
            facts = {v.number: self.placed(v, inside.get(v.number)) for v in arrays}
            result += self._points(statement, inside, facts)
        return result

    def placed(self, variable: Variable, inside: bool | None) -> Facts:
        if inside is None:
            return variable.facts
        return replace(variable.facts, where=self.inside_where if inside else "disk")

    def _points(
        self, statement: Contract | Map, inside: dict[int, bool], facts: dict[int, Facts]
    ) -> list[_Way]:
        from outcore.tensor.program import Contract

        levels = [self.memory_bytes * level for level in _LEVELS]
        every = [facts[v.number] for v in [*statement.operands, statement.out]]
        again = facts[statement.out.number] if statement.accumulate else None
        read_again = again.bytes if again is not None and again.where == "disk" else 0
        if not isinstance(statement, Contract):
            return [self._of_map(inside, every, read_again)]
        expression = parse(statement.subscripts, [f.shape for f in every[:-1]])
        dtype = np.result_type(*(f.dtype for f in every))
        on_disk = [f.where == "disk" for f in every[:-1]]
        pairs = order(Cost(expression, on_disk, self.rates, self.memory_bytes / 2, dtype.itemsize))
        if len(pairs) == 1:
            (pair,) = pairs
            product = product_of(pair, expression.inputs, expression.extents)
            extents = {label: expression.extents[label] for label in "".join(product.groups)}
            ones = plain(expression.shape(product.right), every[0].dtype, "process")
            right = every[pair.right] if pair.right >= 0 else ones
            problem = Problem(product, extents, every[pair.left], right, every[-1], statement.accumulate)
            bound = self._bound(expression.extents, every)
            return [
                _Way(inside, p.workspace_bytes / 0.95, p.seconds, p.moved, bound)
                for p in trade(problem, levels, self.rates)
            ]
        return self._of_many(statement, every, inside, levels)

    def _of_many(
        self, statement: Contract, every: Sequence[Facts], inside: dict[int, bool], levels: Sequence[float]
    ) -> list[_Way]:
        """Of several products, planned together in some amounts of memory."""
        result: list[_Way] = []
        expression = parse(statement.subscripts, [facts.shape for facts in every[:-1]])
        for level in levels[2::2]:
            try:
                plan = contract(expression, every, int(level), self.rates, adds=statement.accumulate)
            except OutcoreError:
                continue
            total = plan.predicted
            if not result or total.seconds < 0.999 * result[-1].seconds:
                moved = total.disk + total.network
                result.append(_Way(inside, level, total.seconds, moved, plan.bound_bytes))
        return result

    def _of_map(self, inside: dict[int, bool], every: Sequence[Facts], read_again: float) -> _Way:
        rates = self.rates
        disk = sum(f.bytes for f in every if f.where == "disk") + read_again
        network = sum(f.bytes for f in every if f.where == "global")
        workers = rates.threads * rates.processes
        work = sum(f.bytes for f in every) / (rates.copy * workers) + network / (
            rates.network * rates.processes
        )
        seconds = max(work, disk / (min(rates.read, rates.write) * rates.nodes))
        blocks = (len(every) + 1) * rates.threads
        wanted = min(blocks * min(_MAP_BYTES, max(f.bytes for f in every)), _MAP_SHARE * self.memory_bytes)
        least = blocks * max(max(_largest(f), f.item_bytes) for f in every)
        return _Way(inside, max(least, wanted), seconds, disk + network, disk)

    def _bound(self, extents: dict[str, int], every: Sequence[Facts]) -> float:
        moved = [float(f.bytes) if f.where == "disk" else 0.0 for f in every]
        if len(moved) == 2:
            moved.insert(1, 0.0)
        everything = size("".join(extents), extents)
        word = min(f.item_bytes for f in every)
        return least_bytes(everything, Moved(*moved), self.memory_bytes * self.rates.processes, word)

    # ---- the linear program ----

    def solve(self) -> ProgramPlan:
        import time

        from scipy.optimize import Bounds, LinearConstraint, milp

        program, rates = self.program, self.rates
        ways = [self.ways(statement) for statement in program.statements]
        for statement, found in zip(program.statements, ways, strict=True):
            if not found:
                raise OutcoreError(
                    errno.ENOMEM,
                    f"plan '{statement}'",
                    detail=f"no panels fit into {self.memory_bytes / 1e6:.4g} MB of memory",
                )
        numbers = list(self.movable)
        column = {number: i for i, number in enumerate(numbers)}
        cost = [self._cost_inside(number) for number in numbers]
        first_way = []
        for s, found in enumerate(ways):
            first_way.append(len(cost))
            repeats = program.repeats(s)
            cost += [
                repeats * (way.seconds + _IDLE_DISK * way.moved / rates.read)
                + _LEAST * way.workspace_bytes / self.memory_bytes
                for way in found
            ]
        count = len(cost)
        rows, low, high = [], [], []

        def add(entries: dict[int, float], least: float, most: float) -> None:
            row = np.zeros(count)
            for index, value in entries.items():
                row[index] = value
            rows.append(row)
            low.append(least)
            high.append(most)

        for s, found in enumerate(ways):
            columns = range(first_way[s], first_way[s] + len(found))
            add(dict.fromkeys(columns, 1.0), 1, 1)
            for number in found[0].inside:
                agree = {c: 1.0 for c, way in zip(columns, found, strict=True) if way.inside[number]}
                add({**agree, column[number]: -1.0}, 0, 0)
            live = {column[n]: self.share(n) for n in self._living(s)}
            panels = {c: way.workspace_bytes for c, way in zip(columns, found, strict=True)}
            add({**live, **panels}, 0, self.memory_bytes)
            if program.disk is not None:
                own = [n for n in self._living(s) if self.movable[n].source is None]
                total = sum(self.movable[n].facts.bytes for n in own)
                add(
                    {column[n]: float(self.movable[n].facts.bytes) for n in own}, total - program.disk, np.inf
                )
        upper = np.ones(count)
        for number in numbers:
            upper[column[number]] = self.share(number) <= self.memory_bytes
        begun = time.perf_counter()
        if not rows:
            return self._plan(ways, [], {}, 0.0)
        solved = milp(
            np.array(cost),
            constraints=LinearConstraint(np.array(rows), low, high),
            integrality=np.ones(count),
            bounds=Bounds(0, upper),
        )
        seconds = time.perf_counter() - begun
        if solved.x is None:
            raise self._nothing_fits(ways)
        inside = {n: bool(solved.x[column[n]] > 0.5) for n in numbers}
        chosen = [
            next(i for i in range(len(found)) if solved.x[first_way[s] + i] > 0.5)
            for s, found in enumerate(ways)
        ]
        return self._plan(ways, chosen, inside, seconds)

    def _nothing_fits(self, ways: list[list[_Way]]) -> OutcoreError:
        """With what is needed if all arrays are on disk."""
        needed, which = max(
            (min(way.workspace_bytes for way in found if not any(way.inside.values())), str(statement))
            for found, statement in zip(ways, self.program.statements, strict=True)
        )
        memory = f"{self.memory_bytes / 1e6:.4g} MB of memory"
        if self.program.disk is None or needed > self.memory_bytes:
            detail = f"with all arrays on disk '{which}' takes {needed / 1e6:.4g} MB; there are {memory}"
            return OutcoreError(errno.ENOMEM, "plan a program", detail=detail)
        disk = max(
            (sum(self.movable[n].facts.bytes for n in self._living(s) if self.movable[n].source is None))
            for s in range(len(ways))
        )
        detail = (
            f"its arrays take {disk / 1e6:.4g} MB, of which not enough fit into {memory} beside panels; "
            f"on disk there are {self.program.disk / 1e6:.4g} MB"
        )
        return OutcoreError(errno.ENOSPC, "plan a program", detail=detail)

    def _cost_inside(self, number: int) -> float:
        """Of having an array in memory: a copy has to be read."""
        variable = self.movable[number]
        read = (
            variable.facts.bytes / (self.rates.read * self.rates.nodes)
            if variable.source is not None
            else 0.0
        )
        return read + _LEAST * self.share(number) / self.memory_bytes

    def _living(self, statement: int) -> list[int]:
        """Arrays that are needed in the time of a statement."""
        return [n for n, (first, last) in self.lives.items() if first <= statement <= last]

    def _plan(
        self, ways: list[list[_Way]], chosen: list[int], inside: dict[int, bool], seconds: float
    ) -> ProgramPlan:
        program = self.program
        where: dict[str, Where] = {}
        for variable in program.variables:
            if variable.source is not None or not variable.shape:
                where[variable.name] = variable.facts.where
            elif variable.number in inside:
                where[variable.name] = self.inside_where if inside[variable.number] else "disk"
        moved = [self.movable[n] for n, there in inside.items() if there]
        copied = [variable.name for variable in moved if variable.source is not None]
        statements, memory, disk = [], [], 0.0
        for s, (found, index) in enumerate(zip(ways, chosen, strict=True)):
            way = found[index]
            live = self._living(s)
            held = sum(self.share(n) for n in live if inside[n])
            out = sum(
                self.movable[n].facts.bytes for n in live if not inside[n] and self.movable[n].source is None
            )
            disk = max(disk, float(out))
            memory.append(math.ceil(held + way.workspace_bytes))
            statements.append(
                Placed(
                    str(program.statements[s]),
                    math.ceil(way.workspace_bytes),
                    way.seconds,
                    way.moved,
                    way.bound,
                    program.repeats(s),
                )
            )
        return ProgramPlan(
            text=program.text(),
            where=where,
            copied=tuple(copied),
            statements=tuple(statements),
            memory=tuple(memory),
            memory_bytes=self.memory_bytes,
            disk_bytes=disk,
            bound_bytes=self._program_bound(),
            solver_seconds=seconds,
            rates=self.rates,
        )

    def _program_bound(self) -> float:
        """What the caller has on disk and is used has to be moved once at least."""
        return float(
            sum(
                v.facts.bytes
                for v in self.program.variables
                if v.source is not None and v.facts.where == "disk" and self.program.uses(v)
            )
        )


def _largest(facts: Facts) -> int:
    """Bytes of the largest tile; 0 where boxes may be cut anywhere."""
    if any(cuts is None for cuts in facts.tiles):
        return 0
    sides = [max(b - a for a, b in itertools.pairwise(cuts)) for cuts in facts.tiles if cuts is not None]
    return math.prod(sides) * facts.item_bytes
