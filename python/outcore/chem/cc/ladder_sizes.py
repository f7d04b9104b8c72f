"""How much memory the product of a ladder takes, and how often its integrals go by. Pure arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from outcore.chem.cc import stream

if TYPE_CHECKING:
    from outcore.chem.cc.plan import Sizes

_DOUBLE = 8
_LADDER = 0.9  # of the work space is for the ladder
_FEWEST = 16  # pairs ij of a product of the ladder at a time


def passes(sizes: Sizes, block: int, threads: int, work_bytes: int, way: str) -> int:
    """How often integrals of the ladder go by: each time with as many pairs ij as there is room for."""
    left = _LADDER * work_bytes - tiles(sizes, block, threads, way)
    return min(math.ceil(streamed(sizes, block, threads) / max(1.0, left)), most_passes(sizes))


def most_passes(sizes: Sizes) -> int:
    return max(1, min(sizes.occupied) ** 2 // _FEWEST)


def tiles(sizes: Sizes, block: int, threads: int, way: str) -> int:
    """Bytes of the tiles of integrals of a ladder that threads have, which are brought or made."""
    o, both = max(sizes.occupied), 2 if len(sizes.occupied) == 1 else 1
    rows, columns = block * max(o, block), block * block
    if way == "rebuild":
        return threads * (4 * sizes.auxiliary * rows + (2 + 2 * both) * rows * columns) * _DOUBLE
    return threads * rows * columns * (both * stream.AHEAD * 4 + _DOUBLE)


def streamed(sizes: Sizes, block: int, threads: int) -> int:
    """Bytes of all amplitudes of a ladder, and of a row of results of each thread."""
    o, v = max(sizes.occupied), max(sizes.virtual)
    amplitudes = v * v * o * o // (2 if len(sizes.occupied) == 1 else 1)
    return (amplitudes + 2 * threads * block * max(o, block) * o * o) * _DOUBLE
