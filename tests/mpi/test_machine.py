"""The rate of the network: one for all processes, measured once."""

import math

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
