"""Excited triplets of closed-shell EOM-CCSD, of spin projection 0: r1 of beta is that of alpha with the other sign.

r1[i,a], S[a,i,b,j] = A + M: A are doubles of alpha alone, antisymmetric in i and j, symmetric in the pairs ai, bj;
M those of alpha and beta, antisymmetric in the pairs. S* has the pairs exchanged, and S' the occupied orbitals.
Names and letters are those of `singlets`, the mean field g has exchange alone, Y_r = S B, and

    E_r = B~oo_r B~vv + B~oo B~vv_r + (f_r_ki d_ac - d_ik f_r_ac) / 2
    D_r = B~oo_r B~vv - B~oo B~vv_r + (f_r_ki d_ac + d_ik f_r_ac) / 2
    sigma1 = fvv r1 - r1 foo + g_vo - T' g_ov + S f~_ov + B~vv Y_r - B~oo Y_r
    A: (1 - ')(1 + *) of -(K2 S + K1 S*) / 2 + Z_r Z - E_r (T - T') - r1 N
    M:      (1 - *)   of -(K2 S - K1 S*) / 2 + Z_r Z - E_r T - (K2 M')' + (D_r T')' - r1 N
    both:  A_S + h S + h_r T

where A_S is the product of the ladder with S, dressed with singles. It is the derivative of the residuals of
`unrestricted` for amplitudes of closed shells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.excited.excitations import Excitations
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.holes import HoleProducts
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class Triplets(Excitations):
    """Products with vectors. Collective."""

    names, coulomb = ("et",), 0.0

    def __init__(self, of: TransformedHamiltonian) -> None:
        super().__init__(of)
        of.ladder.begin_free("Q")
        self._holes = HoleProducts(of.hole)
        self._mixed, self._m, self._x = (self.room.array(name) for name in ("Vt", "Rt", "Xt"))

    # ---- products ----

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """sigma1 [i,a]; sigma2 is put into `out`."""
        of, room, c, r1, r2 = self.of, self.room, self.room.contract, vector.singles, vector.doubles[0]
        mixed = self._mixed
        room.each_tile(mixed, lambda tile: mixed.put_tile(tile, parts(r2, tile)[1]), "vector")
        yr = c("aibj,Qbj->Qai", r2, of.bvo, out=self.yr)
        g = self.mean_field(r1)
        o = self.spaces.occupied
        found = of.fvv @ r1.T - r1.T @ of.foo + g[o:, :o]
        found -= c("akci,kc->ai", of.t2, g[:o, o:].copy())
        found += c("aick,kc->ai", r2, of.fov)
        found += c("Qda,Qdi->ai", of.dvv, yr) - c("Qki,Qak->ai", of.doo, yr)
        foo = of.fov @ r1.T + g[:o, :o] + c("Qdk,Qdj->kj", of.bvo, yr)
        fvv = g[o:, o:] - r1.T @ of.fov - c("Qbk,Qck->bc", yr, of.bvo)
        c("Qki,ka->Qai", of.doo, r1, out=self.pvo, scale=-1.0, add=True)
        room.add(self.pvo, yr)  # Z_r
        self._rings(r1, r2, foo, fvv)
        of.ladder.contract_free(r2, Steps())
        self._add_up(r1, r2, out[0])
        return np.ascontiguousarray(found.T)

    def _rings(self, r1: Values, r2: Array, foo: Values, fvv: Values) -> None:
        of, c, room, ring, a, m, x = (
            self.of,
            self.room.contract,
            self.room,
            self.ring,
            self.rest,
            self._m,
            self._x,
        )
        o, v, cuts = self.spaces.occupied, self.spaces.virtual, self.spaces.v.cuts
        c("aick,ckbj->aibj", of.k2, r2, out=a)
        c("aick,bjck->aibj", of.k1, r2, out=m)
        c("Qai,Qbj->aibj", self.pvo, of.z, out=x)
        c("Qki,Qca->aick", self.poo, of.dvv, out=ring)
        c("kicl,la->aick", of.pair, r1, out=ring, scale=-1.0, add=True)
        rows = np.stack([-0.5 * np.eye(o), 0.5 * foo]), np.stack([fvv.T, np.eye(v)])
        c("Pki,Pca->aick", *rows, out=ring, add=True)
        c("aick,ckbj->aibj", ring, of.t2, out=x, add=True, scale=-1.0)

        def both(b: int, tiles: list[Tile]) -> None:
            mixed = of.mixed.get_tile((0, 0, b, 0))
            for tile in tiles:
                more = x.get_tile(tile) - np.tensordot(
                    r1[:, cuts[tile[0]] : cuts[tile[0] + 1]], mixed, ([0], [0])
                )
                one, other = a.get_tile(tile), m.get_tile(tile)
                made = more - 0.5 * (one + other), more - 0.5 * (one - other)  # before tiles are others
                a.put_tile(tile, made[0])
                m.put_tile(tile, made[1])

        room.each_row(a, 2, both, "rings")
        m.sync()
        c("aick,cjbk->aibj", ring, of.t2, out=a, add=True)
        c("kicl,la->aick", of.pair, r1, out=ring, scale=2.0, add=True)
        c("Pki,Pca->aick", np.eye(o)[None], fvv.T[None].copy(), out=ring, add=True)  # D_r
        c("aick,cjbk->aibj", ring, of.t2, out=x)
        c("aick,cjbk->aibj", of.k2, self._mixed, out=x, add=True, scale=-1.0)

    def _add_up(self, r1: Values, r2: Array, out: Array) -> None:
        of, t1, cuts, block = self.of, self.of.t1, self.spaces.v.cuts, self.of.ladder.free_block
        a_part, m_part, x = self.rest, self._m, self._x
        inner = np.ascontiguousarray(block(0, 0))  # [k,i,l,j]
        pair = self.room.contract("Qki,Qlj->kilj", self.poo, of.doo)
        total = pair + pair.transpose(2, 3, 0, 1)
        hole = inner + 2.0 * pair - total.transpose(2, 1, 0, 3)

        def of_mixed(tile: Tile) -> Values:
            return m_part.get_tile(tile) + exchanged(x.get_tile(tile))

        def add(tile: Tile) -> None:
            a, _, b, _ = tile
            turned = (b, 0, a, 0)
            of_a, of_b = (t1[:, cuts[n] : cuts[n + 1]] for n in (a, b))
            found = a_part.get_tile(tile) + a_part.get_tile(turned).transpose(2, 3, 0, 1)
            found = found - exchanged(found)
            found += of_mixed(tile) - of_mixed(turned).transpose(2, 3, 0, 1)
            values = r2.get_tile(tile)
            found += self._holes.product(values)
            found += np.tensordot(of.t2.get_tile(tile), hole, ([1, 3], [0, 2])).transpose(0, 2, 1, 3)
            found += block(a + 1, b + 1)
            of_k = block(0, b + 1) - np.einsum("kilj,lb->kibj", inner, of_b)
            found -= np.tensordot(of_a, of_k, ([0], [0]))
            found -= np.einsum("ailj,lb->aibj", block(a + 1, 0), of_b)
            out.put_tile(tile, found)

        self.room.each_tile(out, add, "product")

    # ---- of a search ----

    def project(self, doubles: tuple[Array, ...]) -> None:
        project(self.room, doubles[0])

    def product(self, factors: tuple[Values, Values], part: int, tile: Tile) -> Values:
        cuts = self.spaces.v.cuts
        a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
        one, other = factors
        made = np.einsum("ia,jb->aibj", one[:, a], other[:, b])
        both = made + np.einsum("ia,jb->aibj", other[:, a], one[:, b])
        found: Values = 2.0 * made - exchanged(both)
        return found

    def square(self, singles: Values) -> float:
        return 2.0 * float(np.vdot(singles, singles))

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        of_alpha, mixed = parts(doubles, tile)
        return 0.5 * float(np.vdot(of_alpha, of_alpha)) + float(np.vdot(mixed, mixed))


def project(room: Room, array: Array) -> None:
    """Keeps, of the part that is symmetric in the pairs, only its component antisymmetric in i and j.
    Collective."""

    def work(tile: Tile) -> None:
        a, _, b, _ = tile
        if a > b:
            return
        of_alpha, mixed = parts(array, tile)
        of_alpha = 0.5 * (of_alpha - exchanged(of_alpha))
        array.put_tile(tile, of_alpha + mixed)
        if a < b:
            array.put_tile((b, 0, a, 0), (of_alpha - mixed).transpose(2, 3, 0, 1))

    room.each_tile(array, work, "project")


def parts(doubles: Array, tile: Tile) -> tuple[Values, Values]:
    """A and M of a tile."""
    a, _, b, _ = tile
    values, turned = doubles.get_tile(tile), doubles.get_tile((b, 0, a, 0)).transpose(2, 3, 0, 1)
    return 0.5 * (values + turned), 0.5 * (values - turned)
