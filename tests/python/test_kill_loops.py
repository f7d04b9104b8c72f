"""Jobs that are killed at random moments, one after another: each finds the last commit intact."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# In CI a few; OUTCORE_KILLS=200 for the full loop.
KILLS = int(os.environ.get("OUTCORE_KILLS", "8"))

# Prints the cycle that it has found, and then each one that it has committed.
ARRAY = """
import errno, sys
import numpy as np
import outcore

name, placement = sys.argv[1:3]
with outcore.World(memory="500MB") as world:
    block = np.zeros((60, 50))
    try:
        array = outcore.DiskArray.open(world, name, read_only=False)
        array.read_all(block)
        cycle = array.metadata["cycle"]
        assert (block == cycle).all(), (cycle, block)
    except outcore.OutcoreError as error:
        assert error.errno == errno.ENOENT, error
        cycle = 0
        options = {"path": name, "placement": placement, "overwrite": True}
        array = outcore.DiskArray(world, block.shape, chunk=(10, 50), **options)
    assert array.placement == placement
    world.barrier()
    if world.rank == 0:
        print(cycle, flush=True)
    while True:
        cycle += 1
        # Rows of chunks in turn, then all: slots are on different sides.
        array.write_all(np.full((10, 50), float(cycle)), np.s_[10 * (cycle % 6) : 10 * (cycle % 6) + 10])
        array.write_all(np.full(block.shape, float(cycle)))
        array.flush({"cycle": cycle})
        if world.rank == 0:
            print(cycle, flush=True)
"""

CHECKPOINT = """
import errno, sys
import numpy as np
import outcore

name, placement = sys.argv[1:3]
shape = (60, 50)
with outcore.World(memory="500MB") as world, outcore.GlobalArray(world, shape) as g, outcore.DiskArray(
    world, shape, chunk=(20, 50)
) as d:
    cycle = 0
    try:
        saved = outcore.checkpoint.load(world, name)
    except outcore.OutcoreError as error:
        assert error.errno == errno.ENOENT, error
    else:
        with saved:
            cycle = saved.meta["cycle"]
            block = np.zeros(shape)
            for key, value in (("g", cycle), ("d", cycle + 0.5)):
                with saved.open(key) as array:
                    array.read_all(block)
                assert (block == value).all(), (key, cycle, block)
    world.barrier()
    if world.rank == 0:
        print(cycle, flush=True)
    while True:
        cycle += 1
        g.local[...] = cycle
        g.sync()
        d.write_all(np.full(shape, cycle + 0.5))
        outcore.checkpoint.save(world, name, {"g": g, "d": d}, {"cycle": cycle}, placement=placement)
        if world.rank == 0:
            print(cycle, flush=True)
"""


def run_and_kill(
    job: str, arguments: list[str], processes: int, nodes: str, seconds: float, *, commits: int
) -> list[int]:
    """The cycle that the job has found, and those that it has committed. It is killed so many seconds after it has
    told of `commits` cycles."""
    launcher = (
        []
        if processes == 1
        else [os.path.join(os.path.dirname(sys.executable), "mpiexec"), "-n", str(processes)]
    )
    process = subprocess.Popen(
        [*launcher, sys.executable, "-c", job, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OUTCORE_NODES": nodes},
    )
    assert process.stdout is not None and process.stderr is not None
    first = [process.stdout.readline() for _ in range(1 + commits)]
    if not first[-1]:
        pytest.fail(process.stderr.read())
    time.sleep(seconds)
    if process.poll() is not None:
        pytest.fail(process.stderr.read())
    os.killpg(process.pid, signal.SIGKILL)
    lines = [*first, *process.stdout]
    process.wait()
    return [int(line) for line in lines if line.strip().isdigit() and line.endswith("\n")]


@pytest.mark.launcher
@pytest.mark.timeout(60 + 15 * KILLS)
@pytest.mark.parametrize(
    ("job", "processes", "nodes"),
    [
        pytest.param(ARRAY, 2, "hosts", id="array of hosts"),
        pytest.param(CHECKPOINT, 2, "processes", id="checkpoint of processes"),
        pytest.param(ARRAY, 2, "processes", id="array of processes", marks=pytest.mark.long),
        pytest.param(CHECKPOINT, 2, "hosts", id="checkpoint of hosts", marks=pytest.mark.long),
    ],
)
def test_each_job_finds_what_the_one_before_has_committed(tmp_path, job, processes, nodes):
    local = nodes == "processes"
    for node in range(processes):
        (tmp_path / f"disk{node}").mkdir()
    name = str(tmp_path / ("disk{node}" if local else "disk0") / "kept")
    delays, committed = random.Random(processes), 0
    for turn in range(KILLS // 2):
        # On a busy machine the first commit may take longer than any of the delays: every other job has one.
        seconds, commits = delays.uniform(0, 0.3), turn % 2
        placement = "local" if local else "shared"
        found, *cycles = run_and_kill(job, [name, placement], processes, nodes, seconds, commits=commits)
        assert found in (committed, committed + 1)  # it was killed before it could say so
        committed = max([found, *cycles])
    assert committed > 0


# The clock of the killer starts with the first array of the checkpoint.
KILLED_RUN = """
import os, signal, sys, threading
from outcore.cli import main as cli
from outcore.keep import stages

make = stages.Stage.make

def made(*arguments, **options):
    threading.Timer(float(sys.argv[1]), os.kill, (os.getpid(), signal.SIGKILL)).start()
    return make(*arguments, **options)

stages.Stage.make = made
sys.exit(cli.run(sys.argv[2:]))
"""

ETHANE = (
    "8\nethane\nC 0 0 0.766\nC 0 0 -0.766\nH 1.021 0 1.164\nH -0.51 0.884 1.164\nH -0.51 -0.884 1.164\n"
    "H -1.021 0 -1.164\nH 0.51 0.884 -1.164\nH 0.51 -0.884 -1.164\n"
)


@pytest.mark.timeout(120 + 15 * KILLS)
def test_the_energy_of_a_resumed_run_is_that_of_one_from_scratch(tmp_path):
    pytest.importorskip("pyscf")
    molecule = tmp_path / "ethane.xyz"
    molecule.write_text(ETHANE)

    def run(kept: Path, kill_after: float | None = None) -> int:
        arguments = [
            "rimp2",
            str(molecule),
            "--basis",
            "cc-pvdz",
            "--conv-tol",
            "1e-11",
            "--checkpoint",
            str(kept),
        ]
        arguments += ["--json", f"{kept}.json", "--scratch", str(tmp_path)]
        seconds = str(3600 if kill_after is None else kill_after)
        job = KILLED_RUN if kill_after is not None else KILLED_RUN.replace(".start()", "")
        return subprocess.run(
            [sys.executable, "-c", job, seconds, *arguments], stdout=subprocess.DEVNULL, check=False
        ).returncode

    def energies(kept: Path) -> list[float]:
        results = json.loads(Path(f"{kept}.json").read_text())
        return [value for key, value in sorted(results.items()) if key.endswith("_hartree")]

    assert run(tmp_path / "scratch") == 0
    delays = random.Random(5)
    kept = tmp_path / "kept"
    killed = 0
    for _ in range(KILLS // 2):
        killed += run(kept, delays.uniform(0, 0.4)) == -signal.SIGKILL
    assert killed > 0
    assert run(kept) == 0
    assert energies(kept) == pytest.approx(energies(tmp_path / "scratch"), abs=1e-9)
