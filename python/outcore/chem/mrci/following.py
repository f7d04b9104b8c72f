"""Which states of a small space are the roots: each follows a state of the references.

The lowest states are not always those that are looked for. In the functionals of ACPF and AQCC (Gdanitz and
Ahlrichs, Chem. Phys. Lett. 143, 413 (1988); Szalay and Bartlett, Chem. Phys. Lett. 214, 481 (1993)) all but the
references count little in the norm, so states without any reference may lie below all others. In a CI correlation
may put states into another order than that of the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from outcore.chem.ci.small import ritz

if TYPE_CHECKING:
    from outcore.chem.mrci.vectors import Array, Layout

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

# A root of a CI follows the state that is most like its state of the references, or a lower one that no other root
# follows and that is so many times as much like it: where two share a reference alike, the lower one is meant.
LOWER = 0.5
_SAME = 1e-6  # Hartree: energies that differ by less are not told apart


class ReferenceVectors:
    """States of the references as vectors of the whole space.

    Args:
        values: [state][reference], of normalised states, references in the order of records.
    """

    def __init__(self, layout: Layout, values: Matrix) -> None:
        self._layout, self._values = layout, values
        self._records: Integers = np.flatnonzero(layout.records.is_reference)

    def __len__(self) -> int:
        return len(self._values)

    def _of(self, block: int) -> tuple[Integers, Matrix]:
        """Their elements of a block, and values of these."""
        records = self._layout.records_of(block)
        first, last = np.searchsorted(self._records, [records.start, records.stop])
        offsets = self._layout.offsets
        return offsets[self._records[first:last]] - offsets[records.start], self._values[:, first:last]

    def block(self, block: int) -> Matrix | None:
        """[state][element]; None: there is no reference in it."""
        at, values = self._of(block)
        if not len(at):
            return None
        found = np.zeros((len(values), self._layout.size(block)))
        found[:, at] = values
        return found

    def products(self, block: int, x: Array) -> Matrix:
        """[state][vector], of a block of some vectors."""
        at, values = self._of(block)
        found: Matrix = (values * self._layout.weights(block)[at]) @ x[:, at].T
        return found


@dataclass
class SmallSpace:
    """Products of some vectors v.

    Attributes:
        overlap: <v|G|v> with the metric G of the functional.
        plain: <v|v>, the same object where there is no metric.
        hamiltonian: <v|H|v>.
        likeness: [state of the references][vector].
    """

    overlap: Matrix
    plain: Matrix
    hamiltonian: Matrix
    likeness: Matrix

    def bordered(self, rows: SmallSpace) -> SmallSpace:
        """With more vectors, the last ones, whose products with all are the rows."""
        overlap = _bordered(self.overlap, rows.overlap)
        same = rows.plain is rows.overlap
        return SmallSpace(
            overlap,
            overlap if same else _bordered(self.plain, rows.plain),
            _bordered(self.hamiltonian, rows.hamiltonian),
            np.hstack([self.likeness, rows.likeness]),
        )

    def transformed(self, rows: Matrix) -> SmallSpace:
        """Of other vectors: [new][old]."""
        overlap = rows @ self.overlap @ rows.T
        return SmallSpace(
            overlap,
            overlap if self.plain is self.overlap else rows @ self.plain @ rows.T,
            rows @ self.hamiltonian @ rows.T,
            self.likeness @ rows.T,
        )


@dataclass(frozen=True)
class Roots:
    """Attributes:
    energies: Hartree. coefficients: [root][vector], normalised with the metric.
    likeness: squares of what each root has of its state of the references, of normalised states.
    levels: for each root energies of all states of its Hamiltonian, and of those that other roots follow there.
    passed: coefficients of states that no root follows, the lowest of each Hamiltonian first, of those where any is
        below a root.
    """

    energies: Matrix
    coefficients: Matrix
    likeness: Matrix
    levels: list[tuple[Matrix, Matrix]]
    passed: Matrix


def follow(space: SmallSpace, shifts: Matrix) -> Roots:
    """The root of each state of the references, in their order. The first vectors of the space are the present
    roots. Of a functional it is the state that is most like the root of a CI: one choice for all roots, whose
    Hamiltonians differ.

    shifts: Hartree, of each root: its states are those of H - shift, to whose energies the shift is added (which
    makes a difference with a metric alone).
    Raises ValueError, as `ritz` does."""
    count, of_functional = len(shifts), space.plain is not space.overlap
    energies, likeness = np.empty(count), np.empty(count)
    levels: list[tuple[Matrix, Matrix]] = [(energies, energies)] * count
    coefficients = np.empty((count, len(space.overlap)))
    passed: list[Matrix] = []
    plain = ritz(space.plain, space.hamiltonian, count, every=True)
    c = plain.coefficients
    of_ci = choose((space.likeness @ c.T) ** 2)
    followed = c[of_ci] @ space.plain
    for shift in np.unique(shifts):
        found, chosen = plain, of_ci
        if of_functional:
            found = ritz(space.overlap, space.hamiltonian - shift * space.plain, count, every=True)
            c = found.coefficients
            norms = np.einsum("ij,jk,ik->i", c, space.plain, c)
            chosen = assign((followed @ c.T) ** 2 / norms)
        others = np.setdiff1d(np.arange(len(c)), chosen)
        for root in np.flatnonzero(shifts == shift):
            state = chosen[root]
            energies[root], coefficients[root] = found.energies[state] + shift, c[state]
            likeness[root] = (space.likeness[root] @ c[state]) ** 2 / (c[state] @ space.plain @ c[state])
            rest = np.delete(chosen, root)
            levels[root] = found.energies + shift, found.energies[rest] + shift
        if others.min(initial=len(c)) < max(chosen):
            passed.append(c[others])
    return Roots(energies, coefficients, likeness, levels, _in_turn(passed))


def assign(likeness: Matrix) -> list[int]:
    """[root][state]: a state for each root, so that the sum is largest."""
    from scipy.optimize import linear_sum_assignment

    return [int(each) for each in linear_sum_assignment(-likeness)[1]]


def choose(likeness: Matrix) -> list[int]:
    """[root][state], states by energy: the state of each root."""
    chosen = assign(likeness)
    for root, state in enumerate(chosen):
        for other in range(state):
            if other not in chosen and likeness[root, other] >= LOWER * likeness[root, state]:
                chosen[root] = other
                break
    return chosen


def passed_over(iterations: Sequence[Roots]) -> Integers:
    """How many states lie below each root, at least, that no root follows: as many as any small space had levels
    below that of the last one, as its n-th level lies above the n-th state."""
    last = iterations[-1]
    found = np.zeros(len(last.energies), np.int64)
    for root, energy in enumerate(last.energies):
        most = max(int((each.levels[root][0] < energy - _SAME).sum()) for each in iterations)
        found[root] = most - (last.levels[root][1] < energy - _SAME).sum()
    return np.maximum(found, 0)


def _in_turn(parts: list[Matrix]) -> Matrix:
    """The first rows of all, then the second ones, as many as each has."""
    if not parts:
        return np.empty((0, 0))
    places = np.concatenate([np.arange(len(each)) for each in parts])
    found: Matrix = np.concatenate(parts)[np.argsort(places, kind="stable")]
    return found


def _bordered(known: Matrix, rows: Matrix) -> Matrix:
    """A symmetric matrix with more rows, the last ones."""
    m, size = len(known), rows.shape[1]
    found = np.zeros((size, size))
    found[:m, :m] = known
    found[m:] = rows
    found[:m, m:] = rows[:, :m].T
    own = rows[:, m:]
    found[m:, m:] = (own + own.T) / 2
    return found
