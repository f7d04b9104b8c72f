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

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc import stream
from outcore.chem.cc.buffers import ThreadBuffers
from outcore.chem.cc.integrals import four_index
from outcore.chem.cc.steps import Steps
from outcore.parallel import team
from outcore.parallel.tasks import Progress, each_task
from outcore.tensor import kernels

if TYPE_CHECKING:
    from outcore.chem.cc.integrals import Integrals
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.spaces import Spaces
    from outcore.tensor.array import Array
    from outcore.tensor.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class Ladder:
    """V+- of one spin, and the arrays around their products. Collective.

    Args:
        name: of the spin in the plan.
        signs: 0 for sums, 1 for differences, which are all that antisymmetric amplitudes have.
        is_stored: V+- are made once, and kept in single precision where the plan has them; else tiles are made
            in each product, once if all amplitudes fit into memory.

    `waited_s`: what threads have waited for tiles in the last product, as a mean.
    """

    def __init__(
        self,
        room: Room,
        spaces: Spaces,
        integrals: Integrals,
        *,
        is_stored: bool,
        name: str = "",
        signs: tuple[int, ...] = (0, 1),
    ) -> None:
        self._room, self._spaces, self._integrals = room, spaces, integrals
        self._signs = tuple(sign for sign in signs if sign == 0 or spaces.occupied > 1)
        names = [f"A{_NAMES[sign]}{name}" for sign in self._signs]
        self._named = {each: room.array(each) for each in names}
        self._products = list(self._named.values())
        self.integrals: list[Array] = []
        if is_stored:
            self.integrals = [room.array(f"V{_NAMES[sign]}{name}") for sign in self._signs]
        self.waited_s = 0.0
        self._buffers = ThreadBuffers()
        self._block: Callable[[int, int], Values] = integrals.block

    # ---- integrals ----

    def build(self, progress: Progress | None = None) -> None:
        """Makes the integrals that are stored."""
        if not self.integrals:
            return
        rows, columns = len(self._spaces.all_pairs.blocks), len(self._spaces.virtual_pairs.blocks)
        counter = self._room.world.counter()
        self._block = self._integrals.recent(self._room.plan.beside_made_bytes)

        def make(_: int, task: int) -> None:
            row, column = divmod(task, columns)
            for array, values in zip(self.integrals, self.tile(row, column), strict=True):
                array.put_tile((row, column), values)

        with self._room.world.together("ladder integrals"):
            each_task(counter, rows * columns, self._room.threads, make, progress)
        self._buffers.clear()
        self._block = self._integrals.block
        for array in self.integrals:
            array.sync()

    def tile(self, row: int, column: int) -> list[Values]:
        """A tile [pq][cd] of each of V+-, made of three-index integrals; valid until this thread makes another."""
        rows, columns, read = self._spaces.all_pairs, self._spaces.virtual_pairs, self._block
        (p, r), (c, d) = rows.blocks[row], columns.blocks[column]
        buffers, signs = self._buffers, self._room.signs
        direct = four_index(read(p, c), read(r, d), buffers, signs=signs)  # [p,c,q,d]
        if c == d:
            exchanged = direct  # [p,d,q,c] of the same orbitals
        elif p == r:
            exchanged = direct.transpose(2, 3, 0, 1)
        else:
            exchanged = four_index(read(p, d), read(r, c), buffers, 1, signs=signs)
        first, second = direct.transpose(0, 2, 1, 3), exchanged.transpose(0, 2, 3, 1)  # [p,q,c,d]
        plus, minus = (buffers.take(number, first.shape) for number in (2, 3))
        for one, other, total, difference in zip(first, second, plus, minus, strict=True):  # in the caches
            difference[...] = other
            np.add(one, difference, out=total)
            np.subtract(one, difference, out=difference)
        halves = plus, minus
        return [columns.columns(column, rows.rows(row, halves[sign])) for sign in self._signs]

    # ---- products ----

    def contract(self, t2: Array, steps: Steps) -> None:
        """S and D of amplitudes [a,i,b,j]: as many pairs ij at a time as the plan has in a tile of them; the rows
        that `steps` leaves."""
        if not self._signs:
            return
        self.waited_s = 0.0
        start = (
            stream.stored(self.integrals, lambda *tile: tile) if self.integrals else stream.made(self.tile)
        )
        count, parts = len(self._spaces.all_pairs.blocks), len(self._products[0].layout.tilings[1])
        rows = steps.rows(self._named, count, parts, lambda row, part: (row, part))
        left = [len(rows.left(part)) / count for part in range(parts)]
        self._room.ladder_went_by(self.integrals, t2, self._products, left)
        for part in range(parts):
            if not left[part]:
                continue
            cuts = [product.layout.tilings[1].cuts for product in self._products]
            boxes = [slice(*each[part : part + 2]) for each in cuts]

            def put(row: int, results: list[Values], part: int = part) -> None:
                for product, values in zip(self._products, results, strict=True):
                    product.put_tile((row, part), values)

            self.waited_s += stream.multiply(self._room, rows, part, start, self._packed(t2, boxes), put)
        self._buffers.clear()
        for product in self._products:
            product.sync()

    def _packed(self, t2: Array, boxes: list[slice]) -> list[list[Values]]:
        """t+- of some pairs ij, [cd][ij], by blocks of pairs cd."""
        pairs = self._spaces.virtual_pairs
        found: list[list[Values]] = [[np.empty(0)] * len(pairs.blocks) for _ in self._signs]

        def pack(_: int, column: int) -> None:
            c, d = pairs.blocks[column]
            halves = kernels.pack_pairs(t2.get_tile((c, 0, d, 0)).transpose(0, 2, 1, 3))  # of [c,d,i,j]
            for number, (sign, box) in enumerate(zip(self._signs, boxes, strict=True)):
                rows = np.ascontiguousarray(pairs.rows(column, halves[sign])[:, box])
                found[number][column] = rows if sign else pairs.weighted(column, rows)

        with self._room.world.together("pack amplitudes"):
            team.each(range(len(pairs.blocks)), self._room.threads, pack)
        return found

    def block(self, p: int, r: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks p <= r of all orbitals, from the last products."""
        o, pairs = self._spaces.occupied, self._spaces.all_pairs
        tile = pairs.numbers[p, r]
        count = pairs.length(tile)
        halves = [np.zeros((count, o * (o + 1) // 2)), np.zeros((count, o * (o - 1) // 2))]
        for sign, product in zip(self._signs, self._products, strict=True):
            parts = range(len(product.layout.tilings[1]))
            np.concatenate([product.get_tile((tile, part)) for part in parts], axis=1, out=halves[sign])
        rows = kernels.unpack_pairs(halves[0], halves[1], np.empty((count, o, o)))
        return pairs.spread(tile, rows, swap=(1, 0)).transpose(0, 2, 1, 3)


def put_occupied(
    room: Room, block: Callable[[int, int], Values], t1: Values, share: float, oooo: Array, ooov: Array
) -> None:
    """Of a ladder's product, which `block` gives: A_ij^kl as [k,i,l,j], and as [k,i,b,j]
    A_ij^kb - share sum_l A_ij^kl t1[l,b]. Collective."""
    hole, cuts = block(0, 0), ooov.layout.tilings[2].cuts

    def mixed(tile: Tile) -> None:
        b = tile[2]
        values = block(0, b + 1) - share * np.einsum("kilj,lb->kibj", hole, t1[:, cuts[b] : cuts[b + 1]])
        ooov.put_tile(tile, values)

    room.each_tile(ooov, mixed, "ladder")
    room.each_tile(oooo, lambda tile: oooo.put_tile(tile, hole), "ladder")


_NAMES = "+-"
