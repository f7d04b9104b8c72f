"""EOM-CCSD in the space of all determinants of a few spin orbitals: exp(-T) H exp(T) as a matrix, of any kind of
states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

Values = np.ndarray[Any, np.dtype[Any]]

HOLES = {"ee": 2, "sf": 2, "ip": 2, "ea": 1}
"""Orbitals of the reference that states lack at most."""
CHANGES = {"ee": (0, 0), "sf": (-1, 1), "ip": (-1, 0), "ea": (1, 0)}
"""Of electrons of alpha and of beta."""


class FockSpace:
    """All determinants of a mean field without frozen orbitals, with amplitudes of both spins in PySCF's
    form. `ground`: right and left vectors of the ground state."""

    def __init__(self, mf: Any, t1: Any, t2: Any) -> None:
        from pyscf import ao2mo

        two = np.ndim(mf.mo_coeff) == 3
        self.orbitals = list(mf.mo_coeff) if two else [mf.mo_coeff] * 2
        if not two:
            t1, t2 = (t1, t1), (t2 - t2.transpose(1, 0, 2, 3), t2, t2 - t2.transpose(1, 0, 2, 3))
        self.n, self.mol = self.orbitals[0].shape[1], mf.mol
        n = self.n
        self.annihilates = [_annihilator(p, 2 * n) for p in range(2 * n)]
        self.excites = [
            [
                [(self.annihilates[s * n + p].T @ self.annihilates[s * n + q]).tocsr() for q in range(n)]
                for p in range(n)
            ]
            for s in (0, 1)
        ]
        core, h = mf.get_hcore(), sp.csr_matrix((4**n, 4**n))
        for s, c in enumerate(self.orbitals):
            h = h + self._one(s, c.T @ core @ c)
            for r, d in enumerate(self.orbitals):
                g = ao2mo.general(mf.mol, (c, c, d, d), compact=False).reshape((n,) * 4)
                for p, q in np.ndindex(n, n):
                    h = h + 0.5 * self.excites[s][p][q] @ self._one(r, g[p, q])
                if s == r:
                    h = h - 0.5 * self._one(s, np.einsum("pqqs->ps", g))
        self._occupied = [each.shape[0] for each in t1]
        self.t = sp.csr_matrix((4**n, 4**n))
        for s in (0, 1):
            o, v = t1[s].shape
            for i, a in np.ndindex(o, v):
                self.t = self.t + t1[s][i, a] * self.excites[s][o + a][i]
        for s, r, each, share in ((0, 0, t2[0], 0.25), (0, 1, t2[1], 1.0), (1, 1, t2[2], 0.25)):
            for i, j, a, b in np.ndindex(*each.shape):
                up = self.excites[s][self._occupied[s] + a][i] @ self.excites[r][self._occupied[r] + b][j]
                self.t = self.t + share * each[i, j, a, b] * up
        self.reference = sum(1 << (s * n + i) for s in (0, 1) for i in range(self._occupied[s]))
        self._h = h
        energies, right, left = self.states("ee")
        lowest = int(np.argmin(energies))
        self.energy, self.ground = energies[lowest], (right[:, lowest], left[lowest])

    def _one(self, s: int, matrix: Values) -> Any:
        found = sp.csr_matrix((4**self.n, 4**self.n))
        for p, q in np.ndindex(*matrix.shape):
            found = found + matrix[p, q] * self.excites[s][p][q]
        return found

    def _moved(self, vectors: Values, sign: float) -> Values:
        """Vectors multiplied by exp(T) or exp(-T)."""
        total, term = vectors.copy(), vectors
        for k in range(1, 2 * self.n + 1):
            term = sign / k * (self.t @ term)
            total = total + term
        return total

    def states(self, kind: str, core: Sequence[int] = ()) -> tuple[Values, Values, Values]:
        """Energies; exp(T) R |0> of all states, [determinant][state], and <0| L exp(-T),
        [state][determinant]; for ions, the states by an alpha electron. core: excitations must come from
        these orbitals; right states then have the share of the ground state that makes them orthogonal to its
        left vector."""
        inside, holes = [], sum(1 << (s * self.n + i) for s in (0, 1) for i in core)
        for x in range(4**self.n):
            alpha, beta = x & ((1 << self.n) - 1), x >> self.n
            change = alpha.bit_count() - self._occupied[0], beta.bit_count() - self._occupied[1]
            empty = self.reference & ~x
            if change == CHANGES[kind] and empty.bit_count() <= HOLES[kind] and (not core or holes & empty):
                inside.append(x)
        basis = np.zeros((4**self.n, len(inside)))
        basis[inside, range(len(inside))] = 1.0
        up = self._moved(basis, 1.0)
        matrix = self._moved(self._h @ up, -1.0)[inside]
        values, right = np.linalg.eig(matrix)
        order = np.argsort(values.real)
        values, right = values[order].real, right[:, order].real
        left = np.linalg.inv(right)
        # <0|L exp(-T): the transpose of exp(-T') on columns.
        down, term = basis.T, basis.T
        for k in range(1, 2 * self.n + 1):
            term = -1.0 / k * (self.t.T @ term.T).T
            down = down + term
        right = up @ right
        if core:
            right = right - np.outer(self.ground[0], self.ground[1] @ right)
        return values, right, left @ down

    def density(self, left: Values, right: Values) -> list[Values]:
        """<l|p'q|r> of each spin."""
        return [
            np.array([[left @ (each @ right) for each in row] for row in of_spin]) for of_spin in self.excites
        ]

    def moment(self, density: list[Values]) -> Values:
        r = self.mol.intor("int1e_r")
        made = [
            -np.einsum("xmn,mp,nq,pq->x", r, c, c, each)
            for c, each in zip(self.orbitals, density, strict=True)
        ]
        found: Values = made[0] + made[1]
        return found

    def strength(self, gap: float, one: tuple[Values, Values], other: tuple[Values, Values]) -> float:
        """The strength of a transition between two states, each given by a right and a left vector."""
        up, down = self.density(one[1], other[0]), self.density(other[1], one[0])
        return float(2.0 / 3.0 * gap * self.moment(up) @ self.moment(down))

    def pole(self, right: Values, left: Values, *, is_attached: bool) -> float:
        """The pole strength of an ion."""
        total = 0.0
        for each in self.annihilates:
            one, other = (each.T, each) if is_attached else (each, each.T)
            total += float(left @ (one @ self.ground[0])) * float(self.ground[1] @ (other @ right))
        return total


def _annihilator(p: int, n: int) -> Any:
    """The annihilator of spin orbital p of n, over determinants whose bits are orbitals."""
    states = np.arange(2**n)
    there = states[(states >> p) & 1 == 1]
    below = np.array([(int(each) & ((1 << p) - 1)).bit_count() for each in there])
    return sp.csr_matrix(((-1.0) ** below, (there ^ (1 << p), there)), shape=(2**n, 2**n))
