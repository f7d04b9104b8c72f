"""How few bytes passes over three-index integrals move; docs/why/bounds.md derives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outcore.tensor.plan.bound import least_words

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
        read[same] += max(0.0, _DOUBLE * least_words(work, words, of_words, power=2))
    # Pairs of one spin read other words than those of the other spin; mixed pairs may read along.
    one_pass = once(sizes.bytes, memory_bytes)
    return one_pass + max(one_pass, *read.values())
