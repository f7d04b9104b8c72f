"""Determinants that have large weights in states of a small CI.

The weight of a determinant outside of the small space is that in the lower state of two determinants: the state of
the small space and the determinant. So it is that of perturbation theory (Epstein, Nesbet) if it is small. CIPSI:
Huron, Malrieu, Rancurel, J. Chem. Phys. 58, 5745 (1973).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.ci import determinants

if TYPE_CHECKING:
    from outcore.chem.ci.determinants import Integers, Masks
    from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix

_SHARE = 0.99  # of the norm of the states: further determinants of the small space are not excited
_POOL = 32  # excited determinants that are remembered, for each wanted one
_PAIR_BYTES = 160  # of an excited determinant while elements of H are computed


def heaviest(
    hamiltonian: Hamiltonian, alpha: Masks, beta: Masks, energies: Matrix, vectors: Matrix, size: int
) -> tuple[Masks, Masks]:
    """About `size` determinants with the largest weights in any of some states, together with all of the same
    spatial occupations.

    alpha, beta: the small space. energies (Hartree), vectors [determinant][state]: of the states. Determinants
    outside of the small space are those with one or two electrons moved."""
    couplings = np.empty((0, vectors.shape[1]))
    a, b = np.empty(0, np.uint64), np.empty(0, np.uint64)
    for i in _excited(vectors):
        for bra_a, bra_b, moved in neighbours(hamiltonian, int(alpha[i]), int(beta[i])):
            both_a, both_b = np.append(bra_a, alpha[i]), np.append(bra_b, beta[i])
            numbers = np.arange(len(bra_a))
            values = determinants.elements(
                hamiltonian, both_a, both_b, numbers, np.full_like(numbers, len(bra_a)), *moved
            )
            a, b = np.append(a, bra_a), np.append(b, bra_b)
            couplings = np.vstack([couplings, values[:, None] * vectors[i]])
        if len(a) > 2 * _POOL * size:
            a, b, couplings = _merged(a, b, couplings)
            best = np.argsort(-_weights(hamiltonian, a, b, energies, couplings), kind="stable")[
                : _POOL * size
            ]
            a, b, couplings = a[best], b[best], couplings[best]
    a, b, couplings = _outside(*_merged(a, b, couplings), alpha, beta)
    outside = _weights(hamiltonian, a, b, energies, couplings)
    a, b = np.append(alpha, a), np.append(beta, b)
    weights = np.append((vectors**2).max(axis=1), outside)
    if hamiltonian.unrestricted:
        order = np.argsort(-weights, kind="stable")[:size]
        return a[order], b[order]
    order = np.argsort(-_of_occupations(a, b, weights), kind="stable")
    return determinants.first_occupations(a[order], b[order], size)[:2]


def work_bytes(orbitals: int, electrons: tuple[int, int], size: int, roots: int) -> int:
    """Memory of `heaviest` (bytes), without matrices over the small space."""
    singles = [each * (orbitals - each) for each in electrons]
    doubles = [each * (each - 1) * (orbitals - each) * (orbitals - each - 1) // 4 for each in electrons]
    return _PAIR_BYTES * max(*singles, *doubles, singles[0] * singles[1]) + 6 * _POOL * size * (
        16 + 8 * roots
    )


def neighbours(
    hamiltonian: Hamiltonian, alpha: int, beta: int
) -> Iterator[tuple[Masks, Masks, tuple[int, int]]]:
    """Determinants of the same irrep with one or two electrons moved: strings, and how many electrons of each spin
    have moved."""
    irreps = hamiltonian.irreps.astype(np.int64)
    (single_a, of_a), (single_b, of_b) = (_singles(irreps, each) for each in (alpha, beta))
    same = [
        (single_a[of_a == 0], None, (1, 0)),
        (None, single_b[of_b == 0], (0, 1)),
        (_doubles(irreps, alpha), None, (2, 0)),
        (None, _doubles(irreps, beta), (0, 2)),
    ]
    for a, b, moved in same:
        count = len(a if b is None else b)
        if count:
            yield (
                np.full(count, alpha, np.uint64) if a is None else a,
                np.full(count, beta, np.uint64) if b is None else b,
                moved,
            )
    for group in range(hamiltonian.groups):
        a, b = single_a[of_a == group], single_b[of_b == group]
        if len(a) and len(b):
            yield np.repeat(a, len(b)), np.tile(b, len(a)), (1, 1)


def _singles(irreps: Integers, string: int) -> tuple[Masks, Integers]:
    """Strings with one electron moved, and the product of the irreps of both orbitals."""
    bits = np.uint64(1) << np.arange(len(irreps), dtype=np.uint64)
    is_occupied = (np.uint64(string) & bits) != 0
    moved = bits[is_occupied][:, None] | bits[~is_occupied]
    return (np.uint64(string) ^ moved).ravel(), (irreps[is_occupied][:, None] ^ irreps[~is_occupied]).ravel()


def _doubles(irreps: Integers, string: int) -> Masks:
    """Strings of the same irrep with two electrons moved."""
    bits = np.uint64(1) << np.arange(len(irreps), dtype=np.uint64)
    is_occupied = (np.uint64(string) & bits) != 0
    pairs = []
    for inside in (is_occupied, ~is_occupied):
        first, second = np.triu_indices(int(inside.sum()), 1)
        mine, of = bits[inside], irreps[inside]
        pairs.append((mine[first] | mine[second], of[first] ^ of[second]))
    (gone, of_gone), (made, of_made) = pairs
    moved: Masks = (gone[:, None] | made)[of_gone[:, None] == of_made]
    return np.asarray(np.uint64(string) ^ moved, np.uint64)


def _excited(vectors: Matrix) -> Integers:
    """The determinants that have almost the whole norm of each state, largest first."""
    weights = (vectors**2).sum(axis=1)
    order = np.argsort(-weights, kind="stable")
    enough = int(np.searchsorted(np.cumsum(weights[order]), _SHARE * vectors.shape[1])) + 1
    return order[:enough]


def _merged(a: Masks, b: Masks, values: Matrix) -> tuple[Masks, Masks, Matrix]:
    """Each determinant once, with the sum of its values."""
    if not len(a):
        return a, b, values
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    first = np.flatnonzero(np.append(True, (a[1:] != a[:-1]) | (b[1:] != b[:-1])))
    return a[first], b[first], np.add.reduceat(values[order], first)


def _outside(a: Masks, b: Masks, values: Matrix, alpha: Masks, beta: Masks) -> tuple[Masks, Masks, Matrix]:
    """Those that are none of (alpha, beta)."""
    inside = set(zip(alpha.tolist(), beta.tolist(), strict=True))
    keep = np.array([each not in inside for each in zip(a.tolist(), b.tolist(), strict=True)], bool)
    return a[keep], b[keep], values[keep]


def _weights(hamiltonian: Hamiltonian, a: Masks, b: Masks, energies: Matrix, couplings: Matrix) -> Matrix:
    """The largest weight in any state, for elements of H with the states: [determinant][state]."""
    gaps = determinants.diagonal(hamiltonian, a, b)[:, None] - energies
    roots = np.hypot(gaps, 2 * couplings)
    scale = np.where(roots > 0, roots * (roots + abs(gaps)), 1.0)
    small = 2 * couplings**2 / scale
    return np.asarray(np.where(gaps >= 0, small, 1 - small).max(axis=1, initial=0.0))


def _of_occupations(a: Masks, b: Masks, weights: Matrix) -> Matrix:
    """For each determinant the sum of weights of all with its spatial occupation."""
    _, where = np.unique(np.stack([a & b, a ^ b]), axis=1, return_inverse=True)
    where = where.ravel()
    return np.asarray(np.bincount(where, weights)[where])
