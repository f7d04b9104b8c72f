"""Tests of methods, many in one process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from outcore.job import resources

FRESH_BYTES = 300 << 20
"""About what a process holds that has imported PySCF and Outcore, and nothing else."""

_resident_bytes = resources.resident_bytes


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Lets a limit of memory mean the same for each test: what earlier tests left in the process does not count."""
    left = max(0, _resident_bytes() - FRESH_BYTES)
    resources.resident_bytes = lambda: max(0, _resident_bytes() - left)


@pytest.fixture(autouse=True)
def surveys(request: pytest.FixtureRequest) -> None:
    """Those of modules that test what a sample says are whole ones."""
    if request.module.__name__ not in ("test_estimate", "test_plan", "test_scf", "test_scf_command"):
        request.getfixturevalue("short_surveys")


@pytest.fixture(autouse=True, scope="module")
def pyscf_of_one_thread(one_thread: None) -> None:
    """PySCF and BLAS use one."""


@pytest.fixture(autouse=True, scope="module")
def held_memory() -> Iterator[None]:
    """Gives back what the tests of a module have freed."""
    yield
    gc.collect()
    resources.trim_heap()


@pytest.fixture
def no_work_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least memory of plans for three-index integrals has no room for libraries and only a little for other
    work space. So integrals of small molecules lie on disk, and bounds hold for less memory than a run has."""
    monkeypatch.setattr("outcore.chem.ri.plan.blas_bytes", lambda _: 0)
    for name, value in {"_CACHE_BYTES": 64 << 10, "_CHUNK_BYTES": 16 << 10, "_MAX_ROWS": 1}.items():
        monkeypatch.setattr(f"outcore.chem.ri.plan.{name}", value)
