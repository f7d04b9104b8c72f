"""How few bytes a product must move between memory and disk, whatever its order and tiles.

docs/why/bounds.md derives it. A run is cut into h parts that read or begin equally many words. A word of the result
begins in memory, and is written at last. A part finds S words in memory, the first one none: with Q words in all it
has S + Q/h. Z words allow at most (Z/3)^1.5 multiplications (Loomis, Whitney). So Q has to be large enough for any
h. For many parts it is 2mnk/sqrt(S) - 2S (Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017).

An array times itself may move less, as a word serves on both sides:

- where the result is symmetric, Z words allow (2/3) Z^1.5/sqrt(6) multiplications below the diagonal (Beaumont,
  Eyraud-Dubois, Verite, Langou, arXiv 2202.10217). What lies above it is written, too;
- else twice as many as of two arrays: those allow most if all three have Z/3 words, and two are the same now.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import Facts, Mask

_MANY = 200  # parts of a run: of more the closed form is as good


@dataclass(frozen=True)
class MovedOnce:
    """Bytes of each array if it is moved once; 0 for what lies in memory."""

    left: float
    right: float
    out: float
    one_array: bool = False  # left and right

    @property
    def once(self) -> float:
        return self.out + (max(self.left, self.right) if self.one_array else self.left + self.right)

    @property
    def all_on_disk(self) -> bool:
        return min(self.left, self.right, self.out) > 0


@dataclass(frozen=True)
class ProductKind:
    """Of a product.

    Attributes:
        of_words: Z words in memory allow of_words Z^1.5 of the multiplications that count.
        share: of the multiplications that counts.
        twice: of the words of the result the share that is written without being counted as begun.
    """

    of_words: float
    share: float = 1.0
    twice: float = 0.0


TWO_ARRAYS = ProductKind(3**-1.5)
ONE_ARRAY = ProductKind(2 * 3**-1.5)


def symmetric(rows: int) -> ProductKind:
    """Of an array times itself whose result is symmetric, of so many rows. The diagonal is written, but does not
    count."""
    below = (1 - 1 / max(1, rows)) / 2
    return ProductKind(2 / (3 * math.sqrt(6)), below, 1 - below)


def least_bytes(
    multiplications: float,
    moved: MovedOnce,
    memory_bytes: float,
    word_bytes: int,
    kind: ProductKind = TWO_ARRAYS,
) -> float:
    """Bytes that a product moves at least in `memory_bytes`.

    Args:
        multiplications: m n k, of tiles that are not zero if arrays are sparse, all batches together.
        moved: what has to be moved once. Where an array lies in memory only that holds.
        word_bytes: of an element as it lies on disk, the smallest of the arrays.
    """
    words = memory_bytes / word_bytes
    if words <= 0 or not moved.all_on_disk:
        return moved.once
    volume = least_words(kind.share * multiplications, words, kind.of_words)
    return max(moved.once, volume * word_bytes + kind.twice * moved.out)


def least_words(work: float, words: float, of_words: float, power: float = 1.5) -> float:
    """Words that are read or begun at least, if Z words in memory allow of_words Z^power of the work."""
    # A part of so many words is best where there are many parts; of few parts those nearby are tried.
    each = words / (power - 1)
    whole = work / (of_words * math.pow(words + each, power))
    found = each * (whole - 1)
    if whole > _MANY:
        return found
    counts = {max(1, round(whole * tenths / 10)) for tenths in range(5, 15)}
    return max(found, *(_in_parts(work / of_words, words, count, power) for count in counts))


def _in_parts(needed: float, words: float, parts: int, power: float) -> float:
    """The same for so many parts, whose last words are not all there: X^power + (parts - 1) (words + X)^power is
    `needed` at least with X words in each."""
    low, high = 0.0, math.pow(needed, 1 / power)  # one part by itself
    for _ in range(40):
        middle = (low + high) / 2
        enough = math.pow(middle, power) + (parts - 1) * math.pow(words + middle, power) >= needed
        low, high = (low, middle) if enough else (middle, high)
    return parts * (low - 1)


# ---- of arrays ----


def bound(problem: ProductProblem, memory_bytes: float) -> float:
    """Bytes that a product must move between disk and memory."""
    product, facts = problem.product, [each for _, each in problem.arrays]
    labels = product.left, product.right, product.out
    left, right, out = needed_bytes(labels, facts)
    moved = MovedOnce(left, right, 2 * out if problem.adds else out, problem.is_of_one_array)
    words = [each.item_bytes for each in facts]
    work = _Tiles(labels, facts).multiplications
    return least_bytes(work, moved, memory_bytes, min(words), _kind(problem))


def received_bound(problem: ProductProblem, memory_bytes: float, processes: int) -> float:
    """Bytes that processes of so much memory each receive and write at least, from disk or from each other, however
    they divide the work: COSMA's bound (Kwasniewski and others, 2019). 0 where an array lies in memory: a process
    may have its part there already."""
    facts = [each for _, each in problem.arrays]
    word = min(each.item_bytes for each in facts)
    words = memory_bytes / word
    if words <= 0 or any(each.where != "disk" for each in facts):
        return 0.0
    labels = problem.product.left, problem.product.right, problem.product.out
    kind, work = _kind(problem), _Tiles(labels, facts).multiplications
    # By many parts of a run, which is linear in the work: any division of the work has the same sum.
    parts = kind.share * work / (kind.of_words * math.pow(3 * words, 1.5))
    return max(0.0, 2 * words * (parts - processes) * word)


def _kind(problem: ProductProblem) -> ProductKind:
    if problem.is_symmetric:
        return symmetric(problem.product.sizes(problem.extents)[1])
    return ONE_ARRAY if problem.is_of_one_array else TWO_ARRAYS


def needed_bytes(labels: Sequence[str], facts: Sequence[Facts]) -> list[float]:
    """Of operands and of the result, which is the last: what has to move of each that lies on disk. Of an operand
    those elements count on which a stored tile of the result depends: the diagonal, where a letter comes twice, and
    no tiles that are multiplied by zeros alone. Of tiles that are equal by symmetry one counts."""
    tiles = _Tiles(labels, facts)
    return [
        tiles.elements(number) * each.item_bytes if each.where == "disk" else 0.0
        for number, each in enumerate(facts)
    ]


class _Tiles:
    """Which are not zero, where that is known, and how many elements they have along each axis. An axis without
    tiles is as one tile."""

    def __init__(self, labels: Sequence[str], facts: Sequence[Facts]) -> None:
        self._labels = labels
        self._there = [*(each.readable for each in facts[:-1]), facts[-1].stored]
        self._stored = [each.readable if each.stored is None else each.stored for each in facts]
        self._sizes: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
        for word, each, mask in zip(labels, facts, self._stored, strict=True):
            for label, extent, cuts in zip(word, each.shape, each.tiles, strict=True):
                if mask is not None and cuts is not None:
                    self._sizes[label] = np.diff(cuts).astype(float)
                else:
                    self._sizes.setdefault(label, np.array([float(extent)]))

    @property
    def multiplications(self) -> float:
        return self._elements(self._masks(self._there), "".join(self._sizes))

    def elements(self, number: int) -> float:
        """That have to move of an array."""
        letters = "".join(dict.fromkeys(self._labels[number]))
        masks: list[Mask | None] = [None] * len(self._there)
        if number < len(masks) - 1:  # of the result all that is stored is put, zeros too
            masks = [*self._there]
        masks[number] = self._stored[number]
        if all(mask is None for mask in masks):
            return self._elements([], letters)
        ones = [(np.ones(len(self._sizes[label])), label) for label in letters]
        needed = np.asarray(self._einsum([*self._masks(masks), *ones], letters) > 0, float)
        return self._elements([(needed, letters)], letters)

    def _masks(self, masks: Sequence[Mask | None]) -> list[tuple[Any, str]]:
        found = zip(masks, self._labels, strict=True)
        return [(mask.astype(float), word) for mask, word in found if mask is not None]

    def _elements(self, masks: Sequence[tuple[Any, str]], letters: str) -> float:
        if not masks:
            return math.prod(float(self._sizes[label].sum()) for label in letters)
        return float(self._einsum([*masks, *((self._sizes[label], label) for label in letters)], ""))

    def _einsum(self, arrays: Sequence[tuple[Any, str]], out: str) -> Any:
        numbers = {label: number for number, label in enumerate(self._sizes)}
        given = [part for array, word in arrays for part in (array, [numbers[label] for label in word])]
        return (
            np.einsum(*given, [numbers[label] for label in out], optimize=len(arrays) > 2) if given else 1.0
        )
