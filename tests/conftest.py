"""Of all tests: rates of the machine are measured for them alone."""

import atexit
import os
import shutil
import tempfile

if "OUTCORE_CACHE" not in os.environ:
    os.environ["OUTCORE_CACHE"] = tempfile.mkdtemp(prefix="outcore-test-cache-")
    atexit.register(shutil.rmtree, os.environ["OUTCORE_CACHE"], ignore_errors=True)
