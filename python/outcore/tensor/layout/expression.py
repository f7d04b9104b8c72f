"""The contraction that a caller asks for: subscripts as in `numpy.einsum`, checked against shapes.

parse("ijcd,Qac,Qbd->ijab", [t2.shape, b.shape, b.shape])
"""

from __future__ import annotations

import errno
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from outcore.base.errors import OutcoreError

Shape = Sequence[int]


@dataclass(frozen=True)
class Expression:
    """One letter for each axis of each input and of the output. `extents`: elements along each axis, by letter."""

    inputs: tuple[str, ...]
    output: str
    extents: dict[str, int]

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"{','.join(self.inputs)}->{self.output}"

    def shape(self, labels: str) -> tuple[int, ...]:
        return tuple(self.extents[label] for label in labels)

    def size(self, labels: str) -> int:
        """Number of elements of an array with these axes."""
        product = 1
        for label in labels:
            product *= self.extents[label]
        return product


def parse(subscripts: str, shapes: Sequence[Shape]) -> Expression:
    """The expression of subscripts, which mean the same as in `numpy.einsum`: letters and `...`. Without an output,
    the output has the letters that occur once, in alphabetic order.

    Raises: OutcoreError (EINVAL) if something does not fit; the error names it.
    """
    if not isinstance(subscripts, str):
        raise _refused(repr(subscripts), "the subscripts are text such as 'ik,kj->ij'")
    return _parsed("".join(subscripts.split()), tuple(map(tuple, shapes)))


@lru_cache(maxsize=1000)  # loops contract the same arrays again
def _parsed(text: str, shapes: tuple[tuple[int, ...], ...]) -> Expression:
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(shapes):
        raise _refused(text, f"subscripts of {len(inputs)} operands, {len(shapes)} are given")
    inputs, dots = _without_dots(text, inputs, shapes)
    for labels in [*inputs, output.replace("...", "")]:
        for label in labels:
            if label not in string.ascii_letters:
                raise _refused(text, f"'{label}' is no letter")
    counts = Counter("".join(inputs))
    if not arrow:
        output = dots + "".join(sorted(label for label, n in counts.items() if n == 1 and label not in dots))
    else:
        if dots and "..." not in output:
            raise _refused(text, "the output has no '...'")
        output = output.replace("...", dots)
    for label, count in Counter(output).items():
        if count > 1:
            raise _refused(text, f"'{label}' occurs {count} times in the output")
        if label not in counts:
            raise _refused(text, f"'{label}' of the output is in no operand")
    return Expression(tuple(inputs), output, _extents(text, inputs, shapes))


def _extents(text: str, inputs: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    extents: dict[str, int] = {}
    for number, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        if len(labels) != len(shape):
            raise _refused(text, f"operand {number} has {len(shape)} axes, its subscripts '{labels}'")
        for label, extent in zip(labels, shape, strict=True):
            known = extents.setdefault(label, int(extent))
            if known != extent:
                raise _refused(
                    text, f"'{label}' has extent {known}, and {extent} in operand {number} ('{labels}')"
                )
    return extents


def _without_dots(text: str, inputs: Sequence[str], shapes: Sequence[Shape]) -> tuple[list[str], str]:
    """The inputs with unused letters for `...`, aligned at the last axes; and all these letters."""
    free = [label for label in reversed(string.ascii_letters) if label not in text]
    longest, result = 0, []
    for given, shape in zip(inputs, shapes, strict=True):
        labels, count = given, 0
        if "." in labels:
            count = len(shape) - len(labels) + 3
            if labels.count("...") != 1 or labels.count(".") != 3 or not 0 <= count <= len(free):
                raise _refused(text, f"'{labels}' does not fit {len(shape)} axes")
            labels = labels.replace("...", "".join(reversed(free[:count])))
        longest = max(longest, count)
        result.append(labels)
    return result, "".join(reversed(free[:longest]))


def _refused(text: str, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, f"einsum '{text}'", detail=detail)
