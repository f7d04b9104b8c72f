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
