"""Attached states of closed-shell EOM-CCSD: those of `singlets` whose electron comes from an orbital x that nothing
couples to.

r1[a], R[a,i,b] = r_ix^ab, V[a,i,b] = R[a,i,b] - R[b,i,a] / 2, and

    y[Q,b] = 2 V B,  z = y + B~vv r1,  q[Q,k] = B r1,  e[a,c,k] = q B~vv,  A = product of the ladder with R
    sigma1 = fvv r1 + 2 V f~_ov + B~vv y
    sigma2 = Z z - K2 R / 2 - (K2 R)' - K1 V + fvv R / 2 - e T - (e T)' / 2 - e U - p T + h T + A

where p[k] = f~_ov r1 + y B, h[k,i,l] = B~oo q + A_kl, and A is dressed with singles.

Nooijen, Bartlett, J. Chem. Phys. 102, 3629 (1995).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited import guess
from outcore.chem.cc.equations.excited.ion_space import AttachedSpace
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class AttachedStates(AttachedSpace):
    """Products with vectors. Collective."""

    def __init__(self, of: TransformedHamiltonian) -> None:
        super().__init__(of)
        self._v, self._rest, self._crossed, self._exchange, self._e = (
            self.room.array(name) for name in ("Vea", "Rea", "Sea", "Pea", "Eea")
        )
        of.ladder.begin_free("C")

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [a]; sigma2 [a,i,b] is put into `out`."""
        of, c, r1, r2 = self.of, self.room.contract, vector.singles, vector.doubles[0]
        v, rest, e = self._v, self._rest, self._e

        def put(tile: Tile) -> None:
            a, _, b = tile
            v.put_tile(tile, r2.get_tile(tile) - 0.5 * r2.get_tile((b, 0, a)).transpose(2, 1, 0))

        self.room.each_tile(v, put, "vector")
        y = c("aib,Qai->Qb", v, of.bvo, scale=2.0)
        singles: Values = of.fvv @ r1 + 2.0 * c("cka,kc->a", v, of.fov) + c("Qda,Qd->a", of.dvv, y)
        z = y + c("Qcb,c->Qb", of.dvv, r1)
        q = c("Qdk,d->Qk", of.bvo, r1)
        p = of.fov @ r1 + c("Qd,Qdk->k", y, of.bvo)
        c("Qk,Qca->ack", q, of.dvv, out=e)
        c("aick,bkc->aib", of.k2, r2, out=self._exchange)
        c("ack,cibk->aib", e, of.t2, out=self._crossed)
        c("aick,ckb->aib", of.k1, v, out=rest, scale=-1.0)
        c("bck,ckai->aib", e, of.u2, out=rest, add=True, scale=-1.0)
        c("Qai,Qb->aib", of.z, z, out=rest, add=True)
        half = 0.5 * of.fvv
        c("ac,cib->aib", half, r2, out=rest, add=True)
        c("bc,aic->aib", half, r2, out=rest, add=True)
        c("aibk,k->aib", of.t2, p, out=rest, add=True, scale=-1.0)
        of.ladder.contract_free(r2, Steps())
        hole = c("Qki,Ql->kil", of.doo, q) + of.ladder.single_block(0, 0)
        c("akbl,kil->aib", of.t2, hole, out=rest, add=True)
        self._add_up(out[0])
        return singles

    def _add_up(self, out: Array) -> None:
        """Both orders of exchange rings, the dressed ladder, and the rest."""
        t1, cuts, block = self.of.t1, self.spaces.v.cuts, self.of.ladder.single_block
        exchange, crossed, rest = self._exchange, self._crossed, self._rest
        inner = block(0, 0)  # [k,i,l]

        def add(tile: Tile) -> None:
            a, _, b = tile
            of_a, of_b = (t1[:, cuts[n] : cuts[n + 1]] for n in (a, b))
            total = rest.get_tile(tile) - 0.5 * exchange.get_tile(tile) - crossed.get_tile(tile)
            turned = (b, 0, a)
            total -= (exchange.get_tile(turned) + 0.5 * crossed.get_tile(turned)).transpose(2, 1, 0)
            total += block(a + 1, b + 1)
            total -= np.einsum("ka,kib->aib", of_a, block(0, b + 1) - inner @ of_b)
            total -= block(a + 1, 0) @ of_b
            out.put_tile(tile, total)

        self.room.each_tile(out, add, "product")

    # ---- of a search ----

    def guess(self, count: int) -> list[FirstState]:
        return guess.ions(self.of, self.product, self.of.fvv, count)

    def product(self, factors: tuple[Values, Values], part: int, tile: Tile) -> Values:
        cuts = self.spaces.v.cuts
        a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
        excited, ion = factors
        found: Values = np.einsum("ia,b->aib", excited[:, a], ion[b])
        return found

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        values = doubles.get_tile(tile)
        return float(np.vdot(values, 2.0 * values - self.turned(doubles, tile)))
