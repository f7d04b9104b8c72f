"""Tests of methods, many in one process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from outcore.job.resources import trim_heap


@pytest.fixture(autouse=True, scope="module")
def held_memory() -> Iterator[None]:
    """Gives back what the tests of a module have freed: a limit of memory counts what the process holds."""
    yield
    gc.collect()
    trim_heap()
