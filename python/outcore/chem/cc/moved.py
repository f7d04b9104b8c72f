"""What products of coupled cluster move to and from disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outcore.tensor import bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outcore.tensor.array import Array


@dataclass(frozen=True)
class Moved:
    """Bytes, over all processes: `planned`; `counted`, of ladders by the rows that were made,
    which is less where another run has done a part; `least`:
    what each product by itself has to move in the memory that it has, whatever its order and tiles."""

    planned: float = 0.0
    counted: float = 0.0
    least: float = 0.0

    def __add__(self, other: Moved) -> Moved:
        return Moved(self.planned + other.planned, self.counted + other.counted, self.least + other.least)

    def __sub__(self, other: Moved) -> Moved:
        return Moved(self.planned - other.planned, self.counted - other.counted, self.least - other.least)


NOTHING = Moved()


def by_ladder(
    integrals: Sequence[Array],
    amplitudes: Array,
    products: Sequence[Array],
    done: Sequence[float],
    memory: int,
    processes: int,
) -> Moved:
    """Of a ladder whose integrals go by once for each part of the columns of its products.

    Args:
        integrals: none where they are made again.
        done: of each part, the share of its rows that this run has made.
        memory: bytes of all processes, each of which packs all amplitudes.
    """
    passes = len(done)
    read, packed, put = _on_disk(*integrals), _on_disk(amplitudes), _on_disk(*products)
    by_all = packed * processes
    planned = (read + by_all) * passes + put
    counted = sum(read * part + by_all * (part > 0) + put * part / passes for part in done)
    least = packed + put
    if integrals:
        least = sum(
            bound.least_bytes(
                multiplications(v, product),
                bound.Moved(_on_disk(v), packed / len(integrals), _on_disk(product)),
                memory,
                v.store_dtype.itemsize,
            )
            for v, product in zip(integrals, products, strict=True)
        )
    return Moved(planned, counted, least)


def multiplications(integrals: Array, product: Array) -> float:
    """Of integrals [pq,cd] or [p,q,c,d] and a product [pq,ij] or [p,i,q,j]."""
    of_rows = product.shape[0] * (product.shape[2] if len(product.shape) == 4 else 1)
    return integrals.layout.elements * product.layout.elements / of_rows


def _on_disk(*arrays: Array) -> float:
    return float(sum(array.nbytes for array in arrays if array.where == "disk"))
