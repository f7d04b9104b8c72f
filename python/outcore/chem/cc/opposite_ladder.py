"""The particle-particle ladder of amplitudes of opposite spins, over all pairs of orbitals.

A_iJ^pQ = sum_cD t_iJ^cD (pc|QD)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.parallel import team
from outcore.parallel.tasks import Progress, tasks_of
from outcore.tensor.array import Array

if TYPE_CHECKING:
    from outcore.chem.cc.integrals import Integrals
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.spaces import Spaces
    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class OppositeLadder:
    """Integrals V[p,q,c,d] = (pc|qd), and their product. Collective. `stored`: see Ladder."""

    def __init__(
        self, room: Room, spaces: Sequence[Spaces], integrals: Sequence[Integrals], *, stored: bool
    ) -> None:
        self._room, self._spaces, self._integrals = room, spaces, integrals
        self._product = room.array("Aab")
        if stored:
            self.integrals = room.array("Vab")
        else:
            a, b = spaces
            self.integrals = Array.generated(room.world, (a.all, b.all, a.v, b.v), self._made)

    def build(self, progress: Progress | None = None) -> None:
        """Makes the integrals that are stored."""
        if self.integrals.where == "generated":
            return
        tiles = self.integrals.layout.stored
        counter, chunk = self._room.world.counter(), len(self._spaces[0].v) * len(self._spaces[1].v)
        with self._room.world.together("ladder integrals"):
            for row in tasks_of(counter, len(tiles) // chunk):

                def make(_: int, tile: Tile) -> None:
                    self.integrals.put_tile(tile, self.tile(tile))

                team.each(tiles[row * chunk : (row + 1) * chunk], self._room.threads, make)
                if progress is not None:
                    progress((row + 1) * chunk / len(tiles))
        self.integrals.sync()

    def tile(self, tile: Tile) -> Values:
        p, q, c, d = tile
        left, right = self._integrals[0].block(p, c), self._integrals[1].block(q, d)
        rows = len(left)
        flat = left.reshape(rows, -1).T @ right.reshape(rows, -1)
        whole = flat.reshape(*left.shape[1:], *right.shape[1:])  # [p,c,q,d]
        return np.ascontiguousarray(whole.transpose(0, 2, 1, 3))

    def _made(self, box: tuple[slice, ...]) -> Values:
        cuts = [axis.cuts for axis in self.integrals.layout.tilings]
        return self.tile(tuple(each.index(part.start) for each, part in zip(cuts, box, strict=True)))

    def contract(self, t2: Array) -> None:
        """A of amplitudes [a,i,b,j]."""
        self._room.contract("pqcd,cidj->piqj", self.integrals, t2, out=self._product)

    def block(self, p: int, q: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks of all orbitals."""
        return self._product.get_tile((p, 0, q, 0))
