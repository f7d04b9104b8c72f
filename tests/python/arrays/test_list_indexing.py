"""Lists, masks and new axes between the brackets of arrays: NumPy's answer, or an IndexError."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import outcore
from outcore import DiskArray, GlobalArray, OutcoreError

SHAPE = (5, 6, 4)
DATA = np.arange(120, dtype="float64").reshape(SHAPE)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    with (
        outcore.World("self", scratch=tmp_path_factory.mktemp("scratch"), memory="100MB") as world,
        DiskArray(world, SHAPE, chunk=(2, 3, 4)) as disk,
        GlobalArray(world, SHAPE) as memory,
    ):
        yield disk, memory


def numbers(extent: int) -> st.SearchStrategy:
    return st.lists(st.integers(-extent, extent - 1), max_size=7)


def entry(extent: int) -> st.SearchStrategy:
    edge = st.none() | st.integers(-extent - 1, extent + 1)
    step = st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3])
    return st.integers(-extent, extent - 1) | st.builds(slice, edge, edge, step)


@st.composite
def indices(draw, lists: bool = True):
    entries = [draw(entry(extent)) for extent in SHAPE]
    if lists:
        axis = draw(st.integers(0, 2))
        kind = draw(st.sampled_from(["list", "array", "mask", "grid"]))
        chosen = draw(numbers(SHAPE[axis]))
        entries[axis] = {
            "list": lambda: chosen,
            "array": lambda: np.array(chosen, int),
            "mask": lambda: np.array(
                draw(st.lists(st.booleans(), min_size=SHAPE[axis], max_size=SHAPE[axis]))
            ),
            "grid": lambda: np.array(chosen[: len(chosen) // 2 * 2], int).reshape(2, -1),
        }[kind]()
    entries = entries[: draw(st.integers(1, 3))]
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), ...)
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    return tuple(entries)


def two_meanings(index) -> bool:
    """NumPy treats an integer as a list of one; with another index between the two axes its answer differs
    from that of h5py."""
    places = [i for i, e in enumerate(index) if isinstance(e, int | list | np.ndarray)]
    has_list = any(isinstance(e, list | np.ndarray) for e in index)
    return has_list and len(places) > 1 and places[-1] - places[0] >= len(places)


@pytest.mark.parametrize("which", [0, 1], ids=["disk", "global"])
@settings(max_examples=150, deadline=None)
@given(index=indices() | indices(lists=False))
def test_get_gives_what_numpy_gives(arrays, which, index):
    array = arrays[which]
    array[...] = DATA
    try:
        expected = DATA[index]
    except IndexError:  # a mask that an Ellipsis has moved to another axis
        expected = None
    if two_meanings(index) or expected is None:
        with pytest.raises(IndexError):
            array[index]
        return
    found = array[index]
    assert np.shape(found) == expected.shape
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("which", [0, 1], ids=["disk", "global"])
@settings(max_examples=150, deadline=None)
@given(index=indices(), scalar=st.booleans())
def test_put_leaves_what_numpy_leaves(arrays, which, index, scalar):
    array = arrays[which]
    array[...] = DATA
    try:
        DATA[index]
    except IndexError:
        return
    if two_meanings(index):
        with pytest.raises(IndexError, match="two steps"):
            array[index] = 0.0
        return
    expected = DATA.copy()
    value = (
        -7.0 if scalar else -1.0 - np.arange(expected[index].size, dtype=float).reshape(expected[index].shape)
    )
    expected[index] = value
    array[index] = value
    assert np.array_equal(array[...], expected)


@pytest.mark.parametrize("which", [0, 1], ids=["disk", "global"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 30), share=st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0]))
def test_mask_of_the_whole(arrays, which, seed, share):
    array = arrays[which]
    array[...] = DATA
    random = np.random.default_rng(seed)
    mask = random.random(SHAPE) < share
    assert np.array_equal(array[mask], DATA[mask])
    expected = DATA.copy()
    expected[mask] = random.random(np.count_nonzero(mask))
    array[mask] = expected[mask]
    assert np.array_equal(array[...], expected)
    expected[mask] = 3.0
    array[mask] = 3.0
    assert np.array_equal(array[...], expected)


def test_mask_is_read_in_pieces(arrays, monkeypatch):
    monkeypatch.setattr(outcore.arrays.list_indexing, "_PIECE_BYTES", 200)
    arrays[0][...] = DATA
    mask = DATA % 7 == 0
    assert np.array_equal(arrays[0][mask], DATA[mask])


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (([0, 1], [0, 1]), "2 lists"),
        (([0, 5],), "index 5 is out of bounds for axis 0 with size 5"),
        ((slice(None), [-7]), "index -7 is out of bounds for axis 1"),
        (([0.5],), "list of float64"),
        ((["a"],), "list of"),
        (([True, False],), r"mask of shape \(2,\) for axis 0 with size 5"),
        ((np.ones((5, 6), bool),), r"mask of shape \(5, 6\)"),
        (([0], ..., [1], ...), "2 lists"),
        ((..., None, ...), "more than one Ellipsis"),
        ((0, 0, 0, [0]), "4 indices"),
        ((True,), "booleans"),
        (("x",), "str on axis 0"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(arrays, index, text):
    for array in arrays:
        with pytest.raises(IndexError, match=text):
            array[index]
        with pytest.raises(IndexError, match=text):
            array[index] = 0.0


def test_boxes_of_methods_have_no_lists(arrays):
    for array in arrays:
        with pytest.raises(IndexError, match="brackets"):
            array.get(np.s_[[0, 1]])
        with pytest.raises(IndexError, match="brackets"):
            array.put(np.s_[None], DATA)


def test_elements_of_another_type_are_refused(arrays):
    for array in arrays:
        with pytest.raises(TypeError, match="float32"):
            array[[0, 1]] = np.ones((2, 6, 4), "float32")
        with pytest.raises(ValueError, match="broadcast"):
            array[[0, 1]] = np.ones((3, 6, 4))


def test_asarray_is_a_copy_of_all(arrays):
    for array in arrays:
        array[...] = DATA
        assert np.array_equal(np.asarray(array), DATA)
        assert np.asarray(array, "float32").dtype == "float32"
        assert np.sum(array) == DATA.sum()
        used = array.world.budget.used_bytes
        np.asarray(array)
        assert array.world.budget.used_bytes == used


def test_asarray_of_what_is_larger_than_the_budget_is_refused(tmp_path):
    with (
        outcore.World("self", scratch=tmp_path, memory="10MB") as world,
        DiskArray(world, (2000, 1000), cache_bytes="1MB") as disk,
    ):
        with pytest.raises(OutcoreError, match=r"all of <outcore.DiskArray \(2000, 1000\).*sections"):
            np.asarray(disk)
        assert disk.chunks == disk.chunk


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="copy=False means another thing")
def test_array_that_must_not_be_copied_is_refused(arrays):
    with pytest.raises(ValueError, match="only a copy"):
        np.array(arrays[0], copy=False)
