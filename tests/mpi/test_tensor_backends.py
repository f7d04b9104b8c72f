"""Places of extended arrays that several processes write to pass the conformance suite."""

import pytest

import outcore
from outcore.conformance import backends


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="128MB", nodes=request.param) as made:
        yield made


@pytest.mark.parametrize("where", ["auto", "node", "global", "disk"])
@pytest.mark.parametrize("check", backends.CHECKS, ids=lambda each: each.__name__)
def test_conformance(world, where, check):
    if where == "node" and world.nodes > 1:
        pytest.skip("each node has a copy: no single tile can be put")
    check(world, backends.make_at(world, where))
