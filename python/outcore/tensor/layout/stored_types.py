"""Elements that are stored with fewer digits, and the largest change of them by that."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError

Values = np.ndarray[Any, np.dtype[Any]]

_NARROWER = {"float64": "float32", "complex128": "complex64"}


@dataclass(frozen=True)
class RoundingBound:
    """|stored - x| <= relative * |x| + absolute. For complex numbers this holds for x and for each of its parts."""

    relative: float
    absolute: float


def check(dtype: np.dtype[Any], stored: np.dtype[Any]) -> None:
    if stored != dtype and _NARROWER.get(dtype.name) != stored.name:
        raise TypeError(f"elements of type {dtype} cannot be stored as {stored}")


def bound(dtype: np.dtype[Any], stored: np.dtype[Any]) -> RoundingBound:
    """The bound of one rounding: half of a unit in the last place, or half of the smallest number."""
    if stored == dtype:
        return RoundingBound(0.0, 0.0)
    info = np.finfo(stored)
    return RoundingBound(float(info.eps) / 2, float(info.smallest_subnormal) / 2)


def rounded(values: Values, stored: np.dtype[Any], what: object) -> Values:
    """The values, rounded to the type. Raises OutcoreError (ERANGE) if a finite number would become infinite."""
    if values.dtype == stored:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        result = values.astype(stored)
    if not np.isfinite(result).all() and (np.isfinite(values) & ~np.isfinite(result)).any():
        largest = np.abs(values[np.isfinite(values)]).max()
        raise OutcoreError(
            errno.ERANGE,
            f"store elements of {what!r}",
            detail=f"{largest:.3g} is more than {stored} holds ({np.finfo(stored).max:.3g})",
        )
    return result
