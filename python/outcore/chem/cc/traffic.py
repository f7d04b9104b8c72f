"""About how many bytes an iteration takes and gives, by what is left in memory to work in: those of arrays on disk
are what a plan is chosen by. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.chem.cc.placing import Entry
    from outcore.chem.cc.plan import Sizes

_DOUBLE = 8
_USES = {"V": 0, "r": 0, "e": 2, "t": 2, "A": 2, "G": 2, "U": 4, "E": 0, "H": 0, "M": 0, "L": 0}
_OFTEN = 8
"""Times that an array is read or written beside products of pairs and the ladder, by the first letter of its
name."""
_OF_PAIRS = "TUGERHML"  # arrays of two pairs that such products read
_PRODUCTS = {1: 4, 2: 13}  # of pairs with pairs, by spins
PANELS = 0.75
"""Of the work space, for panels of products: the rest is for tiles that are converted and permuted."""


def of_ladder(arrays: Mapping[str, Entry], passes: int) -> float:
    """Integrals of these arrays that a ladder reads, so often."""
    return float(passes * sum(entry.bytes for name, entry in arrays.items() if name[0] == "V"))


def beside_ladder(
    sizes: Sizes, arrays: Mapping[str, Entry], among: Mapping[str, Entry], work_bytes: int, passes: int
) -> float:
    """All else that is moved of arrays, which are some of those `among` which products are: those on disk, or all.
    `passes` of the amplitudes that the ladder packs. Of all processes, each with so much to work in."""
    moved = float(sum(_USES.get(name[0], _OFTEN) * entry.bytes for name, entry in arrays.items()))
    moved += passes * sum(entry.bytes for name, entry in arrays.items() if name[0] == "T")
    of_pairs = [name for name in among if name[0] in _OF_PAIRS]
    if of_pairs:
        share = sum(name in arrays for name in of_pairs) / len(of_pairs)
        pairs = sum(o * v for o, v in zip(sizes.occupied, sizes.virtual, strict=True)) / len(sizes.occupied)
        words = max(1.0, PANELS * work_bytes / _DOUBLE)
        moved += share * _PRODUCTS[len(sizes.occupied)] * 2 * pairs**3 / math.sqrt(words) * _DOUBLE
    return moved
