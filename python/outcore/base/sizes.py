"""Numbers of bytes for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def in_words(count: float) -> str:
    """A number of bytes in the largest unit of which it is one or more, with three digits or more: only zero is
    "0 bytes"."""
    count = max(0, round(count))
    for unit, name in _UNITS:
        amount = count / unit
        if amount >= 0.9995:
            digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
            return f"{amount:.{digits}f} {name}"
    return f"{count} byte{'' if count == 1 else 's'}"


def times(numbers: Iterable[int]) -> str:
    """A shape for people: "2 x 3"; "one element" for a shape without axes."""
    return " x ".join(map(str, numbers)) or "one element"


def shape_rows(shape: Sequence[int], dtype: np.dtype[Any]) -> list[tuple[str, object]]:
    """Rows of a table: shape, element type and size of a dense array."""
    return [
        ("shape", times(shape)),
        ("elements", dtype),
        ("size", in_words(math.prod(shape) * dtype.itemsize)),
    ]
