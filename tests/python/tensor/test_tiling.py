"""Tilings are values, and refuse boundaries that cut no axis."""

import pickle

import pytest

from outcore import Space, Tiling


def test_tiles_are_cut_at_boundaries():
    axis = Tiling(10, [0, 3, 4, 10])
    assert (axis.size, len(axis), axis.sizes) == (10, 3, (3, 1, 6))
    assert list(axis.slices()) == [slice(0, 3), slice(3, 4), slice(4, 10)]


@pytest.mark.parametrize(("size", "tile", "sizes"), [(10, 4, (3, 3, 4)), (8, 4, (4, 4)), (3, 9, (3,))])
def test_tiles_of_a_given_size_are_nearly_equal(size, tile, sizes):
    assert Tiling(size, tile=tile).sizes == sizes


def test_one_tile_without_cuts():
    assert Tiling(7).cuts == (0, 7)


@pytest.mark.parametrize(
    ("begin", "end", "tiles"),
    [(0, 10, [0, 1, 2]), (3, 4, [1]), (2, 4, [0, 1]), (4, 5, [2]), (5, 5, []), (0, 1, [0])],
)
def test_tiles_that_overlap_a_range(begin, end, tiles):
    assert list(Tiling(10, [0, 3, 4, 10]).overlapping(begin, end)) == tiles


def test_equal_cuts_and_labels_are_equal_whatever_the_name():
    one = Tiling(4, tile=2, irreps=[0, 3], spins=[1, -1], name="o")
    assert one == Tiling(4, [0, 2, 4], irreps=[0, 3], spins=[1, -1])
    assert hash(one) == hash(Tiling(4, [0, 2, 4], irreps=[0, 3], spins=[1, -1]))
    assert one != Tiling(4, tile=2, irreps=[0, 3])
    assert one != Tiling(4, tile=2)
    assert one != Tiling(4)


def test_a_space_is_a_named_tiling():
    o = Space("o", [20, 20, 13], irreps=[0, 3, 5])
    assert (o.name, o.cuts, o.irreps) == ("o", (0, 20, 40, 53), (0, 3, 5))
    assert Space("v", 9, tile=5).cuts == (0, 4, 9)


def test_it_survives_writing_down_and_pickling():
    axis = Tiling(5, [0, 1, 5], irreps=[1, 0], spins=[-1, 1], name="v")
    for copy in (Tiling.from_json(axis.as_json()), pickle.loads(pickle.dumps(axis))):
        assert copy == axis
        assert copy.name == "v"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((-1,), {}, "size is -1"),
        ((4, [0, 2, 2, 4]), {}, "do not rise"),
        ((4, [0, 2]), {}, "do not go from 0 to 4"),
        ((4, [1, 4]), {}, "do not go from 0 to 4"),
        ((4,), {"tile": 0}, "tiles of 0"),
        ((4,), {"tile": 2, "irreps": [0]}, "1 labels of 2 tiles"),
        ((4,), {"tile": 2, "irreps": [0, 8]}, "0..7"),
        ((4,), {"tile": 2, "spins": [0, 2]}, "-1..1"),
    ],
)
def test_what_cuts_no_axis_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        Tiling(*arguments, **options)


def test_cuts_and_a_size_of_tiles_exclude_one_another():
    with pytest.raises(TypeError, match="either cuts or tile"):
        Tiling(4, [0, 4], tile=2)
