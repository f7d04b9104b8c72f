"""The eigenvalue problem in the space of a few vectors that are neither orthogonal nor normalised, and the choice
of its roots: the lowest states, or for each root the state that overlaps most with a given one. Matrices are real;
those of `of_general` need not be symmetric.

The lowest states are not always the wanted ones. In the functionals of ACPF and AQCC (Gdanitz and Ahlrichs, Chem.
Phys. Lett. 143, 413 (1988); Szalay and Bartlett, Chem. Phys. Lett. 214, 481 (1993)) all but the references count
little in the norm, so states without any reference may lie below all others. In a CI, correlation may order states
differently than the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

# A root of a CI follows the state that is most like its reference state. It takes a lower state instead that no
# other root follows, if the likeness of that one is at least this share: if two states share a reference equally,
# the lower one is meant.
LOWER = 0.5
SAME = 1e-6  # Hartree: energies that differ by less are not told apart

# Error of H times a vector, relative to its norm: many times the largest observed, as sums of observed errors are
# no bounds.
ERRORS = {"float64": 1e-14, "float32": 1e-6}
_NEAR = 3  # states that are kept beside each root; without them a shrunk space loses what it has found
_DOUBTFUL = 0.25  # part of a residual, or of the tolerance, that may be such an error

# The part of a normalised vector that is independent of others counts as 0 if its square is less.
_DEPENDENT = {"float64": 1e-11, "float32": 1e-5}


@dataclass(frozen=True)
class Ritz:
    """States, the lowest first: energies, and coefficients [state][vector] of normalised states."""

    energies: Matrix
    coefficients: Matrix


def ritz(
    overlap: Matrix, hamiltonian: Matrix, states: int, dtype: str = "float64", *, every: bool = False
) -> Ritz:
    """The `states` lowest states, or every one. The first `states` vectors are the present states, and all count.
    Of the other vectors, directions that depend linearly on the present states or on each other are left out,
    within the precision of `dtype`, in which these vectors are stored; zero vectors as well. (Else a direction
    inside the space of the states would take any share in them, and never leave.)

    Raises ValueError if there are fewer independent vectors than `states`."""
    basis = _independent(overlap, states, dtype)
    h = (hamiltonian + hamiltonian.T) / 2
    shift = _level(overlap, h)  # differences of energies count, not their size
    energies, c = np.linalg.eigh(basis.T @ (h - shift * (overlap + overlap.T) / 2) @ basis)
    count = len(energies) if every else states
    return Ritz(energies[:count] + shift, (basis @ c[:, :count]).T)


def _level(overlap: Matrix, hamiltonian: Matrix) -> float:
    """The energy of the first vector."""
    return float(hamiltonian[0, 0] / overlap[0, 0]) if overlap[0, 0] > 0 else 0.0


def _independent(overlap: Matrix, states: int, dtype: str) -> Matrix:
    """Orthonormal combinations [vector][combination]; the first `states` of them combine the first `states`
    vectors. Raises ValueError, as `ritz` does."""
    norms = np.sqrt(np.maximum(np.diagonal(overlap), 0.0))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    s = overlap * np.outer(scale, scale)
    s = (s + s.T) / 2
    present = _basis(s[:states, :states], _DEPENDENT["float64"])
    if present.shape[1] < states:
        raise ValueError(f"{present.shape[1]} independent vectors for {states} states")
    # The other vectors without their parts in the space of the states.
    projector = np.eye(len(s))
    projector[:states, states:] = -present @ present.T @ s[:states, states:]
    # These vectors are not scaled: else the rounding errors of a small one would be an independent vector.
    rest = (projector.T @ s @ projector)[states:, states:]
    basis = np.zeros((len(s), states))
    basis[:states] = present
    basis = np.hstack([basis, projector[:, states:] @ _basis(rest, _DEPENDENT[dtype])])
    found: Matrix = basis * scale[:, None]
    return found


def _basis(overlap: Matrix, least: float) -> Matrix:
    """Orthonormal combinations of vectors whose norms are one at most."""
    values, vectors = np.linalg.eigh(overlap)
    kept = values > least * max(1.0, values[-1]) if len(values) else np.zeros(0, bool)
    found: Matrix = vectors[:, kept] / np.sqrt(values[kept])
    return found


def doubtful(errors: Matrix, residuals: Matrix, tolerance: float, sizes: Matrix) -> NDArray[np.bool_]:
    """For each state whether H times the state, a sum of many products, may be too wrong for its residual. errors:
    norms of the possible errors of H times the states. sizes: norms of H times the states."""
    new = ERRORS["float64"] * sizes
    found: NDArray[np.bool_] = errors > np.maximum(_DOUBTFUL * np.maximum(residuals, tolerance), 10 * new)
    return found


@dataclass
class SmallSpace:
    """Products of some vectors v with each other.

    Attributes:
        overlap: <v|G|v> with the metric G of the functional.
        plain: <v|v>, the same object where there is no metric.
        hamiltonian: <v|H|v>.
        likeness: [state that a root follows][vector]; None: roots are the lowest states.
    """

    overlap: Matrix
    plain: Matrix
    hamiltonian: Matrix
    likeness: Matrix | None = None

    def bordered(self, rows: SmallSpace, columns: Matrix | None = None) -> SmallSpace:
        """The space with more vectors at the end. rows: products of the new vectors with all vectors. columns:
        <v|H|v> [old][new] for a matrix that is not symmetric."""
        overlap = _bordered(self.overlap, rows.overlap)
        same = rows.plain is rows.overlap
        likeness = None
        if self.likeness is not None and rows.likeness is not None:
            likeness = np.hstack([self.likeness, rows.likeness])
        return SmallSpace(
            overlap,
            overlap if same else _bordered(self.plain, rows.plain),
            _bordered(self.hamiltonian, rows.hamiltonian)
            if columns is None
            else np.block([[np.hstack([self.hamiltonian, columns])], [rows.hamiltonian]]),
            likeness,
        )

    def transformed(self, rows: Matrix) -> SmallSpace:
        """The space of other vectors, which are combinations [new][old] of these."""
        overlap = rows @ self.overlap @ rows.T
        return SmallSpace(
            overlap,
            overlap if self.plain is self.overlap else rows @ self.plain @ rows.T,
            rows @ self.hamiltonian @ rows.T,
            None if self.likeness is None else self.likeness @ rows.T,
        )


@dataclass(frozen=True)
class Roots:
    """Attributes:
    energies: Hartree. coefficients: [root][vector], normalised with the metric.
    likeness: squared overlap of each root with the state that it follows, both normalised; 0 if roots are the
        lowest states.
    levels: for each root the energies of all states of its Hamiltonian, and of the states that other roots follow
        there; empty if roots are the lowest states.
    passed: coefficients of states that no root follows, the lowest of each Hamiltonian first. `follow` takes the
        Hamiltonians in which any of them lies below a root.
    """

    energies: Matrix
    coefficients: Matrix
    likeness: Matrix
    levels: list[tuple[Matrix, Matrix]]
    passed: Matrix


def lowest(space: SmallSpace, count: int, dtype: str = "float64") -> Roots:
    """The lowest states, as `ritz` finds them."""
    found = ritz(space.overlap, space.hamiltonian, count, dtype)
    return Roots(found.energies, found.coefficients, np.zeros(count), [], np.empty((0, 0)))


def of_general(space: SmallSpace, count: int, dtype: str = "float64") -> Roots:
    """As `lowest`, for a matrix that is not symmetric: the states with the lowest real parts of energies, or those
    that are most like the states that roots follow. A complex pair gives two states, its real and its imaginary
    part; each has a residual as large as the imaginary part of the energy."""
    energies, states = _of_general(space, count, dtype)
    if space.likeness is None:
        passed = states[:, count : (1 + _NEAR) * count + 1].T
        return Roots(energies[:count], states[:, :count].T, np.zeros(count), [], passed)
    alike = (space.likeness @ states) ** 2
    chosen = choose(alike)
    others = np.setdiff1d(np.arange(len(energies)), chosen)
    apart = abs(energies[others][:, None] - energies[chosen]).min(axis=1)
    near = others[np.argsort(apart, kind="stable")][: _NEAR * count]
    return Roots(
        energies[chosen], states[:, chosen].T, alike[np.arange(count), chosen], [], states[:, near].T
    )


def above(space: SmallSpace, count: int, more: int) -> tuple[Matrix, Matrix]:
    """Energies and coefficients [state][vector] of at most `more` states, the next above the `count` lowest of
    `of_general`."""
    energies, states = _of_general(space, count, "float64")
    chosen = slice(count, count + more)
    return energies[chosen], states[:, chosen].T


def _of_general(space: SmallSpace, count: int, dtype: str) -> tuple[Matrix, Matrix]:
    """Real parts of all energies, the lowest first, and real states [vector][state]. count: number of first vectors
    that all count, as in `ritz`."""
    basis = _independent(space.overlap, count, dtype)
    values, c = np.linalg.eig(basis.T @ space.hamiltonian @ basis)
    order = np.lexsort((values.imag, values.real))
    values, c = values[order], c[:, order]
    states = np.where(values.imag < 0, c.imag, c.real)
    return values.real, basis @ (states / np.linalg.norm(states, axis=0))


def follow(space: SmallSpace, shifts: Matrix) -> Roots:
    """The root for each state that is followed, in their order. The first vectors of the space are the present
    roots. For a functional, a root is the state that is most like the root of a CI: there is one choice of CI roots
    for all roots, whose Hamiltonians differ.

    shifts: of each root (Hartree): its states are those of H - shift, and the shift is added to their energies (it
    makes a difference only with a metric).
    Raises ValueError, as `ritz` does."""
    assert space.likeness is not None
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
    """A state for each root, so that the sum of their likeness [root][state] is largest."""
    from scipy.optimize import linear_sum_assignment

    return [int(each) for each in linear_sum_assignment(-likeness)[1]]


def choose(likeness: Matrix) -> list[int]:
    """The state of each root; see LOWER. likeness: [root][state], states in order of their energies."""
    chosen = assign(likeness)
    for root, state in enumerate(chosen):
        for other in range(state):
            if other not in chosen and likeness[root, other] >= LOWER * likeness[root, state]:
                chosen[root] = other
                break
    return chosen


def passed_over(iterations: Sequence[Roots]) -> Integers:
    """The least number of states below each root that no root follows. If a small space of any iteration has n
    levels below the root, at least n states lie below it: the n-th level lies above the n-th state."""
    last = iterations[-1]
    found = np.zeros(len(last.energies), np.int64)
    for root, energy in enumerate(last.energies):
        most = max(int((each.levels[root][0] < energy - SAME).sum()) for each in iterations)
        found[root] = most - (last.levels[root][1] < energy - SAME).sum()
    return np.maximum(found, 0)


def _in_turn(parts: list[Matrix]) -> Matrix:
    """The first rows of all parts, then their second rows, and so on."""
    if not parts:
        return np.empty((0, 0))
    places = np.concatenate([np.arange(len(each)) for each in parts])
    found: Matrix = np.concatenate(parts)[np.argsort(places, kind="stable")]
    return found


def _bordered(known: Matrix, rows: Matrix) -> Matrix:
    """A symmetric matrix with more rows and columns at the end."""
    m, size = len(known), rows.shape[1]
    found = np.zeros((size, size))
    found[:m, :m] = known
    found[m:] = rows
    found[:m, m:] = rows[:, :m].T
    own = rows[:, m:]
    found[m:, m:] = (own + own.T) / 2
    return found
