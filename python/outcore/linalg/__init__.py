"""Mathematics on whole global arrays and on sections of them.

Every function here is collective: all processes of the world call it, with the same arguments. It begins when all
processes have called it and everything that they have put or accumulated before has arrived; when it returns, its
result is complete, and visible to all. If it fails at one process, for whatever reason, all raise the same
OutcoreError: EINVAL for operands that do not fit, ENOMEM for memory.

Operands are global arrays or sections (`g.section(np.s_[2:5, :])`), of one type and, unless a function says
otherwise, one shape. Each process computes the part of the result that it holds. Operands with another distribution
are fetched block by block, so that memory does not grow with the arrays. A result may be one of its operands, if it
is the same box.

    from outcore import linalg as am
    am.add(c, a, b, alpha=2.0)             # c = 2 a + b
    am.matmul(c, a, b, transpose_a=True)   # c = a^T b
    print(am.norm(c))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from outcore.arrays.indexing import as_elements
from outcore.job import arguments
from outcore.linalg.blocks import (
    BLOCK_ELEMENTS,
    FETCH_ELEMENTS,
    Array,
    Operand,
    aligned,
    collective,
    fetch,
    no_overlap,
    own_blocks,
    own_parts,
    same_shape,
    same_type,
    slices,
    wide,
    wide_type,
)
from outcore.linalg.matrices import eigh, matmul, symmetrize

__all__ = [
    "absolute", "add", "apply", "copy", "divide", "dot", "eigh", "fill", "matmul", "max", "maximum", "min",
    "minimum", "multiply", "norm", "reciprocal", "scale", "sum", "symmetrize", "transpose",
]  # fmt: skip


# ---- element by element ----


def fill(out: Operand, value: complex) -> None:
    """All elements become `value`."""
    with collective("fill", [out], value) as (section,):
        number = as_elements(value, section.dtype, "value")
        for block in own_blocks(section):
            block.view[...] = number


def scale(out: Operand, alpha: complex) -> None:
    """out *= alpha"""
    with collective("scale", [out], alpha) as (section,):
        number = as_elements(alpha, section.dtype, "alpha")
        for block in own_blocks(section):
            np.multiply(block.view, number, out=block.view)


def add(out: Operand, a: Operand, b: Operand, *, alpha: complex = 1, beta: complex = 1) -> None:
    """out = alpha * a + beta * b"""

    def kernel(result: Array, x: Array, y: Array) -> None:
        left = x if alpha == 1 else np.multiply(x, as_elements(alpha, x.dtype, "alpha"))
        right = y if beta == 1 else np.multiply(y, as_elements(beta, y.dtype, "beta"))
        np.add(left, right, out=result)

    _elementwise("add", kernel, out, (a, b), (alpha, beta))


def multiply(out: Operand, a: Operand, b: Operand) -> None:
    """out = a * b"""
    _ufunc(np.multiply, out, a, b)


def divide(out: Operand, a: Operand, b: Operand) -> None:
    """out = a / b; for integers as numpy.floor_divide"""

    def kernel(result: Array, x: Array, y: Array) -> None:
        divided = np.floor_divide if result.dtype.kind in "iu" else np.divide
        divided(x, y, out=result)

    _elementwise("divide", kernel, out, (a, b), ())


def maximum(out: Operand, a: Operand, b: Operand) -> None:
    """out = the larger of a and b"""
    _ufunc(np.maximum, out, a, b)


def minimum(out: Operand, a: Operand, b: Operand) -> None:
    """out = the smaller of a and b"""
    _ufunc(np.minimum, out, a, b)


def absolute(out: Operand, a: Operand) -> None:
    """out = |a|; the result of complex elements is complex"""
    apply(np.absolute, out, a)


def reciprocal(out: Operand, a: Operand) -> None:
    """out = 1 / a"""
    _ufunc(np.reciprocal, out, a)


def apply(function: Callable[..., Any], out: Operand, *inputs: Operand) -> None:
    """out = function(*inputs), for a function of NumPy arrays that works element by element, such as
    `lambda x: np.exp(-x)`. `function` is called block by block. Its result is stored if NumPy's casting
    'same_kind' allows it."""

    def kernel(result: Array, *arrays: Array) -> None:
        np.copyto(result, function(*arrays), casting="same_kind")

    _elementwise(getattr(function, "__name__", "apply"), kernel, out, inputs, ())


def _ufunc(function: np.ufunc, out: Operand, *inputs: Operand) -> None:
    def kernel(result: Array, *arrays: Array) -> None:
        function(*arrays, out=result)

    _elementwise(function.__name__, kernel, out, inputs, ())


def _elementwise(
    what: str,
    kernel: Callable[..., None],
    out: Operand,
    inputs: Sequence[Operand],
    numbers: Sequence[complex],
) -> None:
    with collective(what, [out, *inputs], *numbers) as (result, *operands):
        for operand in operands:
            same_shape(result, operand)
            same_type(result, operand)
            no_overlap(result, operand, or_the_same=True)
        at_home = all(aligned(result, operand) for operand in operands)
        for block in own_blocks(result, BLOCK_ELEMENTS if at_home else FETCH_ELEMENTS):
            kernel(block.view, *(fetch(operand, block) for operand in operands))


# ---- copies ----


def copy(out: Operand, a: Operand, axes: Sequence[int] | None = None) -> None:
    """out = a, or numpy.transpose(a, axes): axis i of `out` is axis axes[i] of `a`. Their distributions and
    boxes may differ; they must not overlap."""
    _copy("copy", out, a, axes)


def _copy(what: str, out: Operand, a: Operand, axes: Sequence[int] | None, *, reverse: bool = False) -> None:
    with collective(what, [out, a], axes) as (result, source):
        rank = len(source.shape)
        order = list(range(rank)) if axes is None else arguments.integers("axes", axes)
        if reverse:
            order.reverse()
        if sorted(order) != list(range(rank)):
            raise ValueError(f"axes {order} do not name each of the {rank} axes once")
        turned = tuple(source.shape[axis] for axis in order)
        if turned != result.shape:
            raise ValueError(f"a section of shape {turned} does not fit into {result.shape}")
        same_type(result, source)
        no_overlap(result, source, or_the_same=False)
        back = [order.index(axis) for axis in range(rank)]
        for block in own_parts(result):
            from_result = [
                (b - o, e - o) for b, e, o in zip(block.begin, block.end, result.begin, strict=True)
            ]
            begin = [source.begin[axis] + from_result[back[axis]][0] for axis in range(rank)]
            end = [source.begin[axis] + from_result[back[axis]][1] for axis in range(rank)]
            source.array.get(slices(begin, end), out=block.view.transpose(back))


def transpose(out: Operand, a: Operand) -> None:
    """out = a with its axes in reverse"""
    _copy("transpose", out, a, None, reverse=True)


# ---- numbers ----


def dot(a: Operand, b: Operand, *, conjugate: bool = False) -> Any:
    """The sum of a * b over all elements; with `conjugate`, of conj(a) * b. Added up in 64 bits (complex: 128)."""
    with collective("dot", [a, b], conjugate) as (first, second):
        same_shape(first, second)
        same_type(first, second)
        at_home = aligned(first, second)
        total = np.zeros(1, wide_type(first.dtype))
        for block in own_blocks(first, BLOCK_ELEMENTS if at_home else FETCH_ELEMENTS):
            x, y = wide(block.view).ravel(), wide(fetch(second, block)).ravel()
            total[0] += np.vdot(x, y) if conjugate else np.dot(x, y)
    return first.array.world.all_reduce(total)[0].item()


def sum(a: Operand) -> Any:
    """The sum of all elements, in 64 bits (complex: 128)."""
    with collective("sum", [a]) as (section,):
        total = np.zeros(1, wide_type(section.dtype))
        for block in own_blocks(section):
            total[0] += block.view.sum(dtype=total.dtype)
    return section.array.world.all_reduce(total)[0].item()


def min(a: Operand) -> Any:
    """The smallest element; NaN if one is. EINVAL for complex elements and for an empty section."""
    return _extreme("min", a)


def max(a: Operand) -> Any:
    """The largest element; NaN if one is. EINVAL for complex elements and for an empty section."""
    return _extreme("max", a)


def _extreme(which: Literal["min", "max"], a: Operand) -> Any:
    has_nan = 0
    with collective(which, [a]) as (section,):
        if section.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        if 0 in section.shape:
            raise ValueError("a section without elements has neither")
        best = np.zeros(1, wide_type(section.dtype))
        worst = np.iinfo(np.int64) if best.dtype.kind == "i" else np.finfo(np.float64)
        best[0] = worst.max if which == "min" else worst.min
        if best.dtype.kind == "f":
            best[0] = math.inf if which == "min" else -math.inf
        better = np.minimum if which == "min" else np.maximum
        for block in own_blocks(section):
            best[0] = better(best[0], getattr(block.view, which)())
        if np.isnan(best[0]):
            has_nan, best[0] = 1, 0  # a reduction over processes may lose NaN
    world = section.array.world
    if world.all_reduce(has_nan, "max"):
        return math.nan
    return world.all_reduce(best, which)[0].item()


def norm(a: Operand, kind: Literal["frobenius", "max", "one"] = "frobenius") -> float:
    """The root of the sum of |a|^2, the largest |a|, or the sum of |a|, over all elements. Squares neither
    overflow nor vanish. NaN if an element is."""
    largest = total = 0.0
    has_nan = 0
    with collective("norm", [a], kind) as (section,):
        if kind not in ("frobenius", "max", "one"):
            raise ValueError(f"norm {kind!r}: it is 'frobenius', 'max' or 'one'")
        for block in own_blocks(section):
            values = np.absolute(wide(block.view)).astype(np.float64, copy=False).ravel()
            here = float(values.max())
            if math.isnan(here):
                has_nan = 1  # a reduction over processes may lose NaN
            elif kind == "one":
                total += float(values.sum())
            elif here > largest:  # values are divided by the largest before they are squared
                total = total * (largest / here) ** 2 + _squares(values, here)
                largest = here
            elif here > 0:
                total += _squares(values, largest)
    world = section.array.world
    if world.all_reduce(has_nan, "max"):
        return math.nan
    if kind == "one":
        return float(world.all_reduce(total))
    all_largest = float(world.all_reduce(largest, "max"))
    if kind == "max" or all_largest in (0.0, math.inf):
        return all_largest
    return all_largest * math.sqrt(world.all_reduce(total * (largest / all_largest) ** 2))


def _squares(values: Array, unit: float) -> float:
    """The sum of the squares of values divided by `unit`."""
    if unit == math.inf:
        return 0.0
    scaled = values / unit
    return float(np.dot(scaled, scaled))
