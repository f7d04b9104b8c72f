"""Memory of a block-sparse array for each tile is accounted to the budget, or computed on demand."""

import errno

import numpy as np
import pytest

import outcore
from outcore import BlockSparseArray, OutcoreError


def make(world, tiles, **options):
    axis = list(range(tiles + 1))
    return BlockSparseArray(world, [axis], np.ones(tiles, bool), **options)


def test_the_map_of_tiles_is_accounted_while_the_array_lives(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as world:
        make(world, 1).close()  # after which the world has the services of all disk arrays
        before = world.budget.used_bytes
        array = make(world, 100_000, path=tmp_path / "b", cache_bytes="1MB")
        held = world.budget.used_bytes - before
        assert held >= 16 * 100_000
        assert len(array.tiles) == 100_000
        array.close()
        del array
        assert world.budget.used_bytes == before
        array = BlockSparseArray.open(world, tmp_path / "b", cache_bytes="1MB")
        assert world.budget.used_bytes - before >= 16 * 100_000
        array.close()
        del array
        assert world.budget.used_bytes == before


def test_a_map_that_does_not_fit_is_refused(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="11MB") as world:
        make(world, 1).close()
        used = world.budget.used_bytes
        with pytest.raises(OutcoreError, match="map of tiles") as caught:
            make(world, 200_000, cache_bytes="1MB")
        assert caught.value.errno == errno.ENOMEM
        assert world.budget.used_bytes == used
