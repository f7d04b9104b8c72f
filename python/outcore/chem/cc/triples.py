"""Connected triple excitations of closed shells by perturbation theory, (T), in tiles of virtual orbitals.

Three blocks A >= B >= C of virtual orbitals are in memory at a time: amplitudes of each, and integrals of each
pair, which are made of three-index ones where they are needed. Orbitals that diagonalize the occupied and the
virtual block of the Fock matrix are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore import _core
from outcore.chem.cc.triple_tasks import TripleTasks, product
from outcore.parallel import team
from outcore.tensor import kernels

if TYPE_CHECKING:
    from outcore.chem.cc.restricted import RestrictedEquations
    from outcore.keep.stages import Stage

Values = np.ndarray[Any, np.dtype[Any]]
Arrays = tuple[Values, ...]
"""What `triples_energy` is given of a block of orbitals, of two, or of third ones: its text says what they are."""


class Triples(TripleTasks):
    """The energy of (T) of converged amplitudes. Collective.

    Raises OutcoreError (ENOMEM).
    """

    multiple = _core.TRIPLES_LANES

    def __init__(
        self,
        equations: RestrictedEquations,
        t1: Values,
        free_bytes: int,
        block: int | None = None,
        *,
        stage: Stage | None = None,
        stamp: str = "",
    ) -> None:
        spaces, auxiliary = equations.spaces, equations.integrals.boo.shape[0]
        super().__init__(equations.room, [spaces], auxiliary, free_bytes, block, stage, stamp)
        self._equations, self._t1, self._fock = equations, t1, equations.fock
        self._o, self._v = spaces.occupied, spaces.virtual
        count = len(self.blocks[0])
        self.tasks = sorted(
            ((a, b) for a in range(count) for b in range(a + 1)), key=lambda task: -(task[1] + 1)
        )
        """Pairs of blocks A >= B, each with all C <= B."""

    def _begin(self) -> None:
        self._boo = self._equations.integrals.boo.get_tile((0, 0, 0))

    def _task(self, task: tuple[int, int]) -> float:
        a, b = task
        of_a = self._read(a)
        of_b = of_a if a == b else self._read(b)
        outer = [of_a] if a == b else [of_a, of_b]
        *singles, of_ab = self._all(
            [*(partial(self._single, x) for x in outer), partial(self._pair, of_a, of_b)]
        )
        total = 0.0
        for c in range(b + 1):
            of_c = of_a if c == a else of_b if c == b else self._read(c)
            thirds = self._thirds(of_c, outer)
            total += self._sum(task, c, (singles[0], singles[-1], of_ab, thirds))
        return total

    def _sum(self, task: tuple[int, int], c: int, given: tuple[Any, Any, Any, Any]) -> float:
        """The energy of three blocks, by all threads."""
        (a, b), (of_a, of_b, of_ab, thirds) = task, given
        rows = [(i, j) for i in range(of_a[-1].size) for j in range(of_b[-1].size) if a != b or j <= i]
        sums = np.zeros(self._room.threads)

        def work(thread: int, row: tuple[int, int]) -> None:
            sums[thread] += _core.triples_energy(
                self._energies, self._v, *row, of_a, of_b, of_ab, thirds, a == b, b == c
            )

        team.each(rows[::-1], self._room.threads, work)
        return float(sums.sum())

    @property
    def _energies(self) -> Values:
        return np.ascontiguousarray(np.diag(self._fock)[: self._o])

    # ---- blocks ----

    def _read(self, number: int) -> _Block:
        begin, end = self.blocks[0][number]
        b = self._equations.integrals
        return _Block(begin, end, b.bvo[:, begin:end, :], b.bvv[:, begin:end, :])

    def _all(self, jobs: Sequence[Callable[[], Arrays]]) -> list[Arrays]:
        """What they return; all threads work."""
        found: list[Arrays] = [()] * len(jobs)

        def work(_: int, number: int) -> None:
            found[number] = jobs[number]()

        team.each(range(len(jobs)), self._room.threads, work)
        return found

    def _single(self, x: _Block) -> Arrays:
        t = self._equations.t2[:, :, x.begin : x.end, :]  # [d,j,x,k]
        return (
            _turned(t, (2, 0, 1, 3)),
            _turned(t, (2, 0, 3, 1)),
            _turned(product(x.bvo, self._boo), (0, 1, 2, 3), -1.0),  # [x,i,j,l]
            *(np.ascontiguousarray(each.T) for each in self._orbitals(x)),
            self._energies_of(x),
        )

    def _pair(self, x: _Block, y: _Block) -> Arrays:
        t = self._equations.t2[x.begin : x.end, :, y.begin : y.end, :]
        return (
            _turned(product(x.bvo, y.bvv), (0, 2, 1, 3)),  # of [x,i,y,d]
            _turned(product(y.bvo, x.bvv), (2, 0, 1, 3)),  # of [y,i,x,d]
            _turned(t, (0, 2, 1, 3)),
            _turned(product(x.bvo, y.bvo), (0, 2, 1, 3)),
        )

    def _thirds(self, c: _Block, outer: Sequence[_Block]) -> list[tuple[Arrays, Arrays, Arrays]]:
        """Of third orbitals, some at a time: of them, with a, and with b."""
        t = self._equations.t2[:, :, c.begin : c.end, :]  # [d,j,c,k]
        parts = [slice(n, n + _core.TRIPLES_LANES) for n in range(0, c.end - c.begin, _core.TRIPLES_LANES)]
        jobs: list[Callable[[], Arrays]] = []
        for part in parts:
            some = _Block(
                c.begin + part.start, min(c.begin + part.stop, c.end), c.bvo[:, part], c.bvv[:, part]
            )
            jobs.append(partial(self._third, some, t[:, :, part]))
            jobs += [partial(self._with_thirds, x, some, t[x.begin : x.end, :, part]) for x in outer]
        found = self._all(jobs)
        step = 1 + len(outer)
        return [(found[n], found[n + 1], found[n + step - 1]) for n in range(0, len(found), step)]

    def _third(self, c: _Block, t: Values) -> Arrays:
        return (
            _turned(t, (0, 1, 3, 2)),
            _turned(product(c.bvo, self._boo), (3, 1, 2, 0), -1.0),  # of [c,k,i,l]
            *(np.ascontiguousarray(each) for each in self._orbitals(c)),
            self._energies_of(c),
        )

    def _with_thirds(self, x: _Block, c: _Block, t: Values) -> Arrays:
        """t: [x,i,c,l]."""
        return (
            _turned(product(x.bvo, c.bvv), (0, 3, 1, 2)),  # of [x,i,c,d]
            _turned(product(c.bvo, x.bvv), (2, 3, 1, 0)),  # of [c,k,x,d]
            _turned(t, (0, 1, 3, 2)),
            _turned(t, (0, 3, 1, 2)),
            _turned(product(x.bvo, c.bvo), (0, 1, 3, 2)),  # of [x,i,c,k]
        )

    def _orbitals(self, x: _Block) -> tuple[Values, Values]:
        """t1 and Fock elements, [i,x]."""
        return self._t1[:, x.begin : x.end], self._fock[: self._o, self._o + x.begin : self._o + x.end]

    def _energies_of(self, x: _Block) -> Values:
        return np.ascontiguousarray(np.diag(self._fock)[self._o + x.begin : self._o + x.end])


class _Block(NamedTuple):
    """A range of virtual orbitals x, with B[Q,x,i] and B[Q,x,d] of it."""

    begin: int
    end: int
    bvo: Values
    bvv: Values


def _turned(values: Values, axes: tuple[int, ...], factor: float = 1.0) -> Values:
    """With axes in another order, times a factor."""
    out = np.empty([values.shape[axis] for axis in axes])
    return kernels.permute(out, values, axes, factor)
