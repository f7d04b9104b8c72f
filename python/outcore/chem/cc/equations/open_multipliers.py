"""The Lambda equations of CCSD of open shells from three-index integrals.

    L = E + sum_s l1_s W1_s + (laa Waa + lbb Wbb) / 4 + lab Wab

is stationary in the amplitudes, whose residuals are W1 and W (`unrestricted`). All here is the derivative of L,
backwards through the intermediates of those residuals: an array with `_` behind its name is the derivative of L by
the array of that name. Names and letters are those of `unrestricted`; multipliers lie as amplitudes do, those of
equal spins antisymmetric. What does not depend on multipliers is made once:

    K_s = (ki|ac)~ + T G + (f_ki d_ac - d_ik f_ac) / 2,    F_s the same with all of the Fock matrices
    H, M[B,i,C,k], C[a,J,c,K]: rings and crossed rings of opposite spins
    N: the part of a ladder's product with one occupied orbital; D: (ki|..)~ of all spins, as [l,i,c,k]

Ladders of multipliers read the same integrals from their other side; see `multipliers`, which has closed shells and
the literature. PySCF has the same l1 and l2.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import Doubles, exchanged
from outcore.chem.cc.equations.dressed_pairs import DressedPairs
from outcore.chem.cc.equations.steps import Steps
from outcore.chem.cc.equations.unrestricted import SPINS, one_body

if TYPE_CHECKING:
    from outcore.chem.cc.equations.open_triple_arrays import OpenDerivatives
    from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class OpenMultiplierEquations:
    """Residuals of multipliers, for converged amplitudes. Collective.

    Args:
        of: the equations of the amplitudes, whose arrays stay as they are from now on.
        t: singles [i,a] of each spin.
        of_triples: derivatives of (T), whose energy is part of L then.
    """

    def __init__(
        self, of: UnrestrictedEquations, t: list[Values], of_triples: OpenDerivatives | None = None
    ) -> None:
        self.of, self.t, self.fock, self.of_triples = of, t, of.fock, of_triples
        self.room, self.spaces = of.room, of.spaces
        self.steps = Steps()
        room = self.room
        self.same, self.mixed = [room.array("Laa"), room.array("Lbb")], room.array("Lab")
        self.rings = [room.array("Ja"), room.array("Jb")]  # derivatives by E
        self.crossed = [room.array("Jab"), room.array("Jba")]  # by C and M
        self._free = room.array("Rab")
        same = [
            Doubles(
                self.same[s],
                of.w[s],
                self.same[s].put_tile,
                (s, s),
                of.same[s].get_tile,
                (of.rest[s], self.rings[s]),
            )
            for s in SPINS
        ]
        free = (self._free, of.w_mixed)
        mixed = Doubles(self.mixed, of.w_mixed, self.mixed.put_tile, (0, 1), of.mixed.get_tile, free)
        self.doubles = [same[0], mixed, same[1]]
        # Arrays that do not depend on the multipliers.
        self.dressed_fock = of.dress(t)
        of.put_y()
        self.y, self.doo, self.dvv = of.y, of.doo, of.svv
        of.keep_ladders(t)
        for ladder in of.ladders:
            ladder.begin_transposed()
        of.opposite.begin_transposed()
        self._keep_rings()
        self.z = of.dvo
        for z, y in zip(self.z, self.y, strict=True):
            room.add(z, y)
        self.goo, self.gvo, self.y_ = (
            [room.array(f"{name}{spin}") for spin in "ab"] for name in ("Goo", "Gvo", "Yvo")
        )
        self._pairs = [[room.array(f"D{x}{y}") for y in "ab"] for x in "ab"]
        for s in SPINS:
            for r in SPINS:
                out = self._pairs[s][r]
                room.contract("Qli,Qck->lick", self.doo[s], of.integrals[r].bvo, out=out)

    def _keep_rings(self) -> None:
        """Makes K as `of.e`, F as `of.x`, H, M and C."""
        c, of, part = self.room.contract, self.of, self.of.part
        dressed = [of.of_pairs(s, self.dressed_fock[s]) for s in SPINS]
        of.put_rings(self.t, dressed)  # X with all of the Fock matrices
        for s in SPINS:
            self.room.add(of.x[s], of.e[s])  # F
            c("aidl,dkcl->aick", of.same[s], of.ovov[s], out=of.e[s], add=True)
            c("Pki,Pca->aick", *one_body(*dressed[s]), out=of.e[s], add=True, scale=0.5)
        of.put_crossed()
        c("ckdl,akdj->ajcl", of.ovov_mixed, of.mixed, out=part["Cab"], add=True, scale=-1.0)

    # ---- multipliers ----

    def put_first(self) -> list[Values]:
        """Puts the amplitudes as first multipliers; returns singles."""
        for each in self.doubles:

            def put(tile: Tile, each: Doubles = each) -> None:
                each.put(tile, each.integrals(tile))

            self.room.each_tile(each.amplitudes, put, "multipliers")
        self.sync()
        return [each.copy() for each in self.t]

    def sync(self) -> None:
        for each in self.doubles:
            each.amplitudes.sync()

    def energy(self, singles: list[Values]) -> float:
        """The linear part of the correlation energy with multipliers in place of amplitudes (Hartree): a number
        that converges as they do, and is no energy of a state."""
        total = [0.0]
        if self.room.world.rank == 0:
            total = [
                float(np.sum(f[: len(l1), len(l1) :] * l1)) for f, l1 in zip(self.fock, singles, strict=True)
            ]

        def add(tile: Tile, each: Doubles, g: Array) -> None:
            value = float(np.vdot(g.get_tile(tile), each.amplitudes.get_tile(tile)))
            is_half = each.spins[0] == each.spins[1] and tile[0] == tile[2]
            total.append(0.5 * value if is_half else value)

        of = self.of
        for each, g in zip(self.doubles, (of.ovov[0], of.ovov_mixed, of.ovov[1]), strict=True):
            self.room.each_tile(each.amplitudes, partial(add, each=each, g=g), "energy")
        return float(self.room.world.all_reduce(sum(total)))

    @property
    def one_particle(self) -> list[Values]:
        """gamma[p,q] = dL/df[p,q] with orbitals that do not respond, symmetric. The caller calls `of_multipliers`
        first."""
        found = []
        for t, each in zip(self.t, self.one_body, strict=True):
            gamma = each.copy()
            gamma[: len(t), len(t) :] += 0.5 * t
            found.append(0.5 * (gamma + gamma.T))
        if self.of_triples is not None:
            found = [one + more for one, more in zip(found, self.of_triples.one, strict=True)]
        return found

    # ---- residuals ----

    def residual(self, multipliers: list[Values]) -> list[Values]:
        """dL/dt1 [i,a] of each spin, for these multipliers; derivatives by doubles go to their arrays."""
        self.of_multipliers(multipliers)
        self.put_rings()
        self.put_goo(multipliers)
        found = [self._singles(s, multipliers) for s in SPINS]
        if self.of_triples is not None:
            found = [one + more for one, more in zip(found, self.of_triples.t1, strict=True)]
        of, steps = self.of, self.steps
        for s in SPINS:
            of.ladders[s].contract_transposed(self.dressed[s].block, self.same[s], steps)
        of.opposite.contract_transposed(self.dressed_mixed.block, self.mixed, steps)
        for s, name in zip(SPINS, ("Waa", "Wbb"), strict=True):
            steps.step(name, of.w[s], partial(self._same_spin, s, multipliers[s]))
        self._opposite_spin(multipliers)
        return found

    def of_multipliers(self, multipliers: list[Values]) -> None:
        """Makes derivatives by dressed quantities (one-body ones, Z and Y) and by products of ladders."""
        c, of = self.room.contract, self.of
        self.hole_ = [c("aibj,akbl->kilj", self.same[s], of.same[s]) for s in SPINS]
        self.hole_mixed = c("aibj,akbl->kilj", self.mixed, of.mixed)
        self.dressed_one_body: list[Values] = []
        self.one_body: list[Values] = []
        for s in SPINS:
            self._one_body(s, multipliers)
        for s in SPINS:
            self._of_z(s, multipliers[s])
        room, spaces, t = self.room, self.spaces, self.t
        self.dressed = [
            DressedPairs(room, [spaces[s]] * 2, self.same[s], [t[s]] * 2, 0.5 * self.hole_[s]) for s in SPINS
        ]
        self.dressed_mixed = DressedPairs(room, spaces, self.mixed, t, self.hole_mixed)

    def _one_body(self, s: int, multipliers: list[Values]) -> None:
        c, of, t, l1 = self.room.contract, self.of, self.t[s], multipliers[s]
        o, n = self.spaces[s].occupied, self.spaces[s].orbitals
        doo = -0.5 * c("aibj,aibk->kj", self.same[s], of.same[s])
        doo -= c("aibj,akbj->ki" if s == 0 else "aibj,aibk->kj", self.mixed, of.mixed)
        dvv = 0.5 * c("aibj,aicj->bc", self.same[s], of.same[s])
        dvv += c("aibj,cibj->ac" if s == 0 else "aibj,aicj->bc", self.mixed, of.mixed)
        dov = c("aick,ia->kc", of.same[s], l1) + 0.5 * t
        dov += c("aick,kc->ia" if s == 0 else "aick,ia->kc", of.mixed, multipliers[1 - s])
        dressed = np.block([[doo, dov], [l1.T.copy(), dvv]])
        creates, annihilates = np.eye(n), np.eye(n)
        creates[o:, :o], annihilates[:o, o:] = -t.T, t
        self.dressed_one_body.append(dressed)
        self.one_body.append(creates.T @ dressed @ annihilates)

    def _of_z(self, s: int, l1: Values) -> None:
        """Makes derivatives by Z and Y of one spin."""
        c, bvo, z_, y_ = self.room.contract, self.of.integrals[s].bvo, self.gvo[s], self.y_[s]
        o = self.spaces[s].occupied
        doo, dvv = self.dressed_one_body[s][:o, :o].copy(), self.dressed_one_body[s][o:, o:]
        c("aibj,Qbj->Qai", self.same[s], self.z[s], out=z_)
        c("aibj,Qbj->Qai" if s == 0 else "bjai,Qbj->Qai", self.mixed, self.z[1 - s], out=z_, add=True)
        c("Qda,ia->Qdi", self.dvv[s], l1, out=y_)
        self.room.add(y_, z_)
        c("Qki,ia->Qak", self.doo[s], l1, out=y_, scale=-1.0, add=True)
        c("Qck,bc->Qbk", bvo, dvv - 0.5 * np.eye(len(dvv)), out=y_, scale=-1.0, add=True)
        c("Qdk,kj->Qdj", bvo, doo, out=y_, add=True)

    def put_rings(self) -> None:
        """Makes derivatives by E of both spins, and by crossed rings."""
        c, of = self.room.contract, self.of
        for s, out in zip(SPINS, self.rings, strict=True):
            c("aibj,ckbj->aick", self.same[s], of.same[s], out=out, scale=-1.0)
            words = "aibj,ckbj->aick" if s == 0 else "aibj,aick->bjck"
            c(words, self.mixed, of.mixed, out=out, scale=-1.0, add=True)
        c("aibj,cibk->ajck", self.mixed, of.mixed, out=self.crossed[0], scale=-1.0)
        c("aibj,akcj->bick", self.mixed, of.mixed, out=self.crossed[1], scale=-1.0)

    def put_goo(self, multipliers: list[Values]) -> None:
        """Makes derivatives by B~oo [Q,k,i]."""
        c, doo, dvv = self.room.contract, self.doo, self.dvv
        for s, goo in zip(SPINS, self.goo, strict=True):
            c("aick,Qca->Qki", self.rings[s], dvv[s], out=goo)
            c("aick,Qca->Qki", self.crossed[1 - s], dvv[1 - s], out=goo, add=True)
            c("ia,Qak->Qki", multipliers[s], self.y[s], out=goo, scale=-1.0, add=True)
            c("kilj,Qlj->Qki", self.hole_[s], doo[s], out=goo, scale=0.5, add=True)
            words = "kilj,Qlj->Qki" if s == 0 else "ljki,Qlj->Qki"
            c(words, self.hole_mixed, doo[1 - s], out=goo, add=True)

    def _singles(self, s: int, multipliers: list[Values]) -> Values:
        c, of, l1, o = self.room.contract, self.of, multipliers[s], self.spaces[s].occupied
        bvo, part = of.integrals[s].bvo, of.part
        found: Values = c("Qki,Qck->ic", self.goo[s], bvo)
        # The derivative by B~vv, without this array: J[a,i,c,l] B~oo[Q,l,i] B[Q,c,k]
        found -= c("aicl,lick->ka", self.rings[s], self._pairs[s][s])
        found -= c("aicl,lick->ka", self.crossed[s], self._pairs[1 - s][s])
        found -= c("Qci,Qck->ik", self.y[s], bvo).T @ l1
        z_ = self.gvo[s]
        found += c("Qai,Qca->ic", z_, self.dvv[s]) - c("Qai,Qki->ka", z_, self.doo[s])
        fock, dressed, d = self.dressed_fock[s], self.dressed_one_body[s], self.one_body[s]
        found += dressed[:, :o].T @ fock[:, o:] - fock[:o] @ dressed[o:].T
        found += 0.5 * (self.fock[s] + fock)[:o, o:]
        found += c("Q,Qck->kc", self.fitted(), bvo)
        found -= self._exchange_of(s, d)
        found -= 0.5 * c("aibj,kibj->ka", self.same[s], of.ooov[s])
        if s == 0:
            found -= c("aibj,kibj->ka", self.mixed, part["ooovab"])
        else:
            found -= c("aibj,ailj->lb", self.mixed, part["voooab"])
        return found

    def fitted(self) -> Values:
        """sum_pq d[p,q] B[Q,pq] of one-body densities of both spins."""
        c = self.room.contract
        total: Values = np.zeros(self.of.integrals[0].boo.shape[0])
        for s in SPINS:
            d, o, b = self.one_body[s], self.spaces[s].occupied, self.of.integrals[s]
            found = c("Qki,ki->Q", b.boo, d[:o, :o].copy()) + c("Qac,ac->Q", b.bvv, d[o:, o:].copy())
            found += c("Qai,ai->Q", b.bvo, d[o:, :o] + d[:o, o:].T)
            total += found
        return total

    def _exchange_of(self, s: int, d: Values) -> Values:
        """sum_Qpq d[p,q] B[Q,qk] B[Q,pc] as [k,c]. Intermediates lie in arrays that are free once derivatives by Y
        contain those by Z."""
        c, b = self.room.contract, self.of.integrals[s]
        self.through(s, d)
        found: Values = c("Qpk,Qcp->kc", self.goo[s], b.bvo)
        found += c("Qak,Qac->kc", self.gvo[s], b.bvv)
        return found

    def through(self, s: int, d: Values, oo: Array | None = None, vo: Array | None = None) -> None:
        """sum_q d[p,q] B[Q,qk] of occupied p as [Q,p,k] into `oo`, of virtual ones as [Q,a,k] into `vo`."""
        c, o, b = self.room.contract, self.spaces[s].occupied, self.of.integrals[s]
        oo, vo = self.goo[s] if oo is None else oo, self.gvo[s] if vo is None else vo
        c("Qlk,pl->Qpk", b.boo, d[:o, :o].copy(), out=oo)
        c("Qdk,pd->Qpk", b.bvo, d[:o, o:].copy(), out=oo, add=True)
        c("Qlk,al->Qak", b.boo, d[o:, :o].copy(), out=vo)
        c("Qdk,ad->Qak", b.bvo, d[o:, o:].copy(), out=vo, add=True)

    def _same_spin(self, s: int, l1: Values) -> None:
        c, of, l2 = self.room.contract, self.of, self.same[s]
        rest, w, ladder = of.rest[s], of.w[s], of.ladders[s]
        o, cuts = self.spaces[s].occupied, self.spaces[s].v.cuts
        fov = self.dressed_fock[s][:o, o:]
        c("aidl,dlck->aick", l2, of.e[s], out=rest, scale=-1.0)
        if s == 0:
            c("aibj,bjck->aick", self.mixed, of.h[1], out=rest, add=True, scale=-1.0)
        else:
            c("aibj,aick->bjck", self.mixed, of.h[0], out=rest, add=True, scale=-1.0)
        c("Qai,Qbj->aibj", self.y_[s], of.integrals[s].bvo, out=rest, add=True)
        c("aibj,kilj->akbl", l2, of.hole[s], out=rest, add=True, scale=0.125)

        def put(tile: Tile) -> None:
            a, _, b, _ = tile
            a_box, b_box = (slice(cuts[n], cuts[n + 1]) for n in (a, b))
            x, y = rest.get_tile(tile), rest.get_tile((b, 0, a, 0)).transpose(2, 3, 0, 1)
            x = x + np.einsum("ia,jb->aibj", l1[:, a_box], fov[:, b_box])
            y = y + np.einsum("jb,ia->aibj", l1[:, b_box], fov[:, a_box])
            total = x + y
            total -= exchanged(total)
            total += ladder.transposed_block(a, b)
            if self.of_triples is not None:
                total += self.of_triples.same[s].get_tile(tile)
            w.put_tile(tile, total)

        self.room.each_tile(w, put, "residual")

    def _opposite_spin(self, multipliers: list[Values]) -> None:
        c, of, l2, w = self.room.contract, self.of, self.mixed, self.of.w_mixed
        part, bvo = of.part, [each.bvo for each in of.integrals]
        fov = [
            f[: each.occupied, each.occupied :]
            for f, each in zip(self.dressed_fock, self.spaces, strict=True)
        ]

        def put(tile: Tile) -> None:
            boxes = [slice(*self.spaces[s].v.cuts[n : n + 2]) for s, n in ((0, tile[0]), (1, tile[2]))]
            values = of.opposite.transposed_block(tile[0], tile[2])
            for first, second in ((multipliers[0], fov[1]), (fov[0], multipliers[1])):
                values = values + np.einsum("ia,jb->aibj", first[:, boxes[0]], second[:, boxes[1]])
            if self.of_triples is not None:
                values = values + self.of_triples.mixed.get_tile(tile)
            w.put_tile(tile, values)

        self.room.each_tile(w, put, "ladder")
        c("aibj,kilj->akbl", l2, part["ooooab"], out=w, add=True)
        c("Qai,Qbj->aibj", self.y_[0], bvo[1], out=w, add=True)
        c("Qai,Qbj->aibj", bvo[0], self.y_[1], out=w, add=True)
        c("aibj,bjck->aick", l2, of.x[1], out=w, add=True, scale=-1.0)
        c("aick,aibj->ckbj", of.x[0], l2, out=w, add=True, scale=-1.0)
        c("aibj,bjck->aick", self.same[0], of.h[0], out=w, add=True, scale=-1.0)
        c("bjdl,dlck->ckbj", self.same[1], of.h[1], out=w, add=True, scale=-1.0)
        c("aibj,bick->akcj", l2, part["Cba"], out=w, add=True, scale=-1.0)
        c("aibj,ajck->cibk", l2, part["Cab"], out=w, add=True, scale=-1.0)
