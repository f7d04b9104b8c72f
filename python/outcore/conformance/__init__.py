"""Tests that every codec and every backend (place of tiles) must pass, also those of other packages. Needs pytest.

import pytest
from outcore.conformance import backends, codecs

@pytest.mark.parametrize("check", codecs.CHECKS)
def test_codec(check):
    check(MyCodec())

@pytest.mark.parametrize("check", backends.CHECKS)
def test_backend(check):
    with outcore.World("self") as world:
        check(world, backends.make_at(world, "mine"))
"""
