"""Block-sparse arrays by several processes, against NumPy."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import outcore
from outcore import BlockSparseArray, DiskArray, OutcoreError

TILINGS = [[0, 3, 4, 10], [0, 5, 7], [0, 1, 8]]


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="256MB", nodes=request.param) as made:
        yield made


def some_tiles(seed=1):
    return np.random.default_rng(seed).random((3, 2, 2)) < 0.6


def test_tiles_make_up_the_array(world):
    nonzero = some_tiles()
    with BlockSparseArray(world, TILINGS, nonzero) as b:
        assert (b.shape, b.grid, b.tilings) == ((10, 7, 8), (3, 2, 2), TILINGS)
        assert b.tiles == [tuple(tile) for tile in np.argwhere(nonzero).tolist()]
        data = np.random.default_rng(2).random(b.shape)
        expected = np.zeros(b.shape)
        for tile in b.tiles:
            expected[b.box(tile)] = data[b.box(tile)]
            if tile in b.own_tiles:
                b.put_tile(tile, data[b.box(tile)])
        assert world.all_reduce(len(b.own_tiles)) == len(b.tiles)
        world.barrier()
        assert np.array_equal(b.to_numpy(), expected)
        b.prefetch(b.tiles)
        for tile in np.ndindex(b.grid):
            out = np.full(b.tile_shape(tile), -1.0)
            assert b.get_tile(tile, out) is out
            assert np.array_equal(out, expected[b.box(tile)])
            assert np.array_equal(b.get_tile_async(tile).wait(), out)
            assert (b.owner(tile) is None) == (not nonzero[tile])
        world.barrier()


def test_what_all_processes_add_adds_up(world):
    tiles = [(0, 0, 0), (2, 1, 1), (1, 0, 1)]
    with BlockSparseArray(world, TILINGS, tiles, "complex128", cache_bytes="1MB") as b:
        transfers = []
        for _ in range(20):
            for tile in tiles:
                value = np.full(b.tile_shape(tile), 1 + 2j)
                transfers.append(b.acc_tile_async(tile, value, alpha=2))
                b.acc_tile(tile, 1.0)
        for transfer in transfers[::2]:
            transfer.wait()
        b.sync()
        world.barrier()
        for tile in tiles:
            assert np.all(b.get_tile(tile) == 20 * world.size * (3 + 4j))
        world.barrier()


def test_it_opens_again(world, shared_tmp_path):
    path = shared_tmp_path / "t2"
    nonzero = some_tiles(3)
    with BlockSparseArray(world, TILINGS, nonzero, "int32", path=path, metadata={"what": "t2"}) as b:
        for k, tile in enumerate(b.tiles):
            if world.rank == k % world.size:
                b.put_tile_async(tile, np.int32(k + 1))  # close waits for it
    with BlockSparseArray.open(world, path) as b:
        assert b.metadata == {"what": "t2"}
        assert (b.tilings, b.dtype, b.read_only) == (TILINGS, np.int32, True)
        for k, tile in enumerate(b.tiles):
            assert np.all(b.get_tile(tile) == k + 1)
        with pytest.raises(OutcoreError) as caught:
            b.put_tile(b.tiles[0], np.int32(1))
        assert caught.value.errno == errno.EROFS
        world.barrier()
    DiskArray(world, 10, path=shared_tmp_path / "other").close()
    with pytest.raises(OutcoreError, match="tiles") as caught:
        BlockSparseArray.open(world, shared_tmp_path / "other")
    assert caught.value.errno == errno.EINVAL


def test_zero_tiles_cannot_be_written(world):
    with BlockSparseArray(world, TILINGS, [(0, 0, 0)]) as b:
        assert not b.get_tile((1, 1, 1)).any()
        for write in (b.put_tile, b.acc_tile, b.put_tile_async):
            with pytest.raises(OutcoreError, match=r"tile \[1, 1, 1\].*zero") as caught:
                write((1, 1, 1), 1.0)
            assert caught.value.errno == errno.EINVAL
        with pytest.raises(OutcoreError, match=r"\[3, 0, 0\]"):
            b.get_tile((3, 0, 0))
        with pytest.raises(ValueError, match="broadcast"):
            b.put_tile((0, 0, 0), np.zeros((2, 2)))
        with pytest.raises(TypeError):
            b.get_tile((0, 0, 0), np.zeros((3, 5, 1), np.float32))
        with pytest.raises(TypeError):
            b.put_tile((0, 0, 0), 1j)


@pytest.mark.parametrize(
    ("tilings", "nonzero", "message"),
    [
        ([[0, 2, 2]], [(0,)], "rise"),
        ([[1, 2]], [(0,)], "rise"),
        ([[0, 2]], [(1,)], "tile"),
        ([[0, 2]], np.zeros((2,), bool), "shape"),
        ([], [], "axes"),
        ([[0, 2.5]], [(0,)], "integers"),
    ],
)
def test_arguments_that_make_no_array_are_refused_at_all_processes(world, tilings, nonzero, message):
    last = world.rank == world.size - 1
    with pytest.raises(OutcoreError, match=message) as caught:
        BlockSparseArray(world, tilings if last else [[0, 2]], nonzero if last else [(0,)])
    assert caught.value.errno == errno.EINVAL
