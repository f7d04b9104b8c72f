"""PySCF and BLAS with one thread: their threads wait for each other in a loop, which is slow beside other tests."""

from __future__ import annotations

import pytest


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
