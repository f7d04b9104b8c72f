"""How few bytes a product must move between memory and disk, whatever its order and tiles.

With S words of memory, out[m,n] += left[m,k] right[k,n] moves at least 2mnk/sqrt(S) - 2S words, reads and writes
together (Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017), and what lies on disk once.

An array times itself may move less, as an element serves on both sides:

- where the result is symmetric, of N rows and with K inner indices, N^2 K/(sqrt(2) sqrt(S)) - 2S words (Beaumont,
  Eyraud-Dubois, Verite, Langou, arXiv 2202.10217): half of the multiplications, of which as many words allow
  sqrt(2) times as many;
- else half of the words of two arrays at least: p1, p2 and p3 words of both operands and of the result allow at
  most sqrt(p1 p2 p3) multiplications (Loomis, Whitney). That is largest, for as many words in all, if both operands
  are the same words, and then it is twice that of different ones.
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
    one_array: bool = False  # left and right

    @property
    def once(self) -> float:
        return self.out + (max(self.left, self.right) if self.one_array else self.left + self.right)


OF_ONE_ARRAY = 0.5
"""The share of multiplications that counts where an array is multiplied by itself."""


def of_symmetric(rows: int) -> float:
    """The same where the result is symmetric, of so many rows. Its diagonal does not count."""
    return (1 - 1 / max(1, rows)) / (2 * math.sqrt(2))


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
