"""Layouts: stored tiles, and the sources of the others, against whole arrays of NumPy."""

import math
import pickle

import numpy as np
import pytest

from outcore import Labels, Layout, Tiling

OCC = Tiling(5, [0, 2, 3, 5])
VIR = Tiling(4, [0, 3, 4])
SYMMETRIES = [
    None,
    "pair",
    "antisymmetric(0,1)",
    "symmetric(2,3)",
    "antisymmetric(0,1) antisymmetric(2,3)",
    "symmetric(0,1) symmetric(2,3) pair",
]


def with_symmetry(layout, seed=1):
    array = np.random.default_rng(seed).normal(size=layout.shape)
    total = sum(sign * np.transpose(array, p) for p, sign in layout.symmetry.elements.items())
    for tile in np.ndindex(*layout.grid):
        if not layout.there[tile]:
            total[layout.box(tile)] = 0
    return total


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_every_tile_is_made_of_a_stored_one(symmetry):
    layout = Layout([OCC, OCC, VIR, VIR], None, symmetry)
    array = with_symmetry(layout)
    for tile in np.ndindex(*layout.grid):
        stored, axes, sign = layout.canonical(tile)
        assert stored in layout.numbers
        assert np.allclose(array[layout.box(tile)], sign * np.transpose(array[layout.box(stored)], axes))
        assert (stored == tile) == (tile in layout.numbers)


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_images_of_stored_tiles_are_all_tiles_once(symmetry):
    layout = Layout([OCC, OCC, VIR, VIR], None, symmetry)
    array = with_symmetry(layout)
    seen = []
    for tile in layout.stored:
        images = list(layout.images(tile))
        assert images[0][0] == tile
        for image, axes, sign in images:
            seen.append(image)
            assert np.allclose(array[layout.box(image)], sign * np.transpose(array[layout.box(tile)], axes))
    assert sorted(seen) == sorted(np.ndindex(*layout.grid))


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_tiles_have_the_symmetry_that_maps_them_to_themselves(symmetry):
    layout = Layout([OCC, OCC, VIR, VIR], None, symmetry)
    array = with_symmetry(layout)
    found = 0
    for tile in layout.stored:
        block = array[layout.box(tile)]
        for permutation, sign in layout.own_symmetry(tile):
            assert np.allclose(np.transpose(block, permutation), sign * block)
            found += 1
    assert (found > 0) == (symmetry is not None)


def test_symmetry_saves_room():
    dense = Layout([OCC, OCC, VIR, VIR])
    assert (dense.elements, dense.size, dense.is_dense) == (400, 400, True)
    packed = Layout([OCC, OCC, VIR, VIR], None, "antisymmetric(0,1) antisymmetric(2,3)")
    assert packed.elements == sum(math.prod(packed.tile_shape(tile)) for tile in packed.stored) < 250
    assert not packed.is_dense


def test_labels_say_which_tiles_are_there():
    axis = Tiling(8, tile=2, irreps=[0, 1, 2, 3], spins=[1, -1, 1, -1])
    layout = Layout([axis, axis], Labels(irrep=2))
    assert layout.stored == [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert Layout([axis, axis], Labels(irrep=None, spin=0)).stored == [
        (i, j) for i in range(4) for j in range(4) if i % 2 == j % 2
    ]
    assert Layout([axis, axis], Labels(irrep=None, spin=2, signs=(1, 1))).stored == [
        (0, 0), (0, 2), (2, 0), (2, 2)
    ]  # fmt: skip
    assert Layout([axis], Labels(irrep=0, spin=1)).stored == [(0,)]


def test_a_map_or_a_list_of_tiles_does_as_well():
    flags = np.array([[True, False], [False, True], [True, True]])
    by_map, by_list = Layout([OCC, VIR], flags), Layout([OCC, VIR], [(0, 0), (1, 1), (2, 0), (2, 1)])
    assert by_map == by_list
    assert by_map.stored == [(0, 0), (1, 1), (2, 0), (2, 1)]
    assert by_map.canonical((0, 1))[0] is None
    assert by_map.offsets.tolist() == [0, 6, 7, 13, 15]
    assert by_map.largest == 6


def test_tiles_of_a_box():
    assert list(Layout([OCC, VIR]).tiles_of((1, 0), (3, 3))) == [(0, 0), (1, 0)]


def test_that_of_a_transposed_tensor():
    layout = Layout([OCC, OCC, VIR, VIR], Labels(), "antisymmetric(0,1)")
    turned = layout.permuted((2, 0, 3, 1))
    assert turned.shape == (4, 5, 4, 5)
    array = with_symmetry(layout).transpose(2, 0, 3, 1)
    for p, sign in turned.symmetry.elements.items():
        assert np.allclose(np.transpose(array, p), sign * array)


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_it_survives_writing_down_and_pickling(symmetry):
    flags = np.ones((3, 3, 2, 2), bool)
    flags[1, 1, 0, 0] = False
    layout = Layout([OCC, OCC, VIR, VIR], flags, symmetry)
    assert layout.stored  # which is kept for later
    assert Layout.from_json(layout.as_json()) == layout == pickle.loads(pickle.dumps(layout))
    assert layout != Layout([OCC, OCC, VIR, VIR], None, symmetry)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="tilings differ"):
        Layout([OCC, VIR], None, "symmetric(0,1)")
    with pytest.raises(ValueError, match="only some are there"):
        Layout([OCC, OCC], [(0, 1)], "symmetric(0,1)")
    with pytest.raises(ValueError, match="there may be 8 at most"):
        Layout([1] * 9)
    with pytest.raises(ValueError, match="make them larger"):
        Layout([Tiling(5000, tile=1), Tiling(5000, tile=1)])
    with pytest.raises(ValueError, match="a map of"):
        Layout([OCC, VIR], np.ones((2, 2), bool))
    with pytest.raises(IndexError, match="none of"):
        Layout([OCC, VIR], [(3, 0)])
    with pytest.raises(ValueError, match="signs"):
        Layout([OCC, VIR], Labels(spin=0, signs=(1,)))
    with pytest.raises(IndexError, match="none of"):
        Layout([OCC, VIR]).check((0, 2))
