"""How few bytes passes over three-index integrals move; docs/why/bounds.md derives it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.chem.ri.plan import TransformSizes

_DOUBLE = 8


def once(whole_bytes: float, memory_bytes: float) -> float:
    """The least bytes that are written, or read in one pass: the memory holds the others."""
    return max(0.0, whole_bytes - memory_bytes)


def pairs(sizes: TransformSizes, kinds: list[tuple[int, int]], memory_bytes: float) -> float:
    """The least bytes that MP2 writes and reads: at some time the integrals B[P,i,a] of any two occupied orbitals
    are in memory together. kinds: pairs of spins that are correlated. memory_bytes: of all processes."""
    words = memory_bytes / _DOUBLE
    each = [sizes.auxiliary * virtual for virtual in sizes.virtual]
    read = {True: 0.0, False: 0.0}
    for a, b in kinds:
        same = a == b
        work = sizes.occupied[a] * (sizes.occupied[b] - same) / (2 if same else 1)
        if not work:
            continue
        # p and q orbitals of Z words have p^2/2 pairs, or p q, at most.
        of_words = 1 / ((2 if same else 4) * each[a] * each[b])
        read[same] += _DOUBLE * _read(work / of_words, words)
    # Pairs of one spin read other words than those of the other spin; mixed pairs may read along.
    one_pass = once(sizes.bytes, memory_bytes)
    return one_pass + max(one_pass, *read.values())


def _read(needed: float, words: float) -> float:
    """The least words that are read, if Z words in memory allow Z^2 of what is `needed`: each of any h parts of a
    run, the first one too, finds all words of the memory and reads equally many."""
    best = needed / (4 * words * words)
    parts = {max(1, math.floor(best)), max(1, math.ceil(best))}
    return max(0.0, *(math.sqrt(needed * h) - h * words for h in parts))
