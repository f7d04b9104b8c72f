"""Derivatives of (T) of open shells: arrays of amplitudes and integrals of each spin, and small ones (see
`open_triple_derivatives`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.triple_arrays import Sums, stacked
from outcore.chem.cc.plan.triple_sizes import triple_sums

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

SPINS = (0, 1)
SAME = ("Taa3", "Tbb3")
MIXED = "Tab3"
BOO, BVO, BVV = (tuple(f"{name}3{spin}" for spin in "ab") for name in ("Boo", "Bvo", "Bvv"))
SAME_ROWS = tuple(f"{name}rows" for name in SAME)
"""Names in the plan of sums of derivatives by T, orbital by orbital, [x,i,d,j], antisymmetric in i and j."""
MIXED_ROWS = ("Tab3rows", "Tba3rows")
"""The same for opposite spins, with orbitals of either spin first: [a,i,b,j] and [b,j,a,i]."""
BVO_ROWS, BVV_ROWS = (tuple(f"{name}rows" for name in each) for each in (BVO, BVV))
SMALL = "S3"
"""Name in the plan of the `OpenSums` of all processes."""


class OpenDerivatives:
    """Derivatives of the energy of (T), as arrays of a room; lists have those of each spin.

    Attributes:
        t1: by singles [i,a].
        one: by the Fock matrix, gamma [n][n], symmetric.
        same, mixed: by T; E changes by a quarter of the sum over all elements of equal spins, which are
            antisymmetric.
        boo, bvo, bvv: by B[Q,ij], B[Q,ai] and B[Q,ab]; see `triple_arrays.Derivatives`.
    """

    def __init__(self, room: Room, t1: Sequence[Values], one: Sequence[Values]) -> None:
        self.t1, self.one = list(t1), list(one)
        self.same, self.boo, self.bvo, self.bvv = (
            [room.array(name) for name in names] for names in (SAME, BOO, BVO, BVV)
        )
        self.mixed = room.array(MIXED)

    @property
    def named(self) -> dict[str, Array]:
        """Arrays by their names in the plan."""
        names = (*SAME, *BOO, *BVO, *BVV, MIXED)
        return dict(zip(names, (*self.same, *self.boo, *self.bvo, *self.bvv, self.mixed), strict=True))

    def collect(self, room: Room, rows: OpenRows, cuts: Sequence[Sequence[int]]) -> None:
        """Collects the sums of `rows`, and gives `rows` back. cuts: of virtual orbitals of each spin.
        Collective."""
        for s in SPINS:
            self._same(room, s, rows, cuts[s])
        first, second = rows.mixed

        def mixed(tile: Tile) -> None:
            a, b = tile[0], tile[2]
            one = stacked(first, [(x, 0, b, 0) for x in range(cuts[0][a], cuts[0][a + 1])], 0)
            other = stacked(second, [(x, 0, a, 0) for x in range(cuts[1][b], cuts[1][b + 1])], 0)
            self.mixed.put_tile(tile, one + other.transpose(2, 3, 0, 1))

        room.each_tile(self.mixed, mixed, "derivatives of triples")
        room.release(*rows.arrays)

    def _same(self, room: Room, s: int, rows: OpenRows, cuts: Sequence[int]) -> None:
        of_t, of_vo, of_vv = rows.same[s], rows.vo[s], rows.vv[s]

        def orbitals(block: int) -> range:
            return range(cuts[block], cuts[block + 1])

        def doubles(tile: Tile) -> None:
            a, b = tile[0], tile[2]
            one = stacked(of_t, [(x, 0, b, 0) for x in orbitals(a)], 0)
            other = stacked(of_t, [(x, 0, a, 0) for x in orbitals(b)], 0)
            self.same[s].put_tile(tile, one - other.transpose(2, 1, 0, 3))

        def mixed(tile: Tile) -> None:
            self.bvo[s].put_tile(tile, stacked(of_vo, [(0, x, 0) for x in orbitals(tile[1])], 1))

        def virtual(tile: Tile) -> None:
            _, a, b = tile
            one = stacked(of_vv, [(0, x, b) for x in orbitals(a)], 1)
            other = stacked(of_vv, [(0, x, a) for x in orbitals(b)], 1)
            self.bvv[s].put_tile(tile, 0.5 * (one + other.transpose(0, 2, 1)))

        for array, put in ((self.same[s], doubles), (self.bvo[s], mixed), (self.bvv[s], virtual)):
            room.each_tile(array, put, "derivatives of triples")

    def rotation(
        self,
        room: Room,
        s: int,
        t1: Values,
        doubles: tuple[Array, Array],
        integrals: Integrals,
        coupling: tuple[Values, Values],
    ) -> Values:
        """M of virtual orbitals of one spin (see `triple_derivatives`), without the Fock matrix between them.
        doubles: of equal and of different spins; coupling: f_ia, and the derivative by it. Collective."""
        c, (same, mixed) = room.contract, doubles
        found: Values = t1.T @ self.t1[s] + coupling[0].T @ coupling[1]
        found += 0.5 * c("bicj,aicj->ba", same, self.same[s])
        found += c("bicj,aicj->ba" if s == 0 else "cjbi,cjai->ba", mixed, self.mixed)
        found += c("Qbi,Qai->ba", integrals.bvo, self.bvo[s])
        found += 2.0 * c("Qbd,Qad->ba", integrals.bvv, self.bvv[s])
        return found


class OpenRows:
    """Sums of derivatives, orbital by orbital."""

    def __init__(self, room: Room) -> None:
        self.same, self.mixed, self.vo, self.vv = (
            [room.array(name) for name in names] for names in (SAME_ROWS, MIXED_ROWS, BVO_ROWS, BVV_ROWS)
        )

    @property
    def arrays(self) -> list[Array]:
        return [*self.same, *self.mixed, *self.vo, *self.vv]

    @property
    def named(self) -> dict[str, Array]:
        """Arrays by their names in the plan."""
        return dict(zip((*SAME_ROWS, *MIXED_ROWS, *BVO_ROWS, *BVV_ROWS), self.arrays, strict=True))


class OpenSums:
    """Small derivatives of each spin, as parts of `values`. The energy is among those of the first spin."""

    def __init__(self, occupied: Sequence[int], virtual: Sequence[int]) -> None:
        sizes = [triple_sums(o, v) for o, v in zip(occupied, virtual, strict=True)]
        self.values = np.zeros(sum(sizes))
        self.spins = [
            Sums(o, v, values)
            for o, v, values in zip(occupied, virtual, np.split(self.values, sizes[:1]), strict=True)
        ]
