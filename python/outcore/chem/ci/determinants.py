"""Matrix elements, differences and signs for a few thousand determinants, which are pairs of strings.

A string is a 64-bit mask of occupied orbitals. A determinant is the alpha string times the beta string. Creators of
a string act in the order of PySCF's `cistring`, so signs are PySCF's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix

Masks = NDArray[np.uint64]
Integers = NDArray[np.int64]

_ONE = np.uint64(1)
_BLOCK = 1 << 20  # pairs of determinants that are compared at a time


class Strings(Protocol):
    """Strings of one spin, sorted by irrep and value. `offsets`: where each irrep begins, and the end."""

    @property
    def strings(self) -> Masks: ...
    @property
    def offsets(self) -> Integers: ...


def occupations(masks: Masks, orbitals: int) -> Matrix:
    """[string][orbital]: 1 where it is occupied."""
    return ((masks[:, None] >> np.arange(orbitals, dtype=np.uint64)) & _ONE).astype(np.float64)


def sums(masks: Masks, levels: Matrix) -> Matrix:
    """For each string the sum of `levels` over its occupied orbitals. Takes a few bytes for each string."""
    found = np.zeros(len(masks))
    for orbital, level in enumerate(levels):
        found += np.where((masks >> np.uint64(orbital)) & _ONE, level, 0.0)
    return found


def count(masks: Masks) -> Integers:
    """Occupied orbitals of each string."""
    return np.bitwise_count(masks).astype(np.int64)


def mask(occupied: Integers | list[int]) -> int:
    """The string with these orbitals."""
    return sum(1 << int(orbital) for orbital in occupied)


def listed(string: int) -> list[int]:
    """Occupied orbitals of a string, ascending."""
    return [orbital for orbital in range(64) if string >> orbital & 1]


def of_occupation(double: int, single: int, up: int) -> Iterator[tuple[int, int]]:
    """All determinants with these orbitals doubly and singly occupied. up: how many of the latter have spin
    alpha."""
    for chosen in itertools.combinations(listed(single), up):
        string = mask(list(chosen))
        yield double | string, double | (single ^ string)


def first_occupations(alpha: Masks, beta: Masks, most: int) -> tuple[Masks, Masks, bool]:
    """All determinants of the spatial occupations of these, in their order, as long as there are at most `most` of
    them; the first occupation in any case. And whether none was left out."""
    seen: set[tuple[int, int]] = set()
    found: list[tuple[int, int]] = []
    for a, b in zip(alpha.tolist(), beta.tolist(), strict=True):
        double, single = a & b, a ^ b
        if (double, single) in seen:
            continue
        members = list(of_occupation(double, single, (a & ~b).bit_count()))
        if found and len(found) + len(members) > most:
            return *_arrays(found), False
        seen.add((double, single))
        found += members
    return *_arrays(found), True


def _arrays(pairs: list[tuple[int, int]]) -> tuple[Masks, Masks]:
    found = np.array(pairs, np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])


def diagonal(hamiltonian: Hamiltonian, alpha: Masks, beta: Masks) -> Matrix:
    """Diagonal elements of the Hamiltonian (Hartree), with its core energy."""
    n = hamiltonian.orbitals
    one_a, one_b = (np.diagonal(each) for each in hamiltonian.ones)
    aa, ab, bb = hamiltonian.twos
    coulomb = [np.einsum("ppqq->pq", each) for each in (aa, ab, bb)]
    exchange = [np.einsum("pqqp->pq", each) for each in (aa, bb)]
    na, nb = occupations(alpha, n), occupations(beta, n)
    energies = hamiltonian.core_energy + na @ one_a + nb @ one_b
    energies += 0.5 * np.einsum("ip,pq,iq->i", na, coulomb[0] - exchange[0], na, optimize=True)
    energies += 0.5 * np.einsum("ip,pq,iq->i", nb, coulomb[2] - exchange[1], nb, optimize=True)
    energies += np.einsum("ip,pq,iq->i", na, coulomb[1], nb, optimize=True)
    return np.asarray(energies)


def matrix(hamiltonian: Hamiltonian, alpha: Masks, beta: Masks) -> Matrix:
    """The Hamiltonian between determinants (Hartree), with its core energy on the diagonal, by the Slater-Condon
    rules. Takes 8 bytes for each pair of determinants."""
    m = len(alpha)
    found = np.zeros((m, m))
    found[np.arange(m), np.arange(m)] = diagonal(hamiltonian, alpha, beta)
    step = max(1, _BLOCK // max(m, 1))
    for first in range(0, m, step):
        rows = slice(first, min(first + step, m))
        da = np.bitwise_count(alpha[rows, None] ^ alpha) // 2
        db = np.bitwise_count(beta[rows, None] ^ beta) // 2
        for electrons_a, electrons_b in ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2)):
            i, j = np.nonzero((da == electrons_a) & (db == electrons_b))
            i += first
            keep = i > j
            i, j = i[keep], j[keep]
            if len(i):
                values = elements(hamiltonian, alpha, beta, i, j, electrons_a, electrons_b)
                found[i, j] = found[j, i] = values
    return found


def spin_square(alpha: Masks, beta: Masks) -> Matrix:
    """S^2 between determinants of a space. With each determinant the space must have all of the same spatial
    occupation."""
    m = len(alpha)
    excess = count(alpha) - count(beta)
    found = np.diag(excess / 2 * (excess / 2 + 1) + count(beta & ~alpha))
    where = {(int(a), int(b)): number for number, (a, b) in enumerate(zip(alpha, beta, strict=True))}
    for column in range(m):
        a, b = int(alpha[column]), int(beta[column])
        for p in listed(b & ~a):  # S- S+ turns the spin of p up and that of q down
            for q in listed(a & ~b):
                other = a ^ (1 << p) ^ (1 << q), b ^ (1 << p) ^ (1 << q)
                row = where.get(other)
                if row is not None:
                    sign = _swap_sign(a, other[0]) * _swap_sign(b, other[1])
                    found[row, column] -= sign
    return found


def _swap_sign(before: int, after: int) -> int:
    """The sign of moving an electron of a string to another orbital, by the number of electrons between the two."""
    moved = before ^ after
    low, high = moved & -moved, 1 << (moved.bit_length() - 1)
    between = (high - 1) & ~(low | (low - 1))
    return -1 if (before & between).bit_count() & 1 else 1


# ---- elements of pairs ----


def elements(
    hamiltonian: Hamiltonian, alpha: Masks, beta: Masks, i: Integers, j: Integers, moved_a: int, moved_b: int
) -> Matrix:
    """<i|H|j> (Hartree) for pairs that differ in `moved_a` alpha and `moved_b` beta electrons."""
    aa, ab, bb = hamiltonian.twos
    if moved_a == moved_b == 1:
        p, q, sign_a = _single(alpha[i], alpha[j])
        r, s, sign_b = _single(beta[i], beta[j])
        return np.asarray(sign_a * sign_b * ab[p, q, r, s])
    if moved_a + moved_b == 2:
        same, strings = (aa, alpha) if moved_a else (bb, beta)
        p, q, r, s, sign = _double(strings[i], strings[j])
        return np.asarray(sign * (same[p, q, r, s] - same[p, s, r, q]))
    n = hamiltonian.orbitals
    one_a, one_b = hamiltonian.ones
    if moved_a:
        p, q, sign = _single(alpha[i], alpha[j])
        one, same, own, others = one_a, aa, alpha[i] & alpha[j], beta[j]
        mixed = np.einsum("pqrr->pqr", ab)
    else:
        p, q, sign = _single(beta[i], beta[j])
        one, same, own, others = one_b, bb, beta[i] & beta[j], alpha[j]
        mixed = np.einsum("rrpq->pqr", ab)
    field = np.einsum("pqrr->pqr", same) - np.einsum("prrq->pqr", same)
    inside, outside = occupations(own, n), occupations(others, n)
    values = one[p, q] + (field[p, q] * inside).sum(1) + (mixed[p, q] * outside).sum(1)
    return np.asarray(sign * values)


def _lowest(masks: Masks) -> Integers:
    """The lowest occupied orbital of each string."""
    below = (masks & (~masks + _ONE)) - _ONE
    return np.asarray(np.bitwise_count(below), np.int64)


def _between(masks: Masks, p: Integers, q: Integers) -> Integers:
    """Number of electrons between two orbitals."""
    low, high = np.minimum(p, q).astype(np.uint64), np.maximum(p, q).astype(np.uint64)
    inside = ((_ONE << high) - _ONE) & ~((_ONE << (low + _ONE)) - _ONE)
    return np.asarray(np.bitwise_count(masks & inside), np.int64)


def _single(bra: Masks, ket: Masks) -> tuple[Integers, Integers, Integers]:
    """p, q, sign: the bra is sign p+ q on the ket."""
    p, q = _lowest(bra & ~ket), _lowest(ket & ~bra)
    return p, q, 1 - 2 * (_between(ket, p, q) & 1)


def _double(bra: Masks, ket: Masks) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """p, q, r, s, sign: the bra is sign (p+ q)(r+ s) on the ket."""
    made, gone = bra & ~ket, ket & ~bra
    p, q = _lowest(made), _lowest(gone)
    middle = ket ^ (_ONE << p.astype(np.uint64)) ^ (_ONE << q.astype(np.uint64))
    r, s = _lowest(made & (made - _ONE)), _lowest(gone & (gone - _ONE))
    sign = (_between(ket, p, q) + _between(middle, r, s)) & 1
    return p, q, r, s, 1 - 2 * sign
