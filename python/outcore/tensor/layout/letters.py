"""The tilings of the axes of an expression. Arrays with a common axis must agree about its tiles."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import Any

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.tiling import Tiling

Tilings = Sequence[Tiling | None]  # of the axes of an array; None: without tiles


def common_tilings(what: str, arrays: Iterable[tuple[str, str, Tilings]]) -> dict[str, Tiling]:
    """The tiling of each letter along which an array has tiles, with the labels that any of the arrays knows.

    Args:
        what: the operation, for errors.
        arrays: the name of each array for errors, its letters and its tilings.

    Raises: OutcoreError (EINVAL) if two have different tiles, or different labels, along one axis.
    """
    known: dict[str, dict[str, tuple[str, Any]]] = {}  # facts of each letter, and the array of each
    alike: dict[str, Tiling | None] = {}  # the one tiling of each letter; None: arrays have several
    for name, labels, tilings in arrays:
        for letter, tiling in zip(labels, tilings, strict=True):
            if tiling is None:
                continue
            before = alike.setdefault(letter, tiling)
            if before is None or tiling != before or tiling.name != before.name:
                alike[letter] = None
            found = known.setdefault(letter, {})
            for kind in ("cuts", "irreps", "spins"):
                mine = getattr(tiling, kind)
                if kind != "cuts" and not any(mine):
                    continue  # no labels
                first, theirs = found.setdefault(kind, (name, mine))
                if mine != theirs:
                    raise OutcoreError(
                        errno.EINVAL,
                        what,
                        detail=f"the tilings of axis '{letter}' differ: {kind} {_short(theirs)} in {first}, "
                        f"{_short(mine)} in {name}",
                    )
            if tiling.name:
                found.setdefault("name", (name, tiling.name))
    return {
        letter: alike[letter] or _tiling({kind: value for kind, (_, value) in found.items()})
        for letter, found in known.items()
    }


def _tiling(known: dict[str, Any]) -> Tiling:
    return Tiling(known["cuts"][-1], **known)


def _short(values: Sequence[int]) -> str:
    return str(list(values)) if len(values) < 9 else f"{list(values[:4])}.. ({len(values)} numbers)"
