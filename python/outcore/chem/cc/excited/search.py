"""States of EOM-CCSD: `chem.davidson` over vectors of singles in memory and doubles in extended arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem import davidson
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.excited import passes
from outcore.chem.cc.excited.settings import METHOD
from outcore.chem.cc.iteration import NOTHING, Moved
from outcore.chem.cc.keep.kept_states import KeptVector
from outcore.chem.small_space import ERRORS, SAME, SmallSpace, above

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.excited.vectors import StateEquations
    from outcore.chem.cc.keep.kept_states import KeptStates
    from outcore.chem.small_space import Matrix

Values = np.ndarray[Any, np.dtype[Any]]

LEAST = 4
"""The fewest vectors of the small space for each root."""
_ABOVE = 3  # states above the roots to correct before a search ends; with more roots as many as these
_NOTHING = 1e-12  # squared norm of a start vector that is none; its factors have unit length


@dataclass(frozen=True, kw_only=True)
class Iteration(davidson.Iteration):
    """products: number of products of H with vectors, since the iteration before. moved: their disk traffic.
    moved_by_passes: that of passes over all vectors."""

    products: int = 0
    moved: Moved = NOTHING
    moved_by_passes: Moved = NOTHING


class VectorArrays:
    """Arrays of doubles in the plan: of vectors, and of products of H with them, whose names begin with H. The
    constructor is collective."""

    def __init__(self, equations: StateEquations, limits: davidson.Limits, roots: int) -> None:
        room, most = equations.room, limits.vectors * roots
        self._of_vectors = [
            tuple(room.array(f"{name}{n}") for name in equations.names) for n in range(most + roots)
        ]
        self._of_products = [
            tuple(room.array(f"H{name}{n}") for name in equations.names) for n in range(most)
        ]
        self._room = room
        self.vectors, self.products = list(self._of_vectors), list(self._of_products)

    def release(self, but: Sequence[StateVector]) -> None:
        """Closes all arrays, except those of `but`."""
        stay = [array for each in but for array in each.doubles]
        every = [array for each in (*self._of_vectors, *self._of_products) for array in each]
        self._room.release(*(each for each in every if not any(each is one for one in stay)))


class Search(davidson.Search[Iteration]):
    """A search for `count` roots. Collective.

    `on_iteration` is called with each iteration. `kept`: the checkpoint of vectors, from which another search goes
    on. `follows`: singles of states, of unit norm, which roots follow by overlap of singles in the order given;
    None: roots are the lowest. `alone`: nobody knows the lowest roots, so the search looks for others once it has
    converged. `found`: number of vectors that the checkpoint had. `is_whole`: whether these are states of a search
    that has converged as tightly as this one shall, and has looked for others."""

    def __init__(
        self,
        equations: StateEquations,
        limits: davidson.Limits,
        count: int,
        on_iteration: Callable[[Iteration], None] | None = None,
        kept: KeptStates | None = None,
        follows: Sequence[Values] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        super().__init__(METHOD, limits, count, Iteration, is_symmetric=False)
        self.equations, self.room = equations, equations.room
        self._limit_bytes = self.room.plan.work_bytes // 2
        self._pool = VectorArrays(equations, limits, count)
        self._on_iteration, self._kept = on_iteration, kept
        self._alone = alone
        self._follows = None if follows is None else np.array([each.ravel() for each in follows])
        self._vectors: list[StateVector] = []
        self._multiplied: list[StateVector] = []
        self._new: list[StateVector] = []
        self.found, self.is_whole = 0, False
        self._doubted = False  # iterations ended before states above the roots were found to stay there
        self._done, self._moved = 0, NOTHING  # since the last iteration
        self._traffic = passes.PassTraffic()

    def run(self, guesses: Callable[[], Sequence[FirstState]]) -> list[StateVector]:
        """Searches from the vectors of the checkpoint, or from start vectors. `guesses` returns at least as many of
        these as roots; the search takes as many as its small space has room for. Returns the roots, right vectors
        of unit norm, and gives back all other arrays."""
        self.start_clock()
        if not self._take_kept():
            for each in guesses():
                if len(self._vectors) == self.limits.vectors * self.count:
                    break
                self._begin(each)
            self._multiply(0)
            self.solve(self._products(0, None))
        self.iterate()
        if self._alone and self.found and not self.is_whole and self.converged and not self.exhausted:
            self._add_start_vectors(guesses())
            self.iterate()
        # States of a search that has looked for others are taken as they are, if they have converged.
        may_fall = self._alone and not (self.is_whole and len(self.iterations) == 1)
        while may_fall and self.converged and self._guards > 0:
            if self.exhausted:
                self._doubted = True
                break
            may_fall = self._look_above()
            self.iterate()
        self._shrink(self.states)
        is_whole = self.converged and not self.exhausted
        self._commit(np.eye(self.count), self.limits.tolerance if is_whole else None)
        self._pool.release(self._vectors)
        return self._vectors

    def unconverged(self) -> list[int]:
        return list(range(self.count)) if self._doubted else super().unconverged()

    def why(self) -> str:
        if not self._doubted:
            return super().why()
        return f"after {len(self.iterations)} iterations states above the roots may still fall below them"

    def _begin(self, guess: FirstState) -> None:
        """Takes a start vector, unless Pauli's principle leaves nothing of it: its rounding errors, scaled to the
        length of a state, would be an eigenvector with the eigenvalue 0."""
        array = self._pool.vectors.pop()
        passes.put(self.room, self.equations, guess, array)
        self.equations.project(array)
        vector = StateVector(guess.singles.copy(), array)
        if sum(passes.squares(self.room, self.equations, vector)) > _NOTHING:
            self._vectors.append(vector)
        else:
            self._pool.vectors.append(array)

    def _add_start_vectors(self, guesses: Sequence[FirstState]) -> None:
        """Adds start vectors to the states. A search that another run has begun may lack them: the checkpoint has
        room for few vectors, and that run may have ended before all of them were multiplied. States of symmetries
        that no vector has would be missed."""
        self._pool.vectors.extend(each.doubles for each in self._new)
        self._new = []
        self._shrink(self.states)
        first = len(self._vectors)
        for each in guesses:
            if len(self._vectors) == self.limits.vectors * self.count:
                break
            self._begin(each)
        self._multiply(first)
        self.solve(self._products(first, self.space))

    # ---- the checkpoint ----

    def _take_kept(self) -> bool:
        """Takes vectors of another run as the small space; false: there are too few."""
        if self._kept is None:
            return False
        errors, whole = [], []
        for number in range(LEAST * self.count):
            arrays = self._pool.vectors.pop(), self._pool.products.pop()
            found = self._kept.bring(self.room, number, *arrays)
            if found is None:
                self._pool.vectors.append(arrays[0])
                self._pool.products.append(arrays[1])
                continue
            self._vectors.append(StateVector(found.singles, arrays[0]))
            self._multiplied.append(StateVector(found.multiplied, arrays[1]))
            errors.append(found.error)
            limit = found.converged_to
            whole.append(limit is not None and limit <= self.limits.tolerance)
        self.found = len(self._vectors)
        if self.found >= self.count:
            try:
                self.solve(self._products(0, None))
            except ValueError:  # a run ended between commits of two vectors, which are dependent
                pass
            else:
                self.errors = np.maximum(self.errors, errors)
                self.is_whole = all(whole[: self.count])
                return True
        self._pool.vectors.extend(each.doubles for each in self._vectors)
        self._pool.products.extend(each.doubles for each in self._multiplied)
        self._vectors, self._multiplied, self.errors, self.found = [], [], np.zeros(0), 0
        return False

    def _keep(self, first: int) -> None:
        """Commits the present vectors, if the last commit is long ago. first: how many the states consist of."""
        if self._kept is None or not self._kept.clock.is_late():
            return
        count, m = self.count, len(self._multiplied)
        unit = np.eye(m)
        rows = [unit[first:]]
        if first:
            states = np.pad(self.states, ((0, 0), (0, m - self.states.shape[1])))
            before = states.copy()
            before[:, :count] = 0.0
            before = before[before.any(axis=1)]
            rows = [states, before if len(before) else unit[count : min(first, 2 * count)], *rows]
        self._commit(np.concatenate(rows)[: LEAST * count])

    def _commit(self, rows: Matrix, converged_to: float | None = None) -> None:
        if self._kept is None:
            return
        m = len(self._multiplied)
        errors = np.abs(rows) @ np.pad(self.errors, (0, m - len(self.errors)))
        vectors, products = (
            [each.doubles for each in group[:m]] for group in (self._vectors, self._multiplied)
        )
        with self._kept.clock.committing():
            self._kept.begin()
            for number, row in enumerate(rows):
                one, other = (
                    sum(x * each.singles for x, each in zip(row, group[:m], strict=True))
                    for group in (self._vectors, self._multiplied)
                )
                kept = KeptVector(np.asarray(one), np.asarray(other), float(errors[number]), converged_to)
                self._kept.put(self.room, number, row, vectors, products, kept)

    # ---- passes over vectors ----

    def correct(self) -> None:
        self._new, residuals = self._corrections(self.states, self.energies)
        found = self.record(
            self.energies.copy(),
            residuals,
            products=self._done,
            moved=self._moved,
            moved_by_passes=self._traffic.take(self.room.world),
        )
        self._done, self._moved = 0, NOTHING
        if self._on_iteration is not None:
            self._on_iteration(found)

    def _corrections(self, states: Values, energies: Values) -> tuple[list[StateVector], Values]:
        """Corrections of states [state][vector], and norms of their residuals."""
        empty = np.zeros(0)
        new = [StateVector(empty, self._pool.vectors.pop()) for _ in states]
        residuals = passes.correct(
            self.room,
            self.equations,
            self._vectors,
            self._multiplied,
            states,
            energies,
            new,
            self._limit_bytes,
            self._traffic,
        )
        for each in new:
            self.equations.project(each.doubles)
        return new, residuals

    @property
    def _guards(self) -> int:
        """Number of states above the roots that can be corrected: the small space has as many, and room for
        them."""
        room = (self.limits.vectors - 1) * self.count // 2
        return min(max(self.count, _ABOVE), room, len(self._vectors) - self.count)

    def _look_above(self) -> bool:
        """Corrects states above the roots, once: residuals of roots do not show a state of another symmetry, which
        may lie above the roots before it is corrected and below them after it. Returns whether a root has fallen,
        or a state may still fall below the roots: if it falls once more by as much, or by the norm of its residual,
        as energies of a matrix that is not symmetric may rise before they fall."""
        count, before = self.count, self.energies
        energies, rows = above(self.space, count, self._guards)
        self._pool.vectors.extend(each.doubles for each in self._new)
        self._shrink(np.concatenate([self.states, rows]))
        first, new = len(self._vectors), []
        unit, residuals = np.eye(first)[count:], []
        for begin in range(0, len(unit), count):  # the work space has room for as many as roots
            chosen = slice(begin, begin + count)
            made, norms = self._corrections(unit[chosen], energies[chosen])
            new += made
            residuals += list(norms)
        for each, residual in zip(new, residuals, strict=True):
            # Rounding errors, scaled to the length of a state, would be a state with the eigenvalue 0.
            if residual < self.limits.tolerance:
                self._pool.vectors.append(each.doubles)
            else:
                self._vectors.append(each)
        self._new = []
        if len(self._vectors) == first:
            self.solve(self.space)
            return False
        self._multiply(first)
        self.solve(self._products(first, self.space))
        found, _ = above(self.space, count, len(energies))
        least = self.energies.max() - SAME
        may_fall = (2 * found - energies < least).any() or (energies - residuals < least).any()
        return bool(may_fall or (self.energies < before - SAME).any())

    def expand(self) -> None:
        active = self.active()
        rows = self.shrunk(active)
        if rows is not None:
            self._shrink(rows)
        first = len(self._vectors)
        for root, each in enumerate(self._new):
            if root in active:
                self._vectors.append(each)
            else:
                self._pool.vectors.append(each.doubles)
        self._new = []
        self._multiply(first)
        self.solve(self._products(first, self.space))

    def renew(self) -> None:
        for each in self._new:
            self._pool.vectors.append(each.doubles)
        self._new = []
        self._shrink(self.states)
        for each in self._multiplied:
            self._pool.products.append(each.doubles)
        self._multiplied, self.errors = [], np.zeros(0)
        self._multiply(0)
        self.solve(self._products(0, None))

    def _multiply(self, first: int) -> None:
        """Multiplies H with the vectors from number `first` on."""
        vectors = self._vectors[first:]
        outs = [self._pool.products.pop() for _ in vectors]
        moved = self.room.moved
        for out, singles in zip(outs, self.equations.products(vectors, outs), strict=True):
            self._multiplied.append(StateVector(singles, out))
            self._done, self._moved = self._done + 1, self._moved + (self.room.moved - moved)
            self._keep(first)
            moved = self.room.moved

    def _products(self, first: int, before: SmallSpace | None) -> SmallSpace:
        found = passes.products(
            self.room, self._vectors, self._multiplied, first, self._limit_bytes, self._traffic
        )
        self.errors = np.append(self.errors, ERRORS["float64"] * np.sqrt(found.squares))
        likeness = None
        if self._follows is not None:
            likeness = self._follows @ np.array([each.singles.ravel() for each in self._vectors[first:]]).T
        rows = SmallSpace(found.overlap, found.overlap, found.hamiltonian, likeness)
        return rows if before is None else before.bordered(rows, found.transposed[:first])

    def _shrink(self, rows: Matrix) -> None:
        """Replaces the small space by combinations of its vectors; the first rows are the states."""
        count = len(rows)
        for group, free in ((self._vectors, self._pool.vectors), (self._multiplied, self._pool.products)):
            combined = rows
            while len(group) < count:  # in the first iteration
                spare = free.pop()
                passes.clear(self.room, spare)
                group.append(StateVector(np.zeros_like(group[0].singles), spare))
                combined = np.pad(combined, ((0, 0), (0, len(group) - combined.shape[1])))
            passes.combine(self.room, group, combined, self._limit_bytes, self._traffic)
            free.extend(each.doubles for each in group[count:])
            del group[count:]
        self.space = self.space.transformed(rows)
        self.transform(rows)
