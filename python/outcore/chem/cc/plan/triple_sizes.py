"""Memory of blocks of virtual orbitals in (T), and its time. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outcore.tensor.plan.bound import least_words
from outcore.tensor.plan.statements import Touched

if TYPE_CHECKING:
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.tensor.plan.rates import Rates

_DOUBLE = 8
LARGEST_BLOCK = 32


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
    """The least bytes that (T) of closed shells reads from disk: any three virtual orbitals have to be in memory
    together at some time, with their amplitudes and three-index integrals. orbital_bytes: bytes of these on disk,
    for each orbital. docs/why/bounds.md derives it."""
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


def seconds(occupied: Sequence[int], virtual: Sequence[int], rates: Rates) -> float:
    """Predicted seconds of (T). occupied, virtual: orbitals of each spin, or of closed shells."""
    o, v = max(occupied), max(virtual)
    closed = 2.0 * o**3 * v**3 * (o + v) / rates.peak
    return closed if len(occupied) == 1 else 4.0 * closed


@dataclass(frozen=True, eq=False)
class TriplesKernel:
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
        occupied, virtual = self.sizes.occupied, self.sizes.virtual
        if len(occupied) == 1:
            (o,), (v,) = occupied, virtual
            return 6.0 * o**3 * v**3 * (o + v)
        total = 0.0
        for (o, p), (v, w) in ((occupied, virtual), (occupied[::-1], virtual[::-1])):
            total += 1.5 * o**3 * v**3 * (o + v)
            total += 3.0 * o * o * p * v * v * w * (2.0 * (o + v) + 2.0 * (p + w))
        return total

    def least_bytes(self, on_disk: Collection[Any], memory_bytes: float) -> float:
        once = {each: float(each.nbytes) for each in self.operands}
        once |= {each: 2.0 * each.nbytes for each in self.results}
        return sum(bytes_ for each, bytes_ in once.items() if each in on_disk)
