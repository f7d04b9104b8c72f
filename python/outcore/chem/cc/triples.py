"""Connected triple excitations of closed shells by perturbation theory, (T), in tiles of virtual orbitals.

Three blocks A >= B >= C of virtual orbitals are in memory at a time: amplitudes of each, and integrals of each
pair, which are made of three-index ones where they are needed. Orbitals that diagonalize the occupied and the
virtual block of the Fock matrix are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.chem.cc.triple_tasks import TripleTasks, product
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore.chem.cc.restricted import RestrictedEquations
    from outcore.keep.stages import Stage

Values = np.ndarray[Any, np.dtype[Any]]


class Triples(TripleTasks):
    """The energy of (T) of converged amplitudes. Collective.

    Raises OutcoreError (ENOMEM).
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
        begin, end = self.blocks[0][block]
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
        (a0, a1), (b0, b1) = self.blocks[0][first], self.blocks[0][second]
        b = self._equations.integrals
        x, y = self._rows(a0, a1), self._rows(b0, b1)
        forward = product(x, b.bvv[:, b0:b1, :])  # [x,i,y,d]
        turned = product(y, b.bvv[:, a0:a1, :])  # [y,i,x,d]
        return (
            np.ascontiguousarray(forward.transpose(0, 2, 1, 3)),
            np.ascontiguousarray(turned.transpose(2, 0, 1, 3)),
            np.ascontiguousarray(self._equations.t2[a0:a1, :, b0:b1, :].transpose(0, 2, 1, 3)),
            np.ascontiguousarray(product(x, y).transpose(0, 2, 1, 3)),
        )

    def _rows(self, begin: int, end: int) -> Values:
        """B[Q,x,i] of some virtual orbitals."""
        found: Values = self._equations.integrals.bvo[:, begin:end, :]
        return found
