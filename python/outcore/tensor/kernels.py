"""Inner loops over tiles: permute, scale, add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[Any]]

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


def add(out: Values, value: Values, alpha: complex = 1) -> None:
    """out += alpha * value"""
    permute(out, value, range(out.ndim), alpha, accumulate=True)


def permute(
    out: Values, value: Values, axes: Sequence[int], alpha: complex = 1, *, accumulate: bool = False
) -> Values:
    """out = alpha * transpose(value, axes), or added to it; of one element type. Returns out."""
    turned = np.transpose(value, axes)
    number = out.dtype.type(alpha)
    if accumulate:
        np.add(out, turned if alpha == 1 else turned * number, out=out)
    elif alpha == 1:
        out[...] = turned
    else:
        np.multiply(turned, number, out=out)
    return out
