"""Integrals whose errors exceed the allowed error of the energy are stored again, finer."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.hf import accuracy, scf
from outcore.chem.hf.integrals import TwoElectronIntegrals
from outcore.cli import main as cli

pyscf = pytest.importorskip("pyscf")
from pyscf import gto  # noqa: E402
from pyscf import scf as reference  # noqa: E402

ALLOWED = 1e-7
AGAIN = "stored again, finer"
WATER = "3\n\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
OXYGEN = "2\n\nO 0 0 0\nO 0 0 1.2\n"
KINDS = {
    "RHF": (WATER, []),
    "UHF": (OXYGEN, ["--spin", "2"]),
    "ROHF": (OXYGEN, ["--spin", "2", "--rohf"]),
}


@pytest.fixture
def empty_crude_densities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crude densities as far from the real ones as possible: steps are the largest ones."""
    monkeypatch.setattr(accuracy, "crude_densities", lambda mol: np.zeros((2, mol.nao, mol.nao)))


def run(
    tmp_path: Path, geometry: str, *options: str, status: int = 0, command: str = "scf"
) -> dict[str, Any]:
    path, results = tmp_path / "molecule.xyz", tmp_path / "results.json"
    path.write_text(geometry)
    given = [command, str(path), "--basis", "6-31g*", "--threads", "1", "--json", str(results), *options]
    assert cli.run(given) == status
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def exact(geometry: str, kind: str, basis: str = "6-31g*", spin: int = 0) -> float:
    mol = gto.M(atom=geometry.split("\n\n")[1], basis=basis, spin=spin, verbose=0)
    return float(getattr(reference, kind)(mol).run(conv_tol=1e-12).e_tot)


@pytest.mark.usefixtures("empty_crude_densities")
@pytest.mark.parametrize(
    ("storage", "kind"),
    [
        pytest.param(storage, kind, marks=() if storage == "disk" or kind == of else pytest.mark.long)
        for storage, of in (("disk", ""), ("mixed", "RHF"), ("auto", "UHF"))
        for kind in KINDS
    ],
)
def test_the_error_that_is_allowed_is_kept_in_the_end(
    kind: str, storage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    geometry, spin = KINDS[kind]
    options = [*spin, "--storage", storage, "--error", str(ALLOWED)]
    found = run(tmp_path, geometry, *options)
    assert capsys.readouterr().out.count(AGAIN) == 1
    assert found["storage_error"]["bound"] <= ALLOWED
    energy = exact(geometry, kind, spin=2 if geometry == OXYGEN else 0)
    assert abs(found["energy_hartree"] - energy) <= found["storage_error"]["bound"]


def test_an_atom_whose_shells_mix_keeps_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Manganese, a cation: orbitals of a lower symmetry than crude densities have."""
    found = run(tmp_path, "1\n\nMn 0 0 0\n", "--basis", "def2-svp", "--spin", "5")
    assert AGAIN in capsys.readouterr().out
    assert found["storage_error"]["bound"] <= found["storage_error"]["allowed"]
    whole = run(tmp_path, "1\n\nMn 0 0 0\n", "--basis", "def2-svp", "--spin", "5", "--error", "1e-13")
    assert abs(found["energy_hartree"] - whole["energy_hartree"]) <= found["storage_error"]["bound"] + 1e-10


@pytest.mark.usefixtures("empty_crude_densities")
def test_without_room_for_finer_integrals_the_status_and_the_reason_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_room(integrals: TwoElectronIntegrals) -> None:
        if integrals.finer is not None:
            raise OutcoreError(errno.ENOSPC, "store two-electron integrals", detail="the disk is small")

    monkeypatch.setattr(TwoElectronIntegrals, "_check_disk", no_room)
    found = run(tmp_path, WATER, "--error", str(ALLOWED), status=3)
    assert "NOT KEPT" in capsys.readouterr().out
    assert "the disk is small" in found["warnings"][0]
    assert abs(found["energy_hartree"] - exact(WATER, "RHF")) <= found["storage_error"]["bound"]


@pytest.mark.usefixtures("empty_crude_densities")
def test_finer_integrals_are_those_that_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").mkdir()
    keep = ["--error", str(ALLOWED), "--keep-integrals", str(tmp_path / "kept")]
    first = run(tmp_path, WATER, *keep)
    assert AGAIN in capsys.readouterr().out
    second = run(tmp_path, WATER, *keep)
    output = capsys.readouterr().out
    assert "reused" in output and AGAIN not in output
    assert second["storage_error"]["bound"] == pytest.approx(first["storage_error"]["bound"], rel=1e-3)
    assert second["energy_hartree"] == pytest.approx(first["energy_hartree"], abs=1e-9)


@pytest.mark.usefixtures("empty_crude_densities")
def test_a_run_that_was_stopped_ends_as_finely(tmp_path: Path) -> None:
    keep = ["--error", str(ALLOWED), "--checkpoint", str(tmp_path / "kept")]
    with pytest.raises(NotConverged):
        run(tmp_path, WATER, *keep, "--max-cycle", "3")
    found = run(tmp_path, WATER, *keep)
    assert found["storage_error"]["bound"] <= ALLOWED
    assert abs(found["energy_hartree"] - exact(WATER, "RHF")) <= found["storage_error"]["bound"]


@pytest.mark.usefixtures("empty_crude_densities")
def test_smeared_occupations_stay_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, WATER, "--error", str(ALLOWED), "--smearing", "0.1")
    assert AGAIN in capsys.readouterr().out
    assert found["storage_error"]["bound"] <= ALLOWED


@pytest.mark.usefixtures("empty_crude_densities")
def test_methods_after_the_scf_begin_with_finer_integrals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, WATER, "--basis", "sto-3g", "--frozen", "1", command="fci")
    assert AGAIN in capsys.readouterr().out


@pytest.mark.usefixtures("empty_crude_densities")
def test_a_second_time_steps_are_smaller_for_the_same_density() -> None:
    mol = gto.M(atom=WATER.split("\n\n")[1], basis="6-31g", verbose=0)
    with scf.RHF(mol, comm=None, error=ALLOWED) as mf:
        mf.kernel()
        factors = []
        for _ in range(2):
            assert mf.store_finer(accuracy.EnergyError(ALLOWED, 1.0, ALLOWED)) == ""
            assert mf.two_electron.finer is not None
            factors.append(mf.two_electron.finer.factor)
    assert factors == [1.0, 1 / 8]
