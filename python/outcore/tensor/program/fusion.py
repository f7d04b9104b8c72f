"""Intermediate arrays of a program that need not be stored, as the statements that use them can make them for
themselves, box by box.

An array that one statement uses is made in the loop over boxes of that statement (fusion). One that several
statements use, or the iterations of a loop, is recomputed in each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.cells import Axis, Cuts
from outcore.tensor.layout.operands import Facts
from outcore.tensor.layout.section import section_facts
from outcore.tensor.plan.statements import Contract

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.tensor.plan.statements import Map
    from outcore.tensor.program.program import Program
    from outcore.tensor.program.recorded import Variable

_MAX_BOXES = 500
LETTERS = "abcdefghijklmnopqrstuvwxyz"  # for axes of functions of tiles


@dataclass(frozen=True)
class Within:
    """An operand of a statement that the statement makes for itself.

    Attributes:
        variable: its name.
        producer: number of the statement that defines it, and does not run by itself.
        axis: the axis of the operand along which it is cut into boxes.
        cuts: boundaries of the boxes.
    """

    variable: str
    producer: int
    axis: int
    cuts: Cuts


@dataclass(frozen=True, eq=False)
class Candidate:
    """An intermediate array, the statement that makes it, and those that use it."""

    variable: Variable
    producer: int
    consumers: tuple[int, ...]


def candidates(program: Program) -> dict[int, Candidate]:
    """Candidates by number of the variable."""
    found = (_candidate(program, variable) for variable in program.variables)
    return {each.variable.number: each for each in found if each is not None}


def _candidate(program: Program, variable: Variable) -> Candidate | None:
    if variable.source is not None or variable.is_output or not variable.shape or variable.layout is not None:
        return None
    statements = program.statements
    writers = [n for n, each in enumerate(statements) if any(v is variable for v in each.writes)]
    readers = [n for n, each in enumerate(statements) if any(v is variable for v in each.operands)]
    if len(writers) != 1 or not readers:
        return None
    (producer,) = writers
    maker = statements[producer]
    if not isinstance(maker, Contract) or maker.accumulate:
        return None
    for reader in readers:
        once = sum(v is variable for v in statements[reader].operands) == 1
        once &= gives_sections(statements[reader].out, program.world)
        if not once or not _is_unchanged(program, producer, reader, maker.operands):
            return None
    return Candidate(variable, producer, tuple(readers))


def gives_sections(out: Variable, world: World) -> bool:
    """Whether results can be put into sections of an array: not into tiles that have copies."""
    has_tiles = any(tiling is not None for tiling in out.facts.tilings)
    return out.source is None or not has_tiles or operand(out.source).copies(world) == 1


def _is_unchanged(program: Program, producer: int, reader: int, operands: Sequence[Variable]) -> bool:
    """Whether a later statement finds operands as the producer found them: no statement between them writes
    operands, nor does the later one, nor a loop that is around the later one alone."""
    if reader <= producer:
        return False
    between = set(range(producer, reader + 1))
    for loop in program.loops:
        around = loop.first <= reader < loop.last
        if loop.first <= producer < loop.last:
            if not around:
                return False
        elif around:
            between |= set(range(loop.first, loop.last))
    written = [out for number in between for out in program.statements[number].writes]
    return not any(out is each for out in written for each in operands)


# ---- boxes ----


def labels_of(statement: Contract | Map) -> list[str]:
    """Letters of each operand and of the result."""
    from outcore.tensor.layout.expression import parse

    if not isinstance(statement, Contract):
        return [LETTERS[: len(statement.out.shape)]] * (len(statement.operands) + 1)
    expression = parse(statement.subscripts, [each.shape for each in statement.operands])
    return [*expression.inputs, expression.output]


def ways_to_cut(
    candidate: Candidate, program: Program, consumer: int, box_bytes: Sequence[float]
) -> Iterator[Within]:
    """Ways to cut the array into boxes of at most `box_bytes` each, along the axis for which least is read
    again."""
    maker, user = program.statements[candidate.producer], program.statements[consumer]
    variable = candidate.variable
    pairs = [(maker, labels_of(maker)[-1]), (user, own_labels(user, variable))]
    best: tuple[float, int, list[Cuts]] | None = None
    for axis in range(len(variable.shape)):
        fixed: list[Cuts] = []
        again = 0.0
        for statement, own in pairs:
            for each, word in arrays_of(statement):
                if own[axis] not in word:
                    again += each.facts.bytes * (2 if each is statement.out else 1)
                elif (
                    word.count(own[axis]) > 1
                    or each.facts.readable is not None
                    or each.facts.stored is not None
                ):
                    again = math.inf
                else:
                    tiling = each.facts.tilings[word.index(own[axis])]
                    fixed += [] if tiling is None or tiling.cuts in fixed else [tiling.cuts]
        if len(fixed) < 2 and again < (math.inf if best is None else best[0]):
            best = again, axis, fixed
    if best is None:
        return
    _, axis, fixed = best
    extent, seen = variable.shape[axis], set()
    for most in box_bytes:
        length = int(most // max(1, variable.facts.bytes // extent))
        cuts = Axis("", extent, fixed[0] if fixed else None).cut(max(1, length))
        if cuts not in seen and largest(cuts) <= length and len(cuts) <= _MAX_BOXES:
            seen.add(cuts)
            yield Within(variable.name, candidate.producer, axis, cuts)


def arrays_of(statement: Contract | Map) -> list[tuple[Variable, str]]:
    """The arrays of a statement, with their letters."""
    return list(zip([*statement.operands, statement.out], labels_of(statement), strict=True))


def own_labels(statement: Contract | Map, variable: Variable) -> str:
    """Letters of an operand."""
    return next(word for each, word in arrays_of(statement) if each is variable)


def own_letter(statement: Contract | Map, variable: Variable, axis: int) -> str:
    """The letter of an axis of an operand."""
    return own_labels(statement, variable)[axis]


def best_letters(arrays: Sequence[tuple[Variable, str]]) -> list[str]:
    """Axes along which a statement may be carried out in parts, first the one for which least is read again.
    `arrays`: its operands and result, with their letters."""
    again = {}
    for letter in dict.fromkeys("".join(word for _, word in arrays)):
        extents = [v.shape[word.index(letter)] for v, word in arrays if letter in word]
        if extents[0] > 1 and all(word.count(letter) <= 1 for _, word in arrays):
            missing = [(n, v.facts.bytes) for n, (v, word) in enumerate(arrays) if letter not in word]
            again[letter] = sum(nbytes * (2 if n == len(arrays) - 1 else 1) for n, nbytes in missing)
    return sorted(again, key=lambda letter: again[letter])


def largest(cuts: Cuts) -> int:
    return max(end - begin for begin, end in itertools.pairwise(cuts))


def cut_facts(facts: Facts, labels: str, letter: str, begin: int, end: int) -> Facts:
    """Facts of the part of an array between two places along `letter`; of all of it, if it has no such axis."""
    return section_facts(facts, labels.index(letter), begin, end) if letter in labels else facts


def box_bytes(variable: Variable, axis: int, length: int) -> int:
    """Bytes of a box of this length along an axis."""
    facts = variable.facts
    return math.prod(facts.shape) // facts.shape[axis] * length * facts.item_bytes
