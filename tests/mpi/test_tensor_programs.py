"""Random statements over extended arrays, and random recorded programs, the same on all processes, against NumPy;
OUTCORE_PROGRAMS=500 for the long form."""

import os

import pytest
from conformance import random_programs
from conformance.many import many
from conformance.random_statements import RandomStatements

import outcore

PROGRAMS = int(os.environ.get("OUTCORE_PROGRAMS", "24"))
FEW = PROGRAMS if "OUTCORE_PROGRAMS" in os.environ else 12
"""So many of them are not long."""
GROUP = 4


@pytest.fixture
def world_of(comm, shared_tmp_path):
    """A world, by the number of a seed: of one node or of many."""

    def world(first):
        nodes = "processes" if first % (2 * GROUP) else "hosts"
        return outcore.World(comm, scratch=shared_tmp_path, memory="128MB", nodes=nodes)

    return world


@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("first", many(range(10_000, 10_000 + PROGRAMS, GROUP), FEW))
def test_statements(world_of, first):
    with world_of(first) as world:
        for seed in range(first, first + GROUP):
            RandomStatements(world, seed).run(10)


@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("first", many(range(30_000, 30_000 + PROGRAMS // 4, 2), FEW // 4))
def test_recorded_programs(world_of, first):
    with world_of(first) as world:
        for seed in range(first, first + 2):
            random_programs.run(world, seed, ways=(0, 1)[: 1 + seed % 2])
