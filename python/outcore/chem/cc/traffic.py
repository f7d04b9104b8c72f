"""About how many bytes an iteration takes and gives, by what is left in memory to work in: those of arrays on disk
are what a plan is chosen by. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from outcore.chem.cc import methods
from outcore.chem.cc.specs import Role

if TYPE_CHECKING:
    from outcore.chem.cc.placing import Entry
    from outcore.chem.cc.plan import Sizes

_DOUBLE = 8
_OPEN_SHELLS = 13  # products of pairs with pairs
PANELS = 0.75
"""Of the work space, for panels of products: the rest is for tiles that are converted and permuted."""


def of_ladder(arrays: Mapping[str, Entry], passes: int) -> float:
    """Integrals of these arrays that a ladder reads, so often."""
    return float(passes * _bytes_of(arrays, Role.LADDER_INTEGRALS))


def beside_ladder(
    sizes: Sizes, arrays: Mapping[str, Entry], among: Mapping[str, Entry], work_bytes: int, passes: int
) -> float:
    """All else that is moved of arrays, which are some of those `among` which products are: those on disk, or all.
    `passes` of the amplitudes that the ladder packs. Of all processes, each with so much to work in."""
    moved = float(sum(entry.spec.uses * entry.bytes for entry in arrays.values()))
    moved += passes * _bytes_of(arrays, Role.AMPLITUDES)
    of_pairs = [name for name, entry in among.items() if entry.spec.in_pair_products]
    if of_pairs:
        share = sum(name in arrays for name in of_pairs) / len(of_pairs)
        pairs = sum(o * v for o, v in zip(sizes.occupied, sizes.virtual, strict=True)) / len(sizes.occupied)
        words = max(1.0, PANELS * work_bytes / _DOUBLE)
        products = methods.of(sizes.method).pair_products if len(sizes.occupied) == 1 else _OPEN_SHELLS
        moved += share * products * 2 * pairs**3 / math.sqrt(words) * _DOUBLE
    return moved


def _bytes_of(arrays: Mapping[str, Entry], role: Role) -> int:
    return sum(entry.bytes for entry in arrays.values() if entry.spec.role is role)
