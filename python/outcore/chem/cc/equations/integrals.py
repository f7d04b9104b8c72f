"""Three-index integrals B[Q,pq] of molecular orbitals: (pq|rs) = sum_Q B[Q,pq] B[Q,rs], as extended arrays.

They are made from rows X[K, pq], one for each function K of a set, and a metric; Cholesky vectors are B themselves,
and need no metric.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.parallel.tasks import Progress, each_task

if TYPE_CHECKING:
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.buffers import Buffers
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.chem.ri.source import Source
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

_DOUBLE = 8


def transform_space(sizes: Sizes, threads: int, tile: int) -> float:
    """The work space of `_transform`: in each thread, rows of pairs of functions and of orbitals."""
    most = max(b - a for a, b in pairwise(sizes.cuts))
    return float(_DOUBLE * most * 4 * sizes.functions**2 * threads)


def fit_space(sizes: Sizes, threads: int, tile: int) -> float:
    """The work space of `Integrals._fit`: in each thread, the rows of a tile of pairs, fitted and spread; once
    those of occupied pairs; or the metric."""
    o, q = max(sizes.occupied), sizes.auxiliary
    rows, pairs = tile * max(o, tile), o * (o + 1) // 2
    return float(_DOUBLE * max(3 * q * (rows * threads + pairs), q * q))


def dress_space(sizes: Sizes, threads: int, tile: int) -> float:
    """The work space of `Integrals.dress`: in each thread, B[Q,c,l], and tiles [Q,c,a] before and after."""
    return float(_DOUBLE * sizes.auxiliary * tile * (max(sizes.occupied) + 4 * tile) * threads)


class Integrals:
    """B of one spin: `boo` [Q,k,i], `bvo` [Q,a,i], `bvv` [Q,a,c]. Collective.

    Raises OutcoreError: ENOMEM, ENOSPC.
    """

    def __init__(self, room: Room, spaces: Spaces, name: str = "") -> None:
        self._room, self.spaces = room, spaces
        self.boo, self.bvo, self.bvv = (room.array(f"{each}{name}") for each in ("Boo", "Bvo", "Bvv"))

    @classmethod
    def build(
        cls,
        room: Room,
        spaces: Spaces,
        source: Source,
        coefficients: Values,
        name: str = "",
        progress: Progress | None = None,
    ) -> Integrals:
        """Makes the integrals of orbitals [n][occupied, virtual]: rows first, which are then fitted in columns."""
        rows = room.array(f"rows{name}")
        _transform(room, spaces, source, coefficients, rows, progress)
        made = cls(room, spaces, name)
        made._fit(source, rows)
        room.release(rows)
        return made

    def _fit(self, source: Source, rows: Array) -> None:
        room, pairs = self._room, self.spaces.all_pairs
        counter = room.world.counter()

        def fit(_: int, tile: int) -> None:
            block = np.concatenate([rows.get_tile((k, tile)) for k in range(len(source.cuts) - 1)])
            p, r = pairs.blocks[tile]
            b = source.fit(block).T
            spread = np.ascontiguousarray(pairs.spread(tile, b).transpose(2, 0, 1))
            if r == 0:
                self.boo.put_tile((0, 0, 0), spread)
            elif p == 0:
                self.bvo.put_tile((0, r - 1, 0), spread.transpose(0, 2, 1))
            else:
                self.bvv.put_tile((0, p - 1, r - 1), spread)

        with room.world.together("fit integrals"):
            each_task(counter, len(pairs.blocks), room.threads, fit)
        for array in (self.boo, self.bvo, self.bvv):
            array.sync()

    def block(self, p: int, c: int) -> Values:
        """B[Q,p,c] of a block p of all orbitals (0: occupied ones) and a block c of virtual ones."""
        if p == 0:
            return np.ascontiguousarray(self.bvo.get_tile((0, c, 0)).transpose(0, 2, 1))
        return self.bvv.get_tile((0, p - 1, c))

    def recent(self, limit_bytes: int) -> Callable[[int, int], Values]:
        """`block`, for tasks that ask for the same blocks again and again: if integrals lie on disk, the blocks
        that were read last stay in `limit_bytes` of memory."""
        return _Recent(self, limit_bytes) if self.bvv.where == "disk" else self.block

    def dress(self, t1: Values | None, out: Array, more: Values | None = None) -> None:
        """Puts B[Q,ca] - sum_l B[Q,cl] t1[l,a] into `out` [Q,c,a], without the sum if there are no singles; behind
        them the rows `more` [.,c,a]."""
        v = self.spaces.v

        def row(c: int, tiles: list[Tile]) -> None:
            bvo = None if t1 is None else self.bvo.get_tile((0, c, 0))
            for tile in tiles:
                c_box, a_box = (slice(*v.cuts[n : n + 2]) for n in tile[1:])
                plain = self.bvv.get_tile(tile)
                rows, further = len(plain), 0 if more is None else len(more)
                dressed = np.empty((rows + further, *plain.shape[1:]))
                if bvo is None or t1 is None:
                    dressed[:rows] = plain
                else:
                    np.matmul(bvo, t1[:, a_box], out=dressed[:rows])
                    np.subtract(plain, dressed[:rows], out=dressed[:rows])
                if more is not None:
                    dressed[rows:] = more[:, c_box, a_box]
                out.put_tile(tile, dressed)

        space = partial(dress_space, self._room.sizes, self._room.threads)
        self._room.each_row(out, 1, row, "dress integrals", held=0, beside=space)

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.boo, self.bvo, self.bvv

    def close(self) -> None:
        self._room.release(*self.arrays)


class _Recent:
    """The blocks that were read last. Any thread."""

    def __init__(self, integrals: Integrals, limit_bytes: int) -> None:
        self._integrals, self._left = integrals, limit_bytes
        self._blocks: OrderedDict[tuple[int, int], Values] = OrderedDict()
        self._guard = threading.Lock()

    def __call__(self, p: int, c: int) -> Values:
        with self._guard:
            if (p, c) in self._blocks:
                self._blocks.move_to_end((p, c))
                return self._blocks[p, c]
        found = self._integrals.block(p, c)
        with self._guard:
            if (p, c) not in self._blocks:
                self._blocks[p, c] = found
                self._left -= found.nbytes
            while self._left < 0:
                self._left += self._blocks.popitem(last=False)[1].nbytes
        return found


def _transform(
    room: Room,
    spaces: Spaces,
    source: Source,
    coefficients: Values,
    out: Array,
    progress: Progress | None,
) -> None:
    """Makes rows of molecular orbitals, in pieces that processes and threads take one after another."""
    pairs, cuts = spaces.all_pairs, spaces.cuts
    counter = room.world.counter()

    def work(_: int, piece: int) -> None:
        half = source.matrices(piece) @ coefficients
        whole = np.matmul(coefficients.T, half)
        for tile, (p, r) in enumerate(pairs.blocks):
            box = whole[:, cuts[p] : cuts[p + 1], cuts[r] : cuts[r + 1]].transpose(1, 2, 0)
            out.put_tile((piece, tile), np.ascontiguousarray(pairs.rows(tile, box).T))

    with room.world.together("transform integrals"):
        each_task(counter, len(source.cuts) - 1, room.threads, work, progress)
    out.sync()


def four_index(
    left: Values, right: Values, buffers: Buffers, number: int = 0, *, signs: Values | None
) -> Values:
    """sum_Q s_Q left[Q,p,c] right[Q,q,d] as [p,c,q,d], in a buffer; signs None: all s_Q are 1."""
    rows = left.shape[0]
    if signs is not None:
        left = left * signs[:, None, None]
    one, other = left.reshape(rows, -1), right.reshape(rows, -1)
    flat = np.matmul(one.T, other, out=buffers.take(number, (one.shape[1], other.shape[1])))
    return flat.reshape(*left.shape[1:], *right.shape[1:])
