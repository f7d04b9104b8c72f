"""Whether a product of tensors must have a symmetry, for all elements: then part of a result may be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outcore.tensor.layout.expression import Expression
from outcore.tensor.layout.symmetry import Permutation, Symmetry


@dataclass(frozen=True)
class Factor:
    """An operand: which array it is, as equal ones may change places, and its symmetry."""

    array: int
    labels: str
    symmetry: Symmetry


def factors(expression: Expression, arrays: Sequence[object], symmetries: Sequence[Symmetry]) -> list[Factor]:
    """Of the operands of an expression; the same array twice has one number."""
    numbers = [id(array) for array in arrays]
    return [
        Factor(number, labels, symmetry)
        for number, labels, symmetry in zip(numbers, expression.inputs, symmetries, strict=True)
    ]


def missing(expression: Expression, operands: Sequence[Factor], wanted: Symmetry) -> Permutation | None:
    """A permutation of the wanted symmetry that the result need not have; None: it has them all."""
    for permutation, sign in wanted.elements.items():
        if not _has(expression, operands, permutation, sign):
            return permutation
    return None


def _has(expression: Expression, operands: Sequence[Factor], permutation: Permutation, sign: int) -> bool:
    """Whether the axes of the output can be permuted with this sign: then some renaming of summed indices makes
    each operand, its output indices permuted, one of the operands as they are, up to their own symmetry."""
    output = expression.output
    renamed = {label: output[axis] for label, axis in zip(output, permutation, strict=True)}
    return _match(operands, list(range(len(operands))), renamed, sign, 0)


def _match(
    operands: Sequence[Factor], left: list[int], renamed: dict[str, str], sign: int, number: int
) -> bool:
    """Whether operands from `number` on can be matched with those that are `left`, the renaming going on."""
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
    """With each label the other one; None if that is no renaming."""
    found = dict(known)
    for label, other in zip(labels, others, strict=True):
        if found.setdefault(label, other) != other:
            return None
    return found if len(set(found.values())) == len(found) else None
