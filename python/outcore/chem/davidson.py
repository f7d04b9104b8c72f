"""The Davidson search for eigenvalues (Davidson, J. Comput. Phys. 17, 87 (1975)), for any kind of vector. It needs
only products of the matrix with vectors. For a matrix that is not symmetric it finds the right eigenvectors (Hirao,
Nakatsuji, J. Comput. Phys. 45, 246 (1982)); its left ones are right ones of the transposed matrix.

A search has a small space of vectors v, with the product H v of each. In each iteration it takes the roots of the
small space, corrects them by their residuals, and adds the corrections as new vectors. When there is no room for
them, the space shrinks to the roots, the directions of their earlier corrections, and the states that were passed
over.

This module has the part that touches no vectors: the loop, convergence, which roots to follow, which vectors to
keep, how large the errors of summed products may be. Each kind of vector has its own methods for passes over
vectors, so that it makes as few passes as it can.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import NotConverged
from outcore.chem.small_space import Matrix, Roots, SmallSpace, doubtful, follow, lowest, of_general

_CLOSINGS = 4  # how often a search that stalls is renewed from its stored roots


@dataclass(frozen=True, kw_only=True)
class Limits:
    """tolerance: norm of residuals (Hartree). vectors: most vectors of the small space for each root, at least 2
    (the state and its correction); with 3 the previous direction is kept as well. passed: further vectors for each
    root, for states that are passed over. exact: vectors are stored without rounding; if not, H is applied to the
    roots once more at the end."""

    tolerance: float = 1e-6
    max_iterations: int = 100
    vectors: int = 3
    passed: int = 0
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """energies: Hartree. residuals: norms. seconds: since the previous iteration. waited_seconds: the part of
    `seconds` in which this process waited for vectors."""

    number: int
    energies: Matrix
    residuals: Matrix
    seconds: float
    waited_seconds: float


class Waiting(Protocol):
    @property
    def waited_seconds(self) -> float:
        """Seconds since this object was made in which this process waited for vectors and did not compute."""


AnyIteration = TypeVar("AnyIteration", bound=Iteration)


class Search(ABC, Generic[AnyIteration]):
    """The search for `count` roots. All methods are collective where vectors belong to several processes, and
    return the same at all of them, as products of vectors do.

    Attributes:
        space: products of the vectors of the small space, at the last `solve`.
        roots, energies, states: solutions in that space; states[root][vector] are the coefficients of the roots in
            the present vectors.
        errors: norm of the error of the stored H v, for each present vector v.
        precision: numpy's name of the type in which vectors other than the roots are stored.
        every: roots of all small spaces since products were last known to be right.
    """

    precision = "float64"

    def __init__(
        self,
        method: str,
        limits: Limits,
        count: int,
        iteration: type[AnyIteration],
        operator: Waiting | None = None,
        shifts: Matrix | None = None,
        *,
        is_symmetric: bool = True,
    ) -> None:
        """method: its name in messages. shifts: Hartree, for roots that follow given states; None: roots are the
        lowest. is_symmetric: whether H is symmetric; if not, roots are its lowest right eigenvectors."""
        self.method, self.limits, self.count = method, limits, count
        self.iterations: list[AnyIteration] = []
        self.every: list[Roots] = []
        self.errors: Matrix = np.zeros(0)
        self._kind, self._operator, self._shifts = iteration, operator, shifts
        self._is_symmetric = is_symmetric
        self._closings = 0
        self._renewed = False  # the small space consists of the roots, with recomputed products
        self.start_clock()

    # ---- passes over vectors ----

    @abstractmethod
    def correct(self) -> None:
        """Computes the residuals of the roots and their corrections, and calls `record`."""

    @abstractmethod
    def expand(self) -> None:
        """Applies H to the corrections of the `active` roots and calls `solve` with the larger space. If there is
        no room for the corrections, the vectors first become those that `shrunk` returns."""

    @abstractmethod
    def renew(self) -> None:
        """Shrinks the small space to the roots, recomputes their products with H, and calls `solve`."""

    # ---- the loop ----

    def start_clock(self) -> None:
        """Starts the clock of the first iteration."""
        self._since, self._before = time.perf_counter(), self._waited

    def iterate(self, *, corrected: bool = False) -> None:
        """Iterates until all roots have converged, or to the last iteration. The caller has solved the first small
        space. corrected: the caller has also made its corrections and recorded the first iteration.

        Raises as `solve` does, and NotConverged for residuals that are not numbers."""
        if not corrected:
            self._renewed = False  # set by an earlier search; the small space has changed since
        while True:
            if not corrected:
                self.correct()
            corrected = False
            if not self._renewed and self._wants_renewal():
                self._renewed = True
                self.renew()
            elif self.converged or self.exhausted:
                return
            else:
                self._renewed = False
                self.expand()

    def solve(self, space: SmallSpace) -> None:
        """Finds the roots in the small space `space`. Raises ValueError if it has fewer independent vectors than
        roots, NotConverged for products that are not numbers."""
        if not (np.isfinite(space.overlap).all() and np.isfinite(space.hamiltonian).all()):
            detail = f"products with H after iteration {len(self.iterations)} are no numbers"
            raise NotConverged(None, self.method, detail=detail)
        self.space = space
        if not self._is_symmetric:
            self.roots = of_general(space, self.count, self.precision)
        elif self._shifts is None:
            self.roots = lowest(space, self.count, self.precision)
        else:
            self.roots = follow(space, self._shifts)
            self.every.append(self.roots)
        self.energies, self.states = self.roots.energies, self.roots.coefficients

    def record(
        self, energies: Matrix, residuals: Matrix, *, waited_seconds: float = 0.0, **more: Any
    ) -> AnyIteration:
        """Records the next iteration. waited_seconds: in addition to those of the operator."""
        now, waited = time.perf_counter(), self._waited
        iteration = self._kind(
            number=len(self.iterations) + 1,
            energies=energies,
            residuals=residuals,
            seconds=now - self._since,
            waited_seconds=waited - self._before + waited_seconds,
            **more,
        )
        self._since, self._before = now, waited
        self.iterations.append(iteration)
        if not np.isfinite(residuals).all():
            detail = f"a residual of iteration {iteration.number} is no number"
            raise NotConverged(None, self.method, detail=detail)
        return iteration

    @property
    def _waited(self) -> float:
        return 0.0 if self._operator is None else self._operator.waited_seconds

    # ---- when it ends ----

    @property
    def trusted(self) -> bool:
        """Whether roots are stored with enough precision to be accepted as converged."""
        return True

    def small(self) -> NDArray[np.bool_]:
        """For each root whether its residual is below the tolerance."""
        found: NDArray[np.bool_] = self.iterations[-1].residuals < self.limits.tolerance
        return found

    def stalled(self) -> bool:
        """For vectors that are stored with rounding: whether only rounding errors are left in the residuals."""
        return False

    def doubtful(self) -> NDArray[np.bool_]:
        """For each root whether H times the root, summed from products of many vectors, may be too wrong for its
        residual. False for vectors that are stored with rounding: their errors are larger, and `renew` is called at
        the end."""
        if not (self.limits.exact and self.trusted):
            return np.zeros(self.count, bool)
        sizes = np.maximum(np.abs(self.energies), 1.0)
        return doubtful(self.state_errors, self.iterations[-1].residuals, self.limits.tolerance, sizes)

    @property
    def state_errors(self) -> Matrix:
        """For each root a bound of the norm of the error of H times the root."""
        found: Matrix = np.abs(self.states) @ self.errors
        return found

    def unconverged(self) -> list[int]:
        return [int(root) for root in np.flatnonzero(~self.small() | self.doubtful())]

    @property
    def converged(self) -> bool:
        return self.trusted and not self.unconverged()

    @property
    def exhausted(self) -> bool:
        return len(self.iterations) >= self.limits.max_iterations

    def why(self) -> str:
        """Why roots have not converged; "" if all have."""
        if self.converged:
            return ""
        residuals, wrong = self.iterations[-1].residuals, self.doubtful()
        left = self.unconverged() or list(range(self.count))
        text = f"after {len(self.iterations)} iterations the residual is {residuals[left].max():.1e} Eh"
        if self.count > 1:
            which = ", ".join(str(root + 1) for root in left)
            text += f" (root{'s' if len(left) > 1 else ''} {which} of {self.count})"
        if wrong.any():
            text += f", and products with H may be wrong by {self.state_errors[wrong].max():.1e} Eh"
        elif not self.trusted:
            text += f", in {self.precision} precision"
        return text

    def _wants_renewal(self) -> bool:
        """Whether H times the stored roots is to be recomputed before anything else."""
        if self.limits.exact:
            return not self.exhausted and bool(self.doubtful().any())
        if not self.converged and (self._closings >= _CLOSINGS or not self.stalled()):
            return False
        self._closings += 1
        return True

    # ---- the small space ----

    def active(self) -> list[int]:
        """Roots whose corrections become new vectors: the unconverged ones, or all if none is left, as may happen
        in single precision."""
        return self.unconverged() or list(range(self.count))

    def shrunk(self, active: Sequence[int]) -> Matrix | None:
        """The new vectors of the small space as combinations [new][old], if there is no room for the corrections of
        `active` roots; None: there is room. The new vectors are: the roots; the parts of the active roots outside
        the first vectors, which are the roots of an earlier iteration (those of converged roots depend on others,
        but for errors); states that were passed over, which would come back from corrections of the states above
        them."""
        k, m = self.count, self.states.shape[1]
        limit = self.limits.vectors * k
        if len(self.roots.passed):
            limit += self.limits.passed * k
        if m + len(active) <= limit:
            return None
        directions = list(active) if m > k and limit - k >= 2 * len(active) else []
        rest = self.states[directions]
        rest[:, :k] = 0
        room = max(limit - k - len(directions) - len(active), 0)
        rows = [self.states, rest]
        if room and len(self.roots.passed):
            rows.append(self.roots.passed[:room])
        return np.concatenate(rows)

    def transform(self, rows: Matrix) -> None:
        """The caller has replaced the vectors by these combinations; the first of them are the roots."""
        self.errors = np.abs(rows) @ self.errors
        self.states = np.eye(self.count, len(rows))
