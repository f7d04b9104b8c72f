"""Carries out one statement of a planned program: at once, or in parts along an axis, between which a checkpoint
can be written; a statement that makes an operand for itself makes a box of it for each part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from outcore.arrays.global_array import GlobalArray
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.cells import Axis, Cuts
from outcore.tensor.layout.operands import LocalOperand, Operand
from outcore.tensor.layout.section import section
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.plan import Plan
from outcore.tensor.plan.rates import sharing_of
from outcore.tensor.plan.statements import Contract, Map
from outcore.tensor.program.fusion import (
    Within,
    arrays_of,
    best_letters,
    gives_sections,
    labels_of,
    own_labels,
    own_letter,
)
from outcore.tensor.program.program_plan import PlacedStatement, ProgramPlan
from outcore.tensor.program.recorded import Variable
from outcore.tensor.run.contraction import Contraction
from outcore.tensor.run.mapped import Mapped
from outcore.tensor.run.progress import Told

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.tensor.program.program import Program

Region = Mapping[str, tuple[int, int]]  # ranges of axes that are worked on, by letter; other axes are whole

_SLOWER = 1.05  # a statement in parts may take so many times as long
_SHORTEST_S = 0.05  # the shortest time of a part
_MAX_PARTS = 64


class Parts:
    """Statements of one run.

    Args:
        operand_of: the array of a variable.
        done: called, at all processes, when the result has all up to a place along an axis of a statement.
        interval: returns the seconds after which `done` should be called, as one process sees it; None: never.
    """

    def __init__(
        self,
        program: Program,
        plan: ProgramPlan,
        operand_of: Callable[[Variable], Operand],
        done: Callable[[int, str, int], None],
        interval: Callable[[], float] | None,
    ) -> None:
        self._program, self._plan, self._operand_of, self._done = program, plan, operand_of, done
        self._interval = interval
        self._plans: dict[tuple[object, ...], Plan] = {}  # of products that run again and again
        self._world: World = program.world
        # A plan of other processes may be carried out here.
        sharing = 1 if plan.rates.sharing == 1 else sharing_of(self._world)
        self._rates = replace(plan.rates, sharing=sharing)

    def run(
        self, number: int, within: Within | None, resumed: tuple[str, int] | None, watch: Told | None
    ) -> Amounts:
        """Statement `number`. `within`: an operand that it makes for itself; `resumed`: a letter, and a place along
        it up to which all is done."""
        statement, placed = self._program.statements[number], self._plan.statements[number]
        region: dict[str, tuple[int, int]] = {}
        if resumed is not None:
            region[resumed[0]] = resumed[1], self._extent(statement, resumed[0])
        if within is not None:
            letter, cuts = (
                own_letter(statement, self._program.named(within.variable), within.axis),
                within.cuts,
            )
        else:
            letter, cuts = self._cut(statement, placed, resumed)
        if not letter:
            return self._part(statement, placed, within, region, "", (0, 0), watch)
        begin, end = region.pop(letter, (0, cuts[-1]))
        places = [begin, *(cut for cut in cuts if cut > begin)]
        total = Amounts()
        for first, last in itertools.pairwise(places):
            part = _share(watch, first - begin, last - first, end - begin)
            total = total + self._part(statement, placed, within, region, letter, (first, last), part)
            if last < end and not region:
                self._done(number, letter, last)
        return total

    # ---- where to cut ----

    def _cut(
        self, statement: Contract | Map, placed: PlacedStatement, resumed: tuple[str, int] | None
    ) -> tuple[str, Cuts]:
        """A letter and boundaries of parts of about the interval; "" if all takes less, or if parts would take
        longer than the whole."""
        if not gives_sections(statement.out, self._world):
            return "", ()
        letters = [resumed[0]] if resumed is not None else best_letters(arrays_of(statement))
        wanted = 1
        if self._interval is not None:
            seconds = max(_SHORTEST_S, float(self._world.all_reduce(self._interval(), "max")))
            wanted = min(_MAX_PARTS, int(placed.seconds / seconds))
        while wanted > 1:
            for letter in letters[:2]:
                cuts = self._even(statement, letter, wanted)
                if self._is_worth(statement, placed, letter, cuts):
                    return letter, cuts
            wanted //= 2
        return "", ()

    def _even(self, statement: Contract | Map, letter: str, count: int) -> Cuts:
        fixed = None
        for each, labels in arrays_of(statement):
            if letter in labels:
                tiling = each.facts.tilings[labels.index(letter)]
                fixed = tiling.cuts if tiling is not None else fixed
        extent = self._extent(statement, letter)
        return Axis(letter, extent, fixed).cut(math.ceil(extent / count))

    def _is_worth(self, statement: Contract | Map, placed: PlacedStatement, letter: str, cuts: Cuts) -> bool:
        if not isinstance(statement, Contract):
            return True
        seconds = []
        for first, last in ((0, cuts[-1]), (cuts[0], cuts[1])):
            arrays = self._sections(statement, {letter: (first, last)}, {})
            plan = self._planned(statement, arrays, placed.memory_bytes, statement.accumulate)[1]
            seconds.append(plan.predicted.seconds)
        return seconds[1] * cuts[-1] / (cuts[1] - cuts[0]) <= _SLOWER * seconds[0]

    def _extent(self, statement: Contract | Map, letter: str) -> int:
        return next(
            each.shape[labels.index(letter)] for each, labels in arrays_of(statement) if letter in labels
        )

    # ---- one part ----

    def _part(
        self,
        statement: Contract | Map,
        placed: PlacedStatement,
        within: Within | None,
        others: Region,
        letter: str,
        part: tuple[int, int],
        watch: Told | None,
    ) -> Amounts:
        region = {**others, **({letter: part} if letter else {})}
        output = labels_of(statement)[-1]
        adds = statement.accumulate or any(
            begin > 0 for each, (begin, _) in region.items() if each not in output
        )
        if within is None:
            arrays = self._sections(statement, region, {})
            return self._carry_out(statement, arrays, placed.memory_bytes, adds, region, watch)
        maker, made = self._program.statements[within.producer], self._program.named(within.variable)
        own, theirs = own_labels(statement, made), labels_of(maker)[-1]
        of_maker = {theirs[own.index(each)]: range_ for each, range_ in region.items() if each in own}
        shape = [
            of_maker[each][1] - of_maker[each][0] if each in of_maker else extent
            for each, extent in zip(theirs, made.shape, strict=True)
        ]
        with GlobalArray(self._world, shape, made.dtype) as box:
            here = LocalOperand(box.local) if self._world.size == 1 else operand(box)
            memory_bytes = placed.memory_bytes - math.ceil(here.facts.bytes / self._world.size)
            boxes = {made.number: here}
            arrays = self._sections(maker, of_maker, boxes)
            total = self._carry_out(maker, arrays, memory_bytes, False, of_maker, None)
            arrays = self._sections(statement, region, boxes)
            return total + self._carry_out(statement, arrays, memory_bytes, adds, region, watch)

    def _sections(
        self, statement: Contract | Map, region: Region, boxes: Mapping[int, Operand]
    ) -> list[Operand]:
        """Sections of operands and result; boxes are sections already."""
        result = []
        for each, labels in arrays_of(statement):
            found = boxes.get(each.number)
            if found is None:
                found = self._operand_of(each)
                for letter, (first, last) in region.items():
                    found = section(found, labels, letter, first, last)
            result.append(found)
        return result

    def _carry_out(
        self,
        statement: Contract | Map,
        arrays: Sequence[Operand],
        memory_bytes: int,
        accumulate: bool,
        region: Region,
        watch: Told | None,
    ) -> Amounts:
        """Carries out the part of a statement in a region. `arrays` are sections of the region."""
        if not isinstance(statement, Contract):
            begin = [region.get(letter, (0, 0))[0] for letter in labels_of(statement)[-1]]
            threads = self._plan.rates.threads
            return Mapped(self._world, statement, arrays, memory_bytes, threads, watch, begin).run()
        job, plan = self._planned(statement, arrays, memory_bytes, accumulate)
        _, amounts = job.run(plan, accumulate=accumulate, scale=statement.scale, progress=watch)
        return amounts

    def _planned(
        self, statement: Contract, arrays: Sequence[Operand], memory_bytes: int, accumulate: bool
    ) -> tuple[Contraction, Plan]:
        *operands, out = arrays
        rates = self._rates
        job = Contraction(
            statement.subscripts,
            operands,
            out,
            self._world,
            memory_bytes,
            rates.threads,
            checks_symmetry=False,  # checked when the statement was recorded; sections cannot tell
        )
        places = [(each.facts.shape, each.facts.where, each.facts.tiles) for each in arrays]
        key = id(statement), memory_bytes, accumulate, *places
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = job.make_plan(rates, adds=accumulate)
        return job, plan


def _share(watch: Told | None, before: int, own: int, total: int) -> Told | None:
    """The function that tells the progress of one part of several, by numbers of elements."""
    if watch is None:
        return None
    # Divided last: at the end of the last part it is 1, without rounding.
    return lambda fraction, task, tasks: watch((before + own * fraction) / total, task, tasks)
