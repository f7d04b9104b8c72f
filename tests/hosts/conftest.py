"""Tests on several hosts; see several.py."""

from __future__ import annotations

import pytest
from several import Hosts, missing


@pytest.fixture(scope="session")
def hosts(tmp_path_factory):
    """Two hosts."""
    if reason := missing():
        pytest.skip(reason)
    made = Hosts(2, tmp_path_factory.mktemp("hosts"))
    yield made
    made.close()
