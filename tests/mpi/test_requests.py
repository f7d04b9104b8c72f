"""Requests of every layer in one list, on one node and with each process a node of its own."""

from __future__ import annotations

import gc
import tempfile
import time

import numpy as np
import pytest

import outcore
from outcore import _core, wait_all, wait_any
from outcore.base.errors import OutcoreError
from outcore.extend import Backend, add_backend
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


# ---- changes: each process changes its own parts, of every kind of file and array


class Rows(Backend):
    """A back-end that a user adds: each tile is a row of a disk array."""

    planned_as = "disk"

    def __init__(self, world, layout, dtype):
        super().__init__(world, layout, dtype)
        self._array = outcore.DiskArray(world, (len(layout.stored), layout.largest), dtype)

    def _row(self, number):
        return np.s_[number : number + 1, : int(self.layout.sizes[number])]

    def get_async(self, number, out=None):
        shape = self.layout.tile_shape(self.layout.stored[number])

        def finish(row):
            if out is None:
                return row.reshape(shape)
            out[...] = row.reshape(shape)
            return out

        return then(self._array.get_async(self._row(number)), finish)

    def put_async(self, number, value):
        return self._array.put_async(self._row(number), np.array(value).reshape(1, -1))

    def acc_async(self, number, value, alpha=1):
        return self._array.acc_async(self._row(number), np.array(value).reshape(1, -1), alpha)

    def sync(self):
        self._array.sync()

    def close(self):
        self._array.close()


class Changes:
    """Operations that change files and arrays: puts into row `rank` of each, accumulates into row `size + rank`."""

    def __init__(self, world):
        self.world, self.rank, self.size = world, world.rank, world.size
        rows = 2 * world.size
        self._directory = tempfile.TemporaryDirectory()
        self.plain = _core.File(f"{self._directory.name}/plain")
        self.exclusive = outcore.ExclusiveFile("changes")
        self.shared = outcore.SharedFile(world, "changed")
        self.records = outcore.RecordFile(world, "changed records", rows)
        self.in_memory = outcore.GlobalArray(world, (rows, COUNT))
        self.on_disk = outcore.DiskArray(world, (rows, COUNT))
        self.together = outcore.DiskArray(world, (world.size, COUNT))
        self.sparse = outcore.BlockSparseArray(
            world, [range(rows + 1), [0, COUNT]], [(n, 0) for n in range(rows)]
        )
        add_backend("rows", Rows)
        axes = outcore.Tiling(rows, tile=1), outcore.Tiling(COUNT)
        self.added = outcore.Array(world, axes, where="rows")

    @property
    def arrays(self):
        return self.in_memory, self.on_disk, self.together, self.sparse, self.added

    def begin(self):
        put, acc, row = self.rank, self.size + self.rank, 8 * COUNT * self.rank
        half, second = COUNT // 2, row + 8 * COUNT * self.size
        parts = [(second, NUMBERS[:half]), (second + 8 * half, NUMBERS[half:])]
        one, other = (np.s_[n : n + 1] for n in (put, acc))
        return [
            self.together.write_all_async(NUMBERS[None], one),
            self.plain.write_async(NUMBERS, 0),
            self.exclusive.write_async(NUMBERS),
            self.shared.write_async(NUMBERS, row),
            self.shared.writev_async(parts),
            self.records.put_async(put, NUMBERS),
            self.in_memory.put_async(one, NUMBERS),
            self.in_memory.acc_async(other, NUMBERS, 2.0),
            self.on_disk.put_async(one, NUMBERS),
            self.on_disk.acc_async(other, NUMBERS, 2.0),
            self.sparse.put_tile_async((put, 0), NUMBERS[None]),
            self.sparse.acc_tile_async((acc, 0), NUMBERS[None], 2.0),
            self.added.put_tile_async((put, 0), NUMBERS[None]),
            self.added.acc_tile_async((acc, 0), NUMBERS[None], 2.0),
        ]

    def check(self):
        for each in self.arrays:
            each.sync()
        self.world.barrier()
        for file in (self.plain, self.exclusive):
            found = np.zeros(COUNT)
            file.read(found, 0)
            assert np.array_equal(found, NUMBERS)
        whole = np.zeros((2 * self.size, COUNT))
        ranges = [(8 * COUNT * n, whole[n]) for n in range(len(whole))]
        tiles = [self.added.get_tile_async((n, 0)) for n in range(len(whole))]
        wait_all([self.shared.readv_async(ranges), *tiles])
        assert np.array_equal(whole, np.broadcast_to(NUMBERS, whole.shape))
        other = (self.rank + 1) % self.size
        record = np.zeros(COUNT)
        self.records.get_into(other, record)
        assert np.array_equal(record, NUMBERS)
        assert np.array_equal(self.together[other], NUMBERS)
        expected = np.outer(np.repeat([1.0, 2.0], self.size), NUMBERS)
        for found in (self.in_memory[:], self.on_disk[:], np.concatenate([each.wait() for each in tiles])):
            assert np.array_equal(found, expected)
        assert all(np.array_equal(self.sparse.get_tile((n, 0)), row[None]) for n, row in enumerate(expected))

    def close(self):
        self.world.barrier()
        for each in (*self.arrays, self.shared, self.records):
            each.close()
        self.exclusive.delete()
        self.plain.close()
        self._directory.cleanup()


@pytest.fixture
def changes(world):
    changes = Changes(world)
    yield changes
    changes.close()


def one_after_another(requests):
    left = list(requests)
    while left:
        left.pop(wait_any(left)).wait()


def until_tests_say_so(requests):
    for each in requests:
        while not each.test():
            time.sleep(0.001)


@pytest.mark.parametrize("end", [wait_all, one_after_another, until_tests_say_so])
def test_changes_of_every_kind_go_into_lists(changes, mixture, end):
    requests = changes.begin()
    reads = mixture.begin()
    assert all(isinstance(each, outcore.Request) for each in requests)
    end([*requests, all_of(reads)])
    assert all(each.done for each in requests)
    mixture.check([each.wait() for each in reads])
    changes.check()


def test_wait_any_of_nothing_is_refused():
    with pytest.raises(OutcoreError, match="no requests"):
        wait_any([])
