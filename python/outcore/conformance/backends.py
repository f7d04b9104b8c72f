"""Tests that every place of an extended array must pass. All processes of a world call each check:
`check(world, make)`, where `make(layout, dtype)` collectively makes an array of zeros in the place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.job.world import World
from outcore.tensor.arrays.array import Array
from outcore.tensor.layout.layout import Layout, Tile
from outcore.tensor.layout.sparsity import Labels
from outcore.tensor.layout.tiling import Tiling

Values = np.ndarray[Any, np.dtype[Any]]
Make = Callable[[Layout, str], Array]
"""Makes an array of zeros from a layout and an element type."""

DTYPES = ("float32", "float64", "complex64", "complex128")
O = Tiling(7, [0, 3, 4, 7], irreps=[0, 1, 0])  # noqa: E741
V = Tiling(5, [0, 1, 5], irreps=[1, 0])
LAYOUTS = {
    "dense": Layout([O, V]),
    "one tile": Layout([6]),
    "labels": Layout([O, O, V], Labels()),
    "antisymmetric": Layout([O, O, V, V], None, "antisymmetric(0,1) antisymmetric(2,3)"),
    "pair": Layout([O, O, V, V], Labels(), "pair"),
    "nothing": Layout([O, V], np.zeros((3, 2), bool)),
}
PUTS = ("dense", "labels", "antisymmetric", "pair", "nothing", "one tile")


def reference(layout: Layout, dtype: str, seed: int = 1) -> Values:
    """A whole array that the layout can hold."""
    random = np.random.default_rng(seed)
    array = random.normal(size=layout.shape)
    if np.dtype(dtype).kind == "c":
        array = array + 1j * random.normal(size=layout.shape)
    permuted = [sign * np.transpose(array, p) for p, sign in layout.symmetry.elements.items()]
    total: Values = np.sum(permuted, axis=0)
    for tile in np.ndindex(*layout.grid):
        if not layout.there[tile]:
            total[layout.box(tile)] = 0
    return np.ascontiguousarray(total, dtype)


def tile_of(whole: Values, layout: Layout, tile: tuple[int, ...]) -> Values:
    return np.ascontiguousarray(whole[layout.box(tile)])


def put_all(array: Array, whole: Values) -> None:
    """Each process puts its own tiles."""
    requests = [array.put_tile_async(tile, tile_of(whole, array.layout, tile)) for tile in array.own_tiles()]
    for request in requests:
        request.wait()
    array.sync()


def check_zero_at_first(world: World, make: Make) -> None:
    for layout in LAYOUTS.values():
        with make(layout, "float64") as array:
            assert not array.to_numpy().any()


def check_what_was_put_is_got(world: World, make: Make) -> None:
    for name in PUTS:
        for dtype in DTYPES:
            layout = LAYOUTS[name]
            whole = reference(layout, dtype)
            with make(layout, dtype) as array:
                put_all(array, whole)
                for tile in np.ndindex(*layout.grid):
                    found = array.get_tile(tile)
                    assert found.dtype == whole.dtype
                    assert np.allclose(found, tile_of(whole, layout, tile), atol=1e-6, rtol=1e-6)
                    if tile in layout.numbers:
                        assert np.array_equal(found, tile_of(whole, layout, tile))
                array.sync()


def check_tiles_arrive_in_memory_that_is_given(world: World, make: Make) -> None:
    layout = LAYOUTS["antisymmetric"]
    whole = reference(layout, "float64")
    with make(layout, "float64") as array:
        put_all(array, whole)
        tiles = list(np.ndindex(*layout.grid))
        places = [np.full(layout.tile_shape(tile), np.nan) for tile in tiles]
        requests = [array.get_tile_async(tile, out) for tile, out in zip(tiles, places, strict=True)]
        for tile, out, request in zip(tiles, places, requests, strict=True):
            assert request.wait() is out
            assert np.allclose(out, tile_of(whole, layout, tile))
        with pytest.raises(ValueError, match="no contiguous"):
            array.get_tile((0, 0, 0, 0), np.empty((3, 3, 1, 2)))
        with pytest.raises(TypeError, match="elements of type"):
            array.get_tile((0, 0, 0, 0), np.empty((3, 3, 1, 1), "float32"))
        array.sync()


def check_accumulates_add_up(world: World, make: Make) -> None:
    """All processes accumulate, each in several threads."""
    for dtype in DTYPES:
        layout = LAYOUTS["labels"]
        ones = {tile: np.ones(layout.tile_shape(tile), dtype) for tile in layout.stored}
        errors: list[BaseException] = []
        with make(layout, dtype) as array:

            def add(
                array: Array = array, ones: dict[Tile, Values] = ones, errors: list[BaseException] = errors
            ) -> None:
                try:
                    for _ in range(5):
                        for tile, one in ones.items():
                            array.acc_tile(tile, one, alpha=2.0)
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=add) for _ in range(3)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert not errors
            array.sync()
            expected = 2 * 5 * 3 * world.size
            for tile in layout.stored:
                assert (array.get_tile(tile) == expected).all()
            array.sync()


def check_what_is_got_cannot_change_what_is_there(world: World, make: Make) -> None:
    layout = LAYOUTS["dense"]
    with make(layout, "float64") as array:
        put_all(array, reference(layout, "float64"))
        for tile in layout.stored:
            found = array.get_tile(tile)
            if found.flags.writeable:
                found[...] = 7.0  # so it must be a copy
                assert not (array.get_tile(tile) == 7.0).any()
        array.sync()


def check_each_tile_is_one_process_s(world: World, make: Make) -> None:
    for layout in LAYOUTS.values():
        with make(layout, "float64") as array:
            own = array.own_tiles()
            assert sorted(tile for each in world.gather(own) for tile in each) == layout.stored
            for tile in own:
                assert array.owner(tile) in (None, world.rank)


def check_tiles_that_cannot_be_put_are_refused(world: World, make: Make) -> None:
    layout = LAYOUTS["antisymmetric"]
    with make(layout, "float64") as array:
        with pytest.raises(OutcoreError, match=r"tile \(0, 1, 0, 0\) is stored in its place"):
            array.put_tile((1, 0, 0, 0), 0.0)
        with pytest.raises(IndexError, match="none of"):
            array.put_tile((3, 0, 0, 0), 0.0)
        with pytest.raises(TypeError, match="elements of type"):
            array.put_tile((0, 1, 0, 1), np.zeros((3, 1, 1, 4), "float32"))
        with pytest.raises(ValueError, match="shape"):
            array.put_tile((0, 1, 0, 1), np.zeros((3, 2, 1, 4)))
    with (
        make(LAYOUTS["labels"], "float64") as array,
        pytest.raises(OutcoreError, match="zero in this layout"),
    ):
        array.acc_tile((0, 1, 1), 1.0)


def check_what_has_not_the_symmetry_is_found(world: World, make: Make) -> None:
    layout = LAYOUTS["antisymmetric"]
    with make(layout, "float64") as array:
        put_all(array, reference(layout, "float64"))
        array.check_symmetry()
        array.sync()
        if world.rank == 0:
            array.put_tile((0, 0, 0, 1), 1.0)
        with pytest.raises(OutcoreError, match=r"take tile \(0, 0, 0, 1\).* differs by 2"):
            array.check_symmetry()


def check_no_numbers_and_infinities_pass(world: World, make: Make) -> None:
    layout = LAYOUTS["pair"]
    whole = reference(layout, "float64")
    for place, value in (((0, 0, 1, 1), np.nan), ((0, 1, 2, 3), np.inf)):
        whole[place] = value
        i, j, a, b = place
        whole[j, i, b, a] = value
    with make(layout, "float64") as array:
        put_all(array, whole)
        assert np.array_equal(array.to_numpy(), whole, equal_nan=True)
        array.sync()


def check_it_moves_everywhere(world: World, make: Make) -> None:
    layout = LAYOUTS["antisymmetric"]
    whole = reference(layout, "complex128")
    with make(layout, "complex128") as array:
        put_all(array, whole)
        for where in ("disk", "global", "node", "process", "disk", "node", "global"):
            assert array.move(where) is array
            assert array.where == where
            assert np.allclose(array.to_numpy(), whole)


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]


def make_at(world: World, where: str) -> Make:
    """The `make` of a place that Array knows by name."""
    return lambda layout, dtype: Array(world, layout, dtype, where)
