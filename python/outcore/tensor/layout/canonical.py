"""The form in which two arrays are multiplied: out[batch, rows, columns] += left[batch, rows, inner] right[batch,
inner, columns], each group a few axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Extents = Mapping[str, int]


def size(labels: str, extents: Extents) -> int:
    """Number of elements of an array with these axes."""
    product = 1
    for label in labels:
        product *= extents[label]
    return product


@dataclass(frozen=True)
class Binary:
    """A product of two arrays. `left`, `right` and `out` have one letter for each axis; the groups have each letter
    once. A letter that an operand has twice means its diagonal."""

    left: str
    right: str
    out: str
    batch: str
    rows: str
    columns: str
    inner: str

    def __str__(self) -> str:
        return f"{self.left},{self.right}->{self.out}"

    @property
    def groups(self) -> tuple[str, str, str, str]:
        return self.batch, self.rows, self.columns, self.inner

    def sizes(self, extents: Extents) -> tuple[int, int, int, int]:
        """Sizes of batch, rows, columns and inner."""
        b, m, n, k = (size(group, extents) for group in self.groups)
        return b, m, n, k


def binary(left: str, right: str, out: str, extents: Extents) -> Binary:
    """A product and its groups of axes. Each group has the order of the largest array with these axes. That array
    is then a matrix without a permutation, if the order of its axes allows it at all.

    Every letter of one operand alone must be in `out`. `alone` finds those that are not, which are summed first.
    """
    a, b, c = set(left), set(right), set(out)

    def ordered(letters: set[str], *arrays: str) -> str:
        best = max(arrays, key=lambda labels: size("".join(set(labels)), extents))
        return "".join(dict.fromkeys(label for label in best if label in letters))

    return Binary(
        left=left,
        right=right,
        out=out,
        batch=ordered(a & b & c, left, right, out),
        rows=ordered((a & c) - b, left, out),
        columns=ordered((b & c) - a, right, out),
        inner=ordered((a & b) - c, left, right),
    )


def alone(labels: str, others: str) -> str:
    """The letters of an operand that nothing else has. They have to be summed over."""
    return "".join(dict.fromkeys(label for label in labels if label not in others))
