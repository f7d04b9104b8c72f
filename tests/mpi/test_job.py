"""The facts that a process knows of its job."""

import os
import subprocess
import sys

from outcore import _core
from outcore.job import launch


def test_world_is_the_whole_job(comm):
    job = launch.launched()
    assert (job.rank, job.size) == (comm.rank, comm.size)


def test_all_ranks_of_one_node_are_counted(comm):
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    assert launch.launched().local_size == node.size
    node.Free()


def test_errors_name_the_rank(comm):
    assert _core.process_rank() == comm.rank
    assert _core.process_count() == comm.size
    assert _core.error_message(5, "read").startswith(f"rank {comm.rank}: read")


def test_threads_share_the_cores(comm, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert launch.threads_per_rank() == max(1, len(os.sched_getaffinity(0)) // comm.size)


def test_processes_that_come_in_time_hear_each_other(comm):
    assert launch.gather_within(5, f"from {comm.rank}") == [f"from {rank}" for rank in range(comm.size)]


def test_relaunch_inside_a_job_of_that_size_does_nothing(comm):
    launch.relaunch(comm.size)


def test_relaunch_refuses_another_size(comm):
    code = f"from outcore.job import launch; launch.relaunch({comm.size + 1})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert f"the launcher has started {comm.size} processes already" in answer.stderr
