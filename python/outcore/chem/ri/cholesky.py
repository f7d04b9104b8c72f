"""Cholesky decomposition of two-electron integrals to any tolerance: (mn|ls) = sum_J L[J,mn] L[J,ls].

Beebe, Linderberg, Int. J. Quantum Chem. 12, 683 (1977); Koch, Sanchez de Meras, Pedersen, J. Chem. Phys. 118, 9481
(2003).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

    from outcore.job.world import World

Values = np.ndarray[Any, np.dtype[Any]]

EXACT = 1e-11  # Hartree: a tolerance whose energies are those of all integrals, within 1e-9
_SPAN = 1e-2  # of the largest diagonal element: smaller ones are no pivots of the same batch
_PIECE = 32  # vectors that are transformed at once


class Cholesky:
    """Vectors, in the memory of each process. Collective to make; rank 0 decides, all have the same.

    tolerance: the diagonal (mn|mn) is right within it, and so are all integrals (Hartree).
    limit_bytes: of the vectors. Raises OutcoreError: ENOMEM (more are needed), EINVAL.
    """

    def __init__(self, world: World, mol: Mole, tolerance: float, limit_bytes: int) -> None:
        if not 0 < tolerance < 1:
            raise OutcoreError(
                errno.EINVAL, f"tolerance {tolerance:g}", detail="it lies between 0 and 1 Hartree"
            )
        vectors: Values | None = None
        with world.together("Cholesky decomposition", tolerance):
            if world.rank == 0:
                vectors = decompose(mol, tolerance, limit_bytes)
        self.rank = int(world.broadcast(0 if vectors is None else len(vectors)))
        n = int(mol.nao)
        if vectors is None:
            vectors = np.empty((self.rank, n * (n + 1) // 2))
        for first in range(0, self.rank if world.size > 1 else 0, _PIECE):
            vectors[first : first + _PIECE] = world.broadcast(vectors[first : first + _PIECE])
        self._vectors = vectors
        self._functions = n
        self.cuts: tuple[int, ...] = (*range(0, self.rank, _PIECE), self.rank)
        self.settings = {"Cholesky tolerance": tolerance}
        self.title = f"{self.rank} Cholesky vectors, tolerance {tolerance:g} Eh"

    def matrices(self, piece: int) -> Values:
        rows = self._vectors[self.cuts[piece] : self.cuts[piece + 1]]
        result = np.empty((len(rows), self._functions, self._functions))
        i, j = np.tril_indices(self._functions)
        result[:, i, j] = rows
        result[:, j, i] = rows
        return result

    def fit(self, block: Values) -> Values:
        return block


def decompose(mol: Mole, tolerance: float, limit_bytes: int) -> Values:
    """Vectors [J][m >= n], in rows of the lower triangle."""
    n = int(mol.nao)
    first = mol.ao_loc_nr()
    shell_of = np.repeat(np.arange(mol.nbas), np.diff(first))
    i, j = np.tril_indices(n)
    diagonal = _diagonal(mol, first)
    vectors = np.empty((0, len(i)))
    count = 0
    while diagonal.max() > tolerance:
        at = int(diagonal.argmax())
        least = max(tolerance, _SPAN * diagonal[at])
        a, b = shell_of[i[at]], shell_of[j[at]]
        of_batch = np.flatnonzero((shell_of[i] == a) & (shell_of[j] == b))
        block = mol.intor("int2e", aosym="s2ij", shls_slice=(0, mol.nbas, 0, mol.nbas, a, a + 1, b, b + 1))
        columns = block.reshape(len(i), -1)[
            :, (i[of_batch] - first[a]) * (first[b + 1] - first[b]) + j[of_batch] - first[b]
        ]
        columns = columns.T - vectors[:count, of_batch].T @ vectors[:count]
        done = 0
        while True:
            pivot = int(diagonal[of_batch].argmax())
            value = diagonal[of_batch[pivot]]
            if value <= least:
                break
            if count == len(vectors):
                vectors = _grown(vectors, limit_bytes, tolerance)
            row = (
                columns[pivot]
                - vectors[count - done : count, of_batch[pivot]] @ vectors[count - done : count]
            )
            row /= np.sqrt(value)
            vectors[count] = row
            diagonal -= row * row
            diagonal[of_batch[pivot]] = 0.0
            count, done = count + 1, done + 1
        if not done:
            raise OutcoreError(
                errno.EINVAL,
                "Cholesky decomposition",
                detail=f"rounding leaves no pivot above {least:.1e} Eh; raise the tolerance",
            )
    return vectors[:count].copy()


def _grown(vectors: Values, limit_bytes: int, tolerance: float) -> Values:
    count, width = len(vectors) + max(64, len(vectors) // 4), vectors.shape[1]
    if count * width * 8 > limit_bytes:
        raise OutcoreError(
            errno.ENOMEM,
            "Cholesky decomposition",
            detail=f"more than {len(vectors)} vectors of {width} products of functions are needed for a tolerance "
            f"of {tolerance:g} Eh: {count * width * 8 / 1e6:.0f} MB, but {limit_bytes / 1e6:.0f} MB are left",
        )
    result = np.empty((count, width))
    result[: len(vectors)] = vectors
    return result


def _diagonal(mol: Mole, first: Values) -> Values:
    """(mn|mn) in rows of the lower triangle."""
    n = int(mol.nao)
    full = np.empty((n, n))
    for a in range(mol.nbas):
        for b in range(a + 1):
            block = mol.intor("int2e", shls_slice=(a, a + 1, b, b + 1, a, a + 1, b, b + 1))
            values = np.einsum("mnmn->mn", block)
            full[first[a] : first[a + 1], first[b] : first[b + 1]] = values
    return full[np.tril_indices(n)]
