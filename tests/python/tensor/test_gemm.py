"""Products that are added in place: every type and order of elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from outcore.tensor.plan import gemm


def laid_out(matrix, kind):
    if kind == "columns":
        return np.array(matrix, order="F", copy=True)
    if kind == "strided":
        wide = np.zeros((2 * matrix.shape[0], 2 * matrix.shape[1]), matrix.dtype)
        wide[::2, ::2] = matrix
        return wide[::2, ::2]
    return matrix.copy()


@pytest.mark.parametrize("without_scipy", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
def test_products_are_added_whatever_the_order_of_elements(monkeypatch, dtype, without_scipy):
    if without_scipy:
        monkeypatch.setattr(gemm, "has_blas", lambda: False)
    random = np.random.default_rng(1)
    for m, n, k in ((7, 3, 5), (1, 4, 3), (4, 1, 3), (3, 4, 1), (1, 1, 1)):
        left, right, out = (
            (9 * random.standard_normal(shape)).astype(dtype) for shape in ((m, k), (k, n), (m, n))
        )
        for kinds in itertools.product(("rows", "columns", "strided"), repeat=3):
            a, b, c = (laid_out(x, kind) for x, kind in zip((left, right, out), kinds, strict=True))
            gemm.add_product(a, b, c, 2)
            np.testing.assert_allclose(c, out + 2 * (left @ right), rtol=1e-4, atol=1e-4)
            gemm.add_product(a, b, c, add=False)
            np.testing.assert_allclose(c, left @ right, rtol=1e-4, atol=1e-4)


def test_without_inner_indices_the_product_is_zero():
    out = np.ones((2, 3))
    gemm.add_product(np.zeros((2, 0)), np.zeros((0, 3)), out)
    assert (out == 1).all()
    gemm.add_product(np.zeros((2, 0)), np.zeros((0, 3)), out, add=False)
    assert (out == 0).all()


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_what_is_no_number_stays_so_whatever_it_is_multiplied_by(dtype):
    left, right = np.ones((70, 60), dtype), np.ones((60, 50), dtype)
    left[3, 4], right[5, 6] = np.nan, np.inf
    for alpha in (0, 0.0, 1):
        out = np.zeros((70, 50), dtype)
        gemm.add_product(left, right, out, alpha)
        strange = np.zeros(out.shape, bool)
        strange[3], strange[:, 6] = True, True
        assert np.array_equal(~np.isfinite(out), strange)
