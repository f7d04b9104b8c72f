"""The back-end of the page on extending Outcore passes the conformance suite on several processes."""

import re
from functools import partial
from pathlib import Path

import pytest

from outcore import Array, World
from outcore.conformance import backends
from outcore.extend import add_backend

PAGE = Path(__file__).parents[2] / "docs" / "program" / "extend.md"


def shown():
    """The class from the page, without the code that uses it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    block = next(each for each in blocks if "FileTiles" in each)
    names = {}
    exec(block.partition("\nadd_backend(")[0], names)
    return names["FileTiles"]


FileTiles = shown()


@pytest.mark.parametrize("check", backends.CHECKS, ids=lambda each: each.__name__)
def test_conformance(comm, shared_tmp_path, check):
    add_backend("files", FileTiles)
    with World(comm, scratch=shared_tmp_path, memory="64MB") as world:
        if check is backends.check_it_moves_everywhere:
            check(world, backends.make_at(world, "files"))
        else:
            check(world, partial(Array, world, where="files", directory=str(shared_tmp_path)))
    assert not list(shared_tmp_path.glob("tmp*"))
