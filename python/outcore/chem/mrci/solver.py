"""States of a multireference CI: `chem.davidson` over vectors in blocks, which may be packed.

Vectors do not change until the small space is full. A metric other than 1 gives the states of ACPF or AQCC: then
the energy of each state is measured from the energy of its own state of the references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outcore.chem import davidson
from outcore.chem.small_space import ERRORS, SmallSpace, passed_over
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.mrci.reference_vectors import ReferenceVectors
    from outcore.chem.mrci.vectors import Array, Integers, Vector, VectorLayout
    from outcore.chem.small_space import Matrix
    from outcore.job.world import World

SMALLEST = 0.05  # Hartree: least size of denominators of corrections
_FIRST_SIZE = 0.3  # about the norm of the first corrections
_DECLINE = 4  # corrections of the next iteration are about so many times smaller
# A search of packed vectors stalls if the second-order energy of the residuals is more than _STALLED times that of
# the previous iteration, and less than _NEAR times the wanted one: then only errors of packing are left.
_STALLED, _NEAR = 0.5, 20
# H is symmetric. If <t|H x> of a state x and <x|H t> of a new vector t, both normalised, differ by more than this
# (Hartree), the stored H x has become wrong, say by packing.
_ASYMMETRIC = 0.1


class Operator(davidson.Waiting, Protocol):
    """The Hamiltonian minus the reference energy."""

    def make(self, *, product: bool = False) -> Vector:
        """Makes a zero vector, for states or, if `product`, for products with H. Collective, and so is closing
        it."""

    def make_room(self, closing: Sequence[Vector]) -> None:
        """Announces that the caller writes idle vectors next, and then closes the vectors `closing`. Collective."""

    def apply(self, x: Vector, y: Vector) -> float:
        """Adds H x to y, which must be zero. Returns <x|H|x>, exact for the stored x. Collective."""

    def project(self, x: Vector) -> None:
        """Removes the part outside the space from a vector that was made block by block. Collective."""

    def diagonal(self, block: int) -> Array: ...
    def add_density(self, x: Vector, alpha: Array, beta: Array) -> None: ...
    def exchange(self, x: Vector) -> float: ...


@dataclass(frozen=True, kw_only=True)
class SearchOptions(davidson.Limits):
    """vectors: at least 3. worth: a residual is also small enough if its second-order energy is less (Hartree)."""

    worth: float = 0.0
    max_iterations: int = 50
    vectors: int = 6
    threads: int = 1

    def most(self, roots: int) -> int:
        """Most vectors at a time: those of the small space, their products, and corrections."""
        return (2 * (self.vectors + self.passed) + 1) * roots


@dataclass(frozen=True, kw_only=True)
class Iteration(davidson.Iteration):
    """energies: minus the reference energy. worth: the second-order energies of the residuals, by which they would
    lower the energies."""

    worth: Matrix


@dataclass
class Found:
    states: list[Vector]
    multiplied: list[Vector]
    iterations: list[Iteration]
    unconverged: list[int]  # roots
    why: str  # reason if roots have not converged
    packing_errors: Matrix  # Hartree: sum (d - E) delta^2 over errors delta of the states' elements
    likeness: Matrix  # see small_space.Roots
    passed: Integers  # see small_space.passed_over


class Search(davidson.Search[Iteration]):
    """The search for the states. `on_iteration` is called with each iteration; `keep` with each iteration and a
    function that returns a block of all states. Both calls are collective.

    references: states that the roots follow. shifts: for a functional, energies of these states minus that of the
    first (Hartree)."""

    def __init__(
        self,
        world: World,
        layout: VectorLayout,
        operator: Operator,
        options: SearchOptions,
        references: ReferenceVectors,
        shifts: Matrix,
        on_iteration: Callable[[Iteration], None] | None = None,
        keep: Callable[[Iteration, Callable[[int], Array]], None] | None = None,
    ) -> None:
        super().__init__("multireference CI", options, len(references), Iteration, operator, shifts)
        self.world, self.layout, self.operator, self.options = world, layout, operator, options
        self._references, self._levels = references, shifts
        self._on_iteration, self._keep = on_iteration, keep
        self._vectors: list[Vector] = []
        self._multiplied: list[Vector] = []
        self._exact: dict[int, float] = {}
        self._new: list[Vector] = []  # corrections to which H has not been applied yet
        self._sizes = np.full(self.count, _FIRST_SIZE)
        self._packing_errors = np.zeros(self.count)

    def run(self, states: list[Vector]) -> Found:
        """Runs the search from independent start vectors, which it owns from now on. Collective."""
        self.start_clock()
        try:
            self._start(states)
            self.iterate()
        except Exception:  # records may fail, too, and resist erasing: vectors end with the operator
            self._vectors, self._multiplied, self._new = [], [], []
            raise
        self._drop_new()
        unconverged, why, errors = self.unconverged(), self.why(), self._packing_errors
        self._shrink(self.states)
        self._packing_errors += errors
        k = self.count
        return Found(
            self._vectors[:k],
            self._multiplied[:k],
            self.iterations,
            unconverged,
            why,
            self._packing_errors,
            self.roots.likeness,
            passed_over(self.every),
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
        self.errors = np.zeros(0)
        self._asymmetry = 0.0
        self.solve(self._products(range(len(states))))

    def _multiply(self, vector: Vector) -> None:
        self._multiplied.append(self.operator.make(product=True))
        self._exact[len(self._multiplied) - 1] = self.operator.apply(vector, self._multiplied[-1])

    def _products(self, rows: range) -> SmallSpace:
        """Scalar products of these vectors with all, and with all states of the references. Their products with H
        are new: notes the possible errors of these, and the asymmetry that shows errors of earlier ones."""
        layout, m, k, of_functional = self.layout, len(self._vectors), self.count, self.layout.penalty != 1
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
        self.errors = np.append(self.errors, ERRORS["float64"] * np.sqrt(squares.max(0)))
        if rows.start >= k:
            norms = np.sqrt(np.outer(squares[0], np.diagonal(self.space.plain)[:k]))
            differences = np.abs(transposed - hamiltonian)[:, :k]
            self._asymmetry = float((differences[norms > 0] / norms[norms > 0]).max(initial=0.0))
        if len(rows) == m:
            hamiltonian = (hamiltonian + hamiltonian.T) / 2
        for row in rows:  # the stored H v may be rounded
            hamiltonian[row - rows.start, row] = self._exact[row]
        return SmallSpace(overlap, plain if of_functional else overlap, hamiltonian, likeness)

    def _each_block(self, work: Callable[[int], Any]) -> list[Any]:
        """Results of `work` for the blocks of this process, in their order."""
        mine = range(self.world.rank, len(self.layout.blocks), self.world.size)
        found: dict[int, Any] = {}

        def do(_thread: int, block: int) -> None:
            found[block] = work(block)

        with self.world.together("pass over vectors of a multireference CI"):
            team.each(mine, self.options.threads, do)
        return [found[block] for block in mine]

    # ---- one iteration ----

    def correct(self) -> None:
        """As in the base class; the corrections are new vectors."""
        k, layout = self.count, self.layout
        new = [self.operator.make() for _ in range(k)]
        for each, size in zip(new, self._sizes, strict=True):
            each.expect(float(size))
        shifts, c = self._levels[:, None], self.states
        energies = self.energies[:, None] - shifts
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
        iteration = self.record(self.energies.copy(), np.sqrt(squares), worth=worth)
        if self._keep is not None:
            self._keep(iteration, self._states_of)
        if self._on_iteration is not None:
            self._on_iteration(iteration)

    def _states_of(self, block: int) -> Array:
        found: Array = self.states @ np.array([each.read(block) for each in self._vectors])
        return found

    def small(self) -> NDArray[np.bool_]:
        return super().small() | (self.iterations[-1].worth < self.options.worth)

    def stalled(self) -> bool:
        if len(self.iterations) < 2:
            return False
        before, now = (each.worth.max() for each in self.iterations[-2:])
        return bool(_STALLED * before < now < _NEAR * self.options.worth)

    def expand(self) -> None:
        """Applies H to the corrections, and solves in the larger space."""
        active = self.active()
        for i, each in enumerate(self._new):
            if i not in active:
                each.close()
        rows = self.shrunk(active)
        if rows is not None:
            self._shrink(rows)
        m = len(self._vectors)
        for i in active:
            self._vectors.append(self._new[i])
            self._multiply(self._vectors[-1])
        self._new = []
        larger = self.space.bordered(self._products(range(m, len(self._vectors))))
        if self._asymmetry > _ASYMMETRIC:
            self.space, self.states = larger, np.pad(self.states, ((0, 0), (0, len(self._vectors) - m)))
            self.every = []  # earlier levels may be wrong
            self._multiply_anew()
        else:
            self.solve(larger)

    def _shrink(self, rows: Matrix) -> None:
        """Replaces the vectors of the small space by these combinations; the first of them are the states."""
        k, count = self.count, len(rows)
        combined = rows

        def work(block: int) -> Matrix:
            errors = np.zeros(k)
            for group in (self._vectors, self._multiplied):
                made = combined @ np.array([each.read(block) for each in group])
                for i, (each, data) in enumerate(zip(group, made, strict=False)):
                    stored = each.write(block, data)
                    if group is self._vectors and i < k and stored is not data:
                        gap = self.operator.diagonal(block) - self.energies[i]
                        errors[i] = (self.layout.weights(block) * gap) @ (stored - data) ** 2
            return errors

        while len(self._vectors) < count:  # in the first iteration
            self._vectors.append(self.operator.make())
            self._multiplied.append(self.operator.make(product=True))
            combined = np.pad(combined, ((0, 0), (0, 1)))
        sizes = np.sqrt(np.einsum("ij,jk,ik->i", rows, self.space.overlap, rows))
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
        self.space = self.space.transformed(rows)
        self.transform(rows)
        if self.world.size > 1:
            self.world.barrier()

    def renew(self) -> None:
        """Recomputes H times the stored states."""
        self._drop_new()
        self._multiply_anew()

    def _multiply_anew(self) -> None:
        """Shrinks the small space to the present states, and recomputes H times them."""
        self._shrink(self.states)
        for each in self._multiplied:
            each.close()
        self._start(self._vectors)
