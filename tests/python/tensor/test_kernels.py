"""Kernels of tiles as Python calls them, against NumPy."""

import itertools

import numpy as np
import pytest

from outcore.tensor.layout import kernels

DTYPES = ["float32", "float64", "complex64", "complex128"]


def some(shape, dtype, seed=1):
    random = np.random.default_rng(seed)
    values = random.normal(size=shape)
    return (values + 1j * random.normal(size=shape) if dtype.startswith("c") else values).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_every_permutation(dtype, accumulate):
    value = some((7, 4, 19, 5), dtype)
    for axes in itertools.permutations(range(4)):
        expected = np.transpose(value, axes)
        for alpha in (1, -0.5):
            out = some(expected.shape, dtype, 2)
            wanted = alpha * expected + (out if accumulate else 0)
            assert kernels.permute(out, value, axes, alpha, accumulate=accumulate) is out
            assert np.allclose(out, wanted, rtol=1e-5, atol=1e-6)


def test_eight_axes_none_and_strided_memory():
    value = some((2, 3, 1, 2, 2, 3, 2, 2), "float64")
    axes = (3, 7, 0, 2, 5, 1, 6, 4)
    out = np.empty(np.transpose(value, axes).shape)
    assert np.array_equal(kernels.permute(out, value, axes), np.transpose(value, axes))
    number = np.array(2.0)
    assert kernels.permute(np.array(1.0), number, (), 3.0, accumulate=True) == 7.0
    wide = np.zeros((6, 10))
    kernels.permute(wide[1::2, ::-3], value[0, :, 0, 0, 0, :, 0, 0][:, [0, 1, 2, 0]], (0, 1), 2.0)
    assert np.array_equal(wide[1::2, ::-3], 2 * value[0, :, 0, 0, 0, :, 0, 0][:, [0, 1, 2, 0]])
    assert np.count_nonzero(wide) == 12


def test_complex_factors():
    value = some((5, 6), "complex128")
    out = np.ones((6, 5), complex)
    kernels.permute(out, value, (1, 0), 2 - 1j, accumulate=True)
    assert np.allclose(out, 1 + (2 - 1j) * value.T)


def test_what_does_not_fit_is_refused():
    value = np.ones((2, 3))
    with pytest.raises(ValueError, match="shape"):
        kernels.permute(np.ones((2, 3)), value, (1, 0))
    with pytest.raises(TypeError, match="float32"):
        kernels.permute(np.ones((3, 2), "float32"), value, (1, 0))
    with pytest.raises(TypeError, match="int64"):
        kernels.permute(np.ones((3, 2), int), np.ones((2, 3), int), (1, 0))
    square = np.ones((3, 3))
    with pytest.raises(ValueError, match="overlaps"):
        kernels.permute(square, square, (1, 0))
    fixed = np.ones((3, 2))
    fixed.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="read-only"):
        kernels.permute(fixed, value, (1, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 17, 40])
def test_packed_pairs(dtype, n):
    x = some((2, 3, n, n), dtype)
    plus, minus = kernels.pack_pairs(x, diagonal=0.5)
    c, d = np.tril_indices(n)
    halved = np.where(c == d, 0.5, 1.0)
    assert np.allclose(plus, (x[..., c, d] + x[..., d, c]) * halved, atol=1e-6)
    c, d = np.tril_indices(n, -1)
    assert np.allclose(minus, x[..., c, d] - x[..., d, c], atol=1e-6)
    back = kernels.unpack_pairs(plus, minus, np.empty_like(x), diagonal=1.0)
    assert np.allclose(back, x, atol=1e-6)


def test_a_product_over_all_pairs_is_two_over_half_of_them():
    t, v = some((4, 6, 6), "float64"), some((9, 9, 6, 6), "float64", 2)
    v = v + v.transpose(1, 0, 3, 2)
    (t_plus, t_minus), (v_plus, v_minus) = kernels.pack_pairs(t, 0.5), kernels.pack_pairs(v)
    p, q = np.tril_indices(9)
    below, left = np.tril_indices(9, -1)
    plus = t_plus @ v_plus[p, q].T
    minus = t_minus @ v_minus[below, left].T
    found = kernels.unpack_pairs(plus, minus, np.empty((4, 9, 9)))
    assert np.allclose(found, np.einsum("icd,pqcd->ipq", t, v))


def test_pairs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 and 4"):
        kernels.pack_pairs(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="do not fit"):
        kernels.unpack_pairs(np.ones(6), np.ones(2), np.ones((3, 3)))
    with pytest.raises(TypeError, match="types"):
        kernels.unpack_pairs(np.ones(6, "float32"), np.ones(3), np.ones((3, 3)))
