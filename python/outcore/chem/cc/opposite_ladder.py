"""The particle-particle ladder of amplitudes of opposite spins, over all pairs of orbitals.

A_iJ^pQ = sum_cD t_iJ^cD (pc|QD)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc import stream
from outcore.chem.cc.buffers import ThreadBuffers
from outcore.chem.cc.integrals import four_index
from outcore.chem.cc.steps import Steps
from outcore.parallel import team
from outcore.parallel.tasks import Progress, each_task

if TYPE_CHECKING:
    from outcore.chem.cc.integrals import Integrals
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.spaces import Spaces
    from outcore.tensor.array import Array
    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class OppositeLadder:
    """Integrals V[p,q,c,d] = (pc|qd), and their product. Collective. `is_stored`, `waited_s`: see Ladder."""

    def __init__(
        self, room: Room, spaces: Sequence[Spaces], integrals: Sequence[Integrals], *, is_stored: bool
    ) -> None:
        self._room, self._spaces, self._integrals = room, spaces, integrals
        self._product = room.array("Aab")
        self.integrals = room.array("Vab") if is_stored else None
        self.waited_s = 0.0
        self._buffers = ThreadBuffers()
        self._blocks: list[Callable[[int, int], Values]] = [each.block for each in integrals]

    @property
    def _rows(self) -> int:
        return len(self._spaces[0].all) * len(self._spaces[1].all)

    @property
    def _columns(self) -> int:
        return len(self._spaces[0].v) * len(self._spaces[1].v)

    def _tile(self, row: int, column: int) -> Tile:
        """p, q, c, d."""
        return (*divmod(row, len(self._spaces[1].all)), *divmod(column, len(self._spaces[1].v)))

    def _product_tile(self, row: int, part: int) -> Tile:
        p, q, _, _ = self._tile(row, 0)
        return p, 0, q, part

    def build(self, progress: Progress | None = None) -> None:
        """Makes the integrals that are stored."""
        array = self.integrals
        if array is None:
            return
        counter = self._room.world.counter()
        half = self._room.plan.beside_made_bytes // 2
        self._blocks = [each.recent(half) for each in self._integrals]

        def make(_: int, task: int) -> None:
            row, column = divmod(task, self._columns)
            (values,) = self.tile(row, column)
            array.put_tile(self._tile(row, column), values)

        with self._room.world.together("ladder integrals"):
            each_task(counter, self._rows * self._columns, self._room.threads, make, progress)
        self._buffers.clear()
        self._blocks = [each.block for each in self._integrals]
        array.sync()

    def tile(self, row: int, column: int) -> list[Values]:
        """[p,q,c,d]; valid until this thread makes another."""
        p, q, c, d = self._tile(row, column)
        blocks = self._blocks[0](p, c), self._blocks[1](q, d)
        turned = four_index(*blocks, self._buffers, signs=self._room.signs).transpose(
            0, 2, 1, 3
        )  # of [p,c,q,d]
        found = self._buffers.take(1, turned.shape)
        found[...] = turned
        return [found]

    def contract(self, t2: Array, steps: Steps) -> None:
        """A of amplitudes [a,i,b,j]: of as many j at a time as the plan has in a tile of them; see Ladder."""
        self.waited_s = 0.0
        start = (
            stream.made(self.tile) if self.integrals is None else stream.stored([self.integrals], self._tile)
        )
        cuts, orbitals = self._product.layout.tilings[3].cuts, self._spaces[0].occupied
        rows = steps.rows({"Aab": self._product}, self._rows, len(cuts) - 1, self._product_tile)
        left = [len(rows.left(part)) / self._rows for part in range(len(cuts) - 1)]
        integrals = [] if self.integrals is None else [self.integrals]
        self._room.ladder_went_by(integrals, t2, [self._product], left)
        for part in range(len(cuts) - 1):
            if not left[part]:
                continue
            box = slice(*cuts[part : part + 2])

            def put(row: int, results: list[Values], part: int = part, box: slice = box) -> None:
                p, _, q, _ = tile = self._product_tile(row, part)
                sizes = [int(np.diff(each.all.cuts)[n]) for each, n in zip(self._spaces, (p, q), strict=True)]
                values = results[0].reshape(*sizes, orbitals, box.stop - box.start)
                self._product.put_tile(tile, values.transpose(0, 2, 1, 3))

            self.waited_s += stream.multiply(self._room, rows, part, start, [self._packed(t2, box)], put)
        self._buffers.clear()
        self._product.sync()

    def _packed(self, t2: Array, box: slice) -> list[Values]:
        """t of all i and some j, [cd][ij], by blocks c and d."""
        found: list[Values] = [np.empty(0)] * self._columns

        def pack(_: int, column: int) -> None:
            _, _, c, d = self._tile(0, column)
            values = t2.get_tile((c, 0, d, 0))[..., box].transpose(0, 2, 1, 3)  # [c,d,i,j]
            found[column] = np.ascontiguousarray(values).reshape(values.shape[0] * values.shape[1], -1)

        with self._room.world.together("pack amplitudes"):
            team.each(range(self._columns), self._room.threads, pack)
        return found

    def block(self, p: int, q: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks of all orbitals."""
        parts = range(len(self._product.layout.tilings[3]))
        return np.concatenate([self._product.get_tile((p, 0, q, part)) for part in parts], axis=3)
