"""A process that may not use io_uring has an engine of threads, beside others that have io_uring."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from outcore import _core
from outcore.job import launch

pytestmark = pytest.mark.launcher

PROGRAM = Path(__file__).with_name("refused_io_uring.py")


@pytest.mark.skipif(_core.engine_name() != "uring", reason="there is no io_uring here")
def test_one_process_of_several_may_be_without_io_uring(tmp_path: Path) -> None:
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", sys.executable, str(PROGRAM), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    one, other = json.loads(answer.stdout)
    assert one[0] == "uring" and other[0] == "threads"
    assert "Operation not permitted" in other[1]
    assert one[2] == other[2] == 2.0
