"""The eigenvalue search over plain NumPy vectors."""

from __future__ import annotations

import numpy as np

from outcore.chem import davidson
from outcore.chem.small_space import SmallSpace

SMALLEST = 0.02


class PlainSearch(davidson.Search):
    """The search for a symmetric matrix. wrong: (number of a product from 0, an error that is added to all of
    it). rounding: magnitude of errors of stored vectors and products. references: states that roots follow,
    as rows."""

    def __init__(self, matrix, starts, *, references=None, wrong=(-1, 0.0), rounding=0.0, **limits):
        shifts = None if references is None else np.zeros(len(starts))
        super().__init__(
            "search",
            davidson.Limits(exact=not rounding, **limits),
            len(starts),
            davidson.Iteration,
            shifts=shifts,
        )
        self.matrix, self.references = matrix, references
        self.wrong, self.rounding = wrong, rounding
        self.random = np.random.default_rng(5)
        self.products = self.renewals = self.most = 0
        self.begin(np.array(starts, float))

    def store(self, vectors):
        return vectors + self.rounding * self.random.standard_normal(vectors.shape)

    def multiply(self, vectors):
        found = vectors @ self.matrix
        number, what = self.wrong
        if 0 <= number - self.products < len(found):
            found[number - self.products] += what
        self.products += len(found)
        return found

    def begin(self, vectors):
        self.vectors, self.multiplied = vectors, self.multiply(vectors)
        self.errors = 1e-14 * np.linalg.norm(self.multiplied, axis=1)
        self.solve_all()

    def solve_all(self):
        v = self.vectors
        overlap, hamiltonian = v @ v.T, v @ self.multiplied.T
        likeness = None if self.references is None else self.references @ v.T
        self.solve(SmallSpace(overlap, overlap, (hamiltonian + hamiltonian.T) / 2, likeness))

    def correct(self):
        x, hx = self.states @ self.vectors, self.states @ self.multiplied
        residual = hx - self.energies[:, None] * x
        gap = np.diagonal(self.matrix) - self.energies[:, None]
        self.corrections = -residual / np.where(abs(gap) < SMALLEST, np.copysign(SMALLEST, gap), gap)
        self.record(self.energies, np.linalg.norm(residual, axis=1))

    def stalled(self):
        if len(self.iterations) < 2:
            return False
        before, now = (each.residuals.max() for each in self.iterations[-2:])
        return now > 0.5 * before

    def expand(self):
        active = self.active()
        rows = self.shrunk(active)
        if rows is not None:
            self.vectors, self.multiplied = (
                self.store(rows @ self.vectors),
                self.store(rows @ self.multiplied),
            )
            self.transform(rows)
        new = self.store(self.corrections[active])
        self.vectors = np.concatenate([self.vectors, new])
        self.multiplied = np.concatenate([self.multiplied, self.multiply(new)])
        self.errors = np.append(self.errors, 1e-14 * np.linalg.norm(self.multiplied[-len(new) :], axis=1))
        self.most = max(self.most, len(self.vectors))
        self.solve_all()

    def renew(self):
        self.renewals += 1
        self.begin(self.store(self.states @ self.vectors))

    @property
    def found(self):
        return self.states @ self.vectors
