"""Jobs that save checkpoints are killed at random moments: there is always a complete one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import outcore

# In CI a few; OUTCORE_KILLS=200 for the full loop.
KILLS = int(os.environ.get("OUTCORE_KILLS", "12"))

JOB = """
import sys
import numpy as np
import outcore

with outcore.World(memory="500MB") as world, outcore.GlobalArray(world, (300, 400)) as g:
    cycle = int(sys.argv[2])
    while True:
        cycle += 1
        g.local[...] = cycle
        g.sync()
        arrays = {"g": g, "n": np.full((5,), cycle)}
        outcore.checkpoint.save(world, sys.argv[1], arrays, {"cycle": cycle})
        if world.rank == 0:
            print(cycle, flush=True)
"""


def run_and_kill(name, first: int, processes: int, seconds: float) -> int:
    """The last cycle that the job has reported as saved."""
    launcher = (
        []
        if processes == 1
        else [os.path.join(os.path.dirname(sys.executable), "mpiexec"), "-n", str(processes)]
    )
    command = [*launcher, sys.executable, "-c", JOB, str(name), str(first)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert job.stdout is not None
    last = first
    line = job.stdout.readline()  # it has begun
    last = int(line)
    time.sleep(seconds)
    os.killpg(job.pid, signal.SIGKILL)
    last = max([last, *(int(line) for line in job.stdout if line.strip().isdigit() and line.endswith("\n"))])
    job.wait()
    return last


@pytest.mark.launcher
@pytest.mark.timeout(60 + 10 * KILLS)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_kill_at_any_moment_leaves_a_complete_checkpoint(tmp_path, processes):
    name = tmp_path / "checkpoint"
    delays = random.Random(processes)
    reached = 0
    for _ in range(KILLS // 2):
        reported = run_and_kill(name, reached, processes, delays.uniform(0, 0.2))
        with outcore.World(memory="500MB") as world:
            saved = outcore.checkpoint.load(world, name)
            cycle = saved.meta["cycle"]
            assert cycle >= reported > reached
            with saved["g"] as g:
                assert (g[...] == cycle).all()
            assert np.array_equal(saved["n"], np.full(5, cycle))
        reached = cycle
