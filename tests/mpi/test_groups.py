"""Groups of processes with disk arrays of their own, and arrays that are reached from outside of the group."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import outcore
from outcore import DiskArray, GlobalArray, OutcoreError


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="256MB", nodes=request.param) as made:
        yield made


def test_groups_work_at_the_same_time(world):
    color = world.rank % 2
    with world.split(color, key=-world.rank) as group:
        assert group.size == (world.size + 1 - color) // 2
        assert group.budget.limit_bytes == world.budget.limit_bytes
        assert group.all_reduce(world.rank) == sum(range(color, world.size, 2))
        with GlobalArray(group, (30, 20)) as g, DiskArray(group, (30, 20), chunk=(7, 7)) as d:
            g.local[...] = color + 1
            g.sync()
            d.write_all(g)
            assert np.all(d[...] == color + 1)
            group.barrier()
    world.barrier()


def test_a_process_may_be_in_no_group(world):
    group = world.split(0 if world.rank == 0 else -1)
    assert (group is None) == (world.rank != 0)
    if group is not None:
        with group, DiskArray(group, 10) as d:
            d[...] = 1.0
    world.barrier()


@pytest.mark.parametrize("client_cache", [None, "1MB"])
def test_every_process_reaches_the_arrays_of_all_groups(world, client_cache, shared_tmp_path):
    color = world.rank % 2
    with world.split(color) as group:
        path = shared_tmp_path / f"group{color}{client_cache}{world.node_count}"
        with DiskArray(group, (40, 30), "int64", path=path, chunk=(8, 8)) as d:
            handles = world.gather(d.share(world))
            for handle in handles[:2]:
                DiskArray.attach(world, handle, client_cache_bytes=client_cache).acc(
                    np.s_[10:30, :], np.full((20, 30), world.rank + 1)
                )
            world.barrier()
            expected = np.zeros((40, 30), np.int64)
            expected[10:30] = world.size * (world.size + 1) // 2
            for handle in handles[:2]:
                other = DiskArray.attach(world, handle, client_cache_bytes=client_cache)
                assert (other.shape, other.dtype, other.chunk) == ((40, 30), np.int64, (8, 8))
                other.prefetch([np.s_[:, :]])
                assert np.array_equal(other[...], expected)
                assert other[12, 3] == expected[12, 3]
            world.barrier()
        world.barrier()
        with pytest.raises(OutcoreError, match="closed") as caught:
            DiskArray.attach(world, handles[1 - color if world.size > 1 else 0]).get(...)
        assert caught.value.errno == errno.EBADF
        with DiskArray.open(group, path) as d:  # what the others put was committed
            assert np.array_equal(d[...], expected)
            group.barrier()
        world.barrier()


def test_what_is_no_handle_is_refused(world):
    world.split(-1)
    for handle in (b"", b"no handle", "text"):
        with pytest.raises(OutcoreError, match="handle") as caught:
            DiskArray.attach(world, handle)
        assert caught.value.errno == errno.EINVAL


def test_a_group_may_have_a_disk_of_its_own(world, shared_tmp_path):
    color = world.rank % 2
    place = shared_tmp_path / f"disk{color}"
    if world.rank < 2:
        place.mkdir(exist_ok=True)
    world.barrier()
    with world.split(color, scratch=place) as group:
        assert group.scratch.startswith(str(place))
        with DiskArray(group, (20, 20)) as d:
            d.write_all(np.full((20, 20), color + 1.0))
            assert np.all(d[...] == color + 1)
            group.barrier()
    with pytest.raises(OutcoreError):
        world.split(color, scratch=shared_tmp_path / "nowhere")
    world.barrier()
