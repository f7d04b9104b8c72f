"""The error of the energy from stored integrals: the allowed, the predicted, and the actual one."""

from __future__ import annotations

import errno
import json

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.chem.hf import accuracy, scf
from outcore.cli import main as cli

pyscf = pytest.importorskip("pyscf")
from pyscf import gto  # noqa: E402
from pyscf import scf as reference  # noqa: E402

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
MOLECULES = {
    "H2O cc-pVTZ, s to f, spherical": {"atom": WATER, "basis": "cc-pvtz"},
    "H2O cc-pVTZ, s to f, cartesian": {"atom": WATER, "basis": "cc-pvtz", "cart": True},
    "H2O aug-cc-pVDZ": {"atom": WATER, "basis": "aug-cc-pvdz"},
    "LiF 6-31G*": {"atom": "Li 0 0 0; F 0 0 1.6", "basis": "6-31g*"},
    "Ne general contraction": {"atom": "Ne 0 0 0", "basis": "ano@4s3p2d"},
    "ICl, effective core potentials": {"atom": "I 0 0 0; Cl 0 0 2.3", "basis": "lanl2dz", "ecp": "lanl2dz"},
    "C2H6 6-31G*": {
        "atom": "C 0 0 0; C 0 0 1.54; H 0 1.02 -.39; H .88 -.51 -.39; H -.88 -.51 -.39;"
        "H 0 -1.02 1.93; H .88 .51 1.93; H -.88 .51 1.93",
        "basis": "6-31g*",
    },
    "O2, triplet, cc-pVTZ": {"atom": "O 0 0 0; O 0 0 1.2", "basis": "cc-pvtz", "spin": 2},
    "NH4, radical cation, cartesian": {
        "atom": "N 0 0 0; H 1 0 0; H -.33 .94 0; H -.33 -.47 .82; H -.33 -.47 -.82",
        "basis": "6-31g**",
        "cart": True,
        "charge": 2,
        "spin": 1,
    },
}
ALLOWED = (1e-7, 1e-8, 1e-9, 1e-10)


def molecule(**given) -> gto.Mole:
    return gto.M(verbose=0, **given)


def mean_field(mol: gto.Mole, **settings):
    mf = (scf.UHF if mol.spin else scf.RHF)(mol, comm=None, **settings)
    mf.conv_tol = 1e-12
    return mf


@pytest.fixture
def water() -> gto.Mole:
    return molecule(atom=WATER, basis="6-31g*")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            each,
            marks=()
            if each
            in (
                "H2O cc-pVTZ, s to f, cartesian",
                "Ne general contraction",
                "ICl, effective core potentials",
                "O2, triplet, cc-pVTZ",
            )
            else pytest.mark.long,
        )
        for each in MOLECULES
    ],
)
def test_the_error_is_within_the_bound_and_the_bound_within_what_is_allowed(name, tmp_path):
    mol = molecule(**MOLECULES[name])
    exact = (reference.UHF if mol.spin else reference.RHF)(mol).run(conv_tol=1e-13, direct_scf=False).e_tot
    for allowed in ALLOWED:
        with mean_field(mol, scratch=str(tmp_path), error=allowed) as mf:
            error = mf.kernel() - exact
            promised = mf.energy_error()
        assert promised.kept and promised.bound <= allowed
        assert abs(error) <= promised.bound + 1e-12


def test_errors_scatter_as_the_standard_deviation_says(tmp_path):
    """Over many geometries: there is no bias, and the bound is near the actual errors."""
    errors = []
    for stretch in np.linspace(0.95, 1.05, 12):
        mol = molecule(atom=WATER.replace("0.757", f"{0.757 * stretch}"), basis="6-31g*")
        exact = reference.RHF(mol).run(conv_tol=1e-13, direct_scf=False).e_tot
        with mean_field(mol, scratch=str(tmp_path), error=1e-6) as mf:
            errors.append((mf.kernel() - exact) / mf.energy_error().sigma)
    assert 0.2 < np.sqrt(np.mean(np.square(errors))) < 1.5
    assert abs(np.mean(errors)) < 0.9  # three standard deviations of the mean of twelve


def test_symmetric_molecules_err_no_more(tmp_path):
    """Integrals that symmetry makes equal are rounded differently, so the bound holds without regard to
    symmetry."""
    atoms = "; ".join(
        f"H {np.cos(angle)} {np.sin(angle)} 0" for angle in np.arange(6) * np.pi / 3
    )  # order of the group: 24
    mol = molecule(atom=atoms, basis="6-31g**")
    exact = reference.RHF(mol).run(conv_tol=1e-13, direct_scf=False).e_tot
    for allowed in (1e-6, 1e-7, 1e-8):
        with mean_field(mol, scratch=str(tmp_path), error=allowed) as mf:
            assert abs(mf.kernel() - exact) <= mf.energy_error().bound


@pytest.mark.parametrize("spin", [0, 2])
def test_integrals_kept_whole_give_the_same_energy(spin, tmp_path):
    mol = molecule(atom="O 0 0 0; O 0 0 1.2", basis="6-31g*", spin=spin)
    with mean_field(mol, scratch=str(tmp_path), screening=1e-18) as whole:
        exact = whole.kernel()
        assert whole.energy_error().sigma < 1e-17
        assert whole.stored_summary.bytes > 8 * whole.stored_summary.stored * 0.9
    with mean_field(mol, scratch=str(tmp_path)) as mf:
        assert abs(mf.kernel() - exact) <= mf.energy_error().bound <= 1e-9
        assert mf.stored_summary.bytes < whole.stored_summary.bytes


def test_other_densities_are_kept_well_too(water, tmp_path):
    """Steps are capped: J and K of a density unrelated to the ground state."""
    density = np.random.default_rng(1).standard_normal((water.nao, water.nao))
    density += density.T
    with mean_field(water, scratch=str(tmp_path), error=1e-6) as mf:
        coulomb, exchange = mf.get_jk(dm=density)
    j, k = reference.hf.get_jk(water, density)
    tolerance = accuracy.LARGEST_STEP * np.abs(density).max() * water.nao
    np.testing.assert_allclose(coulomb, j, atol=tolerance)
    np.testing.assert_allclose(exchange, k, atol=tolerance)


def test_less_error_takes_more_bytes(water, tmp_path):
    sizes = []
    for allowed in (1e-7, 1e-9, 1e-11):
        with mean_field(water, scratch=str(tmp_path), error=allowed) as mf:
            mf.kernel()
            sizes.append(mf.stored_summary.bytes)
    assert sizes[0] < sizes[1] < sizes[2]


def test_a_screening_is_taken_as_it_is(water, tmp_path):
    with mean_field(water, scratch=str(tmp_path), screening=1e-9) as mf:
        mf.kernel()
        error = mf.energy_error()
    assert error.allowed is None and error.kept
    assert error.sigma > 0


def test_the_command_reports_the_bound(tmp_path, capsys):
    path, results = tmp_path / "water.xyz", tmp_path / "results.json"
    path.write_text("3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n")
    arguments = ["scf", str(path), "--basis", "6-31g*", "--scratch", str(tmp_path), "--json", str(results)]
    assert cli.run([*arguments, "--error", "1e-8"]) == 0
    output = capsys.readouterr().out
    assert "allowed 1e-08 Eh" in output and "NOT KEPT" not in output
    storage = json.loads(results.read_text())["storage_error"]
    assert 0 < storage["sigma"] < storage["bound"] <= storage["allowed"] == 1e-8
    assert storage["worst"] > storage["bound"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"error": 0.0}, "error 0.0 is not positive"),
        ({"error": -1e-9}, "not positive"),
        ({"error": float("nan")}, "not positive"),
        ({"error": 1e-9, "screening": 1e-10}, "not both"),
    ],
)
def test_what_cannot_be_kept_is_refused(water, settings, text):
    with pytest.raises(OutcoreError, match=text) as caught:
        scf.RHF(water, comm=None, **settings)
    assert caught.value.errno == errno.EINVAL


def test_crude_densities_have_all_electrons_and_fill_all_functions():
    mol = molecule(atom=WATER, basis="cc-pvtz", cart=True)
    first, second = accuracy.crude_densities(mol)
    overlap = mol.intor("int1e_ovlp")
    assert np.sum(first * overlap) == pytest.approx(10)
    assert np.sum(second * overlap) == pytest.approx(10, abs=0.1)
    assert np.abs(np.diag(first)).min() > 0


def test_ghost_atoms_and_odd_electrons_have_crude_densities():
    mol = molecule(atom=WATER + "; ghost-O 0 0 3", basis="6-31g", charge=1, spin=1)
    assert np.isfinite(accuracy.crude_densities(mol)).all()


def test_unpaired_electrons_may_mix_shells_of_an_atom_that_symmetry_keeps_apart() -> None:
    closed, open_shell = (
        accuracy.crude_densities(gto.M(atom="Mn 0 0 0", basis="def2-svp", spin=spin, charge=1, verbose=0))
        for spin in (0, 4)
    )
    s_and_d = np.s_[:, 0:5, 14:19]
    assert abs(closed[s_and_d]).max() < 1e-10
    assert abs(open_shell[s_and_d]).max() > 1e-3
