"""Settings of all tests: rates of the machine are measured for them alone, and they share its cores."""

import atexit
import gc
import os
import shutil
import signal
import tempfile

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
