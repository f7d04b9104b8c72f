"""The equations of closed-shell CCSD from three-index integrals, dressed with the single excitations.

i, j, k, l are occupied orbitals, a, b, c, d virtual ones; t1[i,a], T[a,i,b,j] = t_ij^ab, U = T - T' / 2 with
T'[a,i,b,j] = t_ij^ba, G[a,i,b,j] = (ja|ib), as rings read it. All arrays of two pairs lie as [a,i,b,j].

Both rings begin with the same intermediate, E0[a,i,c,k] = (ki|ac) + (f_ki d_ac - d_ik f_ac) / 2, dressed:

    X[a,i,b,j] = sum_ck (E0 - T G / 2)[a,i,c,k] T[c,j,b,k]
    Y[a,i,b,j] = sum_ck (E0 + U G)[a,i,c,k] U[c,k,b,j]
    R = -X / 2 - X' - Y

where the Fock matrices of both rings add up to f T of each index, and their terms with T' cancel. Two further
functions Q make them part of the product of three-index integrals.

Koch, Christiansen, Kobayashi, Jorgensen, Helgaker, Chem. Phys. Lett. 228, 233 (1994); DePrince, Sherrill, J. Chem.
Theory Comput. 9, 2687 (2013).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations import methods
from outcore.chem.cc.equations.doubles import Doubles, exchanged
from outcore.chem.cc.equations.holes import HoleProducts
from outcore.chem.cc.equations.ladder import Ladder
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class RestrictedEquations:
    """Residuals of amplitudes. Collective.

    Equations of other methods (`methods`) derive from this class; their residual has parts of this one. If the
    method has no singles, no integrals are dressed; if it has no ladder, the one given has no products, and there
    are no operands of rings.

    Args:
        fock: of the reference, [n][n] (Hartree), occupied orbitals first; off-diagonal elements count.
    """

    def __init__(
        self, room: Room, spaces: Spaces, integrals: Integrals, ladder: Ladder, fock: Values
    ) -> None:
        self.room, self.spaces, self.integrals, self.ladder, self.fock = (
            room,
            spaces,
            integrals,
            ladder,
            fock,
        )
        self.steps = Steps()
        self.t2 = room.array("T")
        self.u2 = room.array("U")
        self.exchange = room.array("G")
        self.w2 = room.array("W")
        self.rest = room.array("R")
        self.ring = room.array("E")
        free = (self.ring, self.rest)
        self.doubles = [Doubles(self.t2, self.w2, self.put_amplitudes, (0, 0), self._second_order, free)]
        method = methods.of(room.sizes.method)
        self.doo = room.array("Doo") if method.has_singles else integrals.boo
        self.dvo = room.array("Dvo") if method.has_singles else integrals.bvo
        self.y = room.array("Y")
        if method.has_ladder:
            self.soo = room.array("Soo")
            self.svv = room.array("Svv")
        room.contract("Qai,Qbj->ajbi", integrals.bvo, integrals.bvo, out=self.exchange)

    @property
    def of_triples(self) -> list[Array]:
        return [self.t2, *self.integrals.arrays]

    def _second_order(self, tile: Tile) -> Values:
        return exchanged(self.exchange.get_tile(tile))

    def sync(self) -> None:
        """Makes amplitudes that were put visible to all processes."""
        self.t2.sync()
        self.u2.sync()

    def put_amplitudes(self, tile: Tile, values: Values) -> None:
        """Puts T of a tile, and its U. The caller synchronizes."""
        self.t2.put_tile(tile, values)
        self.put_u(tile, values)

    def put_u(self, tile: Tile, values: Values) -> None:
        """Puts U of a tile of T."""
        self.u2.put_tile(tile, values - 0.5 * exchanged(values))

    def energy(self, singles: list[Values]) -> float:
        """The correlation energy (Hartree) of T and singles."""
        (t1,) = singles
        total = [2.0 * float(np.sum(self.fock[: len(t1), len(t1) :] * t1)) if self._leads else 0.0]
        cuts = self.spaces.v.cuts

        def add(tile: Tile) -> None:
            a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
            tau = self.t2.get_tile(tile) + np.einsum("ia,jb->aibj", t1[:, a], t1[:, b])
            value = np.vdot(self.exchange.get_tile(tile), 2.0 * exchanged(tau) - tau)
            total.append((1.0 if tile[0] == tile[2] else 2.0) * float(value))

        self.room.each_tile(self.t2, add, "energy")
        return float(self.room.world.all_reduce(sum(total)))

    @property
    def _leads(self) -> bool:
        return self.room.world.rank == 0

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        """The residual of singles, [i,a], for T, U and these singles; that of doubles goes to `w2`."""
        (t1,) = amplitudes
        o = self.spaces.occupied
        f = self.dress(t1)
        w, x = self.of_amplitudes()
        singles = self._singles(t1, f, w)
        self.put_one_body(t1, f[:o, :o] + w, f[o:, o:] - x)
        self.ladder.contract(self.t2, self.steps)
        self.steps.step("R", self.rest, lambda: self._exchange_rings(t1))
        self.steps.step("R", self.rest, self._direct_rings)
        self.dvo += self.y  # Z: its square has the first term and the Coulomb rings
        self.room.contract("Qai,Qbj->aibj", self.dvo, self.dvo, out=self.w2)
        self._add_pairs()
        return [singles]

    def of_amplitudes(self) -> tuple[Values, Values]:
        """Makes Y. Returns the terms that it adds to the Fock matrix of occupied orbitals, and subtracts from that
        of virtual ones."""
        c, b = self.room.contract, self.integrals
        y = c("aibj,Qbj->Qai", self.u2, b.bvo, out=self.y, scale=2.0)
        return c("Qdk,Qdj->kj", b.bvo, y), c("Qbk,Qck->bc", y, b.bvo)

    def _singles(self, t1: Values, f: Values, w: Values) -> Values:
        """The residual of singles [i,a]. f: the dressed Fock matrix. w: the term of Y for occupied orbitals."""
        c, o, y = self.room.contract, self.spaces.occupied, self.y
        found = f[o:, :o] + 2.0 * c("aick,kc->ai", self.u2, f[:o, o:].copy())
        found += c("Qad,Qdi->ai", self.integrals.bvv, y) - t1.T @ w - c("Qki,Qak->ai", self.doo, y)
        return np.ascontiguousarray(found.T)

    def dress(self, t1: Values) -> Values:
        """Makes Boo~ and Bvo~ of these singles; returns the dressed Fock matrix."""
        c, b, o = self.room.contract, self.integrals, self.spaces.occupied
        n = self.spaces.orbitals
        poo = c("Qck,ic->Qki", b.bvo, t1, out=self.doo)
        pvo = c("Qac,ic->Qai", b.bvv, t1, out=self.dvo)
        j = c("Qck,kc->Q", b.bvo, t1)
        g = np.empty((n, n))
        g[:o, :o] = 2.0 * c("Qki,Q->ki", b.boo, j) - c("Qkl,Qli->ki", poo, b.boo)
        g[:o, o:] = 2.0 * c("Qck,Q->kc", b.bvo, j) - c("Qkl,Qcl->kc", poo, b.bvo)
        g[o:, :o] = 2.0 * c("Qai,Q->ai", b.bvo, j) - c("Qak,Qki->ai", pvo, b.boo)
        g[o:, o:] = 2.0 * c("Qac,Q->ac", b.bvv, j) - c("Qak,Qck->ac", pvo, b.bvo)
        creates, annihilates = np.eye(n), np.eye(n)
        creates[o:, :o], annihilates[:o, o:] = -t1.T, t1
        self.room.add(self.doo, b.boo)
        self.room.add(self.dvo, b.bvo)
        c("Qki,ka->Qai", self.doo, t1, out=self.dvo, scale=-1.0, add=True)
        return creates @ (self.fock + g) @ annihilates.T

    def put_one_body(self, t1: Values | None, foo: Values, fvv: Values) -> None:
        """Puts S: the operands of E0, integrals [Q,k,i] and [Q,c,a] with two rows Q more, for the Fock matrices."""
        o, v = self.spaces.occupied, self.spaces.virtual
        more = np.stack([-0.5 * np.eye(o), 0.5 * foo])

        def occupied(tile: Tile) -> None:
            self.soo.put_tile(tile, np.concatenate([self.doo.get_tile((0, 0, 0)), more]))

        self.room.each_tile(self.soo, occupied, "dress integrals", held=3)
        self.integrals.dress(t1, self.svv, np.stack([fvv.T, np.eye(v)]))

    def _exchange_rings(self, t1: Values | None, *, squares: bool = True) -> None:
        """Puts exchange rings into R and, if there are singles, the part of the ladder's product with one occupied
        orbital. squares: with products of two doubles."""
        c, ring, rest, ladder = self.room.contract, self.ring, self.rest, self.ladder
        c("Qki,Qca->aick", self.soo, self.svv, out=ring)
        if squares:
            c("aldi,dlck->aick", self.t2, self.exchange, out=ring, add=True, scale=-0.5)
        c("aick,cjbk->aibj", ring, self.t2, out=rest)
        hole = np.ascontiguousarray(ladder.block(0, 0).transpose(0, 1, 3, 2))  # A_ji^kl as [k,j,i,l]
        hole *= 0.5
        cuts = self.spaces.v.cuts

        def both(a: int, tiles: list[Tile]) -> None:
            if t1 is not None:
                of_a = ladder.block(0, a + 1)  # A_ji^ka as [k,j,a,i]
                of_a -= (hole @ t1[:, cuts[a] : cuts[a + 1]]).transpose(0, 1, 3, 2)
                of_a = np.ascontiguousarray(of_a.transpose(2, 3, 1, 0))  # [a,i,j,k]
            for tile in tiles:
                x = rest.get_tile(tile)
                values = exchanged(x) + 0.5 * x
                if t1 is not None:
                    made = of_a @ t1[:, cuts[tile[2]] : cuts[tile[2] + 1]]  # [a,i,j,b]
                    values += made.transpose(0, 1, 3, 2)
                rest.put_tile(tile, np.negative(values, out=values))

        self.room.each_row(rest, 0, both, "rings")

    def _direct_rings(self, *, squares: bool = True) -> None:
        """Adds direct rings, except Coulomb rings, to R. squares: with products of two doubles."""
        c, ring, rest = self.room.contract, self.ring, self.rest
        c("Qki,Qca->aick", self.soo, self.svv, out=ring)
        if squares:
            c("aidl,dlck->aick", self.u2, self.exchange, out=ring, add=True)
        c("aick,ckbj->aibj", ring, self.u2, out=rest, add=True, scale=-1.0)

    def _add_pairs(self, *, squares: bool = True) -> None:
        """Adds to W: R in both orders of its pairs, the ladder of virtual orbitals, and that of occupied ones; both
        ladders use sums and differences. squares: with products of two doubles."""
        rest, ladder = self.rest, self.ladder
        hole = self.room.contract("Qki,Qlj->kilj", self.doo, self.doo)
        if squares:
            hole += ladder.block(0, 0)
        holes = HoleProducts(hole)
        del hole

        def add(tile: Tile) -> None:
            a, _, b, _ = tile
            total = holes.product(self.t2.get_tile(tile))
            total += rest.get_tile(tile)
            total += rest.get_tile((b, 0, a, 0)).transpose(2, 3, 0, 1)
            total += ladder.block(a + 1, b + 1)
            self.w2.acc_tile(tile, total)

        self.room.each_tile(self.w2, add, "residual")
