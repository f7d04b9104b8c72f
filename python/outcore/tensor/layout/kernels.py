"""Inner loops over tiles: permute, scale, add; pack pairs of indices. Any thread may call them, and other Python
threads run meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from outcore import _core

Values = np.ndarray[Any, np.dtype[Any]]

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


@cache
def type_name(dtype: np.dtype[Any]) -> str:
    """The `name` of a type. NumPy would build it at each call."""
    return dtype.name


def add(out: Values, value: Values, alpha: complex = 1) -> Values:
    """out += alpha * value; both have the same shape and element type."""
    return permute(out, value, range(out.ndim), alpha, accumulate=True)


def permute(
    out: Values, value: Values, axes: Sequence[int], alpha: complex = 1, *, accumulate: bool = False
) -> Values:
    """out = alpha * transpose(value, axes), or out += that if `accumulate`. Both have the same element type, one of
    DTYPES, and their memory does not overlap. Returns out. Raises ValueError or TypeError if they do not fit."""
    turned = np.transpose(value, axes)
    if value.dtype != out.dtype or out.dtype not in DTYPES:
        raise TypeError(f"elements of type {value.dtype} into those of {out.dtype}")
    if np.may_share_memory(out, value):
        raise ValueError("the result of a permutation overlaps with its input")
    number = np.array(alpha, out.dtype)
    target = out
    if out.ndim == 0:
        target, turned = out.reshape(1), turned.reshape(1)
    if not turned.flags.aligned:
        turned = turned.copy()
    _core.tensor_permute(target, turned, type_name(out.dtype), number, accumulate)
    return out


def pack_pairs(values: Values, diagonal: float = 1.0) -> tuple[Values, Values]:
    """Sums and differences of elements that differ by the order of the last two indices: for c >= d,

        plus[.., c (c + 1) / 2 + d] = x[.., c, d] + x[.., d, c]        on the diagonal times `diagonal`
        minus[.., c (c - 1) / 2 + d] = x[.., c, d] - x[.., d, c]       without a diagonal

    A product over all c and d becomes two of half the length. If the outer indices of both operands are packed,
    too, the two together take a quarter of the work."""
    values = np.ascontiguousarray(values)
    *outer, n, other = values.shape
    if n != other:
        raise ValueError(f"pairs of {n} and {other} indices")
    plus = np.empty((*outer, n * (n + 1) // 2), values.dtype)
    minus = np.empty((*outer, n * (n - 1) // 2), values.dtype)
    _core.tensor_pack_pairs(values, plus, minus, type_name(values.dtype), n, diagonal)
    return plus, minus


def unpack_pairs(plus: Values, minus: Values, out: Values, diagonal: float = 0.5) -> Values:
    """The reverse of `pack_pairs`: for c > d

        out[.., c, d] = (plus + minus) / 2,  out[.., d, c] = (plus - minus) / 2,  out[.., c, c] = diagonal * plus

    `out` is contiguous. Returns it."""
    if out.ndim < 2 or out.shape[-1] != out.shape[-2] or not out.flags.c_contiguous:
        raise ValueError(f"pairs into {out.shape} elements")
    if not plus.dtype == minus.dtype == out.dtype:
        raise TypeError(f"elements of types {plus.dtype}, {minus.dtype} into those of {out.dtype}")
    halves = np.ascontiguousarray(plus), np.ascontiguousarray(minus)
    _core.tensor_unpack_pairs(out, *halves, type_name(out.dtype), out.shape[-1], diagonal)
    return out
