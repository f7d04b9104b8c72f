"""Where the arrays of a room lie: the linear program of `place`, for statements that work in the memory that arrays
leave to all of them."""

from __future__ import annotations

import errno
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from outcore.base.errors import OutcoreError
from outcore.tensor.plan.statements import Call
from outcore.tensor.program.place import Solver
from outcore.tensor.program.room_ways import Placement, Resident, RoomWays
from outcore.tensor.program.ways import Way

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outcore.tensor.plan.rates import Rates
    from outcore.tensor.plan.statements import Description

_MARGIN = 64 << 10  # bytes, for the rounding of the solver


def lower_bound(description: Description, memory_bytes: int, rates: Rates, room: Resident) -> float:
    """Least seconds of all statements: with all movable arrays in memory, and all memory as work space."""
    solver = RoomSolver(description, memory_bytes, rates, room)
    return solver.predicted(dict.fromkeys(solver.movable, True), memory_bytes).seconds


def place_room(description: Description, memory_bytes: int, rates: Rates, room: Resident) -> Placement:
    """The placement that takes least time: arrays in memory, and the work space that they leave. Pure arithmetic.
    The caller has checked that there is memory enough with all movable arrays on disk, beside `room.fixed`."""
    solver = RoomSolver(description, memory_bytes, rates, room)
    every = dict.fromkeys(solver.movable, True)
    none = dict.fromkeys(solver.movable, False)
    if not solver.movable or solver.is_best(every):
        return solver.placement(every)
    try:
        _, inside = solver.choose()
    except OutcoreError:  # they fit only without the margin
        return solver.placement(none)
    # The linear program knows a few amounts of work space, and coarse panels: a small gain may be their error.
    found = [solver.placement(each) for each in (inside, none)]
    return min((each for each in found if each.work_bytes >= room.work_bytes), key=solver.weight)


class RoomSolver(Solver):
    """A description with `memory_bytes` in each process."""

    disk = None

    def __init__(self, description: Description, memory_bytes: int, rates: Rates, room: Resident) -> None:
        self.program, self.memory_bytes, self.rates, self.room = description, memory_bytes, rates, room  # type: ignore[assignment]
        variables = description.variables
        self._shares = {n: variables[n].nbytes / rates.processes for n in room.caches}
        self.movable = {n: variables[n] for n in room.caches if n not in room.fixed}
        self.lives = dict.fromkeys(self.movable, (0, len(description.statements) - 1))
        self.made_within, self.longer = {}, {}
        self._ways = self._room_ways = RoomWays(description, memory_bytes, rates, self.movable, room)
        self.inside_where = self._ways.inside_where
        self._most = self._left(dict.fromkeys(self.movable, False))
        self._savings = self._of_disk()

    def share(self, number: int) -> float:
        """Bytes of a process by which an array in memory exceeds its cache."""
        return float(self._shares[number] - self.room.caches[number])

    # ---- memory ----

    def _taken(self, inside: Mapping[int, bool]) -> float:
        """Bytes of a process that arrays in memory and caches take."""
        placed = {**self.room.fixed, **inside}
        return sum(self._shares[n] if placed[n] else cache for n, cache in self.room.caches.items())

    def _left(self, inside: Mapping[int, bool]) -> float:
        return self.memory_bytes - self._taken(inside)

    def available(self, statement: int) -> float:
        return self._most - _MARGIN

    def is_best(self, inside: Mapping[int, bool]) -> bool:
        """Whether these arrays, all that may be in memory, fit, and no kernel has more parts than with all
        memory."""
        left = self._left(inside)
        kernels = [each.kernel for each in self.program.statements if isinstance(each, Call)]
        return left >= self.room.work_bytes and all(
            each.parts(left) == each.parts(self.memory_bytes) for each in kernels
        )

    # ---- the linear program ----

    def _nothing_fits(self, ways: Sequence[Sequence[Way]]) -> OutcoreError:
        return OutcoreError(errno.ENOMEM, "place arrays", detail="they leave too little memory to work in")

    def ways(self) -> list[list[Way]]:
        return [self._room_ways.of_room(s, self._most) for s in range(len(self.program.statements))]

    def _of_disk(self) -> dict[int, float]:
        """The cost of each array on disk, in statements in which it does not depend on the places of others."""
        found = dict.fromkeys(self.movable, 0.0)
        for s in range(len(self.program.statements)):
            for variable, touched in self._room_ways.beside(s, self._most).items():
                if variable.number in found:
                    moving = self._room_ways.moving([touched])
                    found[variable.number] += 2 * self.program.repeats(s) * moving
        return found

    def cost_inside(self, number: int) -> float:
        return super().cost_inside(number) - self._savings[number]

    def cost(self, statement: int, way: Way) -> float:
        """The cost of a way. Bytes count even where the disk works while processors do, as others use it, too."""
        return self.program.repeats(statement) * (way.seconds + way.moved / self.rates.read)

    def weight(self, placement: Placement) -> float:
        """The cost that the linear program minimizes, by the exact predictions of a placement."""
        each = ((x.repeats, x.seconds + x.bytes / self.rates.read) for x in placement.predicted)
        return sum(repeats * seconds for repeats, seconds in each)

    def placement(self, inside: Mapping[int, bool]) -> Placement:
        taken = math.ceil(self._taken(inside))
        return replace(self.predicted(inside, self.memory_bytes - taken), taken_bytes=taken)

    def predicted(self, inside: Mapping[int, bool], work_bytes: int) -> Placement:
        """Predictions of all statements with these arrays in memory, in so much work space."""
        statements = range(len(self.program.statements))
        found = [self._room_ways.predicted(s, inside, work_bytes) for s in statements]
        return Placement({**self.room.fixed, **inside}, work_bytes, 0, tuple(found))
