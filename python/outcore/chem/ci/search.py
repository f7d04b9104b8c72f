"""The lowest states of a CI: `chem.davidson` over vectors in tiles.

The first vectors of the small space are the states x themselves. Each iteration makes them again, with H x, so that
another run can continue from them. One pass also makes their residuals, the newest corrections t, and all scalar
products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outcore.chem import davidson
from outcore.chem.ci import passes
from outcore.chem.ci.finished import ProductName
from outcore.chem.ci.passes import Place
from outcore.chem.small_space import ERRORS, SmallSpace

if TYPE_CHECKING:
    from outcore.chem.ci.tiles import VectorTile, VectorTiling
    from outcore.chem.ci.vector import Array, Vectors
    from outcore.chem.small_space import Matrix
    from outcore.job.world import World

SMALLEST = 0.02  # Hartree: least size of denominators of corrections
SWITCH = 1e-4  # norm of residuals below which double precision is worth its cost
_STALLED = 3  # iterations in single precision without a smaller residual, after which the search switches


class Operator(davidson.Waiting, Protocol):
    """The Hamiltonian, without its core energy."""

    def apply(self, x: Place, y: Place, product: ProductName) -> None:
        """Adds H x to y, which must be zero. Collective. Neither may change until the next call of
        `on_iteration`."""

    def diagonal(self, tile: VectorTile) -> Array:
        """The diagonal elements of a tile (double precision), in an array of its shape. Any thread may call it."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions(davidson.Limits):
    """precision: "double", or "mixed": single precision until residuals are below `SWITCH`, then states in double
    precision, corrections in single. error_bound: Hartree; vectors on disk are rounded so that energies keep it,
    see rounding.py; 0: they are not rounded."""

    precision: str = "double"
    threads: int = 1
    error_bound: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Iteration(davidson.Iteration):
    """energies: without the core. residuals: from the stored H times the states. errors: norms of the possible
    errors of these products. above: sum (d - E) x^2 of each state. ritz: energies of the small space, which
    corrections use.
    as_found: states are those that another run has kept, bit by bit. kept: further data, for JSON, that another run
    needs to continue; None: it needs none."""

    errors: Matrix
    above: Matrix
    precision: str
    ritz: Matrix
    as_found: bool
    kept: dict[str, Any] | None = None

    @property
    def energy_errors(self) -> Matrix:
        """Possible errors of the energies, by errors of H times the states."""
        return self.errors

    def lowered(self, by: float) -> Iteration:
        """The same iteration with energies lowered by a shift of the Hamiltonian."""
        return replace(self, energies=self.energies - by)


@dataclass
class FoundVectors:
    """The result of a search. states: the k states, then H times each of them. why: the reason if they have not
    converged."""

    states: Vectors
    iterations: list[Iteration]
    converged: bool
    why: str

    @property
    def last(self) -> Iteration:
        return self.iterations[-1]


MakeVectors = Callable[[str, int], "Vectors"]  # makes zero vectors of a type, so many


@dataclass
class _Pair:
    """A vector of the small space other than the states, and H times it."""

    vector: Vectors
    multiplied: Vectors

    def close(self) -> None:
        self.vector.close()
        self.multiplied.close()


class Search(davidson.Search[Iteration]):
    """Finds states of an operator from k linearly independent start vectors in the first half of `states`. The
    search owns `states` from now on: it closes them, or returns them with the result. `make` makes vectors of the
    small space, `make_states` makes states: both make zero vectors of a type, so many. `on_iteration` is called
    with each iteration and its states: the k states, then H times each."""

    def __init__(
        self,
        world: World,
        tiling: VectorTiling,
        operator: Operator,
        options: SearchOptions,
        states: Vectors,
        make: MakeVectors,
        make_states: MakeVectors,
        on_iteration: Callable[[Iteration, Vectors], None] | None = None,
    ) -> None:
        super().__init__("full CI", options, states.count // 2, Iteration, operator)
        self.world, self.tiling, self.operator, self.options = world, tiling, operator, options
        self.precision = "float32" if options.precision == "mixed" else "float64"
        self._make, self._make_states, self._on_iteration = make, make_states, on_iteration
        self._states = states
        self._work: list[_Pair] = []
        self._loose: list[Vectors] = []  # corrections to which H has not been applied yet

    def run(self, ritz: Matrix | None = None) -> FoundVectors:
        """Runs the search. ritz: `Iteration.ritz` of states that another run has kept, if the search starts from
        them: then the second half of `states` has H times each, and corrections are the same as in that run. None:
        the second half of `states` is zero. Collective."""
        self.start_clock()
        try:
            kept_by_mixed = self._states.dtype != np.float64 and self.precision == "float64"
            if kept_by_mixed:
                self._states = self._in_double(self._states)
                ritz = None
            elif ritz is None:
                self._multiply(self._states)
            self._begin(ritz)
            self.iterate()
        except Exception:  # not for Ctrl-C: it may have reached this process alone
            self._drop()
            raise
        self._drop()
        return FoundVectors(self._states, self.iterations, self.converged, self.why())

    # ---- passes ----

    def _begin(self, ritz: Matrix | None = None) -> None:
        """Solves in the space of the start vectors. ritz: the start vectors are states with these energies."""
        self._drop()
        x, hx = self._halves(self._states)
        products = passes.dots(self.world, x, [*x, *hx], self.options.threads)
        overlap, hamiltonian = products[:, : len(x)], products[:, len(x) :]
        self.solve(SmallSpace(overlap, overlap, hamiltonian))
        self._as_found = ritz is not None
        if ritz is not None:
            self.energies, self.states = ritz, np.eye(self.count)
        self.errors = ERRORS[self._states.dtype.name] * abs(self.energies)
        self._corrected = list(range(self.count))
        self._rows: Matrix | None = None  # combinations that the next pass makes: see `shrunk`
        self._stalled, self._best = 0, np.inf

    def correct(self) -> None:
        """Makes new states, their residuals and corrections. Corrections reuse the memory of vectors that have
        become part of a direction."""
        x, hx = self._halves(self._states)
        k, old = self.count, len(self._work)
        to_vectors = None if self._rows is None else np.ascontiguousarray(self._rows[k:, k:])
        kept = old if to_vectors is None else len(to_vectors)
        gone = self._work[kept:]
        self._loose = [each.vector for each in gone[: len(self._corrected)]]
        while len(self._loose) < len(self._corrected):
            self._loose.append(self._make(self.precision, 1))
        self._found = found = passes.correct(
            self.world,
            x,
            hx,
            [Place(each.vector, 0) for each in self._work],
            [Place(each.multiplied, 0) for each in self._work],
            [Place(each, 0) for each in self._loose],
            self.operator.diagonal,
            to_states=self.states,
            to_vectors=to_vectors,
            energies=self.energies,
            active=self._corrected,
            smallest=SMALLEST,
            threads=self.options.threads,
        )
        if self._rows is None:
            self.transform(np.vstack([self.states, np.eye(k + old)[k:]]))
        else:
            self.transform(self._rows)
        for each in gone:
            each.multiplied.close()
        for each in gone[len(self._corrected) :]:
            each.vector.close()
        del self._work[kept:]
        norms = np.diagonal(found.overlap)[:k]
        iteration = self.record(
            np.diagonal(found.hamiltonian)[:k] / norms,
            found.residuals / np.sqrt(norms),
            waited_seconds=found.waited_seconds,
            errors=self.state_errors,
            above=found.above / norms,
            precision=self._states.dtype.name,
            ritz=self.energies,
            as_found=self._as_found,
        )
        self._as_found = False
        if self._on_iteration is not None:
            self._on_iteration(iteration, self._states)
        worst = float(iteration.residuals.max())
        self._stalled, self._best = (0, worst) if worst < self._best else (self._stalled + 1, self._best)

    def expand(self) -> None:
        """Applies H to the corrections, and solves the small problem."""
        if self._wants_double():
            self._switch()
        k, kept = self.count, len(self._work)
        active = self.active()
        for root in self._corrected:
            pair = _Pair(self._loose.pop(0), self._make(self.precision, 1))
            self._work.append(pair)
            product = ProductName("correction", root)
            self.operator.apply(Place(pair.vector, 0), Place(pair.multiplied, 0), product)
        overlap, hamiltonian = self._complete(self._work[kept:], k, k + kept)
        norms = np.sqrt(np.diagonal(overlap)[k + kept :])
        sizes = abs(np.diagonal(hamiltonian)[k + kept :]) / np.where(norms > 0, norms, 1.0)
        self.errors = np.append(self.errors, ERRORS[self.precision] * sizes)
        self.solve(SmallSpace(overlap, overlap, hamiltonian))
        self._corrected, self._rows = active, self.shrunk(active)

    def renew(self) -> None:
        """Recomputes H times the states, and drops the vectors whose products had become inaccurate."""
        for place in self._halves(self._states)[1]:
            self._states.clear(place.index)
        self._multiply(self._states)
        self._begin()

    # ---- precision ----

    @property
    def trusted(self) -> bool:
        return self._states.dtype == np.float64

    def small(self) -> NDArray[np.bool_]:
        """As in the base class; in single precision residuals below SWITCH are small: more corrections would be
        noise."""
        accuracy = self.limits.tolerance if self.trusted else max(SWITCH, self.limits.tolerance)
        found: NDArray[np.bool_] = self.iterations[-1].residuals < accuracy
        return found

    def _wants_double(self) -> bool:
        return not self.trusted and (bool(self.small().all()) or self._stalled >= _STALLED)

    def _switch(self) -> None:
        """Converts the states to double precision. The other vectors stay, and so do all scalar products, except
        those of H times the states."""
        k, found = self.count, self._found
        # While states exist in both precisions, there is room for fewer other vectors.
        gone = max(len(self._work) - (self.options.vectors - 2) * k, 0)
        for pair in self._work[:gone]:
            pair.close()
        del self._work[:gone]
        left = np.delete(np.arange(len(found.overlap)), slice(k, k + gone))
        overlap = found.overlap[np.ix_(left, left)]
        hamiltonian = np.delete(found.hamiltonian[left], slice(k, k + gone), axis=1)
        self._states = self._in_double(self._states)
        self.errors = np.append(ERRORS["float64"] * abs(self.energies), self.errors[k + gone :])
        self.states = np.eye(k, len(self.errors))
        self._stalled, self._best = 0, np.inf
        x, hx = self._halves(self._states)
        others = [Place(each.vector, 0) for each in self._work] + [Place(each, 0) for each in self._loose]
        hamiltonian[:k, :k] = passes.dots(self.world, x, hx, self.options.threads)
        hamiltonian[k:, :k] = passes.dots(self.world, others, hx, self.options.threads)
        self._found = replace(found, overlap=overlap, hamiltonian=hamiltonian)

    # ---- vectors ----

    def _halves(self, states: Vectors) -> tuple[list[Place], list[Place]]:
        k = self.count
        return [Place(states, i) for i in range(k)], [Place(states, k + i) for i in range(k)]

    def _multiply(self, states: Vectors) -> None:
        for root, (x, hx) in enumerate(zip(*self._halves(states), strict=True)):
            self.operator.apply(x, hx, ProductName("state", root))

    def _in_double(self, states: Vectors) -> Vectors:
        """The same states in double precision, and H times them."""
        double = self._make_states("float64", states.count)
        passes.copy(self.world, self._halves(states)[0], self._halves(double)[0], self.options.threads)
        states.close()
        self._multiply(double)
        return double

    def _drop(self) -> None:
        """Closes all vectors other than the states."""
        while self._loose:
            self._loose.pop().close()
        while self._work:
            self._work.pop().close()

    def _complete(self, corrections: list[_Pair], k: int, known: int) -> tuple[Matrix, Matrix]:
        """Overlaps and H of all vectors. Computes the elements of H between corrections, which the pass could
        not."""
        found = self._found
        overlap, size = found.overlap, len(found.overlap)
        hamiltonian = np.zeros((size, size))
        hamiltonian[:, :known] = found.hamiltonian
        own = found.hamiltonian[k:known, k:]
        hamiltonian[k:known, k:known] = (own + own.T) / 2
        # H times the states is the most accurate: it may have a higher precision than H times the others.
        hamiltonian[:k, k:] = hamiltonian[k:, :k].T
        hamiltonian[:k, :k] = (found.hamiltonian[:k, :k] + found.hamiltonian[:k, :k].T) / 2
        hamiltonian[k:known, known:] = hamiltonian[known:, k:known].T
        if corrections:
            t = [Place(each.vector, 0) for each in corrections]
            ht = [Place(each.multiplied, 0) for each in corrections]
            own = passes.dots(self.world, t, ht, self.options.threads)
            hamiltonian[known:, known:] = (own + own.T) / 2
        return overlap, hamiltonian
