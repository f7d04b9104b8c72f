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

from outcore.chem.cc.doubles import Doubles, exchanged
from outcore.chem.cc.ladder import Ladder, put_occupied
from outcore.chem.cc.opposite_ladder import OppositeLadder
from outcore.chem.cc.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.integrals import Integrals
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.spaces import Spaces
    from outcore.tensor.array import Array
    from outcore.tensor.layout import Tile

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
        self._ladders, self._opposite = ladders, opposite
        self.steps = Steps()
        self.same = [room.array("Taa"), room.array("Tbb")]
        self.mixed = room.array("Tab")
        self.ovov = [room.array("Gaa"), room.array("Gbb")]
        self.ovov_mixed = room.array("Gab")
        self._w = [room.array("Waa"), room.array("Wbb")]
        self._w_mixed = room.array("Wab")
        (
            self._e,
            self._x,
            self._r,
            self._doo,
            self._dvo,
            self._svv,
            self._y,
            self._hole,
            self._ooov,
        ) = (
            [room.array(f"{name}{spin}") for spin in "ab"]
            for name in ("E", "X", "R", "Doo", "Dvo", "Svv", "Y", "oooo", "ooov")
        )
        self._h = [room.array("Hab"), room.array("Hba")]
        self._part = {name: room.array(name) for name in ("ooooab", "ooovab", "voooab", "Mba", "Lab")}
        b = integrals
        for s in SPINS:
            room.contract("Qai,Qbj->aibj", b[s].bvo, b[s].bvo, out=self.ovov[s])
        room.contract("Qai,Qbj->aibj", b[0].bvo, b[1].bvo, out=self.ovov_mixed)
        same = [
            Doubles(
                self.same[s],
                self._w[s],
                self.same[s].put_tile,
                (s, s),
                partial(self._antisymmetric, s),
                (self._e[s], self._x[s]),
            )
            for s in SPINS
        ]
        mixed = Doubles(
            self.mixed,
            self._w_mixed,
            self.mixed.put_tile,
            (0, 1),
            self.ovov_mixed.get_tile,
            (self._h[0], self._w_mixed),
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
        total = []
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
        """Those of singles, [i,a]; those of doubles are in their arrays."""
        c, b, t = self.room.contract, self.integrals, amplitudes
        fock = self._dressed(t)
        singles, foo, fvv = [], [], []
        for s in SPINS:
            o, y = self.spaces[s].occupied, self._y[s]
            c("aibj,Qbj->Qai", self.same[s], b[s].bvo, out=y)
            c("aibj,Qbj->Qai" if s == 0 else "bjai,Qbj->Qai", self.mixed, b[1 - s].bvo, out=y, add=True)
        for s in SPINS:
            o, y, f = self.spaces[s].occupied, self._y[s], fock[s]
            w = c("Qdk,Qdj->kj", b[s].bvo, y)
            other = self.spaces[1 - s].occupied
            r = f[o:, :o] + c("aick,kc->ai", self.same[s], f[:o, o:].copy())
            r += c("aick,kc->ai" if s == 0 else "ckai,kc->ai", self.mixed, fock[1 - s][:other, other:].copy())
            r += c("Qad,Qdi->ai", b[s].bvv, y) - t[s].T @ w - c("Qki,Qak->ai", self._doo[s], y)
            singles.append(np.ascontiguousarray(r.T))
            foo.append(f[:o, :o] + w)
            fvv.append(f[o:, o:] - c("Qbk,Qck->bc", y, b[s].bvo))
        for ladder, of in zip(self._ladders, self.same, strict=True):
            ladder.contract(of, self.steps)
        self._opposite.contract(self.mixed, self.steps)
        for s in SPINS:
            self._dvo[s] += self._y[s]  # Z
            b[s].dress(t[s], self._svv[s])
            c("Qki,Qca->aick", self._doo[s], self._svv[s], out=self._e[s])
            c("Pki,Pca->aick", *_one_body(foo[s], fvv[s]), out=self._x[s])
            c("aidl,dkcl->aick", self.same[s], self.ovov[s], out=self._x[s], add=True)
            self._add_half(s)
        c("aidl,dkcl->aick", self.mixed, self.ovov[1], out=self._h[0])
        c("dlbj,dkcl->bjck", self.mixed, self.ovov[0], out=self._h[1])
        for s, name in zip(SPINS, ("Waa", "Wbb"), strict=True):
            self.steps.step(name, self._w[s], partial(self._same_spin, s, t[s]))
            self._add_half(s)  # all of X
        self._opposite_spin(t)
        return singles

    def _dressed(self, t: list[Values]) -> list[Values]:
        """Fock matrices, dressed; and Boo~, Bvo~."""
        c, b = self.room.contract, self.integrals
        j = sum(c("Qck,kc->Q", b[s].bvo, t[s]) for s in SPINS)
        result = []
        for s in SPINS:
            o, n = self.spaces[s].occupied, self.spaces[s].orbitals
            poo = c("Qck,ic->Qki", b[s].bvo, t[s], out=self._doo[s])
            pvo = c("Qac,ic->Qai", b[s].bvv, t[s], out=self._dvo[s])
            g = np.empty((n, n))
            g[:o, :o] = c("Qki,Q->ki", b[s].boo, j) - c("Qkl,Qli->ki", poo, b[s].boo)
            g[:o, o:] = c("Qck,Q->kc", b[s].bvo, j) - c("Qkl,Qcl->kc", poo, b[s].bvo)
            g[o:, :o] = c("Qai,Q->ai", b[s].bvo, j) - c("Qak,Qki->ai", pvo, b[s].boo)
            g[o:, o:] = c("Qac,Q->ac", b[s].bvv, j) - c("Qak,Qck->ac", pvo, b[s].bvo)
            creates, annihilates = np.eye(n), np.eye(n)
            creates[o:, :o], annihilates[:o, o:] = -t[s].T, t[s]
            self.room.add(self._doo[s], b[s].boo)
            self.room.add(self._dvo[s], b[s].bvo)
            c("Qki,ka->Qai", self._doo[s], t[s], out=self._dvo[s], scale=-1.0, add=True)
            result.append(creates @ (self.fock[s] + g) @ annihilates.T)
        return result

    def _add_half(self, s: int) -> None:
        """E += X / 2"""
        e, x = self._e[s], self._x[s]
        self.room.each_tile(e, lambda tile: e.acc_tile(tile, x.get_tile(tile), 0.5), "rings")

    def _same_spin(self, s: int, t1: Values) -> None:
        """The residual of doubles of equal spins, of E, H and the product of the ladder."""
        c, t2, rest, w = self.room.contract, self.same[s], self._r[s], self._w[s]
        c("aick,ckbj->aibj", self._e[s], t2, out=rest, scale=-1.0)
        if s == 0:
            c("aick,bjck->aibj", self._h[0], self.mixed, out=rest, add=True, scale=-0.5)
        else:
            c("aick,ckbj->aibj", self._h[1], self.mixed, out=rest, add=True, scale=-0.5)
        c("Qai,Qbj->aibj", self._dvo[s], self._dvo[s], out=rest, add=True, scale=0.5)
        ladder = self._ladders[s]
        put_occupied(self.room, ladder.block, t1, 0.5, self._hole[s], self._ooov[s])
        c("kibj,ka->aibj", self._ooov[s], t1, out=rest, add=True, scale=-0.5)
        c("Qki,Qlj->kilj", self._doo[s], self._doo[s], out=self._hole[s], add=True, scale=2.0)
        c("akbl,kilj->aibj", t2, self._hole[s], out=rest, add=True, scale=0.125)

        def fold(tile: Tile) -> None:
            a, _, b, _ = tile
            x, y = rest.get_tile(tile), rest.get_tile((b, 0, a, 0))
            total = x - exchanged(x) - y.transpose(2, 1, 0, 3) + y.transpose(2, 3, 0, 1)
            w.put_tile(tile, total + ladder.block(a + 1, b + 1))

        self.room.each_tile(w, fold, "residual")

    def _opposite_spin(self, t: list[Values]) -> None:
        c, t2, w = self.room.contract, self.mixed, self._w_mixed
        part, doo = self._part, self._doo
        block = self._opposite.block
        self.room.each_tile(w, lambda tile: w.put_tile(tile, block(tile[0] + 1, tile[2] + 1)), "ladder")
        oooo = part["ooooab"]
        put_occupied(self.room, block, t[1], 1.0, oooo, part["ooovab"])
        c("kibj,ka->aibj", part["ooovab"], t[0], out=w, add=True, scale=-1.0)
        vooo = part["voooab"]
        self.room.each_tile(vooo, lambda tile: vooo.put_tile(tile, block(tile[0] + 1, 0)), "ladder")
        c("ailj,lb->aibj", vooo, t[1], out=w, add=True, scale=-1.0)
        c("Qki,Qlj->kilj", doo[0], doo[1], out=oooo, add=True)
        c("akbl,kilj->aibj", t2, oooo, out=w, add=True)
        c("Qai,Qbj->aibj", self._dvo[0], self._dvo[1], out=w, add=True)
        c("aick,bjck->aibj", t2, self._e[1], out=w, add=True, scale=-1.0)
        c("aick,ckbj->aibj", self._e[0], t2, out=w, add=True, scale=-1.0)
        # Crossed rings: (ki|BC) - (kd|LC) t_iL^dB, and (KJ|ac).
        c("Qki,Qca->aick", doo[0], self._svv[1], out=part["Mba"])
        c("dkcl,dibl->bick", self.ovov_mixed, t2, out=part["Mba"], add=True, scale=-1.0)
        c("akcj,bick->aibj", t2, part["Mba"], out=w, add=True, scale=-1.0)
        c("Qki,Qca->aick", doo[1], self._svv[0], out=part["Lab"])
        c("ajck,cibk->aibj", part["Lab"], t2, out=w, add=True, scale=-1.0)


def _one_body(foo: Values, fvv: Values) -> tuple[Values, Values]:
    """Operands [P,k,i] and [P,c,a] of f_ki d_ac - d_ik f_ac."""
    return np.stack([-np.eye(len(foo)), foo]), np.stack([fvv.T, np.eye(len(fvv))])
