"""The output and files of `--gradient`, `--dipole` and `--density`, for every command that has them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli

pytest.importorskip("pyscf")
from pyscf import gto, scf
from pyscf.tools import molden

from outcore.chem import ri
from outcore.chem.mp2 import MP2

WATER = "3\nwater\nO 0 0 0.1\nH 0 0.75 -0.47\nH 0.1 -0.75 -0.5\n"
CHUNK_BYTES = 128 << 10  # a chunk is stored as a whole
HYDROXYL = "2\nhydroxyl\nO 0 0 0\nH 0.1 0 0.97\n"


def run(command: str, text: str, folder: Path, *arguments: str, alone: bool = False) -> dict:
    """alone: in a process of its own, as the peak of disk space is that of a process."""
    path = folder / "molecule.xyz"
    path.write_text(text)
    results = folder / "results.json"
    given = [command, str(path), "--scratch", str(folder), "--basis", "6-31g", "--json", str(results)]
    if alone:
        subprocess.run([sys.executable, "-m", "outcore", *given, *arguments], capture_output=True, check=True)
    else:
        assert cli.run([*given, *arguments]) == 0
    return json.loads(results.read_text())


def pyscfs(text: str, **given):
    mol = gto.M(atom="\n".join(text.splitlines()[2:]), basis="6-31g", verbose=0, **given)
    mf = scf.HF(mol).density_fit()
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
    mf.kernel()
    return mf


def test_of_a_fitted_scf_they_are_pyscfs(tmp_path, capsys):
    found = run("ri-scf", WATER, tmp_path, "--gradient", "--dipole")
    mf = pyscfs(WATER)
    assert np.array(found["gradient_hartree_per_bohr"]) == pytest.approx(
        mf.nuc_grad_method().kernel(), abs=1e-7
    )
    assert found["dipole_debye"] == pytest.approx(mf.dip_moment(verbose=0), abs=1e-5)
    quadrupole = mf.quad_moment(unit="AU", verbose=0, origin=np.zeros(3))
    assert np.array(found["quadrupole_au"]) == pytest.approx(quadrupole, abs=1e-5)
    assert found["mulliken_charges"] == pytest.approx(mf.mulliken_pop(verbose=0)[1], abs=1e-6)
    output = capsys.readouterr().out
    assert "gradient (Eh/bohr)" in output
    assert "densities and gradient: no disk traffic" in output


def test_of_a_stored_scf_of_open_shells(tmp_path):
    found = run("scf", HYDROXYL, tmp_path, "--gradient", "--dipole")
    gradient = np.array(found["gradient_hartree_per_bohr"])
    assert gradient.sum(0) == pytest.approx(0, abs=1e-8) and abs(gradient).max() > 1e-3
    assert sum(found["mulliken_spins"]) == pytest.approx(1, abs=1e-8)


def test_of_mp2_they_are_those_of_the_method(tmp_path):
    found = run("rimp2", WATER, tmp_path, "--frozen", "1", "--gradient", "--density", str(tmp_path / "d.npz"))
    with ri.RHF(gto.M(atom="\n".join(WATER.splitlines()[2:]), basis="6-31g", verbose=0)) as mf:
        mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
        mf.kernel()
        mp2 = MP2(mf, 1)
        assert np.array(found["gradient_hartree_per_bohr"]) == pytest.approx(
            mp2.nuc_grad_method().kernel(), abs=1e-7
        )
        density = mp2.make_rdm1(ao_repr=True)
    with np.load(tmp_path / "d.npz") as written:
        assert written["total"] == pytest.approx(density, abs=1e-6)


def test_natural_orbitals_are_read_by_others(tmp_path):
    path = tmp_path / "d.molden"
    run("rimp2", WATER, tmp_path, "--density", str(path))
    mol, _, orbitals, occupations, *_ = molden.load(str(path))
    assert occupations.sum() == pytest.approx(10, abs=1e-4)
    assert 1.9 < occupations[1] < 2 and 0 < occupations[6] < 0.1
    overlap = mol.intor("int1e_ovlp")
    assert orbitals.T @ overlap @ orbitals == pytest.approx(np.eye(13), abs=1e-4)


@pytest.mark.parametrize("command", ["ri-scf", pytest.param("rimp2", marks=pytest.mark.long)])
def test_an_estimate_bounds_the_disk_space_of_a_run(tmp_path, command):
    arguments = ["--gradient", "--storage", "disk"]
    estimate = run(command, WATER, tmp_path, *arguments, "--estimate")
    energies = [estimate[each]["disk_bytes"] for each in ("scf_estimate", "mp2_estimate") if each in estimate]
    parts = estimate["gradient_estimate"]
    most = max(*energies, *(each["disk_bytes"] for each in parts.values()))
    assert all(each["seconds"] > 0 and each["disk_bytes"] > 0 for each in parts.values())
    used = run(command, WATER, tmp_path, *arguments, alone=True)["peak_disk_bytes"]
    assert most / 3 < used < 1.2 * most + CHUNK_BYTES


def test_in_memory_nothing_is_on_disk(tmp_path):
    estimate = run("ri-scf", WATER, tmp_path, "--gradient", "--estimate")
    assert [each["disk_bytes"] for each in estimate["gradient_estimate"].values()] == [0]
    assert run("ri-scf", WATER, tmp_path, "--gradient", alone=True)["peak_disk_bytes"] == 0


def test_an_estimate_of_exact_integrals_has_the_time(tmp_path, capsys):
    (part,) = run("scf", WATER, tmp_path, "--estimate", "--gradient")["gradient_estimate"].values()
    assert part["seconds"] > 0 and part["disk_bytes"] == 0
    assert "derivatives of integrals" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("ri-scf", ["--density", "d.txt"], "must end in .molden"),
        ("ri-scf", ["--gradient", "--smearing", "0.01"], "--smearing"),
        ("scf", ["--dipole", "--smearing", "0.01"], "--smearing"),
    ],
)
def test_what_has_no_meaning_is_refused_before_anything_is_computed(tmp_path, command, arguments, said):
    with pytest.raises(OutcoreError, match=said):
        run(command, WATER, tmp_path, *arguments)
