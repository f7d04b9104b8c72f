"""Excited singlets of closed-shell EOM-CCSD.

r1[i,a], R[a,i,b,j] = r_ij^ab, V = R - R' / 2; an intermediate with `r` is the derivative of that without it in the
direction of the vector:

    Y_r = 2 V B,  Z_r = Y_r + [B~, r1]_vo,  E_r of [B~, r1], f_r and Y_r
    sigma1 = fvv r1 - r1 foo + g_vo + 2 U g_ov + 2 V f~_ov + B~vv Y_r - B~oo Y_r
    sigma2 = P (Z_r Z - (K2 R + E_r T) / 2 - (K2 R + E_r T)' - K1 V - E_r U - r1 N - t1 A_r)
             + A_r + h R + h_r T

where g is the dressed mean field of r1, and A_r the product of the ladder with R. E_r is multiplied by T and by U
for each vector, or such rings are kept for all singles (`single_rings`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.excited.excitations import Excitations
from outcore.chem.cc.equations.excited.single_rings import SingleRings
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.holes import HoleProducts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class Singlets(Excitations):
    """Products with vectors. Collective.

    Args:
        together: vectors that are multiplied at a time.
        keeps_rings: rings of singles are kept: more work once, and less for each vector.
    """

    names, coulomb = ("ee",), 2.0

    def __init__(self, of: TransformedHamiltonian, together: int = 1, *, keeps_rings: bool = False) -> None:
        super().__init__(of)
        self._kept: SingleRings | None = None
        if keeps_rings:
            self.room.release(self.ring)
            self._kept = SingleRings(of)
        self._v2 = self.room.array("V")
        self._holes = HoleProducts(of.hole)
        self._together = together
        of.ladder.begin_each(together)

    # ---- products ----

    def products(self, vectors: Sequence[StateVector], outs: Sequence[tuple[Array, ...]]) -> Iterator[Values]:
        """The products of one vector after the other, as by `multiply`; one pass over integrals of ladders serves
        many vectors."""
        for first in range(0, len(vectors), self._together):
            some = vectors[first : first + self._together]
            self.of.ladder.contract_each([each.doubles[0] for each in some])
            for number, (vector, out) in enumerate(zip(some, outs[first:], strict=False)):
                yield self._product(number, vector, out)

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [i,a]; sigma2 is put into `out`."""
        (found,) = self.products([vector], [out])
        return found

    def _product(self, number: int, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """number: of the vector among those that the ladder has multiplied."""
        of, room, c, r1, r2 = self.of, self.room, self.room.contract, vector.singles, vector.doubles[0]
        v2 = self._v2

        def put(tile: Tile) -> None:
            values = r2.get_tile(tile)
            v2.put_tile(tile, values - 0.5 * exchanged(values))

        room.each_tile(v2, put, "vector")
        yr = c("aibj,Qbj->Qai", v2, of.bvo, out=self.yr, scale=2.0)
        g = self.mean_field(r1)
        singles = self._singles(r1, g)
        o = self.spaces.occupied
        foo = of.fov @ r1.T + g[:o, :o] + c("Qdk,Qdj->kj", of.bvo, yr)
        fvv = g[o:, o:] - r1.T @ of.fov - c("Qbk,Qck->bc", yr, of.bvo)
        self._rings(r1, r2, foo, fvv)
        c("Qki,ka->Qai", of.doo, r1, out=self.pvo, scale=-1.0, add=True)
        room.add(self.pvo, yr)  # Z_r
        c("Qai,Qbj->aibj", self.pvo, of.z, out=self.rest, add=True)
        self._add_up(number, r1, r2, out[0])
        return singles

    def _singles(self, r1: Values, g: Values) -> Values:
        of, c, o = self.of, self.room.contract, self.spaces.occupied
        found = of.fvv @ r1.T - r1.T @ of.foo + g[o:, :o]
        found += 2.0 * c("aick,kc->ai", of.u2, g[:o, o:].copy())
        found += 2.0 * c("aick,kc->ai", self._v2, of.fov)
        found += c("Qda,Qdi->ai", of.dvv, self.yr) - c("Qki,Qak->ai", of.doo, self.yr)
        return np.ascontiguousarray(found.T)

    def _rings(self, r1: Values, r2: Array, foo: Values, fvv: Values) -> None:
        """Puts both rings, as half of a symmetric array."""
        of, c, ring, rest, kept = self.of, self.room.contract, self.ring, self.rest, self._kept
        c("aick,cjbk->aibj", of.k2, r2, out=rest)
        if kept is None:
            self._put_ring(r1, foo, fvv)
            c("aick,cjbk->aibj", ring, of.t2, out=rest, add=True)

        def both(tile: Tile) -> None:
            x = rest.get_tile(tile)
            rest.put_tile(tile, -exchanged(x) - 0.5 * x)

        self.room.each_tile(rest, both, "rings")
        c("aick,ckbj->aibj", of.k1, self._v2, out=rest, add=True, scale=-1.0)
        if kept is None:
            c("aick,ckbj->aibj", ring, of.u2, out=rest, add=True, scale=-1.0)
        else:
            kept.add(r1, foo, fvv, rest)

    def _put_ring(self, r1: Values, foo: Values, fvv: Values) -> None:
        """Puts E_r."""
        of, c, ring, o, v = self.of, self.room.contract, self.ring, self.spaces.occupied, self.spaces.virtual
        c("Qki,Qca->aick", self.poo, of.dvv, out=ring)
        c("kicl,la->aick", of.pair, r1, out=ring, scale=-1.0, add=True)
        rows = np.stack([-0.5 * np.eye(o), 0.5 * foo]), np.stack([fvv.T, np.eye(v)])
        c("Pki,Pca->aick", *rows, out=ring, add=True)

    def _add_up(self, number: int, r1: Values, r2: Array, out: Array) -> None:
        """Puts the sum: the ladder, holes, the ladder's part with one occupied orbital, and the rest in both orders
        of pairs."""
        of, rest, t1 = self.of, self.rest, self.of.t1
        block = partial(of.ladder.block_of, number)
        hole = np.ascontiguousarray(block(0, 0))  # A_ij^kl as [k,i,l,j]
        pair = self.room.contract("Qki,Qlj->kilj", self.poo, of.doo)
        holes = HoleProducts(hole + pair + pair.transpose(2, 3, 0, 1))
        half = 0.5 * hole  # of A_ji^kl as [k,j,l,i]
        cuts = self.spaces.v.cuts

        def mixed(a: int, tiles: list[Tile]) -> None:
            box = slice(cuts[a], cuts[a + 1])
            of_a = block(0, a + 1) - np.einsum("kjli,la->kjai", half, t1[:, box])  # A_ji^ka as [k,j,a,i]
            of_n = of.mixed.get_tile((0, 0, a, 0))
            one, other = (np.ascontiguousarray(each.transpose(2, 3, 1, 0)) for each in (of_a, of_n))
            for tile in tiles:
                b = slice(cuts[tile[2]], cuts[tile[2] + 1])
                made = one @ t1[:, b] + other @ r1[:, b]  # [a,i,j,b]
                rest.acc_tile(tile, made.transpose(0, 1, 3, 2), -1.0)

        self.room.each_row(rest, 0, mixed, "ladder")

        def add(tile: Tile) -> None:
            a, _, b, _ = tile
            total = self._holes.product(r2.get_tile(tile))
            total += holes.product(of.t2.get_tile(tile))
            total += rest.get_tile(tile)
            total += rest.get_tile((b, 0, a, 0)).transpose(2, 3, 0, 1)
            total += block(a + 1, b + 1)
            out.put_tile(tile, total)

        self.room.each_tile(out, add, "product")

    # ---- of a search ----

    def product(self, factors: tuple[Values, Values], part: int, tile: Tile) -> Values:
        cuts = self.spaces.v.cuts
        a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
        one, other = factors
        made = np.einsum("ia,jb->aibj", one[:, a], other[:, b])
        found: Values = made + np.einsum("ia,jb->aibj", other[:, a], one[:, b])
        return found

    def square(self, singles: Values) -> float:
        return 2.0 * float(np.vdot(singles, singles))

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        values = doubles.get_tile(tile)
        found = float(np.vdot(values, 2.0 * values - exchanged(values)))
        return found if tile[0] == tile[2] else 2.0 * found
