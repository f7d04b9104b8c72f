"""Where the arrays of a program lie, and with how much memory each statement works: one mixed-integer linear
program.

For each statement and each way to place its arrays a few points are known: memory for panels against seconds. The
solver (SciPy's HiGHS) takes one point for each statement, so that arrays in memory and panels fit at all times,
arrays on disk fit there, and the program takes least time. Disk arrays of the caller may be copied into memory,
once. An intermediate array may be left out: the statements that use it make it for themselves, box by box.
"""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.operands import Where
from outcore.tensor.plan import rates as rates_module
from outcore.tensor.plan.beside import cache_bytes, staging_bytes
from outcore.tensor.plan.rates import Rates
from outcore.tensor.program.fusion import candidates
from outcore.tensor.program.program_plan import PlacedStatement, ProgramPlan
from outcore.tensor.program.recorded import Variable
from outcore.tensor.program.ways import Way, Ways

if TYPE_CHECKING:
    from outcore.tensor.program.program import Program

_IDLE_DISK = 1e-3  # share of hidden seconds of the disk that counts: without it placements are arbitrary
_LEAST = 1e-6  # seconds, as the cost of all memory


def plan_program(program: Program, rates: Rates | None = None) -> ProgramPlan:
    """The plan of a program, the same at all processes. Collective.

    Raises: OutcoreError ENOMEM (no placement fits; the message says the least memory that is enough), ENOSPC (it
    takes more disk than is given).
    """
    world = program.world
    memory = rates_module.memory_of(world) if program.memory is None else program.memory
    if rates is None:
        rates = rates_module.measured(world, rates_module.threads_of(world))
    found: ProgramPlan | None = None
    with world.together("plan a program", program.fingerprint(), memory, program.disk):
        if world.rank == 0:
            found = Solver(program, memory, rates).solve()
    plan = world.broadcast(found)
    assert plan is not None
    return plan


class Solver:
    """One program with `memory_bytes` in each process."""

    def __init__(self, program: Program, memory_bytes: int, rates: Rates) -> None:
        self.program, self.memory_bytes, self.rates = program, memory_bytes, rates
        # Arrays that may be in memory or on disk: those of the program, and disk arrays of the caller, as copies.
        self.movable = {
            v.number: v
            for v in program.variables
            if program.life(v) is not None and v.shape and (v.source is None or self._can_be_copied(v))
        }
        self.made_within = candidates(program)
        self.lives = {number: program.life(v) or (0, -1) for number, v in self.movable.items()}
        self._ways = Ways(program, memory_bytes, rates, self.movable, self.made_within)
        self.share = self._ways.share
        self.inside_where: Where = self._ways.inside_where
        self.longer = self._longer()

    def _can_be_copied(self, variable: Variable) -> bool:
        """Whether an array is on disk and only read, and has no tiles."""
        written = any(out is variable for each in self.program.statements for out in each.writes)
        has_tiles = any(cuts is not None for cuts in variable.facts.tiles)
        return variable.facts.where == "disk" and not written and not has_tiles

    def ways(self) -> list[list[Way]]:
        """The ways of each statement. Raises OutcoreError (ENOMEM) if one has none."""
        found = [self._ways.of(number) for number in range(len(self.program.statements))]
        if any(all(way.skips for way in each) for each in found):
            raise self._too_little_memory()
        return found

    def _longer(self) -> dict[tuple[int, int], list[int]]:
        """For (array, intermediate): statements during which the array is needed only if the intermediate, which is
        made from it, is left out."""
        result: dict[tuple[int, int], list[int]] = {}
        for made, candidate in self.made_within.items():
            for variable in self.program.statements[candidate.producer].operands:
                number = variable.number
                if number in self.movable:
                    uses = sorted({*self.program.uses(variable), *candidate.consumers})
                    first, last = self.program.life(variable, uses) or (0, -1)
                    before, after = self.lives[number]
                    result[number, made] = [s for s in range(first, last + 1) if not before <= s <= after]
        return {key: extra for key, extra in result.items() if extra}

    # ---- the linear program ----

    def solve(self) -> ProgramPlan:
        begun = time.perf_counter()
        taken, inside = self.choose()
        seconds = time.perf_counter() - begun
        return self._plan([self._ways.exact(s, way) for s, way in enumerate(taken)], inside, seconds)

    def choose(self) -> tuple[list[Way], dict[int, bool]]:
        """The way of each statement, and which arrays are in memory."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        ways = self.ways()
        program = _Rows(self, ways)
        if not program.rows:
            return [], {}
        solved = milp(
            np.array(program.cost),
            constraints=LinearConstraint(np.array(program.rows), program.low, program.high),
            integrality=np.ones(len(program.cost)),
            bounds=Bounds(0, program.upper),
        )
        if solved.x is None:
            raise self._nothing_fits(ways)
        inside = {n: bool(solved.x[column] > 0.5) for n, column in program.inside.items()}
        taken = [
            next(way for i, way in enumerate(found) if solved.x[first + i] > 0.5)
            for first, found in zip(program.first, ways, strict=True)
        ]
        return taken, inside

    def _too_little_memory(self) -> OutcoreError:
        """The error, with the number of bytes that are enough if all arrays are on disk."""
        statements = self.program.statements
        needed, which = max((self._ways.least_memory(s), str(each)) for s, each in enumerate(statements))
        return OutcoreError(
            errno.ENOMEM,
            "plan a program",
            detail=f"with all arrays on disk '{which}' takes {needed} bytes; of memory there are "
            f"{self.memory_bytes} bytes",
        )

    def _nothing_fits(self, ways: Sequence[Sequence[Way]]) -> OutcoreError:
        if self.program.disk is None:
            return self._too_little_memory()
        disk = max(
            (sum(self.movable[n].facts.bytes for n in self.living(s) if self.movable[n].source is None))
            for s in range(len(ways))
        )
        detail = (
            f"its arrays take {disk / 1e6:.4g} MB. Too few of them fit into {self.memory_bytes / 1e6:.4g} MB "
            f"of memory beside panels; on disk there are {self.program.disk / 1e6:.4g} MB"
        )
        return OutcoreError(errno.ENOSPC, "plan a program", detail=detail)

    def cost_inside(self, number: int) -> float:
        """The cost of an array in memory: a copy has to be read."""
        variable = self.movable[number]
        read = (
            variable.facts.bytes / (self.rates.read * self.rates.nodes)
            if variable.source is not None
            else 0.0
        )
        return read + _LEAST * self.share(number) / self.memory_bytes

    def cost(self, statement: int, way: Way) -> float:
        return (
            self.program.repeats(statement) * (way.seconds + _IDLE_DISK * way.moved / self.rates.read)
            + _LEAST * way.workspace_bytes / self.memory_bytes
        )

    @property
    def disk(self) -> int | None:
        """Bytes that the program may take of all disks together; None: any number."""
        return self.program.disk

    def available(self, statement: int) -> float:
        """Bytes of a process for movable arrays and panels."""
        return self.memory_bytes

    def living(self, statement: int) -> list[int]:
        """Arrays that are needed during a statement."""
        return [n for n, (first, last) in self.lives.items() if first <= statement <= last]

    # ---- the plan ----

    def _plan(self, taken: Sequence[Way], inside: Mapping[int, bool], seconds: float) -> ProgramPlan:
        program = self.program
        left_out = {
            number for number, each in self.made_within.items() if taken and taken[each.producer].skips
        }
        where: dict[str, Where] = {}
        for variable in program.variables:
            if variable.source is not None or not variable.shape:
                where[variable.name] = variable.facts.where
            elif variable.number in inside and variable.number not in left_out:
                where[variable.name] = self.inside_where if inside[variable.number] else "disk"
        copied = [
            self.movable[n].name
            for n, is_in in inside.items()
            if is_in and self.movable[n].source is not None
        ]
        longer = [(n, extra) for (n, made), extra in self.longer.items() if made in left_out]
        statements, memory, disk, on_disk = [], [], 0.0, 0
        for s, way in enumerate(taken):
            live = {*self.living(s), *(n for n, extra in longer if s in extra)} - left_out
            held = sum(self.share(n) for n in live if inside[n])
            out = [n for n in live if not inside[n] and self.movable[n].source is None]
            on_disk = max(on_disk, len(out))
            disk = max(disk, float(sum(self.movable[n].facts.bytes for n in out)))
            memory.append(math.ceil(held + way.workspace_bytes))
            statements.append(
                PlacedStatement(
                    str(program.statements[s]),
                    math.ceil(way.workspace_bytes),
                    way.seconds,
                    way.moved,
                    way.bound,
                    program.repeats(s),
                    way.within,
                    way.skips,
                )
            )
        cache = cache_bytes(program.world, on_disk)
        return ProgramPlan(
            fingerprint=program.fingerprint(),
            where=where,
            copied=tuple(copied),
            statements=tuple(statements),
            memory=tuple(memory),
            memory_bytes=self.memory_bytes,
            disk_bytes=disk,
            bound_bytes=self._program_bound(),
            solver_seconds=seconds,
            rates=self.rates,
            cache_bytes=cache,
            beside_bytes=on_disk * cache + staging_bytes(program.world),
        )

    def _program_bound(self) -> float:
        """The least traffic: arrays of the caller on disk that are used have to be moved once."""
        return float(
            sum(
                v.facts.bytes
                for v in self.program.variables
                if v.source is not None and v.facts.where == "disk" and self.program.uses(v)
            )
        )


class _Rows:
    """The linear program. Columns: whether each array is in memory (`inside`), whether each intermediate is left
    out, whether an array that only a left-out one needs is in memory or on disk meanwhile, and for each statement
    which of its ways it takes (from `first` on)."""

    def __init__(self, solver: Solver, ways: Sequence[Sequence[Way]]) -> None:
        self.solver, self.ways = solver, ways
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.inside = {
            n: self._column(solver.cost_inside(n), solver.share(n) <= solver.memory_bytes)
            for n in solver.movable
        }
        self.left_out = {n: self._column(0.0) for n in solver.made_within}
        self.longer = {key: (self._column(0.0), self._column(0.0)) for key in solver.longer}
        self.first: list[int] = []
        for s, found in enumerate(ways):
            self.first.append(len(self.cost))
            for way in found:
                self._column(solver.cost(s, way))
        self.rows: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        for n, column in self.left_out.items():
            self._add({column: 1.0, self.inside[n]: 1.0}, -np.inf, 1)
        for (n, made), (in_memory, on_disk) in self.longer.items():
            self._add({self.inside[n]: 1, self.left_out[made]: 1, in_memory: -1}, -np.inf, 1)
            self._add({self.inside[n]: -1, self.left_out[made]: 1, on_disk: -1}, -np.inf, 0)
        for s in range(len(ways)):
            self._statement(s)

    def _column(self, cost: float, upper: float = 1.0) -> int:
        self.cost.append(cost)
        self.upper.append(float(upper))
        return len(self.cost) - 1

    def _add(self, entries: Mapping[int, float], least: float, most: float) -> None:
        row = np.zeros(len(self.cost))
        for index, value in entries.items():
            row[index] += value
        self.rows.append(row)
        self.low.append(least)
        self.high.append(most)

    def _statement(self, s: int) -> None:
        solver, found = self.solver, self.ways[s]
        columns = range(self.first[s], self.first[s] + len(found))
        both = list(zip(columns, found, strict=True))
        self._add(dict.fromkeys(columns, 1.0), 1, 1)
        for n in {n for way in found for n in way.inside}:
            there = {c: 1.0 for c, way in both if way.inside.get(n) is True}
            away = {c: 1.0 for c, way in both if way.inside.get(n) is False}
            self._add({**there, self.inside[n]: -1.0}, -np.inf, 0)
            self._add({**away, self.inside[n]: 1.0}, -np.inf, 1)
        for n, candidate in solver.made_within.items():
            name = candidate.variable.name
            if s == candidate.producer:
                agree = {c: 1.0 for c, way in both if way.skips}
            elif s in candidate.consumers:
                agree = {c: 1.0 for c, way in both if way.within is not None and way.within.variable == name}
            else:
                continue
            self._add({**agree, self.left_out[n]: -1.0}, 0, 0)
        longer = {key: pair for key, pair in self.longer.items() if s in solver.longer[key]}
        held = {self.inside[n]: solver.share(n) for n in solver.living(s)}
        held |= {pair[0]: solver.share(key[0]) for key, pair in longer.items()}
        held |= {c: way.workspace_bytes for c, way in both}
        self._add(held, 0, solver.available(s))
        if solver.disk is not None:
            self._disk(s, {key: pair[1] for key, pair in longer.items()})

    def _disk(self, s: int, longer: Mapping[tuple[int, int], int]) -> None:
        solver = self.solver
        assert solver.disk is not None
        nbytes = {n: float(v.facts.bytes) for n, v in solver.movable.items() if v.source is None}
        own = [n for n in solver.living(s) if n in nbytes]
        free = {self.inside[n]: nbytes[n] for n in own}
        free |= {self.left_out[n]: nbytes[n] for n in own if n in self.left_out}
        free |= {column: -nbytes[n] for (n, _), column in longer.items() if n in nbytes}
        self._add(free, sum(nbytes[n] for n in own) - solver.disk, np.inf)
