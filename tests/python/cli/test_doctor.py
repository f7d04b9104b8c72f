"""The findings of `outcore doctor`, and its messages about missing things."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from outcore import _core
from outcore.cli import doctor
from outcore.job import launch, machine


def by_name(findings):
    return {finding.name: finding for finding in findings}


def test_everything_is_looked_for(tmp_path):
    found = by_name(doctor.findings(tmp_path))
    assert {
        "versions", "I/O engine", "MPI", "launcher", "Fortran", "PySCF", "BLAS", "cores", "memory", "scratch",
        "direct I/O", "measured rate",
    } <= found.keys()  # fmt: skip
    assert _core.engine_name() in found["I/O engine"].found
    assert str(tmp_path) in found["scratch"].found


def test_what_is_missing_says_what_it_costs_and_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "_version", lambda name: None)
    found = by_name(doctor.findings(tmp_path))
    for name in ("Fortran", "PySCF", "matplotlib"):
        assert found[name].found == "missing"
        assert found[name].cost
        assert found[name].remedy


def test_emulated_storage_is_pointed_out(monkeypatch, tmp_path):
    assert "emulated" not in by_name(doctor.findings(tmp_path))
    monkeypatch.setenv("OUTCORE_THROTTLE", "bandwidth=20MB,latency=3ms")
    monkeypatch.setenv("OUTCORE_REQUESTS", "blocking")
    finding = by_name(doctor.findings(tmp_path))["emulated"]
    assert "a disk of 20 MB/s, latency 3 ms" in finding.found
    assert "blocking" in finding.found
    assert "not of this machine's storage" in finding.cost


def test_missing_mpi_costs_more_processes(monkeypatch):
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    launch.mpi_library.cache_clear()
    for finding in (doctor._mpi(), doctor._launcher()):
        assert finding.found == "missing"
        assert "mpi4py is missing" in finding.cost
        assert finding.remedy == "pip install 'mpi4py>=4.0' 'mpich>=4.2'"


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("built without liburing", "liburing-dev"),
        ("io_uring_setup: Operation not permitted", "io_uring_disabled"),
    ],
)
def test_engine_without_io_uring(monkeypatch, reason, remedy):
    monkeypatch.delenv("OUTCORE_ENGINE", raising=False)
    monkeypatch.setattr(_core, "engine_name", lambda: "threads")
    monkeypatch.setattr(_core, "engine_reason", lambda: reason)
    finding = doctor._engine()
    assert reason in finding.found
    assert finding.cost
    assert remedy in finding.remedy


def test_scratch_in_memory_is_pointed_out():
    if _core.file_system("/dev/shm").memory:
        scratch = doctor._scratch(Path("/dev/shm"))[0]
        assert "memory" in scratch.cost
        assert "OUTCORE_SCRATCH" in scratch.remedy


def test_a_disk_that_was_not_measured_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "measure_disk", lambda _: None)
    assert by_name(doctor.findings(tmp_path))["measured rate"].found == "not measured"


def test_json(tmp_path):
    answer = subprocess.run(
        [sys.executable, "-m", "outcore", "doctor", "--json", "--scratch", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    facts = json.loads(answer.stdout)
    assert {"name", "found", "cost", "remedy"} == facts[0].keys()
