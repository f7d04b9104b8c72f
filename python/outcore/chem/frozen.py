"""How many of the lowest orbitals are not correlated."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError


def count_frozen(mol: Any, frozen: int | str | Sequence[int] | None, occupied: int) -> int:
    """Lowest orbitals that are not correlated, of so many occupied ones.

    frozen: their number, a list of them, None for none, or "auto" for the cores that no effective core potential
    has taken. Raises OutcoreError (EINVAL)."""
    count = _frozen(mol, frozen)
    if count > occupied:
        raise OutcoreError(
            errno.EINVAL, "freeze orbitals", detail=f"{count} frozen, but only {occupied} are occupied"
        )
    return count


def _frozen(mol: Any, frozen: int | str | Sequence[int] | None) -> int:
    if frozen is None:
        return 0
    if frozen == "auto":
        from pyscf.data import elements

        return int(elements.chemcore(mol))
    if isinstance(frozen, (list, tuple, np.ndarray)):
        named = list(frozen)
        if sorted(named) != list(range(len(named))):
            raise OutcoreError(
                errno.EINVAL,
                "freeze orbitals",
                detail=f"{named} are not the lowest orbitals 0 to {len(named) - 1}, each once; others cannot be "
                "frozen, give the number of the lowest ones",
            )
        return len(named)
    text = str(frozen).strip()
    if isinstance(frozen, bool) or not (text.isascii() and text.isdigit()):
        raise OutcoreError(
            errno.EINVAL, "freeze orbitals", detail=f"'{frozen}' is neither a number of orbitals nor 'auto'"
        )
    return int(text)
