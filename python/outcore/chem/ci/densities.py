"""One- and two-particle density matrices of states of a CI, and transition densities. They are computed task by
task, like products with the Hamiltonian, in the same memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from outcore import _core
from outcore.chem.ci.determinants import listed
from outcore.chem.ci.passes import Place
from outcore.chem.ci.solver import make_kernel
from outcore.parallel import team
from outcore.parallel.prefetch import Prefetch
from outcore.parallel.tasks import tasks_of

if TYPE_CHECKING:
    from outcore.chem.ci.groups import Task
    from outcore.chem.ci.hamiltonian import Hamiltonian, Integers, Matrix
    from outcore.chem.ci.plan import Plan
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.vector import Vectors

_AHEAD = 6  # tiles that are being read while one is put into its panel


@dataclass(frozen=True, eq=False)
class Densities:
    """Densities over sorted orbitals. In `mixed`, p and q are of spin alpha, r and s of spin beta.

    alpha, beta: D[p, q] = <bra| p+ q |ket>.
    same_alpha, mixed, same_beta: D[p, q, r, s] = <bra| p+ r+ s q |ket>.
    """

    alpha: Matrix
    beta: Matrix
    same_alpha: Matrix
    mixed: Matrix
    same_beta: Matrix

    @property
    def one(self) -> Matrix:
        """The one-particle density of both spins together."""
        return self.alpha + self.beta

    @property
    def two(self) -> Matrix:
        """The two-particle density of all spins together."""
        return self.same_alpha + self.same_beta + self.mixed + self.mixed.transpose(2, 3, 0, 1)

    def reordered(self, positions: Integers) -> Densities:
        """The densities for another order of orbitals: its orbital p is orbital positions[p] here."""
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


class StateVectors(Protocol):
    """Vectors of a space, with their Hamiltonian and the plan of its products."""

    @property
    def states(self) -> Vectors: ...
    @property
    def space(self) -> Space: ...
    @property
    def hamiltonian(self) -> Hamiltonian: ...
    @property
    def plan(self) -> Plan: ...


def compute(solved: StateVectors, bra: int | Place, ket: int | Place, *, threads: int = 1) -> Densities:
    """Densities between two roots, or two vectors of the same space. Collective; all processes get them. Raises
    OutcoreError."""
    states, space = solved.states, solved.space
    left, right = (Place(states, each) if isinstance(each, int) else each for each in (bra, ket))
    if sum(space.electrons) < 2:
        return _of_one_electron(left, right)
    world, tasks = states.world, solved.plan.tasks("float64")
    counter = world.counter()
    counter.reset()
    with world.together("densities of a CI", left.index, right.index), team.blas_of_one_thread():
        work = _Work(solved, left, right, threads)
        for number in tasks_of(counter, len(tasks)):
            work.do(tasks[number])
    return work.result()


class _Work:
    """The sums of one process, [p][q][r][s] = <bra| p+ r+ s q |ket>, and panels of the roots, which are reused by
    the next task."""

    def __init__(self, solved: StateVectors, bra: Place, ket: Place, threads: int) -> None:
        self._states, self._space = solved.states, solved.space
        self._roots, self._threads = list(dict.fromkeys((bra, ket))), threads
        self._kernel = make_kernel(solved.space, solved.hamiltonian)
        self._panels: dict[bool, list[Any]] = {}  # transposed or not
        n = solved.space.orbitals
        self._mixed, self._same_beta, self._same_alpha = (np.zeros((n,) * 4) for _ in range(3))

    def do(self, task: Task) -> None:
        panels, holes = self._load(task), task.holes
        bra, ket = panels[0], panels[-1]
        if holes:
            self._kernel.opposite_spin_density(bra, ket, self._mixed, holes.start, holes.stop, self._threads)
        sums = self._same_alpha if task.transposed else self._same_beta
        self._kernel.same_spin_density(bra, ket, sums, self._threads)

    def _load(self, task: Task) -> list[Any]:
        rows = task.home, task.others, task.begins
        if task.transposed in self._panels:
            for panel in self._panels[task.transposed]:
                panel.assign(*rows)
        else:
            self._panels[task.transposed] = [
                _core.CIPanel(self._kernel, *rows, "float64", transposed=task.transposed) for _ in self._roots
            ]
        panels = self._panels[task.transposed]
        for root, panel in zip(self._roots, panels, strict=True):
            self._load_root(root, panel, task)
        return panels

    def _load_root(self, root: Place, panel: Any, task: Task) -> None:
        states, tiling = root.vectors, self._states.tiling
        numbers = [int(each) for each in task.tiles(tiling)]
        arrived: list[Any] = [None] * _AHEAD

        def start(number: int, slot: int) -> Any:
            arrived[slot] = states.get_async(root.index, tiling[number])
            return arrived[slot]

        with Prefetch(numbers, start, _AHEAD) as ahead:
            for number, slot in ahead.in_order():
                tile, values = tiling[number], np.asarray(arrived[slot].wait(), np.float64)
                (row, column), parity = tile.first, tiling.parity
                if task.transposed:
                    panel.load(column, row, values, transpose=True)
                else:
                    panel.load(row, column, values)
                if parity and not tile.on_diagonal:
                    panel.load(column, row, values, transpose=True, scale=float(parity))

    def result(self) -> Densities:
        world, space = self._states.world, self._space
        mixed, same_beta, same_alpha = (
            np.asarray(world.all_reduce(each)) for each in (self._mixed, self._same_beta, self._same_alpha)
        )
        if space.folded:
            mixed = mixed + mixed.transpose(2, 3, 0, 1)
            same_alpha = same_beta
        alpha, beta = _one_particle(space, mixed, same_alpha, same_beta)
        return Densities(alpha, beta, same_alpha, mixed, same_beta)


def _one_particle(
    space: Space, mixed: Matrix, same_alpha: Matrix, same_beta: Matrix
) -> tuple[Matrix, Matrix]:
    """One-particle densities as contractions of two-particle ones, for two or more electrons."""
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


def _of_one_electron(bra: Place, ket: Place) -> Densities:
    space = bra.vectors.tiling.space
    n = space.orbitals
    none, nothing = np.zeros((n,) * 4), np.zeros((n, n))
    if not sum(space.electrons):
        return Densities(nothing, nothing, none, none, none)
    strings = space.alpha if space.electrons[0] else space.beta
    orbitals = [listed(int(each))[0] for each in strings.strings]
    vectors = np.zeros((2, n))
    for k, root in enumerate((bra, ket)):
        vectors[k, orbitals] = root.vectors.dense(root.index).ravel()
    one = np.outer(*vectors)
    of_alpha, of_beta = (one, nothing) if space.electrons[0] else (nothing, one)
    return Densities(of_alpha, of_beta, none, none, none)
