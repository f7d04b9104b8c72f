"""Products of Hamiltonians with vectors, element by element against PySCF."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ci_kernel_support import (
    Matrix,
    in_order_of_values,
    irreps_of,
    product,
    random_one,
    random_two,
    random_vector,
)

from outcore._core import CIKernel

fci = pytest.importorskip("pyscf.fci")

TOLERANCE = {np.float64: 2e-13, np.float32: 2e-5}
# Orbitals of each irrep, electrons of both spins.
SPACES = [
    ([6], 3, 3),
    ([6], 4, 2),
    ([6], 2, 4),
    ([4, 3], 3, 3),
    ([2, 3, 0, 1], 3, 3),
    ([2, 2, 1, 2], 4, 1),
    ([2, 1, 1, 1, 0, 1, 1, 1], 4, 4),
    ([1, 1, 1, 1, 1, 1, 1, 0], 2, 3),
]
EDGES = [
    ([5], 0, 3),
    ([5], 3, 0),
    ([2, 3], 1, 1),
    ([5], 5, 2),
    ([2, 3], 2, 5),
    ([2, 2], 4, 4),
    ([5], 1, 4),
    ([5], 0, 2),
]


def reference(one: Any, two: Any, vector: Matrix, alpha: int, beta: int) -> Matrix:
    module = fci.direct_uhf if isinstance(one, tuple) else fci.direct_spin1
    n = len(one[0]) if isinstance(one, tuple) else len(one)
    both = module.absorb_h1e(one, two, n, (alpha, beta), 0.5)
    result: Matrix = module.contract_2e(both, vector.astype(float), n, (alpha, beta))
    return result


def check(
    counts: list[int],
    alpha: int,
    beta: int,
    target: int,
    parity: int,
    dtype: Any = np.float64,
    **options: Any,
) -> None:
    rng = np.random.default_rng(sum(counts) + target)
    irreps = irreps_of(counts)
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    kernel = CIKernel(irreps, len(counts), alpha, beta, target, parity, one, two)
    vector = random_vector(kernel, target, parity, rng, dtype)
    found = in_order_of_values(kernel, product(kernel, vector, target, parity, **options))
    expected = reference(one, two, in_order_of_values(kernel, vector), alpha, beta)
    assert found.dtype == dtype
    largest = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * largest)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("counts", "alpha", "beta"), SPACES + EDGES)
def test_every_irrep(counts: list[int], alpha: int, beta: int, dtype: Any) -> None:
    for target in range(len(counts)):
        check(counts, alpha, beta, target, 0, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("parity", [1, -1])
@pytest.mark.parametrize(("counts", "alpha", "beta"), [each for each in SPACES + EDGES if each[1] == each[2]])
def test_folded(counts: list[int], alpha: int, beta: int, parity: int, dtype: Any) -> None:
    for target in range(len(counts)):
        check(counts, alpha, beta, target, parity, dtype)


@pytest.mark.parametrize("parity", [0, 1])
@pytest.mark.parametrize("groups", [2, 7, 35])
def test_holes_in_groups(groups: int, parity: int) -> None:
    """Each group of holes has panels of its own rows and columns."""
    check([2, 3, 1, 1], 4, 4, 2, parity, groups=groups)


@pytest.mark.parametrize("parity", [0, -1])
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_threads(threads: int, parity: int) -> None:
    check([3, 3, 1, 1], 3, 3, 1, parity, threads=threads)


SPIN_SPACES = [([6], 3, 2), ([3, 3], 3, 3), ([2, 1, 2, 1], 2, 4), ([4], 0, 2)]


@pytest.mark.parametrize(("counts", "alpha", "beta"), SPIN_SPACES)
def test_orbitals_of_each_spin(counts: list[int], alpha: int, beta: int) -> None:
    rng = np.random.default_rng(1)
    irreps = irreps_of(counts)
    one = random_one(irreps, rng), random_one(irreps, rng)
    two = random_two(irreps, rng), random_two(irreps, rng, same=False), random_two(irreps, rng)
    for target in range(len(counts)):
        kernel = CIKernel(irreps, len(counts), alpha, beta, target, 0, one, two)
        vector = random_vector(kernel, target, 0, rng, np.float64)
        found = in_order_of_values(kernel, product(kernel, vector, target, 0))
        expected = reference(one, two, in_order_of_values(kernel, vector), alpha, beta)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-13 * np.abs(expected).max())


SHIFTED = [(3, 3, 0), (3, 3, 1), (3, 3, -1), (4, 2, 0), (2, 4, 0), (0, 3, 0)]


@pytest.mark.parametrize(("alpha", "beta", "parity"), SHIFTED)
def test_spin_shift(alpha: int, beta: int, parity: int) -> None:
    rng = np.random.default_rng(2)
    irreps, least = [0] * 6, abs(alpha - beta) / 2
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    plain = CIKernel(irreps, 1, alpha, beta, 0, parity, one, two)
    shifted = CIKernel(irreps, 1, alpha, beta, 0, parity, one, two, 0.7)
    vector = random_vector(plain, 0, parity, rng, np.float64)
    found = product(shifted, vector, 0, parity) - product(plain, vector, 0, parity)
    squared = fci.spin_op.contract_ss(vector, 6, (alpha, beta)).reshape(vector.shape)
    np.testing.assert_allclose(found, 0.7 * (squared - least * (least + 1) * vector), atol=1e-10)


@pytest.mark.parametrize(("alpha", "beta"), [(3, 3), (4, 2), (0, 2), (1, 0), (0, 0), (6, 6)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_diagonal(alpha: int, beta: int, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    irreps = [0, 0, 1, 1, 1, 1]
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    kernel = CIKernel(irreps, 2, alpha, beta, 0, 0, one, two)
    found = np.empty((len(kernel.alpha_strings), len(kernel.beta_strings)), dtype=dtype)
    middle = len(found) // 2
    kernel.diagonal(0, 0, found[:middle])
    kernel.diagonal(middle, 0, found[middle:])
    expected = fci.direct_spin1.make_hdiag(one, two, 6, (alpha, beta)).reshape(found.shape)
    found = in_order_of_values(kernel, found)
    np.testing.assert_allclose(found, expected, atol=1e-12 if dtype == np.float64 else 1e-4)


def test_diagonal_is_that_of_the_products() -> None:
    rng = np.random.default_rng(4)
    irreps = [0] * 4
    kernel = CIKernel(irreps, 1, 2, 2, 0, 0, random_one(irreps, rng), random_two(irreps, rng), 0.3)
    found = np.empty((6, 6))
    kernel.diagonal(0, 0, found)
    for at in np.ndindex(6, 6):
        unit = np.zeros((6, 6))
        unit[at] = 1
        assert found[at] == pytest.approx(product(kernel, unit, 0, 0)[at], abs=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (0, 1)])
def test_one_electron(alpha: int, beta: int) -> None:
    rng = np.random.default_rng(5)
    irreps = [0, 0, 1, 1, 1]
    one, two = random_one(irreps, rng), random_two(irreps, rng)
    for target, part in ((0, slice(0, 2)), (1, slice(2, 5))):
        kernel = CIKernel(irreps, 2, alpha, beta, target, 0, one, two)
        vector = random_vector(kernel, target, 0, rng, np.float64)
        found = product(kernel, vector, target, 0).ravel()
        np.testing.assert_allclose(found[part], one[part, part] @ vector.ravel()[part], atol=1e-13)


def test_no_electrons() -> None:
    rng = np.random.default_rng(6)
    kernel = CIKernel([0, 0], 1, 0, 0, 0, 0, random_one([0, 0], rng), random_two([0, 0], rng))
    assert kernel.determinants == 1
    assert len(kernel.holes) == 0
    assert product(kernel, np.ones((1, 1)), 0, 0) == 0


@pytest.mark.parametrize(
    ("alpha", "beta", "parity"), [(1, 1, 1), pytest.param(2, 1, 0, marks=pytest.mark.long), (1, 2, 0)]
)
def test_the_last_of_64_orbitals(alpha: int, beta: int, parity: int) -> None:
    """Orbitals 59 to 63 interact as if there were no others."""
    rng = np.random.default_rng(7)
    few, many = [0] * 5, [0] * 64
    one, two = random_one(few, rng), random_two(few, rng)
    padded_one, padded_two = np.zeros((64,) * 2), np.zeros((64,) * 4)
    padded_one[59:, 59:], padded_two[59:, 59:, 59:, 59:] = one, two
    kernel = CIKernel(many, 1, alpha, beta, 0, parity, padded_one, padded_two)
    small = CIKernel(few, 1, alpha, beta, 0, parity, one, two)
    rows, columns = (
        [large.rank(int(mask) << 59) for mask in alone.strings]
        for large, alone in (
            (kernel.alpha_strings, small.alpha_strings),
            (kernel.beta_strings, small.beta_strings),
        )
    )
    inner = random_vector(small, 0, parity, rng, np.float64)
    vector = np.zeros((len(kernel.alpha_strings), len(kernel.beta_strings)))
    vector[np.ix_(rows, columns)] = inner
    expected = np.zeros_like(vector)
    expected[np.ix_(rows, columns)] = product(small, inner, 0, parity)
    np.testing.assert_allclose(product(kernel, vector, 0, parity), expected, atol=1e-11)


@pytest.mark.parametrize(
    ("counts", "alpha", "beta"),
    [([26, 14], 2, 1), ([20, 1, 17, 3], 1, 2), pytest.param([13, 9], 4, 2, marks=pytest.mark.long)],
)
def test_long_runs_and_hermiticity(counts: list[int], alpha: int, beta: int) -> None:
    """<x|Hy> = <Hx|y>, also if runs are longer than the lengths compiled into the inner loops."""
    rng = np.random.default_rng(8)
    irreps = irreps_of(counts)
    kernel = CIKernel(
        irreps, len(counts), alpha, beta, 1, 0, random_one(irreps, rng), random_two(irreps, rng)
    )
    x, y = (random_vector(kernel, 1, 0, rng, np.float64) for _ in range(2))
    left, right = np.vdot(x, product(kernel, y, 1, 0)), np.vdot(product(kernel, x, 1, 0), y)
    scale = np.linalg.norm(product(kernel, x, 1, 0)) * np.linalg.norm(y)
    assert abs(left - right) < 1e-13 * scale
    assert abs(left) > 1e-6 * scale


def test_runs_longer_than_registers() -> None:
    """22 orbitals of one irrep: more than the lengths compiled into the inner loops."""
    check([22], 2, 2, 0, 1)
    check([19, 2], 2, 2, 0, 1, np.float32)
    check([17], 2, 3, 0, 0)
