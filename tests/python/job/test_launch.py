"""Starting several processes, detecting that this is one of them, and leaving none behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outcore.base.errors import OutcoreError
from outcore.job import launch

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}, launch.Job(1, 4, 2)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}, launch.Job(2, 3, 3)),
        (
            {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"},
            launch.Job(5, 8, 4),
        ),
    ],
)
def test_launchers_are_recognised(variables, job):
    assert launch.launched(variables) == job


def test_batch_script_of_slurm_is_not_a_job_step():
    assert launch.launched({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"}) is None


def test_one_process_under_a_launcher_is_on_its_own():
    assert launch.launched({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None


def test_no_launcher_no_mpi():
    code = "import sys; from outcore.job import launch; print(launch.world(), 'mpi4py' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "None False\n"


def test_threads_are_those_the_user_chose(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert launch.threads_per_rank() == 7


def test_threads_are_all_cores_for_one_process(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert launch.threads_per_rank() == CORES


def test_one_rank_needs_nothing():
    launch.relaunch(1)  # returns


@pytest.mark.parametrize("ranks", [0, -3])
def test_number_of_ranks_is_checked(ranks):
    with pytest.raises(OutcoreError, match=f"--ranks {ranks}.*at least one"):
        launch.relaunch(ranks)


PROGRAM = """
import os, sys, time
from outcore.job import launch
launch.relaunch({ranks})
def say(*words):  # a whole line at once: lines of several processes do not mix
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
{body}
"""


@pytest.fixture
def job(tmp_path):
    """Starts a program that relaunches itself on `ranks` processes and then runs `body` in each."""
    started = []

    def start(ranks, body, **environment):
        program = tmp_path / "program.py"
        program.write_text(PROGRAM.format(ranks=ranks, body=body))
        process = subprocess.Popen(
            [sys.executable, program, "an argument"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def output(process):
    """Standard output as sorted lines, after the process has ended normally."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return sorted(out.splitlines())


@pytest.mark.launcher
def test_ranks_are_started(job):
    assert output(job(2, "w = launch.world(); say(w.rank, w.size)")) == ["0 2", "1 2"]


@pytest.mark.launcher
def test_more_ranks_than_cores(job):
    body = "w = launch.world(); say(w.allreduce(1))"
    assert output(job(CORES + 2, body)) == [str(CORES + 2)] * (CORES + 2)


@pytest.mark.launcher
def test_arguments_reach_the_ranks(job):
    assert output(job(2, "say(sys.argv[1])")) == ["an argument"] * 2


@pytest.mark.launcher
def test_ranks_share_the_cores(job):
    share = str(max(1, CORES // 2))
    body = "say(*(os.environ[name] for name in launch.THREAD_VARIABLES))"
    nothing_chosen = dict.fromkeys(launch.THREAD_VARIABLES, "")
    assert output(job(2, body, **nothing_chosen)) == [f"{share} {share} {share}"] * 2


@pytest.mark.launcher
def test_threads_that_the_user_chose_stay(job):
    assert output(job(2, "say(launch.threads_per_rank())", OMP_NUM_THREADS="3")) == ["3", "3"]


@pytest.mark.launcher
@pytest.mark.parametrize(("chosen", "found"), [("", "14"), ("20", "20")])
def test_idle_threads_of_blas_leave_the_cores_unless_the_user_chose(job, chosen, found):
    chosen_by_user = {launch.SPIN_VARIABLE: chosen}
    assert output(job(2, "say(os.environ[launch.SPIN_VARIABLE])", **chosen_by_user)) == [found] * 2


@pytest.mark.launcher
def test_exit_status_is_passed_on(job):
    assert job(2, "launch.world(); sys.exit(3)").wait(60) == 3


@pytest.mark.launcher
def test_output_is_not_held_back(job):
    process = job(2, "say('early'); time.sleep(60)")
    start = time.monotonic()
    assert process.stdout.readline() == "early\n"
    assert time.monotonic() - start < 30


@pytest.mark.launcher
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_rank_outlives_its_launcher(job, number):
    process = job(2, "launch.world(); say(os.getpid())\nwhile True: pass")
    ranks = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    deadline = time.monotonic() + 20
    while alive := [pid for pid in ranks if running(pid)]:
        assert time.monotonic() < deadline, f"{alive} still run"
        time.sleep(0.05)


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def fake_launcher(tmp_path):
    """A launcher that pretends to be Open MPI's."""
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 4.1.4'\n")
    launcher.chmod(0o755)
    return launcher


def test_launcher_of_another_mpi_is_refused(fake_launcher, monkeypatch):
    pytest.importorskip("mpi4py")
    monkeypatch.setattr(sys, "executable", str(fake_launcher.parent / "python"))
    monkeypatch.setenv("PATH", str(fake_launcher.parent))
    monkeypatch.setattr(launch, "mpi_library", lambda: "MPICH 5.0")
    with pytest.raises(OutcoreError, match=r"mpi4py uses MPICH 5\.0.*is of Open MPI"):
        launch.find_launcher()


def test_launcher_of_the_same_mpi_is_taken_from_the_path(fake_launcher, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setenv("PATH", str(fake_launcher.parent))
    monkeypatch.setattr(launch, "mpi_library", lambda: "Open MPI v4.1.4")
    assert launch.find_launcher() == fake_launcher


def test_no_launcher_at_all(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(launch, "mpi_library", lambda: "MPICH 5.0")
    with pytest.raises(OutcoreError, match=r"no mpiexec was found.*pip install 'mpi4py>=4.0' 'mpich>=4.2'"):
        launch.find_launcher()


def test_missing_mpi4py_names_the_extra(monkeypatch):
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    launch.mpi_library.cache_clear()
    with pytest.raises(OutcoreError, match=r"mpi4py is missing.*pip install 'mpi4py>=4.0' 'mpich>=4.2'"):
        launch.relaunch(2)


def test_job_of_a_foreign_launcher_is_refused():
    """Otherwise each process would believe that it is alone and do the whole work."""
    code = "from outcore.job import launch; launch.world()"
    foreign = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | foreign
    )
    assert answer.returncode == 1
    assert "join a job of 2 processes" in answer.stderr
    assert "the launcher is of another MPI" in answer.stderr
