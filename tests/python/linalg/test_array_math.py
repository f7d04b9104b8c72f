"""Mathematics on global arrays, in a world of one process, against NumPy. Blocks are made small, so that there are
many, whatever the size of an array."""

from __future__ import annotations

import errno
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outcore import GlobalArray, OutcoreError, World
from outcore import linalg as am
from outcore.linalg import blocks as array_blocks
from outcore.linalg import matrices as array_linalg


@pytest.fixture(scope="module")
def world():
    with World(memory=64 << 20) as made:
        yield made


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (am, "BLOCK_ELEMENTS", 7),
            (am, "FETCH_ELEMENTS", 11),
            (array_linalg, "FETCH_ELEMENTS", 9),
            (array_linalg, "TILE", 4),
            (array_linalg, "DEPTH", 3),
            (array_blocks, "BLOCK_ELEMENTS", 7),
        ):
            patch.setattr(module, name, value)
        patch.setattr(array_blocks.own_blocks, "__defaults__", (7,))
        yield


def holding(world, values, **how):
    array = GlobalArray(world, values.shape, values.dtype, **how)
    array[...] = values
    return array


def some(shape, seed=0, dtype="float64"):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * generator.standard_normal(shape)).astype(dtype)
    return (values * 10).astype(dtype) if np.dtype(dtype).kind in "iu" else values.astype(dtype)


def close(a, b):
    return np.allclose(a, b, rtol=1e-12, atol=1e-12)


BLOCKS = [None, (2, 3)]


def refused(call, text, number=errno.EINVAL):
    with pytest.raises(OutcoreError) as caught:
        call()
    assert caught.value.errno == number
    assert text in str(caught.value)


# ---- element by element ----


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("other", BLOCKS)
@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32"])
def test_elementwise_functions_are_those_of_numpy(world, block, other, dtype):
    x, y = some((9, 8), 1, dtype), some((9, 8), 2, dtype)
    y[y == 0] = 1
    with (
        holding(world, x, block=block) as a,
        holding(world, y, block=other) as b,
        GlobalArray(world, (9, 8), dtype) as c,
    ):
        am.add(c, a, b, alpha=2, beta=-3)
        assert np.allclose(c[...], 2 * x - 3 * y)
        am.multiply(c, a, b)
        assert np.allclose(c[...], x * y)
        am.divide(c, a, b)
        assert np.allclose(c[...], x // y if dtype == "int32" else x / y)
        am.absolute(c, a)
        assert np.allclose(c[...], np.abs(x))
        am.maximum(c, a, b)
        assert np.array_equal(c[...], np.maximum(x, y))
        am.minimum(c, a, b)
        assert np.array_equal(c[...], np.minimum(x, y))
        am.scale(c, 3)
        assert np.array_equal(c[...], np.minimum(x, y) * 3)
        am.fill(c, 7)
        assert np.array_equal(c[...], np.full_like(x, 7))


def test_a_result_may_be_an_operand(world):
    x = some((5, 6))
    with holding(world, x) as a:
        am.add(a, a, a, beta=2)
        assert close(a[...], 3 * x)
        am.reciprocal(a, a)
        assert close(a[...], 1 / (3 * x))


def test_functions_of_numpy_are_applied(world):
    x, y = some((5, 6), 1), some((5, 6), 2)
    with holding(world, x) as a, holding(world, y, block=2) as b:
        am.apply(lambda p, q: np.exp(p) - q, a, a, b)
        assert close(a[...], np.exp(x) - y)
        refused(lambda: am.apply(lambda p: p + 1j, a, a), "complex128")


def test_sections_are_operands(world):
    x, y = some((9, 8), 1), some((9, 8), 2)
    with holding(world, x) as a, holding(world, y, block=3) as b:
        am.add(a.section(np.s_[1:4, 2:7]), b.section(np.s_[5:8, 0:5]), b.section(np.s_[0:3, 3:8]))
        x[1:4, 2:7] = y[5:8, 0:5] + y[0:3, 3:8]
        assert close(a[...], x)
        am.fill(a.section(np.s_[:, 0]), 0)
        x[:, 0] = 0
        assert close(a[...], x)


def test_operands_that_do_not_fit_are_refused(world):
    with (
        GlobalArray(world, (4, 5)) as a,
        GlobalArray(world, (5, 4)) as b,
        GlobalArray(world, (4, 5), "float32") as c,
    ):
        refused(lambda: am.add(a, a, b), "(5, 4)")
        refused(lambda: am.add(a, a, c), "float32")
        refused(lambda: am.fill(a, 1j), "1j")
        refused(lambda: am.copy(a, b), "(5, 4)")
        refused(lambda: am.copy(a, b, (0, 0)), "once")
        refused(
            lambda: am.add(a.section(np.s_[0:2, :]), a.section(np.s_[1:3, :]), a.section(np.s_[0:2, :])),
            "overlap",
        )


def test_errors_in_functions_are_raised(world):
    def fail(values):
        raise RuntimeError("not today")

    with GlobalArray(world, 4) as a:
        refused(lambda: am.apply(fail, a, a), "not today", None)


# ---- copies ----


@given(st.permutations(range(3)), st.sampled_from([None, (2, 1, 3)]), st.sampled_from([None, (3, 2, 2)]))
@settings(deadline=None)
def test_copies_permute_as_numpy_transposes(world, axes, block, other):
    x = some((4, 5, 6))
    with holding(world, x, block=block) as a, GlobalArray(world, x.transpose(axes).shape, block=other) as b:
        am.copy(b, a, axes)
        assert np.array_equal(b[...], x.transpose(axes))


def test_copies_of_sections_move_boxes(world):
    x = some((7, 9))
    with holding(world, x) as a, GlobalArray(world, (9, 9), block=2) as b:
        am.copy(b.section(np.s_[3:8, 1:4]), a.section(np.s_[2:5, 4:9]), (1, 0))
        expected = np.zeros((9, 9))
        expected[3:8, 1:4] = x[2:5, 4:9].T
        assert np.array_equal(b[...], expected)
        am.transpose(b.section(np.s_[:, 0:7]), a)
        assert np.array_equal(b[:, 0:7], x.T)


def test_a_copy_onto_itself_is_refused(world):
    with GlobalArray(world, (5, 5)) as a:
        refused(lambda: am.transpose(a, a), "overlap")
        am.copy(a.section(np.s_[0:2, :]), a.section(np.s_[2:4, :]))


# ---- numbers ----


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex128"])
def test_numbers_are_those_of_numpy(world, block, dtype):
    x, y = some((9, 8), 1, dtype), some((9, 8), 2, dtype)
    wide = {"i": "int64", "f": "float64", "c": "complex128"}[x.dtype.kind]
    p, q = x.astype(wide), y.astype(wide)
    with holding(world, x, block=block) as a, holding(world, y) as b:
        assert np.isclose(am.sum(a), p.sum())
        assert np.isclose(am.sum(a.section(np.s_[2:5, 3])), p[2:5, 3].sum())
        assert np.isclose(am.dot(a, b), (p * q).sum())
        assert np.isclose(am.dot(a, b, conjugate=True), np.vdot(p, q))
        assert np.isclose(am.norm(a), np.linalg.norm(p))
        assert np.isclose(am.norm(a, "max"), np.abs(p).max())
        assert np.isclose(am.norm(a, "one"), np.abs(p).sum())
        if x.dtype.kind == "c":
            refused(lambda: am.max(a), "order")
        else:
            assert am.min(a) == x.min()
            assert am.max(a) == x.max()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_neither_overflow_nor_vanish(world, scale):
    x = some((6, 6)) * scale
    with holding(world, x) as a:
        assert math.isclose(am.norm(a), scale * np.linalg.norm(x / scale), rel_tol=1e-12)


def test_nan_and_infinity_are_kept(world):
    x = some((6, 6))
    x[4, 4] = math.nan
    with holding(world, x) as a:
        assert all(
            math.isnan(value) for value in (am.norm(a), am.min(a), am.max(a), am.norm(a, "max"), am.sum(a))
        )
        a[4, 4] = -math.inf
        assert (am.min(a), am.norm(a), am.norm(a, "max")) == (-math.inf, math.inf, math.inf)


def test_numbers_of_nothing(world):
    with GlobalArray(world, (0, 4)) as a:
        assert (am.sum(a), am.norm(a), am.dot(a, a)) == (0, 0, 0)
        refused(lambda: am.max(a), "without elements")
        refused(lambda: am.norm(a, "two"), "two")


# ---- matrices ----


@given(
    st.tuples(*[st.integers(1, 12)] * 3),
    st.sampled_from([None, (3, 2)]),
    st.sampled_from([None, (2, 5)]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["float64", "complex128", "int64"]),
)
@settings(deadline=None)
def test_products_are_those_of_numpy(world, sizes, block, other, turn_a, turn_b, dtype):
    rows, depth, columns = sizes
    x = some((depth, rows) if turn_a else (rows, depth), 1, dtype)
    y = some((columns, depth) if turn_b else (depth, columns), 2, dtype)
    z = some((rows, columns), 3, dtype)
    with (
        holding(world, x, block=block) as a,
        holding(world, y, block=other) as b,
        holding(world, z, block=block) as c,
    ):
        am.matmul(c, a, b, alpha=3, beta=2, transpose_a=turn_a, transpose_b=turn_b)
        assert close(c[...], 3 * (x.T if turn_a else x) @ (y.T if turn_b else y) + 2 * z)


def test_products_take_conjugates(world):
    x, y = some((4, 6), 1, "complex128"), some((5, 6), 2, "complex128")
    with holding(world, x) as a, holding(world, y) as b, GlobalArray(world, (4, 5), "complex128") as c:
        am.matmul(c, a, b, transpose_b=True, conjugate_b=True)
        assert close(c[...], x @ y.conj().T)


def test_products_of_sections(world):
    x, y = some((9, 9), 1), some((9, 9), 2)
    with holding(world, x) as a, holding(world, y, block=2) as b, GlobalArray(world, (9, 9), block=3) as c:
        am.matmul(c.section(np.s_[1:8, 2:6]), a.section(np.s_[0:7, 3:8]), b.section(np.s_[4:9, 1:5]))
        expected = np.zeros((9, 9))
        expected[1:8, 2:6] = x[0:7, 3:8] @ y[4:9, 1:5]
        assert close(c[...], expected)


def test_with_beta_zero_the_result_may_hold_anything(world):
    x = some((4, 4))
    with holding(world, x) as a, holding(world, np.full((4, 4), math.nan)) as c:
        am.matmul(c, a, a)
        assert close(c[...], x @ x)


def test_products_that_do_not_fit_are_refused(world):
    with GlobalArray(world, (4, 5)) as a, GlobalArray(world, (4, 5)) as b, GlobalArray(world, (4, 4)) as c:
        refused(lambda: am.matmul(c, a, b), "(4, 5)")
        refused(lambda: am.matmul(c, c, c), "overlap")
        am.matmul(c, a, b, transpose_b=True)


def test_a_product_of_depth_zero_is_zero(world):
    with (
        GlobalArray(world, (3, 0)) as a,
        GlobalArray(world, (0, 3)) as b,
        holding(world, np.ones((3, 3))) as c,
    ):
        am.matmul(c, a, b)
        assert not c[...].any()


@pytest.mark.parametrize("block", [None, (2, 3), (4, 1)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("hermitian", [False, True])
def test_symmetrize_is_half_the_sum_with_the_transpose(world, block, dtype, hermitian):
    x = some((11, 11), 1, dtype)
    with holding(world, x, block=block) as a:
        am.symmetrize(a, hermitian=hermitian)
        assert close(a[...], (x + (x.T.conj() if hermitian else x.T)) / 2)


def test_symmetrize_of_a_section_leaves_the_rest(world):
    x = some((9, 9))
    with holding(world, x, block=2) as a:
        am.symmetrize(a.section(np.s_[2:7, 2:7]))
        x[2:7, 2:7] = (x[2:7, 2:7] + x[2:7, 2:7].T) / 2
        assert close(a[...], x)
        refused(lambda: am.symmetrize(a.section(np.s_[0:3, 1:4])), "same range")
        refused(lambda: am.symmetrize(a.section(np.s_[0:3, 0:4])), "square")


@given(*(st.integers(0, 12) for _ in range(4)), st.integers(1, 5))
def test_upper_blocks_are_the_upper_triangle_each_element_once(i0, rows, j0, columns, side):
    count = np.zeros((30, 30), int)
    for begin, end in array_linalg.upper_blocks((i0, j0), (i0 + rows, j0 + columns), side):
        on_diagonal = begin[0] == begin[1]
        assert on_diagonal == (begin[0] == begin[1] and end[0] == end[1])
        block = count[begin[0] : end[0], begin[1] : end[1]]
        block += np.triu(np.ones_like(block)) if on_diagonal else 1
        if not on_diagonal:
            assert end[0] <= begin[1]
    inside = np.zeros_like(count)
    inside[i0 : i0 + rows, j0 : j0 + columns] = 1
    assert np.array_equal(count, np.triu(inside))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_eigenvalues_and_vectors_solve_the_problem(world, dtype):
    pytest.importorskip("scipy")
    x = some((10, 10), 1, dtype)
    x = (x + x.conj().T) / 2
    precision = 1e-4 if dtype == "float32" else 1e-10
    with holding(world, x) as a, GlobalArray(world, (10, 10), dtype, block=3) as v:
        values = am.eigh(a, v)
        vectors = v[...]
        assert values.dtype == np.zeros(1, dtype).real.dtype
        assert np.allclose(x @ vectors, vectors * values, atol=precision)
        assert np.allclose(vectors.conj().T @ vectors, np.eye(10), atol=precision)
        assert np.allclose(am.eigh(a), values, atol=precision)
        assert np.array_equal(a[...], x)


def test_generalised_eigenvalues(world):
    pytest.importorskip("scipy")
    x, y = some((10, 10), 1), some((10, 10), 2)
    x, y = x + x.T, y @ y.T + np.eye(10)
    with holding(world, x) as a, holding(world, y) as b, GlobalArray(world, (10, 10)) as v:
        values = am.eigh(a, v, b)
        assert np.allclose(x @ v[...], y @ v[...] * values)
        refused(lambda: am.eigh(a, v, a), "positive definite")


def test_a_matrix_of_more_than_the_budget_is_refused_before_it_is_solved(world):
    with GlobalArray(world, (1700, 1700)) as a:  # 23 MB, 4 times that needs more than the 64 MiB
        refused(lambda: am.eigh(a), "eigh on one process", errno.ENOMEM)


def test_what_has_no_eigenvalues_is_refused(world):
    with GlobalArray(world, (4, 5)) as a, GlobalArray(world, (4, 4), "int64") as b:
        refused(lambda: am.eigh(a), "(4, 5)")
        refused(lambda: am.eigh(b), "int64")
