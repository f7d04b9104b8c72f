"""Multipliers of two spins over all pairs of orbitals, as ladders of open shells read them.

    A_[ij,pq] = sum_cd X[c,p] X[d,q] l_ij^cd, and terms of products of occupied orbitals,

where X[c,p] is 1 for p = c and -t1[p,c] for occupied p.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class DressedPairs:
    """Dressed multipliers [a,i,b,j]. The constructor is collective.

    Args:
        spaces, t: orbitals and singles of a, i and of b, j.
        l2: of equal spins [a,i,b,j] = [b,j,a,i]; of attached states [a,i,b], with a single j.
        occupied: the term to add to A_[ij,kl], as [k,i,l,j].
    """

    def __init__(
        self, room: Room, spaces: Sequence[Spaces], l2: Array, t: Sequence[Values], occupied: Values
    ) -> None:
        self._cuts, self._l2, self._t = [each.v.cuts for each in spaces], l2, t
        self._occupied = occupied + self._of_two_occupied(room, occupied.shape)

    def block(self, p: int, q: int) -> Values:
        """A_ of blocks p and q of all orbitals, as [p,i,q,j]."""
        if p > 0 and q > 0:
            return self._tile(p - 1, q - 1)
        if q > 0:
            return self._of_first_occupied(q - 1)
        if p > 0:
            return self._of_second_occupied(p - 1)
        return self._occupied

    def _tile(self, a: int, b: int) -> Values:
        if len(self._l2.layout.tilings) == 3:
            alone: Values = self._l2.get_tile((a, 0, b))
            return alone[..., None]
        values: Values = self._l2.get_tile((a, 0, b, 0))
        return values

    def _blocks(self, side: int) -> list[tuple[int, Values]]:
        """Blocks of virtual orbitals of one side, with their singles [k,c]."""
        cuts, t = self._cuts[side], self._t[side]
        return [(n, t[:, cuts[n] : cuts[n + 1]]) for n in range(len(cuts) - 1)]

    def _of_first_occupied(self, b: int) -> Values:
        """-sum_c t1[k,c] l[c,i,b,j] as [k,i,b,j] of a block b."""
        found: Values | None = None
        for a, t in self._blocks(0):
            made = np.tensordot(t, self._tile(a, b), 1)
            found = made if found is None else np.add(found, made, out=found)
        assert found is not None
        return np.negative(found, out=found)

    def _of_second_occupied(self, a: int) -> Values:
        """-sum_d t1[l,d] l[a,i,d,j] as [a,i,l,j] of a block a."""
        found: Values | None = None
        for b, t in self._blocks(1):
            made = np.matmul(t, self._tile(a, b))
            found = made if found is None else np.add(found, made, out=found)
        assert found is not None
        return np.negative(found, out=found)

    def _of_two_occupied(self, room: Room, shape: tuple[int, ...]) -> Values:
        """sum_cd t1[k,c] t1[l,d] l[c,i,d,j] as [k,i,l,j]."""
        total, guard = np.zeros(shape), threading.Lock()

        def add(tile: Tile) -> None:
            first, second = (self._blocks(side)[tile[2 * side]][1] for side in (0, 1))
            made = np.matmul(second, np.tensordot(first, self._tile(tile[0], tile[2]), 1))
            if self._l2.layout.symmetry and tile[0] != tile[2]:
                made = made + made.transpose(2, 3, 0, 1)
            with guard:
                np.add(total, made, out=total)

        room.each_tile(self._l2, add, "dress multipliers")
        return np.asarray(room.world.all_reduce(total))
