"""Extended arrays under NumPy's operators, against NumPy, at one process."""

import numpy as np
import pytest

import outcore
from outcore import Array, DiskArray, Layout, OutcoreError, Tiling
from outcore.conformance.backends import LAYOUTS, O, V, reference

PLACES = ["process", "node", "global", "disk"]


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


def pair(world, name="pair", dtype="float64", where="process", seed=1):
    whole = reference(LAYOUTS[name], dtype, seed)
    return Array.from_numpy(world, whole, LAYOUTS[name], where), whole


def same(array, whole):
    assert array.dtype == whole.dtype
    return np.allclose(array.to_numpy(), whole, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", ["dense", "labels", "antisymmetric", "pair", "nothing"])
def test_arithmetic(world, name, where):
    a, x = pair(world, name, where=where)
    b, y = pair(world, name, seed=2)
    for found, wanted in (
        (a + b, x + y), (a - b, x - y), (a * b, x * y), (-a, -x), (+a, x), (abs(a), abs(x)),
        (a * 2, x * 2), (2.5 * a, 2.5 * x), (a / 4, x / 4), (a + 1, x + 1), (1 - a, 1 - x),
        (np.float64(3) * a, 3 * x),
    ):  # fmt: skip
        assert found.where == where
        assert same(found, wanted)
        found.close()


def test_layouts_of_results_follow_from_those_of_operands(world):
    a, x = pair(world, "antisymmetric")
    assert (a + a).layout == a.layout
    assert (a * a).layout.symmetry == outcore.Symmetry.parse("symmetric(0,1) symmetric(2,3)", 4)
    assert (a * a).layout.elements == a.layout.elements
    assert (a + 1).layout.symmetry.order == 2  # both exchanges at once
    plain = Array.from_numpy(world, x, [O, O, V, V])
    assert (a + plain).layout == plain.layout
    assert same(a + plain, 2 * x)
    labelled, _ = pair(world, "labels")
    other = Array.from_numpy(world, reference(Layout([O, O, V], [(0, 0, 0)]), "float64"),
                             Layout([O, O, V], [(0, 0, 0)]))  # fmt: skip
    assert (labelled * other).layout.stored == []
    assert (labelled + other).layout.stored == sorted([*labelled.layout.stored, (0, 0, 0)])
    with np.errstate(divide="ignore", invalid="ignore"):
        assert (other / labelled).layout.stored == [(0, 0, 0)]


@pytest.mark.parametrize("where", PLACES)
def test_arithmetic_in_place(world, where):
    a, x = pair(world, "antisymmetric", where=where)
    b, y = pair(world, "antisymmetric", seed=2)
    a += b
    a -= 3 * b
    a *= 2
    a /= 4.0
    assert same(a, (x - 2 * y) / 2)
    assert a.axpy(-0.5, b) is a
    assert same(a, (x - 3 * y) / 2)
    square = b * b
    a *= square
    assert same(a, (x - 3 * y) / 2 * y**2)
    a.fill(0)
    assert not a.to_numpy().any()


def test_what_cannot_hold_the_result_is_not_changed(world):
    a, x = pair(world, "antisymmetric")
    dense = Array.from_numpy(world, x, [O, O, V, V])
    for change, message in (
        (lambda: a.__iadd__(1), "symmetry differ"),
        (lambda: a.__iadd__(dense), "symmetry differ"),
        (lambda: a.__imul__(a), "symmetry differ"),
        (lambda: a.__imul__(1j), "complex"),
        (lambda: a.fill(1.0), "antisymmetric"),
        (lambda: Array.generated(world, [3], lambda box: np.ones(3)).__iadd__(1), "read-only"),
    ):
        with pytest.raises(OutcoreError, match=message):
            change()
        assert same(a, x)
    labelled, _ = pair(world, "labels")
    with pytest.raises(OutcoreError, match="tiles differ"):
        labelled += Array(world, [O, O, V])
    with pytest.raises(OutcoreError, match="shapes that differ"):
        a + labelled
    with pytest.raises(OutcoreError, match="tilings that differ"):
        a + Array(world, [Tiling(extent, tile=extent) for extent in a.shape])
    with pytest.raises(OutcoreError, match="no number"):
        a + "one"


def test_arrays_of_others_are_operands(world):
    x = np.random.default_rng(3).normal(size=(6, 8))
    a = Array.from_numpy(world, x, [Tiling(6, tile=4), Tiling(8, tile=3)], "disk")
    with DiskArray(world, (6, 8)) as d:
        d[...] = 2 * x
        assert same(a + d, 3 * x)
        assert same(x + a, 2 * x)
        assert same(x - a, 0 * x)
        assert np.isclose(a.dot(d), 2 * (x * x).sum())
    with pytest.raises(OutcoreError, match=r"an array of shape \(8, 6\) with"):
        a + np.ones((8, 6))


@pytest.mark.parametrize("name", ["dense", "labels", "antisymmetric", "pair", "nothing"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_reductions(world, name, dtype):
    a, x = pair(world, name, dtype, "disk")
    b, y = pair(world, name, dtype, seed=2)
    dense = Array.from_numpy(world, y, LAYOUTS[name].tilings)
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype in ("float32", "complex64") else {}
    assert np.isclose(a.sum(), x.sum(), **tolerance)
    assert np.isclose(a.norm(), np.linalg.norm(x), **tolerance)
    for other in (b, dense):
        assert np.isclose(a.dot(other), (x * y).sum(), **tolerance)
        assert np.isclose(a.dot(other, conjugate=True), np.vdot(x, y), **tolerance)
        assert np.isclose(other.dot(a), (x * y).sum(), **tolerance)
    if dtype.startswith("float"):
        assert (a.max(), a.min()) == (pytest.approx(x.max()), pytest.approx(x.min()))
    else:
        with pytest.raises(OutcoreError, match="no order"):
            a.max()


def test_no_number_is_the_extreme(world):
    a = Array.from_numpy(world, np.array([1.0, np.nan, 3.0]), [Tiling(3, tile=1)])
    assert np.isnan(a.max())
    assert np.isnan(a.sum())


def test_copies_types_and_transposition(world):
    a, x = pair(world, "antisymmetric", "complex128", "disk")
    copy = a.copy()
    copy *= 2
    assert same(a, x)
    assert same(copy, 2 * x)
    assert same(a.conj(), x.conj())
    assert same(a.astype("complex64"), x.astype("complex64"))
    turned = a.transpose(2, 0, 3, 1)
    assert same(turned, x.transpose(2, 0, 3, 1))
    assert turned.layout.elements == a.layout.elements
    assert same(a.transpose(), x.T)
    with pytest.raises(OutcoreError, match="axes"):
        a.transpose(0, 1)


@pytest.mark.parametrize("name", ["labels", "antisymmetric"])
@pytest.mark.parametrize(
    "index",
    [
        np.s_[...], np.s_[1:6:2], np.s_[::-1, 2], np.s_[5, 3, 4], np.s_[-1, ..., ::-2], np.s_[3:3],
        np.s_[2:100, 1:2], np.s_[:, 6:0:-3],
    ],
    ids=str,
)  # fmt: skip
def test_indices(world, name, index):
    a, x = pair(world, name, where="disk")
    found = a[index]
    assert np.allclose(found, x[index])
    assert np.shape(found) == x[index].shape


def test_an_element(world):
    a, x = pair(world, "dense")
    assert a[6, 4] == x[6, 4]
    assert np.ndim(a[6, 4]) == 0
    assert len(a) == 7
    with pytest.raises(IndexError, match="out of bounds"):
        a[7, 0]


def test_all_of_it_only_if_it_fits(world):
    big = Array(world, [Tiling(4000, tile=500), Tiling(4000, tile=500)], where="disk")
    for want in (np.asarray, lambda a: a.to_numpy()):
        with pytest.raises(OutcoreError, match="sections may fit"):
            want(big)
    assert big[:10, 3990:].shape == (10, 10)
    small, _ = pair(world, "pair")
    assert np.array_equal(np.asarray(small), small.to_numpy())
    assert np.asarray(small, "float32").dtype == "float32"
    with pytest.raises(ValueError, match="only a copy"):
        np.array(small, copy=False)


def test_arrays_of_nothing_but_rounding_are_copied(world):
    """Their largest element gives no bound for the rounding error of a symmetry."""
    noise = 1e-15 * np.random.default_rng(1).standard_normal((4, 4))
    with Array(world, [Tiling(4, tile=4)] * 2, symmetry="antisymmetric(0,1)") as a:
        a.put_tile((0, 0), noise)
        for found, wanted in ((a.copy(), noise), (a.transpose(1, 0), noise.T), (2 * a, 2 * noise)):
            assert np.array_equal(found.to_numpy(), wanted)
            found.close()
        a.move("disk")
        assert np.array_equal(a.to_numpy(), noise)


def test_functions_of_numpy_are_methods_or_take_copies(world):
    a, x = pair(world)
    b, y = pair(world, seed=2)
    for found, wanted in (
        (np.sum(a), x.sum()), (np.linalg.norm(a), np.linalg.norm(x)), (np.max(a), x.max()), (np.min(a), x.min()),
        (np.vdot(a, b), np.vdot(x, y)), (np.sum(a, axis=0), x.sum(axis=0)), (np.vdot(x, b), np.vdot(x, y)),
        (np.linalg.norm(a[0, 0], 1), np.linalg.norm(x[0, 0], 1)), (np.einsum("ijab->ab", a), x.sum((0, 1))),
        (np.concatenate([a, x]), np.concatenate([x, x])), (np.shape(a), x.shape), (np.ndim(a), 4),
        (np.size(a), x.size),
    ):  # fmt: skip
        assert np.allclose(found, wanted)
    for turned, wanted in (
        (np.transpose(a), x.T), (a.T, x.T), (np.transpose(a, (1, 0, 3, 2)), x.transpose(1, 0, 3, 2)),
    ):  # fmt: skip
        assert isinstance(turned, Array)
        assert same(turned, wanted)
    with pytest.raises(TypeError):
        np.exp(a)


def test_a_function_that_needs_a_copy_is_refused_where_there_is_no_room(tmp_path):
    with (
        outcore.World("self", scratch=tmp_path, memory="16MB") as world,
        Array(world, [Tiling(2000, tile=250)] * 2, where="disk") as a,
    ):
        assert np.sum(a) == 0
        with pytest.raises(OutcoreError, match="as an array of NumPy"):
            np.sum(a, axis=0)


def test_arrays_are_neither_true_nor_equal_in_silence(world):
    a, x = pair(world)
    b, _ = pair(world)
    with pytest.raises(ValueError, match=f"neither true nor false, as it has {a.size} elements"):
        bool(a)
    axis = Tiling(1)
    assert Array.from_numpy(world, np.ones((1, 1)), [axis, axis])
    assert not Array.from_numpy(world, np.zeros((1, 1)), [axis, axis])
    for other in (b, x, 0, 1.5, np.float64(2)):
        for compare in (lambda: a == other, lambda: a != other, lambda: other == a):  # noqa: B023
            with pytest.raises(TypeError, match=r"not compared element by element: use \(a - b\).norm\(\)"):
                compare()
    same_array = a
    assert a == same_array
    assert a != None  # noqa: E711
    assert a != "a"
    assert a in [a, b]
    assert len({a, b}) == 2


@pytest.mark.parametrize(
    "write",
    [
        np.copyto,
        lambda a, x: np.fill_diagonal(a, 0.0),
        lambda a, x: np.put(a, [0], 1.0),
        lambda a, x: np.place(a, x > 0, [1.0]),
        lambda a, x: np.putmask(a, x > 0, 1.0),
        lambda a, x: np.einsum("ij->ji", x, out=a),
        lambda a, x: np.dot(x, x, out=a),
        lambda a, x: np.clip(x, 0.0, 0.5, out=a),
    ],
    ids=["copyto", "fill_diagonal", "put", "place", "putmask", "einsum", "dot", "clip"],
)
def test_what_numpy_would_write_into_a_copy_is_an_error(world, write):
    x = np.random.default_rng(5).random((4, 4))
    with Array.from_numpy(world, x) as a:
        with pytest.raises((ValueError, TypeError)):
            write(a, x)
        assert np.array_equal(a.to_numpy(), x)


def test_lists_are_not_compared_in_silence(world):
    with Array.from_numpy(world, np.ones((1, 2))) as a:
        for other in ([[1.0, 1.0]], ((1.0, 1.0),)):
            with pytest.raises(TypeError, match="element by element"):
                _ = a == other
            with pytest.raises(TypeError, match="element by element"):
                _ = other != a
