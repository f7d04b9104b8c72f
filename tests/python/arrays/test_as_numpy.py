"""Arrays of all kinds as arguments of NumPy: copies of their elements, or errors that name what to use."""

import operator

import numpy as np
import pytest

import outcore
from outcore import Array, BlockSparseArray, DiskArray, GlobalArray, NodeArray, OutcoreError

X = np.arange(12.0).reshape(3, 4)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with outcore.World("self", scratch=tmp_path_factory.mktemp("scratch"), memory="64MB") as made:
        yield made


def filled(array, values):
    array[...] = values
    return array


def node(world, values):
    array = NodeArray(world, values.shape)
    array.view[...] = values
    return array


def sparse(world, values):
    grid = [[0, extent] for extent in values.shape]
    array = BlockSparseArray(world, grid, [(0,) * values.ndim])
    array.put_tile((0,) * values.ndim, values)
    return array


def attached(world, values):
    array = filled(DiskArray(world, values.shape), values)
    found = DiskArray.attach(world, array.share(world))
    found.kept = array
    return found


KINDS = {
    "global": lambda world, values: filled(GlobalArray(world, values.shape), values),
    "section": lambda world, values: filled(GlobalArray(world, values.shape), values).section(),
    "disk": lambda world, values: filled(DiskArray(world, values.shape), values),
    "attached": attached,
    "node": node,
    "sparse": sparse,
    "process": lambda world, values: Array.from_numpy(world, values, where="process"),
    "on disk": lambda world, values: Array.from_numpy(world, values, where="disk"),
    "wrapped": Array.wrap,
}


@pytest.fixture(params=KINDS)
def make(request):
    return KINDS[request.param]


def test_functions_of_numpy_see_the_elements(world, make):
    a = make(world, X)
    assert np.asarray(a).dtype == np.float64
    assert np.array_equal(np.asarray(a), X)
    assert np.asarray(a, dtype=int).dtype == int
    assert np.sum(a) == X.sum()
    assert np.array_equal(np.mean(a, axis=0), X.mean(axis=0))
    assert np.array_equal(np.stack([a, a]), np.stack([X, X]))
    assert np.shape(a) == a.shape == X.shape
    assert (np.size(a), np.ndim(a), len(a)) == (12, 2, 3)
    np.testing.assert_array_equal(a, X)
    assert (7.0 in a, 99.0 in a) == (True, False)


def test_what_numpy_makes_is_a_copy(world, make):
    a = make(world, X.copy())
    np.array(a)[...] = 0
    np.asarray(a)[...] = 0
    assert np.array_equal(a.to_numpy(), X)


def test_elements_are_not_compared_one_by_one(world, make):
    a, b = make(world, X), make(world, X)
    for other in (b, X, 1.0, np.float64(1), [1, 2], np.ones(4)):
        for compare in (lambda a=a, other=other: a == other, lambda a=a, other=other: a != other):
            with pytest.raises(TypeError, match=r"is not compared element by element: use .*a\.to_numpy\(\)"):
                compare()
    same = a
    assert (a == same, a != same) == (True, False)
    assert (a == None, a == "text") == (False, False)  # noqa: E711
    assert {a: 1, b: 2}[b] == 2


IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
    operator.imatmul,
]


@pytest.mark.parametrize("operation", IN_PLACE)
def test_arithmetic_in_place_changes_the_array_or_is_refused(world, make, operation):
    array, square = make(world, np.full((4, 4), 3.0)), np.full((4, 4), 2.0)
    try:
        found = operation(array, square)
    except TypeError:
        np.testing.assert_array_equal(array.to_numpy(), 3.0)
        return
    assert found is array
    np.testing.assert_array_equal(array.to_numpy(), operation(np.full((4, 4), 3.0), square))


def test_the_truth_of_an_array_is_that_of_its_one_element(world, make):
    with pytest.raises(ValueError, match="is neither true nor false, as it has 12 elements"):
        bool(make(world, X))
    assert bool(make(world, np.ones((1, 1))))
    assert not bool(make(world, np.zeros((1, 1))))


def test_what_is_larger_than_the_budget_is_not_copied(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as world:
        array = BlockSparseArray(world, [[0, 1, 4000], [0, 1, 4000]], [(0, 0)])
        with pytest.raises(OutcoreError, match=r"all of <outcore\.BlockSparseArray .* sections may fit"):
            np.sum(array)


def test_a_node_array_gives_its_memory_where_no_copy_is_allowed(world):
    array = node(world, X)
    np.asarray(array, copy=False)[0, 0] = 5
    assert array.view[0, 0] == 5


def test_other_arrays_cannot_be_had_without_a_copy(world, make):
    a = make(world, X)
    if not isinstance(a, NodeArray):
        with pytest.raises(ValueError, match="only a copy can be made"):
            np.asarray(a, copy=False)


@pytest.mark.parametrize("kind", ["global", "disk", "attached"])
def test_masked_arrays_are_refused_where_elements_are_put(world, kind):
    array = KINDS[kind](world, X)
    with pytest.raises(TypeError, match="a masked array, whose mask would be lost"):
        array[...] = np.ma.array(X, mask=X > 5)
    np.testing.assert_array_equal(np.asarray(array), X)


def test_masked_operands_of_extended_arrays_are_refused(world):
    with pytest.raises(OutcoreError, match="a masked array, whose mask would be lost"):
        KINDS["process"](world, X) + np.ma.array(X, mask=X > 5)
