"""Connected triple excitations of open shells by perturbation theory, (T), in tiles of virtual orbitals.

There are triples of one spin, and triples of two orbitals a, b of one spin s and one c of the other spin r. Three
blocks of virtual orbitals are in memory at a time: amplitudes of each, and integrals of each pair, which are made
from three-index ones where they are needed. Forms of both are those of chem/cc/open_triples.hpp. Semicanonical
orbitals are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore import _core
from outcore.chem.cc.equations.triple_tasks import EVERY, TripleTasks, product
from outcore.chem.cc.plan.triple_sizes import TripleOperands, has_tasks
from outcore.parallel import team

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.equations.triple_tasks import CountingReader
    from outcore.chem.cc.equations.unrestricted import UnrestrictedEquations
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.plan.triple_sizes import Range
    from outcore.keep.stages import Stage
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]
Task = tuple[bool, int, int, int]  # whether c is of the other spin, spin of a and b, their blocks


class OpenTriplesOf(NamedTuple):
    """The input of (T): for each spin integrals, amplitudes, and a Fock matrix whose blocks are diagonal."""

    room: Room
    spaces: Sequence[Spaces]
    integrals: Sequence[Integrals]
    same: Sequence[Array]
    mixed: Array
    fock: Sequence[Values]


class OpenTriples(TripleTasks):
    """The energy of (T) of converged amplitudes. Collective.

    Raises OutcoreError (ENOMEM).
    """

    def __init__(
        self,
        equations: UnrestrictedEquations | OpenTriplesOf,
        singles: Sequence[Values],
        free_bytes: int,
        block: int | None = None,
        *,
        stage: Stage | None = None,
        stamp: str = "",
    ) -> None:
        auxiliary = equations.integrals[0].boo.shape[0]
        super().__init__(equations.room, equations.spaces, auxiliary, free_bytes, block, stage, stamp)
        self._equations, self._singles = equations, singles
        self._order()

    def _order(self) -> None:
        tasks = [task for s in (0, 1) for task in self._tasks(s)]
        self.tasks: list[Any] = sorted(tasks, key=lambda task: -self._work(task))
        """Pairs of blocks A >= B, each with all C <= B of the same spin, or with all of the other one."""

    def _tasks(self, s: int) -> Iterable[Task]:
        spaces = self._equations.spaces
        pairs = [(a, b) for a in range(len(self.blocks[s])) for b in range(a + 1)]
        for mixed, least in ((False, 3), (True, 2)):
            if has_tasks(spaces[s].occupied, spaces[s].virtual, least):
                yield from ((mixed, s, a, b) for a, b in pairs)

    def _work(self, task: Task) -> int:
        mixed, s, _, b = task
        return 2 * self._equations.spaces[1 - s].virtual if mixed else self.blocks[s][b][1]

    @property
    def operands(self) -> TripleOperands:
        of, integrals = self._equations, self._equations.integrals
        boo, bvo, bvv = zip(*(each.arrays for each in integrals), strict=True)
        return TripleOperands(tuple(of.same), boo, bvo, bvv, of.mixed)

    def _begin(self) -> None:
        spaces, reads = self._equations.spaces, self._reads
        boo = [reads(each.boo, EVERY, EVERY, EVERY) for each in self._equations.integrals]
        self._spins = [SpinBlocks(self._equations, self._singles, boo, s, reads) for s in (0, 1)]
        self._energies = [
            np.ascontiguousarray(np.diag(fock)[: each.occupied])
            for fock, each in zip(self._equations.fock, spaces, strict=True)
        ]

    def _end(self) -> None:
        del self._spins

    def _task(self, task: Task) -> float:
        mixed, s, a, b = task
        (a0, a1), (b0, b1) = self.blocks[s][a], self.blocks[s][b]
        rows = [(i, j) for i in range(a1 - a0) for j in range(b1 - b0) if a != b or j < i][::-1]
        if not rows:
            return 0.0
        of = self._spins[s]
        of_a = of.block(self.blocks[s][a], mixed=mixed)
        of_b = of_a if a == b else of.block(self.blocks[s][b], mixed=mixed)
        of_ab = of.same_pair(of_a, of_b)
        if mixed:
            return self._mixed(s, rows, of_a, of_b, of_ab)
        orbitals, total = (self._energies[s], of.virtual), 0.0
        for c in range(b + 1):
            of_c = of_a if c == a else of_b if c == b else of.block(self.blocks[s][c], mixed=False)
            of_ac = of_ab if c == b else of.same_pair(of_a, of_c)
            of_bc = of_ab if c == a else of_ac if a == b else of.same_pair(of_b, of_c)
            given = (of_a.given, of_b.given, of_c.given, of_ab, of_ac, of_bc, a == b, b == c)
            total += self._sum(_core.same_spin_triples, orbitals, rows, given)
        return total

    def _mixed(self, s: int, rows: list[Range], of_a: OpenBlock, of_b: OpenBlock, of_ab: Any) -> float:
        of, r, total = self._spins[s], 1 - s, 0.0
        orbitals = (self._energies[s], of.virtual, self._energies[r], self._spins[r].virtual)
        for c in self.blocks[r]:
            of_c = of.other_block(c)
            of_ac = of.mixed_pair(of_a, of_c)
            of_bc = of_ac if of_a is of_b else of.mixed_pair(of_b, of_c)
            given = (of_a.given, of_b.given, of_c.given, of_ab, of_ac, of_bc, of_a is of_b)
            total += self._sum(_core.mixed_spin_triples, orbitals, rows, given)
        return total

    def _sum(
        self,
        kernel: Callable[..., float],
        orbitals: tuple[Any, ...],
        rows: list[Range],
        given: tuple[Any, ...],
    ) -> float:
        """The energy of orbitals a and b in `rows`, by all threads."""
        sums = np.zeros(self._room.threads)

        def work(thread: int, row: Range) -> None:
            sums[thread] += kernel(*orbitals, *row, *given)

        team.each(rows, self._room.threads, work)
        return float(sums.sum())


@dataclass(frozen=True)
class OpenBlock:
    """Virtual orbitals x: their range, three-index integrals B[Q,x,i] and B[Q,x,d] of their spin, and the arguments
    of the kernel."""

    range: Range
    bvo: Values
    bvv: Values
    given: tuple[Values, Values, Values, Values, Values]

    @property
    def count(self) -> int:
        return self.range[1] - self.range[0]


class SpinBlocks:
    """Blocks of virtual orbitals of spin s, and of the other spin r as the third ones beside two of s."""

    def __init__(
        self,
        equations: UnrestrictedEquations | OpenTriplesOf,
        singles: Sequence[Values],
        boo: Sequence[Values],
        s: int,
        reads: CountingReader,
    ) -> None:
        self._s, self._r, self._reads = s, 1 - s, reads
        self._equations, self._singles, self._boo = equations, singles, boo
        self.occupied, self.virtual = equations.spaces[s].occupied, equations.spaces[s].virtual
        self._first, self._second = np.tril_indices(self.occupied, -1)

    def _product(self, left: Values, right: Values) -> Values:
        return product(left, right, self._equations.room.signs)

    def _pairs(self, x: Values) -> Values:
        """[..][i][j] as [..][pairs], i > j."""
        return np.ascontiguousarray(x[..., self._first, self._second])

    def _antisymmetric(self, x: Values) -> Values:
        """[..][i][j] less [..][j][i], as [..][pairs]."""
        return np.ascontiguousarray(x[..., self._first, self._second] - x[..., self._second, self._first])

    def _mixed_amplitudes(self, x: slice, z: slice) -> Values:
        """t_ik^xz of x of spin s and z of spin r, as [x][z][i][k]."""
        t = self._equations.mixed
        if self._s == 0:
            return self._reads(t, x, EVERY, z, EVERY).transpose(0, 2, 1, 3)
        return self._reads(t, z, EVERY, x, EVERY).transpose(2, 0, 3, 1)

    def _of(self, spin: int, of: Range, make: Callable[[Range, Values], tuple[Values, Values]]) -> OpenBlock:
        begin, end = of
        integrals, o = self._equations.integrals[spin], self._equations.spaces[spin].occupied
        fock, virtual = self._equations.fock[spin], slice(o + begin, o + end)
        bvo, bvv = (
            self._reads(each, EVERY, slice(begin, end), EVERY) for each in (integrals.bvo, integrals.bvv)
        )
        given = (
            *make((begin, end), bvo),
            np.ascontiguousarray(self._singles[spin][:, begin:end].T),
            np.ascontiguousarray(fock[:o, virtual].T),
            np.ascontiguousarray(np.diag(fock)[virtual]),
        )
        return OpenBlock((begin, end), bvo, bvv, given)

    def block(self, of: Range, *, mixed: bool) -> OpenBlock:
        """A block of spin s. `mixed`: for triples that are not of one spin."""

        def make(of: Range, bvo: Values) -> tuple[Values, Values]:
            x = slice(*of)
            doubles = self._equations.same[self._s]
            t = self._reads(doubles, x, EVERY, EVERY, EVERY).transpose(0, 2, 1, 3)  # [x,d,i,j]
            g = self._product(bvo, self._boo[self._s]).transpose(0, 2, 3, 1)  # [x,l,i,j] of (li|jx)
            same = np.concatenate([self._pairs(t), self._antisymmetric(g)], axis=1)
            if not mixed:
                return same, np.zeros((0, 0, 0, 0))
            every = slice(0, self._equations.spaces[self._r].virtual)
            t = self._mixed_amplitudes(x, every)  # [x,D,i,k]
            g = self._product(bvo, self._boo[self._r]).transpose(0, 2, 1, 3)  # [x,L,i,k] of (Lk|ix)
            return same, np.concatenate([t, g], axis=1)

        return self._of(self._s, of, make)

    def other_block(self, of: Range) -> OpenBlock:
        """A block of spin r, beside two orbitals of s."""

        def make(of: Range, bvo: Values) -> tuple[Values, Values]:
            t = self._mixed_amplitudes(slice(0, self.virtual), slice(*of)).transpose(1, 0, 2, 3)  # [z,d,i,k]
            g = self._product(bvo, self._boo[self._s]).transpose(0, 2, 3, 1)  # [z,l,i,k] of (li|kz)
            return np.zeros((0, 0, 0)), np.concatenate([t, -g], axis=1)

        return self._of(self._r, of, make)

    def same_pair(self, x: OpenBlock, y: OpenBlock) -> tuple[Values, Values, Values]:
        """Arguments of the kernel for two blocks of spin s."""
        doubles = self._equations.same[self._s]
        t = self._reads(doubles, slice(*x.range), EVERY, slice(*y.range), EVERY).transpose(0, 2, 1, 3)
        integrals = self._product(y.bvo, x.bvv).transpose(2, 0, 1, 3)  # [x,y,i,d] of (iy|xd)
        integrals = integrals - self._product(x.bvo, y.bvv).transpose(0, 2, 1, 3)
        g = self._product(x.bvo, y.bvo).transpose(0, 2, 1, 3)  # [x,y,i,j] of (ix|jy)
        return np.concatenate([integrals, -t], axis=3), self._antisymmetric(g), self._pairs(t)

    def mixed_pair(self, x: OpenBlock, z: OpenBlock) -> tuple[Values, Values, Values, Values]:
        """Arguments of the kernel for a block of spin s and one of r."""
        t = self._mixed_amplitudes(slice(*x.range), slice(*z.range))  # [x,z,i,k]
        integrals = self._product(z.bvo, x.bvv).transpose(2, 0, 1, 3)  # [x,z,k,d] of (xd|kz)
        turned = self._product(x.bvo, z.bvv).transpose(0, 2, 1, 3)  # [x,z,i,D] of (ix|zD)
        return (
            np.concatenate([integrals, t.transpose(0, 1, 3, 2)], axis=3),
            np.concatenate([turned, -t], axis=3),
            np.ascontiguousarray(self._product(x.bvo, z.bvo).transpose(0, 2, 1, 3)),
            np.ascontiguousarray(t),
        )
