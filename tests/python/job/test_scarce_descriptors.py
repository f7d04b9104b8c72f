"""If one process cannot open a file, all get the same error: none waits for ever, or goes on alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from outcore.job import launch

pytestmark = pytest.mark.launcher

PROGRAMS = Path(__file__).with_name("scarce_descriptors.py")


def test_a_process_without_free_descriptors_is_an_error_of_all(tmp_path: Path) -> None:
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", sys.executable, str(PROGRAMS), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr[-4000:]
    runs: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
    for run in map(json.loads, answer.stdout.splitlines()):
        runs[run["program"], run["rank"]].append(run["said"])
    assert len(runs) == 6
    for (_, rank), (*failed, last) in runs.items():
        assert last == ["ok", "ok"]
        assert failed
        for one, other in failed:
            assert one == other
            assert one.startswith(f"rank {rank}: ")
            assert "Too many open files" in one
    first = [said[0] for said in runs["memory", 0]]
    assert "cannot be loaded" in first[0]  # else the others wait for it in MPI
    assert any("find the name of this host" in said for said in first)  # else there are two nodes, in silence
