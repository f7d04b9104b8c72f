"""Densities of CCSD of open shells, with orbitals that do not respond: derivatives of the Lagrangian of
`open_multipliers`, for each spin

    gamma[p,q] = dL/df[p,q],    Gamma[Q,p,q] = dL/dB[Q,pq],    E = sum_s (tr gamma f + sum Gamma B / 2)

All are symmetric in p and q; see `densities`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.three_index_densities import LadderOfDensity, ThreeIndexDensity, symmetrize
from outcore.chem.cc.equations.unrestricted import SPINS

if TYPE_CHECKING:
    from outcore.chem.cc.equations.open_multipliers import OpenMultiplierEquations
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]


class OpenDensities:
    """Densities of converged multipliers. The constructor is collective, and uses up their intermediates.

    Attributes:
        one: gamma [n][n] of the correlated orbitals of each spin, occupied ones first, at all processes.
        room, spaces, integrals: the room of the densities; orbitals and B of each spin.
        oo, vo, vv: Gamma [Q,i,j], [Q,a,i], [Q,a,b] of each spin, as arrays of the room.
    """

    def __init__(self, multipliers: OpenMultiplierEquations, l1: list[Values]) -> None:
        self._of, self._l1 = multipliers, l1
        self.room, self.spaces, self._t = multipliers.room, multipliers.spaces, multipliers.t
        self.integrals = multipliers.of.integrals
        multipliers.of_multipliers(l1)
        self.one = multipliers.one_particle
        self.vo, self.oo = multipliers.gvo, multipliers.goo
        self.vv, self._ov = ([self.room.array(f"{name}{spin}") for spin in "ab"] for name in ("Gvv", "Gov"))
        multipliers.put_rings()
        multipliers.put_goo(l1)
        for s in SPINS:
            self._dressed(s)
        self._put_undressed()
        for s in SPINS:
            self._undressed(s)
        for s in SPINS:
            self._one_body(s)
        self._ladders()
        self._triples()
        for s in SPINS:
            symmetrize(self.room, self.oo[s], self.vo[s], self._ov[s], self.vv[s])

    @property
    def three_index(self) -> list[ThreeIndexDensity]:
        """Gamma of each spin."""
        every = zip(self.oo, self.vo, self.vv, self.integrals, strict=True)
        return [ThreeIndexDensity(*each) for each in every]

    def _dressed(self, s: int) -> None:
        """Adds derivatives through B~: X' Gamma~ Y, where X and Y are those of singles."""
        c, of, t, l1 = self.room.contract, self._of, self._t[s], self._l1[s]
        oo, vo, ov, vv = self.oo[s], self.vo[s], self._ov[s], self.vv[s]
        c("aick,Qki->Qac", of.rings[s], of.doo[s], out=vv)
        c("aick,Qki->Qac", of.crossed[s], of.doo[1 - s], out=vv, add=True)
        c("ia,Qdi->Qad", l1, of.y[s], out=vv, add=True)
        c("ka,Qai->Qki", t, vo, out=oo, scale=-1.0, add=True)
        c("ka,Qac->Qck", t, vv, out=ov, scale=-1.0)
        c("Qki,ic->Qck", oo, t, out=ov, add=True)
        c("Qai,ic->Qac", vo, t, out=vv, add=True)

    def _put_undressed(self) -> None:
        """Puts derivatives by G into arrays of the residuals: [c,k,d,l] of (kd|lc) of equal spins into `rest`,
        [d,k,c,l] of (kd|LC) into `w_mixed`."""
        c, of, eq = self.room.contract, self._of, self._of.of
        t2, l2 = eq.mixed, of.mixed
        c("bick,dibl->dkcl", of.crossed[1], t2, out=eq.w_mixed, scale=-1.0)
        c("aidl,dlck->aick", of.same[0], t2, out=eq.h[0], scale=-0.5)
        c("bjdl,ckdl->bjck", of.same[1], t2, out=eq.h[1], scale=-0.5)
        for s in SPINS:
            x, g = of.rings[s], eq.rest[s]  # derivatives by X, which has half of E of equal spins
            c("aibj,ckbj->aick", of.same[s], eq.same[s], out=x, scale=-0.5)
            words = "aibj,ckbj->aick" if s == 0 else "aibj,aick->bjck"
            c(words, l2, t2, out=x, scale=-1.0, add=True)
            c("aick,aidl->ckdl", x, eq.same[s], out=g)
        c("bjck,dlbj->ckdl", eq.h[1], t2, out=eq.rest[0], add=True)
        c("aick,aidl->ckdl", eq.h[0], t2, out=eq.rest[1], add=True)

    def _undressed(self, s: int) -> None:
        """Adds derivatives by the plain B[Q,ck] of rings, Y and the energy."""
        c, of, eq, ov = self.room.contract, self._of, self._of.of, self._ov[s]
        o, y = self.spaces[s].occupied, of.y[s]
        bvo, other = self.integrals[s].bvo, self.integrals[1 - s].bvo
        c("ckdl,Qdk->Qcl", eq.rest[s], bvo, out=ov, add=True)
        c("ckdl,Qcl->Qdk", eq.rest[s], bvo, out=ov, add=True)
        c("dkcl,Qcl->Qdk" if s == 0 else "dkcl,Qdk->Qcl", eq.w_mixed, other, out=ov, add=True)
        c("aibj,Qai->Qbj", eq.same[s], of.y_[s], out=ov, add=True)
        c("aibj,Qbj->Qai" if s == 0 else "aibj,Qai->Qbj", eq.mixed, of.y_[1 - s], out=ov, add=True)
        doo, dvv = of.dressed_one_body[s][:o, :o].copy(), of.dressed_one_body[s][o:, o:]
        c("bc,Qbk->Qck", dvv - 0.5 * np.eye(len(dvv)), y, out=ov, scale=-1.0, add=True)
        c("kj,Qdj->Qdk", doo, y, out=ov, add=True)

    def _one_body(self, s: int) -> None:
        """Adds derivatives by the integrals in the dressed Fock matrix."""
        c, of, o, t = self.room.contract, self._of, self.spaces[s].occupied, self._t[s]
        b, d = self.integrals[s], of.one_body[s]
        doo, dov, dvo, dvv = d[:o, :o].copy(), d[:o, o:].copy(), d[o:, :o].copy(), d[o:, o:].copy()
        j = sum(c("Qck,kc->Q", self.integrals[r].bvo, self._t[r]) for r in SPINS)
        to_oo, to_vo, to_ov, to_vv = self.oo[s], self.vo[s], self._ov[s], self.vv[s]
        c("Q,ki->Qki", j, doo, out=to_oo, add=True)
        c("Q,ai->Qai", j, dvo, out=to_vo, add=True)
        c("Q,ac->Qac", j, dvv, out=to_vv, add=True)
        c("Q,kc->Qck", j, dov, out=to_ov, add=True)
        c("Q,kc->Qck", of.fitted(), t, out=to_ov, add=True)
        oo, vo = of.doo[s], of.y_[s]  # free from here on
        c("Qck,ic->Qki", b.bvo, t, out=oo)
        c("Qac,ic->Qai", b.bvv, t, out=vo)
        c("Qlk,li->Qki", oo, doo, out=to_oo, scale=-1.0, add=True)
        c("Qak,ai->Qki", vo, dvo, out=to_oo, scale=-1.0, add=True)
        c("Qlk,lc->Qck", oo, dov, out=to_ov, scale=-1.0, add=True)
        c("Qak,ac->Qck", vo, dvv, out=to_ov, scale=-1.0, add=True)
        of.through(s, d, oo, vo)
        c("Qpk,kc->Qcp", oo, t, out=to_ov, scale=-1.0, add=True)
        c("Qak,kc->Qac", vo, t, out=to_vv, scale=-1.0, add=True)

    def _triples(self) -> None:
        of, add = self._of.of_triples, self.room.add
        if of is None:
            return
        for to, more in ((self.oo, of.boo), (self.vo, of.bvo), (self.vv, of.bvv)):
            for s in SPINS:
                add(to[s], more[s])

    def _ladders(self) -> None:
        """Adds ladders of pairs of equal spins, and ladders of opposite spins to Gamma of either spin."""
        of = self._of
        for s in SPINS:
            arrays = of.of.same[s], of.same[s]
            doubles = partial(_tile, arrays[0])
            self._ladder(of.dressed[s].block, doubles, arrays, (s, s), 0.5)
        mixed, dressed = of.of.mixed, of.dressed_mixed.block
        arrays = mixed, of.mixed
        self._ladder(dressed, partial(_tile, mixed), arrays, (0, 1), 1.0)

        def turned(q: int, p: int) -> Values:
            return dressed(p, q).transpose(2, 3, 0, 1)

        self._ladder(turned, lambda d, c: _tile(mixed, c, d).transpose(2, 3, 0, 1), arrays, (1, 0), 1.0)

    def _ladder(
        self, dressed: Any, doubles: Any, read: tuple[Array, Array], spins: tuple[int, int], factor: float
    ) -> None:
        first, second = (self.integrals[s] for s in spins)
        out = self._ov[spins[0]], self.vv[spins[0]]
        LadderOfDensity(self.room, dressed, doubles, read, first, second, *out, factor).run()


def _tile(array: Array, a: int, b: int) -> Values:
    values: Values = array.get_tile((a, 0, b, 0))
    return values
