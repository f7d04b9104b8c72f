"""Random statements over extended arrays, and random recorded programs, at one process and killed; more of them by
OUTCORE_PROGRAMS=2000 or `python tests/random_programs.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conformance import random_programs
from conformance.many import many
from conformance.random_statements import RandomStatements

import outcore

PROGRAMS = int(os.environ.get("OUTCORE_PROGRAMS", "40"))
FEW = PROGRAMS if "OUTCORE_PROGRAMS" in os.environ else 20
"""So many of them are not long."""
GROUP = 10
COMMAND = Path(__file__).parents[2] / "random_programs.py"


@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("first", many(range(0, PROGRAMS, GROUP), FEW))
def test_statements(tmp_path, first):
    with outcore.World("self", scratch=tmp_path, memory="128MB") as world:
        for seed in range(first, first + GROUP):
            used = world.budget.used_bytes
            RandomStatements(world, seed).run(12)
            assert world.budget.used_bytes <= max(used, 30 << 20)


@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("first", many(range(0, PROGRAMS // 5, 2), FEW // 5))
def test_recorded_programs(tmp_path, first):
    with outcore.World("self", scratch=tmp_path, memory="128MB") as world:
        for seed in range(first, first + 2):
            random_programs.run(world, seed)
            assert world.budget.used_bytes <= 30 << 20


@pytest.mark.launcher
@pytest.mark.timeout(1200)
def test_killed_programs_go_on_on_other_processes_with_other_memory():
    last = str(20_000 + max(1, FEW // 15))
    done = subprocess.run(
        [sys.executable, COMMAND, "20000", last, "--processes", "2", "--kills", "0.7"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " 0 failed" in done.stdout
