"""Products of matrices that are added to what is there, by one thread, with the interpreter free for others.

NumPy cannot add a product in place. SciPy exports the addresses of its BLAS, which native code calls; without SciPy
NumPy multiplies, and adds strip by strip.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from outcore import _core
from outcore.tensor.layout.kernels import DTYPES

Matrix = np.ndarray[Any, np.dtype[Any]]

_STRIP_BYTES = 1 << 20  # of a product that is added afterwards
_PRODUCT_BYTES = 1 << 20  # of what NumPy has multiplied, before it is added
_SMALL = 48**3  # multiplications of a matrix: of smaller ones NumPy multiplies many at a time


def add_product(left: Matrix, right: Matrix, out: Matrix, alpha: complex = 1, *, add: bool = True) -> None:
    """out[m,n] = alpha left[m,k] right[k,n], added to what is in `out` or in place of it. All are of one type. Fast
    where each has elements side by side along one axis; else NumPy multiplies. An integer result needs alpha =
    1."""
    if not add and 0 in left.shape:
        out[...] = 0
        return
    if 0 in out.shape or 0 in left.shape:
        return
    # With alpha = 0 BLAS reads nothing: what is no number must stay so.
    by_blas = alpha != 0 and out.dtype in DTYPES and has_blas()
    factor = np.array(alpha, out.dtype) if by_blas else None
    if not (by_blas and _core.tensor_multiply(left, right, out, out.dtype.name, factor, add)):
        _by_numpy(left, right, out, alpha, add)


def multiply(left: Matrix, right: Matrix, out: Matrix, scale: complex, *, add: bool) -> None:
    """out[b] (+)= scale left[b] right[b], matrices each."""
    batch, rows, columns = out.shape
    inner = left.shape[2]
    if batch > 1 and rows * columns * inner <= _SMALL:
        chunk = max(1, _PRODUCT_BYTES // (rows * columns * out.itemsize))
        for begin in range(0, batch, chunk):
            part = slice(begin, begin + chunk)
            _multiply_small(left[part], right[part], out[part], scale, add=add)
        return
    for a, b, c in zip(left, right, out, strict=True):
        add_product(a, b, c, scale, add=add)


def _multiply_small(left: Matrix, right: Matrix, out: Matrix, scale: complex, *, add: bool) -> None:
    product: Any = left * right if left.shape[1:] == right.shape[1:] == (1, 1) else left @ right
    if scale != 1:
        product *= out.dtype.type(scale)
    if add:
        out += product
    else:
        out[...] = product


@cache
def has_blas() -> bool:
    """Whether there is a BLAS that adds in place. To be asked before `team.blas_of_one_thread`, which sees the
    libraries that are there: one that came later would have threads of its own in every product."""
    return _core.tensor_has_blas()


def _by_numpy(left: Matrix, right: Matrix, out: Matrix, alpha: complex, add: bool) -> None:
    scale = out.dtype.type(alpha)
    strip = max(1, _STRIP_BYTES // (out.itemsize * max(1, out.shape[1])))
    for begin in range(0, out.shape[0], strip):
        rows = slice(begin, begin + strip)
        product = left[rows] @ right
        if alpha != 1:
            product *= scale
        if add:
            out[rows] += product
        else:
            out[rows] = product
