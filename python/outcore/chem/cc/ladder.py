"""The particle-particle ladder over all pairs of orbitals, of sums and differences of half the length each.

    A_ij^pq = sum_cd t_ij^cd (pc|qd)
    t+-[cd,ij] = t_ij^cd +- t_ij^dc             c <= d, the sum halved for c = d; i >= j, the difference for i > j
    V+-[pq,cd] = (pc|qd) +- (pd|qc)             p <= q
    S = V+ t+,  D = V- t-                       [pq,ij]
    A_ij^pq = A_ji^qp = (S + D) / 2,  A_ij^qp = A_ji^pq = (S - D) / 2

p and q are all orbitals: integrals of one occupied orbital and of two come out of the same product, so none of
three or four virtual orbitals is needed anywhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.parallel import team
from outcore.parallel.tasks import Progress, tasks_of
from outcore.tensor import kernels
from outcore.tensor.array import Array

if TYPE_CHECKING:
    from outcore.chem.cc.integrals import Integrals
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.spaces import Spaces
    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class Ladder:
    """V+- of one spin, and the arrays around their products. Collective.

    Args:
        name: of the spin in the plan.
        signs: 0 for sums, 1 for differences, which are all that antisymmetric amplitudes have.
        stored: V+- are made once, and kept in single precision where the plan has them; else each tile is made
            again whenever it is read.
    """

    def __init__(
        self,
        room: Room,
        spaces: Spaces,
        integrals: Integrals,
        *,
        stored: bool,
        name: str = "",
        signs: tuple[int, ...] = (0, 1),
    ) -> None:
        self._room, self._spaces, self._integrals = room, spaces, integrals
        rows, columns = spaces.all_pairs.tiling, spaces.virtual_pairs.tiling
        self._signs = tuple(sign for sign in signs if sign == 0 or spaces.occupied > 1)
        self._amplitudes = [room.array(f"t{_NAMES[sign]}{name}") for sign in self._signs]
        self._products = [room.array(f"A{_NAMES[sign]}{name}") for sign in self._signs]
        if stored:
            self.integrals = [room.array(f"V{_NAMES[sign]}{name}") for sign in self._signs]
        else:
            made = _Made(self)
            self.integrals = [
                Array.generated(room.world, (rows, columns), made.function(sign)) for sign in self._signs
            ]

    # ---- integrals ----

    def build(self, progress: Progress | None = None) -> None:
        """Makes the integrals that are stored."""
        if not self.integrals or self.integrals[0].where == "generated":
            return
        world, pairs = self._room.world, self._spaces.all_pairs
        counter = world.counter()
        with world.together("ladder integrals"):
            for row in tasks_of(counter, len(pairs.blocks)):
                left, right = (self._panel(block) for block in pairs.blocks[row])

                def make(
                    _: int, column: int, row: int = row, left: Values = left, right: Values = right
                ) -> None:
                    both = self._tile(row, column, left, right)
                    for array, sign in zip(self.integrals, self._signs, strict=True):
                        array.put_tile((row, column), both[sign])

                team.each(range(len(self._spaces.virtual_pairs.blocks)), self._room.threads, make)
                if progress is not None:
                    progress((row + 1) / len(pairs.blocks))
        for array in self.integrals:
            array.sync()

    def _panel(self, block: int) -> Values:
        """B[Q, p, c] of a block of all orbitals."""
        blocks = range(len(self._spaces.v))
        return np.concatenate([self._integrals.block(block, c) for c in blocks], axis=2)

    def tile(self, row: int, column: int) -> tuple[Values, Values]:
        """A tile of V+ and one of V-, made of their three-index integrals."""
        p, r = self._spaces.all_pairs.blocks[row]
        c, d = self._spaces.virtual_pairs.blocks[column]
        read = self._integrals.block
        return self._packed(row, column, (read(p, c), read(r, d)), (read(p, d), read(r, c)))

    def _tile(self, row: int, column: int, left: Values, right: Values) -> tuple[Values, Values]:
        c, d = (slice(*self._spaces.v.cuts[b : b + 2]) for b in self._spaces.virtual_pairs.blocks[column])
        return self._packed(row, column, (left[:, :, c], right[:, :, d]), (left[:, :, d], right[:, :, c]))

    def _packed(
        self, row: int, column: int, direct: tuple[Values, Values], exchanged: tuple[Values, Values]
    ) -> tuple[Values, Values]:
        first = _product(*direct).transpose(0, 2, 1, 3)  # [p,q,c,d] of (pc|qd)
        second = _product(*exchanged).transpose(0, 2, 3, 1)  # of (pd|qc)
        first, second = (self._spaces.all_pairs.rows(row, np.ascontiguousarray(x)) for x in (first, second))
        turned = [np.ascontiguousarray(x.transpose(1, 2, 0)) for x in (first + second, first - second)]
        plus, minus = (self._spaces.virtual_pairs.rows(column, x).T for x in turned)
        return plus, minus

    # ---- products ----

    def contract(self, t2: Array) -> None:
        """S and D of amplitudes [a,i,b,j]."""
        pairs = self._spaces.virtual_pairs

        def pack(tile: Tile) -> None:
            c, d = pairs.blocks[tile[0]]
            values = t2.get_tile((c, 0, d, 0)).transpose(0, 2, 1, 3)  # [c,d,i,j]
            halves = kernels.pack_pairs(values)
            for sign, array in zip(self._signs, self._amplitudes, strict=True):
                rows = pairs.rows(tile[0], halves[sign])
                array.put_tile(tile, rows if sign else pairs.weighted(tile[0], rows))

        if not self._signs:
            return
        self._room.each_tile(self._amplitudes[0], pack, "pack amplitudes")
        for array in self._amplitudes[1:]:
            array.sync()
        for v, t, out in zip(self.integrals, self._amplitudes, self._products, strict=True):
            self._room.contract("xy,yz->xz", v, t, out=out)

    def block(self, p: int, r: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks p <= r of all orbitals, from the last products."""
        o, pairs = self._spaces.occupied, self._spaces.all_pairs
        tile = pairs.numbers[p, r]
        count = pairs.length(tile)
        plus, minus = np.zeros((count, o * (o + 1) // 2)), np.zeros((count, o * (o - 1) // 2))
        for sign, product in zip(self._signs, self._products, strict=True):
            (plus, minus)[sign][...] = product.get_tile((tile, 0))
        rows = kernels.unpack_pairs(plus, minus, np.empty((count, o, o)))
        return pairs.spread(tile, rows, swap=(1, 0)).transpose(0, 2, 1, 3)


_NAMES = "+-"


def _product(left: Values, right: Values) -> Values:
    """sum_Q left[Q,p,c] right[Q,q,d] as [p,c,q,d]."""
    rows = left.shape[0]
    flat = left.reshape(rows, -1).T @ right.reshape(rows, -1)
    return flat.reshape(*left.shape[1:], *right.shape[1:])


class _Made:
    """Tiles that are made when they are read."""

    def __init__(self, ladder: Ladder) -> None:
        self._ladder = ladder

    def function(self, sign: int) -> Any:
        spaces = self._ladder._spaces
        rows, columns = spaces.all_pairs.tiling, spaces.virtual_pairs.tiling

        def make(box: tuple[slice, ...]) -> Values:
            row, column = rows.cuts.index(box[0].start), columns.cuts.index(box[1].start)
            return self._ladder.tile(row, column)[sign]

        return make
