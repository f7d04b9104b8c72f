"""Connected triple excitations of closed shells by perturbation theory, (T), in tiles of virtual orbitals.

Three blocks A >= B >= C of virtual orbitals are in memory at a time: amplitudes of each, and integrals of each
pair, which are made of three-index ones where they are needed. Canonical orbitals are needed.
"""

from __future__ import annotations

import errno
import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.chem.cc.kept import KeptTriples
from outcore.parallel import team
from outcore.parallel.tasks import Progress, tasks_of

if TYPE_CHECKING:
    from outcore.chem.cc.restricted import RestrictedEquations
    from outcore.keep.stages import Stage

Values = np.ndarray[Any, np.dtype[Any]]
Range = tuple[int, int]

_DOUBLE = 8
_LARGEST_BLOCK = 32
_CANONICAL = 1e-5  # Hartree: off-diagonal Fock elements below it are what an SCF leaves


def block_bytes(occupied: int, virtual: int, auxiliary: int, block: int) -> int:
    """What three blocks of so many virtual orbitals take, with the one that is being made."""
    o, v = occupied, virtual
    singles = 4 * block * (o * o * v + o**3)
    doubles = block * block * o * (6 * v + 6 * o)
    three_index = 3 * auxiliary * block * (v + o) + auxiliary * o * o
    return int(_DOUBLE * (singles + doubles + three_index))


def largest_block(occupied: int, virtual: int, auxiliary: int, free_bytes: int, processes: int) -> int:
    """Virtual orbitals of a block, in memory that is free. Raises OutcoreError (ENOMEM)."""
    least = block_bytes(occupied, virtual, auxiliary, 1)
    if least > free_bytes:
        raise OutcoreError(
            errno.ENOMEM,
            "triple excitations",
            detail=f"{occupied} occupied and {virtual} virtual orbitals need {least / 1e6:.0f} MB in each process, "
            f"but {max(0, free_bytes) / 1e6:.0f} MB are free",
        )
    most = min(_LARGEST_BLOCK, -(-virtual // max(1, round(2 * math.sqrt(processes)))))
    while most > 1 and block_bytes(occupied, virtual, auxiliary, most) > free_bytes:
        most -= 1
    return most


class Triples:
    """The energy of (T) of converged amplitudes. Collective.

    Raises OutcoreError: EINVAL (orbitals that are not canonical), ENOMEM.
    """

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
        """stage: where energies of tasks are kept, of amplitudes with this stamp."""
        self._equations, self._room = equations, equations.room
        spaces = equations.spaces
        self._o, self._v = spaces.occupied, spaces.virtual
        self._fock, self._t1 = equations.fock, t1
        auxiliary = equations.integrals.boo.shape[0]
        with self._room.world.together("triple excitations"):
            self._check_canonical()
            size = largest_block(self._o, self._v, auxiliary, free_bytes, self._room.world.size)
        most = size
        size = size if block is None else min(size, block)
        count = -(-self._v // size)
        cuts = [self._v * n // count for n in range(count + 1)]
        self._stage, self._stamp = stage, stamp
        self.blocks: list[Range] = list(pairwise(cuts))
        if stage is not None:
            found = KeptTriples.blocks_of(stage, stamp)
            if found is not None and all(end - begin <= most for begin, end in found):
                self.blocks = [(begin, end) for begin, end in found]
        count = len(self.blocks)
        self.tasks = sorted(
            ((a, b) for a in range(count) for b in range(a + 1)), key=lambda task: -(task[1] + 1)
        )
        """Pairs of blocks A >= B, each with all C <= B; those with most work first."""

    def _check_canonical(self) -> None:
        o = self._o
        for box in (slice(0, o), slice(o, None)):
            inside = self._fock[box, box]
            off = abs(inside - np.diag(np.diag(inside))).max(initial=0.0)
            if off > _CANONICAL:
                raise OutcoreError(
                    errno.EINVAL,
                    "triple excitations",
                    detail=f"the orbitals are not canonical: the Fock matrix has off-diagonal elements of "
                    f"{off:.1e} Eh; take those of the SCF",
                )

    def run(self, progress: Progress | None = None) -> float:
        """The energy (Hartree)."""
        world = self._room.world
        blocks = [list(block) for block in self.blocks]
        done = KeptTriples(world, len(self.tasks), self._stage, self._stamp, blocks)
        left = np.flatnonzero(done.before[1] == 0)
        stream = tasks_of(world.counter(), len(left))
        self._boo = self._equations.integrals.boo.get_tile((0, 0, 0))
        while done.more():
            deadline = done.deadline()
            with world.together("triple excitations"):
                done.exhausted = True
                for number in stream:
                    done.finish(int(left[number]), self._task(*self.tasks[left[number]]))
                    if progress is not None:
                        progress((number + 1) / len(left))
                    if time.monotonic() > deadline:
                        done.exhausted = False
                        break
        return done.result()

    def _task(self, a: int, b: int) -> float:
        of_a = self._single(a)
        of_b = of_a if a == b else self._single(b)
        of_ab = self._pair(a, b)
        sums = np.zeros(self._room.threads)
        for c in range(b + 1):
            of_c = of_a if c == a else of_b if c == b else self._single(c)
            of_ac = of_ab if c == b else self._pair(a, c)
            of_bc = of_ab if c == a else of_ac if a == b else self._pair(b, c)
            rows = [(i, j) for i in range(of_a[4].size) for j in range(of_b[4].size) if a != b or j <= i]

            def work(
                thread: int,
                row: tuple[int, int],
                of_c: Any = of_c,
                of_ac: Any = of_ac,
                of_bc: Any = of_bc,
                c: int = c,
            ) -> None:
                sums[thread] += _core.triples_energy(
                    self._energies, self._v, *row, of_a, of_b, of_c, of_ab, of_ac, of_bc, a == b, b == c
                )

            team.each(rows[::-1], self._room.threads, work)
        return float(sums.sum())

    @property
    def _energies(self) -> Values:
        return np.ascontiguousarray(np.diag(self._fock)[: self._o])

    # ---- blocks ----

    def _single(self, block: int) -> tuple[Values, Values, Values, Values, Values]:
        """Of a block x: [x][d][j][k] of t_jk^dx, [x][i][j][l] of -(ix|jl), t1, Fock elements, energies."""
        begin, end = self.blocks[block]
        o = self._o
        t = self._equations.t2[:, :, begin:end, :]  # [d,j,x,k]
        amplitudes = np.ascontiguousarray(t.transpose(2, 0, 1, 3))
        bvo = self._rows(begin, end)
        q = len(bvo)
        integrals = bvo.reshape(q, -1).T @ self._boo.reshape(q, -1)
        integrals *= -1.0
        virtual = slice(o + begin, o + end)
        return (
            amplitudes,
            integrals.reshape(end - begin, o, o, o),
            np.ascontiguousarray(self._t1[:, begin:end].T),
            np.ascontiguousarray(self._fock[:o, virtual].T),
            np.ascontiguousarray(np.diag(self._fock)[virtual]),
        )

    def _pair(self, first: int, second: int) -> tuple[Values, Values, Values, Values]:
        """Of blocks x and y: [x][y][i][d] of (ix|yd) and of (iy|xd), [x][y][i][j] of t_ij^xy and of (ix|jy)."""
        (a0, a1), (b0, b1) = self.blocks[first], self.blocks[second]
        b = self._equations.integrals
        x, y = self._rows(a0, a1), self._rows(b0, b1)
        forward = _product(x, b.bvv[:, b0:b1, :])  # [x,i,y,d]
        turned = _product(y, b.bvv[:, a0:a1, :])  # [y,i,x,d]
        return (
            np.ascontiguousarray(forward.transpose(0, 2, 1, 3)),
            np.ascontiguousarray(turned.transpose(2, 0, 1, 3)),
            np.ascontiguousarray(self._equations.t2[a0:a1, :, b0:b1, :].transpose(0, 2, 1, 3)),
            np.ascontiguousarray(_product(x, y).transpose(0, 2, 1, 3)),
        )

    def _rows(self, begin: int, end: int) -> Values:
        """B[Q,x,i] of some virtual orbitals."""
        found: Values = self._equations.integrals.bvo[:, begin:end, :]
        return found


def _product(left: Values, right: Values) -> Values:
    """sum_Q left[Q,p,q] right[Q,r,s] as [p,q,r,s]."""
    flat = left.reshape(len(left), -1).T @ right.reshape(len(right), -1)
    return flat.reshape(*left.shape[1:], *right.shape[1:])
