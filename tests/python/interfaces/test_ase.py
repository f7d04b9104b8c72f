"""The calculator of ASE: PySCF's numbers in ASE's units, and ASE's own tools with it."""

import json
import sys

import numpy as np
import pytest
from ase import Atoms
from ase.build import molecule
from ase.calculators.calculator import (
    CalculatorSetupError,
    InputError,
    PropertyNotImplementedError,
    ReadError,
    SCFError,
    get_calculator_class,
)
from ase.constraints import FixAtoms
from ase.mep import NEB
from ase.optimize import BFGS, FIRE
from ase.units import Bohr, Hartree, invcm
from ase.vibrations import Vibrations
from pyscf import gto, scf
from pyscf.hessian import thermo

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli
from outcore.interfaces import job
from outcore.interfaces.ase import Outcore, _geometry

CHEAP = {"method": "hf", "basis": "sto-3g", "storage": "direct", "threads": 1}


def pyscf_of(atoms, **given):
    places = zip(atoms.get_chemical_symbols(), atoms.positions, strict=True)
    return gto.M(atom=list(places), basis="sto-3g", verbose=0, **given)


def test_energy_forces_and_dipole_are_pyscfs_in_the_units_of_ase():
    atoms = molecule("H2O")
    atoms.calc = Outcore(**CHEAP)
    mf = scf.RHF(pyscf_of(atoms)).run(conv_tol=1e-12)
    np.testing.assert_allclose(atoms.get_forces(), -mf.nuc_grad_method().kernel() * Hartree / Bohr, atol=1e-5)
    assert atoms.get_potential_energy() == pytest.approx(mf.e_tot * Hartree, abs=1e-6)
    np.testing.assert_allclose(
        atoms.get_dipole_moment(), mf.dip_moment(unit="AU", verbose=0) * Bohr, atol=1e-5
    )


def test_numbers_are_those_of_the_command_in_other_units(tmp_path):
    """With CODATA's constants, not those of ASE."""
    atoms = molecule("H2O")
    (tmp_path / "a.xyz").write_text(_geometry(atoms))
    given = [
        "--basis",
        "sto-3g",
        "--storage",
        "direct",
        "--threads",
        "1",
        "--gradient",
        "--dipole",
        "--quiet",
    ]
    assert cli.run(["scf", str(tmp_path / "a.xyz"), *given, "--json", str(tmp_path / "r.json")]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    atoms.calc = Outcore(**CHEAP)
    hartree_ev, bohr_angstrom, debye = 27.211386, 0.529177211, 0.20819434
    assert atoms.get_potential_energy() == pytest.approx(found["energy_hartree"] * hartree_ev, rel=1e-7)
    wanted = -np.array(found["gradient_hartree_per_bohr"]) * hartree_ev / bohr_angstrom
    np.testing.assert_allclose(atoms.get_forces(), wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        atoms.get_dipole_moment(), np.array(found["dipole_debye"]) * debye, rtol=1e-6, atol=1e-7
    )


def test_a_geometry_is_relaxed_and_its_vibrations_are_those_of_an_analytic_hessian(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    atoms = Atoms("H2", [(0, 0, 0), (0, 0, 0.73)])
    atoms.calc = Outcore(**CHEAP)
    BFGS(atoms, logfile=None).run(fmax=1e-3)
    mf = scf.RHF(pyscf_of(atoms)).run(conv_tol=1e-12)
    assert abs(mf.nuc_grad_method().kernel()).max() * Hartree / Bohr < 1e-3
    assert atoms.get_distance(0, 1) == pytest.approx(0.712, abs=1e-3)
    vibrations = Vibrations(atoms, delta=0.005)
    vibrations.run()
    wanted = thermo.harmonic_analysis(mf.mol, mf.Hessian().kernel())["freq_wavenumber"][-1].real
    assert vibrations.get_energies()[-1].real / invcm == pytest.approx(wanted, rel=3e-3)


def test_a_band_finds_the_barrier_of_a_proton_between_two_atoms(tmp_path):
    # He-H+-He with fixed helium: the barrier is in the middle, by symmetry.
    first = Atoms("HeHHe", [(0, 0, 0), (0, 0, 0.95), (0, 0, 2.8)])
    last = Atoms("HeHHe", [(0, 0, 0), (0, 0, 1.85), (0, 0, 2.8)])
    for each in (first, last):
        each.set_constraint(FixAtoms([0, 2]))
    images = [first, first.copy(), last]
    band = NEB(images, climb=True, method="improvedtangent")
    band.interpolate()
    images[1].positions[1, 2] = 1.37
    for each in images:
        each.calc = Outcore(**CHEAP, charge=1)
    FIRE(band, logfile=None).run(fmax=0.1, steps=20)
    assert images[1].positions[1, 2] == pytest.approx(1.4, abs=0.02)
    energies = [each.get_potential_energy() for each in images]
    assert energies[0] == pytest.approx(energies[2], abs=1e-5)
    middle, side = (
        pyscf_of(Atoms("HeHHe", [(0, 0, 0), (0, 0, z), (0, 0, 2.8)]), charge=1) for z in (1.4, 0.95)
    )
    barrier = (scf.RHF(middle).run().e_tot - scf.RHF(side).run().e_tot) * Hartree
    assert energies[1] - energies[0] == pytest.approx(barrier, abs=5e-3)


def test_a_step_begins_with_the_orbitals_of_the_one_before(tmp_path):
    atoms = molecule("H2O")
    cycles = []
    calc = atoms.calc = Outcore(**CHEAP, checkpoint=tmp_path / "kept")
    compute = job.compute

    def counted(*given):
        done = compute(*given)
        cycles.append(done.results["cycles"])
        return done

    job.compute = counted
    try:
        atoms.get_potential_energy()
        atoms.positions[0, 2] += 1e-3
        atoms.get_potential_energy()
    finally:
        job.compute = compute
    assert cycles[1] < cycles[0]
    assert len([each for each in (tmp_path / "kept").iterdir() if each.is_dir()]) == 1
    assert calc.warnings == []


def test_results_are_kept_and_read_without_a_calculation(tmp_path, monkeypatch):
    atoms = Atoms("H2", [(0, 0, 0), (0, 0, 0.8)])
    atoms.calc = Outcore(**CHEAP, max_cycle=30)
    energy, forces = atoms.get_potential_energy(), atoms.get_forces()
    atoms.calc.write(tmp_path / "h2.json")
    monkeypatch.setattr(job, "compute", None)
    found = Outcore(restart=tmp_path / "h2.json")
    assert found.parameters["max_cycle"] == 30
    again = found.get_atoms()
    assert again.get_potential_energy() == energy
    np.testing.assert_array_equal(again.get_forces(), forces)


def test_a_file_that_is_none_of_it_is_a_read_error(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(ReadError, match=r"a\.json"):
        Outcore(restart=tmp_path / "a.json")


def test_charge_and_unpaired_electrons_are_those_of_the_atoms():
    atoms = Atoms("OH", [(0, 0, 0), (0, 0, 0.97)], magmoms=[1, 0])
    atoms.calc = Outcore(**CHEAP)
    mf = scf.UHF(pyscf_of(atoms, spin=1)).run(conv_tol=1e-11)
    assert atoms.get_potential_energy() == pytest.approx(mf.e_tot * Hartree, abs=1e-5)
    atoms.calc.set(spin=3)
    with pytest.raises(InputError, match="spin is 3, but that of the atoms is 1"):
        atoms.get_potential_energy()


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"method": "b3lyp"}, "method 'b3lyp'"),
        ({"basis": None}, "basis is missing"),
        ({"frozen": 1}, "'outcore scf' has no option 'frozen'"),
        ({"gradient": True}, "'gradient' is set by"),
        ({"max_cycle": [{}]}, "max_cycle is neither"),
        ({"label": "water"}, "'label' has no effect"),
        ({"directory": "here"}, "'directory' has no effect"),
        ({"unit": "bohr"}, "'unit' is set by"),
        ({"memroy": "1GB"}, "'outcore scf' has no option 'memroy'"),
    ],
)
def test_wrong_keywords_are_input_errors_when_they_are_given(keywords, said):
    with pytest.raises(InputError, match=said):
        Outcore(**CHEAP | keywords)


@pytest.mark.parametrize(
    ("atoms", "keywords", "error", "said"),
    [
        (Atoms("H2", [(0, 0, 0), (0, 0, 0.8)], cell=[9, 9, 9], pbc=True), {}, InputError, "periodic"),
        (molecule("H2O"), {"basis": "no-such-set"}, InputError, "no-such-set"),
        (molecule("H2O"), {"charge": 1, "spin": 0}, InputError, "electrons"),
        (molecule("H2O"), {"max_cycle": "many"}, InputError, "many"),
        (molecule("H2O"), {"memory": "a lot"}, InputError, "a lot"),
        (molecule("H2O"), {"memory": "40MB"}, CalculatorSetupError, "40"),
    ],
)
def test_what_cannot_be_computed_is_an_error_of_ase_before_anything_is_computed(
    atoms, keywords, error, said, monkeypatch
):
    monkeypatch.setattr("outcore.chem.search.SCFSearch.run", lambda *_, **__: pytest.fail("an SCF has begun"))
    atoms.calc = Outcore(**CHEAP | keywords)
    with pytest.raises(error, match=said):
        atoms.get_potential_energy()
    assert atoms.calc.results == {}


def test_an_scf_that_does_not_converge_is_an_error_of_ase():
    atoms = molecule("H2O")
    atoms.calc = Outcore(**CHEAP, max_cycle=1, second_order=False)
    with pytest.raises(SCFError, match="converge"):
        atoms.get_potential_energy()
    assert atoms.calc.results == {}


def test_a_property_that_a_method_does_not_have_is_not_implemented():
    atoms = Atoms("H2", [(0, 0, 0), (0, 0, 0.8)])
    atoms.calc = Outcore(method="fci", basis="sto-3g", threads=1)
    with pytest.raises(PropertyNotImplementedError, match="forces"):
        atoms.get_forces()
    assert abs(atoms.get_dipole_moment()).max() < 1e-8
    with pytest.raises(PropertyNotImplementedError):
        atoms.get_stress()


def test_ase_finds_it_by_its_name_and_a_missing_ase_is_named(monkeypatch):
    assert get_calculator_class("outcore") is Outcore
    monkeypatch.setitem(sys.modules, "ase.calculators", None)
    monkeypatch.delitem(sys.modules, "outcore.interfaces.ase")
    with pytest.raises(OutcoreError, match="pip install 'ase"):
        __import__("outcore.interfaces.ase")
