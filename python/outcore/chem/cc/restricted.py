"""The equations of closed-shell CCSD from three-index integrals, dressed with the single excitations.

i, j, k, l are occupied orbitals, a, b, c, d virtual ones; t1[i,a], T[a,i,b,j] = t_ij^ab, U = T - T' / 2 with
T'[a,i,b,j] = t_ij^ba, G[a,i,b,j] = (ia|jb). All arrays of two pairs lie as [a,i,b,j].

Koch, Christiansen, Kobayashi, Jorgensen, Helgaker, Chem. Phys. Lett. 228, 233 (1994); DePrince, Sherrill, J. Chem.
Theory Comput. 9, 2687 (2013).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.doubles import Doubles, exchanged
from outcore.chem.cc.ladder import Ladder, put_occupied
from outcore.chem.cc.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.integrals import Integrals
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.spaces import Spaces
    from outcore.tensor.array import Array
    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class RestrictedEquations:
    """Residuals of amplitudes. Collective.

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
        self.ovov = room.array("G")
        self.w2 = room.array("W")
        self._rest = room.array("R")
        self._ring = room.array("E")
        free = (self._ring, self._rest)
        self.doubles = [Doubles(self.t2, self.w2, self.put_amplitudes, (0, 0), self._second_order, free)]
        self._doo = room.array("Doo")
        self._dvo = room.array("Dvo")
        self._poo = room.array("Poo")
        self._pvo = room.array("Pvo")
        self._y = room.array("Y")
        self._hole = room.array("oooo")
        self._mixed = room.array("ooov")
        room.contract("Qai,Qbj->aibj", integrals.bvo, integrals.bvo, out=self.ovov)

    @property
    def of_triples(self) -> list[Array]:
        return [self.t2, *self.integrals.arrays]

    def _second_order(self, tile: Tile) -> Values:
        return self.ovov.get_tile(tile)

    def sync(self) -> None:
        """What `put_amplitudes` has put is there for all."""
        self.t2.sync()
        self.u2.sync()

    def put_amplitudes(self, tile: Tile, values: Values) -> None:
        """T of a tile, and U of it. The caller synchronizes."""
        self.t2.put_tile(tile, values)
        self.u2.put_tile(tile, values - 0.5 * exchanged(values))

    def energy(self, singles: list[Values]) -> float:
        """The correlation energy (Hartree) of T and singles."""
        (t1,) = singles
        total = [2.0 * float(np.sum(self.fock[: len(t1), len(t1) :] * t1)) if self._leads else 0.0]
        cuts = self.spaces.v.cuts

        def add(tile: Tile) -> None:
            a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
            tau = self.t2.get_tile(tile) + np.einsum("ia,jb->aibj", t1[:, a], t1[:, b])
            value = np.vdot(self.ovov.get_tile(tile), 2.0 * tau - exchanged(tau))
            total.append((1.0 if tile[0] == tile[2] else 2.0) * float(value))

        self.room.each_tile(self.t2, add, "energy")
        return float(self.room.world.all_reduce(sum(total)))

    @property
    def _leads(self) -> bool:
        return self.room.world.rank == 0

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        """That of singles, [i,a]; that of doubles is in `w2`. Of T, U and singles."""
        (t1,) = amplitudes
        room, b = self.room, self.integrals
        c = room.contract
        o = self.spaces.occupied
        f = self._dressed(t1)
        y = c("aibj,Qbj->Qai", self.u2, b.bvo, out=self._y, scale=2.0)
        w = c("Qdk,Qdj->kj", b.bvo, y)
        singles = f[o:, :o] + 2.0 * c("aick,kc->ai", self.u2, f[:o, o:].copy())
        singles += c("Qad,Qdi->ai", b.bvv, y) - t1.T @ w - c("Qki,Qak->ai", self._doo, y)
        foo = f[:o, :o] + w
        fvv = f[o:, o:] - c("Qbk,Qck->bc", y, b.bvo)
        self.ladder.contract(self.t2, self.steps)
        rest = self._rest
        self.steps.step("R", rest, lambda: self._exchange_rings(t1))
        self.steps.step("R", rest, lambda: self._direct_rings(t1))
        c("aicj,bc->aibj", self.t2, fvv, out=rest, add=True)
        self._ladders(t1)
        self._dvo += y  # Z, of which the square has the first term and the Coulomb rings
        c("Qai,Qbj->aibj", self._dvo, self._dvo, out=self.w2, add=True)

        def add(tile: Tile) -> None:
            a, _, d, _ = tile
            both = rest.get_tile(tile) + rest.get_tile((d, 0, a, 0)).transpose(2, 3, 0, 1)
            t2 = self.t2.get_tile(tile)
            both -= np.matmul(t2, foo)  # of j, then of i
            both -= np.matmul(foo.T, t2.reshape(len(t2), o, -1)).reshape(both.shape)
            self.w2.acc_tile(tile, both)

        room.each_tile(self.w2, add, "residual")
        return [np.ascontiguousarray(singles.T)]

    def _dressed(self, t1: Values) -> Values:
        """The Fock matrix, dressed; and Boo~, Bvo~ of the present singles."""
        c, b, o = self.room.contract, self.integrals, self.spaces.occupied
        n = self.spaces.orbitals
        poo = c("Qck,ic->Qki", b.bvo, t1, out=self._poo)
        pvo = c("Qac,ic->Qai", b.bvv, t1, out=self._pvo)
        j = c("Qck,kc->Q", b.bvo, t1)
        g = np.empty((n, n))
        g[:o, :o] = 2.0 * c("Qki,Q->ki", b.boo, j) - c("Qkl,Qli->ki", poo, b.boo)
        g[:o, o:] = 2.0 * c("Qck,Q->kc", b.bvo, j) - c("Qkl,Qcl->kc", poo, b.bvo)
        g[o:, :o] = 2.0 * c("Qai,Q->ai", b.bvo, j) - c("Qak,Qki->ai", pvo, b.boo)
        g[o:, o:] = 2.0 * c("Qac,Q->ac", b.bvv, j) - c("Qak,Qck->ac", pvo, b.bvo)
        creates, annihilates = np.eye(n), np.eye(n)
        creates[o:, :o], annihilates[:o, o:] = -t1.T, t1
        self.room.sum(self._doo, b.boo, poo)
        self.room.sum(self._dvo, b.bvo, pvo)
        c("Qki,ka->Qai", self._doo, t1, out=self._dvo, scale=-1.0, add=True)
        return creates @ (self.fock + g) @ annihilates.T

    def _exchange_rings(self, t1: Values) -> None:
        """What exchange makes of pairs, as R."""
        c, ring, rest = self.room.contract, self._ring, self._rest
        self._exchange(ring, t1)
        c("aldi,dkcl->aick", self.t2, self.ovov, out=ring, add=True, scale=-0.5)
        c("aick,cjbk->aibj", ring, self.t2, out=rest)

        def both(tile: Tile) -> None:
            values = rest.get_tile(tile)
            rest.put_tile(tile, -0.5 * values - exchanged(values))

        self.room.each_tile(rest, both, "rings")

    def _direct_rings(self, t1: Values) -> None:
        """What pairs make beside Coulomb rings, added to R."""
        c, ring, rest = self.room.contract, self._ring, self._rest
        self._exchange(ring, t1)
        c("aidl,dkcl->aick", self.u2, self.ovov, out=ring, add=True)
        c("aick,ckbj->aibj", ring, self.u2, out=rest, add=True, scale=-1.0)

    def _exchange(self, out: Array, t1: Values) -> None:
        """(ki|ac), dressed, as [a,i,c,k]."""
        c, b = self.room.contract, self.integrals
        c("Qki,Qac->aick", self._doo, b.bvv, out=out)
        c("Qki,Qcl->kicl", self._doo, b.bvo, out=self._mixed)
        c("kicl,la->aick", self._mixed, t1, out=out, add=True, scale=-1.0)

    def _ladders(self, t1: Values) -> None:
        """Both ladders, of the product that there is: into W what virtual orbitals alone make, the rest into R."""
        c, ladder = self.room.contract, self.ladder
        self.room.each_tile(
            self.w2, lambda tile: self.w2.put_tile(tile, ladder.block(tile[0] + 1, tile[2] + 1)), "ladder"
        )
        put_occupied(self.room, ladder.block, t1, 0.5, self._hole, self._mixed)
        c("kibj,ka->aibj", self._mixed, t1, out=self._rest, add=True, scale=-1.0)
        c("Qki,Qlj->kilj", self._doo, self._doo, out=self._hole, add=True)
        c("akbl,kilj->aibj", self.t2, self._hole, out=self._rest, add=True, scale=0.5)
