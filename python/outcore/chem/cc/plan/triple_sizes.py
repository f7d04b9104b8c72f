"""Memory, traffic and time of (T) and of its derivatives, in blocks of virtual orbitals. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore.tensor.plan.bound import least_words
from outcore.tensor.plan.statements import Touched

if TYPE_CHECKING:
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.tensor.layout.tiling import Tiling
    from outcore.tensor.plan.rates import Rates

Values = np.ndarray[Any, np.dtype[Any]]
Range = tuple[int, int]

_DOUBLE = 8
LARGEST_BLOCK = 32
OF_FREE = 0.95
"""Share of the memory for blocks: another run, which may have a little less, can go on with them."""


def padded(occupied: int) -> int:
    """How many occupied orbitals the last index of arrays of closed shells has room for: whole registers of the
    kernel, and rows that do not all fall on the same places of the nearest cache."""
    room = -(-occupied // 4) * 4
    return room if room % 32 else room + 4


def block_bytes(
    occupied: Sequence[int], virtual: Sequence[int], auxiliary: int, block: int, threads: int
) -> int:
    """Bytes of three blocks of `block` virtual orbitals, with results and buffers of threads. occupied, virtual:
    orbitals of each spin, or of closed shells."""
    o, v, q = max(occupied), max(virtual), auxiliary
    if len(occupied) == 1:
        last = padded(o)
        singles = 7 * block * o * last * (v + o)
        doubles = block * block * last * ((6 + threads) * v + 9 * o)
        three_index = 3 * q * block * (v + o) + q * o * o
        return int(_DOUBLE * (singles + doubles + three_index + 2 * threads * o * o * last))
    singles = 7 * block * (v + o) * o * o
    doubles = 10 * block * block * o * (v + 2 * o)
    three_index = 5 * q * block * (v + o) + 2 * q * o * o
    return int(_DOUBLE * (singles + doubles + three_index + 2 * threads * o**3))


def derivative_bytes(
    occupied: Sequence[int], virtual: Sequence[int], auxiliary: int, block: int, threads: int
) -> int:
    """As `block_bytes`, for derivatives: beside the memory of the energy, derivatives by connected amplitudes of
    three blocks, sums of each block and of pairs, and copies in each thread."""
    if len(occupied) == 2:
        return _open_derivative_bytes(occupied, virtual, auxiliary, block, threads)
    (o,), (v,), q, last = occupied, virtual, auxiliary, padded(*occupied)
    connected = block**3 * o**3
    singles = 3 * block * (2 * o * o * v + o**3 + q * (v + o))
    doubles = 6 * block * block * o * v
    sums = 3 * block * (block * o * last + 2 * o) + o * last
    copies = (
        block * o * (2 * v + o * o) + o * o * (v + block * o) + q * block * v // threads + 4 * o * o * last
    )
    more = connected + singles + doubles + threads * (sums + copies)
    return block_bytes(occupied, virtual, auxiliary, block, threads) + int(_DOUBLE * more)


def _open_derivative_bytes(
    occupied: Sequence[int], virtual: Sequence[int], auxiliary: int, block: int, threads: int
) -> int:
    """As `derivative_bytes`, for open shells: beside the memory of the energy, sums, and in each thread amplitudes
    of one orbital with two blocks and their terms of the sums."""
    o, v, q = max(occupied), max(virtual), auxiliary
    singles = 5 * block * (v + o) * o * o
    doubles = 9 * block * block * o * (v + 2 * o)
    three_index = 3 * q * block * (v + o)
    copies = 10 * block * block * o**3 + 3 * block * (v + o) * o * (block + o)
    more = singles + doubles + three_index + threads * copies
    return block_bytes(occupied, virtual, auxiliary, block, threads) + int(_DOUBLE * more)


def least_read(virtual: int, orbital_bytes: float, memory_bytes: float) -> float:
    """The least bytes that (T) of closed shells reads from disk, or reads and writes: any three virtual orbitals
    have to be in memory together at some time, with their amplitudes and three-index integrals, and with the sums
    of their derivatives. orbital_bytes: bytes of these on disk, for each orbital. docs/why/bounds.md derives it."""
    if orbital_bytes == 0:
        return 0.0
    word, each = _DOUBLE, orbital_bytes / _DOUBLE
    triples = virtual * (virtual - 1) * (virtual - 2) / 6
    words = least_words(triples, memory_bytes / word, 1 / (6 * each**3), power=3)
    return max(virtual * orbital_bytes, word * words)


def triple_sums(occupied: int, virtual: int) -> int:
    """Number of elements of the small derivatives of (T), of one spin or of closed shells: see
    `triple_arrays.Sums`."""
    return 2 * occupied * virtual + occupied * occupied + virtual * virtual + virtual + 1


def largest_block(virtual: int, need: Callable[[int], int], free_bytes: float, processes: int) -> int:
    """Most orbitals of a block for which the free memory has room: 1 at least, and no more than leave enough tasks
    to all processes. need: bytes of blocks of some size."""
    most = min(LARGEST_BLOCK, -(-virtual // max(1, round(2 * math.sqrt(processes)))))
    while most > 1 and need(most) > free_bytes:
        most -= 1
    return most


def ranges_of(virtual: Sequence[int], count: int) -> list[list[Range]]:
    """Blocks of each spin: `count` of the spin with most virtual orbitals, and blocks of that size of the other."""
    size = -(-max(virtual) // count)
    counts = [-(-v // size) for v in virtual]
    return [list(pairwise(v * n // c for n in range(c + 1))) for v, c in zip(virtual, counts, strict=True)]


def widths(blocks: Sequence[Range], tiling: Tiling) -> Values:
    """For each block, the number of orbitals in the tiles of an array that have orbitals of it: tiles are read
    whole."""
    cuts = np.array(tiling.cuts)
    begins, ends = np.array(blocks).T
    found: Values = cuts[np.searchsorted(cuts, ends)] - cuts[np.searchsorted(cuts, begins, side="right") - 1]
    return found.astype(float)


class BlockSums(NamedTuple):
    """Sums over the tasks of one spin, each of two blocks a >= b with all c <= b.

    singles: orbitals of the blocks that tasks read.
    pairs: pairs of orbitals of the pairs of blocks that tasks read.
    firsts, first_pairs: the same of a and b alone.
    tasks: number of tasks.
    """

    singles: float
    pairs: float
    firsts: float
    first_pairs: float
    tasks: int

    @classmethod
    def of(cls, sizes: Values, is_empty: Values) -> BlockSums:
        """is_empty: for each block, whether the task with a = b has nothing to do."""
        there, total = ~is_empty, sizes.sum()
        before = np.cumsum(sizes) - sizes  # all c < b
        after = total - before - sizes  # all a > b
        others = np.arange(len(sizes))[::-1]  # number of a > b
        firsts = there * sizes + after + others * sizes
        pairs = there * sizes**2 + after * sizes
        tasks = there + others
        thirds = tasks * before
        of_thirds = before * firsts + others * sizes**2  # and the pair of b with itself, beside a > b
        return cls(
            float((firsts + thirds).sum()),
            float((pairs + of_thirds).sum()),
            float(firsts.sum()),
            float(pairs.sum()),
            int(tasks.sum()),
        )


class TripleOperands(NamedTuple):
    """Arrays that (T) reads. same, boo, bvo, bvv: of each spin, or of closed shells. mixed: amplitudes of opposite
    spins."""

    same: tuple[Any, ...]
    boo: tuple[Any, ...]
    bvo: tuple[Any, ...]
    bvv: tuple[Any, ...]
    mixed: Any = None

    @property
    def arrays(self) -> tuple[Any, ...]:
        mixed = () if self.mixed is None else (self.mixed,)
        return (*self.same, *mixed, *self.boo, *self.bvo, *self.bvv)


@dataclass(frozen=True, eq=False)
class TriplesEnergy:
    """The energy of (T): each task has two blocks of virtual orbitals, and reads all third ones.

    Attributes:
        block: most orbitals of a block, if the caller has chosen.
    """

    sizes: Sizes
    threads: int
    processes: int
    of: TripleOperands
    block: int | None = None

    results: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return "(T)"

    @property
    def operands(self) -> tuple[Any, ...]:
        return self.of.arrays

    def need(self, block: int) -> int:
        """Bytes of blocks of some size."""
        sizes = self.sizes
        return block_bytes(sizes.occupied, sizes.virtual, sizes.auxiliary, block, self.threads)

    def work_space(self, tile: int) -> float:
        """Blocks of one orbital: blocks are no tiles."""
        return float(self.need(1))

    def parts(self, memory_bytes: float) -> int:
        """Number of blocks of the spin with most virtual orbitals."""
        virtual = max(self.sizes.virtual)
        size = largest_block(virtual, self.need, max(self.need(1), OF_FREE * memory_bytes), self.processes)
        return -(-virtual // (size if self.block is None else min(size, self.block)))

    def moved(self, done: Sequence[float]) -> dict[Any, Touched]:
        return self.moved_by(ranges_of(self.sizes.virtual, len(done)), sum(done) / len(done))

    def moved_by(self, blocks: Sequence[Sequence[Range]], share: float = 1.0) -> dict[Any, Touched]:
        """Traffic of this share of the tasks with these blocks of each spin."""
        found = dict.fromkeys(self.operands, 0.0)
        if any(self._has(s, mixed=mixed) for s in range(len(blocks)) for mixed in (False, True)):
            for boo in self.of.boo:
                found[boo] += float(boo.nbytes) * self.processes
        for s in range(len(blocks)):
            self._add_same(found, s, blocks)
            if len(blocks) == 2:
                self._add_mixed(found, s, blocks)
        return {each: Touched(share * bytes_, 0.0) for each, bytes_ in found.items()}

    def _sums(self, array: Any, axis: int, s: int, blocks: Sequence[Sequence[Range]]) -> BlockSums:
        return BlockSums.of(widths(blocks[s], array.layout.tilings[axis]), self._empty(blocks[s]))

    def _empty(self, blocks: Sequence[Range]) -> Values:
        """Whether two orbitals of a block are one: then triples of open shells have none."""
        begins, ends = np.array(blocks).T
        found: Values = (ends - begins == 1) & (len(self.sizes.occupied) == 2)
        return found

    def _has(self, s: int, *, mixed: bool) -> bool:
        """Whether a spin has triples, with two of its orbitals (`mixed`) or with three."""
        return has_tasks(self.sizes.occupied[s], self.sizes.virtual[s], 2 if mixed else 3) or self._is_closed

    @property
    def _is_closed(self) -> bool:
        return len(self.sizes.occupied) == 1

    def _add_same(self, found: dict[Any, float], s: int, blocks: Sequence[Sequence[Range]]) -> None:
        if not self._has(s, mixed=False):
            return
        o, v, q = self.sizes.occupied[s], self.sizes.virtual[s], self.sizes.auxiliary
        t, bvo, bvv = self.of.same[s], self.of.bvo[s], self.of.bvv[s]
        found[bvo] += _item(bvo) * q * o * self._sums(bvo, 1, s, blocks).singles
        found[bvv] += _item(bvv) * q * v * self._sums(bvv, 1, s, blocks).singles
        of_t = self._sums(t, 0, s, blocks)
        found[t] += _item(t) * o * o * (v * of_t.singles + of_t.pairs)

    def _add_mixed(self, found: dict[Any, float], s: int, blocks: Sequence[Sequence[Range]]) -> None:
        if not self._has(s, mixed=True):
            return
        r, q = 1 - s, self.sizes.auxiliary
        (o, p), (v, w) = ((each[s], each[r]) for each in (self.sizes.occupied, self.sizes.virtual))
        for spin, inside, outside in ((s, o, v), (r, p, w)):
            for array, width in ((self.of.bvo[spin], inside), (self.of.bvv[spin], outside)):
                if spin == s:
                    count = self._sums(array, 1, s, blocks).firsts
                else:
                    tasks = self._sums(self.of.same[s], 0, s, blocks).tasks
                    count = tasks * widths(blocks[r], array.layout.tilings[1]).sum()
                found[array] += _item(array) * q * width * count
        t, mixed = self.of.same[s], self.of.mixed
        of_t = self._sums(t, 0, s, blocks)
        found[t] += _item(t) * o * o * (v * of_t.firsts + of_t.first_pairs)
        mine = self._sums(mixed, 2 * s, s, blocks)
        thirds = widths(blocks[r], mixed.layout.tilings[2 * r]).sum()
        found[mixed] += (
            _item(mixed) * o * p * (w * mine.firsts + mine.tasks * v * thirds + mine.firsts * thirds)
        )

    def work(self, on_disk: Collection[Any], memory_bytes: float, rates: Rates) -> float:
        return (self.operations() + self._of_integrals(self.parts(memory_bytes))) / rates.peak

    def operations(self) -> float:
        """Operations of products with amplitudes."""
        return triple_operations(self.sizes)

    def _of_integrals(self, count: int) -> float:
        """Operations that make four-index integrals, for each task again."""
        blocks = ranges_of(self.sizes.virtual, count)
        q, total = self.sizes.auxiliary, 0.0
        for s in range(len(blocks)):
            o, v = self.sizes.occupied[s], self.sizes.virtual[s]
            begins, ends = np.array(blocks[s]).T
            sums = BlockSums.of((ends - begins).astype(float), self._empty(blocks[s]))
            if self._has(s, mixed=False):
                total += 2.0 * q * (sums.singles * o**3 + sums.pairs * (2 * v * o + o * o))
            if len(blocks) == 2 and self._has(s, mixed=True):
                p, w = self.sizes.occupied[1 - s], self.sizes.virtual[1 - s]
                total += 2.0 * q * (sums.firsts * o * (o * o + p * p) + sums.tasks * w * p * o * o)
                total += 2.0 * q * sums.first_pairs * (2 * v * o + o * o)
                total += 2.0 * q * sums.firsts * w * (p * v + o * w + o * p)
        return total

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        """Of closed shells as `least_read`; of open shells each array once."""
        moved = self.moved([1.0])
        if not self._is_closed:
            return sum(float(each.nbytes) for each in self.operands if each in on_disk and moved[each].read)
        (o,), (v,), q = self.sizes.occupied, self.sizes.virtual, self.sizes.auxiliary
        (t,), (bvo,), (bvv,) = self.of.same, self.of.bvo, self.of.bvv
        counts = ((bvo, q * o), (bvv, q), (t, o * o))
        of_vo, of_vv, of_t = (_item(each) * n if each in on_disk else 0.0 for each, n in counts)
        # An element of B[Q,x,y], and of amplitudes of x and y, belongs to both: each has half of it.
        return least_read(v, of_vo + v * (of_vv + of_t) / 2, memory_bytes)


def has_tasks(occupied: int, virtual: int, least: int) -> bool:
    """Whether a spin has so many different occupied and virtual orbitals."""
    return occupied >= least and virtual >= least


def _item(array: Any) -> float:
    """Bytes of an element where it is stored."""
    return float(array.nbytes / array.layout.elements)


def triple_operations(sizes: Sizes) -> float:
    """Operations of products with amplitudes in the energy of (T)."""
    occupied, virtual = sizes.occupied, sizes.virtual
    if len(occupied) == 1:
        (o,), (v,) = occupied, virtual
        return 2.0 * o**3 * v**3 * (o + v)
    total = 0.0
    for (o, p), (v, w) in ((occupied, virtual), (occupied[::-1], virtual[::-1])):
        if has_tasks(o, v, 3):
            total += 0.5 * o**3 * v**3 * (o + v)
        if has_tasks(o, v, 2):
            total += 2.0 * o * o * p * v * v * w * (o + v + p + w)
    return total


@dataclass(frozen=True, eq=False)
class TripleDerivativesKernel:
    """Derivatives of (T): the kernel works once on each three blocks of virtual orbitals.

    Attributes:
        operands: T, and three-index integrals.
        results: the derivatives, to which blocks add.
    """

    sizes: Sizes
    threads: int
    operands: tuple[Any, ...]
    results: tuple[Any, ...]

    def __str__(self) -> str:
        return "derivatives of triples"

    def work_space(self, tile: int) -> float:
        """Blocks of one orbital: blocks are no tiles."""
        return float(self._bytes(1))

    def parts(self, memory_bytes: float) -> int:
        """Number of blocks of virtual orbitals."""
        v, size = max(self.sizes.virtual), 1
        while size < min(v, LARGEST_BLOCK) and self._bytes(size + 1) <= memory_bytes:
            size += 1
        return -(-v // size)

    def _bytes(self, block: int) -> int:
        sizes = self.sizes
        return derivative_bytes(sizes.occupied, sizes.virtual, sizes.auxiliary, block, self.threads)

    def moved(self, done: Sequence[float]) -> dict[Any, Touched]:
        blocks = len(done)
        times = sum(done) * (1.0 + (blocks + 1) / 2 + (blocks + 1) * (blocks + 2) / 6) / blocks
        found = {each: Touched(times * each.nbytes, 0.0) for each in self.operands}
        return found | {each: Touched(times * each.nbytes, times * each.nbytes) for each in self.results}

    def work(self, on_disk: Collection[Any], memory_bytes: float, rates: Rates) -> float:
        o, q = max(self.sizes.occupied), self.sizes.auxiliary
        of_integrals = 1.0 + q * self.parts(memory_bytes) / (o * o * max(self.sizes.virtual))
        return of_integrals * self.operations() / rates.peak

    def operations(self) -> float:
        """Three times those of the energy: derivatives by both factors of each product."""
        return 3.0 * triple_operations(self.sizes)

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        """Of closed shells as `least_read`, where orbitals have their sums, too; of open shells each array once."""
        once = {each: float(each.nbytes) for each in (*self.operands, *self.results) if each in on_disk}
        if len(self.sizes.occupied) == 2:
            return sum(once.values())
        (t, _, bvo, bvv), (of_t, of_vo, of_vv, *_) = self.operands, self.results
        # An element with two virtual orbitals belongs to both.
        shares = {t: 0.5, bvo: 1.0, bvv: 0.5, of_t: 0.5, of_vo: 1.0, of_vv: 0.5}
        (v,) = self.sizes.virtual
        orbital = sum(share * once.get(each, 0.0) for each, share in shares.items()) / v
        return least_read(v, orbital, memory_bytes)
