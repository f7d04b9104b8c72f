"""The equations of CCSD of open shells (UHF, and ROHF in semicanonical orbitals) from three-index integrals.

Spins are 0 (alpha) and 1 (beta). i, j, k, l are occupied orbitals, a, b, c, d virtual ones; arrays of two pairs lie
as [a,i,b,j], amplitudes of equal spins are antisymmetric, those of different ones have alpha first; G[a,i,b,j] =
(ia|jb). The rest is as in `restricted`. Rings of both kinds have E[a,i,c,k] = (ki|ac), dressed, with half of X =
T G + f_ki d_ac - d_ik f_ac for amplitudes of equal spins, which are made antisymmetric, and all of it for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import Doubles, exchanged
from outcore.chem.cc.equations.ladder import Ladder, put_occupied
from outcore.chem.cc.equations.opposite_ladder import OppositeLadder
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

SPINS = (0, 1)


class UnrestrictedEquations:
    """Residuals of amplitudes. Collective.

    Args:
        spaces, integrals, ladders, fock: of each spin; see RestrictedEquations.
    """

    def __init__(
        self,
        room: Room,
        spaces: Sequence[Spaces],
        integrals: Sequence[Integrals],
        ladders: Sequence[Ladder],
        opposite: OppositeLadder,
        fock: Sequence[Values],
    ) -> None:
        self.room, self.spaces, self.integrals, self.fock = room, spaces, integrals, fock
        self.ladders, self.opposite = ladders, opposite
        self.steps = Steps()
        self.same = [room.array("Taa"), room.array("Tbb")]
        self.mixed = room.array("Tab")
        self.ovov = [room.array("Gaa"), room.array("Gbb")]
        self.ovov_mixed = room.array("Gab")
        self.w = [room.array("Waa"), room.array("Wbb")]
        self.w_mixed = room.array("Wab")
        (
            self.e,
            self.x,
            self.rest,
            self.doo,
            self.dvo,
            self.svv,
            self.y,
            self.hole,
            self.ooov,
        ) = (
            [room.array(f"{name}{spin}") for spin in "ab"]
            for name in ("E", "X", "R", "Doo", "Dvo", "Svv", "Y", "oooo", "ooov")
        )
        self.h = [room.array("Hab"), room.array("Hba")]
        self.part = {name: room.array(name) for name in ("ooooab", "ooovab", "voooab", "Cba", "Cab")}
        b = integrals
        for s in SPINS:
            room.contract("Qai,Qbj->aibj", b[s].bvo, b[s].bvo, out=self.ovov[s])
        room.contract("Qai,Qbj->aibj", b[0].bvo, b[1].bvo, out=self.ovov_mixed)
        same = [
            Doubles(
                self.same[s],
                self.w[s],
                self.same[s].put_tile,
                (s, s),
                partial(self._antisymmetric, s),
                (self.e[s], self.x[s]),
            )
            for s in SPINS
        ]
        mixed = Doubles(
            self.mixed,
            self.w_mixed,
            self.mixed.put_tile,
            (0, 1),
            self.ovov_mixed.get_tile,
            (self.h[0], self.w_mixed),
        )
        self.doubles = [same[0], mixed, same[1]]

    @property
    def of_triples(self) -> list[Array]:
        return [*self.same, self.mixed, *(array for each in self.integrals for array in each.arrays)]

    def _antisymmetric(self, s: int, tile: Tile) -> Values:
        """(ia|jb) - (ib|ja)"""
        g = self.ovov[s].get_tile(tile)
        return g - exchanged(g)

    def sync(self) -> None:
        for each in self.doubles:
            each.amplitudes.sync()

    # ---- energy ----

    def energy(self, singles: list[Values]) -> float:
        """The correlation energy (Hartree) of the amplitudes."""
        total = [0.0]
        if self.room.world.rank == 0:
            total = [
                float(np.sum(f[: len(t), len(t) :] * t)) for f, t in zip(self.fock, singles, strict=True)
            ]

        def add(tile: Tile, each: Doubles, g: Array) -> None:
            s, r = each.spins
            a, b = (slice(*self.spaces[x].v.cuts[n : n + 2]) for x, n in ((s, tile[0]), (r, tile[2])))
            tau = np.einsum("ia,jb->aibj", singles[s][:, a], singles[r][:, b])
            weight = 1.0
            if s == r:
                tau = tau - exchanged(tau)
                weight = 0.5 if tile[0] == tile[2] else 1.0
            total.append(weight * float(np.vdot(g.get_tile(tile), each.amplitudes.get_tile(tile) + tau)))

        for each, g in zip(self.doubles, (self.ovov[0], self.ovov_mixed, self.ovov[1]), strict=True):
            self.room.each_tile(each.amplitudes, partial(add, each=each, g=g), "energy")
        return float(self.room.world.all_reduce(sum(total)))

    # ---- residuals ----

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        """Residuals of singles, [i,a]; those of doubles go to their arrays."""
        t = amplitudes
        fock = self.dress(t)
        self.put_y()
        dressed = [self.of_pairs(s, fock[s]) for s in SPINS]
        singles = [self._singles(s, t, fock, dressed[s][0]) for s in SPINS]
        self.contract_ladders()
        for s in SPINS:
            self.dvo[s] += self.y[s]  # Z
        self.put_rings(t, dressed)
        for s, name in zip(SPINS, ("Waa", "Wbb"), strict=True):
            self._add_half(s)
            self.steps.step(name, self.w[s], partial(self._same_spin, s, t[s]))
            self._add_half(s)  # all of X
        self._opposite_spin(t)
        return singles

    def put_y(self) -> None:
        """Makes Y of the doubles."""
        c, b = self.room.contract, self.integrals
        for s, y in zip(SPINS, self.y, strict=True):
            c("aibj,Qbj->Qai", self.same[s], b[s].bvo, out=y)
            c("aibj,Qbj->Qai" if s == 0 else "bjai,Qbj->Qai", self.mixed, b[1 - s].bvo, out=y, add=True)

    def _singles(self, s: int, t: list[Values], fock: list[Values], foo: Values) -> Values:
        """The residual of one spin, [i,a]. foo: see `of_pairs`."""
        c, b, y = self.room.contract, self.integrals[s], self.y[s]
        o, other = (self.spaces[each].occupied for each in (s, 1 - s))
        r = fock[s][o:, :o] + c("aick,kc->ai", self.same[s], fock[s][:o, o:].copy())
        r += c("aick,kc->ai" if s == 0 else "ckai,kc->ai", self.mixed, fock[1 - s][:other, other:].copy())
        r += c("Qad,Qdi->ai", b.bvv, y) - t[s].T @ (foo - fock[s][:o, :o])
        r -= c("Qki,Qak->ai", self.doo[s], y)
        return np.ascontiguousarray(r.T)

    def of_pairs(self, s: int, fock: Values) -> tuple[Values, Values]:
        """The dressed Fock matrix between occupied and between virtual orbitals, with the terms of Y."""
        c, o, y, bvo = self.room.contract, self.spaces[s].occupied, self.y[s], self.integrals[s].bvo
        return fock[:o, :o] + c("Qdk,Qdj->kj", bvo, y), fock[o:, o:] - c("Qbk,Qck->bc", y, bvo)

    def contract_ladders(self) -> None:
        for ladder, of in zip(self.ladders, self.same, strict=True):
            ladder.contract(of, self.steps)
        self.opposite.contract(self.mixed, self.steps)

    def keep_ladders(self, t: list[Values]) -> None:
        """Keeps products of the ladders with converged amplitudes, for multipliers and states: the parts with one
        occupied orbital (N), and those with two, to which (ki|lj)~ is added."""
        self.contract_ladders()
        room, part = self.room, self.part
        for s in SPINS:
            cuts = self.spaces[s].v.cuts
            put_occupied(room, self.ladders[s].block, t[s], 1.0, self.hole[s], self.ooov[s], cuts)
            room.contract("Qki,Qlj->kilj", self.doo[s], self.doo[s], out=self.hole[s], add=True, scale=2.0)
        block, cuts = self.opposite.block, self.spaces[0].v.cuts
        put_occupied(room, block, t[1], 1.0, part["ooooab"], part["ooovab"], self.spaces[1].v.cuts)
        hole, vooo = block(0, 0), part["voooab"]

        def put(tile: Tile) -> None:
            a = tile[0]
            of_a = t[0][:, cuts[a] : cuts[a + 1]]
            vooo.put_tile(tile, block(a + 1, 0) - np.einsum("kilj,ka->ailj", hole, of_a))

        room.each_tile(vooo, put, "ladder", held=3)
        room.contract("Qki,Qlj->kilj", *self.doo, out=part["ooooab"], add=True)

    def put_rings(self, t: list[Values], dressed: Sequence[tuple[Values, Values]]) -> None:
        """Puts E without X, and X and H. dressed: see `of_pairs`."""
        c, b = self.room.contract, self.integrals
        for s in SPINS:
            b[s].dress(t[s], self.svv[s])
            c("Qki,Qca->aick", self.doo[s], self.svv[s], out=self.e[s])
            c("Pki,Pca->aick", *one_body(*dressed[s]), out=self.x[s])
            c("aidl,dkcl->aick", self.same[s], self.ovov[s], out=self.x[s], add=True)
        c("aidl,dkcl->aick", self.mixed, self.ovov[1], out=self.h[0])
        c("dlbj,dkcl->bjck", self.mixed, self.ovov[0], out=self.h[1])

    def dress(self, t: list[Values]) -> list[Values]:
        """Makes Boo~ and Bvo~; returns the dressed Fock matrices."""
        c, b = self.room.contract, self.integrals
        j = sum(c("Qck,kc->Q", b[s].bvo, t[s]) for s in SPINS)
        result = []
        for s in SPINS:
            o, n = self.spaces[s].occupied, self.spaces[s].orbitals
            poo = c("Qck,ic->Qki", b[s].bvo, t[s], out=self.doo[s])
            pvo = c("Qac,ic->Qai", b[s].bvv, t[s], out=self.dvo[s])
            g = np.empty((n, n))
            g[:o, :o] = c("Qki,Q->ki", b[s].boo, j) - c("Qkl,Qli->ki", poo, b[s].boo)
            g[:o, o:] = c("Qck,Q->kc", b[s].bvo, j) - c("Qkl,Qcl->kc", poo, b[s].bvo)
            g[o:, :o] = c("Qai,Q->ai", b[s].bvo, j) - c("Qak,Qki->ai", pvo, b[s].boo)
            g[o:, o:] = c("Qac,Q->ac", b[s].bvv, j) - c("Qak,Qck->ac", pvo, b[s].bvo)
            creates, annihilates = np.eye(n), np.eye(n)
            creates[o:, :o], annihilates[:o, o:] = -t[s].T, t[s]
            self.room.add(self.doo[s], b[s].boo)
            self.room.add(self.dvo[s], b[s].bvo)
            c("Qki,ka->Qai", self.doo[s], t[s], out=self.dvo[s], scale=-1.0, add=True)
            result.append(creates @ (self.fock[s] + g) @ annihilates.T)
        return result

    def _add_half(self, s: int) -> None:
        """E += X / 2"""
        e, x = self.e[s], self.x[s]
        self.room.each_tile(e, lambda tile: e.acc_tile(tile, x.get_tile(tile), 0.5), "rings")

    def _same_spin(self, s: int, t1: Values) -> None:
        """Puts the residual of doubles of equal spins, from E, H and the product of the ladder."""
        c, t2, rest, w = self.room.contract, self.same[s], self.rest[s], self.w[s]
        c("aick,ckbj->aibj", self.e[s], t2, out=rest, scale=-1.0)
        if s == 0:
            c("aick,bjck->aibj", self.h[0], self.mixed, out=rest, add=True, scale=-0.5)
        else:
            c("aick,ckbj->aibj", self.h[1], self.mixed, out=rest, add=True, scale=-0.5)
        c("Qai,Qbj->aibj", self.dvo[s], self.dvo[s], out=rest, add=True, scale=0.5)
        ladder = self.ladders[s]
        put_occupied(self.room, ladder.block, t1, 0.5, self.hole[s], self.ooov[s], self.spaces[s].v.cuts)
        c("kibj,ka->aibj", self.ooov[s], t1, out=rest, add=True, scale=-0.5)
        c("Qki,Qlj->kilj", self.doo[s], self.doo[s], out=self.hole[s], add=True, scale=2.0)
        c("akbl,kilj->aibj", t2, self.hole[s], out=rest, add=True, scale=0.125)

        def fold(tile: Tile) -> None:
            a, _, b, _ = tile
            x, y = rest.get_tile(tile), rest.get_tile((b, 0, a, 0))
            total = x - exchanged(x) - y.transpose(2, 1, 0, 3) + y.transpose(2, 3, 0, 1)
            w.put_tile(tile, total + ladder.block(a + 1, b + 1))

        self.room.each_tile(w, fold, "residual")

    def _opposite_spin(self, t: list[Values]) -> None:
        c, t2, w = self.room.contract, self.mixed, self.w_mixed
        part, doo = self.part, self.doo
        block = self.opposite.block
        self.room.each_tile(w, lambda tile: w.put_tile(tile, block(tile[0] + 1, tile[2] + 1)), "ladder")
        oooo = part["ooooab"]
        put_occupied(self.room, block, t[1], 1.0, oooo, part["ooovab"], self.spaces[1].v.cuts)
        c("kibj,ka->aibj", part["ooovab"], t[0], out=w, add=True, scale=-1.0)
        vooo = part["voooab"]
        self.room.each_tile(vooo, lambda tile: vooo.put_tile(tile, block(tile[0] + 1, 0)), "ladder")
        c("ailj,lb->aibj", vooo, t[1], out=w, add=True, scale=-1.0)
        c("Qki,Qlj->kilj", doo[0], doo[1], out=oooo, add=True)
        c("akbl,kilj->aibj", t2, oooo, out=w, add=True)
        c("Qai,Qbj->aibj", self.dvo[0], self.dvo[1], out=w, add=True)
        c("aick,bjck->aibj", t2, self.e[1], out=w, add=True, scale=-1.0)
        c("aick,ckbj->aibj", self.e[0], t2, out=w, add=True, scale=-1.0)
        self.put_crossed()
        c("akcj,bick->aibj", t2, part["Cba"], out=w, add=True, scale=-1.0)
        c("ajck,cibk->aibj", part["Cab"], t2, out=w, add=True, scale=-1.0)

    def put_crossed(self) -> None:
        """Makes crossed rings: (ki|BC) - (kd|LC) t_iL^dB as Cba, and (KJ|ac) as Cab."""
        c, part, doo = self.room.contract, self.part, self.doo
        c("Qki,Qca->aick", doo[0], self.svv[1], out=part["Cba"])
        c("dkcl,dibl->bick", self.ovov_mixed, self.mixed, out=part["Cba"], add=True, scale=-1.0)
        c("Qki,Qca->aick", doo[1], self.svv[0], out=part["Cab"])


def one_body(foo: Values, fvv: Values) -> tuple[Values, Values]:
    """Operands [P,k,i] and [P,c,a] of f_ki d_ac - d_ik f_ac."""
    return np.stack([-np.eye(len(foo)), foo]), np.stack([fvv.T, np.eye(len(fvv))])
