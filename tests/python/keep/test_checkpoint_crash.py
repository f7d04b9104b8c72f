"""A loss of power while checkpoints are saved: there is always a complete one, and each sync is needed for
that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RECORDER = ROOT / "build" / "dev" / "tests" / "liboutcore_crash_recorder.so"
JOB = Path(__file__).parents[1] / "crash_checkpoint.py"

# In CI a few; OUTCORE_CRASH_IMAGES=10000 for many.
IMAGES = int(os.environ.get("OUTCORE_CRASH_IMAGES", "100"))

pytestmark = [
    pytest.mark.skipif(not RECORDER.exists(), reason="the C++ tests are not built"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="something else stands before the C library"),
]


def look(what: str, images: int) -> None:
    done = subprocess.run(
        [sys.executable, JOB, what, str(images)],
        env=os.environ | {"LD_PRELOAD": str(RECORDER), "OUTCORE_ENGINE": "threads"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_images_are_made_of_what_io_uring_writes():
    done = subprocess.run(
        [sys.executable, JOB, "saves", "1"],
        env=os.environ | {"LD_PRELOAD": str(RECORDER), "OUTCORE_ENGINE": "uring"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "what io_uring writes is not recorded" in done.stderr


@pytest.mark.timeout(120 + IMAGES)
def test_after_a_loss_of_power_there_is_a_complete_checkpoint():
    look("saves", IMAGES)


@pytest.mark.timeout(120 + IMAGES)
def test_a_job_that_goes_on_after_a_kill_keeps_what_it_found():
    look("killed", IMAGES)


@pytest.mark.timeout(300)
def test_each_sync_of_saving_is_needed():
    look("needed", 300)
