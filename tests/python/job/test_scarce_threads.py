"""A thread that one process cannot start is an error of all, which names it: nobody waits for ever."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from outcore.job import launch

pytestmark = pytest.mark.launcher

PROGRAM = Path(__file__).with_name("scarce_threads.py")
SCARCE = Path(__file__).resolve().parents[3] / "build" / "dev" / "tests" / "liboutcore_scarce.so"


@pytest.mark.skipif(not SCARCE.exists(), reason="the C++ tests were not built")
def test_a_thread_that_one_process_cannot_start_is_an_error_of_all(tmp_path: Path) -> None:
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", sys.executable, str(PROGRAM), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        env={**os.environ, "LD_PRELOAD": str(SCARCE)},
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    runs: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for line in answer.stdout.splitlines():
        run = json.loads(line)
        runs[run["program"], run["rank"]].append(run)
    assert len(runs) == 6
    names: set[str] = set()
    for (program, rank), found in runs.items():
        assert found[-1]["said"] == ["ok", "ok"]
        failed = [run["said"] for run in found if run["said"] != ["ok", "ok"]]
        assert failed
        for said in failed:
            assert program == "calling" or said[0] == said[1]  # a call fails where it was made
            named = [re.match(r"rank (\d): start the thread (outcore-\S+):", each) for each in said]
            assert any(each and int(each[1]) == rank for each in named), said
            names |= {each[2] for each in named if each}
    assert names >= {
        "outcore-arrays",
        "outcore-chunks",
        "outcore-copier",
        "outcore-crew",
        "outcore-feeder",
        "outcore-gpc",
        "outcore-gpc-io",
        "outcore-mpi",
        "outcore-team",
        "outcore-wake-up",
    }
