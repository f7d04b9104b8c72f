"""Settings of all tests: rates of the machine are measured for them alone, and they share its cores."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator

import pytest

if "OUTCORE_CACHE" not in os.environ:
    os.environ["OUTCORE_CACHE"] = tempfile.mkdtemp(prefix="outcore-test-cache-")
    atexit.register(shutil.rmtree, os.environ["OUTCORE_CACHE"], ignore_errors=True)

# Threads that wait for work, of OpenMP and of OpenBLAS, do not spin on a core that another test could have.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# A shell starts background jobs with Ctrl-C ignored, and programs of the tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Tests and modules are a million objects, which stay: collections of garbage need not go through them."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """The end of the process collects everything."""
    gc.unfreeze()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PySCF and BLAS use one thread: several wait for each other in loops, which is slow beside other tests."""
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


@pytest.fixture
def short_surveys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of two-electron integrals, by which a run chooses what it keeps, are small: enough for any energy."""
    monkeypatch.setattr("outcore.chem.hf.plan._SURVEY_SECONDS", 0.1)
