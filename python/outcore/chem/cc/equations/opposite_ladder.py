"""The particle-particle ladder of amplitudes of opposite spins, over all pairs of orbitals.

A_iJ^pQ = sum_cD t_iJ^cD (pc|QD)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations import stream
from outcore.chem.cc.equations.integrals import four_index
from outcore.chem.cc.equations.steps import Steps
from outcore.chem.cc.plan.buffers import ThreadBuffers
from outcore.chem.cc.plan.ladder_kernels import LadderIntegrals, LadderProduct, Made
from outcore.parallel import team
from outcore.parallel.tasks import Progress, each_task

if TYPE_CHECKING:
    from outcore.chem.cc.equations.integrals import Integrals
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile
    from outcore.tensor.layout.tiling import Tiling

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
        self._made = Made.of_spins([each.bvo for each in integrals], [each.bvv for each in integrals])

    @property
    def named_integrals(self) -> dict[str, Array]:
        """Stored integrals, by their names in the plan."""
        return {} if self.integrals is None else {"Vab": self.integrals}

    @property
    def _rows(self) -> int:
        return len(self._spaces[0].all) * len(self._spaces[1].all)

    @property
    def _columns(self) -> int:
        return len(self._spaces[0].v) * len(self._spaces[1].v)

    def _tile(self, row: int, column: int) -> Tile:
        """p, q, c, d."""
        return (*divmod(row, len(self._spaces[1].all)), *divmod(column, len(self._spaces[1].v)))

    def build(self, progress: Progress | None = None) -> None:
        """Makes the integrals, if they are stored."""
        if self.integrals is None:
            return
        array = self.integrals
        kernel = LadderIntegrals(self._room.sizes, self._room.threads, self._made, (array,))
        self._room.kernel(kernel, lambda: self._build(array, progress))

    def _build(self, array: Array, progress: Progress | None) -> list[float]:
        counter = self._room.world.counter()
        half = self._room.beside_made_bytes // 2
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
        return [1.0]

    def tile(self, row: int, column: int) -> list[Values]:
        """A tile [p,q,c,d] of V; valid until this thread makes another."""
        p, q, c, d = self._tile(row, column)
        blocks = self._blocks[0](p, c), self._blocks[1](q, d)
        turned = four_index(*blocks, self._buffers, signs=self._room.signs).transpose(
            0, 2, 1, 3
        )  # of [p,c,q,d]
        found = self._buffers.take(1, turned.shape)
        found[...] = turned
        return [found]

    def contract(self, t2: Array, steps: Steps) -> None:
        """Makes A of amplitudes [a,i,b,j], with as many j at a time as the plan has in a tile; see Ladder."""
        start = (
            stream.made(self.tile) if self.integrals is None else stream.stored([self.integrals], self._tile)
        )
        sides = _Pairs([each.all for each in self._spaces]), _Pairs([each.v for each in self._spaces])
        self._room.kernel(
            self.product(t2, self._product),
            lambda: self._multiply(
                *sides, start, lambda c, d: t2.get_tile((c, 0, d, 0)), "Aab", self._product, steps
            ),
        )

    def product(self, t2: Array, result: Array, *, transposed: bool = False) -> LadderProduct:
        """The kernel of a product, which knows its traffic and time."""
        alpha, beta = t2.layout.shape[1::2]
        return LadderProduct(
            self._room.sizes,
            max(max(each.bvv.layout.tilings[1].sizes) for each in self._integrals),
            self._room.threads,
            self._room.world.size,
            self._made,
            () if self.integrals is None else (self.integrals,),
            (t2,),
            (result,),
            (alpha * beta,),
            transposed,
        )

    def _multiply(
        self,
        of_rows: _Pairs,
        of_columns: _Pairs,
        start: stream.Start,
        amplitudes: Callable[[int, int], Values],
        name: str,
        product: Array,
        steps: Steps,
    ) -> list[float]:
        """Puts sums over the pairs of `of_columns` into `product`; `amplitudes` returns blocks [c,i,d,j] of their
        amplitudes."""
        self.waited_s = 0.0
        cuts, orbitals = product.layout.tilings[3].cuts, product.layout.shape[1]

        def tile(row: int, part: int) -> Tile:
            p, q = of_rows.blocks(row)
            return p, 0, q, part

        rows = steps.rows({name: product}, of_rows.count, len(cuts) - 1, tile)
        left = [len(rows.left(part)) / of_rows.count for part in range(len(cuts) - 1)]
        for part in range(len(cuts) - 1):
            if not left[part]:
                continue
            box = slice(*cuts[part : part + 2])

            def put(row: int, results: list[Values], part: int = part, box: slice = box) -> None:
                values = results[0].reshape(*of_rows.sizes(row), orbitals, box.stop - box.start)
                product.put_tile(tile(row, part), values.transpose(0, 2, 1, 3))

            packed = [self._packed(of_columns, amplitudes, box)]
            is_stored = self.integrals is not None
            threads = stream.threads_of(self._room, of_rows.length, packed, is_stored=is_stored)
            self.waited_s += stream.multiply(self._room, rows, part, start, packed, put, threads)
        self._buffers.clear()
        product.sync()
        return left

    def _packed(self, pairs: _Pairs, amplitudes: Callable[[int, int], Values], box: slice) -> list[Values]:
        """Amplitudes of all i and some j, [cd][ij], by blocks c and d."""
        found: list[Values] = [np.empty(0)] * pairs.count

        def pack(_: int, column: int) -> None:
            values = amplitudes(*pairs.blocks(column))[..., box].transpose(0, 2, 1, 3)  # [c,d,i,j]
            found[column] = np.ascontiguousarray(values).reshape(values.shape[0] * values.shape[1], -1)

        with self._room.world.together("pack amplitudes"):
            team.each(range(pairs.count), self._room.threads, pack)
        return found

    def block(self, p: int, q: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks of all orbitals."""
        return _whole(self._product, p, q)

    # ---- of amplitudes of other electrons ----

    def release_product(self) -> None:
        """Gives back the array of the product."""
        self._room.release(self._product)

    def contract_free(self, amplitudes: Array, name: str, product: Array, steps: Steps) -> None:
        """As `contract`, for amplitudes [c,i,d,j] of any i and j. product: the array of the plan with this name."""
        start = (
            stream.made(self.tile) if self.integrals is None else stream.stored([self.integrals], self._tile)
        )
        sides = _Pairs([each.all for each in self._spaces]), _Pairs([each.v for each in self._spaces])
        self._room.kernel(
            self.product(amplitudes, product),
            lambda: self._multiply(
                *sides, start, lambda c, d: amplitudes.get_tile((c, 0, d, 0)), name, product, steps
            ),
        )

    @staticmethod
    def free_block(product: Array, p: int, q: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks of all orbitals, of such a product."""
        return _whole(product, p, q)

    # ---- of multipliers ----

    def begin_transposed(self) -> None:
        """Makes an array for products with the transposed integrals, and gives back that of other products."""
        self._room.release(self._product)
        self._product = self._room.array("Pab")

    def contract_transposed(
        self,
        block: Callable[[int, int], Values],
        amplitudes: Array,
        steps: Steps,
        name: str = "Pab",
        product: Array | None = None,
    ) -> None:
        """sum_pQ A_iJ^pQ (pc|QD) over all orbitals; `block` reads `amplitudes`, and returns A_iJ^pQ of blocks p and
        Q as [p,i,Q,J]. product: for other electrons, the array of the plan with this name."""
        out = self._product if product is None else product
        if self.integrals is None:
            start = stream.made(lambda row, column: [stream.turned(self.tile(column, row)[0])])
        else:
            start = stream.stored(
                [self.integrals], lambda row, column: self._tile(column, row), transposed=True
            )
        sides = _Pairs([each.v for each in self._spaces]), _Pairs([each.all for each in self._spaces])
        self._room.kernel(
            self.product(amplitudes, out, transposed=True),
            lambda: self._multiply(*sides, start, block, name, out, steps),
        )

    def transposed_block(self, c: int, d: int) -> Values:
        """The last product with the transposed integrals as [c,i,D,J], of blocks of virtual orbitals."""
        return _whole(self._product, c, d)


class _Pairs:
    """Blocks of alpha with blocks of beta orbitals."""

    def __init__(self, tilings: Sequence[Tiling]) -> None:
        self._tilings = tilings
        self.count = len(tilings[0]) * len(tilings[1])
        self.length = tilings[0].size * tilings[1].size

    def blocks(self, number: int) -> tuple[int, int]:
        return divmod(number, len(self._tilings[1]))

    def sizes(self, number: int) -> list[int]:
        blocks = self.blocks(number)
        return [int(each.sizes[n]) for each, n in zip(self._tilings, blocks, strict=True)]


def _whole(product: Array, p: int, q: int) -> Values:
    """[p,i,q,j] of all j."""
    parts = range(len(product.layout.tilings[3]))
    return np.concatenate([product.get_tile((p, 0, q, part)) for part in parts], axis=3)
