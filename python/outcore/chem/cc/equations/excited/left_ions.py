"""Left vectors of ionised and attached states of closed-shell EOM-CCSD: products are those of `ionized` and
`attached`, backwards. An array with `_` behind its name is the derivative of <l|H|r> by the array of that name
there.

    <l|r> = sum l1 r1 + sum_aij L[a,i,j] R[a,i,j],  or with L[a,i,b] R[a,i,b]

is one for a state and zero for two, so that L of the same size as R is 2 R - R', where R' has i and j, or a and b,
exchanged.

Nooijen, Snijders, Int. J. Quantum Chem. 48, 15 (1993); Nooijen, Bartlett, J. Chem. Phys. 102, 3629 (1995).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.dressed_pairs import DressedPairs
from outcore.chem.cc.equations.excited.guess import FirstState
from outcore.chem.cc.equations.excited.ion_space import AttachedSpace, IonizedSpace
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class LeftIons(ABC):
    """Parts that both share, beside the space of their vectors. Collective.

    Args:
        right: right vectors of the wanted states; a search begins with them.
    """

    def __init__(self, right: Sequence[StateVector]) -> None:
        self._right = right

    @staticmethod
    @abstractmethod
    def turned(doubles: Array, tile: Tile) -> Values:
        """A tile of R', with axes as in R."""

    # ---- of a search ----

    def share(self, part: int) -> float:
        return 1.0

    def guess(self, count: int) -> list[FirstState]:
        """The right vectors, as left ones."""
        return [self._dual(each) for each in self._right]

    def _dual(self, right: StateVector) -> FirstState:
        (doubles,) = right.doubles

        def tile_of(part: int, tile: Tile) -> Values:
            found: Values = 2.0 * doubles.get_tile(tile) - self.turned(doubles, tile)
            return found

        return FirstState(right.singles, tile_of)

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        """The part of a tile in the square of X, where L = 2 X - X', in the norm of right vectors."""
        values = doubles.get_tile(tile)
        return float(np.vdot(values, 2.0 * values + self.turned(doubles, tile))) / 3.0


class LeftIonized(IonizedSpace, LeftIons):
    """Products with vectors. Collective."""

    def __init__(self, of: TransformedHamiltonian, right: Sequence[StateVector] = ()) -> None:
        IonizedSpace.__init__(self, of)
        LeftIons.__init__(self, right)
        self._turned, self._rest, self._v, self._e = (
            self.room.array(name) for name in ("Vip", "Rip", "Sip", "Eip")
        )
        of.ladder.release_products()

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [i]; sigma2 [a,i,j] is put into `out`."""
        of, c, l1, l2 = self.of, self.room.contract, vector.singles, vector.doubles[0]
        turned, rest, v = self._turned, self._rest, self._v

        def put(tile: Tile) -> None:
            turned.put_tile(tile, -0.5 * l2.get_tile(tile) - self.turned(l2, tile))

        self.room.each_tile(turned, put, "vector")
        c("aick,aij->cjk", of.k2, turned, out=rest)
        half = 0.5 * of.foo
        c("aij,ki->akj", l2, half, out=rest, add=True, scale=-1.0)
        c("aij,kj->aik", l2, half, out=rest, add=True, scale=-1.0)
        c("aij,ciak->jck", turned, of.t2, out=self._e)
        c("ckai,aij->jck", of.u2, l2, out=self._e, add=True, scale=-1.0)
        z_ = c("aij,Qai->Qj", l2, of.z)
        p_ = c("cjai,aij->c", of.t2, l2)
        singles: Values = -c("kjai,aij->k", of.mixed, l2) - of.foo @ l1 - of.fov @ p_
        singles -= c("Qkj,Qj->k", of.doo, z_) + c("kjcl,jck->l", of.pair, self._e)
        y_ = z_ - c("Qki,i->Qk", of.doo, l1) - c("Qck,c->Qk", of.bvo, p_)
        c("aick,aij->ckj", of.k1, l2, out=v, scale=-1.0)
        c("Qai,Qj->aij", of.bvo, y_, out=v, add=True, scale=2.0)
        c("Pkc,Pi->cki", of.fov[None], l1[None], out=v, add=True, scale=2.0)
        hole = of.hole

        def add(tile: Tile) -> None:
            values = np.tensordot(l2.get_tile(tile), hole, ([1, 2], [1, 3])) + rest.get_tile(tile)
            of_v = v.get_tile(tile)
            out[0].put_tile(tile, values + of_v - 0.5 * of_v.transpose(0, 2, 1))

        self.room.each_tile(out[0], add, "product")
        return singles


class LeftAttached(AttachedSpace, LeftIons):
    """Products with vectors. Collective."""

    def __init__(self, of: TransformedHamiltonian, right: Sequence[StateVector] = ()) -> None:
        AttachedSpace.__init__(self, of)
        LeftIons.__init__(self, right)
        self._v, self._rest, self._crossed, self._exchange, self._e = (
            self.room.array(name) for name in ("Vea", "Rea", "Sea", "Pea", "Eea")
        )
        of.ladder.begin_free("CT", transposed=True)

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [a]; sigma2 [a,i,b] is put into `out`."""
        of, c, l1, l2 = self.of, self.room.contract, vector.singles, vector.doubles[0]
        v, rest, e, exchange, crossed = self._v, self._rest, self._e, self._exchange, self._crossed

        def put(tile: Tile) -> None:
            values, turned = l2.get_tile(tile), self.turned(l2, tile)
            exchange.put_tile(tile, -0.5 * values - turned)
            crossed.put_tile(tile, -values - 0.5 * turned)

        self.room.each_tile(exchange, put, "vector")
        crossed.sync()
        c("aick,aib->bkc", of.k2, exchange, out=rest)
        half = 0.5 * of.fvv
        c("ac,aib->cib", half, l2, out=rest, add=True)
        c("bc,aib->aic", half, l2, out=rest, add=True)
        c("cibk,aib->ack", of.t2, crossed, out=e)
        c("ckai,aib->bck", of.u2, l2, out=e, add=True, scale=-1.0)
        z_ = c("Qai,aib->Qb", of.z, l2)
        p_ = -c("aibk,aib->k", of.t2, l2)
        hole_ = c("akbl,aib->kil", of.t2, l2)
        q_ = c("Qki,kil->Ql", of.doo, hole_) + c("Qca,ack->Qk", of.dvv, e)
        singles: Values = l1 @ of.fvv + p_ @ of.fov
        singles += c("Qcb,Qb->c", of.dvv, z_) + c("Qdk,Qk->d", of.bvo, q_)
        y_ = z_ + c("Qda,a->Qd", of.dvv, l1) + c("Qdk,k->Qd", of.bvo, p_)
        c("aick,aib->ckb", of.k1, l2, out=v, scale=-1.0)
        c("Qai,Qb->aib", of.bvo, y_, out=v, add=True, scale=2.0)
        c("Pkc,Pa->cka", of.fov[None], l1[None], out=v, add=True, scale=2.0)
        dressed = DressedPairs(self.room, [self.spaces] * 2, l2, [of.t1] * 2, hole_[..., None])
        of.ladder.contract_transposed_free(lambda p, q: dressed.block(p, q)[..., 0], l2, Steps())

        def add(tile: Tile) -> None:
            values = rest.get_tile(tile) + v.get_tile(tile) - 0.5 * self.turned(v, tile)
            out[0].put_tile(tile, values + of.ladder.single_block(tile[0], tile[2]))

        self.room.each_tile(out[0], add, "product")
        return singles
