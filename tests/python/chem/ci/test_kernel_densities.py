"""Densities of two particles, of a vector and between two, element by element against PySCF."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from ci_kernel_support import (
    NOTHING,
    Matrix,
    in_order_of_values,
    indices,
    irreps_of,
    load,
    product,
    random_one,
    random_two,
    random_vector,
)

from outcore._core import CIKernel, CIPanel
from outcore.parallel.team import blas_of_one_thread

fci = pytest.importorskip("pyscf.fci")


def orbitals_of(kernel: CIKernel) -> int:
    masks = (*kernel.alpha_strings.strings, *kernel.beta_strings.strings)
    return max(int(mask).bit_length() for mask in masks)


def densities(
    kernel: CIKernel, bra: Matrix, ket: Matrix, target: int, parity: int, groups: int = 1, threads: int = 1
) -> tuple[Matrix, Matrix, Matrix]:
    """The densities aa, ab and bb, in PySCF's order: [p][q][r][s] = <p+ r+ s q>."""
    aa, ab, bb = (np.zeros((orbitals_of(kernel),) * 4) for _ in range(3))
    na, nb = (indices(len(strings)) for strings in (kernel.alpha_strings, kernel.beta_strings))

    def panels(home: Any, others: Any, begins: Any, transposed: bool = False) -> list[CIPanel]:
        found = []
        for vector in (bra,) if bra is ket else (bra, ket):
            found.append(CIPanel(kernel, home, others, begins, vector.dtype, transposed=transposed))
            load(found[-1], vector, kernel, target, transposed)
        return found

    with blas_of_one_thread():
        for first, last in pairwise(np.linspace(0, len(kernel.holes), groups + 1).astype(int)):
            both = panels(NOTHING, kernel.rows_of(first, last), kernel.begins_of(first, last))
            kernel.opposite_spin_density(both[0], both[-1], ab, first, last, threads)
        both = panels(na, NOTHING, NOTHING)
        kernel.same_spin_density(both[0], both[-1], bb, threads)
        both = panels(nb, NOTHING, NOTHING, transposed=True)
        kernel.same_spin_density(both[0], both[-1], aa, threads)
    return aa, ab + ab.transpose(2, 3, 0, 1) if parity else ab, bb


def make(
    counts: list[int], alpha: int, beta: int, target: int, parity: int
) -> tuple[CIKernel, Matrix, Matrix]:
    rng = np.random.default_rng(12)
    irreps = irreps_of(counts)
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    kernel = CIKernel(irreps, len(counts), alpha, beta, target, parity, one, two)
    return kernel, one, two


SPACES = [
    ([5], 3, 3, 1),
    ([5], 3, 3, 0),
    ([3, 2], 2, 3, 0),
    ([2, 1, 2, 1], 2, 2, -1),
    ([2, 1, 2, 1], 4, 1, 0),
    ([1, 1, 1, 0, 1, 1, 0, 1], 3, 3, 1),
    ([5], 2, 0, 0),
    ([5], 0, 3, 0),
    ([5], 1, 1, 1),
    ([4], 4, 4, 1),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("counts", "alpha", "beta", "parity"), SPACES)
def test_of_vectors_and_between_them(
    counts: list[int], alpha: int, beta: int, parity: int, dtype: Any
) -> None:
    rng = np.random.default_rng(13)
    n = sum(counts)
    for target in range(len(counts)):
        kernel, _, _ = make(counts, alpha, beta, target, parity)
        bra, ket = (random_vector(kernel, target, parity, rng, dtype) for _ in range(2))
        left, right = (in_order_of_values(kernel, each).astype(float) for each in (bra, ket))
        _, expected = fci.direct_spin1.trans_rdm12s(left, right, n, (alpha, beta))
        found = densities(kernel, bra, ket, target, parity, groups=2)
        for mine, theirs in zip(found, (expected[0], expected[1], expected[3]), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12 if dtype == np.float64 else 1e-4)
        _, expected = fci.direct_spin1.make_rdm12s(left, n, (alpha, beta))
        found = densities(kernel, bra, bra, target, parity)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("parity", [0, 1])
def test_the_energy_is_that_of_the_product(parity: int) -> None:
    rng = np.random.default_rng(14)
    kernel, one, two = make([4, 3], 3, 3, 1, parity)
    vector = random_vector(kernel, 1, parity, rng, np.float64)
    vector /= np.linalg.norm(vector)
    aa, ab, bb = densities(kernel, vector, vector, 1, parity, groups=3, threads=3)
    single = np.einsum("pqrr->pq", aa + bb + ab + ab.transpose(2, 3, 0, 1)) / 5
    energy = np.vdot(one, single) + np.vdot(two, ab) + np.vdot(two, aa + bb) / 2
    assert energy == pytest.approx(np.vdot(vector, product(kernel, vector, 1, parity)), rel=1e-12)
    assert np.trace(single) == pytest.approx(6, rel=1e-13)


@pytest.mark.parametrize("threads", [2, 4])
def test_threads(threads: int) -> None:
    rng = np.random.default_rng(15)
    kernel, _, _ = make([4, 3], 3, 2, 0, 0)
    bra, ket = (random_vector(kernel, 0, 0, rng, np.float64) for _ in range(2))
    for alone, shared in zip(
        densities(kernel, bra, ket, 0, 0), densities(kernel, bra, ket, 0, 0, threads=threads), strict=True
    ):
        np.testing.assert_allclose(shared, alone, atol=1e-12)


def test_what_is_refused() -> None:
    kernel, _, _ = make([2, 2], 1, 0, 0, 0)
    x = CIPanel(kernel, indices(4), NOTHING, NOTHING, np.float64, transposed=False)
    with pytest.raises(ValueError, match="only one electron"):
        kernel.same_spin_density(x, x, np.zeros((4,) * 4))
    kernel, _, _ = make([2, 2], 2, 2, 0, 0)
    x = CIPanel(kernel, indices(6), NOTHING, NOTHING, np.float64)
    with pytest.raises(ValueError, match="sums must be"):
        kernel.opposite_spin_density(x, x, np.zeros((3,) * 4), 0, 4)
    with pytest.raises(TypeError):
        kernel.opposite_spin_density(x, x, np.zeros((4,) * 4, dtype=np.float32), 0, 4)
    few = CIPanel(kernel, indices(3), NOTHING, NOTHING, np.float64)
    with pytest.raises(ValueError, match="a panel has not"):
        kernel.opposite_spin_density(x, few, np.zeros((4,) * 4), 0, 4)
