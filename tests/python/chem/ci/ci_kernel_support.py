"""A whole product H C by the kernel, random Hamiltonians with symmetry, and PySCF's order of strings."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outcore._core import CIKernel, CIPanel
from outcore.parallel.team import blas_of_one_thread

Matrix = NDArray[Any]
NOTHING = np.zeros(0, np.int64)


def irreps_of(counts: list[int]) -> list[int]:
    """Sorted irreps of orbitals, from the number of orbitals of each irrep."""
    return [irrep for irrep, count in enumerate(counts) for _ in range(count)]


def random_one(irreps: list[int], rng: np.random.Generator) -> Matrix:
    n, of = len(irreps), np.array(irreps, dtype=int)
    one = rng.standard_normal((n, n))
    one = one + one.T
    one[of[:, None] != of[None, :]] = 0
    return one


def random_two(irreps: list[int], rng: np.random.Generator, same: bool = True) -> Matrix:
    """(pq|rs) with the symmetry of real orbitals; `same`: also of an exchange of the electrons."""
    n, of = len(irreps), np.array(irreps, dtype=int)
    two = rng.standard_normal((n, n, n, n))
    two = two + two.transpose(1, 0, 2, 3)
    two = two + two.transpose(0, 1, 3, 2)
    if same:
        two = two + two.transpose(2, 3, 0, 1)
    pair = of[:, None] ^ of[None, :]
    two[pair[:, :, None, None] != pair[None, None, :, :]] = 0
    return two


def indices(count: int) -> NDArray[np.int64]:
    return np.arange(count, dtype=np.int64)


def sectors(kernel: CIKernel, target: int) -> list[tuple[slice, slice]]:
    """Rows and columns of the matrices that symmetry allows."""
    alpha, beta = kernel.alpha_strings.offsets, kernel.beta_strings.offsets
    found = []
    for irrep, (first, last) in enumerate(pairwise(alpha)):
        other = irrep ^ target
        if first < last and beta[other] < beta[other + 1]:
            found.append((slice(first, last), slice(beta[other], beta[other + 1])))
    return found


def load(panel: CIPanel, vector: Matrix, kernel: CIKernel, target: int, transpose: bool = False) -> None:
    for rows, columns in sectors(kernel, target):
        place = (columns.start, rows.start) if transpose else (rows.start, columns.start)
        panel.load(*place, vector[rows, columns], transpose=transpose)


def unload(panel: CIPanel, vector: Matrix, kernel: CIKernel, target: int, transpose: bool = False) -> None:
    for rows, columns in sectors(kernel, target):
        place = (columns.start, rows.start) if transpose else (rows.start, columns.start)
        panel.unload(*place, vector[rows, columns], transpose=transpose)


def product(
    kernel: CIKernel, vector: Matrix, target: int, parity: int, *, groups: int = 1, threads: int = 1
) -> Matrix:
    """H C of a whole vector [alpha][beta], with the holes divided into this many groups."""
    dtype, result = vector.dtype, np.zeros_like(vector)
    na, nb = (indices(len(strings)) for strings in (kernel.alpha_strings, kernel.beta_strings))
    bounds = np.linspace(0, len(kernel.holes), groups + 1).astype(int)
    with blas_of_one_thread():
        for first, last in pairwise(bounds):
            part = NOTHING, kernel.rows_of(first, last), kernel.begins_of(first, last)
            x, t = CIPanel(kernel, *part, dtype), CIPanel(kernel, *part, dtype)
            t.clear(threads)
            load(x, vector, kernel, target)
            kernel.opposite_spin(x, t, first, last, threads)
            unload(t, result, kernel, target)
        for transposed in [False] if parity else [False, True]:
            rows = nb if transposed else na
            x, t = (CIPanel(kernel, rows, NOTHING, NOTHING, dtype, transposed=transposed) for _ in range(2))
            t.clear(threads)
            load(x, vector, kernel, target, transposed)
            kernel.same_spin(x, t, threads)
            unload(t, result, kernel, target, transposed)
    return result + parity * result.T if parity else result


def random_vector(kernel: CIKernel, target: int, parity: int, rng: np.random.Generator, dtype: Any) -> Matrix:
    vector = np.zeros((len(kernel.alpha_strings), len(kernel.beta_strings)))
    for rows, columns in sectors(kernel, target):
        block = vector[rows, columns]
        block[...] = rng.standard_normal(block.shape)
    if parity:
        vector = vector + parity * vector.T
    return vector.astype(dtype)


def in_order_of_values(kernel: CIKernel, vector: Matrix) -> Matrix:
    """The vector in PySCF's order: strings by value, all symmetries together."""
    rows, columns = (np.argsort(strings.strings) for strings in (kernel.alpha_strings, kernel.beta_strings))
    return np.ascontiguousarray(vector[np.ix_(rows, columns)])
