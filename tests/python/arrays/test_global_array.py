"""Global and node arrays in a world of one process: indexing against NumPy, types, errors."""

from __future__ import annotations

import errno
import gc
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from outcore import Distribution, GlobalArray, NodeArray, OutcoreError, World
from outcore import linalg as am
from outcore.arrays.global_array import Section
from outcore.job.arguments import DTYPES

MEMORY = 64 << 20


@pytest.fixture(scope="module")
def world():
    with World(memory=MEMORY) as made:
        yield made


def positions(shape, dtype="float64"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def holding(world, values, **how):
    array = GlobalArray(world, values.shape, values.dtype, **how)
    array[...] = values
    return array


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=7)


@st.composite
def arrays_and_indices(draw):
    """A shape, blocks of a block-cyclic distribution or None, and a basic index."""
    shape = draw(shapes)
    block = draw(st.none() | st.tuples(*(st.integers(1, 4) for _ in shape)))
    index = draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    return shape, block, index


# ---- against NumPy ----


@given(arrays_and_indices())
@settings(max_examples=150, deadline=None)
def test_reading_a_section_is_what_numpy_does(world, case):
    shape, block, index = case
    values = positions(shape)
    with holding(world, values, block=block) as array:
        found = array[index]
        assert np.array_equal(found, values[index])
        assert np.shape(found) == np.shape(values[index])


@given(arrays_and_indices(), st.data())
@settings(max_examples=150, deadline=None)
def test_writing_a_section_is_what_numpy_does(world, case, data):
    shape, block, index = case
    expected = positions(shape)
    target = np.shape(expected[index])
    given_shape = data.draw(hnp.broadcastable_shapes(target, max_dims=len(target), max_side=7))
    try:
        np.broadcast_to(np.empty(given_shape), target)
    except ValueError:
        given_shape = target
    value = -positions(given_shape) - 1
    with holding(world, positions(shape), block=block) as array:
        array[index] = value
        expected[index] = value
        assert np.array_equal(array[...], expected)


@given(arrays_and_indices())
@settings(max_examples=100, deadline=None)
def test_accumulating_adds_alpha_times_the_values(world, case):
    shape, block, index = case
    expected = positions(shape, "complex128")
    value = positions(np.shape(expected[index]), "complex128") + 1j
    with holding(world, expected, block=block) as array:
        array.acc(index, value, alpha=2 - 1j)
        expected[index] += (2 - 1j) * value
        assert np.array_equal(array[...], expected)


@given(shapes.filter(lambda shape: 0 not in shape), st.data())
@settings(max_examples=100, deadline=None)
def test_gather_and_scatter_are_what_numpy_does(world, shape, data):
    count = data.draw(st.integers(0, 20))
    indices = np.array(
        [[data.draw(st.integers(0, extent - 1)) for extent in shape] for _ in range(count)], dtype=np.int64
    ).reshape(count, len(shape))
    expected = positions(shape)
    where = tuple(indices.T)
    with holding(world, expected) as array:
        assert np.array_equal(array.gather(indices), expected[where])
        added = np.arange(float(count))
        array.scatter_acc(indices, added, alpha=3)
        np.add.at(expected, where, 3 * added)
        assert np.array_equal(array[...], expected)
        array.scatter(indices, expected[where] * 2)
        expected[where] *= 2
        assert np.array_equal(array[...], expected)


@pytest.mark.parametrize("dtype", [each.name for each in DTYPES])
def test_every_type_keeps_its_values(world, dtype):
    values = positions((3, 5), dtype)
    with holding(world, values) as array:
        assert array.dtype == values.dtype
        found = array[1:, ::2]
        assert found.dtype == values.dtype
        assert np.array_equal(found, values[1:, ::2])


def test_an_integer_for_each_dimension_gives_the_element(world):
    with holding(world, positions((3, 4))) as array:
        element = array[-1, 2]
        assert element == 10
        assert isinstance(element, np.float64)


def test_out_may_have_any_strides(world):
    with holding(world, positions((4, 6))) as array:
        out = np.zeros((12, 8))[::3, 6::-1][:, :6].T
        assert array.get(np.s_[:, :], out=out.T) is not None
        assert np.array_equal(out.T, positions((4, 6)))


# ---- what an array is ----


def test_an_array_says_what_it_is(world):
    with GlobalArray(world, (6, 8), "float32") as array:
        assert (array.shape, array.ndim, array.size, array.nbytes) == ((6, 8), 2, 48, 192)
        assert array.dtype == np.float32
        assert array.distribution.kind == "regular"
        assert array.distribution.owner([5, 7]) == 0
        assert array.patch == np.s_[0:6, 0:8]
        assert len(array) == 6
        assert "(6, 8) float32" in repr(array)


def test_one_number_is_a_shape(world):
    with GlobalArray(world, 5) as array:
        assert array.shape == (5,)


def test_the_local_patch_is_written_in_place(world):
    with GlobalArray(world, (3, 4)) as array:
        array.local[1, :] = 7
        array.sync()
        assert np.array_equal(array[1, :], [7, 7, 7, 7])


def test_the_local_patch_keeps_the_array_alive(world):
    used = world.budget.used_bytes
    local = GlobalArray(world, (1000, 100)).local
    gc.collect()
    local[...] = 5  # would be memory of somebody else
    with GlobalArray(world, (1000, 100)) as other:
        assert not other.local.any()
    assert local.min() == 5
    del local
    gc.collect()
    assert world.budget.used_bytes == used


def test_a_request_keeps_array_and_memory_alive(world):
    request = holding(world, positions((50, 50))).get_async(np.s_[1:4, :])
    gc.collect()
    assert np.array_equal(request.wait(), positions((50, 50))[1:4, :])
    assert request.test()


def test_nonblocking_forms_do_what_the_blocking_ones_do(world):
    with GlobalArray(world, (4, 5)) as array:
        array.put_async(np.s_[1:3, :], np.ones((2, 5))).wait()
        array.acc_async(np.s_[2, :], np.full(5, 2.0), alpha=0.5).wait()
        assert np.array_equal(array[:, 0], [0, 1, 2, 0])


def test_read_increment_returns_the_value_before(world):
    with GlobalArray(world, (2, 3), "int64") as array:
        assert [array.read_increment((1, 2), 5) for _ in range(3)] == [0, 5, 10]
        assert array[1, 2] == 15


def test_threads_share_an_array(world):
    with GlobalArray(world, 64, "int64") as array:

        def work():
            for _ in range(200):
                array.acc(np.s_[:], np.ones(64, np.int64))
                array.read_increment(0)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert array[1] == 800
        assert array[0] == 1600


def test_sections_name_a_box_without_copying(world):
    with GlobalArray(world, (6, 8)) as array:
        section = array.section(np.s_[1:3, -1])
        assert isinstance(section, Section)
        assert (section.array, section.begin, section.end) == (array, (1, 7), (3, 8))
        assert (section.shape, section.dtype) == ((2, 1), array.dtype)
        assert array.section().shape == (6, 8)
        array[section] = 3
        assert array[1:3, 7].sum() == 6


# ---- distributions ----


def test_distributions_are_chosen_by_arguments(world):
    with GlobalArray(world, (10, 10), block=3) as array:
        assert array.distribution.kind == "block_cyclic"
        assert array.distribution.block == (3, 3)
    with GlobalArray(world, (10, 10), distribution=[[0], [0]]) as array:
        assert array.distribution.kind == "irregular"
    same = Distribution.block_cyclic([10, 10], 1, [2, 5])
    with GlobalArray(world, (10, 10), distribution=same) as array:
        assert array.distribution == same
        assert hash(array.distribution) == hash(same)


def test_a_distribution_answers_for_other_numbers_of_processes():
    distribution = Distribution.regular([10, 7], 6)
    assert distribution.grid == (3, 2)
    assert distribution.patch(5) == ([7, 4], [10, 7])
    assert distribution.owner([9, 6]) == 5
    assert sum(np.prod(distribution.local_shape(p)) for p in range(6)) == 70
    assert distribution.parts_of(5, [6, 0], [8, 6]) == [[[7, 4], [8, 6], [0, 0]]]


# ---- wrong arguments ----


def refused(number, call, *texts):
    with pytest.raises(OutcoreError) as caught:
        call()
    assert caught.value.errno == number
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    "index",
    [
        np.s_[3, 0],
        np.s_[0, 0, 0],
        np.s_[..., ...],
        np.s_[None, 0, 0, 0],
        np.s_[True, 0],
        np.s_[1.5],
        np.s_[[0, 1], [0, 1]],
        (np.array([0, 3]), 0),
        np.array([0.0, 1.0]),
        "a",
    ],
)
def test_what_is_no_index_is_an_index_error(world, index):
    with GlobalArray(world, (3, 4)) as array:
        with pytest.raises(IndexError):
            array[index]
        with pytest.raises(IndexError):
            array[index] = 0


@pytest.mark.parametrize("box", [np.s_[0:4, :], np.s_[:, -5:], np.s_[9:12, :]])
def test_a_box_outside_is_refused(world, box):
    with GlobalArray(world, (3, 4)) as array:
        for call in (array.get, lambda b: array.put(b, 0), lambda b: array.acc(b, 0), array.section):
            refused(errno.EINVAL, lambda call=call: call(box), "(3, 4)", "outside")
        assert array[box].shape == positions((3, 4))[box].shape  # brackets cut, as NumPy does


@pytest.mark.parametrize(
    "value",
    [np.zeros(4, "float32"), np.zeros(4, "complex128"), np.arange(4), np.zeros(4, ">f8"), 1j, [1, 2, 3, 4]],
)
def test_other_types_are_refused(world, value):
    with GlobalArray(world, (3, 4)) as array:
        with pytest.raises(TypeError):
            array[0, :] = value
        with pytest.raises(TypeError):
            array.acc(np.s_[0, :], value)
        assert not array.local.any()


def test_numbers_become_elements_where_nothing_is_lost(world):
    with GlobalArray(world, 3) as floats, GlobalArray(world, 3, "int8") as small:
        floats[...] = 3
        assert floats[0] == 3
        small[...] = -128
        for value in (1.5, 128, 2**70):
            with pytest.raises(TypeError):
                small[...] = value


def test_shapes_that_do_not_broadcast_are_refused(world):
    with GlobalArray(world, (3, 4)) as array:
        with pytest.raises(ValueError):
            array[0, :] = np.zeros(3)
        with pytest.raises(ValueError):
            array.get(np.s_[0, :], out=np.zeros((1, 4)))
        with pytest.raises(TypeError):
            array.get(np.s_[0, :], out=np.zeros(4, "float32"))


def test_a_read_only_out_is_refused(world):
    with GlobalArray(world, 4) as array:
        out = np.zeros(4)
        out.flags.writeable = False
        with pytest.raises((ValueError, BufferError)):
            array.get(..., out=out)


def test_indices_that_are_none_are_refused(world):
    with GlobalArray(world, (3, 4)) as array:
        with pytest.raises(ValueError):
            array.gather([[0, 1, 2]])
        with pytest.raises(TypeError):
            array.gather([[0.5, 1.0]])
        refused(errno.EINVAL, lambda: array.gather([[3, 0]]), "[3, 0]")
        with pytest.raises(ValueError):
            array.scatter([[0, 0], [1, 1]], np.zeros(3))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": (1,) * 9}, "9 dimensions"),
        ({"shape": (), "block": 2}, "without axes"),
        ({"shape": (), "distribution": [[0]]}, "without axes"),
        ({"shape": (3, -1)}, "[3, -1]"),
        ({"shape": (2.5,)}, "integers"),
        ({"shape": (1 << 40, 1 << 40)}, "64 bits"),
        ({"shape": 3, "dtype": "float16"}, "float16"),
        ({"shape": 3, "dtype": ">f8"}, ">f8"),
        ({"shape": 3, "dtype": "no type"}, "no type"),
        ({"shape": (3, 3), "block": (2,)}, "[2]"),
        ({"shape": (3, 3), "block": 0}, "[0, 0]"),
        ({"shape": (3, 3), "distribution": [[0, 2], [0]]}, "more blocks than there are processes"),
        ({"shape": (3, 3), "distribution": [[1], [0]]}, "does not begin at 0"),
        ({"shape": (3, 3), "block": 2, "distribution": [[0], [0]]}, "either"),
        ({"shape": (3, 3), "distribution": lambda: Distribution.regular([4, 4], 1)}, "(4, 4)"),
        ({"shape": (3, 3), "distribution": lambda: Distribution.regular([3, 3], 2)}, "2 processes"),
    ],
)
def test_what_makes_no_array_is_refused(world, arguments, text):
    made = {name: value() if callable(value) else value for name, value in arguments.items()}
    refused(errno.EINVAL, lambda: GlobalArray(world, **made), text)


def test_more_than_the_budget_is_refused_with_the_numbers(world):
    refused(errno.ENOMEM, lambda: GlobalArray(world, (1 << 30,)), "[1073741824]", "float64")
    GlobalArray(world, 10).close()


def test_a_closed_array_says_so(world):
    array = GlobalArray(world, (3, 4), "int64")
    array.close()
    array.close()
    assert array.closed
    assert "closed" in repr(array)
    for call in (
        lambda: array[0, 0],
        lambda: array.put(..., 0),
        lambda: array.acc(..., 1),
        lambda: array.local,
        array.sync,
        lambda: array.read_increment((0, 0)),
        lambda: array.gather([[0, 0]]),
        lambda: am.fill(array, 0),
    ):
        refused(errno.EBADF, call, "closed")


# ---- node arrays ----


def test_a_node_array_is_a_numpy_array(world):
    used = world.budget.used_bytes
    with NodeArray(world, (100, 50), "complex128") as array:
        assert (array.shape, array.ndim, array.nbytes) == ((100, 50), 2, 80000)
        view = array.view
        assert view.shape == (100, 50)
        assert view.dtype == np.complex128
        assert not view.any()
        view[3, :] = 1j
        array.barrier()
        assert array.view[3, 49] == 1j
        assert world.budget.used_bytes - used >= 80000
    assert world.budget.used_bytes == used


def test_the_view_of_a_node_array_keeps_it_alive(world):
    view = NodeArray(world, 1000).view
    gc.collect()
    view[...] = 1
    assert view.sum() == 1000


def test_wrong_node_arrays_are_refused(world):
    refused(errno.EINVAL, lambda: NodeArray(world, (3, -1)), "[3, -1]")
    refused(errno.EINVAL, lambda: NodeArray(world, 3, "float16"), "float16")
    refused(errno.ENOMEM, lambda: NodeArray(world, 1 << 40), "node array")
    array = NodeArray(world, 3)
    array.close()
    refused(errno.EBADF, lambda: array.view, "closed")
    refused(errno.EBADF, array.barrier, "closed")
