"""States of a multireference CI, by Davidson's method.

The small space holds vectors v, with H v of each. In each iteration those states of the small space are found that
follow the states of the references, and corrected by their residuals; when the space is full it shrinks to the
states, the directions in which they were corrected before, and what was passed over. With a metric that is not 1
for all determinants the states are those of ACPF or AQCC: the energy of each is above that of its own state of the
references.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outcore.base.errors import NotConverged
from outcore.chem.ci.small import ERRORS, Matrix, doubtful
from outcore.chem.mrci.following import Roots, SmallSpace, follow, passed_over
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.mrci.following import ReferenceVectors
    from outcore.chem.mrci.vectors import Array, Integers, Layout, Vector
    from outcore.job.world import World

SMALLEST = 0.05  # Hartree: denominators of corrections are not nearer to zero
_FIRST_SIZE = 0.3  # about the norm of the first corrections
_DECLINE = 4  # about so many times smaller are those of the next iteration
# A search of packed vectors stalls if residuals are worth more than this part of what they were worth before, and
# not more than so many times what is wanted: then errors of packing are what is left.
_STALLED, _NEAR = 0.5, 20
_CLOSINGS = 4  # times that a search which stalls is begun anew from what is stored
# H is symmetric, but <t|H x> of a state x and <x|H t> of a new vector, both normalised, differ by more than this
# (Hartree) if the former has become wrong, by packing, say.
_ASYMMETRIC = 0.1


class Operator(Protocol):
    """H without its reference energy."""

    waited_seconds: float

    def make(self, *, product: bool = False) -> Vector:
        """A zero vector, of states or of their products with H. Collective, as closing it is."""

    def make_room(self, closing: Sequence[Vector]) -> None:
        """Idle vectors are written next, and these are closed then. Collective."""

    def apply(self, x: Vector, y: Vector) -> float:
        """Adds H x to y, which is zero; returns <x|H|x>, exact of what is stored of x. Collective."""

    def project(self, x: Vector) -> None:
        """Takes out what is not in the space, of a vector that was made block by block. Collective."""

    def diagonal(self, block: int) -> Array: ...
    def add_density(self, x: Vector, alpha: Array, beta: Array) -> None: ...
    def exchange(self, x: Vector) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Options:
    """tolerance: norm of residuals (Hartree); or worth: of their second-order energy (Hartree). vectors: of the
    small space, for each state, at least 3; passed: more of them, for each, for states that are passed over."""

    tolerance: float = 1e-6
    worth: float = 0.0
    max_iterations: int = 50
    vectors: int = 6
    passed: int = 0
    threads: int = 1
    exact: bool = True  # vectors are stored as they are

    def most(self, roots: int) -> int:
        """Vectors that there are at a time: those of the small space, their products, and corrections."""
        return (2 * (self.vectors + self.passed) + 1) * roots


@dataclass(frozen=True)
class Iteration:
    """energies: Hartree, above the reference energy. worth: by how much residuals would lower them, in second
    order. seconds: since the iteration before."""

    number: int
    energies: Matrix
    residuals: Matrix
    worth: Matrix
    seconds: float
    waited_seconds: float


@dataclass
class Found:
    states: list[Vector]
    multiplied: list[Vector]
    iterations: list[Iteration]
    unconverged: list[int]  # roots
    packing_errors: Matrix  # Hartree: sum (d - E) delta^2 over errors delta of the states' elements
    likeness: Matrix  # see Roots
    passed: Integers  # see passed_over


class Search:
    """`on_iteration` is called with each iteration, `keep` with each and with what gives a block of all states;
    collective.

    references: states that the roots follow. shifts: of a functional, energies of these above that of the first
    (Hartree)."""

    def __init__(
        self,
        world: World,
        layout: Layout,
        operator: Operator,
        options: Options,
        references: ReferenceVectors,
        shifts: Matrix,
        on_iteration: Callable[[Iteration], None] | None = None,
        keep: Callable[[Iteration, Callable[[int], Array]], None] | None = None,
    ) -> None:
        self.world, self.layout, self.operator, self.options = world, layout, operator, options
        self._references, self._shifts = references, shifts
        self._on_iteration, self._keep = on_iteration, keep
        self._vectors: list[Vector] = []
        self._multiplied: list[Vector] = []
        self._exact: dict[int, float] = {}
        self._new: list[Vector] = []  # corrections that H was not applied to yet
        self._iterations: list[Iteration] = []

    def run(self, states: list[Vector]) -> Found:
        """From independent start vectors, which are the search's from now on. Collective."""
        self._count = len(states)
        self._sizes = np.full(self._count, _FIRST_SIZE)
        self._packing_errors = np.zeros(self._count)
        self._every: list[Roots] = []
        self._since = time.perf_counter()
        self._before = 0.0
        closings = 0
        try:
            self._start(states)
            while True:
                self._correct()
                if self._doubtful().any() and len(self._iterations) < self.options.max_iterations:
                    self._close_up()
                if not self.options.exact and (
                    self._converged() or (closings < _CLOSINGS and self._stalled())
                ):
                    closings += 1
                    self._close_up()
                if self._converged() or len(self._iterations) >= self.options.max_iterations:
                    break
                self._expand()
        except Exception:  # of records, too, which nobody may be able to erase: they end with the operator
            self._vectors, self._multiplied, self._new = [], [], []
            raise
        self._drop_new()
        errors = self._packing_errors
        self._shrink(self._states)
        self._packing_errors += errors
        k = self._count
        return Found(
            self._vectors[:k],
            self._multiplied[:k],
            self._iterations,
            self._unconverged(),
            self._packing_errors,
            self._roots.likeness,
            passed_over(self._every),
        )

    def _drop_new(self) -> None:
        for each in self._new:
            each.close()
        self._new = []

    # ---- the small problem ----

    def _start(self, states: list[Vector]) -> None:
        self._vectors, self._multiplied, self._exact = states, [], {}
        for each in states:
            self._multiply(each)
        self._errors = np.zeros(0)  # norms, of what is stored of H times each vector
        self._asymmetry = 0.0
        self._space = self._products(range(len(states)))
        self._solve()

    def _solve(self) -> None:
        self._roots = found = follow(self._space, self._shifts)
        self._energies, self._states = found.energies, found.coefficients
        self._every.append(found)

    def _multiply(self, vector: Vector) -> None:
        self._multiplied.append(self.operator.make(product=True))
        self._exact[len(self._multiplied) - 1] = self.operator.apply(vector, self._multiplied[-1])

    def _products(self, rows: range) -> SmallSpace:
        """Products of these vectors with all, and of all states of the references with these. Products with H are
        new: how wrong they may be, and those before have become, is kept."""
        layout, m, k, of_functional = self.layout, len(self._vectors), self._count, self.layout.penalty != 1
        sums = np.zeros((4, len(rows), m + 1))
        likeness = np.zeros((k, len(rows)))

        def work(block: int) -> tuple[Matrix, Matrix]:
            x = np.array([each.read(block) for each in self._vectors])
            hx = np.array([each.read(block) for each in self._multiplied])
            left, made = x[rows.start : rows.stop], hx[rows.start : rows.stop]
            metric, weights = layout.metric(block), layout.weights(block)
            overlap = (left * metric) @ x.T
            plain = (left * weights) @ x.T if of_functional else overlap
            products = overlap, plain, (left * weights) @ hx.T, (made * weights) @ x.T
            squares = left**2 @ weights, made**2 @ weights, *np.zeros((2, len(rows)))
            found = np.concatenate([products, np.array(squares)[:, :, None]], axis=2)
            return found, self._references.products(block, left)

        for each, like in self._each_block(work):
            sums += each
            likeness += like
        sums, likeness = self.world.all_reduce(sums), self.world.all_reduce(likeness)
        overlap, plain, hamiltonian, transposed = sums[:, :, :m]
        squares = sums[:2, :, m]
        self._errors = np.append(self._errors, ERRORS["float64"] * np.sqrt(squares.max(0)))
        if rows.start >= k:
            norms = np.sqrt(np.outer(squares[0], np.diagonal(self._space.plain)[:k]))
            differences = np.abs(transposed - hamiltonian)[:, :k]
            self._asymmetry = float((differences[norms > 0] / norms[norms > 0]).max(initial=0.0))
        if len(rows) == m:
            hamiltonian = (hamiltonian + hamiltonian.T) / 2
        for row in rows:  # what is stored of H v may be rounded
            hamiltonian[row - rows.start, row] = self._exact[row]
        return SmallSpace(overlap, plain if of_functional else overlap, hamiltonian, likeness)

    def _each_block(self, work: Callable[[int], Any]) -> list[Any]:
        """Results of this process's blocks, in their order."""
        mine = range(self.world.rank, len(self.layout.blocks), self.world.size)
        found: dict[int, Any] = {}

        def do(_thread: int, block: int) -> None:
            found[block] = work(block)

        with self.world.together("pass over vectors of a multireference CI"):
            team.each(mine, self.options.threads, do)
        return [found[block] for block in mine]

    # ---- one iteration ----

    def _correct(self) -> None:
        """Residuals of the states, and corrections of those that have not converged, as new vectors."""
        k, layout = self._count, self.layout
        new = [self.operator.make() for _ in range(k)]
        for each, size in zip(new, self._sizes, strict=True):
            each.expect(float(size))
        shifts, c = self._shifts[:, None], self._states
        energies = self._energies[:, None] - shifts
        sums = np.zeros((3, k))

        def work(block: int) -> Matrix:
            x = c @ np.array([each.read(block) for each in self._vectors])
            hx = c @ np.array([each.read(block) for each in self._multiplied])
            weights, metric = layout.weights(block), layout.metric(block)
            scale = metric / weights
            levels = shifts + energies * scale
            residual = hx - levels * x
            gap = self.operator.diagonal(block) - levels
            gap = np.where(np.abs(gap) < SMALLEST, np.copysign(SMALLEST, gap), gap)
            corrections = -residual / gap
            for each, correction in zip(new, corrections, strict=True):
                layout.fold(block, 0.5, correction)
                each.write(block, correction)
            squares = residual**2 * (weights / scale)
            return np.array([squares.sum(1), (squares / np.abs(gap)).sum(1), corrections**2 @ weights])

        for found in self._each_block(work):
            sums += found
        self._new = new
        for each in new:
            self.operator.project(each)
        squares, worth, sizes = self.world.all_reduce(sums)
        self._sizes = np.sqrt(sizes) / _DECLINE
        self._record(np.sqrt(squares), worth)

    def _record(self, residuals: Matrix, worth: Matrix) -> None:
        now = time.perf_counter()
        waited = self.operator.waited_seconds
        iteration = Iteration(
            len(self._iterations) + 1,
            self._energies.copy(),
            residuals,
            worth,
            now - self._since,
            waited - self._before,
        )
        self._since, self._before = now, waited
        self._iterations.append(iteration)
        if not np.isfinite(residuals).all():
            raise NotConverged(
                None, "multireference CI", detail=f"iteration {iteration.number} gave no number"
            )
        if self._keep is not None:
            self._keep(iteration, self._states_of)
        if self._on_iteration is not None:
            self._on_iteration(iteration)

    def _states_of(self, block: int) -> Array:
        found: Array = self._states @ np.array([each.read(block) for each in self._vectors])
        return found

    def _unconverged(self) -> list[int]:
        now, options = self._iterations[-1], self.options
        small = (now.residuals < options.tolerance) | (now.worth < options.worth)
        return [int(each) for each in np.flatnonzero(~small | self._doubtful())]

    def _converged(self) -> bool:
        return not self._unconverged()

    def _doubtful(self) -> NDArray[np.bool_]:
        """Of vectors that are stored as they are. What is packed is wrong by more: there H is applied to the states
        once more at the end."""
        if not self.options.exact:
            return np.zeros(self._count, bool)
        errors, sizes = np.abs(self._states) @ self._errors, np.maximum(np.abs(self._energies), 1.0)
        return doubtful(errors, self._iterations[-1].residuals, self.options.tolerance, sizes)

    def _stalled(self) -> bool:
        if len(self._iterations) < 2:
            return False
        before, now = (each.worth.max() for each in self._iterations[-2:])
        return bool(_STALLED * before < now < _NEAR * self.options.worth)

    def _expand(self) -> None:
        """H of the corrections, and the states of the larger space."""
        active = self._unconverged()
        for i, each in enumerate(self._new):
            if i not in active:
                each.close()
        limit = self.options.vectors * self._count
        if len(self._roots.passed):
            limit += self.options.passed * self._count
        if len(self._vectors) + len(active) > limit:
            directions = active if len(self._vectors) > self._count else []
            room = limit - self._count - len(directions) - len(active)
            passed = self._roots.passed[: max(room, 0)]
            self._shrink(self._states, directions, passed if len(passed) else None)
        m = len(self._vectors)
        for i in active:
            self._vectors.append(self._new[i])
            self._multiply(self._vectors[-1])
        self._new = []
        self._space = self._space.bordered(self._products(range(m, len(self._vectors))))
        if self._asymmetry > _ASYMMETRIC:
            self._states = np.pad(self._states, ((0, 0), (0, len(self._vectors) - m)))
            self._every = []  # its levels may be wrong
            self._multiply_anew()
        else:
            self._solve()

    def _shrink(self, states: Matrix, directions: Sequence[int] = (), passed: Matrix | None = None) -> None:
        """The small space becomes that of its states, of what `directions` of them have beside the first vectors
        (those of roots that have converged depend on others, but for their errors), and of states that were passed
        over, which would come back from the corrections of those above them."""
        k, m = self._count, len(self._vectors)
        rest = states[list(directions)]
        rest[:, :k] = 0
        rows = np.concatenate([states, rest] if passed is None else [states, rest, passed])
        count = len(rows)

        def work(block: int) -> Matrix:
            errors = np.zeros(k)
            for group in (self._vectors, self._multiplied):
                made = rows @ np.array([each.read(block) for each in group])
                for i, (each, data) in enumerate(zip(group, made, strict=False)):
                    stored = each.write(block, data)
                    if group is self._vectors and i < k and stored is not data:
                        gap = self.operator.diagonal(block) - self._energies[i]
                        errors[i] = (self.layout.weights(block) * gap) @ (stored - data) ** 2
            return errors

        while len(self._vectors) < count:  # of the first iteration
            self._vectors.append(self.operator.make())
            self._multiplied.append(self.operator.make(product=True))
            rows = np.pad(rows, ((0, 0), (0, 1)))
        sizes = np.sqrt(np.einsum("ij,jk,ik->i", rows[:, :m], self._space.overlap, rows[:, :m]))
        for i, (each, size) in enumerate(zip(self._vectors, sizes, strict=False)):
            each.expect(None if i < k else float(size), idle=True)
        for each in self._multiplied:
            each.expect(None, idle=True)
        self.operator.make_room([*self._vectors[count:], *self._multiplied[count:]])
        errors = np.zeros(k)
        for found in self._each_block(work):
            errors += found
        self._packing_errors = self.world.all_reduce(errors)
        for each in (*self._vectors[count:], *self._multiplied[count:]):
            each.close()
        del self._vectors[count:], self._multiplied[count:]
        rows = rows[:, :m]
        self._space = self._space.transformed(rows)
        self._errors = np.abs(rows) @ self._errors
        self._states = np.eye(k, count)
        if self.world.size > 1:
            self.world.barrier()

    def _close_up(self) -> None:
        """H of the states anew, as they are stored, and their residuals."""
        self._drop_new()
        self._multiply_anew()
        self._correct()

    def _multiply_anew(self) -> None:
        """H of the present states, which are all that is left of the small space."""
        self._shrink(self._states)
        for each in self._multiplied:
            each.close()
        self._start(self._vectors)
