"""Every place of an extended array passes the conformance suite, at one process."""

import pytest

import outcore
from outcore.conformance import backends


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


@pytest.mark.parametrize("where", ["auto", "process", "node", "global", "disk"])
@pytest.mark.parametrize("check", backends.CHECKS, ids=lambda each: each.__name__)
def test_conformance(world, where, check):
    check(world, backends.make_at(world, where))
