"""Memory of the largest tiles and panels that coupled cluster works on at a time. Pure arithmetic."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from outcore.chem.cc.plan import ladder_kernels
from outcore.chem.cc.plan.triple_sizes import block_bytes, derivative_bytes
from outcore.tensor.plan.schedule import FULL

if TYPE_CHECKING:
    from outcore.chem.cc.plan.sizes import Sizes

_DOUBLE = 8
PANELS = 0.75
"""Share of the work space for panels of products: the rest is for tiles that are converted and permuted."""


_MOST_BLOCKS = 24  # blocks of virtual orbitals: the number of tiles of four indices is the fourth power


def min_block(sizes: Sizes) -> int:
    return -(-max(sizes.virtual) // _MOST_BLOCKS)


def _of_its_rows(sizes: Sizes, block: int, threads: int) -> list[int]:
    """Elements of the work on a ladder's results with occupied orbitals."""
    o = max(sizes.occupied)
    hole, one, pair = o**4, o**3 * block, (o * block) ** 2
    if len(sizes.occupied) == 2:
        # The last: panels of dressed integrals of open shells, which have a row of virtual orbitals.
        row = sizes.auxiliary * block * (6 * max(sizes.virtual) + 3 * o)
        return [4 * hole + 3 * one * threads, row]
    return [hole + 3 * one * threads, hole + (one + 5 * pair) * threads, hole // 2 + 7 * pair * threads]


def _of_occupied_panels(sizes: Sizes) -> int:
    """Elements of the least work space in which `einsum` can multiply two arrays as B[Q,k,i]: tiles of occupied
    orbitals are not cut, and of each operand one tile is multiplied while the next is fetched. Where most orbitals
    are occupied, nothing else takes as much."""
    square = max(sizes.occupied) ** 2
    return math.ceil((4 * sizes.auxiliary * square + square * square) / (PANELS * FULL)) + 1


def work_bytes(sizes: Sizes, block: int, threads: int, *, derives_triples: bool = False) -> int:
    """Bytes of the largest tiles and panels that are worked on at a time. derives_triples: also of derivatives of
    (T)."""
    o, q, n = max(sizes.occupied), sizes.auxiliary, sizes.functions
    most = max(b - a for a, b in pairwise(sizes.cuts))
    pair, square = (block * o) ** 2, o * o
    rows = block * max(o, block)
    hole = o * (o + 1) // 2
    ladder = ladder_kernels.streamed(sizes, block, threads) // ladder_kernels.max_passes(sizes)
    ladder += max(ladder_kernels.tiles(sizes, block, threads, is_stored=way) for way in (True, False))
    at_once = (
        5 * pair,  # rings
        6 * pair * threads,  # tile by tile
        ladder // _DOUBLE,
        5 * rows * square * threads,  # its result
        4 * square * square,
        *_of_its_rows(sizes, block, threads),
        q * block * (o + 4 * block) * threads,  # operands of rings
        q * block * (7 * block + 4 * o),  # panels of products with three-index integrals
        3 * q * block * o + 3 * pair,  # Coulomb
        q * (2 * square + 3 * block * max(o, block)),  # exchange
        3 * q * (rows * threads + hole),  # fit
        _of_occupied_panels(sizes),
        q * q,  # metric
        most * 4 * n * n * threads,  # transformation
    )
    of_triples = derivative_bytes if derives_triples else block_bytes
    triples = of_triples(sizes.occupied, sizes.virtual, q, 1, threads)
    return max(int(max(at_once)) * _DOUBLE, triples)
