"""How few bytes a product must move between memory and disk, whatever its order and tiles.

With S words of memory, out[m,n] += left[m,k] right[k,n] moves at least 2mnk/sqrt(S) - 2S words, reads and writes
together (Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017), and what lies on disk once. That is for left and
right as two arrays: for an array times itself other ways could move less (Beaumont, Eyraud-Dubois, Verite, Langou,
arXiv 2202.10217), which no plan here knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class MovedOnce:
    """Bytes of each array if it is moved once; 0 for what lies in memory."""

    left: float
    right: float
    out: float

    @property
    def once(self) -> float:
        return self.left + self.right + self.out


def least_bytes(multiplications: float, moved: MovedOnce, memory_bytes: float, word_bytes: int) -> float:
    """Bytes that a product moves at least in `memory_bytes`.

    Args:
        multiplications: m n k, of tiles that are not zero if arrays are sparse, all batches together.
        moved: what has to be moved once. Where an operand lies in memory only that holds.
        word_bytes: of an element as it lies on disk, the smallest of the arrays.
    """
    words = memory_bytes / word_bytes
    if words <= 0 or min(moved.left, moved.right) <= 0:
        return moved.once
    volume = 2 * multiplications / math.sqrt(words) - 2 * words
    return max(moved.once, volume * word_bytes)
