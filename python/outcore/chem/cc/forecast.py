"""What the ladder of coupled cluster takes with its integrals in memory, on disk, or made again in each iteration,
and what an iteration takes in all. Pure arithmetic, from rates of the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outcore.chem.cc import methods

if TYPE_CHECKING:
    from outcore.chem.cc.plan import Sizes
    from outcore.job.world import World

WAYS = ("memory", "disk", "rebuild")
ITERATIONS = 12  # as a rule
_STORED = 4  # bytes of an element
_COPIES = {"memory": 6, "disk": 16, "rebuild": 10}
"""Passes over a tile beside its product: it is converted, from the disk also brought and checked, or else packed of
two products. Each as long as a copy in the caches; measured."""


_HANDLED, _MOVED = 15, 15
"""Passes over bytes that are put in another order, in memory that no cache holds; and more where they are moved to
or from disk and checked. Each as long as a copy in the caches; measured."""


@dataclass(frozen=True)
class Rates:
    """Of all processes of a job together. A second: operations of products of matrices, bytes that are copied,
    read and written. narrow: operations of products with as few columns as a ladder has pairs ij; 0: as others."""

    flops: float
    copied: float
    read: float
    written: float
    narrow: float = 0.0

    @staticmethod
    def measure(world: World, threads: int, columns: int) -> Rates:
        """columns: pairs ij. Collective, the same at all: of process 0."""
        from outcore.job import machine

        def look() -> Rates:
            busy, all_threads = threads * world.node_size, threads * world.size
            disk, _ = machine.planning_disk(world.scratch)
            return Rates(
                machine.gemm(1024, 1024, 1024, busy) * all_threads,
                machine.copying(busy) * all_threads,
                disk.read_bytes_per_s * world.node_count,
                disk.write_bytes_per_s * world.node_count,
                machine.gemm(1024, columns, 1024, busy) * all_threads,
            )

        found: Any = None
        with world.together("measure rates"):
            found = look() if world.rank == 0 else None
        result: Rates = world.broadcast(found)
        return result


@dataclass(frozen=True)
class Way:
    """Where the integrals are. once: seconds of making them; iteration: of the products of one. Bytes: of the
    integrals where they lie; read in an iteration from there."""

    name: str
    once_s: float
    iteration_s: float
    stored_bytes: int
    read_bytes: int

    @property
    def seconds(self) -> float:
        """Of all iterations, as many as are usual."""
        return self.once_s + ITERATIONS * self.iteration_s

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds_once": self.once_s,
            "seconds_of_an_iteration": self.iteration_s,
            "stored_bytes": self.stored_bytes,
            "read_bytes_of_an_iteration": self.read_bytes,
        }


def _shapes(sizes: Sizes) -> list[tuple[int, int, int]]:
    """Of each product of a ladder: rows pq and elements cd of its integrals, and columns ij. What is made of the
    same three-index integrals is one."""
    o, v = sizes.occupied, sizes.virtual
    n = [a + b for a, b in zip(o, v, strict=True)]
    if len(o) == 1:
        return [(n[0] * n[0] // 2, v[0] * v[0], o[0] * o[0] // 2)]
    same = [(n[s] * n[s] // 2, v[s] * v[s] // 2, o[s] * o[s] // 2) for s in (0, 1)]
    return [*same, (n[0] * n[1], v[0] * v[1], o[0] * o[1])]


def ladder(sizes: Sizes, rates: Rates, passes: dict[str, int] | None = None) -> dict[str, Way]:
    """All ways. passes: how often the integrals go by in an iteration, as not all amplitudes are in memory; None:
    once."""
    passes = passes or dict.fromkeys(WAYS, 1)
    shapes = _shapes(sizes)
    elements = sum(rows * columns for rows, columns, _ in shapes)
    product = _of_ladder(sizes) / (rates.narrow or rates.flops)
    products = (
        (2.0, 2.0, 1.0) if len(shapes) == 3 else (1.0,)
    )  # differences are of two, as sums and differences are
    made = sum(
        2.0 * sizes.auxiliary * rows * columns * count
        for (rows, columns, _), count in zip(shapes, products, strict=True)
    )
    made = made / rates.flops + elements * 8 * _COPIES["rebuild"] / rates.copied
    stored = elements * _STORED
    read = passes["disk"] * stored

    def converted(way: str) -> float:
        return _COPIES[way] * passes[way] * stored / rates.copied

    return {
        "memory": Way("memory", made, product + converted("memory"), stored, 0),
        "disk": Way(
            "disk",
            made + stored / rates.written,  # a small cache holds little of what waits to be written
            max(product + converted("disk"), read / rates.read),
            stored,
            read,
        ),
        "rebuild": Way("rebuild", 0.0, product + passes["rebuild"] * made, 0, 0),
    }


def choose(ways: dict[str, Way], possible: Iterable[str]) -> str:
    """Of those that are possible the one that takes least."""
    return min(possible, key=lambda name: ways[name].seconds)


def operations(sizes: Sizes) -> float:
    """Of the products of an iteration."""
    return _of_ladder(sizes) + _of_rest(sizes)


def _of_ladder(sizes: Sizes) -> float:
    return sum(2.0 * rows * columns * ij for rows, columns, ij in _shapes(sizes))


def _of_rest(sizes: Sizes) -> float:
    q = sizes.auxiliary
    pairs = [o * v for o, v in zip(sizes.occupied, sizes.virtual, strict=True)]
    if len(pairs) == 1:
        ((pair,), (o,)) = pairs, sizes.occupied
        products = methods.of(sizes.method).pair_products
        return 2.0 * products * pair**3 + 7.0 * q * pair**2 + 0.5 * o**2 * pair**2
    a, b = pairs
    return 26.0 * ((a + b) / 2) ** 3 + 24.0 * q * ((a + b) / 2) ** 2


def rest_of_iteration(sizes: Sizes, rates: Rates, handled: float, moved: float) -> float:
    """Seconds of an iteration beside the ladder. handled: bytes that products and passes over arrays take and give;
    moved: those of them that come from disk or go there."""
    return _of_rest(sizes) / rates.flops + (_HANDLED * handled + _MOVED * moved) / rates.copied


def triples(sizes: Sizes, rates: Rates) -> float:
    """Seconds of (T)."""
    o, v = max(sizes.occupied), max(sizes.virtual)
    closed = 2.0 * o**3 * v**3 * (o + v) / rates.flops
    return closed if len(sizes.occupied) == 1 else 4.0 * closed
