"""Shared files and record files of one process: bytes, buffers, errors, remaining files."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import outcore
from outcore import OutcoreError, RecordFile, SharedFile, World, _core
from outcore.job import launch


@pytest.fixture
def world(tmp_path):
    with World("self", scratch=tmp_path, memory="500MB") as world:
        yield world


@pytest.fixture
def file(world):
    with SharedFile(world, "ints") as file:
        yield file


def number(call):
    with pytest.raises(OutcoreError) as caught:
        call()
    return caught.value.errno


def test_arrays_of_any_kind_come_back(file):
    values = np.arange(1000.0).reshape(10, 100)
    assert file.write(values, 40) == values.nbytes
    back = np.zeros_like(values)
    assert file.read(back, 40) == values.nbytes
    assert np.array_equal(back, values)
    text = bytearray(8)
    file.read(memoryview(text), 48)
    assert np.frombuffer(text)[0] == 1.0


def test_nonblocking_requests_hold_their_arrays(file):
    requests = [file.write_async(np.full(1000, i), i * 8000) for i in range(50)]
    _core.wait_all(requests)
    back = np.zeros(50_000, np.int64)
    request = file.read_async(back)
    assert request.wait() == back.nbytes
    assert request.done and request.test()
    assert np.array_equal(back, np.repeat(np.arange(50), 1000))


def test_requests_that_nobody_waits_for_are_complete_after_sync(file):
    for i in range(100):
        file.write_async(np.full(100, i), i * 800)
    file.sync()
    back = np.zeros(10_000, np.int64)
    file.read(back)
    assert np.array_equal(back, np.repeat(np.arange(100), 100))


def test_lists_of_ranges(file):
    rows = [np.full(10, i, np.int32) for i in range(20)]
    assert file.writev([(i * 100, row) for i, row in enumerate(rows)]) == 800
    back = np.zeros((20, 10), np.int32)
    assert file.readv([(i * 100, row) for i, row in enumerate(back)]) == 800
    assert np.array_equal(back, rows)
    assert file.readv([]) == 0
    with pytest.raises(ValueError, match="pairs"):
        file.readv([(0, back, 1)])


def test_gaps_are_zeros_and_the_end_is_an_error(file):
    file.write(b"x", 10**9)
    assert file.length() == 10**9 + 1
    back = np.ones(1000)
    file.read(back, 5 * 10**8)
    assert not back.any()
    assert number(lambda: file.read(back, 10**9)) == errno.EINVAL
    assert number(lambda: file.read_async(back, -1)) == errno.EINVAL


def test_buffers_that_cannot_be_used(file):
    with pytest.raises(TypeError, match="buffer protocol"):
        file.write(1.0)
    with pytest.raises(ValueError, match="read-only"):
        file.read(b"abc")
    with pytest.raises(ValueError, match="contiguous"):
        file.write(np.zeros((10, 10))[:, ::2])


def test_hints(world):
    with SharedFile(
        world, "hints", hard_limit="1MB", soft_limit=1000, typical_request="32KiB", page_cache="direct"
    ) as f:
        assert f.hard_limit == 10**6
        assert f.stripe == 32768
        assert f.placement == "shared"
        assert number(lambda: f.write(b"ab", 10**6 - 1)) == errno.EFBIG
    assert f.closed
    assert "closed" in repr(f)
    for wrong in (
        {"hard_limit": -1}, {"soft_limit": "x"}, {"placement": "here"}, {"page_cache": "none"},
        {"components_per_node": -1}, {"hard_limit": 5, "soft_limit": 6},
    ):  # fmt: skip
        assert number(lambda wrong=wrong: SharedFile(world, "x", **wrong)) == errno.EINVAL, wrong
    assert number(lambda: SharedFile(world, "x", soft_limit="1e6TB")) == errno.ENOSPC


def test_records_are_those_of_a_dictionary(world):
    random = np.random.default_rng(3)
    model = {}
    with RecordFile(world, "vectors", 50) as records:
        for _ in range(500):
            k = int(random.integers(50))
            if random.random() < 0.1:
                del records[k]
                model.pop(k, None)
            else:
                model[k] = random.bytes(int(random.integers(5000)))
                records[k] = model[k]
        assert {k: records[k] for k in range(50) if k in records} == model
        assert {k: records.size(k) for k in model} == {k: len(each) for k, each in model.items()}
        assert len(records) == 50


def test_records_are_read_ahead(world):
    with RecordFile(world, "ahead", 10, typical_record=8000) as records:
        for k in range(10):
            records.put_async(k, np.full(100 * k, k))
        records.sync()
        buffers = [np.zeros(records.capacity(k), np.uint8) for k in range(10)]
        requests = [records.get_into_async(k, buffer) for k, buffer in enumerate(buffers)]
        for k, (request, buffer) in enumerate(zip(requests, buffers, strict=True)):
            size = request.wait()
            assert np.array_equal(buffer[:size].view(np.int64), np.full(100 * k, k))


def test_records_that_are_not_there(world):
    with RecordFile(world, "none", 5) as records:
        assert 3 not in records and records.size(3) is None and records.capacity(3) is None
        assert number(lambda: records[3]) == errno.ENOENT
        assert number(lambda: records.put(5, b"")) == errno.EINVAL
        records[3] = b"abc"
        assert number(lambda: records.get_into(3, bytearray(2))) == errno.EMSGSIZE
    assert number(lambda: RecordFile(world, "none", 0)) == errno.EINVAL


def test_a_killed_process_leaves_nothing_after_the_next_start(tmp_path):
    program = f"""
import os, signal, numpy as np, outcore
world = outcore.World("self", scratch={str(tmp_path)!r})
file = outcore.SharedFile(world, "big")
file.write(np.zeros(1 << 20))
records = outcore.RecordFile(world, "records", 10)
records[0] = bytes(1000)
os.kill(os.getpid(), signal.SIGKILL)
"""
    answer = subprocess.run([sys.executable, "-c", program], check=False)
    assert answer.returncode == -signal.SIGKILL
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]
    assert left == []  # the files have no names
    with World("self", scratch=tmp_path) as world, SharedFile(world, "next") as file:
        file.write(b"x")
        assert len(os.listdir(tmp_path)) == 1  # the directory of this process alone


JOB = """
import os, signal, sys, numpy as np, outcore
world = outcore.World(scratch=sys.argv[1], nodes=sys.argv[2])
file = outcore.SharedFile(world, "big", placement="local")
file.write(np.zeros(1 << 16), world.rank << 20)
world.barrier()
print("written", flush=True)
world.barrier()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.launcher
@pytest.mark.parametrize("nodes", ["hosts", "processes"])
def test_a_killed_job_leaves_nothing_after_the_next_start(tmp_path, nodes):
    command = [launch.find_launcher(), "-n", "2", sys.executable, "-c", JOB, tmp_path, nodes]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    assert answer.stdout.count("written") == 2, answer.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"] == []
    with World("self", scratch=tmp_path) as world, SharedFile(world, "next") as file:
        file.write(b"x")
        assert len(os.listdir(tmp_path)) == 1


def test_a_file_that_is_let_go_closes(world):
    file = SharedFile(world, "dropped")
    request = file.write_async(np.ones(1000))
    del file
    request.wait()
    del request
    with outcore.SharedFile(world, "next") as other:
        other.write(b"x")
