"""Spins of the parts of states of open shells.

An orbital has a spin, or is the one orbital x that nothing couples to: an ionised electron goes there, an attached
one comes from there. Doubles R[a,i,b,j] change their sign if i and j, or a and b, are exchanged; of parts that
differ by this alone, one is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.spaces import PAIR
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling

if TYPE_CHECKING:
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile
    from outcore.tensor.layout.symmetry import Symmetry

Values = np.ndarray[Any, np.dtype[Any]]
Pair = tuple[int, int]
Labels = tuple[int, int, int, int]

ALPHA, BETA, NONE = 0, 1, 2
"""NONE: the orbital x."""

_ORDERS = (((0, 1, 2, 3), 1.0), ((0, 3, 2, 1), -1.0), ((2, 1, 0, 3), -1.0), ((2, 3, 0, 1), 1.0))
"""Orders of a, i, b, j, with their signs."""


@dataclass(frozen=True)
class OpenStateBlocks:
    """name: of arrays in the plan. singles: spins of a and i. doubles: of a, i, b, j; where a and b differ, a is
    of alpha."""

    name: str
    singles: tuple[Pair, ...]
    doubles: tuple[Labels, ...]

    def array_name(self, part: int) -> str:
        """Names of arrays of vectors, without their number."""
        return f"{self.name}{_word(self.doubles[part])}_"

    def scratch_name(self, part: int) -> str:
        return f"{self.name}x{_word(self.doubles[part])}"

    def ladder_name(self, part: int) -> str:
        return f"{self.name}A{_word(self.doubles[part])}"

    def left_ladder_name(self, part: int) -> str:
        return f"{self.name}P{_word(self.doubles[part])}"

    @property
    def keeps_spin(self) -> bool:
        """Whether doubles have the spins of amplitudes."""
        return self.doubles[1] == (0, 0, 1, 1)

    def rings(self) -> list[Labels]:
        """Spins p, q, c, k of the derivatives of (ki|ac)."""
        found = {
            (p, q, c, k) for c in (0, 1) for k in (0, 1) for p in (0, 1, 2) for q in (0, 1, 2)
            if (p == c and (k, q) in self.singles) or (k == q and (p, c) in self.singles)
        }  # fmt: skip
        return sorted(found)

    def ring_name(self, labels: Labels) -> str:
        return f"{self.name}r{_word(labels)}"


EE = OpenStateBlocks("uee", ((0, 0), (1, 1)), ((0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1)))
SF = OpenStateBlocks("usf", ((1, 0),), ((1, 0, 1, 1), (0, 0, 1, 0)))
IP = OpenStateBlocks("uip", ((2, 0), (2, 1)), ((0, 0, 2, 0), (1, 1, 2, 0), (0, 0, 2, 1), (1, 1, 2, 1)))
EA = OpenStateBlocks("uea", ((0, 2), (1, 2)), ((0, 2, 0, 0), (0, 2, 1, 1), (0, 2, 1, 0), (1, 2, 1, 1)))
ALL = (EE, SF, IP, EA)


def _word(labels: Iterable[int]) -> str:
    return "".join("abx"[each] for each in labels)


class OrbitalRanges:
    """Occupied and virtual orbitals of a spin, or the orbital x."""

    def __init__(self, spaces: tuple[Spaces, ...]) -> None:
        one = Tiling(1)
        self.occupied = [*(each.o for each in spaces), one]
        self.virtual = [*(each.v for each in spaces), one]
        self._made: dict[tuple[Labels, Symmetry | None], Layout] = {}  # each serves many arrays

    def layout(self, labels: Labels) -> Layout:
        """The layout of doubles."""
        a, i, b, j = labels
        return self._layout(labels, PAIR if a == i == b == j else None)

    def free(self, labels: Labels) -> Layout:
        """The layout of doubles, without symmetry."""
        return self._layout(labels, None)

    def _layout(self, labels: Labels, symmetry: Symmetry | None) -> Layout:
        if (labels, symmetry) not in self._made:
            a, i, b, j = labels
            tilings = self.virtual[a], self.occupied[i], self.virtual[b], self.occupied[j]
            self._made[labels, symmetry] = Layout(tilings, None, symmetry)
        return self._made[labels, symmetry]


@dataclass(frozen=True)
class FoundPart:
    """A part, with the letters of its axes."""

    array: Array
    letters: str
    sign: float


class AntisymmetricDoubles:
    """Antisymmetric doubles, by spins. negative: spins of arrays that have the other sign."""

    def __init__(self, arrays: Mapping[Labels, Array], negative: Iterable[Labels] = ()) -> None:
        self._arrays, self._negative = dict(arrays), frozenset(negative)

    def find(self, labels: Labels, letters: str) -> FoundPart | None:
        """The array of R of these spins, with letters for a, i, b, j; None: R has no such part."""
        for order, sign in _ORDERS:
            key = (labels[order[0]], labels[order[1]], labels[order[2]], labels[order[3]])
            if key in self._arrays:
                weight = -sign if key in self._negative else sign
                return FoundPart(self._arrays[key], "".join(letters[n] for n in order), weight)
        return None


@dataclass(frozen=True)
class Folding:
    """How a part is made from terms x, which are antisymmetrised.

    orders: one for each different order of spins: letters of x's a, i, b, j in those of the part, and the sign.
    virtual, occupied: whether a and b, and i and j, are exchanged after that, with the other sign.
    """

    orders: tuple[tuple[str, float], ...]
    virtual: bool
    occupied: bool

    @staticmethod
    def of(labels: Labels) -> Folding:
        a, i, b, j = labels
        orders, seen = [], set()
        for order, sign in _ORDERS:
            key = tuple(labels[n] for n in order)
            if key not in seen:
                seen.add(key)
                orders.append(("".join("aibj"[n] for n in order), sign))
        return Folding(tuple(orders), a == b, i == j)

    @property
    def count(self) -> int:
        """The factor that antisymmetrisation gives to a term that is antisymmetric already."""
        return (2 if self.virtual else 1) * (2 if self.occupied else 1)

    def apply(self, array: Array, tile: Tile) -> Values:
        found = array.get_tile(tile)
        if self.virtual:
            a, _, b, _ = tile
            found = found - array.get_tile((b, 0, a, 0)).transpose(2, 1, 0, 3)
        if self.occupied:
            found = found - found.transpose(0, 3, 2, 1)
        return found.copy()


def blocks_of(kind: OpenStateBlocks, spaces: Sequence[Spaces], singles: Values) -> dict[Pair, Values]:
    """Singles [i,a] by their spins a, i, of one row."""
    inside = [*(each.occupied for each in spaces), 1]
    outside = [*(each.virtual for each in spaces), 1]
    found, begin = {}, 0
    for a, i in kind.singles:
        end = begin + inside[i] * outside[a]
        found[a, i] = singles[begin:end].reshape(inside[i], outside[a])
        begin = end
    return found


def flat(blocks: Iterable[Values]) -> Values:
    """Singles [i,a] of all spins as one row."""
    return np.concatenate([each.ravel() for each in blocks])
