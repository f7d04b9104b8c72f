"""Shared files and record files of several processes: against NumPy, with limits, and on full disks."""

import errno
import os
from itertools import pairwise

import numpy as np
import pytest

import outcore
from outcore import OutcoreError, RecordFile, SharedFile

LENGTH = 200_000
# In CI some; OUTCORE_TEST_REQUESTS=1000000 for the full waves, which take minutes.
REQUESTS = int(os.environ.get("OUTCORE_TEST_REQUESTS", "20000"))


@pytest.fixture(params=["hosts", "processes"])
def world(comm, shared_tmp_path, request):
    """Processes that share a node, and processes that do not."""
    with outcore.World(comm, memory="500MB", scratch=shared_tmp_path, nodes=request.param) as world:
        yield world


@pytest.fixture(params=["auto", "local"])
def placement(request):
    """All processes see the files here; `local` uses the paths between nodes, where each has its own part."""
    return request.param


def test_a_client_cache_sees_what_others_wrote_after_sync(world):
    size = 300_000
    with SharedFile(world, "copies", placement="local", client_cache_bytes="4MB") as file:
        for turn in range(3):
            if world.rank == turn % world.size:
                file.write(np.full(size, turn, np.uint8))
            world.barrier()
            file.sync()
            for _ in range(2):
                back = np.zeros(size, np.uint8)
                file.read(back)
                assert (back == turn).all()
            world.barrier()
    with pytest.raises(OutcoreError, match="client_cache_bytes"):
        SharedFile(world, "copies", client_cache_bytes="much")


def test_random_requests_are_those_of_numpy(world, placement):
    """In each round every process writes pieces of its own, all at once, then reads anywhere."""
    model = np.zeros(LENGTH + 60_000, np.uint8)
    end = 0
    together, alone = np.random.default_rng(5), np.random.default_rng(world.rank)
    with SharedFile(world, "model", typical_request=4096, placement=placement) as file:
        for turn in range(15):
            cuts = np.sort(together.integers(0, LENGTH, 8 * world.size + 1))
            requests, ranges = [], []
            for k, (first, last) in enumerate(pairwise(cuts)):
                values = together.integers(0, 256, last - first, np.uint8)
                if together.random() < 0.2:
                    continue  # a gap
                model[first:last] = values
                end = max(end, last if last > first else 0)
                if k % world.size != world.rank:
                    continue
                if turn % 3 == 0:
                    file.write(values, first)
                elif turn % 3 == 1:
                    requests.append(file.write_async(values, first))
                else:
                    ranges.append((first, values))
            file.writev(ranges)
            file.sync()
            world.barrier()
            assert file.length() == end
            reads = []
            for _ in range(20):
                first = alone.integers(0, end + 1)
                size = alone.integers(0, min(end - first, 30_000) + 1)
                reads.append((int(first), np.zeros(size, np.uint8)))
            if turn % 2 == 0:
                file.readv(reads)
            else:
                for request in [file.read_async(buffer, first) for first, buffer in reads]:
                    request.wait()
            for first, buffer in reads:
                assert np.array_equal(buffer, model[first : first + len(buffer)])
            world.barrier()


def test_what_others_wrote_is_read_round_robin(world, placement):
    size, count = 32 << 10, 40
    with SharedFile(world, "chemio", typical_request=size, placement=placement) as file:
        for k in range(world.rank, count, world.size):
            file.write(np.full(size, k, np.uint8), k * size)
        world.barrier()
        back = np.zeros(size, np.uint8)
        for k in range((world.rank + 1) % world.size, count, world.size):
            file.read(back, k * size)
            assert (back == k).all()


def test_large_requests_and_a_flush(world, placement):
    with SharedFile(world, "large", placement=placement) as file:
        mine = np.random.default_rng(world.rank).integers(0, 256, 5_000_003, np.uint8)
        request = file.write_async(mine, world.rank * len(mine))
        assert request.wait() == len(mine)
        file.flush()
        other = (world.rank + 1) % world.size
        back = np.zeros_like(mine)
        file.read_async(back, other * len(mine)).wait()
        assert np.array_equal(back, np.random.default_rng(other).integers(0, 256, 5_000_003, np.uint8))
        assert file.length() == world.size * len(mine)


def test_the_end_is_known_to_who_is_told_of_a_write(comm, world, placement):
    with SharedFile(world, "end", placement=placement) as file:
        last = world.size - 1
        if world.rank == last:
            file.write(b"here", 10**9)
        comm.Barrier()  # of MPI, without the library
        back = bytearray(4)
        assert file.read(back, 10**9) == 4
        assert back == b"here"
        with pytest.raises(OutcoreError, match=r"ends at 1000000004") as caught:
            file.read(back, 10**9 + 1)
        assert caught.value.errno == errno.EINVAL
        comm.Barrier()


def test_limits_and_ranges(world, placement):
    with SharedFile(world, "limits", hard_limit=1000, placement=placement) as file:
        for call, number in (
            (lambda: file.write(bytes(11), 990), errno.EFBIG),
            (lambda: file.write(bytes(11), -1), errno.EINVAL),
            (lambda: file.read(bytearray(1), 0), errno.EINVAL),
            (lambda: file.read(bytearray(10), 2**63 - 5), errno.EINVAL),
        ):
            with pytest.raises(OutcoreError) as caught:
                call()
            assert caught.value.errno == number
        world.barrier()
        file.write(bytes(10), 990)


def test_arguments_that_differ_are_an_error_everywhere(world):
    for arguments in ({"hard_limit": 1000 + world.rank}, {"soft_limit": -world.rank or None}):
        with pytest.raises(OutcoreError) as caught:
            SharedFile(world, "differ", **arguments)
        assert caught.value.errno == errno.EINVAL


@pytest.mark.timeout(120 + REQUESTS // 1000, method="thread")
def test_many_small_requests_are_outstanding(world, placement):
    count = REQUESTS // world.size
    wave = max(count // 10, 1)
    values = np.arange(count, dtype=np.int64)
    back = np.zeros_like(values)

    def place(k):
        return (k * world.size + world.rank) * 8

    with SharedFile(world, "many", typical_request=4096, placement=placement) as file:
        for begin, array in ((file.write_async, values), (file.read_async, back)):
            for first in range(0, count, wave):
                last = min(first + wave, count)
                requests = [begin(array[k : k + 1], place(k)) for k in range(first, last)]
                for request in requests:
                    request.wait()
        assert np.array_equal(back, values)


def test_an_owner_serves_while_it_computes(comm, world):
    """The other processes do not call the library while one reads and writes their parts."""
    with SharedFile(world, "computing", placement="local") as file:
        values = np.random.default_rng(1).integers(0, 256, 1_000_000, np.uint8)
        if world.rank == 0:
            file.write(values, 0)
            back = np.zeros_like(values)
            file.read(back, 0)
            assert np.array_equal(back, values)
            comm.Ibarrier().Wait()
        else:
            request, x = comm.Ibarrier(), np.ones(1000)
            while not request.Test():
                x = np.sqrt(x + 1)


def test_records_of_all_processes(world, placement):
    random = np.random.default_rng(9)  # the same at all
    model = {}
    with RecordFile(world, "vectors", 60, placement=placement) as records:
        for _ in range(6):
            writers = {}
            for _ in range(40):
                k, size, process = (int(random.integers(n)) for n in (60, 20_000, world.size))
                data = random.bytes(size)
                if k in writers:
                    continue
                writers[k] = process
                model[k] = data
                if process == world.rank:
                    records.put_async(k, data)
            records.sync()
            world.barrier()
            for k, data in model.items():
                assert records.size(k) == len(data)
                assert records[k] == data
            world.barrier()
        with pytest.raises(OutcoreError) as caught:
            records.get(60)
        assert caught.value.errno == errno.EINVAL


def test_a_record_put_by_all_at_once_is_never_torn(world, placement):
    random = np.random.default_rng(world.rank)
    with RecordFile(world, "contended", 1, placement=placement) as records:
        records[0] = bytes(10)
        for _ in range(50):
            records[0] = np.full(int(random.integers(1, 5000)), random.integers(256), np.uint8)
            seen = np.frombuffer(records[0], np.uint8)
            assert (seen == seen[0]).all()
        world.barrier()
        assert len({bytes(each) for each in world.gather(records[0])}) == 1


@pytest.mark.parametrize("nodes", ["hosts", "processes"])
def test_a_full_disk_is_an_error_where_it_was_asked_and_all_go_on(comm, small_disk, nodes):
    with outcore.World(comm, memory="500MB", scratch=small_disk, nodes=nodes) as world:
        with pytest.raises(OutcoreError) as caught:
            SharedFile(world, "too large", soft_limit=1 << 30)
        assert caught.value.errno == errno.ENOSPC
        with SharedFile(world, "full", placement="local") as file:
            before = np.full(10_000, world.rank + 1, np.uint8)
            file.write(before, world.rank * 10_000)
            world.barrier()
            if world.rank == world.size - 1:
                with pytest.raises(OutcoreError) as caught:
                    file.write(np.ones(20 << 20, np.uint8), 1 << 20)
                assert caught.value.errno == errno.ENOSPC
            world.barrier()
            back = np.zeros(10_000 * world.size, np.uint8)
            file.read(back, 0)
            assert np.array_equal(back, np.repeat(np.arange(1, world.size + 1, dtype=np.uint8), 10_000))
            world.barrier()
