"""The lowest states of a CI, by a search in a small space of vectors that is corrected iteration by iteration.

The space holds the states x, directions in which they were corrected before, and the newest corrections t. With one
earlier direction for each state it converges as Davidson's method with many vectors does; more of them are kept
where there is room. States and their products with H are written in each iteration, so that a run can go on from
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from outcore.base.errors import NotConverged
from outcore.chem.ci import passes
from outcore.chem.ci.passes import Place
from outcore.chem.ci.small import ERRORS, Matrix, doubtful, ritz

if TYPE_CHECKING:
    from outcore.chem.ci.tiles import Tile, Tiling
    from outcore.chem.ci.vector import Array, Vectors
    from outcore.job.world import World

SMALLEST = 0.02  # Hartree: denominators of corrections are not nearer to zero
SWITCH = 1e-4  # norm of residuals below which double precision is worth its price
_STALLED = 3  # iterations in single precision without a smaller residual


class Operator(Protocol):
    """The Hamiltonian, without its core energy."""

    def apply(self, x: Place, y: Place) -> None:
        """Adds H x to y, which is zero. Collective."""

    @property
    def waited_seconds(self) -> float:
        """Of this process since it was made, while it did not compute because vectors were moved."""

    def diagonal(self, tile: Tile) -> Array:
        """Its diagonal elements (double precision), as an array of the tile's shape; any thread."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """tolerance: norm of residuals (Hartree). vectors: of the small space, for each state, at least 2: the state
    and its correction; 3 keep the previous direction as well. precision: "double", or "mixed": single precision
    until residuals are below `SWITCH`, then states in double precision, corrections in single."""

    tolerance: float = 1e-6
    max_iterations: int = 100
    vectors: int = 3
    precision: str = "double"
    threads: int = 1


@dataclass(frozen=True)
class Iteration:
    """energies: Hartree, without the core. residuals: norms, from H times the states as they are stored, which may
    be wrong by vectors of norms `errors`. above: sum (d - E) x^2 of each state. seconds: since the iteration
    before. waited_seconds: among them those in which this process waited for vectors."""

    number: int
    energies: Matrix
    residuals: Matrix
    errors: Matrix
    above: Matrix
    precision: str
    seconds: float
    waited_seconds: float

    def lowered(self, by: float) -> Iteration:
        """The same with lower energies: of a Hamiltonian without a shift."""
        return replace(self, energies=self.energies - by)


@dataclass
class Found:
    """The states that a search has found; the first k of `states` are they, H times each follows."""

    states: Vectors
    iterations: list[Iteration]
    converged: bool

    @property
    def last(self) -> Iteration:
        return self.iterations[-1]


MakeVectors = Callable[[str, int], "Vectors"]  # of a type, so many, zero


@dataclass
class _Pair:
    """A vector of the small space beside the states, and H times it, which may be wrong by a vector of norm
    `error`."""

    vector: Vectors
    multiplied: Vectors
    error: float = 0.0


class Search:
    """Makes states of an operator. `make` makes vectors of the small space, `make_states` states: of a type, so
    many, zero. `on_iteration` is called with each iteration and its states, k of them and H times each."""

    def __init__(
        self,
        world: World,
        tiling: Tiling,
        operator: Operator,
        options: Options,
        make: MakeVectors,
        make_states: MakeVectors,
        on_iteration: Callable[[Iteration, Vectors], None] | None = None,
    ) -> None:
        self.world, self.tiling, self.operator, self.options = world, tiling, operator, options
        self._make, self._make_states, self._on_iteration = make, make_states, on_iteration
        self._work: list[_Pair] = []
        self._loose: list[Vectors] = []  # corrections that H was not applied to yet
        self._iterations: list[Iteration] = []
        self._stalled, self._best = 0, np.inf

    def run(self, states: Vectors, *, multiplied: bool = False) -> Found:
        """From k start vectors, linearly independent, in the first half of `states`; `multiplied`: H times them is
        in the second half, which is zero else. `states` is the search's from now on: it is closed, or among what
        was found. Collective."""
        self._since, self._waited = time.perf_counter(), self.operator.waited_seconds
        try:
            if states.dtype != np.float64 and self._type == "float64":  # kept by a run of mixed precision
                states = self._in_double(states)
            elif not multiplied:
                self._multiply(states)
            self._begin(states)
            found = self._pass()
            while not self._finished():
                if self._is_doubtful():
                    self._renew()
                else:
                    if self._wants_double():
                        found = self._switched(found)
                    self._expand(found)
                found = self._pass()
        except Exception:  # not of Ctrl-C, which this process alone may have got
            self._drop(0)
            raise
        self._drop(0)
        return Found(self._states, self._iterations, self._converged())

    # ---- one iteration ----

    def _begin(self, states: Vectors) -> None:
        """States of the space of the start vectors."""
        self._drop(0)
        self._states = states
        x, hx = self._halves(states)
        products = passes.dots(self.world, x, [*x, *hx], self.options.threads)
        solved = ritz(products[:, : len(x)], products[:, len(x) :], len(x), states.dtype.name)
        self._to_states, self._energies = solved.coefficients, solved.energies
        self._to_vectors: Matrix | None = None
        self._active = list(range(len(x)))
        self._stalled, self._best = 0, np.inf
        self._errors = ERRORS[states.dtype.name] * abs(self._energies)

    def _pass(self) -> passes.Corrected:
        """New states, their residuals and corrections. Vectors that became part of a direction are gone, their
        memory is that of corrections."""
        x, hx = self._halves(self._states)
        k, kept = len(x), len(self._work) if self._to_vectors is None else len(self._to_vectors)
        gone = self._work[kept:]
        self._loose = [each.vector for each in gone[: len(self._active)]]
        while len(self._loose) < len(self._active):
            self._loose.append(self._make(self._type, 1))
        found = passes.correct(
            self.world,
            x,
            hx,
            [Place(each.vector, 0) for each in self._work],
            [Place(each.multiplied, 0) for each in self._work],
            [Place(each, 0) for each in self._loose],
            self.operator.diagonal,
            to_states=self._to_states,
            to_vectors=self._to_vectors,
            energies=self._energies,
            active=self._active,
            smallest=SMALLEST,
            threads=self.options.threads,
        )
        self._follow_errors(kept)
        for each in gone:
            each.multiplied.close()
        for each in gone[len(self._active) :]:
            each.vector.close()
        del self._work[kept:]
        norms, now = np.diagonal(found.overlap)[:k], time.perf_counter()
        iteration = Iteration(
            len(self._iterations) + 1,
            np.diagonal(found.hamiltonian)[:k] / norms,
            found.residuals / np.sqrt(norms),
            self._errors,
            found.above / norms,
            self._states.dtype.name,
            now - self._since,
            self.operator.waited_seconds - self._waited + found.waited_seconds,
        )
        self._since, self._waited = now, self.operator.waited_seconds
        self._iterations.append(iteration)
        if not np.isfinite(iteration.residuals).all():
            detail = f"iteration {iteration.number} gave what is no number"
            raise NotConverged(None, "full CI", detail=detail)
        if self._on_iteration is not None:
            self._on_iteration(iteration, self._states)
        worst = float(iteration.residuals.max())
        self._stalled, self._best = (0, worst) if worst < self._best else (self._stalled + 1, self._best)
        return found

    def _expand(self, found: passes.Corrected) -> None:
        """Applies H to the corrections, and solves the small problem."""
        k, kept = len(self._states_places), len(self._work)
        residuals = self._iterations[-1].residuals
        while self._loose:
            self._work.append(_Pair(self._loose.pop(0), self._make(self._type, 1)))
            pair = self._work[-1]
            self.operator.apply(Place(pair.vector, 0), Place(pair.multiplied, 0))
        overlap, hamiltonian = self._complete(found, self._work[kept:], k, k + kept)
        for i, pair in enumerate(self._work[kept:], k + kept):
            pair.error = ERRORS[self._type] * abs(hamiltonian[i, i]) / np.sqrt(overlap[i, i] or 1.0)
        solved = ritz(overlap, hamiltonian, k, self._type)
        self._energies, self._to_states = solved.energies, solved.coefficients
        unconverged = [i for i in range(k) if residuals[i] >= self._accuracy]
        self._active = unconverged or list(range(k))  # none: so it is said in single precision
        room = (self.options.vectors - 1) * k
        self._to_vectors = None
        if len(self._work) + len(self._active) > room:
            directions = self._active if room >= 2 * len(self._active) else []
            self._to_vectors = np.ascontiguousarray(solved.coefficients[directions, k:])

    def _follow_errors(self, kept: int) -> None:
        """What H times the new states, and the vectors that are kept, may be wrong by."""
        errors = np.array([*self._errors, *(each.error for each in self._work)])
        self._errors = abs(self._to_states) @ errors[: self._to_states.shape[1]]
        if self._to_vectors is not None:
            of_kept = abs(self._to_vectors) @ errors[len(self._errors) :]
            for pair, error in zip(self._work[:kept], of_kept, strict=True):
                pair.error = float(error)

    # ---- when it ends ----

    def _finished(self) -> bool:
        return self._converged() or len(self._iterations) >= self.options.max_iterations

    def _converged(self) -> bool:
        last = self._iterations[-1]
        small = bool((last.residuals < self.options.tolerance).all())
        return last.precision == "float64" and small and not self._is_doubtful()

    def _is_doubtful(self) -> bool:
        """Whether H times a state, that sums of many vectors have made, may be too wrong for its residual."""
        if self._states.dtype != np.float64:
            return False
        residuals, sizes = self._iterations[-1].residuals, abs(self._energies)
        return bool(doubtful(self._errors, residuals, self.options.tolerance, sizes).any())

    def _wants_double(self) -> bool:
        if self._states.dtype == np.float64:
            return False
        worst = float(self._iterations[-1].residuals.max())
        return worst < self._accuracy or self._stalled >= _STALLED

    @property
    def _accuracy(self) -> float:
        """Norm of the residual of states that need no correction in this precision: it would be noise."""
        tolerance = self.options.tolerance
        return tolerance if self._states.dtype == np.float64 else max(SWITCH, tolerance)

    # ---- vectors ----

    @property
    def _type(self) -> str:
        """Of vectors beside the states."""
        return "float32" if self.options.precision == "mixed" else "float64"

    @property
    def _states_places(self) -> list[Place]:
        return self._halves(self._states)[0]

    def _halves(self, states: Vectors) -> tuple[list[Place], list[Place]]:
        k = states.count // 2
        return [Place(states, i) for i in range(k)], [Place(states, k + i) for i in range(k)]

    def _multiply(self, states: Vectors) -> None:
        for x, hx in zip(*self._halves(states), strict=True):
            self.operator.apply(x, hx)

    def _in_double(self, states: Vectors) -> Vectors:
        """The same states in double precision, and H times them."""
        double = self._make_states("float64", states.count)
        passes.copy(self.world, self._halves(states)[0], self._halves(double)[0], self.options.threads)
        states.close()
        self._multiply(double)
        return double

    def _renew(self) -> None:
        """H times the states anew, without the vectors that it had become wrong with."""
        for place in self._halves(self._states)[1]:
            self._states.clear(place.index)
        self._multiply(self._states)
        self._begin(self._states)

    def _switched(self, found: passes.Corrected) -> passes.Corrected:
        """States in double precision from now on. The other vectors stay: what was found of all of them holds, but
        for H times the states."""
        k = len(self._states_places)
        # While states are there in both precisions there is room for so many others.
        gone = max(len(self._work) - (self.options.vectors - 2) * k, 0)
        for pair in self._work[:gone]:
            pair.vector.close()
            pair.multiplied.close()
        del self._work[:gone]
        left = np.delete(np.arange(len(found.overlap)), slice(k, k + gone))
        overlap = found.overlap[np.ix_(left, left)]
        hamiltonian = np.delete(found.hamiltonian[left], slice(k, k + gone), axis=1)
        self._states = self._in_double(self._states)
        self._errors = ERRORS["float64"] * abs(self._energies)
        self._stalled, self._best = 0, np.inf
        x, hx = self._halves(self._states)
        others = [Place(each.vector, 0) for each in self._work] + [Place(each, 0) for each in self._loose]
        hamiltonian[:k, :k] = passes.dots(self.world, x, hx, self.options.threads)
        hamiltonian[k:, :k] = passes.dots(self.world, others, hx, self.options.threads)
        return replace(found, overlap=overlap, hamiltonian=hamiltonian)

    def _drop(self, kept: int) -> None:
        """All vectors beside the states but the first `kept`."""
        while self._loose:
            self._loose.pop().close()
        while len(self._work) > kept:
            pair = self._work.pop()
            pair.vector.close()
            pair.multiplied.close()

    def _complete(
        self, found: passes.Corrected, corrections: list[_Pair], k: int, known: int
    ) -> tuple[Matrix, Matrix]:
        """Overlaps and H of all vectors: those of corrections with one another were not known in the pass."""
        overlap, size = found.overlap, len(found.overlap)
        hamiltonian = np.zeros((size, size))
        hamiltonian[:, :known] = found.hamiltonian
        own = found.hamiltonian[k:known, k:]
        hamiltonian[k:known, k:known] = (own + own.T) / 2
        # H times the states is known best: it may be of higher precision than H times the others.
        hamiltonian[:k, k:] = hamiltonian[k:, :k].T
        hamiltonian[:k, :k] = (found.hamiltonian[:k, :k] + found.hamiltonian[:k, :k].T) / 2
        hamiltonian[k:known, known:] = hamiltonian[known:, k:known].T
        if corrections:
            t = [Place(each.vector, 0) for each in corrections]
            ht = [Place(each.multiplied, 0) for each in corrections]
            own = passes.dots(self.world, t, ht, self.options.threads)
            hamiltonian[known:, known:] = (own + own.T) / 2
        return overlap, hamiltonian
