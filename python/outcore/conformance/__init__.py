"""What every codec and every place of tiles must do, those of other packages included. Needs pytest.

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
