"""If one process cannot start a thread, all get an error that names it: none waits for ever."""

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

ARRAYS, METHODS = (Path(__file__).with_name(f"scarce_{name}.py") for name in ("threads", "methods"))
SCARCE = Path(__file__).resolve().parents[3] / "build" / "dev" / "tests" / "liboutcore_scarce.so"


def runs_of(program: Path, place: Path) -> list[dict[str, Any]]:
    """The runs of a program on 2 processes."""
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", sys.executable, str(program), str(place)],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        env={**os.environ, "LD_PRELOAD": str(SCARCE)},
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    return [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.mark.skipif(not SCARCE.exists(), reason="the C++ tests were not built")
def test_a_thread_that_a_method_cannot_start_at_one_process_is_an_error_of_all(tmp_path: Path) -> None:
    pytest.importorskip("pyscf")
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs_of(METHODS, tmp_path):
        runs[run["method"]].append(run)
    assert len(runs) == 6
    for *failed, last in runs.values():
        assert last["said"] == pytest.approx([last["wanted"]] * 2, abs=1e-8)
        assert failed
        for run in failed:
            one, other = run["said"]
            assert one == other
            assert re.match(rf"rank {run['rank']}: start the thread outcore-\S+:", one)


@pytest.mark.skipif(not SCARCE.exists(), reason="the C++ tests were not built")
def test_a_thread_that_one_process_cannot_start_is_an_error_of_all(tmp_path: Path) -> None:
    runs: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for run in runs_of(ARRAYS, tmp_path):
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
