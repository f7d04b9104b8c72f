"""A loss of power while integrals and tensors are kept: the next run finds them or recomputes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyscf")

RECORDER = Path(__file__).resolve().parents[3] / "build" / "dev" / "tests" / "liboutcore_crash_recorder.so"
JOB = Path(__file__).parents[1] / "crash_kept.py"

# In CI a few; OUTCORE_CRASH_IMAGES=1000 for many.
IMAGES = int(os.environ.get("OUTCORE_CRASH_IMAGES", "20"))


@pytest.mark.skipif(not RECORDER.exists(), reason="the C++ tests are not built")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="something else stands before the C library")
@pytest.mark.timeout(300 + 3 * IMAGES)
@pytest.mark.parametrize("what", ["integrals", "tensors"])
def test_the_energy_after_a_loss_of_power_is_that_of_a_run_from_scratch(what):
    done = subprocess.run(
        [sys.executable, JOB, what, str(IMAGES)],
        env=os.environ | {"LD_PRELOAD": str(RECORDER), "OUTCORE_ENGINE": "threads"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
