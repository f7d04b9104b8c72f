"""Connected triple excitations of closed shells by perturbation theory, (T), in tiles of virtual orbitals.

Three blocks A >= B >= C of virtual orbitals are in memory at a time: amplitudes of each, and integrals of each
pair, which are made from three-index ones where they are needed. Orbitals have to diagonalize the occupied and the
virtual block of the Fock matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore import _core
from outcore.chem.cc.equations.integrals import four_index
from outcore.chem.cc.equations.triple_tasks import EVERY, TripleTasks
from outcore.chem.cc.plan.buffers import Buffers, ThreadBuffers
from outcore.chem.cc.plan.triple_sizes import TripleOperands, padded
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.restricted import RestrictedEquations
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.keep.stages import Stage
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]
Single = tuple[Values, ...]
Pair = tuple[Values, ...]
"""Arguments of `triples_energy`: for a block, amplitudes, the same turned, integrals, the same turned, t1, Fock
elements, energies; for two blocks, (ix|yd), (iy|xd), amplitudes, the same turned, (ix|jy)."""


class TriplesOf(NamedTuple):
    """The input of (T): amplitudes, integrals, and a Fock matrix whose blocks are diagonal."""

    room: Room
    spaces: Spaces
    integrals: Integrals
    t2: Array
    fock: Values


def tasks_of_blocks(count: int) -> list[tuple[int, int]]:
    """Pairs of blocks A >= B, each with all C <= B; those with most blocks C come first."""
    return sorted(((a, b) for a in range(count) for b in range(a + 1)), key=lambda task: -(task[1] + 1))


class Triples(TripleTasks):
    """The energy of (T) of converged amplitudes. Collective.

    Raises OutcoreError (ENOMEM).
    """

    def __init__(
        self,
        equations: RestrictedEquations | TriplesOf,
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
        self._given, self._products = Buffers(), ThreadBuffers()
        self._order()

    def _order(self) -> None:
        self.tasks = tasks_of_blocks(len(self.blocks[0]))

    @property
    def operands(self) -> TripleOperands:
        b = self._equations.integrals
        return TripleOperands((self._equations.t2,), (b.boo,), (b.bvo,), (b.bvv,))

    def _begin(self) -> None:
        self._boo = self._reads(self._equations.integrals.boo, EVERY, EVERY, EVERY)

    def _end(self) -> None:
        del self._boo
        self._given, self._products = Buffers(), ThreadBuffers()

    def _task(self, task: tuple[int, int]) -> float:
        a, b = task
        of_a = self._read(a)
        of_b = of_a if a == b else self._read(b)
        chosen = {"a": of_a} if a == b else {"a": of_a, "b": of_b}
        singles, (of_ab,) = self._made(chosen, {"ab": (of_a, of_b)})
        fixed = (of_a, of_b, singles, of_ab)
        return sum(self._with_third(task, c, *fixed) for c in range(b + 1))

    def _with_third(
        self,
        task: tuple[int, int],
        c: int,
        of_a: TriplesBlock,
        of_b: TriplesBlock,
        singles: list[Single],
        of_ab: Pair,
    ) -> float:
        """The energy of three blocks. Arrays of the third are made here, in buffers that the next call uses
        again."""
        a, b = task
        given = [singles[0], singles[-1]]
        if c == b:  # and perhaps a
            of_ac, of_bc = of_ab, of_ab
            if a != b:
                _, (of_bc,) = self._made({}, {"bc": (of_b, of_b)})
            given.append(singles[-1])
        else:
            of_c = self._read(c)
            chosen = {"ac": (of_a, of_c)} if a == b else {"ac": (of_a, of_c), "bc": (of_b, of_c)}
            (single,), pairs = self._made({"c": of_c}, chosen)
            of_ac, of_bc = pairs[0], pairs[-1]
            given.append(single)
        return self._sum(task, c, (*given, of_ab, of_ac, of_bc))

    def _sum(self, task: tuple[int, int], c: int, given: tuple[Any, ...]) -> float:
        """The energy of three blocks, by all threads."""
        (a, b), (x, y, z, xy, xz, yz) = task, given
        rows = [(i, j) for i in range(x[-1].size) for j in range(y[-1].size) if a != b or j <= i]
        sums = np.zeros(self._room.threads)

        def work(thread: int, row: tuple[int, int]) -> None:
            sums[thread] += _core.triples_energy(
                self._energies, self._v, *row, x, y, z, xy, xz, yz, a == b, b == c
            )

        team.each(rows[::-1], self._room.threads, work)
        return float(sums.sum())

    @property
    def _energies(self) -> Values:
        return np.ascontiguousarray(np.diag(self._fock)[: self._o])

    # ---- blocks ----

    def _read(self, number: int) -> TriplesBlock:
        return self._read_range(*self.blocks[0][number])

    def _read_range(self, begin: int, end: int) -> TriplesBlock:
        b, reads, x = self._equations.integrals, self._reads, slice(begin, end)
        return TriplesBlock(begin, end, reads(b.bvo, EVERY, x, EVERY), reads(b.bvv, EVERY, x, EVERY))

    def _made(
        self, blocks: Mapping[str, TriplesBlock], pairs: Mapping[str, tuple[TriplesBlock, TriplesBlock]]
    ) -> tuple[list[Single], list[Pair]]:
        """Arguments of the kernel for blocks, and for pairs of blocks; valid until others of the same name are
        made. All threads make them."""
        jobs: list[Callable[[], Pair]] = []
        for name, x in blocks.items():
            jobs += [partial(self._amplitudes, name, x), partial(self._integrals, name, x)]
        for name, (x, y) in pairs.items():
            jobs += [
                partial(self._ordered, (name, "yx"), y.bvv, x.bvo, (2, 0, 1, 3)),  # of [y,d,x,i]
                partial(self._ordered, (name, "xy"), x.bvv, y.bvo, (0, 2, 1, 3)),  # of [x,d,y,i]
                partial(self._of_both, name, x, y),
            ]
        found: list[Pair] = [()] * len(jobs)

        def work(_: int, number: int) -> None:
            found[number] = jobs[number]()

        team.each(range(len(jobs)), self._room.threads, work)
        singles = [
            (*found[2 * n], *found[2 * n + 1], *self._orbitals(x)) for n, x in enumerate(blocks.values())
        ]
        rest = found[2 * len(blocks) :]
        return singles, [
            (*one, *other, *both) for one, other, both in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        ]

    def _amplitudes(self, name: str, x: TriplesBlock) -> Pair:
        """t_jk^dx as [x][j][d][k] and as [x][k][d][j]."""
        t = self._reads(self._equations.t2, EVERY, EVERY, x.range, EVERY)  # [d,j,x,k]
        return (
            self._padded((name, "t"), t.transpose(2, 1, 0, 3)),
            self._padded((name, "turned"), t.transpose(2, 3, 0, 1)),
        )

    def _integrals(self, name: str, x: TriplesBlock) -> Pair:
        """-(ix|lk) as [x][i][l][k] and as [x][l][k][i]."""
        found = self._product(x.bvo, self._boo)
        found *= -1.0
        turned = found.transpose(0, 2, 3, 1)
        return self._padded((name, "g"), found), self._padded((name, "turned g"), turned)

    def _orbitals(self, x: TriplesBlock) -> tuple[Values, Values, Values]:
        """t1, Fock elements, energies."""
        virtual = slice(self._o + x.begin, self._o + x.end)
        return (
            np.ascontiguousarray(self._t1[:, x.begin : x.end].T),
            np.ascontiguousarray(self._fock[: self._o, virtual].T),
            np.ascontiguousarray(np.diag(self._fock)[virtual]),
        )

    def _of_both(self, name: str, x: TriplesBlock, y: TriplesBlock) -> Pair:
        """t_ij^xy as [x][y][i][j] and as [x][y][j][i], and (ix|jy) as [x][y][i][j]."""
        t = self._reads(self._equations.t2, x.range, EVERY, y.range, EVERY)  # [x,i,y,j]
        return (
            self._padded((name, "t"), t.transpose(0, 2, 1, 3)),
            self._padded((name, "turned"), t.transpose(0, 2, 3, 1)),
            *self._ordered((name, "g"), x.bvo, y.bvo, (0, 2, 1, 3)),
        )

    def _ordered(self, key: tuple[str, str], left: Values, right: Values, axes: tuple[int, ...]) -> Pair:
        """A product of three-index integrals with its axes in another order."""
        return (self._padded(key, self._product(left, right).transpose(axes)),)

    def _product(self, left: Values, right: Values) -> Values:
        """As `four_index`; valid until this thread makes another."""
        return four_index(left, right, self._products, signs=self._room.signs)

    def _padded(self, key: tuple[str, str], given: Values) -> Values:
        """A copy in which the last index, an occupied orbital, has room for more."""
        occupied = given.shape[-1]
        room = self._given.take(key, (*given.shape[:-1], padded(occupied)))
        room[..., :occupied] = given
        return room


class TriplesBlock(NamedTuple):
    """A range of virtual orbitals x, with its B[Q,x,i] and B[Q,x,d]."""

    begin: int
    end: int
    bvo: Values
    bvv: Values

    @property
    def size(self) -> int:
        return self.end - self.begin

    @property
    def range(self) -> slice:
        return slice(self.begin, self.end)
