"""Start vectors of a CI: states of a small space, complete in spin. Its determinants are those with the lowest
diagonal elements, or those with the largest weights in a small CI."""

from __future__ import annotations

import errno
import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.ci import determinants, selected

if TYPE_CHECKING:
    from outcore.chem.ci.determinants import Integers, Masks, Strings
    from outcore.chem.ci.hamiltonian import Hamiltonian, Matrix

SIZE = 400  # determinants of the small space, unless more are asked for
SELECTIONS = ("energy", "weights")
_SHIFT = 1e-3  # Hartree times S^2: separates states of different spin that are degenerate
_PURE = 1e-4  # tolerance of <S^2> in a space that is complete in spin
_CANDIDATES = 8  # at least so many times the wanted determinants are looked at
_ROUNDS = 2  # most selections by weights, one after another
_FALLS = 1e-5  # Hartree: least decrease of the mean energy for which there is another


@dataclass(frozen=True)
class Guess:
    """States of the small space.

    alpha, beta: its determinants. energies: Hartree, ascending. vectors: [determinant][state], orthonormal; with as
    many alpha as beta electrons they are exactly even or odd under the exchange of spins. spin_squares: <S^2>.
    """

    alpha: Masks
    beta: Masks
    energies: Matrix
    vectors: Matrix
    spin_squares: Matrix

    def first(self, roots: int) -> Guess:
        """The same with so many states."""
        return Guess(
            self.alpha, self.beta, self.energies[:roots], self.vectors[:, :roots], self.spin_squares[:roots]
        )


def start(
    hamiltonian: Hamiltonian,
    alpha: Strings,
    beta: Strings,
    irrep: int,
    *,
    roots: int = 1,
    spin: int | None = None,
    size: int = SIZE,
    selection: str = SELECTIONS[0],
) -> Guess:
    """The lowest states of a small space.

    spin: 2S of the states, None: any. roots: how many states; the space grows until it has them. selection:
    "energy": determinants with the lowest diagonal elements; "weights": with the largest weights in the states of
    a small CI, which has at first the lowest diagonal elements, and then those of the last selection.

    Raises OutcoreError (EINVAL) if the whole space has fewer states of this irrep and spin.
    """
    while True:
        chosen_a, chosen_b, whole = select(hamiltonian, alpha, beta, irrep, size)
        states = _states(hamiltonian, chosen_a, chosen_b, spin)
        if len(states.energies) >= roots:
            lowest = states.first(roots)
            return lowest if whole or selection == "energy" else _by_weights(hamiltonian, lowest, spin, size)
        if whole:
            what = f"irrep {hamiltonian.names[irrep]}" + ("" if spin is None else f" with 2S = {spin}")
            raise OutcoreError(
                errno.EINVAL,
                f"find {roots} {'root' if roots == 1 else 'roots'}",
                detail=f"there are {len(states.energies)} states of {what} in {len(chosen_a)} determinants",
            )
        size *= 2


def _by_weights(hamiltonian: Hamiltonian, found: Guess, spin: int | None, size: int) -> Guess:
    """States of the determinants that weigh most in these states, and again, as long as energies fall."""
    roots = len(found.energies)
    for _ in range(_ROUNDS):
        chosen = selected.heaviest(hamiltonian, found.alpha, found.beta, found.energies, found.vectors, size)
        states = _states(hamiltonian, *chosen, spin).first(roots)
        if len(states.energies) < roots or states.energies.mean() > found.energies.mean() - _FALLS:
            return found
        found = states
    return found


def select(
    hamiltonian: Hamiltonian, alpha: Strings, beta: Strings, irrep: int, size: int
) -> tuple[Masks, Masks, bool]:
    """About `size` determinants with the lowest diagonal elements, together with all of the same spatial
    occupations; and whether they are the whole space. Empty if no determinant is of the irrep."""
    a, b, all_taken = _candidates(hamiltonian, alpha, beta, irrep, _CANDIDATES * size)
    if not len(a):
        return a, b, True
    if hamiltonian.unrestricted:
        order = np.argsort(determinants.diagonal(hamiltonian, a, b), kind="stable")[:size]
        return a[order], b[order], all_taken and len(order) == len(a)
    order = np.argsort(determinants.diagonal(hamiltonian, a, b), kind="stable")
    *chosen, whole = determinants.first_occupations(a[order], b[order], size)
    return chosen[0], chosen[1], whole and all_taken


def _candidates(
    hamiltonian: Hamiltonian, alpha: Strings, beta: Strings, irrep: int, least: int
) -> tuple[Masks, Masks, bool]:
    """Determinants with the lowest sums of orbital energies, at least `least` if there are so many, and whether
    these are all."""
    energies = _string_energies(hamiltonian, alpha, beta, irrep)
    pairs: list[tuple[float, int, int]] = []
    everything = True
    for ga in range(hamiltonian.groups):
        gb = ga ^ irrep
        rows = slice(int(alpha.offsets[ga]), int(alpha.offsets[ga + 1]))
        columns = slice(int(beta.offsets[gb]), int(beta.offsets[gb + 1]))
        row = rows.start + np.argsort(energies[0][rows], kind="stable")[:least]
        column = columns.start + np.argsort(energies[1][columns], kind="stable")[:least]
        everything &= len(row) * len(column) <= least
        pairs += _lowest_sums(energies[0][row], energies[1][column], row, column, least)
    if not pairs:
        return np.empty(0, np.uint64), np.empty(0, np.uint64), True
    pairs.sort()
    everything &= len(pairs) <= least
    chosen = np.array([each[1:] for each in pairs[:least]])
    return alpha.strings[chosen[:, 0]], beta.strings[chosen[:, 1]], everything


def _lowest_sums(
    left: Matrix, right: Matrix, rows: Integers, columns: Integers, most: int
) -> list[tuple[float, int, int]]:
    """The `most` lowest sums of an element of each of two ascending lists, with the numbers of both elements."""
    found: list[tuple[float, int, int]] = []
    heap = [(float(left[0] + right[0]), 0, 0)] if len(left) and len(right) else []
    while heap and len(found) < most:
        energy, i, j = heapq.heappop(heap)
        found.append((energy, int(rows[i]), int(columns[j])))
        if j + 1 < len(right):
            heapq.heappush(heap, (float(left[i] + right[j + 1]), i, j + 1))
        if j == 0 and i + 1 < len(left):
            heapq.heappush(heap, (float(left[i + 1] + right[0]), i + 1, 0))
    return found


def _string_energies(
    hamiltonian: Hamiltonian, alpha: Strings, beta: Strings, irrep: int
) -> tuple[Matrix, Matrix]:
    """Sums of orbital energies for each string, in the field of a low determinant of the irrep (Hartree)."""
    n = hamiltonian.orbitals
    one_a, one_b = (np.diagonal(each) for each in hamiltonian.ones)
    aa, ab, bb = hamiltonian.twos
    same = [np.einsum("ppqq->pq", each) - np.einsum("pqqp->pq", each) for each in (aa, bb)]
    mixed = np.einsum("ppqq->pq", ab)
    energies = determinants.sums(alpha.strings, one_a), determinants.sums(beta.strings, one_b)
    least = np.inf
    for _ in range(20):  # takes the lowest determinant in the field of the last one, while the energy falls
        pair = _lowest_pair(energies, alpha, beta, hamiltonian.groups, irrep)
        if pair is None:
            break
        a, b = alpha.strings[[pair[0]]], beta.strings[[pair[1]]]
        total = float(determinants.diagonal(hamiltonian, a, b)[0])
        if total >= least - 1e-9:
            break
        least = total
        na, nb = determinants.occupations(a, n)[0], determinants.occupations(b, n)[0]
        energies = (
            determinants.sums(alpha.strings, one_a + same[0] @ na + mixed @ nb),
            determinants.sums(beta.strings, one_b + same[1] @ nb + na @ mixed),
        )
    return energies


def _lowest_pair(
    energies: tuple[Matrix, Matrix], alpha: Strings, beta: Strings, groups: int, irrep: int
) -> tuple[int, int] | None:
    best: tuple[float, int, int] | None = None
    for ga in range(groups):
        rows = slice(int(alpha.offsets[ga]), int(alpha.offsets[ga + 1]))
        columns = slice(int(beta.offsets[ga ^ irrep]), int(beta.offsets[(ga ^ irrep) + 1]))
        if rows.start == rows.stop or columns.start == columns.stop:
            continue
        i, j = (
            rows.start + int(energies[0][rows].argmin()),
            columns.start + int(energies[1][columns].argmin()),
        )
        total = float(energies[0][i] + energies[1][j])
        if best is None or total < best[0]:
            best = total, i, j
    return None if best is None else best[1:]


def _states(hamiltonian: Hamiltonian, alpha: Masks, beta: Masks, spin: int | None) -> Guess:
    """All states of a space of determinants; if `spin` is given, those of this spin."""
    if not len(alpha):
        nothing = np.empty(0)
        return Guess(alpha, beta, nothing, np.empty((0, 0)), nothing)
    matrix = determinants.matrix(hamiltonian, alpha, beta)
    if hamiltonian.unrestricted:
        energies, vectors = np.linalg.eigh(matrix)
        return Guess(alpha, beta, energies, vectors, np.full(len(energies), np.nan))
    square = determinants.spin_square(alpha, beta)
    _, vectors = np.linalg.eigh(matrix + _SHIFT * square)
    squares = np.einsum("ik,ik->k", vectors, square @ vectors)
    energies = np.einsum("ik,ik->k", vectors, matrix @ vectors)
    order = np.argsort(energies, kind="stable")
    if spin is not None:
        wanted = spin / 2 * (spin / 2 + 1)
        order = order[abs(squares[order] - wanted) < _PURE]
    vectors = _of_one_parity(alpha, beta, vectors[:, order])
    return Guess(alpha, beta, energies[order], vectors, squares[order])


def _of_one_parity(alpha: Masks, beta: Masks, vectors: Matrix) -> Matrix:
    """Makes states exactly even or odd under the exchange of spins, if they are so within rounding."""
    pairs = list(zip(alpha.tolist(), beta.tolist(), strict=True))
    where = {pair: number for number, pair in enumerate(pairs)}
    if any((b, a) not in where for a, b in pairs):
        return vectors
    swapped = vectors[[where[b, a] for a, b in pairs]]
    signs = np.sign(np.einsum("ik,ik->k", vectors, swapped))
    exact: Matrix = vectors + signs * swapped
    exact /= np.linalg.norm(exact, axis=0)
    return exact
