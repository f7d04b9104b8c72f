"""The tilings of the axes of an expression: arrays that have an axis in common must agree about its tiles."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from outcore.base.errors import OutcoreError
from outcore.tensor.tiling import Tiling

Tilings = Sequence[Tiling | None]  # of the axes of an array; None: without tiles


def common_tilings(what: str, arrays: Iterable[tuple[str, str, Tilings]]) -> dict[str, Tiling]:
    """Of each letter its tiling, if an array has tiles along it, with the labels that any of them knows.

    Args:
        what: is under way, for errors.
        arrays: the name of each for errors, its letters, its tilings.

    Raises: OutcoreError (EINVAL) if two have different tiles, or different labels, along one axis.
    """
    known: dict[str, tuple[str, Tiling]] = {}
    for name, labels, tilings in arrays:
        for letter, tiling in zip(labels, tilings, strict=True):
            if tiling is None:
                continue
            first, other = known.setdefault(letter, (name, tiling))
            for kind in ("cuts", "irreps", "spins"):
                mine, theirs = getattr(tiling, kind), getattr(other, kind)
                if mine != theirs and (kind == "cuts" or (any(mine) and any(theirs))):
                    raise OutcoreError(
                        errno.EINVAL,
                        what,
                        detail=f"the tilings of axis '{letter}' differ: {kind} {_short(theirs)} in {first}, "
                        f"{_short(mine)} in {name}",
                    )
            if _knows_more(tiling, other):
                known[letter] = name, tiling
    return {letter: tiling for letter, (_, tiling) in known.items()}


def _knows_more(tiling: Tiling, other: Tiling) -> bool:
    return any(
        any(getattr(tiling, kind)) and not any(getattr(other, kind)) for kind in ("irreps", "spins", "name")
    )


def _short(values: Sequence[int]) -> str:
    return str(list(values)) if len(values) < 9 else f"{list(values[:4])}.. ({len(values)} numbers)"
