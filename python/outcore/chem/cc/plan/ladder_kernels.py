"""Memory, traffic and time of the ladders of coupled cluster: of their integrals, which are made once or in each
product, and of products with them. Pure arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations import stream
from outcore.chem.cc.equations.pairs import PairAxis
from outcore.tensor.plan import bound
from outcore.tensor.plan.statements import Touched

if TYPE_CHECKING:
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.tensor.plan.rates import Rates

Values = np.ndarray[Any, np.dtype[Any]]

_DOUBLE = 8  # bytes of an element
_LADDER = 0.9  # share of the work space for the ladder
_FEWEST = 16  # fewest pairs ij of a product of the ladder at a time
_READ, _TAKEN, _MADE = 16, 6, 10
"""Passes over a tile of integrals beside its product, each as long as a copy in the caches (measured): a tile on
disk is read, checked and converted, a tile in memory converted, else a tile is packed from two products."""


# ---- memory ----


def passes(
    sizes: Sizes,
    block: int,
    threads: int,
    work_bytes: float,
    *,
    is_stored: bool,
    transposed: bool = False,
    columns: int | None = None,
    vectors: int = 1,
) -> int:
    """How many passes over its integrals a ladder makes, each with as many pairs ij as there is room for. columns:
    of both products of all vectors; None: of all pairs."""
    left = _LADDER * work_bytes - tiles(sizes, block, threads, is_stored=is_stored)
    needed = streamed(sizes, block, threads, transposed=transposed, columns=columns)
    return min(math.ceil(needed / max(1.0, left)), vectors * max_passes(sizes))


def max_passes(sizes: Sizes) -> int:
    return max(1, min(sizes.occupied) ** 2 // _FEWEST)


def tiles(sizes: Sizes, block: int, threads: int, *, is_stored: bool) -> int:
    """Bytes of the tiles of a ladder's integrals that threads hold, which they fetch or make."""
    o, both = max(sizes.occupied), 2 if len(sizes.occupied) == 1 else 1
    rows, columns = block * max(o, block), block * block
    if not is_stored:
        return threads * (4 * sizes.auxiliary * rows + (2 + 2 * both) * rows * columns) * _DOUBLE
    return threads * rows * columns * (both * stream.AHEAD * sizes.ladder_item_bytes + _DOUBLE)


def results_space(sizes: Sizes, threads: int, tile: int) -> float:
    """The work space of passes that take blocks of a ladder's product: the blocks, and arrays that are made of
    those with occupied orbitals."""
    o = max(sizes.occupied)
    hole, one, pair, rows = o**4, o**3 * tile, (o * tile) ** 2, tile * max(o, tile)
    if len(sizes.occupied) == 2:
        most = 4 * hole + 3 * one * threads
    else:
        most = max(hole + max(3 * one, one + 5 * pair) * threads, hole // 2 + 7 * pair * threads)
    return float(_DOUBLE * max(most, 4 * hole, 5 * rows * o * o * threads))


def streamed(
    sizes: Sizes, block: int, threads: int, *, transposed: bool = False, columns: int | None = None
) -> int:
    """Bytes of all amplitudes of a ladder, and of a row of results of each thread. transposed: amplitudes are those
    of all orbitals. columns: of both products; None: of all pairs."""
    o, v = max(sizes.occupied), max(sizes.virtual)
    summed = o + v if transposed else v
    width = o * o if columns is None else columns
    amplitudes = summed * summed * width // (2 if len(sizes.occupied) == 1 else 1)
    return (amplitudes + 2 * threads * block * max(o, block) * width) * _DOUBLE


# ---- integrals that are made of three-index integrals ----


@dataclass(frozen=True)
class Made:
    """Integrals of a ladder, [pq,cd], which are made tile by tile from B[Q,a,i] and B[Q,a,c] of each electron.

    elements: number of all integrals.
    products: sums over Q, each for one element.
    read: bytes of each array that are read for one Q.
    """

    elements: float
    products: float
    read: Mapping[Any, float]

    @staticmethod
    def of_pairs(bvo: Any, bvv: Any, signs: int) -> Made:
        """Integrals of one spin: sums or differences, or both, of (pc|qd) and (pd|qc)."""
        rows, columns = PairAxis(_cuts(bvo)), PairAxis(bvv.layout.tilings[1].cuts)
        (p, r), (c, d) = _sides(rows), _sides(columns)
        apart, crossed = p[0] != r[0], c[0] != d[0]  # exchanged integrals are others
        read = Counter(_read(bvo, bvv, [(p, c), (r, d)]))
        again = [(p[:, apart], d[:, crossed]), (r[:, apart], c[:, crossed])]
        read.update(_read(bvo, bvv, again))
        of_rows, of_columns = p[1] * r[1], c[1] * d[1]
        products = of_rows.sum() * of_columns.sum() + of_rows[apart].sum() * of_columns[crossed].sum()
        return Made(float(rows.tiling.size * columns.tiling.size * signs), float(products), read)

    @staticmethod
    def of_spins(bvo: Sequence[Any], bvv: Sequence[Any]) -> Made:
        """Integrals of opposite spins."""
        blocks = [
            [np.diff(_cuts(one)), np.diff(each.layout.tilings[1].cuts)]
            for one, each in zip(bvo, bvv, strict=True)
        ]
        read: Counter[Any] = Counter()
        for (p, c), (q, d), one, each in zip(blocks, reversed(blocks), bvo, bvv, strict=True):
            sides = [(np.array([range(len(p)), p]), np.array([range(len(c)), c]))]
            times = len(q) * len(d)
            read.update({array: times * bytes_ for array, bytes_ in _read(one, each, sides).items()})
        elements = float(np.prod([each.sum() for sides in blocks for each in sides], dtype=float))
        return Made(elements, elements, read)

    def bytes_read(self, auxiliary: int) -> dict[Any, float]:
        return {each: auxiliary * bytes_ for each, bytes_ in self.read.items()}

    def seconds(self, auxiliary: int, rates: Rates) -> float:
        copied = rates.copy * rates.threads * rates.processes
        return 2 * auxiliary * self.products / rates.peak + self.elements * _DOUBLE * _MADE / copied


def _cuts(bvo: Any) -> list[int]:
    """Boundaries of blocks of all orbitals, occupied ones first."""
    _, virtual, occupied = bvo.layout.tilings
    return [0, *(occupied.size + cut for cut in virtual.cuts)]


def _sides(pairs: PairAxis) -> list[Values]:
    """Blocks of each side of the tiles of pairs: numbers and sizes."""
    return [np.array([side, np.array(pairs.sizes)[side]]) for side in np.array(pairs.blocks).T]


def _read(bvo: Any, bvv: Any, sides: Sequence[tuple[Values, Values]]) -> dict[Any, float]:
    """Bytes of B[Q,p,c] for one Q, of all blocks p with all blocks c of virtual orbitals. Block 0 is of occupied
    orbitals."""
    found = {bvo: 0.0, bvv: 0.0}
    for p, c in sides:
        for array, where in ((bvo, p[0] == 0), (bvv, p[0] > 0)):
            found[array] += _DOUBLE * float(p[1][where].sum()) * float(c[1].sum())
    return found


# ---- kernels ----


@dataclass(frozen=True, eq=False)
class LadderIntegrals:
    """The kernel that makes stored integrals."""

    sizes: Sizes
    threads: int
    made: Made
    results: tuple[Any, ...]

    def __str__(self) -> str:
        return "ladder integrals"

    @property
    def operands(self) -> tuple[Any, ...]:
        return tuple(self.made.read)

    def work_space(self, tile: int) -> float:
        """Tiles that threads make."""
        return float(tiles(self.sizes, tile, self.threads, is_stored=False))

    def parts(self, memory_bytes: float) -> int:
        return 1

    def moved(self, done: Sequence[float]) -> dict[Any, Touched]:
        """Traffic. Blocks of three-index integrals that were read last stay: each is read about once."""
        read = {each: Touched(float(each.nbytes), 0.0) for each in self.operands}
        return read | {each: Touched(0.0, float(each.nbytes)) for each in self.results}

    def work(self, on_disk: Collection[Any], memory_bytes: float, rates: Rates) -> float:
        return self.made.seconds(self.sizes.auxiliary, rates)

    def operations(self) -> float:
        return 2 * self.sizes.auxiliary * self.made.products

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        return sum(each.total for array, each in self.moved([1.0]).items() if array in on_disk)


@dataclass(frozen=True, eq=False)
class LadderProduct:
    """A[pq,ij] = sum_cd V[pq,cd] t[cd,ij], with one pass over the integrals for each part of the pairs ij.

    Attributes:
        integrals: the stored ones; if empty, each product makes them, as `made` says.
        amplitudes: arrays of each vector t.
        results: arrays of the first vector, then of the next.
        columns: pairs ij of the results of all vectors, of each kind of integrals.
        processes: each of them packs all amplitudes.
        transposed: the sum is over pq, with the same integrals.
    """

    sizes: Sizes
    block: int
    threads: int
    processes: int
    made: Made
    integrals: tuple[Any, ...]
    amplitudes: tuple[Any, ...]
    results: tuple[Any, ...]
    columns: tuple[int, ...]
    transposed: bool = False

    def __str__(self) -> str:
        return "transposed ladder" if self.transposed else "ladder"

    @property
    def operands(self) -> tuple[Any, ...]:
        return (*(self.integrals or self.made.read), *self.amplitudes)

    def work_space(self, tile: int) -> float:
        """The amplitudes of the most passes, and tiles of integrals, whether these are stored or made: plans
        compare both. Passes over its results may need more."""
        sizes, threads, most = self.sizes, self.threads, len(self.amplitudes) * max_passes(self.sizes)
        of_pass = streamed(sizes, tile, threads, transposed=self.transposed, columns=self._columns) // most
        held = max(tiles(sizes, tile, threads, is_stored=way) for way in (True, False))
        return max(of_pass + held, results_space(sizes, threads, tile))

    @property
    def _columns(self) -> int | None:
        return sum(self.columns) if len(self.sizes.occupied) == 1 else None

    def parts(self, memory_bytes: float) -> int:
        """Number of passes. Each has some whole vectors, or a part of one."""
        count, vectors = self._passes(memory_bytes), len(self.amplitudes)
        if count <= vectors:
            return math.ceil(vectors / math.ceil(vectors / count))
        return vectors * math.ceil(count / vectors)

    def of_part(self, part: int, parts: int) -> list[tuple[int, int, int]]:
        """Vectors of a pass: the number of each, which of its parts the pass has, and how many parts it has."""
        vectors = len(self.amplitudes)
        if parts > vectors:
            of_each = parts // vectors
            return [(part // of_each, part % of_each, of_each)]
        together = math.ceil(vectors / parts)
        return [(each, 0, 1) for each in range(part * together, min((part + 1) * together, vectors))]

    def _passes(self, memory_bytes: float) -> int:
        stored = bool(self.integrals)
        sizes, block, threads = self.sizes, self.block, self.threads
        ways: Any = {"is_stored": stored, "transposed": self.transposed, "columns": self._columns}
        ways["vectors"] = len(self.amplitudes)
        return passes(sizes, block, threads, memory_bytes, **ways)

    def moved(self, done: Sequence[float]) -> dict[Any, Touched]:
        """done: of each part of the columns, the share of its rows that is made."""
        rows = sum(done)
        found = {each: Touched(rows * bytes_, 0.0) for each, bytes_ in self._of_integrals()}
        packed = Counter(
            vector
            for part, share in enumerate(done)
            if share > 0
            for vector, _, _ in self.of_part(part, len(done))
        )
        for number, each in enumerate(self.amplitudes):
            found[each] = Touched(float(each.nbytes) * self.processes * packed[number], 0.0)
        return found | {each: Touched(0.0, each.nbytes * rows / len(done)) for each in self.results}

    def _of_integrals(self) -> Iterator[tuple[Any, float]]:
        """Bytes that one pass over the integrals reads from each array."""
        if not self.integrals:
            yield from self.made.bytes_read(self.sizes.auxiliary).items()
        for each in self.integrals:
            yield each, float(each.nbytes)

    def work(self, on_disk: Collection[Any], memory_bytes: float, rates: Rates) -> float:
        count, workers = self.parts(memory_bytes), rates.threads * rates.processes
        narrow = float(rates.flops(max(self.columns) / count)) * workers
        product = self.operations() / narrow
        if not self.integrals:
            return product + count * self.made.seconds(self.sizes.auxiliary, rates)
        copied: float = sum((_READ if each in on_disk else _TAKEN) * each.nbytes for each in self.integrals)
        return product + count * copied / (rates.copy * workers)

    def operations(self) -> float:
        return 2.0 * self._elements * sum(self.columns)

    @property
    def _elements(self) -> float:
        """Elements of each kind of integrals."""
        return self.made.elements / len(self.columns)

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        packed = sum(float(each.nbytes) for each in self.amplitudes if each in on_disk)
        written = [float(each.nbytes) if each in on_disk else 0.0 for each in self.results]
        kinds = len(self.columns)
        put = [sum(written[kind::kinds]) for kind in range(kinds)]
        if not self.integrals:
            return packed + sum(put)
        share = packed / len(self.integrals)
        return sum(
            bound.least_bytes(
                self._elements * columns,
                bound.MovedOnce(float(v.nbytes) if v in on_disk else 0.0, share, out),
                memory_bytes,
                self.sizes.ladder_item_bytes,
            )
            for v, out, columns in zip(self.integrals, put, self.columns, strict=True)
        )


@dataclass(frozen=True, eq=False)
class LadderDensity:
    """Gamma[Q,pc] = sum_ijqd A_ij^pq t_ij^cd B[Q,qd]: for each block of p, and some blocks of c at a time, the
    kernel reads all the rest once.

    Attributes:
        block: virtual orbitals c of a block.
        amplitudes: t, [c,i,d,j] or [d,j,c,i].
        multipliers: from which A is made.
        integrals: B[Q,d,j] and B[Q,d,d].
        results: [Q,c,k] and [Q,c,c].
    """

    sizes: Sizes
    block: int
    threads: int
    amplitudes: Any
    multipliers: Any
    integrals: tuple[Any, ...]
    results: tuple[Any, ...]

    def __str__(self) -> str:
        return "densities of the ladder"

    @property
    def operands(self) -> tuple[Any, ...]:
        return (self.amplitudes, self.multipliers, *self.integrals)

    @property
    def _blocks(self) -> int:
        """Number of blocks of virtual orbitals c."""
        return -(-int(self.results[1].layout.shape[1]) // self.block)

    def work_space(self, tile: int) -> float:
        """One block of c in each thread."""
        widest = max(*self.sizes.occupied, tile)
        of_block = tile * (widest * (2 * widest * tile + self.sizes.auxiliary)) * _DOUBLE
        return 2.0 * self.threads * of_block

    def blocks_at_once(self, memory_bytes: float) -> int:
        """Blocks of c for which a thread has room."""
        return max(1, min(self._blocks, int(memory_bytes / self.work_space(self.block))))

    def parts(self, memory_bytes: float) -> int:
        return math.ceil(self._blocks / self.blocks_at_once(memory_bytes))

    def moved(self, done: Sequence[float]) -> dict[Any, Touched]:
        rows, parts = 1 + self._blocks, sum(done)
        found = {self.amplitudes: Touched(2.0 * rows * self.amplitudes.nbytes * parts / len(done), 0.0)}
        found[self.multipliers] = Touched(4.0 * self.multipliers.nbytes * parts, 0.0)
        found |= {each: Touched(rows * parts * float(each.nbytes), 0.0) for each in self.integrals}
        return found | {each: Touched(float(each.nbytes), float(each.nbytes)) for each in self.results}

    def work(self, on_disk: Collection[Any], memory_bytes: float, rates: Rates) -> float:
        return self.operations() / rates.peak

    def operations(self) -> float:
        v1, o1, v2, o2 = map(int, self.amplitudes.layout.shape)
        pairs = float((o1 + v1) * v1) * float((o2 + v2) * v2)
        return 2.0 * pairs * (o1 * o2 + self.sizes.auxiliary)

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        once = {each: float(each.nbytes) for each in self.operands}
        once |= {each: 2.0 * each.nbytes for each in self.results}
        return sum(bytes_ for each, bytes_ in once.items() if each in on_disk)
