"""The particle-particle ladder over all pairs of orbitals, from sums and differences of half the length each.

    A_ij^pq = sum_cd t_ij^cd (pc|qd)
    t+-[cd,ij] = t_ij^cd +- t_ij^dc             c <= d, the sum halved for c = d; i >= j, the difference for i > j
    V+-[pq,cd] = (pc|qd) +- (pd|qc)             p <= q
    S = V+ t+,  D = V- t-                       [pq,ij]
    A_ij^pq = A_ji^qp = (S + D) / 2,  A_ij^qp = A_ji^pq = (S - D) / 2

p and q are all orbitals: integrals of one occupied orbital and of two come out of the same product, so none of
three or four virtual orbitals is needed anywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations import stream
from outcore.chem.cc.equations.integrals import four_index
from outcore.chem.cc.equations.steps import LadderRows, Steps
from outcore.chem.cc.plan.buffers import ThreadBuffers
from outcore.chem.cc.plan.ladder_kernels import LadderIntegrals, LadderProduct, Made
from outcore.parallel import team
from outcore.parallel.tasks import Progress, each_task
from outcore.tensor.layout import kernels

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.pairs import PairAxis
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]
Halves = Callable[[int, int], tuple[Values, Values]]
"""Sums and differences [c,d,columns] of amplitudes of two blocks."""


class Ladder:
    """V+- of one spin, and the arrays around their products. Collective.

    Args:
        name: of the spin in the plan.
        signs: 0 for sums, 1 for differences, which are all that antisymmetric amplitudes have.
        is_stored: V+- are made once, and kept where the plan has them, in the precision of its sizes; else tiles
            are made in each product, once if all amplitudes fit into memory.

    `waited_s`: mean seconds that threads waited for tiles in the last product.
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
        self._room, self._spaces, self._integrals, self._name = room, spaces, integrals, name
        self._signs_of_free = signs
        self._signs = tuple(sign for sign in signs if sign == 0 or spaces.occupied > 1)
        names = [f"A{_NAMES[sign]}{name}" for sign in self._signs]
        self._named = {each: room.array(each) for each in names}
        self._products = list(self._named.values())
        self._transposed: dict[str, Array] = {}
        self._free: dict[str, Array] = {}
        self._each: list[list[Array]] = []
        self.integrals: list[Array] = []
        if is_stored:
            self.integrals = [room.array(f"V{_NAMES[sign]}{name}") for sign in self._signs]
        self.waited_s = 0.0
        self._buffers = ThreadBuffers()
        self._block: Callable[[int, int], Values] = integrals.block
        self._made = Made.of_pairs(integrals.bvo, integrals.bvv, len(self._signs))

    # ---- integrals ----

    @property
    def named_integrals(self) -> dict[str, Array]:
        """Stored integrals, by their names in the plan."""
        names = [f"V{_NAMES[sign]}{self._name}" for sign in self._signs]
        return dict(zip(names, self.integrals, strict=False))

    def build(self, progress: Progress | None = None) -> None:
        """Makes the integrals, if they are stored."""
        if not self.integrals:
            return
        kernel = LadderIntegrals(self._room.sizes, self._room.threads, self._made, tuple(self.integrals))
        self._room.kernel(kernel, lambda: self._build(progress))

    def _build(self, progress: Progress | None) -> list[float]:
        rows, columns = len(self._spaces.all_pairs.blocks), len(self._spaces.virtual_pairs.blocks)
        counter = self._room.world.counter()
        self._block = self._integrals.recent(self._room.beside_made_bytes)

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
        return [1.0]

    def tile(self, row: int, column: int) -> list[Values]:
        """A tile [pq][cd] of each of V+-, from three-index integrals; valid until this thread makes another."""
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
        """Makes S and D of amplitudes [a,i,b,j], with as many pairs ij at a time as the plan has in a tile; only
        the rows that `steps` leaves."""
        if not self._signs:
            return
        self._room.kernel(
            self.product(t2, self._products),
            lambda: self._multiply(
                self._spaces.all_pairs,
                self._spaces.virtual_pairs,
                self._tiles,
                _packing(partial(_pair_tile, t2)),
                self._named,
                steps,
            ),
        )

    def product(self, t2: Array, results: Sequence[Array], *, transposed: bool = False) -> LadderProduct:
        """The kernel of a product, which knows its traffic and time."""
        o = self._integrals.bvo.layout.shape[2]
        columns = tuple(o * (o - 1) // 2 if sign else o * (o + 1) // 2 for sign in self._signs)
        return self._product([t2], results, columns, transposed=transposed)

    def _product(
        self,
        amplitudes: Sequence[Array],
        results: Sequence[Array],
        columns: tuple[int, ...],
        *,
        transposed: bool = False,
    ) -> LadderProduct:
        return LadderProduct(
            self._room.sizes,
            max(self._integrals.bvv.layout.tilings[1].sizes),
            self._room.threads,
            self._room.world.size,
            self._made,
            tuple(self.integrals),
            tuple(amplitudes),
            tuple(results),
            columns,
            transposed,
        )

    def _multiply(
        self,
        of_rows: PairAxis,
        of_columns: PairAxis,
        start: stream.Start,
        halves: Halves,
        named: Mapping[str, Array],
        steps: Steps,
    ) -> list[float]:
        """Puts sums over the pairs of `of_columns` into the arrays of `named`; `halves` returns sums and
        differences of their amplitudes."""
        self.waited_s = 0.0
        products = list(named.values())
        count, parts = len(of_rows.blocks), len(products[0].layout.tilings[1])
        rows = steps.rows(named, count, parts, lambda row, part: (row, part))
        left = [len(rows.left(part)) / count for part in range(parts)]
        for part in range(parts):
            if not left[part]:
                continue
            boxes = _boxes(products, range(part, part + 1))

            def put(row: int, results: list[Values], part: int = part) -> None:
                for product, values in zip(products, results, strict=True):
                    product.put_tile((row, part), values)

            packed = self._packed(of_columns, [(halves, boxes)])
            threads = self._threads(of_rows, packed)
            self.waited_s += stream.multiply(self._room, rows, part, start, packed, put, threads)
        self._buffers.clear()
        for product in products:
            product.sync()
        return left

    def _threads(self, of_rows: PairAxis, packed: list[list[Values]]) -> int:
        return stream.threads_of(self._room, of_rows.tiling.size, packed, is_stored=bool(self.integrals))

    def _packed(
        self, pairs: PairAxis, vectors: Sequence[tuple[Halves, Sequence[slice]]]
    ) -> list[list[Values]]:
        """t+- of some pairs ij of each vector, [cd][ij], by blocks of pairs cd."""
        found: list[list[Values]] = [[np.empty(0)] * len(pairs.blocks) for _ in self._signs]

        def pack(_: int, column: int) -> None:
            for number in range(len(self._signs)):
                width = sum(boxes[number].stop - boxes[number].start for _, boxes in vectors)
                found[number][column] = np.empty((pairs.length(column), width))
            ends = [0] * len(self._signs)
            for halves, boxes in vectors:  # one of them is unpacked at a time
                both = halves(*pairs.blocks[column])
                for number, (sign, box) in enumerate(zip(self._signs, boxes, strict=True)):
                    begin = ends[number]
                    ends[number] += box.stop - box.start
                    found[number][column][:, begin : ends[number]] = pairs.rows(column, both[sign])[:, box]
            for number, sign in enumerate(self._signs):
                if not sign:
                    pairs.weighted(column, found[number][column])

        with self._room.world.together("pack amplitudes"):
            team.each(range(len(pairs.blocks)), self._room.threads, pack)
        return found

    def block(self, p: int, r: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks p <= r of all orbitals, from the last products."""
        return self._unpacked(self._spaces.all_pairs, self._products, p, r)

    def _unpacked(self, pairs: PairAxis, products: Sequence[Array], p: int, r: int) -> Values:
        """Blocks p <= r of products, as [p,i,q,j]."""
        o = self._spaces.occupied
        tile = pairs.numbers[p, r]
        count = pairs.length(tile)
        halves = [np.zeros((count, o * (o + 1) // 2)), np.zeros((count, o * (o - 1) // 2))]
        for sign, product in zip(self._signs, products, strict=True):
            parts = range(len(product.layout.tilings[1]))
            np.concatenate([product.get_tile((tile, part)) for part in parts], axis=1, out=halves[sign])
        rows = kernels.unpack_pairs(halves[0], halves[1], np.empty((count, o, o)))
        return pairs.spread(tile, rows, swap=(1, 0)).transpose(0, 2, 1, 3)

    # ---- of several vectors ----

    def begin_each(self, count: int) -> None:
        """Makes arrays for products with `count` vectors at a time, and gives back those of other products."""
        self.release_products()
        self._each = [[self._room.array(f"A{_NAMES[sign]}{n}") for sign in self._signs] for n in range(count)]

    def contract_each(self, vectors: Sequence[Array]) -> None:
        """As `contract`, for several vectors, no more than `begin_each` has made arrays for: one pass over the
        integrals serves as many vectors as the work space holds."""
        results = [each for of_vector in self._each[: len(vectors)] for each in of_vector]
        o, count = self._spaces.occupied, len(vectors)
        columns = tuple(count * (o * (o - 1) // 2 if sign else o * (o + 1) // 2) for sign in self._signs)
        kernel = self._product(vectors, results, columns)
        self._room.kernel(kernel, lambda: self._multiply_each(kernel, vectors))

    def _multiply_each(self, kernel: LadderProduct, vectors: Sequence[Array]) -> list[float]:
        pairs, columns = self._spaces.all_pairs, self._spaces.virtual_pairs
        parts = kernel.parts(self._room.plan.work_bytes)
        self.waited_s = 0.0
        for part in range(parts):
            chosen = [(number, self._part_of(number, *nth)) for number, *nth in kernel.of_part(part, parts)]
            packed = self._packed(
                columns,
                [
                    (_packing(partial(_pair_tile, vectors[number])), _boxes(self._each[number], tiles))
                    for number, tiles in chosen
                ],
            )
            put = partial(self._put_each, chosen)
            rows, threads = LadderRows(len(pairs.blocks)), self._threads(pairs, packed)
            self.waited_s += stream.multiply(self._room, rows, part, self._tiles, packed, put, threads)
        self._buffers.clear()
        for each in self._each:
            for product in each:
                product.sync()
        return [1.0] * parts

    def _part_of(self, number: int, nth: int, parts: int) -> range:
        """Tiles of columns of a vector's products in part `nth` of `parts`."""
        count = len(self._each[number][0].layout.tilings[1])
        return range(count * nth // parts, count * (nth + 1) // parts)

    def _put_each(self, chosen: Sequence[tuple[int, range]], row: int, results: list[Values]) -> None:
        for sign, values in enumerate(results):
            begin = 0
            for number, tiles in chosen:
                product = self._each[number][sign]
                for tile in tiles:
                    end = begin + product.layout.tilings[1].sizes[tile]
                    product.put_tile((row, tile), np.ascontiguousarray(values[:, begin:end]))
                    begin = end

    def block_of(self, number: int, p: int, r: int) -> Values:
        """As `block`, of a vector of the last products."""
        return self._unpacked(self._spaces.all_pairs, self._each[number], p, r)

    @property
    def _tiles(self) -> stream.Start:
        return stream.stored(self.integrals, lambda *tile: tile) if self.integrals else stream.made(self.tile)

    # ---- of amplitudes without symmetry ----

    def begin_free(self, name: str, *, transposed: bool = False) -> None:
        """Makes arrays of this name for products with amplitudes without symmetry, and gives back those of other
        products. transposed: with the transposed integrals. Such amplitudes have differences even with one occupied
        orbital, where no integrals of differences are stored: then all are made in each product."""
        self.release_products()
        if self._signs != self._signs_of_free:
            self._room.release(*self.integrals)
            self._signs, self.integrals = self._signs_of_free, []
            self._made = Made.of_pairs(self._integrals.bvo, self._integrals.bvv, len(self._signs))
        names = [f"{name}{_NAMES[sign]}" for sign in self._signs]
        self._free = {each: self._room.array(each) for each in names}
        self._free_shape: tuple[int, ...] = ()
        self._free_pairs = self._spaces.virtual_pairs if transposed else self._spaces.all_pairs

    def contract_free(self, amplitudes: Array, steps: Steps) -> None:
        """A_i^pq = sum_cd r_i^cd (pc|qd) of amplitudes [c,i,d], or [c,i,d,j], without symmetry."""
        more = len(amplitudes.layout.tilings) - 3
        self._free_shape = tuple(amplitudes.shape[1::2])
        after = tuple(range(3, 3 + more))

        def halves(c: int, d: int) -> tuple[Values, Values]:
            none = (0,) * more
            one = amplitudes.get_tile((c, 0, d, *none)).transpose(0, 2, 1, *after)  # [c,d,i..]
            other = amplitudes.get_tile((d, 0, c, *none)).transpose(2, 0, 1, *after)
            shape = (*one.shape[:2], -1)
            return (one + other).reshape(shape), (one - other).reshape(shape)

        results, axes = list(self._free.values()), (self._spaces.all_pairs, self._spaces.virtual_pairs)
        columns = (math.prod(amplitudes.layout.shape[1::2]),) * len(self._signs)
        self._room.kernel(
            self._product([amplitudes], results, columns),
            lambda: self._multiply(*axes, self._tiles, halves, self._free, steps),
        )

    def contract_transposed_free(
        self, block: Callable[[int, int], Values], amplitudes: Array, steps: Steps
    ) -> None:
        """As `contract_transposed`, of A_i^pq [p,i,q], or A_ij^pq [p,i,q,j], without symmetry: `block` has all p
        and q."""
        more = len(amplitudes.layout.tilings) - 3
        self._free_shape = tuple(amplitudes.shape[1::2])
        after = tuple(range(3, 3 + more))

        def halves(p: int, q: int) -> tuple[Values, Values]:
            one, other = block(p, q).transpose(0, 2, 1, *after), block(q, p).transpose(2, 0, 1, *after)
            shape = (*one.shape[:2], -1)
            return (one + other).reshape(shape), (one - other).reshape(shape)

        results, axes = list(self._free.values()), (self._spaces.virtual_pairs, self._spaces.all_pairs)
        columns = (math.prod(amplitudes.layout.shape[1::2]),) * len(self._signs)
        self._room.kernel(
            self._product([amplitudes], results, columns, transposed=True),
            lambda: self._multiply(*axes, self._transposed_tiles, halves, self._free, steps),
        )

    def single_block(self, p: int, r: int) -> Values:
        """A_i^pq as [p,i,q] of any blocks of all orbitals, from the last product."""
        return self._free_block(p, r).transpose(0, 2, 1)

    def free_block(self, p: int, r: int) -> Values:
        """A_ij^pq as [p,i,q,j] of any blocks of all orbitals, from the last product."""
        values = self._free_block(p, r)
        return values.reshape(*values.shape[:2], *self._free_shape).transpose(0, 2, 1, 3)

    def _free_block(self, p: int, r: int) -> Values:
        """[p,q,column]"""
        pairs = self._free_pairs
        tile = pairs.numbers[min(p, r), max(p, r)]
        *sums, difference = (
            np.concatenate(
                [each.get_tile((tile, part)) for part in range(len(each.layout.tilings[1]))], axis=1
            )
            for each in self._free.values()
        )
        total: Values = sums[0] if sums else np.zeros_like(difference)
        one, other = 0.5 * (total + difference), 0.5 * (total - difference)
        sizes = pairs.sizes
        if p != r:
            found: Values = (one if p < r else other).reshape(sizes[min(p, r)], sizes[max(p, r)], -1)
            return found if p < r else found.transpose(1, 0, 2)
        square: Values = np.empty((sizes[p], sizes[p], one.shape[1]))
        first, second = np.triu_indices(sizes[p])
        square[second, first], square[first, second] = other, one
        return square

    # ---- of multipliers ----

    def release_products(self) -> None:
        """Gives back the arrays of products with doubles."""
        self._room.release(*self._products)
        self._products, self._named = [], {}

    def begin_transposed(self) -> None:
        """Makes arrays for products with the transposed integrals, and gives back those of other products."""
        self.release_products()
        names = [f"P{_NAMES[sign]}{self._name}" for sign in self._signs]
        self._transposed = {each: self._room.array(each) for each in names}

    def contract_transposed(
        self, block: Callable[[int, int], Values], amplitudes: Array, steps: Steps
    ) -> None:
        """sum_pq A_ij^pq (pc|qd) over all orbitals; `block` reads `amplitudes`, and returns A_ij^pq of blocks
        p <= q as [p,i,q,j]."""
        if not self._signs:
            return
        results = list(self._transposed.values())
        axes = self._spaces.virtual_pairs, self._spaces.all_pairs
        self._room.kernel(
            self.product(amplitudes, results, transposed=True),
            lambda: self._multiply(*axes, self._transposed_tiles, _packing(block), self._transposed, steps),
        )

    @property
    def _transposed_tiles(self) -> stream.Start:
        if self.integrals:
            return stream.stored(self.integrals, lambda row, column: (column, row), transposed=True)
        return stream.made(lambda row, column: [stream.turned(each) for each in self.tile(column, row)])

    def transposed_block(self, c: int, d: int) -> Values:
        """The last product with the transposed integrals as [c,i,d,j], of blocks c <= d of virtual orbitals."""
        return self._unpacked(self._spaces.virtual_pairs, list(self._transposed.values()), c, d)


def _boxes(products: Sequence[Array], tiles: range) -> list[slice]:
    """Columns of these tiles, of each product."""
    cuts = [each.layout.tilings[1].cuts for each in products]
    return [slice(each[tiles.start], each[tiles.stop]) for each in cuts]


def _pair_tile(t2: Array, c: int, d: int) -> Values:
    values: Values = t2.get_tile((c, 0, d, 0))
    return values


def _packing(block: Callable[[int, int], Values]) -> Halves:
    """Sums and differences of blocks [c,i,d,j] of amplitudes."""
    return lambda c, d: kernels.pack_pairs(block(c, d).transpose(0, 2, 1, 3))  # of [c,d,i,j]


def put_occupied(
    room: Room,
    block: Callable[[int, int], Values],
    t1: Values,
    share: float,
    oooo: Array,
    ooov: Array,
    cuts: Sequence[int],
) -> None:
    """Puts parts of a ladder's product, which `block` returns: A_ij^kl as [k,i,l,j], and as [k,i,b,j]
    A_ij^kb - share sum_l A_ij^kl t1[l,b]. cuts: of b. Collective."""
    hole = block(0, 0)

    def mixed(tile: Tile) -> None:
        b = tile[2]
        values = block(0, b + 1) - share * np.einsum("kilj,lb->kibj", hole, t1[:, cuts[b] : cuts[b + 1]])
        ooov.put_tile(tile, values)

    room.each_tile(ooov, mixed, "ladder", held=3)
    room.each_tile(oooo, lambda tile: oooo.put_tile(tile, hole), "ladder", held=1)


_NAMES = "+-"
