"""Errors of processes when another one of their job has died and the launcher lets them live."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outcore.job import launch

pytestmark = pytest.mark.launcher

BOUND_S = (
    30  # for survivors whose launcher has ended before them; they end within 10 s, and machines are busy
)

# The launcher sees the death of its child, and would end the job: the process that dies is a child of that.
GUARD = """
import pathlib, subprocess, sys, time

script, results, survivors = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
child = subprocess.Popen([sys.executable, "-c", script, str(results), str(survivors)], close_fds=False)
child.wait()
until = time.monotonic() + 25
while len(list(results.glob("*.said"))) < survivors and time.monotonic() < until:
    time.sleep(0.05)
time.sleep(1)  # a launcher that sees the end of one may end the others
"""

BEGIN = """
import os, pathlib, signal, sys, time
import numpy as np
import outcore

said, begin = [], time.monotonic()

def attempt(step):
    try:
        step()
    except outcore.OutcoreError as error:
        said.append(str(error))

def finish():
    said.append(f"{time.monotonic() - begin < 8}")
    place = pathlib.Path(sys.argv[1]) / f"{world.rank}"
    place.with_suffix(".new").write_text("\\n".join(said))
    place.with_suffix(".new").rename(place.with_suffix(".said"))

world = outcore.World(memory="100MB", scratch=sys.argv[1])
"""

CALLS = """
world.register("sleep", lambda caller, header, payload: time.sleep(30))
world.register("die", lambda caller, header, payload: os.kill(os.getpid(), signal.SIGKILL))
world.barrier()
if world.rank == 0:
    begin = time.monotonic()
    for request in [world.call(1, "die"), world.call(1, "sleep", payload=bytes(100_000))]:
        attempt(request.wait)
    finish()
    os._exit(0)
time.sleep(30)
"""

DISKS = """
disk = outcore.DiskArray(world, (40, 8), chunk=(1, 8))  # 16 chunks at each process by turns
file = outcore.SharedFile(world, "file", typical_request=1 << 20, placement="local")
records = outcore.RecordFile(world, "records", records=40, placement="local")
for k in range(world.rank, 40, world.size):
    records[k] = np.ones(100_000)
    file.write(np.ones(1 << 20, np.uint8), offset=k << 20)
world.barrier()
if world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.3)  # it is dead
begin = time.monotonic()
attempt(lambda: disk[:, :])
attempt(lambda: file.read(np.empty(40 << 20, np.uint8), offset=0))
attempt(lambda: [records[k] for k in range(40)])
finish()
os._exit(0)
"""

COLLECTIVE = """
g = outcore.GlobalArray(world, (64, 64))
lock = world.lock()
d = outcore.DiskArray(world, (64, 64), path=sys.argv[1] + "/array")
if world.rank == 1:
    lock.acquire()
world.barrier()
if world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
begin = time.monotonic()
attempt(lambda: STEP)
attempt(world.barrier)  # fails at once from then on
attempt(world.close)
finish()
"""

PANELS = """
import threading
from dataclasses import replace
from outcore.tensor.plan.rates import ASSUMED

a, b, out = (outcore.DiskArray(world, (300, 300)) for _ in range(3))
rates = replace(ASSUMED, processes=world.size, sharing=world.size, read=1e8, write=1e8)
plan = outcore.einsum.plan("ik,kj->ij", a, b, out=out, memory="40kB", rates=rates)
assert plan.statements[0].plan.sharing == world.size
world.barrier()
if world.rank == 1:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
begin = time.monotonic()
attempt(lambda: [outcore.einsum("ik,kj->ij", a, b, out=out, plan=plan) for _ in range(10_000)])
finish()
until = time.monotonic() + 10  # who ended now would be a process that has died
while len(list(pathlib.Path(sys.argv[1]).glob("*.said"))) < int(sys.argv[2]) and time.monotonic() < until:
    time.sleep(0.01)
os._exit(0)
"""


def survive(
    script: str, results: Path, *, ranks: int, survivors: int, **environment: str
) -> dict[str, list[str]]:
    """The messages of the survivors, each with whether it came soon."""
    results.mkdir()
    command = [
        str(launch.find_launcher()), "-n", str(ranks),
        sys.executable, "-c", GUARD, BEGIN + script, str(results), str(survivors),
    ]  # fmt: skip
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=90, env={**os.environ, **environment}
    )
    assert list(results.glob("*.said")), answer.stderr
    return {place.stem: place.read_text().splitlines() for place in results.glob("*.said")}


@pytest.mark.parametrize("nodes", ["hosts", "processes"])
def test_calls_of_a_process_that_dies_are_errors_soon(tmp_path, nodes):
    said = survive(CALLS, tmp_path / "results", ranks=2, survivors=1, OUTCORE_NODES=nodes)["0"]
    assert said[:2] == ["rank 0: call process 1: Connection reset by peer (it has died)"] * 2
    assert said[2] == "True"


def test_what_lies_at_a_process_that_died_is_an_error_soon(tmp_path):
    said = survive(DISKS, tmp_path / "results", ranks=2, survivors=1, OUTCORE_NODES="processes")["0"]
    assert said == [*["rank 0: call process 1: Connection reset by peer (it has died)"] * 3, "True"]


@pytest.mark.parametrize(
    ("nodes", "step"),
    [
        *(
            ("hosts", each)
            for each in ("world.barrier()", "g.sync()", "d.write_all(g)", "lock.acquire()", "None")
        ),
        ("processes", "g.sync()"),
        *(
            pytest.param("processes", each, marks=pytest.mark.long)
            for each in ("world.barrier()", "d.write_all(g)", "lock.acquire()", "None")
        ),
    ],
)
def test_a_collective_call_without_a_process_that_died_is_an_error_at_all_others(tmp_path, step, nodes):
    said = survive(
        COLLECTIVE.replace("STEP", step), tmp_path / "results", ranks=3, survivors=2, OUTCORE_NODES=nodes
    )
    assert sorted(said) == ["0", "2"]
    for lines in said.values():
        errors, soon = lines[:-1], lines[-1]
        assert errors and all("Connection reset by peer (process 1 has died)" in error for error in errors)
        assert len(errors) == (2 if step == "None" else 3)
        assert soon == "True"


def test_processes_that_share_panels_do_not_wait_for_those_of_one_that_died(tmp_path):
    said = survive(PANELS, tmp_path / "results", ranks=3, survivors=2)
    assert sorted(said) == ["0", "2"]
    for error, soon in said.values():
        assert "Connection reset by peer (process 1 has died)" in error
        assert soon == "True"


def test_a_job_that_has_lost_a_process_ends(tmp_path):
    """Survivors that end normally do not hang in MPI_Finalize."""
    script = COLLECTIVE.replace("STEP", "world.barrier()")
    said = survive(script, tmp_path / "results", ranks=2, survivors=1)
    assert sorted(said) == ["0"]


# Lives on after its child has ended, until those of all others have, so that the launcher notices no death.
WRAPPER = """
import os, pathlib, subprocess, sys, time

results, ranks = pathlib.Path(sys.argv[2]), int(sys.argv[3])
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(results)], close_fds=False)
child.wait()
(results / f"{os.getpid()}.ended").touch()
until = time.monotonic() + 100
while len(list(results.glob("*.ended"))) < ranks and time.monotonic() < until:
    time.sleep(0.05)
"""


@pytest.mark.parametrize(
    "end",
    [
        "",  # closes its world at exit
        "world.close()",  # before the death: nothing of ours waits for the other any more
        pytest.param("world.barrier()", marks=pytest.mark.long),
        "world.call(1, 'echo').wait()",
        "g = outcore.GlobalArray(world, 100)\ndel world",
    ],
)
def test_a_survivor_ends_however_its_program_ends(tmp_path, end):
    results = tmp_path / "results"
    results.mkdir()
    before = end if end == "world.close()" else ""
    script = f"""{BEGIN}
world.register("echo", lambda caller, header, payload: None)
world.barrier()
if world.rank == 1 and not {bool(before)}:
    os.kill(os.getpid(), signal.SIGKILL)
{end}
if {bool(before)} and os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
    os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [
        str(launch.find_launcher()),
        "-n",
        "2",
        sys.executable,
        "-c",
        WRAPPER,
        script,
        str(results),
        "2",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, **quiet, check=False, timeout=60)


@pytest.mark.long
def test_all_of_this_holds_with_open_mpi(open_mpi):
    some = "calls_of or lies_at or barrier or lost or survivor"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        f"({some}) and not open_mpi",
    ]
    answer = subprocess.run(
        [*command, __file__], capture_output=True, text=True, check=False, env={**os.environ, **open_mpi}
    )
    assert answer.returncode == 0, answer.stdout
    assert " passed" in answer.stdout


def test_survivors_end_where_open_mpi_lets_them_live(tmp_path, open_mpi):
    """The launcher ends nothing; MPI_Finalize of the survivors may wait for the dead process."""
    script = f"""{BEGIN}
world.barrier()
rank = world.rank
world.close()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path(sys.argv[1], f"{{rank}}.{{os.getpid()}}").touch()
"""
    command = [
        str(Path(open_mpi["PATH"].split(":")[0]) / "mpiexec"),
        "--runtime-options", "recoverable,continuous",
        "-n", "3", sys.executable, "-c", script, str(tmp_path),
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, check=False, timeout=60, env={**os.environ, **open_mpi})
    ended = [each.name.split(".") for each in tmp_path.iterdir() if each.name[0] in "02" and each.is_file()]
    assert sorted(rank for rank, _ in ended) == ["0", "2"]
    ends_by = time.monotonic() + BOUND_S
    while any(Path("/proc", process).exists() for _, process in ended) and time.monotonic() < ends_by:
        time.sleep(0.1)
    assert not any(Path("/proc", process).exists() for _, process in ended)


def runs(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "before", ["launch.world()", pytest.param("outcore.World()", marks=pytest.mark.long)]
)
def test_survivors_of_a_death_before_there_is_a_world_end_with_open_mpi(tmp_path, open_mpi, before):
    """They do not know one another's numbers yet, and wait in MPI_Init or for the first exchange."""
    script = f"""
import os, pathlib, signal, sys
import outcore
from outcore.job import launch

rank = os.environ["OMPI_COMM_WORLD_RANK"]
pathlib.Path(sys.argv[1], f"{{rank}}.{{os.getpid()}}").touch()
if {before!r} == "outcore.World()":
    launch.world()
if rank == "1":
    os.kill(os.getpid(), signal.SIGKILL)
{before}
"""
    command = [
        str(Path(open_mpi["PATH"].split(":")[0]) / "mpiexec"),
        "--runtime-options", "recoverable,continuous",
        "-n", "2", sys.executable, "-c", script, str(tmp_path),
    ]  # fmt: skip
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **open_mpi}
    )
    assert "outcore: a process of the job has died, for which " in answer.stderr
    begun = [int(each.name.split(".")[1]) for each in tmp_path.iterdir()]
    assert len(begun) == 2
    until = time.monotonic() + 10  # the launcher may leave before them, and nobody may ask for their status
    while any(map(runs, begun)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(runs, begun))
