"""Collective disk arrays on several processes: against NumPy, with errors, and on full disks."""

import errno
import os
import subprocess
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import outcore
from outcore import DiskArray, GlobalArray, OutcoreError

DTYPES = ["int8", "int32", "int64", "float32", "float64", "complex128"]


@pytest.fixture(params=["hosts", "processes"])
def world(comm, shared_tmp_path, request):
    """Processes that share memory, and processes that do not."""
    with outcore.World(comm, memory="500MB", scratch=shared_tmp_path, nodes=request.param) as world:
        yield world


@pytest.fixture(scope="module")
def lasting_directory(comm, tmp_path_factory):
    return comm.bcast(tmp_path_factory.mktemp("arrays"))


@pytest.fixture(scope="module")
def lasting_world(comm, lasting_directory):
    with outcore.World(comm, memory="500MB", scratch=lasting_directory) as world:
        yield world


@st.composite
def shapes_and_boxes(draw):
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    chunk = [draw(st.integers(1, n)) for n in shape]
    box = []
    for n in shape:
        begin = draw(st.integers(0, n - 1))
        box.append(slice(begin, draw(st.integers(begin + 1, n))))
    order = draw(st.permutations(range(len(shape))))
    return shape, chunk, tuple(box), list(order)


def elements(shape, dtype):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    case=shapes_and_boxes(),
    dtype=st.sampled_from(DTYPES),
    codec=st.sampled_from(["none", "blosc2", "blosc2-lz4"]),
)
def test_sections_are_those_of_numpy(lasting_world, case, dtype, codec):
    world = lasting_world
    shape, chunk, box, order = case
    with DiskArray(world, shape, dtype, chunk=chunk, codec=codec) as disk:
        expected = np.zeros(shape, dtype)
        part = elements(expected[box].shape, dtype)
        turned = np.transpose(part, np.argsort(order))  # so that transpose(turned, order) is part
        with GlobalArray(world, turned.shape, dtype) as source, GlobalArray(world, shape, dtype) as target:
            if world.rank == 0:
                source[...] = turned
            source.sync()
            disk.write_all(source, box, order=order)
            disk.read_all(target)
            expected[box] = part
            assert np.array_equal(target[...], expected)
            world.barrier()


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    case=shapes_and_boxes(),
    dtype=st.sampled_from(DTYPES),
    codec=st.sampled_from(["none", "blosc2"]),
    writers=st.integers(1, 4),
    readers=st.integers(1, 4),
)
def test_what_some_processes_write_others_read(
    lasting_world, lasting_directory, case, dtype, codec, writers, readers
):
    """The first `writers` processes write, the last `readers` read, each group in its own world."""
    world = lasting_world
    shape, chunk, box, order = case
    path = lasting_directory / f"from {writers} to {readers}"
    expected = np.zeros(shape, dtype)
    expected[box] = elements(expected[box].shape, dtype)
    group = world.split(0 if world.rank < writers else -1)
    if group is not None:
        with (
            group,
            DiskArray(group, shape, dtype, path=path, chunk=chunk, codec=codec, overwrite=True) as disk,
        ):
            disk.write_all(expected[box], box)
    world.barrier()
    group = world.split(0 if world.rank >= world.size - readers else -1)
    if group is not None:
        with group, DiskArray.open(group, path) as disk:
            turned = np.transpose(expected, order)
            with GlobalArray(group, turned.shape, dtype) as target:
                disk.read_all(target, order=[int(axis) for axis in np.argsort(order)])
                assert np.array_equal(target[...], turned)
                group.barrier()
            assert np.array_equal(disk[box], expected[box])
    world.barrier()


def test_several_transfers_are_outstanding_at_once(world):
    with DiskArray(world, (64, 64)) as disk, GlobalArray(world, (64, 64)) as ones:
        ones.local[...] = 1.0
        ones.sync()
        rows = ones.section(np.s_[0:8, :])
        requests = [disk.write_all_async(rows, np.s_[8 * i : 8 * i + 8, :]) for i in range(8)]
        back = np.zeros((64, 64))
        requests.append(disk.read_all_async(back))
        for request in requests:
            request.wait()
        assert (back == 1.0).all()


def test_every_process_writes_a_block_of_its_own(world):
    rows = 5
    with DiskArray(world, (rows * world.size, 40), "int64", chunk=(3, 7)) as disk:
        mine = np.s_[rows * world.rank : rows * (world.rank + 1)]
        disk.write_all(np.full((rows, 40), world.rank), mine)
        back = np.empty((rows * world.size, 40), np.int64)
        disk.read_all(back)
        assert np.array_equal(back[:, 0], np.repeat(np.arange(world.size), rows))


def test_a_process_may_have_no_block(world):
    with DiskArray(world, (10, 10)) as disk:
        last = world.size - 1
        data = elements((10, 10), np.float64)
        disk.write_all(data, ... if world.rank == last else None)
        back = np.zeros((10, 10))
        disk.read_all(back, ... if world.rank == 0 else None)
        assert np.array_equal(back, data if world.rank == 0 else np.zeros((10, 10)))


def test_blocks_may_have_any_strides(world):
    with DiskArray(world, (6, 8)) as disk:
        data = elements((16, 6), np.float64)[::-2].T
        disk.write_all(data)
        back = np.zeros((8, 6)).T
        disk.read_all(back)
        assert np.array_equal(back, data)


def test_an_array_opens_again(world, shared_tmp_path):
    path = shared_tmp_path / "array"
    data = elements((30, 50), np.complex128)
    with DiskArray(world, data.shape, data.dtype, path=path, chunk=(7, 8), metadata={"what": "t2"}) as disk:
        disk.write_all_async(data)
    with DiskArray.open(world, path) as disk:
        assert (disk.shape, disk.dtype, disk.chunk) == ((30, 50), np.complex128, (7, 8))
        assert disk.metadata == {"what": "t2"}
        back = np.zeros_like(data)
        disk.read_all(back)
        assert np.array_equal(back, data)


def test_two_creators_of_one_name_are_refused(world, shared_tmp_path):
    path = shared_tmp_path / "array"
    DiskArray(world, 10, path=path).close()
    with pytest.raises(OutcoreError, match="overwrite") as caught:
        DiskArray(world, 10, path=path)
    assert caught.value.errno == errno.EEXIST


def test_shapes_that_differ_between_processes_are_refused(world):
    with pytest.raises(OutcoreError) as caught:
        DiskArray(world, (10, 10 + world.rank))
    assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (10, 0)}, "0"),
        ({"shape": (10,) * 9}, "dimensions"),
        ({"shape": 10, "dtype": "float16"}, "float16"),
        ({"shape": 10, "codec": "zip"}, "zip"),
        ({"shape": 10, "placement": "cloud"}, "cloud"),
        ({"shape": (10, 10), "chunk": (5,)}, "chunk"),
        ({"shape": 2.5}, "integers"),
        ({"shape": 10, "codec": None}, "string"),
        ({"shape": 10, "placement": 1}, "string"),
        ({"shape": 10, "path": 5}, "PathLike"),
        ({"shape": 10, "expected_bytes": 1.5}, "integers"),
    ],
)
def test_arguments_that_make_no_array_are_refused_at_all_processes(world, arguments, message):
    good = {"shape": 10}
    with pytest.raises(OutcoreError, match=message) as caught:
        DiskArray(world, **(arguments if world.rank == world.size - 1 else good))
    assert caught.value.errno == errno.EINVAL


def test_a_block_that_does_not_fit_at_one_process_is_an_error_at_all(world):
    with DiskArray(world, (10, 10)) as disk:
        block = np.zeros((4, 5 if world.rank == 1 else 4))
        with pytest.raises(OutcoreError, match="shape") as caught:
            disk.write_all(block, np.s_[0:4, 0:4])
        assert caught.value.errno == errno.EINVAL


def test_elements_of_another_type_are_refused(world):
    with DiskArray(world, (4, 4)) as disk, pytest.raises(OutcoreError, match="float32"):
        disk.write_all(np.zeros((4, 4), np.float32))


def test_a_read_only_block_is_not_read_into(world):
    block = np.zeros((4, 4))
    block.flags.writeable = False
    with DiskArray(world, (4, 4)) as disk, pytest.raises(OutcoreError, match="read-only"):
        disk.read_all(block)


def test_the_memory_of_a_dropped_request_stays_until_it_is_done(world):
    with DiskArray(world, (200, 200)) as disk:
        for i in range(20):
            disk.write_all_async(np.full((200, 200), float(i)))
        back = np.zeros((200, 200))
        disk.read_all(back)
        assert (back == 19.0).all()


def test_an_array_larger_than_the_disk_is_refused_with_the_numbers(world):
    with pytest.raises(OutcoreError, match=r"takes \d+ bytes there, \d+ are free") as caught:
        DiskArray(world, (1 << 22, 1 << 22))
    assert caught.value.errno == errno.ENOSPC


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


def test_a_disk_that_fills_is_one_error_and_earlier_content_is_intact(world, small_disk):
    shape = (1000, 1000)  # 8 MB: more than the free space
    data = np.random.default_rng(1).random(shape)
    with DiskArray(world, shape, path=small_disk / "array", expected_bytes=1000) as disk:
        disk.write_all_async(data[:300], np.s_[:300])
        disk.flush()
        with pytest.raises(OutcoreError, match="free") as caught:
            disk.write_all(data + 1)
        assert caught.value.errno == errno.ENOSPC
        assert len({repr(each) for each in world.gather(str(caught.value)) or [0]}) == 1
        block = data[700 + world.rank : 701 + world.rank, :100]  # it is still usable
        disk.write_all(block, np.s_[300 + world.rank : 301 + world.rank, :100])
        disk.flush()
    with DiskArray.open(world, small_disk / "array") as disk:
        back = np.zeros(shape)
        disk.read_all(back)
        assert np.array_equal(back[:300], data[:300])
        assert np.array_equal(back[300 : 300 + world.size, :100], data[700 : 700 + world.size, :100])
        back[:, :100][300 : 300 + world.size] = 0
        assert not back[300:].any()


@pytest.mark.parametrize("codec", ["none", "blosc2"])
def test_blocks_that_do_not_fit_leave_old_elements_or_new_ones(comm, small_disk, codec):
    """Each process is a node of its own, and the disk of the last one fills."""
    with outcore.World(comm, memory="500MB", scratch=small_disk, nodes="processes") as world:
        links = small_disk.parent
        full = world.rank == world.size - 1
        (links / f"disk{world.rank}").symlink_to(small_disk if full else links)
        world.barrier()
        rows = 1400  # 11 MB on each disk
        data = np.random.default_rng(world.rank).random((rows, 1000))
        box = np.s_[world.rank * rows : (world.rank + 1) * rows]
        path = links / "disk{node}" / "array"
        shape = (world.size * rows, 1000)
        with DiskArray(world, shape, path=path, codec=codec, placement="local", expected_bytes=1000) as disk:
            disk.write_all(data[:100], np.s_[world.rank * rows : world.rank * rows + 100])
            with pytest.raises(OutcoreError) as caught:
                disk.write_all(data + 1, box)
            assert caught.value.errno == errno.ENOSPC
            old = np.zeros_like(data)
            old[:100] = data[:100]
            back = np.zeros_like(data)
            disk.read_all(back, box)
            assert np.all((back == old) | (back == data + 1))
            disk._native.drop()
        world.barrier()


def test_an_error_that_one_process_has_seen_fails_the_flush_at_all(world, shared_tmp_path):
    block = np.zeros((4, 5 if world.rank == 1 else 4))
    with DiskArray(world, (10, 10), path=shared_tmp_path / "array") as disk:
        request = disk.write_all_async(block, np.s_[0:4, 0:4])
        if world.rank == 0:
            with pytest.raises(OutcoreError, match="shape"):
                request.wait()
        with pytest.raises(OutcoreError, match="shape"):
            disk.flush()


def test_an_array_closes_after_a_write_that_one_process_could_not_make(world, shared_tmp_path):
    path = shared_tmp_path / "array"
    DiskArray(world, (10, 10), path=path).close()
    disk = DiskArray.open(world, path, read_only=False)
    with pytest.raises(OutcoreError, match="shape"):
        disk.write_all(np.zeros((4, 5 if world.rank == 1 else 4)), np.s_[0:4, 0:4])
    disk.close()
    assert disk.closed


def test_an_array_outlives_its_world_without_use(comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path) as world:
        disk = DiskArray(world, (10, 10))
    with pytest.raises(OutcoreError) as caught:
        disk.read_all_async(np.zeros((10, 10)))
    assert caught.value.errno == errno.EBADF


def test_metadata_that_one_process_cannot_keep_are_an_error_at_all(world, shared_tmp_path):
    path = shared_tmp_path / "array"
    with DiskArray(world, 10, path=path, metadata="old") as disk:
        with pytest.raises(OutcoreError, match="metadata") as caught:
            disk.flush({"new": object()} if world.rank == 1 else {"new": 1})
        assert caught.value.errno == errno.EINVAL
    with DiskArray.open(world, path) as disk:
        assert disk.metadata == "old"


def test_a_wrong_argument_of_one_process_opens_nothing_at_all(world, shared_tmp_path):
    path = shared_tmp_path / "array"
    DiskArray(world, 10, path=path).close()
    with pytest.raises(OutcoreError, match="plenty") as caught:
        DiskArray.open(world, path, cache_bytes="plenty" if world.rank == 1 else None)
    assert caught.value.errno == errno.EINVAL


def test_a_transfer_goes_on_while_nobody_waits(world):
    """The only call on the request asks whether it is complete."""
    data = np.random.default_rng(5).random((600, 600))
    with DiskArray(world, data.shape) as disk, GlobalArray(world, data.shape) as g:
        request = disk.write_all_async(data)
        while not request.done:
            time.sleep(0.001)
        request = disk.read_all_async(g)
        while not request.test():
            time.sleep(0.001)
        assert np.array_equal(g[...], data)
        world.barrier()


def test_the_typical_section_shapes_the_chunks(world):
    with (
        DiskArray(world, (4096, 4096), typical=(1, 4096)) as rows,
        DiskArray(world, (4096, 4096), typical=(4096, 1)) as columns,
    ):
        assert rows.chunk[1] > 8 * rows.chunk[0]
        assert columns.chunk == rows.chunk[::-1]


@pytest.mark.parametrize("rank", [5, 6, 7, 8])
def test_arrays_of_many_dimensions(world, rank):
    random = np.random.default_rng(rank)
    shape = tuple(int(n) for n in random.integers(1, 5, rank))
    order = [int(axis) for axis in random.permutation(rank)]
    data = random.random(shape)
    box = tuple(slice(int(n) // 3, int(n)) for n in shape)
    with (
        GlobalArray(world, shape) as g,
        DiskArray(world, shape, chunk=[max(1, n // 2) for n in shape]) as disk,
        GlobalArray(world, np.transpose(data[box], order).shape) as turned,
    ):
        if world.rank == 0:
            g[...] = data
        g.sync()
        assert np.array_equal(g[box], data[box])
        disk.write_all(g)
        back = [int(axis) for axis in np.argsort(order)]
        disk.read_all(turned, box, order=back)
        assert np.array_equal(turned[...], np.transpose(data[box], order))
        assert np.array_equal(disk[box], data[box])
        world.barrier()


def test_removed_arrays_are_gone(world, shared_tmp_path):
    path = shared_tmp_path / ("on{node}" if world.node_count > 1 else "array")
    disk = DiskArray(world, (30, 30), path=path)
    disk.write_all(np.ones((30, 30)))
    disk.flush()
    disk.remove()
    with pytest.raises(OutcoreError) as caught:
        DiskArray.open(world, path)
    assert caught.value.errno == errno.ENOENT
    world.barrier()
    assert list(shared_tmp_path.glob("on*")) == list(shared_tmp_path.glob("array")) == []
