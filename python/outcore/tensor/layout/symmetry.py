"""Permutations of the axes of a tensor that leave it unchanged, or change its sign."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from outcore.job import arguments

Permutation = tuple[int, ...]

_MAX_RANK = 8
_WORD = re.compile(r"\s*(pair|symmetric|antisymmetric)\s*(?:\(([^)]*)\))?\s*[,;]?")


class Symmetry:
    """A group of permutations with signs. For the tensor T each has transpose(T, permutation) == sign * T.

    Args:
        rank: number of axes of the tensor.
        generators: permutations and their signs (1 or -1); the group has all their products.

    Raises ValueError if a generator is no permutation, or if only a zero tensor has the symmetry.
    """

    __slots__ = ("elements", "rank")

    def __init__(self, rank: int, generators: Iterable[tuple[Sequence[int], int]] = ()) -> None:
        self.rank = arguments.integer("rank", rank)
        self.elements: dict[Permutation, int] = _closed(self.rank, [(tuple(p), s) for p, s in generators])

    @classmethod
    def parse(cls, given: Symmetry | str | Sequence[str] | None, rank: int) -> Symmetry:
        """The symmetry of a tensor of `rank` axes, from words. Several words may be combined:

        - "pair": the axes are two halves, whose pairs may be exchanged: t[i,j,a,b] = t[j,i,b,a];
        - "symmetric(0,1)", "antisymmetric(2,3)": these axes, two or more, may be exchanged in any way.
        """
        if isinstance(given, Symmetry):
            if given.rank != rank:
                raise ValueError(f"a symmetry of {given.rank} axes for {rank}")
            return given
        words = [] if given is None else [given] if isinstance(given, str) else list(given)
        return cls(rank, [each for word in words for each in _generators(word, rank)])

    @property
    def order(self) -> int:
        """Number of elements of the group; 1: no symmetry."""
        return len(self.elements)

    def __bool__(self) -> bool:
        return self.order > 1

    @property
    def has_signs(self) -> bool:
        """Whether some elements change the sign."""
        return -1 in self.elements.values()

    def permuted(self, axes: Sequence[int]) -> Symmetry:
        """The symmetry of transpose(T, axes)."""
        place = {axis: i for i, axis in enumerate(axes)}
        return Symmetry(
            self.rank, [([place[p[axis]] for axis in axes], sign) for p, sign in self.elements.items()]
        )

    def times(self, other: Symmetry) -> Symmetry:
        """The symmetry of the product of two tensors, element by element."""
        common = self.elements.keys() & other.elements.keys()
        return Symmetry(self.rank, [(p, self.elements[p] * other.elements[p]) for p in common])

    def plus(self, other: Symmetry) -> Symmetry:
        """The symmetry of the sum of two tensors."""
        return Symmetry(self.rank, self.elements.items() & other.elements.items())

    def as_json(self) -> list[Any]:
        return [[list(p), sign] for p, sign in sorted(self.elements.items())]

    @classmethod
    def from_json(cls, rank: int, value: list[Any]) -> Symmetry:
        return cls(rank, [(p, sign) for p, sign in value])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Symmetry):
            return NotImplemented
        return self.rank == other.rank and self.elements == other.elements

    def __hash__(self) -> int:
        return hash((self.rank, frozenset(self.elements.items())))

    def __repr__(self) -> str:
        signs = "+-"[: 1 + self.has_signs]
        return f"<outcore.Symmetry of {self.rank} axes, {self.order} permutations ({signs})>"


def compose(first: Permutation, second: Permutation) -> Permutation:
    """transpose(transpose(T, first), second) == transpose(T, compose(first, second))"""
    return tuple(first[axis] for axis in second)


def inverse(permutation: Sequence[int]) -> Permutation:
    result = [0] * len(permutation)
    for i, axis in enumerate(permutation):
        result[axis] = i
    return tuple(result)


def _closed(rank: int, generators: list[tuple[Permutation, int]]) -> dict[Permutation, int]:
    if not 0 <= rank <= _MAX_RANK:
        raise ValueError(f"{rank} axes; there may be {_MAX_RANK} at most")
    for permutation, sign in generators:
        if sorted(permutation) != list(range(rank)):
            raise ValueError(f"{permutation} is no permutation of {rank} axes")
        if sign not in (1, -1):
            raise ValueError(f"the sign of {permutation} is {sign}, neither 1 nor -1")
    found = {tuple(range(rank)): 1}
    new = list(found.items())
    while new:
        products = [(compose(p, q), s * t) for p, s in new for q, t in generators]
        new = []
        for permutation, sign in products:
            known = found.setdefault(permutation, 0)
            if known == 0:
                found[permutation] = sign
                new.append((permutation, sign))
            elif known != sign:
                raise ValueError(f"a tensor that {permutation} leaves unchanged with both signs is zero")
    return found


def _generators(text: str, rank: int) -> list[tuple[Permutation, int]]:
    found, at = [], 0
    while text[at:].strip():
        word = _WORD.match(text, at)
        if word is None:
            raise ValueError(
                f"symmetry {text!r}; it is made of pair, symmetric(0,1) and antisymmetric(0,1), with axes"
            )
        at = word.end()
        if word[1] == "pair":
            found += _pairs(text, word[2], rank)
        else:
            axes = _axes(text, word[2], rank)
            sign = 1 if word[1] == "symmetric" else -1
            found += [(_exchange(rank, [each]), sign) for each in pairwise(axes)]
    return found


def _pairs(text: str, axes: str | None, rank: int) -> list[tuple[Permutation, int]]:
    if axes is not None or rank % 2 or rank < 2:
        raise ValueError(
            f"symmetry {text!r} of {rank} axes; pair is written alone, for an even number of axes"
        )
    half = rank // 2
    return [(_exchange(rank, [(i, i + 1), (i + half, i + half + 1)]), 1) for i in range(half - 1)]


def _axes(text: str, axes: str | None, rank: int) -> list[int]:
    try:
        numbers = [int(each) for each in (axes or "").split(",")]
    except ValueError:
        numbers = []
    if len(numbers) < 2 or len(set(numbers)) < len(numbers) or not all(0 <= n < rank for n in numbers):
        raise ValueError(f"symmetry {text!r}: two or more different axes of 0..{rank - 1} are needed")
    return numbers


def _exchange(rank: int, pairs: Iterable[tuple[int, int]]) -> Permutation:
    axes = list(range(rank))
    for a, b in pairs:
        axes[a], axes[b] = b, a
    return tuple(axes)
