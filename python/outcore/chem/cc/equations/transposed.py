"""Products of vectors from the left with the Jacobian of closed-shell CCSD, of converged amplitudes.

    <l|W> = sum_ai l1[i,a] W1[a,i] + sum_aibj L[a,i,b,j] W2[a,i,b,j]

is a function of the amplitudes, whose residuals are W1 and W2 (`restricted`). All here is its derivative,
backwards through the intermediates of those residuals: an array with `_` behind its name is the derivative by the
array of that name. Names and letters are those of `restricted` and, for intermediates that are made once, of
`transformed`; h multiplies with its indices exchanged, h[i,k,j,l] as [k,i,l,j]; M = L / 2 + L', and the ladder of L
reads the same integrals from their other side,

    T_[c,i,d,j] = sum_pq A_[i,j,p,q] (pc|qd),    A_ = X X L over virtual orbitals, and h_ over occupied ones,

where X[c,p] is 1 for p = c and -t1[p,c] for occupied p.

The Lambda equations add the derivative of the energy (`multipliers`); left vectors of excited states have none
(`excited.left_singlets`).

Koch, Jensen, Jorgensen, Helgaker, J. Chem. Phys. 93, 3345 (1990); Stanton, Bartlett, J. Chem. Phys. 98, 7029
(1993).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.holes import HoleProducts
from outcore.chem.cc.equations.steps import Steps
from outcore.chem.cc.equations.transformed import TransformedHamiltonian

if TYPE_CHECKING:
    from outcore.chem.cc.equations.restricted import RestrictedEquations
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class TransposedProducts:
    """Collective.

    Args:
        of: the equations of the amplitudes, whose arrays stay as they are from now on.
        t1: singles [i,a].

    Attributes:
        multipliers, halves: L and M of the products.
        of_energy: whether products have the derivative of the energy added.
        foo, fvv: one-body terms, see `transformed`.
    """

    multipliers: Array
    of_energy = False

    def __init__(self, of: RestrictedEquations, t1: Values) -> None:
        self.of, self.t1 = of, t1
        self.room, self.spaces, self.fock = of.room, of.spaces, of.fock
        self.steps = Steps()
        self.halves = self.room.array("M")
        self.rings, self.rest = of.ring, of.rest
        made = TransformedHamiltonian(of, t1, left=True)
        self.dressed_fock, self.mixed, self._pair = made.fock, made.mixed, made.pair
        self.foo, self.fvv = made.foo, made.fvv
        self._k1, self._k2, self._dvv = made.k1, made.k2, made.dvv
        self.doo, self._z, self.y = made.doo, made.z, made.y
        self._holes = HoleProducts(made.hole.transpose(1, 0, 3, 2))
        self.goo, self.gvo, self.y_ = (self.room.array(name) for name in ("Goo", "Gvo", "Yvo"))

    # ---- vectors ----

    def take(self, doubles: Array) -> None:
        """Takes doubles as L of the next products, without the energy."""
        self.multipliers, self.of_energy = doubles, False
        self.room.each_tile(self.halves, lambda tile: self._put_half(tile, doubles.get_tile(tile)), "vector")

    def _put_half(self, tile: Tile, values: Values) -> None:
        self.halves.put_tile(tile, 0.5 * values + exchanged(values))

    def added(self, tile: Tile) -> Values | None:
        """The term to add to a tile of doubles of products; None: nothing is added. Any thread."""
        return None

    # ---- products ----

    def product(self, l1: Values, out: Array) -> Values:
        """d<l|W>/dt1 [i,a]; d<l|W>/dT is put into `out`."""
        self.of_multipliers([l1])
        found = self._singles(l1)
        self.of.ladder.contract_transposed(self.dressed_block, self.multipliers, self.steps)
        self.steps.step("R", self.rest, self._direct_rings)
        self.steps.step("E", self.rings, self._exchange_rings)
        self._add_up(l1, out)
        return found

    def pair_density(self, l1: Values, doubles: Array, amplitudes: Array) -> tuple[Values, Values, Values]:
        """One-body densities of vectors, in the order oo, ov, vv: [k,j] and [b,c] of doubles from the left with
        amplitudes (T, or doubles from the right), and [k,c] of l1 with amplitudes."""
        c = self.room.contract
        dvv = 2.0 * c("aibj,aicj->bc", doubles, amplitudes)
        doo = -2.0 * c("aibj,aibk->kj", doubles, amplitudes)
        dov = 2.0 * c("aick,ia->kc", amplitudes, l1) - c("akci,ia->kc", amplitudes, l1)
        return doo, dov, dvv

    def of_multipliers(self, multipliers: list[Values]) -> None:
        """Makes derivatives by dressed quantities (one-body ones, Z and Y), and h_."""
        (l1,) = multipliers
        c, of, o = self.room.contract, self.of, self.spaces.occupied
        doo, dov, dvv = self.pair_density(l1, self.multipliers, of.t2)
        if self.of_energy:
            dov += self.t1
        self.dressed_one_body = np.block([[doo, dov], [l1.T.copy(), dvv]])
        n = self.spaces.orbitals
        self._creates, self._annihilates = np.eye(n), np.eye(n)
        self._creates[o:, :o], self._annihilates[:o, o:] = -self.t1.T, self.t1
        self.one_body = self._creates.T @ self.dressed_one_body @ self._annihilates
        z_, y_ = self.gvo, self.y_
        c("aibj,Qbj->Qai", self.multipliers, self._z, out=z_, scale=2.0)
        c("Qda,ia->Qdi", self._dvv, l1, out=y_)  # of [Q,c,a]: B~[Q,a,d] lies as [Q,d,a]
        self.room.add(y_, z_)
        if self.of_energy:
            self.room.add(y_, of.integrals.bvo)
        c("Qki,ia->Qak", self.doo, l1, out=y_, scale=-1.0, add=True)
        c("Qck,bc->Qbk", of.integrals.bvo, dvv, out=y_, scale=-1.0, add=True)
        c("Qdk,kj->Qdj", of.integrals.bvo, doo, out=y_, add=True)
        self.hole_ = c("aibj,akbl->kilj", self.multipliers, of.t2)
        self._both_occupied = self.hole_ + self._of_two_occupied()

    def _singles(self, l1: Values) -> Values:
        c, o, b = self.room.contract, self.spaces.occupied, self.of.integrals
        k_ = self.put_rings()
        goo = self.put_goo(k_, l1)
        found: Values = c("Qki,Qck->ic", goo, b.bvo)
        # The derivative by B~vv, without this array: k_[a,i,c,l] B~oo[Q,l,i] B[Q,c,k]
        found -= c("aicl,lick->ka", k_, self._pair)
        found -= c("Qci,Qck->ik", self.y, b.bvo).T @ l1
        z_ = self.gvo
        found += c("Qai,Qca->ic", z_, self._dvv) - c("Qai,Qki->ka", z_, self.doo)
        fock, dressed, d = self.dressed_fock, self.dressed_one_body, self.one_body
        found += dressed[:, :o].T @ fock[:, o:] - fock[:o] @ dressed[o:].T
        if self.of_energy:
            found += (self.fock + fock)[:o, o:]
        j = self.fitted(d)
        found += 2.0 * c("Q,Qck->kc", j, b.bvo)
        found -= self._exchange_of(d)
        found -= 2.0 * c("aibj,kibj->ka", self.multipliers, self.mixed)
        return found

    def fitted(self, d: Values) -> Values:
        """sum_pq d[p,q] B[Q,pq], of any d."""
        c, o, b = self.room.contract, self.spaces.occupied, self.of.integrals
        found = c("Qki,ki->Q", b.boo, d[:o, :o].copy()) + c("Qac,ac->Q", b.bvv, d[o:, o:].copy())
        mixed: Values = found + c("Qai,ai->Q", b.bvo, d[o:, :o] + d[:o, o:].T)
        return mixed

    def _exchange_of(self, d: Values) -> Values:
        """sum_Qpq d[p,q] B[Q,qk] B[Q,pc] as [k,c]. Intermediates lie in arrays that are free once Y_ contains
        Z_."""
        c, b = self.room.contract, self.of.integrals
        oo, vo = self.goo, self.gvo
        self.through(d, oo, vo)
        found: Values = c("Qpk,Qcp->kc", oo, b.bvo)
        found += c("Qak,Qac->kc", vo, b.bvv)
        return found

    def through(self, d: Values, oo: Array, vo: Array) -> None:
        """sum_q d[p,q] B[Q,qk] of occupied p as [Q,p,k], of virtual ones as [Q,a,k]."""
        c, o, b = self.room.contract, self.spaces.occupied, self.of.integrals
        c("Qlk,pl->Qpk", b.boo, d[:o, :o].copy(), out=oo)
        c("Qdk,pd->Qpk", b.bvo, d[:o, o:].copy(), out=oo, add=True)
        c("Qlk,al->Qak", b.boo, d[o:, :o].copy(), out=vo)
        c("Qdk,ad->Qak", b.bvo, d[o:, o:].copy(), out=vo, add=True)

    def put_rings(self) -> Array:
        """Puts -2 (L U + M T') as [a,i,c,k], the derivative by E0 of both rings, into `rings`."""
        c, out = self.room.contract, self.rings
        c("aidl,dlck->aick", self.multipliers, self.of.u2, out=out, scale=-2.0)
        c("aidl,dkcl->aick", self.halves, self.of.t2, out=out, scale=-2.0, add=True)
        return out

    def put_goo(self, k_: Array, l1: Values) -> Array:
        """Puts the derivative by B~oo [Q,k,i]."""
        c, goo = self.room.contract, self.goo
        c("aick,Qca->Qki", k_, self._dvv, out=goo)
        c("ia,Qak->Qki", l1, self.y, out=goo, scale=-1.0, add=True)
        c("kilj,Qlj->Qki", self.hole_, self.doo, out=goo, scale=2.0, add=True)
        return goo

    def dressed_block(self, p: int, r: int) -> Values:
        """A_ of blocks p <= r of all orbitals as [p,i,q,j]."""
        if p > 0:
            values: Values = self.multipliers.get_tile((p - 1, 0, r - 1, 0))
            return values
        if r > 0:
            return self._with_occupied(r - 1)
        found: Values = self._both_occupied
        return found

    def _with_occupied(self, b: int) -> Values:
        """-sum_c t1[k,c] L[c,i,b,j] as [k,i,b,j] of a block b."""
        cuts = self.spaces.v.cuts
        found: Values | None = None
        for a in range(len(cuts) - 1):
            values = self.multipliers.get_tile((a, 0, b, 0))
            made = np.tensordot(self.t1[:, cuts[a] : cuts[a + 1]], values, 1)
            found = made if found is None else np.add(found, made, out=found)
        assert found is not None
        return np.negative(found, out=found)

    def _of_two_occupied(self) -> Values:
        """sum_cd t1[k,c] t1[l,d] L[c,i,d,j] as [k,i,l,j]."""
        cuts, o = self.spaces.v.cuts, self.spaces.occupied
        total, guard = np.zeros((o, o, o, o)), threading.Lock()

        def add(tile: Tile) -> None:
            a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
            made = np.tensordot(self.t1[:, a], self.multipliers.get_tile(tile), 1)  # [k,i,d,j]
            made = np.einsum("kidj,ld->kilj", made, self.t1[:, b])
            if tile[0] != tile[2]:
                made = made + made.transpose(2, 3, 0, 1)
            with guard:
                np.add(total, made, out=total)

        self.room.each_tile(self.multipliers, add, "dress multipliers")
        return np.asarray(self.room.world.all_reduce(total))

    def _direct_rings(self) -> None:
        """Puts -L K1, and Y_ with B, into R."""
        c = self.room.contract
        c("aidl,dlck->aick", self.multipliers, self._k1, out=self.rest, scale=-1.0)
        c("Qai,Qbj->aibj", self.y_, self.of.integrals.bvo, out=self.rest, add=True)

    def _exchange_rings(self) -> None:
        """Puts -M K2 into E."""
        self.room.contract("aidl,dlck->aick", self.halves, self._k2, out=self.rings, scale=-1.0)

    def _add_up(self, l1: Values, out: Array) -> None:
        """Puts W: derivatives by U and by T', the ladder, and products with h."""
        cuts, o = self.spaces.v.cuts, self.spaces.occupied
        fov, ladder = self.dressed_fock[:o, o:], self.of.ladder

        def both(array: Array, tile: Tile) -> Values:
            a, _, b, _ = tile
            values = array.get_tile(tile) + array.get_tile((b, 0, a, 0)).transpose(2, 3, 0, 1)
            return values

        def put(tile: Tile) -> None:
            a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
            u_ = both(self.rest, tile)
            u_ += np.einsum("ia,jb->aibj", l1[:, a], fov[:, b]) + np.einsum(
                "jb,ia->aibj", l1[:, b], fov[:, a]
            )
            total = u_ - 0.5 * exchanged(u_)
            total += exchanged(both(self.rings, tile))
            total += ladder.transposed_block(tile[0], tile[2])
            total += self._holes.product(self.multipliers.get_tile(tile))
            more = self.added(tile)
            out.put_tile(tile, total if more is None else total + more)

        self.room.each_tile(out, put, "residual")
