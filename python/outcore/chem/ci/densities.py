"""Density matrices of states of a CI, of one and two particles, and between states: task by task, as products with
the Hamiltonian are computed, in the same memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.ci.density_parts import Blocks, Opposite, Same
from outcore.chem.ci.determinants import listed
from outcore.chem.ci.groups import ALPHA, OPPOSITE, Task
from outcore.parallel import team
from outcore.parallel.prefetch import Prefetch
from outcore.parallel.tasks import tasks_of

if TYPE_CHECKING:
    from outcore.chem.ci.groups import Part
    from outcore.chem.ci.hamiltonian import Hamiltonian, Integers, Matrix
    from outcore.chem.ci.solver import Solved
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.vector import Vectors

_AHEAD = 6  # tiles that are read while one is put in its place


@dataclass(frozen=True, eq=False)
class Densities:
    """Of sorted orbitals; p and q of `mixed` are of spin alpha, r and s of spin beta.

    alpha, beta: [p][q] = <bra| p+ q |ket>.
    same_alpha, mixed, same_beta: [p][q][r][s] = <bra| p+ r+ s q |ket>.
    """

    alpha: Matrix
    beta: Matrix
    same_alpha: Matrix
    mixed: Matrix
    same_beta: Matrix

    @property
    def one(self) -> Matrix:
        """Of both spins together."""
        return self.alpha + self.beta

    @property
    def two(self) -> Matrix:
        """Of all spins together."""
        return self.same_alpha + self.same_beta + self.mixed + self.mixed.transpose(2, 3, 0, 1)

    def reordered(self, positions: Integers) -> Densities:
        """Of orbitals in another order: orbital p of that is orbital positions[p] here."""
        pair = np.ix_(positions, positions)
        four = np.ix_(positions, positions, positions, positions)
        return Densities(
            self.alpha[pair],
            self.beta[pair],
            self.same_alpha[four],
            self.mixed[four],
            self.same_beta[four],
        )

    def energy(self, hamiltonian: Hamiltonian) -> float:
        """<bra|H|ket> without the core energy (Hartree)."""
        (one_a, one_b), (aa, ab, bb) = hamiltonian.ones, hamiltonian.twos
        total = np.sum(one_a * self.alpha) + np.sum(one_b * self.beta) + np.sum(ab * self.mixed)
        return float(total + (np.sum(aa * self.same_alpha) + np.sum(bb * self.same_beta)) / 2)


def compute(solved: Solved, bra: int, ket: int, *, threads: int = 1) -> Densities:
    """Between two roots. Collective; all processes get them. Raises OutcoreError."""
    states, space = solved.states, solved.space
    if sum(space.electrons) < 2:
        return _of_one_electron(states, bra, ket)
    work = _Work(states, bra, ket, threads)
    world, tasks = states.world, solved.plan.tasks("float64")
    counter = world.counter()
    counter.reset()
    with world.together("densities of a CI"), team.blas_of_one_thread():
        for number in tasks_of(counter, len(tasks)):
            work.do(tasks[number])
    return work.result()


class _Work:
    """Sums of one process."""

    def __init__(self, states: Vectors, bra: int, ket: int, threads: int) -> None:
        self._states, self._roots, self._threads = states, (bra, ket), threads
        space = self._space = states.tiling.space
        alpha, beta = space.electrons
        self._opposite = Opposite(space) if min(alpha, beta) > 0 else None
        self._beta = Same(space) if beta > 1 else None
        self._alpha = Same(space, transposed=True) if alpha > 1 and not space.folded else None
        self._sums = {
            id(each): [each.new_sums() for _ in range(threads)]
            for each in (self._opposite, self._beta, self._alpha)
            if each is not None
        }

    def do(self, task: Task) -> None:
        for part in task.parts:
            kind = (
                self._opposite if part.kind == OPPOSITE else self._alpha if part.kind == ALPHA else self._beta
            )
            if kind is None:
                continue
            blocks = [self._load(part, root) for root in dict.fromkeys(self._roots)]
            holes = iter(task.holes if part.kind == OPPOSITE else range(len(kind)))  # type: ignore[arg-type]
            sums = self._sums[id(kind)]

            def add(thread: int, hole: int) -> None:
                kind.add(sums[thread], blocks[0], blocks[-1], hole)  # noqa: B023

            team.each(holes, self._threads, add)

    def _load(self, part: Part, root: int) -> Blocks:
        states, tiling, transposed = self._states, self._states.tiling, part.kind == ALPHA
        rows, columns = (part.columns, part.rows) if transposed else (part.rows, part.columns)
        blocks = Blocks(self._space, rows, columns, transposed=transposed)
        numbers = [int(each) for each in Task(range(0), (part,), 0.0).tiles(tiling)]
        arrived: list[Any] = [None] * _AHEAD

        def start(number: int, slot: int) -> Any:
            arrived[slot] = states.get_async(root, tiling[number])
            return arrived[slot]

        with Prefetch(numbers, start, _AHEAD) as ahead:
            for number, slot in ahead.in_order():
                tile, values = tiling[number], np.asarray(arrived[slot].wait(), np.float64)
                (row, column), parity = tile.first, tiling.parity
                if transposed:
                    blocks.load(column, row, values.T)
                else:
                    blocks.load(row, column, values)
                if parity and not tile.on_diagonal:
                    blocks.load(column, row, parity * values.T)
        return blocks

    def result(self) -> Densities:
        world, space, n = self._states.world, self._space, self._space.orbitals
        found = []
        for kind in (self._opposite, self._beta, self._alpha):
            if kind is None:
                found.append(np.zeros((n,) * 4))
                continue
            mine = [sum(parts) for parts in zip(*self._sums[id(kind)], strict=True)]
            found.append(kind.density([np.asarray(world.all_reduce(each)) for each in mine]))
        mixed, same_beta, same_alpha = found
        if space.folded:
            same_alpha = same_beta
        alpha, beta = _one_particle(space, mixed, same_alpha, same_beta)
        return Densities(alpha, beta, same_alpha, mixed, same_beta)


def _one_particle(
    space: Space, mixed: Matrix, same_alpha: Matrix, same_beta: Matrix
) -> tuple[Matrix, Matrix]:
    """Contractions of two-particle densities, of two or more electrons."""
    alpha, beta = space.electrons
    if beta:
        of_alpha = np.einsum("pqrr->pq", mixed) / beta
    else:
        of_alpha = np.einsum("pqrr->pq", same_alpha) / (alpha - 1)
    if alpha:
        of_beta = np.einsum("pprs->rs", mixed) / alpha
    else:
        of_beta = np.einsum("pprs->rs", same_beta) / (beta - 1)
    return np.ascontiguousarray(of_alpha), np.ascontiguousarray(of_beta)


def _of_one_electron(states: Vectors, bra: int, ket: int) -> Densities:
    space = states.tiling.space
    n = space.orbitals
    none, nothing = np.zeros((n,) * 4), np.zeros((n, n))
    if not sum(space.electrons):
        return Densities(nothing, nothing, none, none, none)
    strings = space.alpha if space.electrons[0] else space.beta
    orbitals = [listed(int(each))[0] for each in strings.strings]
    vectors = np.zeros((2, n))
    for k, root in enumerate((bra, ket)):
        vectors[k, orbitals] = states.dense(root).ravel()
    one = np.outer(*vectors)
    of_alpha, of_beta = (one, nothing) if space.electrons[0] else (nothing, one)
    return Densities(of_alpha, of_beta, none, none, none)
