"""The search for eigenvalues of matrices that are known by their products with vectors alone (Davidson, J. Comput.
Phys. 17, 87 (1975)), for any kind of vector. Of matrices that are not symmetric it finds right vectors (Hirao,
Nakatsuji, J. Comput. Phys. 45, 246 (1982)), and left ones as those of the transposed matrix.

A search has a small space of vectors v, with H v of each. Again and again it takes the roots of the small space,
corrects them by their residuals, and adds the corrections as new vectors. When there is no room for them the space
shrinks to the roots, the directions in which these were corrected before, and what was passed over.

Here is what has no vectors: the loop, convergence, which roots to follow, what to keep, how wrong sums of products
may have become. What goes over vectors is a method of the kind of vector, so that each kind makes as few passes as
it can.
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

_CLOSINGS = 4  # times that a search which stalls is begun anew from what is stored


@dataclass(frozen=True, kw_only=True)
class Limits:
    """tolerance: norm of residuals (Hartree). vectors: of the small space, for each root, at least 2: the state and
    its correction; 3 keep the previous direction as well. passed: more of them, for each, for states that are
    passed over. exact: vectors are stored as they are; if not, H is applied to the roots once more at the end."""

    tolerance: float = 1e-6
    max_iterations: int = 100
    vectors: int = 3
    passed: int = 0
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """energies: Hartree. residuals: norms. seconds: since the iteration before. waited_seconds: among them those in
    which this process waited for vectors."""

    number: int
    energies: Matrix
    residuals: Matrix
    seconds: float
    waited_seconds: float


class Waiting(Protocol):
    @property
    def waited_seconds(self) -> float:
        """Of this process since it was made, while it did not compute because vectors were moved."""


AnyIteration = TypeVar("AnyIteration", bound=Iteration)


class Search(ABC, Generic[AnyIteration]):
    """Of `count` roots. All methods are collective where vectors belong to several processes, and give the same at
    all of them, as products of vectors do.

    Attributes:
        space: products of the vectors of the small space, as of the last `solve`.
        roots, energies, states: of that; states[root][vector] are the coefficients of the roots in the vectors that
            there are now.
        errors: norms, of what is stored of H v for each v that there is now.
        precision: numpy's name of the type in which vectors beside the roots are stored.
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
        """method: for messages. shifts: Hartree, of roots that follow given states; None: roots are the lowest.
        is_symmetric: H is; if not, roots are its lowest right vectors."""
        self.method, self.limits, self.count = method, limits, count
        self.iterations: list[AnyIteration] = []
        self.every: list[Roots] = []
        self.errors: Matrix = np.zeros(0)
        self._kind, self._operator, self._shifts = iteration, operator, shifts
        self._is_symmetric = is_symmetric
        self._closings = 0
        self._renewed = False  # the small space is that of roots whose products were made anew
        self.start_clock()

    # ---- what goes over vectors ----

    @abstractmethod
    def correct(self) -> None:
        """The residuals of the roots and their corrections; `record` is called."""

    @abstractmethod
    def expand(self) -> None:
        """H of the corrections of `active` roots, room for which is made by what `shrunk` says, and `solve` of the
        larger space."""

    @abstractmethod
    def renew(self) -> None:
        """The small space becomes that of the roots, whose products are made anew, and `solve`."""

    # ---- the loop ----

    def start_clock(self) -> None:
        """The first iteration begins."""
        self._since, self._before = time.perf_counter(), self._waited

    def iterate(self, *, corrected: bool = False) -> None:
        """Until all roots have converged, or to the last iteration. The first small space has been solved, and the
        first iteration recorded with its corrections, if they are `corrected`.

        Raises as `solve` does, and NotConverged for residuals that are no numbers."""
        if not corrected:
            self._renewed = False  # by a search before, whose small space has changed since
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
        """Raises ValueError if there are not as many independent vectors as roots, NotConverged for products that
        are no numbers."""
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
        """The next iteration. waited_seconds: beside those of the operator."""
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
            detail = f"iteration {iteration.number} gave what is no number"
            raise NotConverged(None, self.method, detail=detail)
        return iteration

    @property
    def _waited(self) -> float:
        return 0.0 if self._operator is None else self._operator.waited_seconds

    # ---- when it ends ----

    @property
    def trusted(self) -> bool:
        """Whether roots are stored in the precision in which they may converge."""
        return True

    def small(self) -> NDArray[np.bool_]:
        """Of which roots the residuals need no correction."""
        found: NDArray[np.bool_] = self.iterations[-1].residuals < self.limits.tolerance
        return found

    def stalled(self) -> bool:
        """Of vectors that are not stored as they are: errors of that are what is left of residuals."""
        return False

    def doubtful(self) -> NDArray[np.bool_]:
        """Of which roots H times them, that sums of many vectors have made, may be too wrong for their residuals.
        Only of vectors that are stored as they are: others are wrong by more, and `renew` is called at the end."""
        if not (self.limits.exact and self.trusted):
            return np.zeros(self.count, bool)
        sizes = np.maximum(np.abs(self.energies), 1.0)
        return doubtful(self.state_errors, self.iterations[-1].residuals, self.limits.tolerance, sizes)

    @property
    def state_errors(self) -> Matrix:
        """Norms, of H times each root."""
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
        """Whether H of the roots is made anew before anything else, with what is stored of them."""
        if self.limits.exact:
            return not self.exhausted and bool(self.doubtful().any())
        if not self.converged and (self._closings >= _CLOSINGS or not self.stalled()):
            return False
        self._closings += 1
        return True

    # ---- the small space ----

    def active(self) -> list[int]:
        """Roots whose corrections are worth their products: all if none is left, as single precision may say."""
        return self.unconverged() or list(range(self.count))

    def shrunk(self, active: Sequence[int]) -> Matrix | None:
        """[new][old]: vectors that the small space becomes where there is no room for corrections of `active`
        roots: the roots; what active ones have beside the first vectors, which are roots of an earlier iteration
        (directions of roots that have converged depend on others, but for errors); states that were passed over,
        which would come back from corrections of those above them. None: there is room."""
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
        """The vectors have become these, the first of them the roots."""
        self.errors = np.abs(rows) @ self.errors
        self.states = np.eye(self.count, len(rows))
