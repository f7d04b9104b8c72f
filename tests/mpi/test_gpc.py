"""Procedure calls between processes, on one node and with each process a node of its own."""

from __future__ import annotations

import errno
import threading

import numpy as np
import pytest

import outcore
from outcore.base.errors import OutcoreError


@pytest.fixture(params=["hosts", "processes"])
def world(comm, request):
    with outcore.World(nodes=request.param, memory="200MB") as world:
        yield world


def reply_of(caller, header, payload):
    return payload.view(np.int64) + int(header)


@pytest.mark.parametrize("count", [0, 1, 100, 1000, 300_000])
def test_calls_of_all_to_all(world, count):
    world.register("add", reply_of)
    sent = np.arange(count) + world.rank
    results = np.zeros((world.size, count), np.int64)
    requests = [
        world.call(process, "add", str(process).encode(), sent, reply=results[process])
        for process in range(world.size)
    ]
    for request in requests:
        request.wait()
    assert np.array_equal(results, sent + np.arange(world.size)[:, None])
    world.barrier()


@pytest.mark.parametrize("count", [1000, 40_000, 300_000])
def test_payloads_and_replies_in_arrays_that_processes_share(world, count):
    """Also arrays of a group, which targets outside of it do not see."""
    world.register("add", reply_of)
    with (
        world.split(world.rank // 2) as group,
        outcore.GlobalArray(world, (world.size * count,), np.int64) as common,
        outcore.GlobalArray(group, (group.size * 2 * count,), np.int64) as of_group,
    ):
        for sent, reply in ((common.local, of_group.local), (of_group.local, common.local)):
            payload, into = sent.reshape(-1)[:count], reply.reshape(-1)[-count:]
            for process in range(world.size):
                payload[...] = np.arange(count) + world.rank
                into[...] = -1
                world.call(process, "add", str(process).encode(), payload, reply=into).wait()
                assert np.array_equal(into, np.arange(count) + world.rank + process)
                assert np.array_equal(payload, np.arange(count) + world.rank)
        world.barrier()


@pytest.mark.parametrize("count", [1000, 300_000])
def test_a_reply_may_take_the_place_of_its_payload(world, count):
    world.register("reversed", lambda caller, header, payload: payload.view(np.int64)[::-1])
    with outcore.GlobalArray(world, (world.size * count,), np.int64) as array:
        values = array.local.reshape(-1)
        values[...] = np.arange(count)
        world.call(world.size - 1, "reversed", payload=values, reply=values).wait()
        assert np.array_equal(values, np.arange(count)[::-1])
        world.barrier()


def test_a_payload_is_not_to_be_changed(world):
    world.register("change", lambda caller, header, payload: payload.fill(0))
    with outcore.GlobalArray(world, (world.size, 10_000)) as array:
        array.local[...] = 1
        with pytest.raises(OutcoreError, match="read-only"):
            world.call(world.size - 1, "change", payload=array.local.reshape(-1)).wait()
        assert np.all(array.local == 1)
        world.barrier()


def test_a_target_that_computes_serves(comm, world):
    """The target makes no call of the library, nor of MPI, until the reply has arrived."""
    served = threading.Event()

    def notice(caller, header, payload):
        served.set()
        return b"served"

    world.register("notice", notice)
    if world.rank == 0:
        assert world.call(world.size - 1, "notice").wait().tobytes() == b"served"
    if world.rank == world.size - 1:
        while not served.is_set():
            pass
    world.barrier()


def test_thousands_of_calls_are_outstanding(world):
    total = 0
    lock = threading.Lock()

    def add(caller, header, payload):
        nonlocal total
        with lock:
            total += int(header)

    number = world.register("add", add)
    requests = [world.call(i % world.size, number, str(i).encode()) for i in range(2000)]
    for request in requests:
        request.wait()
    world.barrier()
    assert total == world.size * sum(range(world.rank, 2000, world.size))
    world.barrier()


def test_bulk_of_many_callers_at_one_target(world):
    def count(caller, header, payload):
        return np.array([np.count_nonzero(payload), payload[0]])

    world.register("count", count)
    sent = np.full(8 << 20, world.rank + 1, np.uint8)
    requests = [world.call(0, "count", payload=sent) for _ in range(5)]
    for request in requests:
        assert request.wait().view(np.int64).tolist() == [8 << 20, world.rank + 1]
    world.barrier()


def test_procedures_call_on(world):
    """Around the ring: each calls the next process, which calls the one after it."""

    def sum_from_here(caller, header, payload):
        left = int(header)
        if left == 0:
            return np.array(world.rank)
        rest = world.call((world.rank + 1) % world.size, "sum", str(left - 1).encode()).wait()
        return np.array(world.rank + rest.view(np.int64)[0])

    world.register("sum", sum_from_here)
    total = world.call(world.rank, "sum", str(world.size - 1).encode()).wait()
    assert total.view(np.int64)[0] == sum(range(world.size))
    world.barrier()


def test_remote_reduction_of_a_patch(world):
    with outcore.GlobalArray(world, (40, 30)) as array:
        array.local[...] = 1.0 + world.rank
        operations = {b"sum": np.sum, b"min": np.min, b"max": np.max, b"dot": lambda x: np.vdot(x, x)}
        world.register("reduce", lambda caller, header, payload: np.array(operations[header](array.local)))
        world.barrier()
        found = {
            name: [world.call(p, "reduce", name).wait().view(np.float64)[0] for p in range(world.size)]
            for name in operations
        }
        world.barrier()
        assert sum(found[b"sum"]) == pytest.approx(array[:, :].sum(), rel=1e-15)
        assert (min(found[b"min"]), max(found[b"max"])) == (1.0, float(world.size))
        assert sum(found[b"dot"]) == pytest.approx((array[:, :] ** 2).sum(), rel=1e-15)
        world.unregister("reduce")


def test_the_error_of_a_procedure_is_raised_at_its_caller_only(world):
    def fails(caller, header, payload):
        raise ValueError(f"process {caller} asked")

    world.register("fails", fails)
    target = (world.rank + 1) % world.size
    with pytest.raises(OutcoreError, match=f"process {world.rank} asked") as caught:
        world.call(target, "fails").wait()
    assert caught.value.rank == target
    world.barrier()


def test_registering_something_else_is_an_error_everywhere(world):
    with pytest.raises(OutcoreError) as caught:
        world.register(f"name {world.rank}", reply_of)
    assert caught.value.errno == errno.EINVAL
    world.register("name", reply_of)


def test_closing_early_serves_the_others(comm):
    with outcore.World(memory="100MB") as world:
        world.register("add", reply_of)
        if world.rank > 0:
            for _ in range(50):
                reply = world.call(0, "add", b"1", np.arange(10_000)).wait()
                assert reply.view(np.int64)[-1] == 10_000


def test_a_payload_that_is_kept_does_not_keep_the_world_from_closing(comm):
    kept = []

    def keep(caller, header, payload):
        kept.append((caller, payload.view(np.float64)))
        return np.array([len(payload)])

    with (
        outcore.World(memory="100MB", nodes="processes") as world,
        outcore.GlobalArray(world, (world.size * 50_000,)) as array,
    ):
        array.local[...] = world.rank + 1.0
        world.register("keep", keep)
        reply = world.call((world.rank + 1) % world.size, "keep", payload=array.local).wait()
        assert reply.view(np.int64)[0] == 400_000
        world.barrier()
    ((caller, values),) = kept
    assert np.array_equal(values, np.full(50_000, caller + 1.0))
