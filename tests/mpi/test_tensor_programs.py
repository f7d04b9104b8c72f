"""Random programs over extended arrays, the same on all processes, against NumPy; OUTCORE_PROGRAMS=500 for the long
form."""

import os

import pytest
from conformance.random_statements import RandomStatements

import outcore

PROGRAMS = int(os.environ.get("OUTCORE_PROGRAMS", "24"))
GROUP = 4


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(10_000, 10_000 + PROGRAMS, GROUP))
def test_programs(comm, shared_tmp_path, first):
    nodes = "processes" if first % (2 * GROUP) else "hosts"
    with outcore.World(comm, scratch=shared_tmp_path, memory="128MB", nodes=nodes) as world:
        for seed in range(first, first + GROUP):
            RandomStatements(world, seed).run(10)
