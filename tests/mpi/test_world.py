"""World over MPI: both with the processes of a host as one node, and with each as a node of its own."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore import _core
from outcore.base.errors import OutcoreError


@pytest.fixture(params=["hosts", "processes"])
def nodes(request, monkeypatch):
    monkeypatch.delenv("OUTCORE_NODES", raising=False)  # a resource of the whole job, perhaps
    return request.param


@pytest.fixture
def world(comm, nodes):
    with outcore.World(nodes=nodes, memory="100MB") as world:
        yield world


def same_everywhere(comm, text: str) -> bool:
    return comm.allgather(text) == [text] * comm.size


def test_it_is_the_whole_job(comm, world, nodes):
    assert (world.rank, world.size) == (comm.rank, comm.size)
    assert world.description.startswith("mpi: ")
    assert world.nodes == (1 if nodes == "hosts" else comm.size)
    assert world.node == (0 if nodes == "hosts" else comm.rank)
    assert (world.node_rank, world.node_size) == ((comm.rank, comm.size) if nodes == "hosts" else (0, 1))


def test_the_environment_makes_each_process_a_node(comm, monkeypatch):
    monkeypatch.setenv("OUTCORE_NODES", "processes")
    with outcore.World() as world:
        assert world.nodes == comm.size


def test_objects_are_broadcast_and_gathered(comm, world):
    for root in range(comm.size):
        value = {"root": root, "data": list(range(1000))} if comm.rank == root else None
        assert world.broadcast(value, root)["root"] == root
    assert world.gather("x" * comm.rank) == ["x" * rank for rank in range(comm.size)]


def test_arrays_and_numbers_are_reduced(comm, world):
    ranks = np.arange(comm.size)
    assert world.all_reduce(comm.rank + 1) == sum(ranks + 1)
    assert world.all_reduce(0.5) == comm.size / 2
    assert world.all_reduce(comm.rank, "max") == comm.size - 1
    assert world.all_reduce(-comm.rank, op="min") == 1 - comm.size
    mine = np.full((3, 4), comm.rank, np.float32)[:, ::2]
    total = world.all_reduce(mine)
    assert total.dtype == np.float32
    np.testing.assert_array_equal(total, np.full((3, 2), ranks.sum()))
    assert world.all_reduce(1j * comm.rank) == 1j * ranks.sum()
    assert mine[0, 0] == comm.rank


def test_sums_have_the_same_bits_everywhere(comm, world):
    mine = np.random.default_rng(comm.rank).normal(size=10007)
    total = world.all_reduce(mine)
    assert len(set(comm.allgather(total.tobytes()))) == 1
    np.testing.assert_allclose(total, sum(comm.allgather(mine)), rtol=0, atol=1e-12)


def test_what_cannot_be_reduced_is_refused(comm, world):
    with pytest.raises(OutcoreError, match="all_reduce of <U1"):
        world.all_reduce(np.array(["a"]))
    with pytest.raises(OutcoreError, match="sum, min or max"):
        world.all_reduce(1, "mean")


def test_a_counter_gives_each_number_once(comm, world):
    counter = world.counter()
    for _ in range(2):
        mine = []
        while (task := counter.next(2)) < 1000:
            mine += [task, task + 1]
        assert sorted(task for part in comm.allgather(mine) for task in part) == list(range(1000))
        counter.reset()


def test_a_lock_is_held_by_one_at_a_time(comm, world, shared_tmp_path):
    lock = world.lock()
    path = Path(shared_tmp_path) / "number"
    if comm.rank == 0:
        path.write_text("0")
    world.barrier()
    for _ in range(20):
        with lock:
            number = int(path.read_text())
            time.sleep(0.0005)
            path.write_text(str(number + 1))
    world.barrier()
    assert int(path.read_text()) == 20 * comm.size


def test_a_step_that_fails_somewhere_fails_everywhere(comm, world):
    last = comm.size - 1
    with pytest.raises(OutcoreError) as caught, world.together("write results"):
        if comm.rank == last:
            raise OutcoreError(
                errno.ENOSPC, "write", path="/x", offset=3, size_bytes=8, detail="free: 0 bytes"
            )
    error = caught.value
    assert (error.errno, error.path, error.offset, error.rank) == (errno.ENOSPC, "/x", 3, last)
    assert (
        str(error)
        == f"rank {last}: write of 8 bytes at offset 3 of /x: No space left on device (free: 0 bytes)"
    )
    assert error.collective
    world.barrier()


def test_exceptions_of_other_kinds_say_what_they_are(comm, world):
    with pytest.raises(OutcoreError, match="ValueError: not like this") as caught, world.together("step"):
        if comm.rank == 0:
            raise ValueError("not like this")
    assert same_everywhere(comm, str(caught.value))
    if comm.rank == 0:
        assert isinstance(caught.value.__cause__, ValueError)


def test_together_is_also_a_decorator(comm, world):
    @world.together("step", 7)
    def step():
        if comm.rank == 0:
            raise FileNotFoundError(errno.ENOENT, "gone")

    with pytest.raises(OutcoreError) as caught:
        step()
    assert caught.value.errno == errno.ENOENT


def test_a_process_that_calls_something_else_is_named(comm, world):
    with pytest.raises(OutcoreError, match=f"process {comm.size - 1} called 'gather' instead") as caught:
        if comm.rank == comm.size - 1:
            world.gather(1)
        else:
            world.barrier()
    assert caught.value.errno == errno.EINVAL
    assert same_everywhere(comm, str(caught.value))


def test_a_process_with_other_arguments_is_named(comm, world):
    with pytest.raises(OutcoreError, match="came with other arguments"):
        world.all_reduce(np.zeros(3 if comm.rank == 0 else 4))
    other = comm.rank == comm.size - 1
    with (
        pytest.raises(OutcoreError, match=f"process {comm.size - 1} came with other arguments"),
        world.together("step", other),
    ):
        raise AssertionError("not reached")
    world.barrier()


def test_a_process_that_closes_early_keeps_nobody_waiting(comm, nodes):
    with outcore.World(nodes=nodes) as world:
        if comm.rank > 0:
            for _ in range(2):
                with pytest.raises(
                    OutcoreError, match="process 0 called 'close' instead" if comm.size > 2 else "clos"
                ):
                    world.barrier()
    assert world.closed


def test_options_that_one_process_gets_wrong_are_refused_by_all(comm, nodes):
    for wrong in ({"memory": "lots"}, {"memory": -1}, {"nodes": "three"}, {"scratch": "/nowhere"}):
        options = {"nodes": nodes, **(wrong if comm.rank == comm.size - 1 else {})}
        with pytest.raises(OutcoreError) as caught:
            outcore.World(**options)
        assert str(next(iter(wrong.values()))) in str(caught.value)
        assert same_everywhere(comm, str(caught.value))


def test_the_budget_is_that_of_each_process(comm, world):
    assert world.budget.limit_bytes == 100_000_000
    with pytest.raises(OutcoreError, match="of the budget of 100000000 bytes") as caught:
        world.budget.reserve(200_000_000, "a cache")
    assert caught.value.errno == errno.ENOMEM


def test_memory_that_one_process_does_not_have_is_an_error_at_all(comm, world):
    if comm.rank == comm.size - 1:
        world.budget.reserve(world.budget.limit_bytes - 32, "all but a little")
    with pytest.raises(OutcoreError, match="memory for counter of 64 bytes") as caught:
        world.counter()
    assert caught.value.errno == errno.ENOMEM
    assert same_everywhere(comm, str(caught.value))
    if comm.rank == comm.size - 1:
        world.budget.release(world.budget.limit_bytes - 32)
    assert world.counter().next(0) == 0


def test_a_process_that_computes_keeps_nobody_waiting(comm, world):
    array = outcore.GlobalArray(world, 1000)
    matrix = np.random.default_rng(0).normal(size=(100, 100))
    world.barrier()
    start = time.monotonic()
    if comm.rank == 0:
        while time.monotonic() - start < 2.0:
            matrix @ matrix
    else:
        for _ in range(20):
            array.acc(np.s_[:10], np.ones(10))
            world.flush()
            assert array[0] >= 1.0
    took = time.monotonic() - start
    assert all(each < 2.0 for each in comm.allgather(took)[1:])
    array.sync()
    np.testing.assert_array_equal(array[:10], 20.0 * (comm.size - 1))
    array.close()


def test_parts_of_a_communicator_are_worlds_of_their_own(comm, nodes):
    half = comm.Split(comm.rank % 2, -comm.rank)
    with outcore.World(half, nodes=nodes) as world:
        assert (world.rank, world.size) == (half.rank, half.size)
        members = [rank for rank in range(comm.size) if rank % 2 == comm.rank % 2]
        assert world.all_reduce(comm.rank) == sum(members)
        counter = world.counter()
        taken = world.gather([counter.next() for _ in range(10)])
        assert sorted(number for part in taken for number in part) == list(range(10 * world.size))
    half.Free()


def test_a_world_of_one_needs_no_other(comm):
    from mpi4py import MPI

    with outcore.World(MPI.COMM_SELF) as world:
        assert (world.rank, world.size) == (0, 1)
        assert world.description == "self"
        assert world.all_reduce(5) == 5


def test_worlds_one_after_another_leave_nothing_behind(comm, nodes):
    def open_and_close(count):
        for _ in range(count):
            with outcore.World(nodes=nodes) as world:
                world.counter().next()
                world.lock()
        comm.Barrier()
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    before = open_and_close(5)
    after = open_and_close(60)
    # Processes of earlier tests may end meanwhile.
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)


def test_worlds_live_beside_one_another(comm, nodes):
    with outcore.World(nodes=nodes) as first, outcore.World(nodes=nodes) as second:
        counters = first.counter(), second.counter()
        counters[0].next(5)
        first.barrier()
        second.barrier()
        assert counters[0].next(0) == 5 * comm.size
        assert counters[1].next(0) == 0


def test_a_waiting_process_sleeps(comm, world):
    used = time.process_time()
    if comm.rank == 0:
        time.sleep(1.0)
    world.barrier()
    if comm.rank != 0:
        assert time.process_time() - used < 0.2


def test_nothing_works_in_a_closed_world(comm, nodes):
    world = outcore.World(nodes=nodes)
    counter = world.counter()
    world.close()
    world.close()
    assert "closed" in repr(world)
    for call in (world.barrier, counter.next, world.counter, lambda: world.gather(1)):
        with pytest.raises(OutcoreError) as caught:
            call()
        assert caught.value.errno == errno.EBADF


def test_the_rank_of_another_process_is_named(comm):
    assert _core.error_message(5, "read", rank=3).startswith("rank 3: read")
