"""Ionised states of closed-shell EOM-CCSD: those of `singlets` whose electron goes to an orbital x that nothing
couples to.

r1[i], R[a,i,j] = r_ij^ax, V[a,i,j] = R[a,i,j] - R[a,j,i] / 2, and

    y[Q,j] = 2 V B,  z = y - r1 B~_oo,  e[j,c,k] = -r1 D
    sigma1 = -r1 foo + 2 V f~_ov - B~oo y
    sigma2 = Z z - K2 R / 2 - (K2 R)' - K1 V - foo R / 2 - (e T)' / 2 - e T - e U + p T - r1 N + h R

where p[c] = -r1 f~_ov - y B.

Nooijen, Snijders, Int. J. Quantum Chem. 48, 15 (1993); Stanton, Gauss, J. Chem. Phys. 101, 8938 (1994).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited import guess
from outcore.chem.cc.equations.excited.ion_space import IonizedSpace
from outcore.chem.cc.equations.excited.vectors import StateVector

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class IonizedStates(IonizedSpace):
    """Products with vectors. Collective."""

    def __init__(self, of: TransformedHamiltonian) -> None:
        super().__init__(of)
        self._v, self._rest, self._crossed, self._e = (
            self.room.array(name) for name in ("Vip", "Rip", "Sip", "Eip")
        )
        of.ladder.release_products()

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [i]; sigma2 [a,i,j] is put into `out`."""
        of, c, r1, r2 = self.of, self.room.contract, vector.singles, vector.doubles[0]
        v, rest, crossed = self._v, self._rest, self._crossed

        def put(tile: Tile) -> None:
            values = r2.get_tile(tile)
            v.put_tile(tile, values - 0.5 * values.transpose(0, 2, 1))

        self.room.each_tile(v, put, "vector")
        y = c("aij,Qai->Qj", v, of.bvo, scale=2.0)
        singles: Values = 2.0 * c("cki,kc->i", v, of.fov) - r1 @ of.foo - c("Qki,Qk->i", of.doo, y)
        z = y - c("Qkj,k->Qj", of.doo, r1)
        p = -r1 @ of.fov - c("Qk,Qck->c", y, of.bvo)
        c("l,kjcl->jck", r1, of.pair, out=self._e, scale=-1.0)
        c("aick,cjk->aij", of.k2, r2, out=rest)
        c("jck,ciak->aij", self._e, of.t2, out=crossed)

        def both(tile: Tile) -> None:
            x, s = rest.get_tile(tile), crossed.get_tile(tile)
            turned = s.transpose(0, 2, 1)
            rest.put_tile(tile, -0.5 * x - x.transpose(0, 2, 1) - 0.5 * s - turned)

        self.room.each_tile(rest, both, "rings")
        c("aick,ckj->aij", of.k1, v, out=rest, add=True, scale=-1.0)
        c("jck,ckai->aij", self._e, of.u2, out=rest, add=True, scale=-1.0)
        c("Qai,Qj->aij", of.z, z, out=rest, add=True)
        c("akj,ki->aij", r2, 0.5 * of.foo, out=rest, add=True, scale=-1.0)
        c("aik,kj->aij", r2, 0.5 * of.foo, out=rest, add=True, scale=-1.0)
        c("cjai,c->aij", of.t2, p, out=rest, add=True)
        c("kjai,k->aij", of.mixed, r1, out=rest, add=True, scale=-1.0)
        hole = of.hole

        def add(tile: Tile) -> None:
            values = np.tensordot(r2.get_tile(tile), hole, ([1, 2], [0, 2]))
            out[0].put_tile(tile, values + rest.get_tile(tile))

        self.room.each_tile(out[0], add, "product")
        return singles

    # ---- of a search ----

    def guess(self, count: int) -> list[FirstState]:
        return guess.ions(self.of, self.product, -self.of.foo, count, core=self.core)

    def product(self, factors: tuple[Values, Values], part: int, tile: Tile) -> Values:
        cuts = self.spaces.v.cuts
        excited, ion = factors
        found: Values = np.einsum("ia,j->aij", excited[:, cuts[tile[0]] : cuts[tile[0] + 1]], ion)
        return found

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        values = doubles.get_tile(tile)
        return float(np.vdot(values, 2.0 * values - self.turned(doubles, tile)))
