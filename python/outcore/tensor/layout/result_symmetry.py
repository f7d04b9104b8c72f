"""Finds whether a product of tensors must have a symmetry, whatever their elements are. Then part of the result
need not be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcore.tensor.layout.expression import Expression
from outcore.tensor.layout.symmetry import Permutation, Symmetry


@dataclass(frozen=True)
class Factor:
    """An operand and its symmetry. `array`: the number of its array; operands of the same array may change
    places."""

    array: int
    labels: str
    symmetry: Symmetry


def factors(expression: Expression, arrays: Sequence[object], symmetries: Sequence[Symmetry]) -> list[Factor]:
    """The factors of an expression. Operands that are the same array have the same number."""
    numbers = [id(array) for array in arrays]
    return [
        Factor(number, labels, symmetry)
        for number, labels, symmetry in zip(numbers, expression.inputs, symmetries, strict=True)
    ]


def missing(expression: Expression, operands: Sequence[Factor], wanted: Symmetry) -> Permutation | None:
    """A permutation of the wanted symmetry that the result need not have; None if it must have all."""
    for permutation, sign in wanted.elements.items():
        if not _has(expression, operands, permutation, sign):
            return permutation
    return None


def _has(expression: Expression, operands: Sequence[Factor], permutation: Permutation, sign: int) -> bool:
    """Whether the output must have this permutation of its axes with this sign. It must, if some renaming of summed
    indices turns the operands, with permuted output indices, into the operands as they are, up to their own
    symmetry."""
    output = expression.output
    renamed = {label: output[axis] for label, axis in zip(output, permutation, strict=True)}
    return _match(operands, list(range(len(operands))), renamed, sign, 0)


def _match(
    operands: Sequence[Factor], left: list[int], renamed: dict[str, str], sign: int, number: int
) -> bool:
    """Whether operands from `number` on can be matched with the operands `left` by an extension of `renamed`."""
    if number == len(operands):
        return sign == 1
    mine = operands[number]
    for other in left:
        theirs = operands[other]
        if theirs.array != mine.array:
            continue
        rest = [each for each in left if each != other]
        for axes, factor in mine.symmetry.elements.items():
            extended = _renaming(renamed, mine.labels, [theirs.labels[axis] for axis in axes])
            if extended is not None and _match(operands, rest, extended, sign * factor, number + 1):
                return True
    return False


def _renaming(known: dict[str, str], labels: str, others: Sequence[str]) -> dict[str, str] | None:
    """The renaming `known` with a new name for each label. None if two letters would have one name, or one letter
    two names."""
    found = dict(known)
    for label, other in zip(labels, others, strict=True):
        if found.setdefault(label, other) != other:
            return None
    return found if len(set(found.values())) == len(found) else None
