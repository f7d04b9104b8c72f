"""Random programs over extended arrays at one process; OUTCORE_PROGRAMS=2000 for the long form."""

import os

import pytest
from conformance.random_statements import RandomStatements

import outcore

PROGRAMS = int(os.environ.get("OUTCORE_PROGRAMS", "40"))
GROUP = 10


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(0, PROGRAMS, GROUP))
def test_programs(tmp_path, first):
    with outcore.World("self", scratch=tmp_path, memory="128MB") as world:
        for seed in range(first, first + GROUP):
            used = world.budget.used_bytes
            RandomStatements(world, seed).run(12)
            assert world.budget.used_bytes <= max(used, 30 << 20)
