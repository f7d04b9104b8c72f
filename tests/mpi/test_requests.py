"""Requests of every layer in one list, on one node and with each process a node of its own."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import outcore
from outcore import wait_all, wait_any
from outcore.base.errors import OutcoreError
from outcore.parallel.requests import all_of, done, then

COUNT = 5000
NUMBERS = np.arange(1.0, COUNT + 1)


@pytest.fixture(params=["hosts", "processes"])
def world(comm, request):
    with outcore.World(nodes=request.param, memory="200MB") as world:
        yield world


class Mixture:
    """One operation of each layer, on the same numbers; each into its own array, except the last, a call."""

    def __init__(self, world):
        self.world = world
        world.register("echo", lambda _caller, header, _payload: np.frombuffer(header, np.uint8))
        self.exclusive = outcore.ExclusiveFile("mixture")
        self.shared = outcore.SharedFile(world, "shared")
        self.records = outcore.RecordFile(world, "records", 8)
        self.in_memory = outcore.GlobalArray(world, (COUNT,))
        self.on_disk = outcore.DiskArray(world, (COUNT,))
        self.sparse = outcore.BlockSparseArray(world, [[0, COUNT]], [(0,)])
        self.exclusive.write(NUMBERS)
        if world.rank == 0:
            self.shared.write(NUMBERS)
            self.records.put(3, NUMBERS)
            self.in_memory.put(..., NUMBERS)
            self.on_disk.put(..., NUMBERS)
            self.sparse.put_tile((0,), NUMBERS)
        self.in_memory.sync()
        for each in (self.on_disk, self.sparse):
            each.sync()
        world.barrier()
        self.into = np.zeros((5, COUNT))

    def begin(self):
        return [
            self.exclusive.read_async(self.into[0]),
            self.shared.read_async(self.into[1]),
            self.records.get_into_async(3, self.into[2]),
            self.in_memory.get_async(np.s_[:], out=self.into[3]),
            self.on_disk.get_async(np.s_[:]),
            self.sparse.get_tile_async((0,)),
            self.on_disk.read_all_async(self.into[4]),
            self.world.call(self.world.size - 1, "echo", b"here"),
        ]

    def check(self, brought):
        assert np.array_equal(self.into, np.broadcast_to(NUMBERS, (5, COUNT)))
        assert brought[:3] == [8 * COUNT] * 3
        assert all(np.array_equal(each, NUMBERS) for each in brought[3:6])
        assert brought[6] is None
        assert bytes(brought[7]) == b"here"

    def close(self):
        for each in (self.shared, self.records, self.in_memory, self.on_disk, self.sparse):
            each.close()
        self.exclusive.delete()


@pytest.fixture
def mixture(world):
    mixture = Mixture(world)
    yield mixture
    mixture.close()


def test_wait_all_waits_for_every_kind(mixture):
    requests = mixture.begin()
    assert all(isinstance(each, outcore.Request) for each in requests)
    wait_all(requests)
    mixture.check([each.wait() for each in requests])


def test_wait_any_gives_one_after_the_other(mixture):
    requests = mixture.begin()
    left, brought = dict(enumerate(requests)), {}
    while left:
        key = list(left)[wait_any(list(left.values()))]
        assert left[key].done
        brought[key] = left.pop(key).wait()
    mixture.check([brought[key] for key in range(len(requests))])


def test_test_ends_each_kind(mixture):
    requests = mixture.begin()
    for each in requests:
        while not each.test():
            time.sleep(0.001)  # more processes than cores: the others have to come to it
    mixture.check([each.wait() for each in requests])


def test_a_request_that_goes_before_its_operation_is_done_keeps_the_memory(mixture):
    for _ in range(5):
        mixture.begin()
        gc.collect()
    wait_all(requests := mixture.begin())
    mixture.check([each.wait() for each in requests])


def test_the_error_is_raised_by_each_wait_and_by_wait_all(world):
    def fails(_caller, _header, _payload):
        raise OutcoreError(5, "serve", detail="on purpose")

    world.register("fails", fails)
    world.register("well", lambda _caller, _header, _payload: None)
    requests = [world.call(0, name) for name in ("well", "fails", "well")]
    for _ in range(2):
        with pytest.raises(OutcoreError, match="on purpose"):
            wait_all(requests)
        with pytest.raises(OutcoreError, match="on purpose"):
            requests[1].wait()
    assert all(each.done for each in requests)
    world.barrier()


# ---- tiles of extended arrays, which bring requests of their own


PLACES = ("process", "node", "global", "disk")
EDGES = outcore.Tiling(6, [0, 3, 6])
MATRIX = sum((each := np.random.default_rng(1).random((6, 6)), each.T))


@pytest.fixture
def extended(world):
    """A symmetric matrix in each place where tiles lie, and one that a function makes."""
    layout = outcore.Layout([EDGES, EDGES], symmetry="symmetric(0,1)")
    arrays = {where: outcore.Array.from_numpy(world, MATRIX, layout, where) for where in PLACES}
    arrays["generated"] = outcore.Array.generated(world, layout, lambda box: MATRIX[box])
    yield arrays
    for array in arrays.values():
        array.close()


def test_tiles_of_every_place_go_into_lists_with_all_else(mixture, extended):
    def begin():
        tiles = [array.get_tile_async(tile) for array in extended.values() for tile in ((0, 1), (1, 0))]
        return tiles, mixture.begin()

    tiles, others = begin()
    wait_all([*tiles, *others, done()])
    assert all(each.done and each.test() and isinstance(each, outcore.Request) for each in (*tiles, *others))
    mixture.check([each.wait() for each in others])
    tiles, others = begin()
    left = [all_of(others), *(then(tile, np.array) for tile in tiles)]
    brought = {}
    while left:
        request = left.pop(wait_any(left))
        brought[request] = request.wait()
    *matrices, rest = sorted(brought.values(), key=lambda each: isinstance(each, list))
    mixture.check(rest)
    assert len(matrices) == 10
    assert sum(np.array_equal(each, MATRIX[:3, 3:]) for each in matrices) == 5
    assert sum(np.array_equal(each, MATRIX[3:, :3]) for each in matrices) == 5


@pytest.mark.parametrize("where", ["global", "disk"])
def test_a_put_of_a_tile_goes_into_lists(world, extended, where):
    array = extended[where]
    value = np.full((3, 3), 7.0)
    own = [tile for tile in array.own_tiles() if tile == (0, 1)]
    requests = [array.put_tile_async(tile, value) for tile in own] + [done()]
    wait_any(requests)
    wait_all(requests)
    wait_all([array.acc_tile_async(tile, value) for tile in own])
    array.sync()
    assert np.array_equal(array.get_tile((0, 1)), 2 * value)


def test_wait_any_of_nothing_is_refused():
    with pytest.raises(OutcoreError, match="no requests"):
        wait_any([])
