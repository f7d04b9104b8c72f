"""The statements of `docs/start/cluster.md` about Slurm, in jobs of a real one."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest

from outcore.keep.clock import INTERVAL_S

WATER = "3\n\nO 0 0 0.1\nH 0 0.75 -0.47\nH 0.1 -0.75 -0.5\n"
DOCTOR = "outcore doctor\n"


@pytest.fixture(autouse=True)
def water(cluster):
    (cluster.place / "water.xyz").write_text(WATER)


@pytest.fixture(scope="module")
def energy(cluster) -> float:
    """The energy by a run outside of Slurm."""
    (cluster.place / "water.xyz").write_text(WATER)
    cluster.call("outcore", "scf", "water.xyz", "--basis", "6-31g", "--json", "alone.json")
    return json.loads((cluster.place / "alone.json").read_text())["energy_hartree"]


def test_srun_starts_one_job_on_two_nodes(cluster, energy):
    said = cluster.call(
        "srun", "--mpi=pmi2", "-N2", "-n2", "--mem=1000", "outcore", "scf", "water.xyz", "--basis", "6-31g",
        "--json", "two.json",
    )  # fmt: skip
    assert said.count("RHF energy") == 1 and "2 processes x 1 thread" in said
    found = json.loads((cluster.place / "two.json").read_text())
    assert found["energy_hartree"] == pytest.approx(energy, abs=2e-9)


def test_processes_that_do_not_find_each_other_are_refused(cluster):
    said = cluster.call(
        "srun", "--mpi=none", "-n2", "outcore", "scf", "water.xyz", "--basis", "6-31g", check=False
    )
    assert "RHF/" not in said and "MPI type pmi2" in said


def test_threads_are_the_cores_of_the_job(cluster):
    assert "cores          1 of" in cluster.said(cluster.submit(DOCTOR, "--cpus-per-task=1", "--mem=600"))


def test_memory_is_that_of_the_node_in_the_job(cluster):
    assert re.search(r"available of 700\.00 MiB", cluster.said(cluster.submit(DOCTOR, "--mem=700")))


def test_memory_is_that_of_the_cores_in_the_job(cluster):
    job = cluster.submit(DOCTOR, "--mem-per-cpu=400", "--cpus-per-task=2")
    assert re.search(r"available of 800\.00 MiB", cluster.said(job))


def test_scratch_is_that_of_the_job(cluster):
    script = "export SLURM_TMPDIR=$PWD/scratch.$SLURM_JOB_ID; mkdir $SLURM_TMPDIR\n" + DOCTOR
    job = cluster.submit(script, "--mem=600")
    assert f"scratch.{job}" in cluster.said(job)


def test_a_run_keeps_to_the_memory_of_its_job(cluster):
    """Slurm ends a job that uses more memory than it requested."""
    job = cluster.submit("outcore ccsd water.xyz --basis cc-pvdz --triples\n", "--mem=400")
    said = cluster.said(job)
    assert cluster.state(job) == "COMPLETED", said
    assert "CCSD(T) energy" in said


def test_a_run_that_needs_more_than_its_job_has_is_refused(cluster):
    said = cluster.said(cluster.submit("outcore ccsd water.xyz --basis cc-pvdz --memory 2GB\n", "--mem=400"))
    assert "of 419 MB" in said and "CCSD energy" not in said


RESTARTS = """
trap 'echo warned; scontrol requeue $SLURM_JOB_ID' USR1
srun --mpi=pmi2 outcore ccsd water.xyz --basis cc-pvtz --conv-tol 1e-11 --amplitude-tol 1e-9 \\
  --checkpoint kept --json requeued.json > run.$SLURM_RESTART_COUNT.out 2>&1 &
wait; wait
"""


def iterations(text: str) -> int:
    """Iterations of coupled cluster in the output of a run, behind those of the SCF."""
    return len(re.findall(r"^ +\d+ ", text.partition(" iter ")[2], re.MULTILINE))


def test_a_job_that_slurm_warns_of_its_end_is_requeued_and_goes_on(cluster):
    """The run stands still until a commit of amplitudes is due, and after it until Slurm sends the signal, 60 to
    90 s after the start."""
    tight = ("--conv-tol", "1e-11", "--amplitude-tol", "1e-9")
    cluster.call("outcore", "ccsd", "water.xyz", "--basis", "cc-pvtz", *tight, "--json", "whole.json")
    job = cluster.submit(RESTARTS, "--requeue", "--time=2", "--signal=B:USR1@30", "--mem=1000")
    first = cluster.place / "run..out"

    def pause_after(count: int) -> None:
        done = "an iteration of CCSD"
        cluster.wait_for(lambda: first.exists() and iterations(first.read_text()) >= count, done)
        cluster.send(job, "outcore", "ccsd", signal.SIGSTOP)

    pause_after(2)
    time.sleep(INTERVAL_S + 1)
    cluster.send(job, "outcore", "ccsd", signal.SIGCONT)
    pause_after(iterations(first.read_text()) + 2)
    cluster.wait_for(lambda: "Restarts=1" in cluster.call("scontrol", "show", "job", job), "the requeue", 150)
    cluster.start_again(job)
    assert "warned" in cluster.said(job)
    whole, requeued = (
        json.loads((cluster.place / name).read_text())["ccsd_energy_hartree"]
        for name in ("whole.json", "requeued.json")
    )
    assert requeued == pytest.approx(whole, abs=1e-8)
    again = (cluster.place / "run.1.out").read_text()
    assert re.search(r"amplitudes of iteration \d+ found in kept", again)
