"""Every place of an extended array passes the conformance suite, at one process."""

from contextlib import closing

import pytest

import outcore
from outcore.conformance import backends
from outcore.tensor.layout.layout import Layout
from outcore.tensor.layout.tiling import Tiling


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


@pytest.mark.parametrize("where", ["auto", "process", "node", "global", "disk"])
@pytest.mark.parametrize("check", backends.CHECKS, ids=lambda each: each.__name__)
def test_conformance(world, where, check):
    check(world, backends.make_at(world, where))


def test_shapes_of_tiles_are_known_without_them(world):
    layout = Layout((Tiling(5, tile=2), Tiling(3)))
    with closing(outcore.Array(world, layout, where="process")) as array:
        tiles = [(n, 0) for n in range(len(layout.tilings[0]))]
        assert [array.tile_shape(each) for each in tiles] == [array.get_tile(each).shape for each in tiles]
        assert sum(array.tile_shape(each)[0] for each in tiles) == 5
        with pytest.raises(IndexError):
            array.tile_shape((len(tiles), 0))
