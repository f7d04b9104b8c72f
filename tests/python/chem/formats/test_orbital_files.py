"""Files of orbitals that commands write, as PySCF reads them."""

import numpy as np
import pytest
from pyscf import lib, scf
from pyscf.tools import molden

from outcore.base.errors import OutcoreError
from outcore.chem.formats import orbitals
from outcore.cli import main as cli

OH = "2\nmultiplicity=2\nO 0 0 0\nH 0 0 0.97\n"
WATER = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"


def run(command, tmp_path, text, *more):
    (tmp_path / "a.xyz").write_text(text)
    given = ["--basis", "6-31g*", "--threads", "1", "--quiet", "--scratch", str(tmp_path)]
    return cli.run([command, str(tmp_path / "a.xyz"), *given, *more])


@pytest.mark.parametrize(
    ("command", "text", "more"),
    [
        ("scf", WATER, ["--storage", "direct"]),
        ("scf", OH, ["--rohf", "--storage", "direct"]),
        ("rimp2", OH, []),
        ("fci", OH, ["--rohf", "--frozen", "3", "--frozen-virtual", "9"]),
    ],
)
def test_a_chkfile_has_the_state_of_the_scf(command, text, more, tmp_path):
    path = tmp_path / "a.chk"
    run(command, tmp_path, text, *more, "--save-orbitals", str(path))
    mol, found = lib.chkfile.load_mol(str(path)), lib.chkfile.load(str(path), "scf")
    kind = scf.ROHF if "--rohf" in more else scf.UHF if mol.spin else scf.RHF
    mf = kind(mol)
    mf = mf.density_fit("cc-pvdz-jkfit") if command == "rimp2" else mf
    energy = mf.energy_tot(mf.make_rdm1(found["mo_coeff"], found["mo_occ"]))
    assert energy == pytest.approx(found["e_tot"], abs=1e-4 if command == "rimp2" else 1e-7)
    left = np.linalg.norm(mf.get_grad(found["mo_coeff"], found["mo_occ"]))
    assert left < (1e-2 if command == "rimp2" else 1e-4)


@pytest.mark.parametrize("text", [WATER, OH])
def test_pyscf_begins_with_a_chkfile_and_is_done(text, tmp_path):
    path = tmp_path / "a.chk"
    run("scf", tmp_path, text, "--storage", "direct", "--save-orbitals", str(path))
    mf = scf.HF(lib.chkfile.load_mol(str(path)))
    mf.chkfile, mf.init_guess, mf.verbose = str(path), "chkfile", 0
    mf.kernel()
    assert mf.converged and mf.cycles <= 2


@pytest.mark.parametrize("text", [WATER, OH])
def test_a_molden_file_has_orbitals_of_each_spin(text, tmp_path):
    path = tmp_path / "a.molden"
    run("scf", tmp_path, text, "--storage", "direct", "--save-orbitals", str(path))
    mol, energies, coefficients, occupied, *_ = molden.load(str(path))
    spins = 2 if text == OH else 1
    assert np.ndim(occupied) == spins
    alpha = coefficients[0] if spins == 2 else coefficients
    lowest = (energies[0] if spins == 2 else energies)[0]
    np.testing.assert_allclose(alpha.T @ mol.intor("int1e_ovlp") @ alpha, np.eye(alpha.shape[1]), atol=1e-5)
    assert np.sum(occupied) == pytest.approx(mol.nelectron)
    assert lowest == pytest.approx(-20.6, abs=0.3)


def test_what_was_written_begins_another_run(tmp_path, capsys):
    path = tmp_path / "a.chk"
    run("ri-scf", tmp_path, WATER, "--save-orbitals", str(path))
    (tmp_path / "b.xyz").write_text(WATER.replace("0.1173", "0.1273"))
    given = ["--basis", "cc-pvdz", "--threads", "1", "--restart", str(path)]
    assert cli.run(["ri-scf", str(tmp_path / "b.xyz"), *given]) == 0
    assert f"begins with the orbitals of {path}" in " ".join(capsys.readouterr().out.split())


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(OutcoreError, match=r"must end in \.molden or \.chk"):
        run("scf", tmp_path, WATER, "--save-orbitals", str(tmp_path / "a.wfn"))


def test_an_estimate_has_no_orbitals(tmp_path):
    with pytest.raises(OutcoreError, match="--save-orbitals has no effect with --estimate"):
        run("scf", tmp_path, WATER, "--estimate", "--save-orbitals", str(tmp_path / "a.chk"))


def test_a_file_that_is_there_stays_if_the_new_one_cannot_be_made(tmp_path):
    path = tmp_path / "a.chk"
    path.write_text("old")

    class Broken:
        mo_coeff = mo_energy = mo_occ = np.eye(2)
        mol, e_tot = None, 0.0

    with pytest.raises(AttributeError):
        orbitals.write(path, Broken())
    assert [each.name for each in tmp_path.iterdir()] == ["a.chk"]
    assert path.read_text() == "old"
