"""The lowest states of a CI from vectors on disk that are rounded, so that they pack: `chem.davidson` over packed
vectors.

Vectors of the small space do not change until it is full. For each vector x the search stores (H - level) x, which
is small for a nearly converged state. At the end H is applied to the stored roots: see rounding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.chem import davidson
from outcore.chem.ci import passes, rounding
from outcore.chem.ci.finished import ProductName
from outcore.chem.ci.passes import Place
from outcore.chem.ci.rounding import RoundingSteps
from outcore.chem.ci.search import SMALLEST, FoundVectors, Iteration, MakeVectors, Operator, SearchOptions
from outcore.chem.small_space import ERRORS, SmallSpace

if TYPE_CHECKING:
    from outcore.chem.ci.tiles import VectorTile, VectorTiling
    from outcore.chem.ci.vector import Array, Vectors
    from outcore.chem.small_space import Matrix
    from outcore.job.world import World

_DOUBTFUL = 0.5  # part of a residual, or of the tolerance, that may be a rounding error
_FIRST_SIZE = 0.3  # about the norm of the first corrections
_DECLINE = 2  # corrections of the next iteration are about so many times smaller


class PackedIteration(Iteration):
    """errors: norms of the errors of the residuals by rounding of products."""

    @property
    def energy_errors(self) -> Matrix:
        """Zero: states whose products were recomputed have no error, that of others is of second order in rounding
        errors."""
        return np.zeros(len(self.energies))


@dataclass
class _Pass:
    """Results of a pass. sizes: norms of the corrections."""

    residuals: Matrix
    above: Matrix
    sizes: Matrix
    waited_seconds: float


class PackedSearch(davidson.Search[Iteration]):
    """Finds states of an operator from k linearly independent start vectors, which are the first vectors of
    `basis`. The search owns `basis` from now on: it closes it, or returns it with the result. Its first half is
    for vectors, its second half for their stored products. `make(type, count)` makes zero vectors to which
    products are added. The rest is as in `Search`, except that `on_iteration` gets the small space in place of
    states."""

    def __init__(
        self,
        world: World,
        tiling: VectorTiling,
        operator: Operator,
        options: SearchOptions,
        basis: Vectors,
        roots: int,
        make: MakeVectors,
        on_iteration: Callable[[Iteration, Vectors], None] | None = None,
    ) -> None:
        super().__init__("full CI", replace(options, exact=False), roots, PackedIteration, operator)
        self.world, self.tiling, self.operator, self.options = world, tiling, operator, options
        self._basis, self._make, self._on_iteration = basis, make, on_iteration
        self._size = roots  # vectors of the small space; new vectors lie behind it
        self._level = 0.0  # Hartree
        self._wrong: Matrix = np.zeros((0, 0))  # scalar products of the errors of stored products
        self._products: list[Vectors] = []  # the products before rounding
        self._corrected = list(range(roots))
        self._rows: Matrix | None = None  # combinations that the next pass makes: see `shrunk`
        self._sizes = np.full(roots, _FIRST_SIZE)

    def run(self, kept: dict[str, Any] | None = None, *, anew: bool = False) -> FoundVectors:
        """Runs the search. `kept`: `Iteration.kept` of another run, from which this one continues. `anew`: it
        continues only with the states of that run, and recomputes H times them. Collective."""
        self.start_clock()
        try:
            self._steps = self._chosen_steps()
            if kept is None:
                self._begin()
            else:
                self._take(kept)
                if anew:
                    self.renew()
                else:
                    self._record(np.array(kept["residuals"]), np.array(kept["above"]), as_found=True)
            self.iterate(corrected=kept is not None and not anew)
            found = FoundVectors(self._basis, self.iterations, self.converged, self.why())
            self._drop()
            self._pass(self.states, [], last=True)
        except Exception:  # not for Ctrl-C: it may have reached this process alone
            self._drop()
            raise
        return found

    # ---- passes ----

    def _begin(self) -> None:
        """Applies H to the states, which become the small space."""
        self._size, self._wrong = 0, np.zeros((0, 0))
        self.space = SmallSpace(*[np.zeros((0, 0))] * 3)
        self._multiply("state", list(range(self.count)))
        self._corrected, self._rows = list(range(self.count)), None

    def correct(self) -> None:
        """Computes residuals of the states and their corrections. If the small space is full it shrinks first."""
        found = self._pass(self._rows, self._corrected)
        self._sizes[self._corrected] = np.maximum(found.sizes / _DECLINE, self.limits.tolerance / 1000)
        self._record(found.residuals, found.above, found.waited_seconds)
        self._drop()  # their rounded products are stored now

    def _record(
        self, residuals: Matrix, above: Matrix, waited_seconds: float = 0.0, *, as_found: bool = False
    ) -> None:
        kept = {
            "level": self._level,
            "wrong": self._wrong.tolist(),
            "overlap": self.space.overlap.tolist(),
            "hamiltonian": self.space.hamiltonian.tolist(),
            "renewed": self._renewed,
            "states": self.states.tolist(),
            "ritz": self.energies.tolist(),
            "corrected": self._corrected,
            "sizes": self._sizes.tolist(),
            "residuals": residuals.tolist(),
            "above": above.tolist(),
        }
        iteration = self.record(
            self.energies.copy(),
            residuals,
            waited_seconds=waited_seconds,
            errors=self.state_errors,
            above=above,
            precision="float64",
            ritz=self.energies,
            as_found=as_found,
            kept=kept,
        )
        if self._on_iteration is not None:
            self._on_iteration(iteration, self._basis)

    def _take(self, kept: dict[str, Any]) -> None:
        """Restores the state of another run after it had recorded an iteration."""
        overlap, hamiltonian = np.array(kept["overlap"]), np.array(kept["hamiltonian"])
        self.space = SmallSpace(overlap, overlap, hamiltonian)
        self._size, self._level, self._wrong = len(overlap), kept["level"], np.array(kept["wrong"])
        self._renewed, self._sizes = kept["renewed"], np.array(kept["sizes"])
        self.states, self.energies = np.array(kept["states"]), np.array(kept["ritz"])
        self._corrected = [int(each) for each in kept["corrected"]]

    def expand(self) -> None:
        """Applies H to the corrections, and solves the small problem."""
        active = self.active()
        self._multiply("correction", self._corrected)
        self._corrected, self._rows = active, self.shrunk(active)

    def renew(self) -> None:
        """Recomputes H times the stored states."""
        self._pass(self.states, [])
        self._begin()

    def _wants_renewal(self) -> bool:
        """At convergence, and earlier whenever errors of stored products have become too large."""
        least = np.maximum(self.iterations[-1].residuals, self.limits.tolerance)
        return self.converged or (not self.exhausted and bool((self.state_errors > _DOUBTFUL * least).any()))

    def small(self) -> NDArray[np.bool_]:
        """For each root whether its true residual is below the tolerance, whatever the rounding errors are."""
        found: NDArray[np.bool_] = self.iterations[-1].residuals + self.state_errors < self.limits.tolerance
        return found

    @property
    def state_errors(self) -> Matrix:
        found: Matrix
        if self._renewed:  # a bound, whether errors are independent or not
            found = abs(self.states) @ np.sqrt(np.diagonal(self._wrong))
        else:
            found = np.sqrt(np.einsum("ij,jk,ik->i", *[self.states, self._wrong, self.states]))
        return found

    def transform(self, rows: Matrix) -> None:
        self._wrong = rows @ self._wrong @ rows.T
        self.states = np.eye(self.count, len(rows))

    # ---- the small space ----

    def _pass(self, rows: Matrix | None, active: Sequence[int], *, last: bool = False) -> _Pass:
        """Computes residuals of the states, and corrections for the `active` ones, which it puts behind the small
        space. rows: combinations that replace the vectors of the small space in the same pass, the first of them
        the states; None: the vectors stay. last: the states are the final ones."""
        k, m, basis = self.count, self._size, self._basis
        kept = m if rows is None else len(rows)
        level = self._level if rows is None else float(self.energies.mean())
        read = [*self._vectors(m), *self._kept(m)]
        written = [Place(basis, kept + i) for i in range(len(active))]
        changed = [len(read) + i for i in range(len(active))]
        if rows is not None:
            changed += [*range(kept), *range(m, m + kept)]
        steps = [self._steps.correction(float(self._sizes[root])) for root in active]
        vector_step, product_step = self._steps.vector(level, last=last), self._steps.product()
        to_states, energies = np.ascontiguousarray(self.states), self.energies - self._level
        to_vectors = np.zeros((0, m - k)) if rows is None else np.ascontiguousarray(rows[k:, k:])
        size = kept + len(active)
        of_kernel = size * (size + kept) + 2 * k
        sums, place = self._sums(
            2 * k + len(active) + (2 * kept * kept + 2 * kept if rows is not None else 0)
        )

        def work(tile: VectorTile, inside: list[Array], outside: list[Array]) -> Sequence[int]:
            found, row = np.zeros(of_kernel), sums[place[tile.number]]
            _core.ci_correct(
                inside[:k],
                inside[m : m + k],
                inside[k:m],
                inside[m + k :],
                outside,
                self.operator.diagonal(tile) - self._level,
                to_states,
                to_vectors,
                rows is not None,
                energies,
                list(active),
                SMALLEST,
                self.tiling.parity if tile.on_diagonal else 0,
                found,
            )
            row[: 2 * k] = found[-2 * k :]
            overlap = found[: size * (size + kept)].reshape(size, size + kept)
            row[2 * k : 2 * k + len(active)] = np.diagonal(overlap)[kept:]
            for values, step in zip(outside, steps, strict=True):
                rounding.rounded(values, step)
            if rows is not None:
                _round_space(
                    inside[:kept],
                    inside[m : m + kept],
                    level - self._level,
                    vector_step,
                    product_step,
                    row[2 * k + len(active) :],
                )
            row *= self.tiling.weight(tile)
            return changed

        with self.world.together("correct CI vectors"):
            waited = passes.each_tile(list(place), read, written, self.options.threads, work)
        basis.sync()
        total = passes.total(self.world, len(self.tiling), list(place), sums)
        of_states, of_space = total[: 2 * k].reshape(k, 2), total[2 * k + len(active) :]
        if rows is not None:
            self._shrink(rows, level, of_space)
        return _Pass(
            np.sqrt(of_states[:, 0]),
            of_states[:, 1].copy(),
            np.sqrt(total[2 * k : 2 * k + len(active)]),
            waited,
        )

    def _shrink(self, rows: Matrix, level: float, sums: Matrix) -> None:
        """Updates the small problem after a pass has transformed and rounded the vectors."""
        kept, before, reach = len(rows), self.space, self._steps.reach(level)
        overlap, mixed = sums[: 2 * kept * kept].reshape(2, kept, kept)
        of_vectors, of_products = np.sqrt(sums[2 * kept * kept :]).reshape(2, kept)
        shifted = rows @ (before.hamiltonian - level * before.overlap) @ rows.T
        hamiltonian = shifted + mixed + mixed.T + level * overlap
        self.transform(rows)
        self.space = SmallSpace(overlap, overlap, (hamiltonian + hamiltonian.T) / 2)
        self._wrong += np.diag((reach * of_vectors) ** 2 + of_products**2)
        self._size, self._level = kept, level
        # Energies of the stored states: the change is of first order in their residuals.
        self.energies = np.diagonal(self.space.hamiltonian)[: self.count] / np.diagonal(overlap)[: self.count]

    def _multiply(self, of: str, roots: Sequence[int]) -> None:
        """Applies H to the vectors behind the small space, which belong to these roots, and adds them to it."""
        m, count = self._size, len(roots)
        for i, root in enumerate(roots):
            self._products.append(self._make("float64", 1))
            self.operator.apply(
                Place(self._basis, m + i), Place(self._products[-1], 0), ProductName(of, root)
            )
        products = [Place(each, 0) for each in self._products[-count:]]
        if m == 0:
            states = self._vectors(count)
            found = passes.dots(self.world, states, [*states, *products], self.options.threads)
            self._level = float((np.diagonal(found[:, count:]) / np.diagonal(found)).mean())
        new, errors = self._keep_products(products)
        self._size = m + count
        self._wrong = np.pad(self._wrong, (0, count)) + np.diag(np.pad(errors, (m, 0)) ** 2)
        self.solve(self.space.bordered(new))

    def _keep_products(self, products: list[Place]) -> tuple[SmallSpace, Matrix]:
        """Stores H x - level x of the vectors behind the small space. Returns their rows of scalar products with
        all vectors, and the norms of the errors of the stored products."""
        m, count, step = self._size, len(products), self._steps.product()
        every = self._vectors(m + count)
        width = 2 * count * len(every)
        sums, place = self._sums(width + count)

        def work(tile: VectorTile, inside: list[Array], outside: list[Array]) -> Sequence[int]:
            row, new = sums[place[tile.number]], inside[m:]
            _core.ci_dots(new[:count], inside[: len(every)], row[: width // 2])
            _core.ci_dots(new[count:], inside[: len(every)], row[width // 2 : width])
            for i, out in enumerate(outside):
                np.multiply(new[i], -self._level, out=out)
                np.add(out, new[count + i], out=out)
                row[width + i] = rounding.rounded(out, step)
            row *= self.tiling.weight(tile)
            return range(len(inside), len(inside) + count)

        with self.world.together("keep products of CI vectors"):
            passes.each_tile(
                list(place), [*every, *products], self._kept(m + count)[m:], self.options.threads, work
            )
        self._basis.sync()
        total = passes.total(self.world, len(self.tiling), list(place), sums)
        overlap, hamiltonian = total[:width].reshape(2, count, len(every))
        sizes = np.sqrt(np.diagonal(overlap[:, m:])) * max(abs(self._level), 1.0)
        errors: Matrix = np.sqrt(total[width:]) + ERRORS["float64"] * sizes
        return SmallSpace(overlap, overlap, hamiltonian), errors

    def _chosen_steps(self) -> RoundingSteps:
        """Chooses the steps of rounding from the diagonal of H."""
        sums, place = self._sums(3)

        def work(tile: VectorTile, inside: list[Array], outside: list[Array]) -> Sequence[int]:
            d = self.operator.diagonal(tile).ravel()
            sums[place[tile.number]] = self.tiling.weight(tile) * np.array([d.size, d.sum(), d @ d])
            return ()

        with self.world.together("diagonal of a CI"):
            passes.each_tile(list(place), self._vectors(1), [], self.options.threads, work)
        size, first, second = passes.total(self.world, len(self.tiling), list(place), sums).tolist()
        return RoundingSteps(self.limits.tolerance, round(size), first / size, second / size)

    # ---- vectors ----

    def _sums(self, width: int) -> tuple[Matrix, dict[int, int]]:
        """Zeros for `width` sums of each own tile, and the row of each tile."""
        numbers = self._basis.own_tiles()
        return np.zeros((len(numbers), width)), {number: i for i, number in enumerate(numbers)}

    def _vectors(self, count: int) -> list[Place]:
        return [Place(self._basis, i) for i in range(count)]

    def _kept(self, count: int) -> list[Place]:
        """The places of their stored products."""
        half = self._basis.count // 2
        return [Place(self._basis, half + i) for i in range(count)]

    def _drop(self) -> None:
        while self._products:
            self._products.pop().close()


def _round_space(
    vectors: list[Array],
    products: list[Array],
    higher: float,
    vector_step: float,
    product_step: float,
    row: Matrix,
) -> None:
    """Rounds the tiles of a transformed space, and raises its level by `higher`. row gets sums: overlaps; scalar
    products of the changes of vectors by rounding with the stored products; squares of the changes of vectors and
    of products."""
    kept = len(vectors)
    for x, hx in zip(vectors, products, strict=True):
        np.subtract(hx, higher * x, out=hx)
    added, squares = [np.empty_like(x) for x in vectors], row[2 * kept * kept :]
    for i, (x, each) in enumerate(zip(vectors, added, strict=True)):
        squares[i] = rounding.rounded(x, vector_step, each)
    _core.ci_dots(vectors, vectors, row[: kept * kept])
    _core.ci_dots(added, products, row[kept * kept : 2 * kept * kept])
    for i, hx in enumerate(products):
        squares[kept + i] = rounding.rounded(hx, product_step)
