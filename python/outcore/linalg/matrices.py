"""Linear algebra on global arrays of two dimensions; part of outcore.linalg, whose rules hold here."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from outcore.arrays.global_array import Section
from outcore.arrays.indexing import as_elements
from outcore.base import extras
from outcore.linalg.blocks import (
    FETCH_ELEMENTS,
    Array,
    Box,
    Operand,
    collective,
    elements,
    no_overlap,
    own_parts,
    reserved,
    same_type,
    slices,
)
from outcore.parallel.requests import Request, all_of, then

TILE = 1024  # rows and columns of the result of matmul that are worked on at once
DEPTH = 2048  # length of the summed index that is worked on at once


# ---- symmetry ----


def symmetrize(out: Operand, *, hermitian: bool = False) -> None:
    """out = (out + out^T) / 2, in place; `hermitian`: with the conjugate transpose. A section must be square and
    on the diagonal. Floating-point and complex types."""
    with collective("symmetrize", [out], hermitian) as (section,):
        _check_square(section)
        if section.begin[0] != section.begin[1]:
            raise ValueError("rows and columns must be the same range")
        half = as_elements(0.5, section.dtype, "a half")
        turn = np.conjugate if hermitian else np.asarray
        for part in own_parts(section):
            for begin, end in upper_blocks(part.begin, part.end, math.isqrt(FETCH_ELEMENTS)):
                mine = part.part(begin, end)
                if begin[0] == begin[1]:  # on the diagonal: its mirror is itself
                    mine[...] = (mine + turn(mine.T)) * half
                    continue
                mirror = slices(begin[::-1], end[::-1])
                mine[...] = (mine + turn(section.array.get(mirror).T)) * half
                section.array.put(mirror, turn(mine).T)


def upper_blocks(begin: Sequence[int], end: Sequence[int], side: int) -> Iterator[Box]:
    """Cuts the part of a box that lies above the diagonal of a matrix into blocks; those on the diagonal are
    squares."""
    (i0, j0), (i1, j1) = begin, end
    rows, columns = _cuts(i0, i1, j0, j1, side), _cuts(j0, j1, i0, i1, side)
    for i, i_end in pairwise(rows):
        for j, j_end in pairwise(columns):
            if j >= i_end or (i, i_end) == (j, j_end):
                yield (i, j), (i_end, j_end)


def _cuts(begin: int, end: int, other_begin: int, other_end: int, side: int) -> list[int]:
    """Places where a range is cut; where it overlaps the other range, both are cut at the same places."""
    low, high = builtins.max(begin, other_begin), builtins.min(end, other_end)
    if low >= high:
        low = high = end
    cuts = {begin, low, high, end, *range(begin, low, side), *range(low, high, side), *range(high, end, side)}
    return sorted(cuts)


def _check_square(section: Section) -> None:
    if len(section.shape) != 2 or section.shape[0] != section.shape[1]:
        raise ValueError(f"a section of shape {section.shape} is no square matrix")


# ---- products ----


def matmul(
    out: Operand,
    a: Operand,
    b: Operand,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    conjugate_a: bool = False,
    conjugate_b: bool = False,
) -> None:
    """out = alpha * op(a) op(b) + beta * out, where op is the transpose, the complex conjugate, or both. If beta is
    0, the old elements of `out` do not matter. `out` must overlap neither operand.

    Each process computes the part of the result that it holds, tile by tile, with NumPy's BLAS. It fetches panels
    of the operands ahead, unless it holds them itself. Besides the arrays a process needs at most 100 MiB
    (float64), which are accounted to its budget.
    """
    flags = (transpose_a, transpose_b, conjugate_a, conjugate_b)
    with collective("matmul", [out, a, b], alpha, beta, *flags) as (result, first, second):
        left = _Factor(first, transpose_a, conjugate_a)
        right = _Factor(second, transpose_b, conjugate_b)
        for factor in (left, right):
            same_type(result, factor.section)
            no_overlap(result, factor.section, or_the_same=False)
        if left.shape[1] != right.shape[0] or result.shape != (left.shape[0], right.shape[1]):
            raise ValueError(f"matrices of shapes {left.shape} and {right.shape} into {result.shape}")
        numbers = [as_elements(x, result.dtype, name) for x, name in ((alpha, "alpha"), (beta, "beta"))]
        parts = list(own_parts(result))
        if not parts:
            return
        rows, columns = (_Tiles(result, parts, axis) for axis in (0, 1))
        depth = builtins.min(left.shape[1], DEPTH)
        panel = 2 * depth * (rows.longest + columns.longest)
        size_bytes = (panel + 2 * rows.longest * columns.longest) * result.dtype.itemsize
        with reserved(result.array.world, size_bytes, "panels of matmul"):
            for tile_rows in rows.tiles:
                for tile_columns in columns.tiles:
                    product = _product(left, right, tile_rows, tile_columns)
                    local = result.array.local[tile_rows.local, tile_columns.local]
                    _update(local, product, *numbers)


def _update(local: Array, product: Array, alpha: Array, beta: Array) -> None:
    """local = alpha * product + beta * local; the product may be overwritten."""
    if alpha != 1:
        np.multiply(product, alpha, out=product)
    if beta == 0:
        local[...] = product
    else:
        if beta != 1:
            np.multiply(local, beta, out=local)
        np.add(local, product, out=local)


class _Tile:
    """Rows or columns of a result that lie together in the local memory, as ranges counted from the beginning of
    the section: several if the array is block-cyclic."""

    def __init__(self, ranges: list[tuple[int, int]], at: int) -> None:
        self.ranges = ranges
        self.length = builtins.sum(end - begin for begin, end in ranges)
        self.local = slice(at, at + self.length)


class _Tiles:
    """All tiles along one axis of the part that this process holds."""

    def __init__(self, section: Section, parts: Sequence[Any], axis: int) -> None:
        mine = section.array.distribution.parts_of(section.array.world.rank, section.begin, section.end)
        ranges = sorted({(at[axis], begin[axis], end[axis]) for begin, end, at in mine})
        self.tiles: list[_Tile] = []
        pending: list[tuple[int, int]] = []
        start = length = 0
        for at, first, stop in ranges:
            for begin in range(first, stop, TILE):
                end = builtins.min(begin + TILE, stop)
                if length + end - begin > TILE:
                    self.tiles.append(_Tile(pending, start))
                    pending, length = [], 0
                if not pending:
                    start = at + begin - first
                pending.append((begin - section.begin[axis], end - section.begin[axis]))
                length += end - begin
        self.tiles.append(_Tile(pending, start))
        self.longest = builtins.max(tile.length for tile in self.tiles)


class _Factor:
    """An operand of a product."""

    def __init__(self, section: Section, transposed: bool, conjugated: bool) -> None:
        self.section = section
        self.transposed = transposed
        self.conjugated = conjugated and section.dtype.kind == "c"

    @property
    def shape(self) -> tuple[int, ...]:
        if len(self.section.shape) != 2:
            raise ValueError(f"a section of shape {self.section.shape} is no matrix")
        return self.section.shape[::-1] if self.transposed else self.section.shape

    def start(self, rows: list[tuple[int, int]], columns: list[tuple[int, int]]) -> Request:
        """Starts to fetch some rows and columns."""
        array, transfers = self._bring(*((columns, rows) if self.transposed else (rows, columns)))
        return then(all_of(transfers), lambda _: self._turned(array))

    def _bring(
        self, rows: list[tuple[int, int]], columns: list[tuple[int, int]]
    ) -> tuple[Array, list[Request]]:
        """The array that holds them once the requests are complete, and these requests."""
        section, transfers = self.section, list[Request]()
        boxes = [((r, c), (r_end, c_end)) for r, r_end in rows for c, c_end in columns]
        if len(boxes) == 1:
            begin, end = ([x + o for x, o in zip(corner, section.begin, strict=True)] for corner in boxes[0])
            mine = section.array.distribution.parts_of(section.array.world.rank, begin, end)
            if len(mine) == 1 and mine[0][0] == begin and mine[0][1] == end:
                return elements(section.array, begin, end), transfers
        shape = [builtins.sum(end - begin for begin, end in ranges) for ranges in (rows, columns)]
        array = np.empty(shape, section.dtype)
        i = 0
        for r, r_end in rows:
            j = 0
            for c, c_end in columns:
                begin = [r + section.begin[0], c + section.begin[1]]
                end = [r_end + section.begin[0], c_end + section.begin[1]]
                out = array[i : i + r_end - r, j : j + c_end - c]
                transfers.append(section.array.get_async(slices(begin, end), out=out))
                j += c_end - c
            i += r_end - r
        return array, transfers

    def _turned(self, array: Array) -> Array:
        array = array.T if self.transposed else array
        return array.conj() if self.conjugated else array


def _product(left: _Factor, right: _Factor, rows: _Tile, columns: _Tile) -> Array:
    """The product of some rows of one operand and some columns of the other."""
    depth = left.shape[1]
    total = np.zeros((rows.length, columns.length), left.section.dtype)
    steps = [(k, builtins.min(k + DEPTH, depth)) for k in range(0, depth, DEPTH)]

    def start(step: tuple[int, int]) -> tuple[Request, Request]:
        return left.start(rows.ranges, [step]), right.start([step], columns.ranges)

    if not steps:
        return total
    under_way = start(steps[0])
    more = np.empty_like(total) if len(steps) > 1 else total
    for k in range(len(steps)):
        x, y = (panel.wait() for panel in under_way)
        if k + 1 < len(steps):
            under_way = start(steps[k + 1])
        np.matmul(x, y, out=more if k else total)
        if k:
            np.add(total, more, out=total)
    return total


# ---- eigenvalues ----


def eigh(a: Operand, vectors: Operand | None = None, b: Operand | None = None) -> Array:
    """The eigenvalues of a symmetric (complex: Hermitian) matrix, ascending, at all processes; with `b`, symmetric
    and positive definite, those of a x = lambda b x. The eigenvectors become the columns of `vectors`, if given.
    `a` and `b` stay as they are; their lower triangles are used.

    One process solves the problem, by SciPy's LAPACK; the others wait, asleep. It needs memory for 4 matrices
    (with `b`: 6), which is accounted to its budget: a matrix that does not fit is OutcoreError (ENOMEM) before
    anything is computed. EINVAL also if `b` is not positive definite; without SciPy the error has no errno.
    """
    operands = [each for each in (a, b, vectors) if each is not None]
    with collective("eigh", operands, b is None, vectors is None) as given:
        matrix = given[0]
        metric = None if b is None else given[1]
        result = None if vectors is None else given[-1]
        for section in given:
            same_type(matrix, section)
            _check_square(section)
            if section.shape != matrix.shape:
                raise ValueError(f"matrices of shapes {matrix.shape} and {section.shape}")
        if matrix.dtype.kind not in "fc":
            raise TypeError(f"eigenvalues of {matrix.dtype}: use floating-point or complex elements")
        values = np.zeros(matrix.shape[0])
        if matrix.array.world.rank == 0 and matrix.shape[0]:
            values[...] = _solve(matrix, metric, result)
    every = np.asarray(matrix.array.world.all_reduce(values))
    return every.astype(matrix.dtype.type(0).real.dtype, copy=False)


def _solve(matrix: Section, metric: Section | None, vectors: Section | None) -> Array:
    try:
        from scipy import linalg
    except ImportError as error:
        raise extras.needed("scipy", "eigh") from error
    size_bytes = matrix.shape[0] ** 2 * matrix.dtype.itemsize
    with reserved(matrix.array.world, size_bytes * (4 if metric is None else 6), "eigh on one process"):
        whole = _whole(matrix)
        other = None if metric is None else _whole(metric)
        try:
            solved = linalg.eigh(
                whole, other, overwrite_a=True, overwrite_b=True, eigvals_only=vectors is None
            )
        except np.linalg.LinAlgError as error:
            raise ValueError(str(error)) from error
        if vectors is None:
            return np.asarray(solved)
        vectors.array.put(slices(vectors.begin, vectors.end), solved[1])
        return np.asarray(solved[0])


def _whole(section: Section) -> Array:
    """A copy with columns contiguous, as LAPACK wants it."""
    whole = np.empty(section.shape, section.dtype, order="F")
    return section.array.get(slices(section.begin, section.end), out=whole)
