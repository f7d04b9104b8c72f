"""Commands under limits of the process: they plan with the remaining memory, or name the limit that leaves
too little."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyscf")

from outcore.job import launch

WATER = """3

O 0 0 0.1173
H 0 0.7572 -0.4692
H 0 -0.7572 -0.4692
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "water.xyz").write_text(WATER)

    def command(kind: int, megabytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        def limit() -> None:
            resource.setrlimit(kind, (megabytes << 20, megabytes << 20))

        name, *rest = arguments
        return subprocess.run(
            [Path(sys.executable).parent / "outcore", name, "water.xyz", *rest, "--threads", "1"],
            cwd=tmp_path,
            preexec_fn=limit,
            env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return command


def said(answer, *texts):
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stderr.startswith("outcore: ")
    for text in texts:
        assert text in answer.stderr


@pytest.mark.parametrize(
    ("megabytes", "command"),
    [
        *((size, (name,)) for name in ("scf", "rimp2") for size in (100, 180, 420)),
        *((420, command) for command in (("ri-scf",), ("ccsd",), ("fci",), ("mrci", "--cas", "2,2"))),
    ],
    ids=str,
)
def test_libraries_that_do_not_fit_are_not_loaded(run, megabytes, command):
    answer = run(resource.RLIMIT_AS, megabytes, *command, "--basis", "sto-3g")
    said(answer, "start: Cannot allocate memory", "ulimit -v (RLIMIT_AS)", "in /proc/self/limits")


def test_little_data_is_refused_by_the_name_of_its_limit(run):
    answer = run(resource.RLIMIT_DATA, 120, "scf", "--basis", "sto-3g")
    said(answer, "Cannot allocate memory", "ulimit -d (RLIMIT_DATA)")


def test_memory_that_does_not_suffice_names_the_limit(run):
    answer = run(resource.RLIMIT_AS, 560, "ri-scf", "--basis", "cc-pv5z")
    said(
        answer,
        "RI-SCF: Cannot allocate memory",
        "ulimit -v (RLIMIT_AS)",
        "in /proc/self/limits",
    )


def test_a_budget_above_the_limit_is_refused(run):
    answer = run(resource.RLIMIT_AS, 900, "rimp2", "--basis", "cc-pvtz", "--memory", "8GB")
    said(answer, "--memory 8GB: Invalid argument (it is 8.00 GB, of 944 MB that there are)")


def test_a_run_stays_within_its_limit(run):
    answer = run(resource.RLIMIT_AS, 900, "rimp2", "--basis", "cc-pvtz")
    assert answer.returncode == 0, answer.stderr
    assert "RI-MP2 energy" in answer.stdout


@pytest.mark.launcher
def test_little_address_space_of_one_process_of_two_is_an_error_of_the_job(tmp_path):
    (tmp_path / "water.xyz").write_text(WATER)
    command = 'if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ]; then ulimit -v 430080; fi; exec "$@"'
    outcore = [sys.executable, "-m", "outcore", "ccsd", "water.xyz", "--basis", "sto-3g", "--threads", "1"]
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", "sh", "-c", command, "sh", *outcore],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode
    assert "ulimit -v (RLIMIT_AS)" in answer.stderr and "Traceback" not in answer.stderr
