"""Noncollective access to disk arrays by several processes, against NumPy."""

from __future__ import annotations

import errno
import os
import subprocess
import time

import numpy as np
import pytest

import outcore
from outcore import DiskArray, GlobalArray, OutcoreError


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="256MB", nodes=request.param) as made:
        yield made


def random_index(random, shape, steps=True):
    """Slices of all kinds, integers among them."""
    index = []
    for extent in shape:
        begin = int(random.integers(0, extent))
        end = int(random.integers(begin, extent + 1))
        kind = random.integers(0, 5) if steps else 1
        if kind == 0:
            index.append(begin)
        elif kind == 1:
            index.append(slice(begin, end))
        elif kind == 2:
            index.append(slice(begin, end, int(random.integers(1, 5))))
        elif kind == 3:
            index.append(slice(None, None, -int(random.integers(1, 4))))
        else:
            index.append(slice(None))
    return tuple(index)


def test_any_process_gets_and_puts_what_it_indexes(world):
    random = np.random.default_rng(1)
    for seed in range(8):
        shape = tuple(int(n) for n in random.integers(1, 30, size=1 + seed % 3))
        dtype = ["float64", "int32", "complex128", "int8"][seed % 4]
        with DiskArray(world, shape, dtype, chunk=[max(1, n // 3) for n in shape]) as d:
            model = (random.random(shape) * 100).astype(dtype)
            if world.rank == seed % world.size:
                d[...] = model
            world.barrier()
            for _ in range(10):
                index = random_index(random, shape)
                got = d[index]
                assert np.array_equal(got, model[index])
                assert np.shape(got) == np.shape(model[index])
            world.barrier()
            for turn in range(4):
                index = random_index(random, shape)
                value = (random.random(model[index].shape) * 100).astype(dtype)
                model[index] = value
                if world.rank == turn % world.size:
                    d[index] = value
                world.barrier()
            assert np.array_equal(d[...], model)
            world.barrier()


OWN = 16  # columns of each process in the next test


def deeds(random, rank, shape, shared):
    """The calls of a process in a round: it puts into half of its own columns, gets from the others, and
    accumulates anywhere from the column `shared` on."""
    columns = OWN * rank + random.permutation(OWN)
    for i in range(20):
        kind = ("put", "accumulate", "get")[i % 3]
        if kind == "accumulate":
            rows, places = random_index(random, (shape[0], shape[1] - shared), steps=False)
            box = (rows, slice(places.start + shared, places.stop + shared))
        else:
            half = 0 if kind == "put" else OWN // 2
            box = (random_index(random, shape[:1], steps=False)[0], int(columns[half + i % (OWN // 2)]))
        yield kind, box, random.integers(0, 100, size=np.zeros(shape)[box].shape)


@pytest.mark.parametrize("codec", ["none", "blosc2"])
@pytest.mark.parametrize("client_cache", [None, "100kB"])
def test_a_stress_of_mixed_operations_leaves_what_numpy_says(world, codec, client_cache):
    """Gets, puts and accumulates of all processes are under way together, and meet in the same chunks."""
    shared = OWN * world.size
    shape = (40, shared + 24)
    streams = [np.random.default_rng(100 + rank) for rank in range(world.size)]
    own_random = np.random.default_rng(world.rank)
    model = np.zeros(shape, np.int64)
    options = {"chunk": (8, 24), "cache_bytes": 1, "client_cache_bytes": client_cache, "codec": codec}
    with DiskArray(world, shape, "int64", **options) as d:
        for _ in range(6):
            before = model.copy()
            accumulates, gets = [], []
            for rank, random in enumerate(streams):
                mine = rank == world.rank
                for kind, box, value in deeds(random, rank, shape, shared):
                    if kind == "get":
                        gets += [(box, d.get_async(box))] if mine else []
                    elif kind == "accumulate":
                        model[box] += 3 * value
                        accumulates += [d.acc_async(box, value, alpha=3)] if mine else []
                    else:
                        model[box] = value
                        if mine:
                            d.put_async(box, value).wait()  # where they overlap, the last counts
            for box, get in gets:
                assert np.array_equal(get.wait(), before[box])
            for request in accumulates[::2]:
                request.wait()
            d.sync()
            world.barrier()
            d.sync()  # drops copies that others have changed since
            boxes = [random_index(own_random, shape, steps=False) for _ in range(10)]
            d.prefetch(boxes)
            for box, get in [(box, d.get_async(box)) for box in boxes]:
                assert np.array_equal(get.wait(), model[box])
            world.barrier()


def test_accumulates_of_all_processes_add_up_exactly(world):
    with DiskArray(world, (100, 100), chunk=(16, 16)) as d:
        requests = [d.acc_async(np.s_[10:90, 20:70], np.ones((80, 50)), alpha=2) for _ in range(25)]
        for request in requests:
            request.wait()
        world.barrier()
        expected = np.zeros((100, 100))
        expected[10:90, 20:70] = 50 * world.size
        assert np.array_equal(d[...], expected)
        world.barrier()


def test_no_other_process_has_to_call_anything(world, comm):
    with DiskArray(world, (400, 400), chunk=(50, 50)) as d:
        if world.rank == 0:
            data = np.random.default_rng(1).random((400, 400))
            d[...] = data
            assert np.array_equal(d[::3, 5], data[::3, 5])
            assert np.array_equal(d[...], data)
            comm.send(None, 1)
        elif world.rank == 1:
            while not comm.iprobe(source=0):  # computes, and never calls the library
                time.sleep(0.001)
            comm.recv(source=0)
        world.barrier()


def test_one_nonblocking_request_of_a_large_box_goes_on_by_itself(world):
    shape = (1200, 1100)
    with DiskArray(world, shape) as d:
        data = np.arange(1200.0 * 1100).reshape(shape)
        if world.rank == world.size - 1:
            request = d.put_async(np.s_[:, :], data)
            while not request.test():
                time.sleep(0.001)
        world.barrier()
        out = np.zeros((1100, 1200)).T  # any strides
        assert d.get_async(np.s_[:, :], out).wait() is out
        assert np.array_equal(out, data)
        world.barrier()


def test_collective_and_noncollective_transfers_see_each_other(world):
    data = np.random.default_rng(2).random((60, 40))
    with DiskArray(world, (60, 40), chunk=(16, 16)) as d, GlobalArray(world, (60, 40)) as g:
        if world.rank == 0:
            d[...] = data
        world.barrier()
        d.read_all(g)
        assert np.array_equal(g[...], data)
        world.barrier()
        if world.rank == 0:
            g[...] = -data
        g.sync()
        d.write_all(g.section(np.s_[10:20]), np.s_[10:20])
        data[10:20] *= -1
        assert np.array_equal(d[...], data)
        world.barrier()


def test_what_one_process_put_is_there_when_the_array_opens_again(world, shared_tmp_path):
    path = shared_tmp_path / "array"
    data = np.random.default_rng(3).random((40, 30))
    with DiskArray(world, data.shape, path=path, chunk=(7, 8)) as d:
        if world.rank == world.size - 1:
            d.put_async(..., data)  # close waits for it
    with DiskArray.open(world, path) as d:
        assert np.array_equal(d[5:, 3], data[5:, 3])
        with pytest.raises(OutcoreError) as caught:
            d[0, 0] = 1.0
        assert caught.value.errno == errno.EROFS
        world.barrier()


@pytest.mark.parametrize("box", [np.s_[0:11], np.s_[:, 3:12], np.s_[-11:2, :]])
def test_a_box_that_reaches_outside_is_refused(world, box):
    with DiskArray(world, (10, 10)) as d:
        for move in (
            lambda: d.get(box),
            lambda: d.put(box, 1.0),
            lambda: d.acc_async(box, 1.0),
            lambda: d.prefetch([box]),
        ):
            with pytest.raises(OutcoreError, match="disk array") as caught:
                move()
            assert caught.value.errno == errno.EINVAL


def test_indices_and_types_are_checked(world):
    with DiskArray(world, (10, 10)) as d:
        with pytest.raises(IndexError):
            d[10, 0]
        with pytest.raises(IndexError):
            d[0, 0, 0]
        with pytest.raises(TypeError):
            d[0] = np.ones(10, np.complex128)
        with pytest.raises(ValueError, match="shape"):
            d.get(np.s_[0:2], np.zeros((3, 10)))
        with pytest.raises(TypeError):
            d.get(np.s_[0:2], np.zeros((2, 10), np.float32))
    with DiskArray(world, 10, "int16") as d, pytest.raises(OutcoreError, match="at least 4 bytes"):
        d.acc(..., np.ones(10, np.int16))
    with pytest.raises(OutcoreError) as caught:
        d.get(...)
    assert caught.value.errno == errno.EBADF


@pytest.fixture
def small_disk(comm, shared_tmp_path):
    """A file system of 8 MiB that all processes see."""
    place = shared_tmp_path / "small"
    mounted = None
    if comm.rank == 0:
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=8m", "outcore-test", str(place)]
        mounted = (
            os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
        )
    mounted = comm.bcast(mounted)
    if not mounted:
        pytest.skip("needs the right to mount a file system")
    yield place
    comm.Barrier()
    if comm.rank == 0:
        subprocess.run(["umount", str(place)], check=True)


def test_an_owner_whose_disk_is_full_tells_who_asked_and_serves_on(world, small_disk):
    shape = (1500, 1000)  # 12 MB
    data = np.random.default_rng(1).random(shape)
    path = small_disk / "array"
    with DiskArray(world, shape, path=path, expected_bytes=1000, cache_bytes="1MB") as d:
        if world.rank == 0:
            d[:200] = data[:200]
        d.flush()
        if world.rank == world.size - 1:
            with pytest.raises(OutcoreError) as caught:
                d[200:] = data[200:]
            assert caught.value.errno == errno.ENOSPC
            assert np.array_equal(d[:200], data[:200])
            old_or_new = d[200:]
            assert np.all((old_or_new == 0) | (old_or_new == data[200:]))
        world.barrier()
        with pytest.raises(OutcoreError) as caught:
            d.flush()  # elements that were accepted and do not fit
        assert caught.value.errno == errno.ENOSPC
        d._native.drop()
    with DiskArray.open(world, path) as d:
        assert np.array_equal(d[:200], data[:200])
        assert not d[200:].any()
        world.barrier()
