"""Density matrices of states of a CI, of one and two particles, and between states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian, Integers, Matrix


@dataclass(frozen=True, eq=False)
class Densities:
    """Of sorted orbitals; p and q of `mixed` are of spin alpha, r and s of spin beta.

    alpha, beta: [p][q] = <bra| p+ q |ket>.
    same_alpha, mixed, same_beta: [p][q][r][s] = <bra| p+ r+ s q |ket>.
    """

    alpha: Matrix
    beta: Matrix
    same_alpha: Matrix
    mixed: Matrix
    same_beta: Matrix

    @property
    def one(self) -> Matrix:
        """Of both spins together."""
        return self.alpha + self.beta

    @property
    def two(self) -> Matrix:
        """Of all spins together."""
        return self.same_alpha + self.same_beta + self.mixed + self.mixed.transpose(2, 3, 0, 1)

    def reordered(self, positions: Integers) -> Densities:
        """Of orbitals in another order: orbital p of that is orbital positions[p] here."""
        pair = np.ix_(positions, positions)
        four = np.ix_(positions, positions, positions, positions)
        return Densities(
            self.alpha[pair],
            self.beta[pair],
            self.same_alpha[four],
            self.mixed[four],
            self.same_beta[four],
        )

    def energy(self, hamiltonian: Hamiltonian) -> float:
        """<bra|H|ket> without the core energy (Hartree)."""
        (one_a, one_b), (aa, ab, bb) = hamiltonian.ones, hamiltonian.twos
        total = np.sum(one_a * self.alpha) + np.sum(one_b * self.beta) + np.sum(ab * self.mixed)
        return float(total + (np.sum(aa * self.same_alpha) + np.sum(bb * self.same_beta)) / 2)
