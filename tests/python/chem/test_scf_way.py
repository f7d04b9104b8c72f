"""The way of an SCF to its state: second order, stability, smearing, occupations, orbitals of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outcore.base.errors import NotConverged, OutcoreError
from outcore.cli import main as cli

pytest.importorskip("pyscf")

from pyscf import gto, scf
from pyscf.scf import addons
from pyscf.tools import molden

WATER = "O 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
STRETCHED = "H 0 0 0\nH 0 0 2.5\n"


class Runs:
    """Commands for one molecule, and PySCF's object of it."""

    def __init__(self, directory: Path, capsys: Any, atoms: str, basis: str) -> None:
        self.directory, self.basis, self._capsys, self._atoms = directory, basis, capsys, atoms
        self.path = directory / "molecule.xyz"
        self.path.write_text(f"{len(atoms.splitlines())}\n\n{atoms}")

    def __call__(self, command: str, *arguments: object) -> tuple[dict[str, Any], str]:
        """Results and output of a run; Hartree-Fock uses no disk, which takes the least time."""
        results = self.directory / "results.json"
        more = ("--storage", "direct") if command == "scf" and "--storage" not in arguments else ()
        given = [
            command,
            self.path,
            "--basis",
            self.basis,
            "--threads",
            1,
            "--json",
            results,
            *more,
            *arguments,
        ]
        assert cli.run([str(each) for each in given]) == 0
        return json.loads(results.read_text()), self._capsys.readouterr().out

    def refused(self, command: str, *arguments: object) -> str:
        with pytest.raises((OutcoreError, cli.UsageError)) as caught:
            self(command, *arguments)
        return str(caught.value)

    def molecule(self, **given: Any) -> gto.Mole:
        return gto.M(atom=self._atoms, basis=self.basis, verbose=0, **given)


@pytest.fixture
def runs(tmp_path, capsys):
    return lambda atoms, basis="sto-3g": Runs(tmp_path, capsys, atoms, basis)


@pytest.mark.parametrize(("command", "storage"), [("scf", "disk"), ("ri-scf", "auto")])
def test_stability_leads_to_a_lower_state(runs, command, storage):
    hydrogen = runs(STRETCHED, "cc-pvdz")
    mf = scf.UHF(hydrogen.molecule())
    mf = mf.density_fit() if command == "ri-scf" else mf
    alpha, beta = mf.get_init_guess()
    alpha[:5, :5], beta[:5, :5] = 0, 0
    expected = mf.run(np.array([alpha, mf.get_init_guess()[1]]), conv_tol=1e-11).newton().run().e_tot
    found, output = hydrogen(command, "--uhf", "--storage", storage, "--stability")
    assert found["energy_hartree"] == pytest.approx(expected, abs=2e-8)
    assert "is a saddle point" in output and found["stability"]["followed"] > 0
    assert found["stability"]["stable"] and found["stability"]["lowest_eigenvalue_hartree"] > 0


def test_closed_shells_that_are_not_stable_towards_uhf_are_said(runs):
    hydrogen = runs(STRETCHED)
    found, output = hydrogen("scf", "--stability")
    assert found["stability"]["stable"] and not found["stability"]["stable_towards_uhf"]
    assert "--uhf has a lower one" in output


@pytest.mark.parametrize("kind", ["rohf"])
def test_second_order_ends_where_diis_does(runs, kind):
    water = runs(WATER, "6-31g")
    given = ("scf", "--charge", 0 if kind == "rhf" else 1, f"--{kind}")
    expected, _ = water(*given)
    found, _ = water(*given, "--second-order")
    assert found["energy_hartree"] == pytest.approx(expected["energy_hartree"], abs=2e-9)
    assert found["converged"] and found["stability"]["stable"]


def test_second_order_takes_over_where_diis_does_not_converge(runs):
    """One electron oscillates between two orbitals of the same energy."""
    radical = runs("N 0 0 0\nO 0 0 1.15\n")
    expected = scf.UHF(radical.molecule(spin=1)).newton().run(conv_tol=1e-11).e_tot
    found, output = radical("scf")
    assert "second order from cycle" in output and found["stability"]["stable"]
    assert found["energy_hartree"] == pytest.approx(expected, abs=2e-9)
    assert "after 30 cycles" in radical.refused("scf", "--no-second-order", "--max-cycle", 30)


@pytest.mark.parametrize("kind", [pytest.param("rohf", marks=pytest.mark.long), "uhf"])
@pytest.mark.parametrize("way", ["diis", "second order"])
def test_shells_of_linear_molecules_may_be_filled_in_part(tmp_path, capsys, kind, way):
    """PySCF's SCF in the whole group of such a molecule does not converge."""
    runs = Runs(tmp_path, capsys, "N 0 0 0\nO 0 0 1.15\n", "sto-3g")
    reference = getattr(scf, kind.upper())(runs.molecule(spin=1, symmetry="C2v")).newton().run()
    second = ["--second-order"] if way == "second order" else []
    dump = ["--write-fcidump", tmp_path / "dump", "--no-solve"]
    found, shown = runs("fci", f"--{kind}", *second, *dump)
    assert "point group Coov" in shown
    assert found["scf_energy_hartree"] == pytest.approx(reference.e_tot, abs=1e-8)


def test_a_level_shift_is_taken_away_in_the_end(runs):
    water = runs(WATER)
    expected = scf.RHF(water.molecule()).run(conv_tol=1e-11)
    found, _ = water("scf", "--level-shift", 0.5, "--damping", 0.2, "--diis-space", 4)
    plain, _ = water("scf")
    assert found["energy_hartree"] == pytest.approx(expected.e_tot, abs=2e-9)
    assert found["cycles"] > plain["cycles"]


@pytest.mark.parametrize(("command", "uhf"), [("scf", True), ("ri-scf", False)])
def test_smeared_occupations_have_the_energies_of_pyscf(runs, command, uhf):
    nitrogen = runs("N 0 0 0\nN 0 0 1.8\n")
    mf = (scf.UHF if uhf else scf.RHF)(nitrogen.molecule())
    mf = mf.density_fit(auxbasis="def2-svp-jkfit") if command == "ri-scf" else mf
    mf = addons.smearing(mf, sigma=0.02, method="fermi", fix_spin=uhf).run(conv_tol=1e-11)
    found, output = nitrogen(command, "--smearing", 0.02, *(("--uhf",) if uhf else ()))
    assert found["energy_hartree"] == pytest.approx(mf.e_tot, abs=1e-7)
    assert found["smearing"]["free_energy_hartree"] == pytest.approx(mf.e_free, abs=1e-8)
    assert "free energy" in output
    assert "--smearing" in nitrogen.refused("rimp2", "--smearing", 0.02)


def test_electrons_of_irreps_are_as_asked_for(runs, tmp_path):
    water = runs(WATER)
    electrons = {"A1": 6, "B2": 4, "B1": 0}
    mol = water.molecule(symmetry=True)
    expected = scf.RHF(mol)
    expected.irrep_nelec = electrons
    expected.run(conv_tol=1e-11)
    asked = ("--irrep-nelec", "A1=6,B2=4,B1=0", "--max-cycle", 200)
    kept = ("--checkpoint", tmp_path / "kept")
    found, _ = water("scf", *asked, *kept)
    assert found["energy_hartree"] == pytest.approx(expected.e_tot, abs=2e-9)
    assert "irrep_nelec" in water.refused("scf", "--irrep-nelec", "A1=6,B2=2,B1=2", *kept)
    assert "A1, B1, B2" in water.refused("scf", "--irrep-nelec", "A1g=6")


@pytest.mark.parametrize("form", ["molden", "chk"])
def test_orbitals_of_a_file_of_another_basis_are_a_start(runs, tmp_path, form):
    water, path = runs(WATER, "6-31g"), tmp_path / f"other.{form}"
    mf = scf.UHF(gto.M(atom=WATER, basis="sto-3g", charge=1, spin=1, verbose=0))
    mf.chkfile = str(path)
    mf.kernel()
    if form == "molden":
        path.unlink()
        molden.from_scf(mf, str(path))
    given = ("scf", "--charge", 1, "--restart", path)
    found, output = water(*given)
    expected = scf.UHF(water.molecule(charge=1, spin=1)).run(conv_tol=1e-11).e_tot
    assert found["energy_hartree"] == pytest.approx(expected, abs=2e-9)
    assert f"begins with the orbitals of {path}" in output.replace("\n", "")
    runs("O 0 0 0\nH 0 0 0.96\n").path.touch()
    assert "other atoms" in water.refused(*given, "--spin", 0)
    path.write_text("no orbitals")
    assert "neither a Molden file nor a chkfile" in water.refused(*given, "--spin", 0)


def test_swapped_orbitals_stay_occupied(runs, tmp_path):
    """The hole of an ion of water lies in its second orbital, as with PySCF's maximum overlap."""
    water = runs(WATER)
    ground = scf.UHF(water.molecule(charge=1, spin=1)).run(conv_tol=1e-11)
    occupied = ground.mo_occ.copy()
    occupied[1][[3, 4]] = occupied[1][[4, 3]]
    excited = addons.mom_occ(scf.UHF(ground.mol), ground.mo_coeff, occupied)
    expected = excited.run(ground.make_rdm1(ground.mo_coeff, occupied), conv_tol=1e-11).e_tot
    kept = tmp_path / "ground"
    water("scf", "--charge", 1, "--checkpoint", kept)
    found, _ = water(
        "scf", "--charge", 1, "--restart", kept, "--swap", "b4:5", "--checkpoint", tmp_path / "up"
    )
    assert found["energy_hartree"] == pytest.approx(expected, abs=2e-9)
    assert found["energy_hartree"] > ground.e_tot + 0.01
    assert "swapped" in water.refused("scf", "--charge", 1, "--checkpoint", tmp_path / "up")
    nothing = water.refused("scf", "--charge", 1, "--restart", kept, "--swap", "b1:2")
    assert "the occupations stay as they are" in nothing


def test_noise_of_stored_integrals_does_not_choose_the_state(runs):
    """In a ring of 4n atoms two orbitals of the first cycle are degenerate, one of them occupied: whatever breaks
    the tie leads to a saddle point or to the state below it."""
    angles = 2 * np.pi * np.arange(12) / 12
    ring = runs("".join(f"H {3 * np.cos(a):.10f} {3 * np.sin(a):.10f} 0\n" for a in angles))
    exact, _ = ring("scf", "--screening", 1e-13)
    found, _ = ring("scf", "--error", 1e-6, "--storage", "disk")
    assert found["stability"]["stable"]
    assert abs(found["energy_hartree"] - exact["energy_hartree"]) < found["storage_error"]["bound"] + 1e-9


def test_iron_oxide_ends_in_a_minimum_that_is_stationary_in_pyscf(runs, tmp_path):
    """DIIS does not converge, and second order leads to a saddle point first. PySCF's own way ends at
    -1336.8939."""
    oxide = runs("Fe 0 0 0\nO 0 0 1.62\n", "def2-svp")
    kept = tmp_path / "feo.chk"
    found, output = oxide("scf", "--spin", 4, "--storage", "disk", "--save-orbitals", kept)
    assert "second order" in output and "is a saddle point" in output
    assert found["stability"]["stable"] and found["energy_hartree"] < -1336.97
    mf = scf.UHF(oxide.molecule(spin=4)).set(max_cycle=4, conv_tol=1e-7, conv_tol_grad=1e-3)
    assert mf.kernel(mf.from_chk(str(kept))) == pytest.approx(found["energy_hartree"], abs=1e-7)
    assert mf.converged


def test_a_run_that_was_stopped_in_its_scf_ends_as_one_that_was_not(runs, tmp_path):
    water = runs(WATER, "6-31g")
    given = ("ccsd", "--integrals", "conventional", "--triples")
    whole, output = water(*given)
    assert "orbital gradient of 1e-07" in output
    kept = ("--checkpoint", tmp_path / "kept")
    with pytest.raises(NotConverged):
        water(*given, *kept, "--max-cycle", 3)
    found, _ = water(*given, *kept)
    for name in ("ccsd_energy_hartree", "ccsd_t_energy_hartree"):
        assert found[name] == pytest.approx(whole[name], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--level-shift -1", "--scf-level-shift -1"),
        ("--damping 1", "--scf-damping 1"),
        ("--diis-space 1", "--diis-space 1"),
        ("--second-order --damping 0.5", "--scf-damping has no effect with --second-order"),
        ("--smearing 0.01 --stability", "--stability has no effect with --smearing"),
        ("--swap 1:2", "--swap needs --restart"),
        ("--swap 1-2 --restart .", "--swap 1-2"),
        ("--irrep-nelec A1", "--irrep-nelec A1"),
        ("--restart /nowhere/at.all", "No such file"),
    ],
)
def test_options_of_the_way_are_checked(runs, options, text):
    assert text in runs(WATER).refused("scf", *options.split())
