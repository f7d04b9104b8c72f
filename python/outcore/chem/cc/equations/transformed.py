"""Intermediates of exp(-T) H exp(T) of closed-shell CCSD, made once from converged amplitudes.

Names and letters are those of `restricted`; B~ are dressed with singles, f~ is the dressed Fock
matrix:

    foo = f~_oo + w,  fvv = f~_vv - x           one-body terms, with those of Y
    h[k,i,l,j] = sum_Q B~[Q,k,i] B~[Q,l,j] + A_ij^kl,      N[k,i,b,j] = A_ij^kb - sum_l A_ij^kl t1[l,b]
    K1 = E0 + 2 U G,    K2 = E0 - T G,          rings; foo and fvv are part of E0
    D[k,i,c,l] = sum_Q B~[Q,k,i] B[Q,c,l],      Z = B~vo + Y

Each product with a vector from the right is the derivative of the residuals of the amplitudes in its direction:
eigenvalues of the Jacobian of CCSD are those of the equation-of-motion method. The Lambda equations have vectors
from the left (`multipliers`).

Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993); Koch, Jensen, Jorgensen, Helgaker, J. Chem. Phys. 93, 3345
(1990).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.restricted import RestrictedEquations
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class TransformedHamiltonian:
    """The constructor is collective.

    Args:
        of: the equations of the amplitudes, whose arrays stay as they are from now on.
        t1: singles [i,a].
        left: for vectors from the left, which the ladder multiplies by transposed integrals; `of.exchange` stays.
    """

    def __init__(self, of: RestrictedEquations, t1: Values, *, left: bool = False) -> None:
        self.of, self.t1 = of, t1
        self.room, self.spaces = of.room, of.spaces
        room, o = of.room, of.spaces.occupied
        self.t2, self.u2, self.ladder = of.t2, of.u2, of.ladder
        self.boo, self.bvo = of.integrals.boo, of.integrals.bvo
        self.fock = of.dress(t1)
        w, x = of.of_amplitudes()
        self.fov = self.fock[:o, o:].copy()
        self.foo, self.fvv = self.fock[:o, :o] + w, self.fock[o:, o:] - x
        self.doo, self.z, self.y = of.doo, of.dvo, of.y
        of.ladder.contract(of.t2, Steps())
        self._keep_ladder()
        if left:
            of.ladder.begin_transposed()
        self._keep_rings()
        room.release(of.soo, of.svv, *(() if left else (of.exchange,)))
        self.dvv = room.array("Dvv")
        of.integrals.dress(t1, self.dvv)  # [Q,c,a]
        self.pair = room.array("D")
        room.contract("Qki,Qcl->kicl", self.doo, self.bvo, out=self.pair)
        room.add(self.z, self.y)

    def _keep_ladder(self) -> None:
        """Makes h and N."""
        room, t1, cuts = self.room, self.t1, self.spaces.v.cuts
        hole = np.ascontiguousarray(self.ladder.block(0, 0))  # [k,i,l,j]
        self.mixed = room.array("N")

        def put(tile: Tile) -> None:
            b = tile[2]
            values = self.ladder.block(0, b + 1) - np.einsum(
                "kilj,lb->kibj", hole, t1[:, cuts[b] : cuts[b + 1]]
            )
            self.mixed.put_tile(tile, values)

        room.each_tile(self.mixed, put, "ladder")
        hole += room.contract("Qki,Qlj->kilj", self.doo, self.doo)
        self.hole = hole

    def _keep_rings(self) -> None:
        """Makes K1 and K2 from dressed integrals and Fock matrices."""
        room, of = self.room, self.of
        self.k1, self.k2 = room.array("K1"), room.array("K2")
        of.put_one_body(self.t1, self.foo, self.fvv)
        for array in (self.k1, self.k2):
            room.contract("Qki,Qca->aick", of.soo, of.svv, out=array)
        room.contract("aidl,dlck->aick", of.u2, of.exchange, out=self.k1, add=True, scale=2.0)
        room.contract("aldi,dlck->aick", of.t2, of.exchange, out=self.k2, add=True, scale=-1.0)
