"""Densities of closed-shell CCSD and CCSD(T), with orbitals that do not respond: derivatives of the Lagrangian of
`multipliers`.

    gamma[p,q] = dL/df[p,q],    Gamma[Q,p,q] = dL/dB[Q,pq],    E = tr gamma f + sum Gamma B / 2

Both are symmetric in p and q. Gamma is all of the two-particle density that any derivative needs: no array has four
indices of all orbitals.

Bozkaya, Sherrill, J. Chem. Phys. 144, 174103 (2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.three_index_densities import LadderOfDensity, ThreeIndexDensity, symmetrize

if TYPE_CHECKING:
    from outcore.chem.cc.equations.multipliers import MultiplierEquations

Values = np.ndarray[Any, np.dtype[Any]]


class ClosedDensities:
    """Densities of converged multipliers. The constructor is collective, and uses up their intermediates.

    Attributes:
        one: gamma [n][n] of the correlated orbitals, occupied ones first, at all processes; a list of one.
        room, spaces, integrals: the room and orbitals of the densities, and B.
        oo, vo, vv: Gamma [Q,i,j], [Q,a,i], [Q,a,b], as arrays of the room.
    """

    def __init__(self, multipliers: MultiplierEquations, l1: Values) -> None:
        self._of, self._l1 = multipliers, l1
        self.room, self.spaces, self._t1 = multipliers.room, multipliers.spaces, multipliers.t1
        self.integrals = multipliers.of.integrals
        self._o = multipliers.spaces.occupied
        multipliers.of_multipliers([l1])
        self.one = multipliers.one_particle
        self.vo, self.vv = multipliers.gvo, self.room.array("Gvv")
        self._ov = self.room.array("Gov")  # [Q,c,k] of Gamma[Q,k,c]
        self.oo = multipliers.put_goo(multipliers.put_rings(), l1)
        self._dressed()
        self._undressed_rings()
        self._one_body()
        self._ladder()
        self._triples()
        symmetrize(self.room, self.oo, self.vo, self._ov, self.vv)

    @property
    def three_index(self) -> list[ThreeIndexDensity]:
        """Gamma of both spins, a list of one."""
        return [ThreeIndexDensity(self.oo, self.vo, self.vv, self.integrals)]

    def _dressed(self) -> None:
        """Adds derivatives through B~: X' Gamma~ Y, where X and Y are those of singles."""
        c, of, t1 = self.room.contract, self._of, self._t1
        c("aick,Qki->Qac", of.rings, of.doo, out=self.vv)
        c("ia,Qdi->Qad", self._l1, of.y, out=self.vv, add=True)
        c("ka,Qai->Qki", t1, self.vo, out=self.oo, scale=-1.0, add=True)
        c("ka,Qac->Qck", t1, self.vv, out=self._ov, scale=-1.0)
        c("Qki,ic->Qck", self.oo, t1, out=self._ov, add=True)
        c("Qai,ic->Qac", self.vo, t1, out=self.vv, add=True)

    def _undressed_rings(self) -> None:
        """Adds derivatives by the plain B[Q,ck] of rings, Y and the energy, with g_ = -2 U L U + T' M T'."""
        c, of, o = self.room.contract, self._of, self._o
        t2, u2, rings, g_ = of.of.t2, of.of.u2, of.rings, of.rest
        c("aidl,dlck->aick", of.multipliers, u2, out=rings)
        c("aidl,dlck->aick", u2, rings, out=g_, scale=-2.0)
        c("aidl,dkcl->aick", of.halves, t2, out=rings)
        c("aldi,dlck->aick", t2, rings, out=g_, add=True)
        c("dlck,Qdk->Qcl", g_, self.integrals.bvo, out=self._ov, scale=2.0, add=True)
        c("aibj,Qai->Qbj", u2, of.y_, out=self._ov, scale=2.0, add=True)
        self.room.add(self._ov, of.y)
        doo, dvv = of.dressed_one_body[:o, :o].copy(), of.dressed_one_body[o:, o:].copy()
        c("bc,Qbk->Qck", dvv, of.y, out=self._ov, scale=-1.0, add=True)
        c("kj,Qdj->Qdk", doo, of.y, out=self._ov, add=True)

    def _one_body(self) -> None:
        """Adds derivatives by the integrals in the dressed Fock matrix."""
        c, of, o, t1 = self.room.contract, self._of, self._o, self._t1
        b, d = self.integrals, of.one_body
        doo, dov, dvo, dvv = d[:o, :o].copy(), d[:o, o:].copy(), d[o:, :o].copy(), d[o:, o:].copy()
        j = 2.0 * c("Qck,kc->Q", b.bvo, t1)
        c("Q,ki->Qki", j, doo, out=self.oo, add=True)
        c("Q,ai->Qai", j, dvo, out=self.vo, add=True)
        c("Q,ac->Qac", j, dvv, out=self.vv, add=True)
        c("Q,kc->Qck", j, dov, out=self._ov, add=True)
        c("Q,kc->Qck", 2.0 * of.fitted(d), t1, out=self._ov, add=True)
        oo, vo = of.doo, of.y_  # free from here on
        c("Qck,ic->Qki", b.bvo, t1, out=oo)
        c("Qac,ic->Qai", b.bvv, t1, out=vo)
        c("Qlk,li->Qki", oo, doo, out=self.oo, scale=-1.0, add=True)
        c("Qak,ai->Qki", vo, dvo, out=self.oo, scale=-1.0, add=True)
        c("Qlk,lc->Qck", oo, dov, out=self._ov, scale=-1.0, add=True)
        c("Qak,ac->Qck", vo, dvv, out=self._ov, scale=-1.0, add=True)
        of.through(d, oo, vo)
        c("Qpk,kc->Qcp", oo, t1, out=self._ov, scale=-1.0, add=True)
        c("Qak,kc->Qac", vo, t1, out=self.vv, scale=-1.0, add=True)

    def _ladder(self) -> None:
        of, b = self._of, self.integrals
        t2, l2 = of.of.t2, of.multipliers

        def dressed(p: int, q: int) -> Values:
            return of.dressed_block(p, q) if p <= q else of.dressed_block(q, p).transpose(2, 3, 0, 1)

        def doubles(c: int, d: int) -> Values:
            values: Values = t2.get_tile((c, 0, d, 0))
            return values

        LadderOfDensity(self.room, dressed, doubles, (t2, l2), b, b, self._ov, self.vv, 2.0).run()

    def _triples(self) -> None:
        of, add = self._of.of_triples, self.room.add
        if of is None:
            return
        for array, more in ((self.oo, of.boo), (self.vo, of.bvo), (self.vv, of.bvv)):
            add(array, more)
