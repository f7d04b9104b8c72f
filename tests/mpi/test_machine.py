"""The rate of the network: one for all processes, measured once."""

import math

import outcore
from outcore.job import machine, rate_cache
from outcore.job.world import shared


def test_the_rate_of_the_network_is_the_same_at_all_and_measured_once(comm, monkeypatch, shared_tmp_path):
    monkeypatch.setenv("OUTCORE_CACHE", str(shared_tmp_path))
    rate_cache.forget()
    world = shared(comm)
    rates = comm.allgather(machine.network(world))
    assert len(set(rates)) == 1
    if comm.size == 1:
        assert rates[0] == math.inf
        return
    assert 0 < rates[0] < math.inf

    def fail(_world):
        raise AssertionError("measured again")

    monkeypatch.setattr(machine, "_network", fail)
    rate_cache.forget()  # the file knows
    assert machine.network(world) == rates[0]
    rate_cache.forget()


def test_a_network_that_there_is_no_memory_to_measure_is_measured_later(comm, monkeypatch, shared_tmp_path):
    monkeypatch.setenv("OUTCORE_CACHE", str(shared_tmp_path))
    rate_cache.forget()
    with outcore.World(comm, memory="100MB") as world:
        taken = (
            world.budget.limit_bytes - world.budget.used_bytes - 1000 if world.rank == world.size - 1 else 0
        )
        world.budget.reserve(taken, "a test")
        rates = comm.allgather(machine.network(world))
        world.budget.release(taken)
        if comm.size == 1:
            assert rates == [math.inf]
            return
        assert rates == [100e6] * comm.size  # of a slow one
        assert world.broadcast(rate_cache.path().exists()) is False
        machine.network(world)
        assert world.broadcast(rate_cache.path().exists()) is True
    rate_cache.forget()


def test_between_nodes_each_process_gets_from_one_of_the_next_node(comm):
    for nodes in ("hosts", "processes"):
        with outcore.World(comm, nodes=nodes) as world:
            asked = comm.allgather(machine._next(world))
            assert sorted(asked) == list(range(comm.size))
            of = comm.allgather(world.node)
            assert of[asked[comm.rank]] == (world.node + 1) % world.node_count
