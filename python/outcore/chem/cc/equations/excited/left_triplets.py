"""Left vectors of excited triplets of closed-shell EOM-CCSD: products are those of `triplets`, backwards. An array
with `_` behind its name is the derivative of <l|H|r> by the array of that name there.

    <l|r> = sum_ia l1[i,a] r1[i,a] + sum_aibj L[a,i,b,j] S[a,i,b,j]

is one for a state and zero for two, so that left vectors of the same size as right ones are 2 r1 and A / 2 + M.
With

    Y = L - L*,  W = L - L',  A_ = W + W*,  D+ = (Y' + A_) T - (A_ + Y) T,  D- = (Y' - A_) T + (A_ + Y) T

where the first T of each is crossed, D+ and D- are derivatives by the terms that E_r and D_r share, and by the
terms that have opposite signs in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.dressed_pairs import DressedPairs
from outcore.chem.cc.equations.excited.excitations import ExcitationSpace
from outcore.chem.cc.equations.excited.guess import FirstState
from outcore.chem.cc.equations.excited.triplets import parts, project
from outcore.chem.cc.equations.holes import HoleProducts
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class LeftTriplets(ExcitationSpace):
    """Products with vectors. Collective.

    Args:
        right: right vectors of the wanted states; a search begins with them.
    """

    of: TransformedHamiltonian
    names = ("et",)

    def __init__(self, of: TransformedHamiltonian, right: Sequence[StateVector] = ()) -> None:
        super().__init__(of)
        self._right = right
        of.ladder.begin_free("QT", transposed=True)
        self._holes = HoleProducts(of.hole.transpose(1, 0, 3, 2))
        self._plus, self._minus = of.of.ring, of.of.rest
        names = ("Vt", "Rt", "Xt", "Poo", "Pvo", "Yr")
        self._v, self._m, self._x, self._poo, self._pvo, self._yr = (self.room.array(name) for name in names)

    # ---- products ----

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [i,a]; sigma2 is put into `out`."""
        of, room, c, l1, l2 = self.of, self.room, self.room.contract, vector.singles, vector.doubles[0]
        more, poo, pvo, yr = self._x, self._poo, self._pvo, self._yr
        self._take(l2)
        hole_ = c("akbl,aibj->kilj", of.t2, l2)
        foo, fvv, found = self._of_rings(hole_)
        found -= c("kibj,aibj->ka", of.mixed, more)
        c("aibj,Qbj->Qai", more, of.z, out=pvo)  # Z_
        found -= c("Qki,Qai->ka", of.doo, pvo) + of.foo @ l1 + of.fov @ fvv.T
        found += l1 @ of.fvv + foo.T @ of.fov
        c("Qda,ia->Qdi", of.dvv, l1, out=yr)
        c("Qki,ia->Qak", of.doo, l1, out=yr, add=True, scale=-1.0)
        c("Qdk,kj->Qdj", of.bvo, foo, out=yr, add=True)
        c("Qck,bc->Qbk", of.bvo, fvv, out=yr, add=True, scale=-1.0)
        room.add(yr, pvo)
        gov = -c("akci,ia->kc", of.t2, l1)
        c("li,Qki->Qlk", foo, of.doo, out=poo, add=True, scale=-1.0)
        c("lc,Qck->Qlk", gov, of.bvo, out=poo, add=True, scale=-1.0)
        c("ia,Qki->Qak", l1, of.doo, out=pvo, add=True, scale=-1.0)
        c("ac,Qck->Qak", fvv, of.bvo, out=pvo, add=True, scale=-1.0)
        found += c("Qck,Qki->ic", of.bvo, poo) + c("Qca,Qak->kc", of.dvv, pvo)
        self._of_doubles()
        dressed = DressedPairs(room, [self.spaces] * 2, l2, [of.t1] * 2, hole_)
        of.ladder.contract_transposed_free(dressed.block, l2, Steps())
        self._add_up(l1, l2, out[0])
        self.project(out)
        return found

    def _take(self, l2: Array) -> None:
        """Puts Y' + A_, Y' - A_, and A_ + Y."""
        v, m, x = self._v, self._m, self._x

        def put(tile: Tile) -> None:
            one, other = l2.get_tile(tile), _turned(l2, tile)
            y, a = one - other, one - exchanged(one) + other - exchanged(other)
            v.put_tile(tile, exchanged(y) + a)
            m.put_tile(tile, exchanged(y) - a)
            x.put_tile(tile, a + y)

        self.room.each_tile(v, put, "vector")
        m.sync()
        x.sync()

    def _of_rings(self, hole_: Values) -> tuple[Values, Values, Values]:
        """Derivatives by foo_r [k,i] and fvv_r [a,c], and the terms of rings in derivatives by singles. Derivatives
        by [B~, r1]_oo go to its array."""
        of, c, plus, minus, poo = self.of, self.room.contract, self._plus, self._minus, self._poo
        for array, doubles, sign in ((plus, self._v, -1.0), (minus, self._m, 1.0)):
            c("aibj,cjbk->aick", doubles, of.t2, out=array)
            c("aibj,ckbj->aick", self._x, of.t2, out=array, add=True, scale=sign)
        pair_ = 2.0 * hole_ - hole_.transpose(2, 1, 0, 3) - hole_.transpose(0, 3, 2, 1)
        c("aick,Qca->Qki", plus, of.dvv, out=poo)
        c("kilj,Qlj->Qki", pair_, of.doo, out=poo, add=True)
        found: Values = c("aick,kicl->la", minus, of.pair)
        o, v = self.spaces.occupied, self.spaces.virtual
        foo, fvv = 0.5 * c("aick,ac->ki", plus, np.eye(v)), 0.5 * c("aick,ki->ac", minus, np.eye(o))
        return foo, fvv, found

    def _of_doubles(self) -> None:
        """Puts the terms of K1, K2 and Y_r into two arrays; of one only the part M counts."""
        of, c, v, m, x = self.of, self.room.contract, self._v, self._m, self._x
        rest, mixed = self._minus, self._plus

        def put(tile: Tile) -> None:
            one, other = v.get_tile(tile), m.get_tile(tile)
            made = 0.5 * (one + other), 0.5 * (x.get_tile(tile) - one + other)  # before tiles are others
            v.put_tile(tile, made[0])  # Y'
            m.put_tile(tile, made[1])  # (Y - A_) / 2

        self.room.each_tile(v, put, "vector")
        m.sync()
        c("aick,aibj->ckbj", of.k2, x, out=rest, scale=-0.5)
        c("aick,aibj->bjck", of.k1, m, out=rest, add=True)
        c("Qai,Qbj->aibj", self._yr, of.bvo, out=rest, add=True)
        c("aick,aibj->cjbk", of.k2, v, out=mixed, scale=-1.0)

    def _add_up(self, l1: Values, l2: Array, out: Array) -> None:
        of, cuts, block = self.of, self.spaces.v.cuts, self.of.ladder.free_block
        rest, mixed = self._minus, self._plus

        def add(tile: Tile) -> None:
            a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
            found = rest.get_tile(tile) + 0.5 * (mixed.get_tile(tile) - _turned(mixed, tile))
            found += self._holes.product(l2.get_tile(tile))
            found += np.einsum("ia,jb->aibj", l1[:, a], of.fov[:, b])
            out.put_tile(tile, found + block(tile[0], tile[2]))

        self.room.each_tile(out, add, "product")

    # ---- of a search ----

    def project(self, doubles: tuple[Array, ...]) -> None:
        project(self.room, doubles[0])

    def share(self, part: int) -> float:
        return 1.0

    def guess(self, count: int) -> list[FirstState]:
        """The right vectors, as left ones."""
        return [_dual(each) for each in self._right]

    def square(self, singles: Values) -> float:
        return 0.5 * float(np.vdot(singles, singles))

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        """The part of a tile in the square of A and M, where L = A / 2 + M, in the norm of right vectors."""
        of_alpha, mixed = parts(doubles, tile)
        return 2.0 * float(np.vdot(of_alpha, of_alpha)) + float(np.vdot(mixed, mixed))


def _turned(doubles: Array, tile: Tile) -> Values:
    values: Values = doubles.get_tile((tile[2], 0, tile[0], 0)).transpose(2, 3, 0, 1)
    return values


def _dual(right: StateVector) -> FirstState:
    (doubles,) = right.doubles

    def tile_of(part: int, tile: Tile) -> Values:
        of_alpha, mixed = parts(doubles, tile)
        found: Values = 0.5 * of_alpha + mixed
        return found

    return FirstState(2.0 * right.singles, tile_of)
