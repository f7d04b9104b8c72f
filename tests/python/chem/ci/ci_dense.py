"""A small CI as a matrix, as a stand-in for the kernels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def orbitals(irreps, groups=None, unrestricted=False):
    """The part of a Hamiltonian that a Space needs."""
    count = groups or (1 << int(max(irreps)).bit_length())
    return SimpleNamespace(irreps=np.array(irreps), groups=count, unrestricted=unrestricted)


class DenseOperator:
    """A symmetric matrix over all products of strings that does not couple different irreps (or parities)."""

    def __init__(self, space, seed=1, coupling=0.3):
        self.space = space
        rows, columns = len(space.alpha.strings), len(space.beta.strings)
        self.shape = (rows, columns)
        random = np.random.default_rng(seed)
        matrix = random.standard_normal((rows * columns,) * 2) * coupling
        matrix += np.diag(np.sort(random.random(rows * columns)) * 40 - 80)
        matrix = (matrix + matrix.T) / 2
        self.there = (_irreps(space.alpha)[:, None] ^ _irreps(space.beta)) == space.irrep
        inside = self.there.ravel()
        matrix[~inside] = 0
        matrix[:, ~inside] = 0
        if space.parity:  # exchange of spins commutes with it
            swap = np.arange(rows * columns).reshape(rows, columns).T.ravel()
            matrix = (matrix + matrix[np.ix_(swap, swap)]) / 2
        self.matrix = matrix
        self.applied = 0

    def eigenvalues(self, count):
        space = self.space
        rows, columns = self.shape
        basis = []
        for a in range(rows):
            for b in range(columns):
                if not self.there[a, b]:
                    continue
                vector = np.zeros(self.shape)
                vector[a, b] += 1
                if space.parity:
                    if a < b:
                        continue
                    vector[b, a] += space.parity
                norm = np.linalg.norm(vector)
                if norm > 0:
                    basis.append(vector.ravel() / norm)
        basis = np.array(basis)
        return np.linalg.eigvalsh(basis @ self.matrix @ basis.T)[:count]

    def apply(self, x, y, product=None):
        self.applied += 1
        product = (self.matrix @ x.vectors.dense(x.index).astype(float).ravel()).reshape(self.shape)
        for tile in y.vectors.tiles():
            (r, c), (height, width) = tile.first, tile.shape
            block = product[r : r + height, c : c + width]
            if self.space.parity and tile.on_diagonal:
                block = (block + self.space.parity * block.T) / 2
            y.vectors.acc(y.index, tile, np.ascontiguousarray(block.astype(y.vectors.dtype)))
        y.vectors.sync()

    waited_seconds = 0.0

    def diagonal(self, tile):
        (r, c), (height, width) = tile.first, tile.shape
        whole = np.diagonal(self.matrix).reshape(self.shape)
        return np.ascontiguousarray(whole[r : r + height, c : c + width])


def _irreps(strings):
    return np.searchsorted(strings.offsets, np.arange(len(strings.strings)), side="right") - 1


def fill_starts(vectors, operator, count, seed=2):
    """The lowest diagonal elements, and some of everything, with the right symmetry."""
    random = np.random.default_rng(seed)
    whole = np.where(operator.there, np.diagonal(operator.matrix).reshape(operator.shape), np.inf)
    if operator.space.parity:  # each pair once; what is its own partner is zero if parity is -1
        whole[np.triu_indices_from(whole, k=1 if operator.space.parity > 0 else 0)] = np.inf
    for i in range(count):
        start = random.standard_normal(operator.shape) * 1e-2
        lowest = np.unravel_index(np.argsort(whole, axis=None)[i], whole.shape)
        start[lowest] += 1
        if operator.space.parity:
            start = start + operator.space.parity * start.T
        start[~operator.there] = 0
        for tile in vectors.tiles():
            (r, c), (height, width) = tile.first, tile.shape
            block = start[r : r + height, c : c + width].astype(vectors.dtype)
            vectors.put(i, tile, np.ascontiguousarray(block))
    vectors.sync()
