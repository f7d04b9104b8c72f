"""Intermediates of exp(-T) H exp(T) of CCSD of open shells, made once from converged amplitudes; see `transformed`,
and `unrestricted` for names and letters. In terms of spin orbitals

    K[a,i,c,k] = (ki|ac)~ + sum_dl t_il^ad (dk|cl)
    N[k,i,b,j] = A_ij^kb - sum_l A_ij^kl t1[l,b],      D[k,i,c,l] = sum_Q B~[Q,k,i] B[Q,c,l]

A is the product of the ladders, h its part with occupied orbitals alone, plus (ki|lj)~.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.open_blocks import AntisymmetricDoubles, Labels
from outcore.chem.cc.equations.unrestricted import SPINS

if TYPE_CHECKING:
    from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]


class OpenTransformedHamiltonian:
    """The constructor is collective.

    Args:
        of: the equations of the amplitudes, whose arrays stay as they are from now on.
        t: singles [i,a] of each spin.
    """

    def __init__(self, of: UnrestrictedEquations, t: list[Values]) -> None:
        self.of, self.t1 = of, t
        self.room, self.spaces = of.room, of.spaces
        room = self.room
        self.boo, self.bvo, self.bvv = (
            [getattr(each, n) for each in of.integrals] for n in ("boo", "bvo", "bvv")
        )
        self.fock = of.dress(t)
        of.put_y()
        pairs = [of.of_pairs(s, self.fock[s]) for s in SPINS]
        self.foo, self.fvv = [each[0] for each in pairs], [each[1] for each in pairs]
        self.fov = [
            f[: each.occupied, each.occupied :].copy() for f, each in zip(self.fock, self.spaces, strict=True)
        ]
        self.doo, self.z, self.y, self.dvv = of.doo, of.dvo, of.y, of.svv
        of.keep_ladders(t)
        self._keep_rings()
        room.release(*of.x, *of.rest, *of.w, of.w_mixed)
        self.pair = [[room.array(f"D{x}{y}") for y in "ab"] for x in "ab"]
        for s in SPINS:
            for r in SPINS:
                room.contract("Qki,Qcl->kicl", self.doo[s], self.bvo[r], out=self.pair[s][r])
            room.add(self.z[s], self.y[s])
        self.t2 = AntisymmetricDoubles(
            {(0, 0, 0, 0): of.same[0], (0, 0, 1, 1): of.mixed, (1, 1, 1, 1): of.same[1]}
        )

    def _keep_rings(self) -> None:
        c, of, part = self.room.contract, self.of, self.of.part
        of.put_rings(self.t1, list(zip(self.foo, self.fvv, strict=True)))
        for s in SPINS:
            c("aidl,dkcl->aick", of.same[s], of.ovov[s], out=of.e[s], add=True)
        of.put_crossed()
        c("ckdl,akdj->ajcl", of.ovov_mixed, of.mixed, out=part["Cab"], add=True, scale=-1.0)
        self.rings: dict[Labels, Array] = {
            (0, 0, 0, 0): of.e[0],
            (1, 1, 1, 1): of.e[1],
            (0, 0, 1, 1): of.h[0],
            (1, 1, 0, 0): of.h[1],
            (0, 1, 0, 1): part["Cab"],
            (1, 0, 1, 0): part["Cba"],
        }
        room = self.room
        room.release(*of.ovov, of.ovov_mixed)

    def mixed(self, labels: Labels, letters: str) -> tuple[Array, str, float] | None:
        """N of these spins of k, i, b, j, and the letters of its axes."""
        of, (k, i, b, j) = self.of, labels
        if 2 in labels:
            return None
        one, two, three, four = tuple(letters)
        sign = 1.0
        if i != k:
            i, j, two, four, sign = j, i, four, two, -1.0
        if i != k or j != b:
            return None
        if k == b:
            return of.ooov[k], f"{one}{two}{three}{four}", sign
        if k == 0:
            return of.part["ooovab"], f"{one}{two}{three}{four}", sign
        return of.part["voooab"], f"{three}{four}{one}{two}", sign
