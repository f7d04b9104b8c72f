"""Vectors of states, multipliers and amplitudes as antisymmetric ones of spin orbitals, for `spin_densities`.

Vectors of open shells have this form. For closed shells an ionised state lacks an electron of alpha, an attached
one has an additional one of alpha, and a triplet has the spin projection 0; elements of equal spins are differences
X - X' of those of opposite ones:

    T: T and T - T',  Lambda: (2 L + L') / 3 and (L - L') / 3, with half of l1
    ions from the right R and R - R', from the left (2 L + L') / 3 and (L - L') / 3
    triplets from the right M and A, from the left M and 2 A with half of l1; of beta alone -A and -r1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.excited.open_blocks import (
    ALPHA,
    BETA,
    NONE,
    AntisymmetricDoubles,
    Labels,
    OpenStateBlocks,
    blocks_of,
)
from outcore.chem.cc.equations.excited.spin_densities import SpinVector
from outcore.chem.cc.equations.excited.triplets import parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.equations.multipliers import MultiplierEquations
    from outcore.chem.cc.equations.open_multipliers import OpenMultiplierEquations
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

SAME: Labels = (ALPHA, ALPHA, ALPHA, ALPHA)
MIXED: Labels = (ALPHA, ALPHA, BETA, BETA)
_OTHER: Labels = (BETA, BETA, BETA, BETA)

CLOSED: dict[str, tuple[Labels, Labels]] = {
    "ip": ((ALPHA, ALPHA, NONE, ALPHA), (BETA, BETA, NONE, ALPHA)),
    "ea": ((ALPHA, NONE, ALPHA, ALPHA), (ALPHA, NONE, BETA, BETA)),
    "et": (SAME, MIXED),
}
"""Spins of the doubles in each array, by its name: of equal and of opposite spins."""


class SpinVectors(Protocol):
    """Vectors of one kind of states. A vector is valid until the next one of the same side."""

    t2: AntisymmetricDoubles

    def ground(self, l1: Sequence[Values]) -> SpinVector:
        """The left ground state, from converged multipliers. Collective."""
        ...

    def right(self, vector: StateVector) -> SpinVector:
        """Collective."""
        ...

    def left(self, vector: StateVector) -> SpinVector:
        """Collective."""
        ...


class OpenVectors:
    """Vectors of a reference of two spins."""

    def __init__(self, multipliers: OpenMultiplierEquations, kind: OpenStateBlocks) -> None:
        self._of, self._kind = multipliers, kind
        of = multipliers.of
        self.t2 = _of_amplitudes(of.same, of.mixed)

    def ground(self, l1: Sequence[Values]) -> SpinVector:
        doubles = _of_amplitudes(self._of.same, self._of.mixed)
        return SpinVector({(ALPHA, ALPHA): l1[0], (BETA, BETA): l1[1]}, doubles)

    def right(self, vector: StateVector) -> SpinVector:
        doubles = AntisymmetricDoubles(dict(zip(self._kind.doubles, vector.doubles, strict=True)))
        return SpinVector(blocks_of(self._kind, self._of.spaces, vector.singles), doubles)

    left = right


class ClosedVectors:
    """Vectors of closed shells. The constructor is collective.

    name: begins the names of arrays of the states' doubles.
    """

    def __init__(self, multipliers: MultiplierEquations, name: str) -> None:
        self._of, self._name, self._room = multipliers, name, multipliers.room
        t2, same = multipliers.of.t2, self._room.array("Xt")
        self._put(same, lambda tile: t2.get_tile(tile) - exchanged(t2.get_tile(tile)))
        self.t2 = AntisymmetricDoubles({SAME: same, MIXED: t2, _OTHER: same})
        self._arrays = {
            side: [self._room.array(f"{name}{side}{what}") for what in ("s", "m")] for side in "RL"
        }

    def _put(self, out: Array, values: Callable[[Tile], Values]) -> None:
        self._room.each_tile(out, lambda tile: out.put_tile(tile, values(tile)), "vector of spins")

    def ground(self, l1: Sequence[Values]) -> SpinVector:
        l2 = self._of.multipliers
        same, mixed = self._room.array("Vt"), self._room.array("Rt")
        self._put(same, lambda tile: (l2.get_tile(tile) - exchanged(l2.get_tile(tile))) / 3.0)
        self._put(mixed, lambda tile: (2.0 * l2.get_tile(tile) + exchanged(l2.get_tile(tile))) / 3.0)
        half = 0.5 * l1[0]
        doubles = AntisymmetricDoubles({SAME: same, MIXED: mixed, _OTHER: same})
        return SpinVector({(ALPHA, ALPHA): half, (BETA, BETA): half}, doubles)

    def right(self, vector: StateVector) -> SpinVector:
        return self._made(vector, "R", 1.0, 0.0)

    def left(self, vector: StateVector) -> SpinVector:
        return self._made(vector, "L", 2.0 / 3.0, 1.0 / 3.0)

    def _made(self, vector: StateVector, side: str, own: float, other: float) -> SpinVector:
        """own, other: shares of X and X' in elements of opposite spins, of ions."""
        (doubles,) = vector.doubles
        same, mixed = self._arrays[side]
        if self._name == "et":
            self._put(same, lambda tile: (2.0 if side == "L" else 1.0) * parts(doubles, tile)[0])
            self._put(mixed, lambda tile: parts(doubles, tile)[1])
            singles = (0.5 if side == "L" else 1.0) * vector.singles
            made = AntisymmetricDoubles({SAME: same, MIXED: mixed, _OTHER: same}, negative=[_OTHER])
            return SpinVector({(ALPHA, ALPHA): singles, (BETA, BETA): -singles}, made)
        both = self._ionized if self._name == "ip" else self._attached

        def of_opposite(tile: Tile) -> Values:
            one, turned = both(doubles, tile)
            found: Values = own * one + other * turned
            return found

        def of_equal(tile: Tile) -> Values:
            one, turned = both(doubles, tile)
            found: Values = (own - other) * (one - turned)
            return found

        self._put(mixed, of_opposite)
        self._put(same, of_equal)
        labels = CLOSED[self._name]
        made = AntisymmetricDoubles(dict(zip(labels, (same, mixed), strict=True)))
        if self._name == "ip":
            return SpinVector({(NONE, ALPHA): vector.singles[:, None]}, made)
        return SpinVector({(ALPHA, NONE): vector.singles[None, :]}, made)

    @staticmethod
    def _ionized(doubles: Array, tile: Tile) -> tuple[Values, Values]:
        """R and R' of [a,i,x,j]."""
        values = doubles.get_tile((tile[0], 0, 0))
        return values[:, :, None, :], values.transpose(0, 2, 1)[:, :, None, :]

    @staticmethod
    def _attached(doubles: Array, tile: Tile) -> tuple[Values, Values]:
        """R and R' of [a,x,b,j], where R[b,j,a] has the electron of x in a."""
        one, other = doubles.get_tile((tile[2], 0, tile[0])), doubles.get_tile((tile[0], 0, tile[2]))
        return one.transpose(2, 0, 1)[:, None], other.transpose(0, 2, 1)[:, None]


def _of_amplitudes(same: Sequence[Array], mixed: Array) -> AntisymmetricDoubles:
    return AntisymmetricDoubles({SAME: same[0], MIXED: mixed, _OTHER: same[1]})
