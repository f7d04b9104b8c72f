"""Products of matrices that are added to what is there, by one thread, with the interpreter free for others.

NumPy cannot add a product in place. SciPy exports the addresses of its BLAS; without SciPy NumPy multiplies, and
adds strip by strip.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Matrix = np.ndarray[Any, np.dtype[Any]]

_NAMES = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
_STRIP_BYTES = 1 << 20  # of a product that is added afterwards
_LARGEST = 1 << 31  # BLAS counts with 32 bits


def add_product(left: Matrix, right: Matrix, out: Matrix, alpha: complex = 1, *, add: bool = True) -> None:
    """out[m,n] = alpha left[m,k] right[k,n], added to what is in `out` or in place of it. All are of one type. Fast
    where each has elements side by side along one axis; else NumPy multiplies. An integer result needs alpha =
    1."""
    if not add and 0 in left.shape:
        out[...] = 0
        return
    if 0 in out.shape or 0 in left.shape:
        return
    if out.strides[1] != out.itemsize and out.strides[0] == out.itemsize:
        left, right, out = right.T, left.T, out.T
    function = _function(out.dtype.name)
    a, b, c = _leading(left), _leading(right), _leading(out)
    # With alpha = 0 BLAS reads nothing: what is no number must stay so.
    if function is None or c is None or c[0] or a is None or b is None or alpha == 0:
        _by_numpy(left, right, out, alpha, add)
        return
    m, n, k = left.shape[0], right.shape[1], left.shape[1]
    if max(m, n, k, a[1], b[1], c[1]) >= _LARGEST:
        _by_numpy(left, right, out, alpha, add)
        return
    scale = np.asarray([alpha, 1 if add else 0], out.dtype)
    size = ctypes.c_int
    # By rows of ours is by columns of Fortran's, of the transposed matrices.
    function(
        b"T" if b[0] else b"N",
        b"T" if a[0] else b"N",
        size(n),
        size(m),
        size(k),
        scale.ctypes.data,
        right.ctypes.data,
        size(b[1]),
        left.ctypes.data,
        size(a[1]),
        scale.ctypes.data + scale.itemsize,
        out.ctypes.data,
        size(c[1]),
    )


def load(dtype: str) -> None:
    """What products of this type need. Before `team.blas_of_one_thread`, which sees the libraries that are there:
    one that came later would have threads of its own in every product."""
    _function(dtype)


def _leading(matrix: Matrix) -> tuple[bool, int] | None:
    """Whether columns lie one after another, instead of rows, and elements between two of them; None if neither."""
    rows, columns = matrix.shape
    first, second = matrix.strides
    item = matrix.itemsize
    if (second == item or columns == 1) and (rows == 1 or (first >= columns * item and first % item == 0)):
        return False, max(1, columns) if rows == 1 else first // item
    if (first == item or rows == 1) and (columns == 1 or (second >= rows * item and second % item == 0)):
        return True, max(1, rows) if columns == 1 else second // item
    return None


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


@cache
def _function(dtype: str) -> Callable[..., None] | None:
    if dtype not in _NAMES:
        return None
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    capsule = cython_blas.__pyx_capi__[_NAMES[dtype]]
    interface = ctypes.pythonapi
    interface.PyCapsule_GetName.restype = ctypes.c_char_p
    interface.PyCapsule_GetName.argtypes = [ctypes.py_object]
    interface.PyCapsule_GetPointer.restype = ctypes.c_void_p
    interface.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = interface.PyCapsule_GetPointer(capsule, interface.PyCapsule_GetName(capsule))
    integer, elements, text = ctypes.POINTER(ctypes.c_int), ctypes.c_void_p, ctypes.c_char_p
    kinds: list[Any] = [text, text, integer, integer, integer, elements, elements, integer, elements, integer]
    return ctypes.CFUNCTYPE(None, *kinds, elements, elements, integer)(address)
