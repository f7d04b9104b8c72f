"""Memory of panels of products in coupled cluster, and sizes of blocks. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from outcore.tensor.plan.schedule import FULL

if TYPE_CHECKING:
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.tensor.layout.layout import Layout

_DOUBLE = 8
PANELS = 0.75
"""Share of the work space for panels of products: the rest is for tiles that are converted and permuted."""

_MOST_BLOCKS = 24  # blocks of virtual orbitals: the number of tiles of four indices is the fourth power


def min_block(sizes: Sizes) -> int:
    return -(-max(sizes.virtual) // _MOST_BLOCKS)


def largest_tile(layout: Layout) -> int:
    """Elements of the largest tile."""
    return math.prod(max(each.sizes) for each in layout.tilings)


def of_panels(operands: Sequence[int], out: int) -> int:
    """Elements of the least work space in which `einsum` can multiply arrays with tiles of so many elements:
    one tile of each operand is multiplied while the next is fetched."""
    return math.ceil((2 * sum(operands) + out) / (PANELS * FULL)) + 1


def of_three_index(sizes: Sizes, block: int) -> int:
    """Elements of the work space for products with three-index integrals in panels of a useful length."""
    o, v, q = max(sizes.occupied), max(sizes.virtual), sizes.auxiliary
    pair = (block * o) ** 2
    return max(
        q * block * (7 * block + 4 * o),
        3 * q * block * o + 3 * pair,  # Coulomb
        q * (2 * o * o + 3 * block * max(o, block)),  # exchange
        # Panels of dressed integrals of open shells have a row of virtual orbitals.
        q * block * (6 * v + 3 * o) if len(sizes.occupied) == 2 else 0,
    )
