"""Procedure calls from Python, in a world of one process; tests/mpi/test_gpc.py has those between
processes."""

import errno
import gc
import threading

import numpy as np
import pytest

import outcore
from outcore import OutcoreError


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", memory="64MB", scratch=tmp_path) as world:
        yield world


def test_header_payload_and_reply(world):
    seen = []

    def concatenate(caller, header, payload):
        seen.append((caller, header, payload.dtype, payload.shape))
        return header + payload.tobytes()

    world.register("concatenate", concatenate)
    reply = world.call(0, "concatenate", b"head", np.arange(3.0)).wait()
    assert reply.tobytes() == b"head" + np.arange(3.0).tobytes()
    assert seen == [(0, b"head", np.dtype(np.uint8), (24,))]


def test_reply_into_a_buffer(world):
    world.register("squares", lambda caller, header, payload: payload.view(np.float64) ** 2)
    result = np.zeros(100_000)
    reply = world.call(0, "squares", payload=np.arange(100_000.0), reply=result).wait()
    assert reply.ctypes.data == result.ctypes.data
    assert np.array_equal(result, np.arange(100_000.0) ** 2)


def test_reply_of_any_strides(world):
    world.register("reversed", lambda caller, header, payload: payload[::-1])
    assert world.call(0, "reversed", payload=b"abc").wait().tobytes() == b"cba"


def test_no_reply(world):
    world.register("nothing", lambda caller, header, payload: None)
    assert world.call(0, "nothing").wait().size == 0


def test_payload_outlives_the_call(world):
    kept = []
    world.register("keep", lambda caller, header, payload: kept.append(payload))
    world.call(0, "keep", payload=np.arange(50_000)).wait()
    gc.collect()
    assert np.array_equal(kept[0].view(np.int64), np.arange(50_000))


def test_many_outstanding(world):
    total = []
    lock = threading.Lock()

    def add(caller, header, payload):
        with lock:
            total.append(int(header))

    number = world.register("add", add)
    requests = [world.call(0, number, str(i).encode()) for i in range(3000)]
    for request in requests:
        request.wait()
    assert sum(total) == sum(range(3000))


def test_requests_that_are_dropped_are_served(world):
    sums = []
    world.register("sum", lambda caller, header, payload: sums.append(payload.view(np.float64).sum()))
    for _ in range(20):
        world.call(0, "sum", payload=np.ones(100_000))
    gc.collect()
    world.unregister("sum")  # waits for those that have begun
    world.close()
    assert set(sums) == {100_000.0}


def test_exception_of_the_procedure(world):
    def fails(caller, header, payload):
        raise KeyError("no such orbital")

    world.register("fails", fails)
    request = world.call(0, "fails")
    with pytest.raises(OutcoreError, match=r"procedure 'fails'.*KeyError.*no such orbital"):
        request.wait()


def test_error_of_the_procedure_keeps_what_it_says(world):
    def fails(caller, header, payload):
        raise OutcoreError(errno.ENOSPC, "write of a chunk", path="/scratch/x", offset=4096, size_bytes=512)

    world.register("fails", fails)
    with pytest.raises(OutcoreError) as caught:
        world.call(0, "fails").wait()
    assert caught.value.errno == errno.ENOSPC
    assert (caught.value.path, caught.value.offset, caught.value.size_bytes) == ("/scratch/x", 4096, 512)


def test_reply_that_is_no_buffer(world):
    world.register("wrong", lambda caller, header, payload: 17)
    with pytest.raises(OutcoreError, match="buffer protocol"):
        world.call(0, "wrong").wait()


def test_reply_larger_than_promised(world):
    world.register("large", lambda caller, header, payload: bytes(1000))
    with pytest.raises(OutcoreError, match="room for 999") as caught:
        world.call(0, "large", max_reply_bytes=999).wait()
    assert caught.value.errno == errno.EMSGSIZE
    assert world.call(0, "large", max_reply_bytes=1000).wait().size == 1000


@pytest.mark.parametrize(
    ("process", "procedure", "header", "number"),
    [(1, "f", b"", errno.EINVAL), (-1, "f", b"", errno.EINVAL), (0, "g", b"", errno.ENOENT),
     (0, "f", bytes(4096), errno.EMSGSIZE)],
)  # fmt: skip
def test_calls_that_cannot_be(world, process, procedure, header, number):
    world.register("f", lambda caller, header, payload: None)
    with pytest.raises(OutcoreError) as caught:
        world.call(process, procedure, header)
    assert caught.value.errno == number


def test_name_taken_and_released(world):
    world.register("f", lambda caller, header, payload: b"1")
    with pytest.raises(OutcoreError, match="there is one of this name"):
        world.register("f", lambda caller, header, payload: b"2")
    world.unregister("f")
    world.register("f", lambda caller, header, payload: b"2")
    assert world.call(0, "f").wait().tobytes() == b"2"


def test_read_only_reply_buffer(world):
    world.register("f", lambda caller, header, payload: None)
    with pytest.raises(ValueError, match="read-only"):
        world.call(0, "f", reply=b"123")


def test_call_after_close(tmp_path):
    world = outcore.World("self", scratch=tmp_path)
    number = world.register("f", lambda caller, header, payload: None)
    world.close()
    with pytest.raises(OutcoreError) as caught:
        world.call(0, number)
    assert caught.value.errno == errno.EBADF
