"""The exit status of commands whose SCF ends in a saddle point that could not be left."""

from __future__ import annotations

import json
import math

import pytest

from outcore.cli import main as cli

pytest.importorskip("pyscf")

from outcore.chem import mean_field, restart, stability
from outcore.chem.run import UNDECIDED

OPTIONS = {
    "scf": ("--storage", "direct"),
    "ri-scf": (),
    "rimp2": (),
    "ccsd": ("--triples",),
    "fci": (),
    "mrci": ("--active", "2", "--inactive", "0"),
}


@pytest.fixture
def run(tmp_path, capsys):
    def function(command, *more):
        geometry, results = tmp_path / "h2.xyz", tmp_path / "results.json"
        geometry.write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
        given = ("--basis", "6-31g", "--threads", "1", "--json", str(results), *OPTIONS[command], *more)
        status = cli.run([command, str(geometry), *given])
        return status, json.loads(results.read_text()), capsys.readouterr().out.replace("\n", " ")

    return function


@pytest.fixture
def saddle(monkeypatch):
    """Every gap counts as narrow, and every state as a saddle point without a descent."""
    monkeypatch.setattr(mean_field, "NEAR", math.inf)
    monkeypatch.setattr(stability, "internal", lambda mf: stability.Stability(-1e-3, mf.mo_coeff))


@pytest.mark.parametrize("command", OPTIONS)
def test_a_saddle_point_that_cannot_be_left_is_the_exit_status(run, saddle, command):
    status, found, output = run(command, "--quiet")
    assert status == UNDECIDED
    assert not found["stability"]["stable"] and found["stability"]["followed"] == 1
    assert "is a saddle point that could not be left" in output
    assert any("saddle point" in line for line in found["warnings"])
    assert any(key.endswith(("energy_hartree", "energies_hartree", "total_hartree")) for key in found)


@pytest.mark.parametrize("command", OPTIONS)
def test_a_minimum_is_no_failure(run, monkeypatch, command):
    monkeypatch.setattr(mean_field, "NEAR", math.inf)
    status, found, _ = run(command)
    assert status == 0
    assert found["stability"]["stable"] and "warnings" not in found


@pytest.mark.parametrize("command", ["scf", "ri-scf", "ccsd"])
def test_a_run_that_finds_its_orbitals_has_the_same_exit_status(run, saddle, command, tmp_path):
    kept = ("--checkpoint", str(tmp_path / "kept"))
    first, found, _ = run(command, *kept)
    again, same, output = run(command, *kept)
    assert first == again == UNDECIDED
    assert not same["stability"]["stable"] and same["warnings"] == found["warnings"]
    assert "goes on from" in output


def test_narrow_gaps_of_cycles_before_a_stop_are_remembered(run, monkeypatch, tmp_path):
    """If noise decided before a run was stopped, the resumed run still reports it."""
    kept = ("--checkpoint", str(tmp_path / "kept"))
    with monkeypatch.context() as narrow:
        narrow.setattr(mean_field, "NEAR", math.inf)
        narrow.setattr(restart.Checkpoint, "finish", lambda keeper, report: None)  # killed before that
        run("ri-scf", *kept)
    monkeypatch.setattr(stability, "internal", lambda mf: stability.Stability(-1e-3, mf.mo_coeff))
    status, found, _ = run("ri-scf", *kept)
    assert status == UNDECIDED and found["stability"]["followed"] == 1
