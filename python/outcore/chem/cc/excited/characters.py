"""The character of a state, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.divergence import Names

Values = np.ndarray[Any, np.dtype[Any]]

_MOSTLY, _HARDLY = 0.85, 0.5
"""Shares of singles: a state with the first or more is one of singles, down to the second it is mixed."""
_SHOWN, _MOST = 0.1, 3
"""The least share of a single that is named, and the most singles that are."""


def of_root(
    words: tuple[str, str],
    names: Names,
    blocks: Sequence[tuple[int | None, int | None, Values]],
    share: float,
) -> str:
    """words: names of singles and of doubles. blocks: singles, [i,a], [i] or [a], with spins of the virtual and of
    the occupied orbital. share: of singles in the state."""
    one, two = words
    if share >= _MOSTLY:
        kind = one
    elif share >= _HARDLY:
        kind = f"{one}, mixed with {two}"
    else:
        kind = two
    parts = _parts(names, blocks) if share >= _HARDLY else []
    return f"{kind} {', '.join(parts)}" if parts else kind


def _parts(names: Names, blocks: Sequence[tuple[int | None, int | None, Values]]) -> list[str]:
    total = sum(float(np.vdot(each, each)) for _, _, each in blocks)
    weights = [
        (float(weight), number, place)
        for number, (_, _, each) in enumerate(blocks)
        for place, weight in np.ndenumerate(each**2 / total)
        if weight >= _SHOWN
    ]
    largest = sorted(weights, key=lambda each: -each[0])[:_MOST]
    return [f"{_orbitals(names, *blocks[n][:2], place)} {100 * weight:.0f} %" for weight, n, place in largest]


def _orbitals(names: Names, virtual: int | None, occupied: int | None, place: tuple[int, ...]) -> str:
    found = []
    if occupied is not None:
        found.append(names.of_occupied(occupied, place[0]))
    if virtual is not None:
        found.append(names.of_virtual(virtual, place[-1]))
    return " -> ".join(found)
