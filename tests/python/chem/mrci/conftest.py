"""Cases of Full-CI tests are those of this folder too; PySCF and BLAS use one thread."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "ci"))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    try:
        from pyscf import lib
    except ImportError:
        yield
        return
    from outcore.parallel.team import blas_of_one_thread

    before = lib.num_threads()
    lib.num_threads(1)
    with blas_of_one_thread():
        yield
    lib.num_threads(before)
