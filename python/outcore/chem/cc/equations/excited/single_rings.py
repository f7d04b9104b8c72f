"""Rings of amplitudes with integrals that singles of a vector have changed, in products with excited singlets.
Integrals with three virtual orbitals are multiplied by the amplitudes once,

    F[d,k,c,a] = sum_Q B[Q,d,k] B~[Q,a,c]
    X[a,b,j,d] = sum_ck F[d,k,c,a] T[c,j,b,k]
    kept[a,b,j,d] = -X[a,b,j,d] / 2 - X[b,a,j,d] - sum_ck F[d,k,c,a] U[c,k,b,j]

so that each vector needs sum_d r1[i,d] kept[a,b,j,d] alone, with o^2 v^3 multiplications in place of o^3 v^3 for
each ring of E_r (`singlets`). The terms of D go to N, and Fock matrices of the vector multiply T separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class SingleRings:
    """Collective. The constructor adds the terms of D to N of the Hamiltonian."""

    def __init__(self, of: TransformedHamiltonian) -> None:
        self._of, self._room = of, of.room
        self._kept = self._made()
        c, n = of.room.contract, of.mixed
        c("kicl,cjbk->libj", of.pair, of.t2, out=n, add=True, scale=-0.5)
        c("kjcl,cibk->libj", of.pair, of.t2, out=n, add=True, scale=-1.0)
        c("kicl,ckbj->libj", of.pair, of.u2, out=n, add=True, scale=-1.0)

    def _made(self) -> Array:
        of, room, c = self._of, self._room, self._room.contract
        pairs, made = room.array("F"), room.array("X")
        c("Qdk,Qca->dkca", of.bvo, of.dvv, out=pairs)
        c("dkca,cjbk->abjd", pairs, of.t2, out=made)

        def turn(tile: Tile) -> None:
            a, b, _, d = tile
            if a > b:
                return
            turned = (b, a, 0, d)
            one, other = made.get_tile(tile), made.get_tile(turned)
            both = [-0.5 * x - y.transpose(1, 0, 2, 3) for x, y in ((one, other), (other, one))]
            made.put_tile(tile, both[0])  # which `one` may be
            if a < b:
                made.put_tile(turned, both[1])

        room.each_tile(made, turn, "rings")
        c("dkca,ckbj->abjd", pairs, of.u2, out=made, add=True, scale=-1.0)
        room.release(pairs)
        return made

    def add(self, r1: Values, foo: Values, fvv: Values, out: Array) -> None:
        """Adds rings of a vector, with its singles [i,a] and Fock matrices [k,i] and [a,c]."""
        c, t2 = self._room.contract, self._of.t2
        c("abjd,id->aibj", self._kept, r1, out=out, add=True)
        c("ac,cibj->aibj", fvv, t2, out=out, add=True)
        c("ki,akbj->aibj", foo, t2, out=out, add=True, scale=-1.0)
