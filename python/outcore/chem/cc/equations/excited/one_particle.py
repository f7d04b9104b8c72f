"""One-particle densities between states of closed-shell EOM-CCSD, with orbitals and amplitudes that do not respond.

gamma[p,q] = <l| exp(-T) E_pq exp(T) |r>, of all correlated orbitals, occupied ones first, and both spins. The left
state is <0|(1 + L), or <0|L_k; the right one exp(T) (r0 + R)|0>. With <E_pq> = <0| exp(-T) E_pq exp(T) |0>,

    <l|E_pq|0>   = d<l|W>/df[p,q]                                   of `multipliers` and `transposed`
    <l|E_pq R|0> = its derivative in the direction R + <l R|W>' + <l|R> <E_pq>

where l R has singles 2 L r1, and ' is the derivative by f[p,q]. The ground state is orthogonal to each excited
one, so r0 = -<L|R>, and terms with <E_pq> cancel between the ground state and another.

Stanton, Bartlett, J. Chem. Phys. 98, 7029 (1993); Koch, Kobayashi, Sanchez de Meras, Jorgensen, J. Chem. Phys. 100,
4393 (1994).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import StateVector
    from outcore.chem.cc.equations.transposed import TransposedProducts

Values = np.ndarray[Any, np.dtype[Any]]


class StateDensities:
    """Collective. Arrays are [n][n], at all processes.

    Args:
        of: products from the left, whose arrays of amplitudes still exist.
    """

    def __init__(self, of: TransposedProducts) -> None:
        self._of, self._o, self._n = of, of.spaces.occupied, of.spaces.orbitals

    @property
    def of_amplitudes(self) -> Values:
        """<E_pq> without the determinant of the reference."""
        found = np.zeros((self._n, self._n))
        found[: self._o, self._o :] = 2.0 * self._of.t1
        return found

    def of_left(self, left: StateVector) -> Values:
        """<l|E_pq|0>, without <E_pq>."""
        return self._undressed(self._pairs(left, self._of.of.t2))

    def between(
        self, left: StateVector, right: StateVector, r0: float, of_left: Values, *, with_ground: bool
    ) -> Values:
        """<l|E_pq|r>, without <l|r> <E_pq>. r0: of the right vector. of_left: of this left vector. with_ground: the
        left state is <0|(1 + l)."""
        c, o = self._of.room.contract, self._o
        x, a = np.zeros((self._n, self._n)), np.zeros((self._n, self._n))
        x[o:, :o], a[:o, o:] = -right.singles.T, right.singles
        dressed = self._pairs(left, self._of.of.t2)
        moved = self._pairs(left, right.doubles[0])
        moved[o:, :o] = 0.0  # of the left singles alone
        creates, annihilates = self._dressing
        if with_ground:
            moved[:o, o:] += 2.0 * right.singles
        found = creates.T @ moved @ annihilates
        found += x.T @ dressed @ annihilates + creates.T @ dressed @ a
        singles = 2.0 * c("aibj,ia->jb", left.doubles[0], right.singles)
        found += self._undressed(self._of_singles(singles)) + r0 * of_left
        return found

    @property
    def _dressing(self) -> tuple[Values, Values]:
        o, t1 = self._o, self._of.t1
        creates, annihilates = np.eye(self._n), np.eye(self._n)
        creates[o:, :o], annihilates[:o, o:] = -t1.T, t1
        return creates, annihilates

    def _undressed(self, dressed: Values) -> Values:
        creates, annihilates = self._dressing
        found: Values = creates.T @ dressed @ annihilates
        return found

    def _pairs(self, left: StateVector, doubles: Any) -> Values:
        """The density of left vectors with doubles from the right, before singles dress it."""
        oo, ov, vv = self._of.pair_density(left.singles, left.doubles[0], doubles)
        return np.block([[oo, ov], [left.singles.T, vv]])

    def _of_singles(self, l1: Values) -> Values:
        """The density of singles from the left with the doubles T."""
        o, v = l1.shape
        ov = 2.0 * self._of.room.contract("aick,ia->kc", self._of.of.u2, l1)
        return np.block([[np.zeros((o, o)), ov], [l1.T, np.zeros((v, v))]])
