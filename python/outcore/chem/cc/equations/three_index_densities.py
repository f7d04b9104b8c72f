"""Parts that three-index densities of closed and of open shells share: the ladder's part, and symmetry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.plan.ladder_kernels import LadderDensity
from outcore.parallel.tasks import each_task

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]
Block = Callable[[int, int], Values]


@dataclass(frozen=True)
class ThreeIndexDensity:
    """Gamma [Q,i,j], [Q,a,i], [Q,a,b] of one spin, or of both of closed shells, and B of the same orbitals."""

    oo: Array
    vo: Array
    vv: Array
    integrals: Integrals


class LadderOfDensity:
    """Adds f sum_ijqd A_ij^pq t_ij^cd B[Q,qd] of all p and virtual c to `ov` [Q,c,k] and `vv` [Q,p,c], by blocks of
    p and as many blocks of c as there is room for.

    Args:
        dressed: A of blocks p and q of all orbitals, as [p,i,q,j].
        doubles: t of blocks c and d of virtual ones, as [c,i,d,j].
        read: the arrays that these two read.
        first, second: integrals of the orbitals p and c, and of q and d.
        factor: f.
    """

    def __init__(
        self,
        room: Room,
        dressed: Block,
        doubles: Block,
        read: tuple[Array, Array],
        first: Integrals,
        second: Integrals,
        ov: Array,
        vv: Array,
        factor: float,
    ) -> None:
        self._room, self._dressed, self._doubles = room, dressed, doubles
        self._first, self._second = first.spaces, second
        self._ov, self._vv, self._factor = ov, vv, factor
        block = max(first.bvv.layout.tilings[1].sizes)
        integrals = second.bvo, second.bvv
        self._kernel = LadderDensity(room.sizes, block, room.threads, *read, integrals, (ov, vv))

    def run(self) -> None:
        """Collective."""
        room, kernel = self._room, self._kernel
        room.kernel(kernel, lambda: self._run(kernel.blocks_at_once(room.plan.work_bytes)))

    def _run(self, count: int) -> list[float]:
        room, spaces = self._room, self._first
        blocks = len(spaces.v)
        parts = [range(begin, min(begin + count, blocks)) for begin in range(0, blocks, count)]
        tasks = [(p, part) for p in range(len(spaces.all)) for part in parts]
        counter = room.world.counter()

        def make(_: int, number: int) -> None:
            p, part = tasks[number]
            found = self._part(p, part)  # [Q,p,c]
            begin = spaces.v.cuts[part.start]
            for block in part:
                c = slice(spaces.v.cuts[block] - begin, spaces.v.cuts[block + 1] - begin)
                if p == 0:
                    self._ov.acc_tile((0, block, 0), np.ascontiguousarray(found[:, :, c].transpose(0, 2, 1)))
                else:
                    self._vv.acc_tile((0, p - 1, block), np.ascontiguousarray(found[:, :, c]))

        with room.world.together("densities of the ladder"):
            each_task(counter, len(tasks), room.threads, make)
        self._ov.sync()
        self._vv.sync()
        return [1.0] * len(parts)

    def _part(self, p: int, part: range) -> Values:
        first, second = self._first, self._second.spaces
        square = first.occupied * second.occupied
        rows, sizes = int(np.diff(first.all.cuts)[p]), np.diff(second.all.cuts)
        width = first.v.cuts[part.stop] - first.v.cuts[part.start]
        found = np.zeros((self._second.boo.shape[0], rows * width))
        for q in range(len(second.all)):
            left = self._dressed(p, q).transpose(2, 0, 1, 3).reshape(-1, square)  # [q,p][i,j]
            for d in range(len(second.v)):
                right = [self._doubles(c, d).transpose(2, 0, 1, 3) for c in part]  # [d,c,i,j]
                length = len(right[0])
                amplitudes = np.concatenate(right, axis=1).reshape(-1, square)
                half = (left @ amplitudes.T).reshape(int(sizes[q]), rows, length, width)
                half = half.transpose(0, 2, 1, 3).reshape(-1, found.shape[1])  # [q,d][p,c]
                integrals = self._second.block(q, d)  # [Q,q,d]
                found += integrals.reshape(len(integrals), -1) @ half
        found *= self._factor
        return found.reshape(len(found), rows, width)


def symmetrize(room: Room, oo: Array, vo: Array, ov: Array, vv: Array) -> None:
    """Replaces each by its mean with its transpose; that of `vo` is `ov` [Q,c,k], which is given back.
    Collective."""

    def occupied(tile: Tile) -> None:
        values = oo.get_tile(tile)
        oo.put_tile(tile, 0.5 * (values + values.transpose(0, 2, 1)))

    def mixed(tile: Tile) -> None:
        vo.put_tile(tile, 0.5 * (vo.get_tile(tile) + ov.get_tile(tile)))

    def virtual(tile: Tile) -> None:  # tiles a <= b put both
        _, a, b = tile
        if a > b:
            return
        one, other = vv.get_tile((0, a, b)), vv.get_tile((0, b, a))
        mean = 0.5 * (one + other.transpose(0, 2, 1))
        vv.put_tile((0, a, b), mean)
        if a != b:
            vv.put_tile((0, b, a), np.ascontiguousarray(mean.transpose(0, 2, 1)))

    room.each_tile(oo, occupied, "densities")
    room.each_tile(vo, mixed, "densities")
    room.release(ov)
    room.each_tile(vv, virtual, "densities")
