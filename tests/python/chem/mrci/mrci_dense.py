"""A multireference CI as a matrix over all its determinants."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from ci_cases import integrals

from outcore import _core
from outcore.chem.ci import determinants
from outcore.chem.ci import hamiltonian as hamiltonians
from outcore.chem.mrci import configurations
from outcore.chem.mrci.integrals import of_whole
from outcore.chem.mrci.records import Orbitals, Records
from outcore.chem.mrci.size_consistency import penalty
from outcore.chem.mrci.tables import in_memory
from outcore.chem.small_space import LOWER


def energies(one, two, alpha, beta, spin):
    """Energies of states of a spin over these determinants, ascending."""
    return states(one, two, alpha, beta, spin)[0]


def states(one, two, alpha, beta, spin):
    """Energies, ascending, and vectors as columns. States of another spin lie far above."""
    wrong = determinants.spin_square(alpha, beta) - spin / 2 * (spin / 2 + 1) * np.eye(len(alpha))
    matrix = determinants.matrix(hamiltonians.make(one, two), alpha, beta)
    return np.linalg.eigh(matrix + 1e3 * wrong @ wrong)


def followed(one, two, alpha, beta, spin, is_reference, root=0, functional="ci"):
    """The energy of the state that follows a state of the references, from whole matrices, and its squared
    overlap."""
    inside = np.flatnonzero(is_reference)
    before, own = states(one, two, alpha[inside], beta[inside], spin)
    electrons = int(np.bitwise_count(alpha[0]) + np.bitwise_count(beta[0]))
    metric = np.where(is_reference, 1.0, penalty(functional, electrons))
    wrong = determinants.spin_square(alpha, beta) - spin / 2 * (spin / 2 + 1) * np.eye(len(alpha))
    matrix = determinants.matrix(hamiltonians.make(one, two), alpha, beta) - before[root] * np.eye(len(alpha))
    matrix += 1e3 * wrong @ wrong
    vectors = np.linalg.eigh(matrix)[1]
    like = (own[:, root] @ vectors[inside]) ** 2
    of_ci = vectors[:, np.flatnonzero(like >= LOWER * like.max())[0]]
    found, vectors = scipy.linalg.eigh(matrix, np.diag(metric))
    vectors /= np.linalg.norm(vectors, axis=0)
    state = np.argmax((of_ci @ vectors) ** 2)
    like = (own[:, root] @ vectors[inside]) ** 2
    return before[root] + found[state], like[state]


class Case:
    """Random integrals of internal and external orbitals with these irreps."""

    def __init__(
        self,
        internal,
        external,
        groups,
        electrons,
        irrep=0,
        parity=0,
        inactive=0,
        seed=1,
        shift=0.0,
        interacting=False,
    ):
        self.orbitals = Orbitals(tuple(internal), tuple(external), groups)
        labels = [*internal, *external]
        self.one, self.two = integrals(len(labels), seed, labels)
        active = range(inactive, len(internal))
        references = configurations.every(active, sum(electrons) - 2 * inactive, (1 << inactive) - 1)
        self.records = Records(
            self.orbitals, references, electrons, irrep, parity, inactive if interacting else None
        )
        self.space = self.records.native()
        p, q = np.tril_indices(len(labels))
        self.integrals = of_whole(self.two[p, q][:, p, q], len(internal))
        self.kernel = self.made(spin_shift=shift)
        in_memory(self.kernel, self.integrals.external, len(external), 1)

    def made(self, **given):
        """A kernel without integrals between external pairs."""
        found = self.integrals
        return _core.MRCIKernel(self.space, self.one, found.rows, found.coulomb, found.exchange, **given)

    def strings(self):
        parts = [self.records.strings(each) for each in range(len(self.records))]
        return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])

    def matrix(self):
        hamiltonian = hamiltonians.make(self.one, self.two)
        return determinants.matrix(hamiltonian, *self.strings())

    def apply(self, x, max_cost=1e4):
        t = np.zeros_like(x)
        for task in self.kernel.tasks(max_cost):
            self.kernel.apply(task, x, t, self.space.offsets[:-1])
        self.space.fold(0, len(self.space), 1.0, t)
        return t
