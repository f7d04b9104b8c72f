"""Integrals of symmetric molecules: one of several equivalent ones is computed, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.chem import stability
from outcore.chem.hf import scf
from outcore.cli import main as cli

pyscf = pytest.importorskip("pyscf")
from models import molecule  # noqa: E402
from pyscf import scf as reference  # noqa: E402

EXACT = 1e-18  # screening that leaves nothing out and rounds nothing
ETHYLENE = (
    "C 0 0 .6695; C 0 0 -.6695; H 0 .9289 1.2321; H 0 -.9289 1.2321; H 0 .9289 -1.2321; H 0 -.9289 -1.2321"
)
WATER = "O 0 0 .1173; H 0 .7572 -.4692; H 0 -.7572 -.4692"
PEROXIDE = "O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 .3"
# Geometry, basis, and by how much fewer integrals are computed at least.
MOLECULES = {
    "D2h, ethylene": (ETHYLENE, "6-31g*", 2.5),
    "D2, twisted ethylene": (
        "C 0 0 .67; C 0 0 -.67; H .2 .9 1.23; H -.2 -.9 1.23; H -.2 .9 -1.23; H .2 -.9 -1.23",
        "6-31g",
        2.5,
    ),
    "C2v, water": (WATER, "cc-pvtz", 1.2),
    "C2h, trans H2O2": ("O 0 .7 0; O 0 -.7 0; H .9 .8 0; H -.9 -.8 0", "6-31g*", 1.8),
    "C2, H2O2": (PEROXIDE, "6-31g*", 1.8),
    "Cs, methanol": ("C 0 0 0; O 0 0 1.4; H 0 .9 1.7; H 0 -1 -.3; H .9 .5 -.3; H -.9 .5 -.3", "6-31g", 1.1),
    "Ci": ("Li 1 .2 .3; Li -1 -.2 -.3; H .5 1.1 -.4; H -.5 -1.1 .4; He 0 0 1.7; He 0 0 -1.7", "6-31g**", 1.8),
    "D2h, N2": ("N 0 0 .55; N 0 0 -.55", "cc-pvtz", 1.8),
}


def computed(mf: object) -> int:
    """Number of integrals computed in one pass over all."""
    return int(mf.two_electron.summary().computed)  # type: ignore[attr-defined]


every_molecule = pytest.mark.parametrize(
    ("name", "cart"),
    [
        pytest.param(name, cart, marks=pytest.mark.long if cart == number % 2 else ())
        for number, name in enumerate(MOLECULES)
        for cart in (False, True)
    ],
)


@every_molecule
def test_j_and_k_of_any_density_are_those_without_symmetry(name, cart):
    atoms, basis, fewer = MOLECULES[name]
    mol = molecule(atoms, basis, turned=cart, cart=cart)
    random = np.random.default_rng(3)
    symmetric = reference.hf.init_guess_by_minao(mol)
    densities = [symmetric, *random.normal(size=(2, mol.nao, mol.nao))]
    counts = []
    for group in (None, "C1"):
        with scf.RHF(mol, storage="direct", screening=EXACT, group=group) as mf:
            mf.get_jk(dm=symmetric)
            counts.append(computed(mf))
            found = mf.get_jk(dm=np.array(densities), hermi=0)
        for mine, theirs in zip(found, reference.hf.get_jk(mol, np.array(densities), hermi=0), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-11 * np.abs(theirs).max())
    assert counts[1] > fewer * counts[0]


FEW = [
    ("RHF", "direct"),
    ("RHF", "mixed"),
    ("UHF", "disk"),
    ("UHF", "direct"),
    ("ROHF", "disk"),
    ("ROHF", "auto"),
]


@pytest.mark.parametrize(
    ("method", "spin", "charge", "storage"),
    [
        pytest.param(*each, storage, marks=() if (each[0], storage) in FEW else pytest.mark.long)
        for each in (("RHF", 0, 0), ("UHF", 1, 1), ("ROHF", 1, 1))
        for storage in ("disk", "mixed", "auto", "direct")
    ],
)
def test_energies_are_those_without_symmetry(method, spin, charge, storage, tmp_path):
    mol = molecule(PEROXIDE, "6-31g*", turned=True, spin=spin, charge=charge)
    more = {"disk_bytes": 400_000} if storage == "mixed" else {}
    energies = []
    for group in (None, "C1"):
        with getattr(scf, method)(
            mol, storage=storage, scratch=str(tmp_path), error=1e-11, group=group, **more
        ) as mf:
            mf.conv_tol = 1e-12
            energies.append(mf.kernel())
            assert (mf.two_electron.symmetry.operations is None) == (group == "C1")
            bound = mf.energy_error().bound
    assert abs(energies[0] - energies[1]) < 2 * bound < 1e-10


def test_a_broken_symmetry_is_that_without_symmetry(tmp_path):
    """For a stretched molecule UHF has a state whose spin densities are not symmetric."""
    mol = molecule("H 0 0 -1.3; H 0 0 1.3", "6-31g**")
    energies = {}
    for group in (None, "C1"):
        with scf.UHF(mol, scratch=str(tmp_path), error=1e-11, group=group) as mf:
            mf.conv_tol = 1e-12
            left = np.zeros((mol.nao, mol.nao))
            left[0, 0] = 1.0
            energies[group] = mf.kernel(dm0=np.array([left, left[::-1, ::-1]]))
            error = mf.energy_error()
            assert mf.spin_square()[0] > 0.5
    assert abs(energies[None] - energies["C1"]) < 2 * error.bound < 1e-10
    assert energies[None] < reference.RHF(mol).run().e_tot - 0.01


def test_symmetric_orbitals_stay_so_where_another_state_is_lower(tmp_path):
    """Cycles that begin with a symmetric density find no less symmetric one; the stability analysis does."""
    mol = molecule("H 0 0 -1.3; H 0 0 1.3", "6-31g**")
    with scf.UHF(mol, scratch=str(tmp_path)) as mf:
        mf.kernel(dm0=reference.RHF(mol).get_init_guess()[None].repeat(2, 0) / 2)
        assert abs(mf.e_tot - reference.RHF(mol).run().e_tot) < 1e-9
        orbitals = stability.internal(mf).orbitals
        assert mf.kernel(mf.make_rdm1(orbitals, mf.mo_occ)) < reference.RHF(mol).run().e_tot - 0.01


@pytest.mark.parametrize("change", [3e-8, 3e-7, 3e-4])
def test_a_molecule_that_is_not_quite_symmetric_has_its_own_energy(change, tmp_path):
    mol = molecule(PEROXIDE, "6-31g*")
    places = mol.atom_coords()
    places[3, 2] += change
    mol.set_geom_(places, unit="Bohr")
    exact = reference.RHF(mol).run(conv_tol=1e-13, direct_scf=False).e_tot
    with scf.RHF(mol, storage="direct", screening=1e-14, scratch=str(tmp_path)) as mf:
        mf.conv_tol = 1e-12
        assert abs(mf.kernel() - exact) < 1e-11
        assert (mf.two_electron.symmetry.operations is None) == (change > 1e-7)


def test_a_density_that_is_not_quite_symmetric_has_its_own_energy():
    """If atoms are not quite symmetric, the neglected part of the density changes the energy by less than
    1e-10 Hartree, even where the repulsion is largest, in the core of heavy atoms."""
    mol = molecule("Br 0 1.15 0; Br 0 -1.15 0; H 1.1 1.3 .9; H -1.1 -1.3 .9", "sto-3g")
    places = mol.atom_coords()
    places[2, 2] += 1e-8
    mol.set_geom_(places, unit="Bohr")
    symmetric, odd = reference.hf.init_guess_by_minao(mol), np.zeros((mol.nao, mol.nao))
    odd[0, 0], odd[mol.nao // 2 - 1, mol.nao // 2 - 1] = 1.0, -1.0
    assert mol.ao_labels()[0].split()[1:] == mol.ao_labels()[mol.nao // 2 - 1].split()[1:] == ["Br", "1s"]
    for size in (9e-6, 2e-6):
        density = symmetric + size / np.sqrt(2) * odd
        with scf.RHF(mol, storage="direct", screening=EXACT) as mf:
            assert mf.two_electron.symmetry.operations.change > 1e-9
            found, exact = mf.get_jk(dm=density), reference.hf.get_jk(mol, density)
        mine, theirs = (np.sum(density * (j - k / 2)) / 2 for j, k in (found, exact))
        assert abs(mine - theirs) < 1e-10


def test_bytes_are_divided_by_the_number_of_operations(tmp_path):
    mol = molecule(PEROXIDE, "cc-pvdz")
    sizes = []
    for group in (None, "C1"):
        with scf.RHF(mol, scratch=str(tmp_path), group=group, record_bytes=1 << 16, threads=1) as mf:
            mf.kernel()
            summary, estimate = mf.stored_summary, mf.two_electron.estimate()
            assert summary.stored <= summary.computed <= estimate.integrals
            assert summary.bytes <= estimate.disk_bytes
            sizes.append(summary.bytes)
    assert sizes[1] / sizes[0] > 0.9 * 2


def test_kept_integrals_know_their_operations(tmp_path):
    mol = molecule(PEROXIDE, "6-31g")
    energies = []
    for _ in range(2):
        with scf.RHF(mol, keep=str(tmp_path)) as mf:
            energies.append(mf.kernel())
            reused = mf.two_electron.reused
    assert reused and abs(energies[0] - energies[1]) < 1e-11
    with (
        pytest.raises(OutcoreError, match="symmetry operations"),
        scf.RHF(mol, keep=str(tmp_path), group="C1") as mf,
    ):
        mf.kernel()


@pytest.fixture
def peroxide(tmp_path) -> Path:
    path = tmp_path / "peroxide.xyz"
    path.write_text("4\n\n" + PEROXIDE.replace("; ", "\n") + "\n")
    return path


def command(path: Path, *arguments: str) -> dict:
    results = path.with_suffix(".json")
    scratch = ("--scratch", str(path.parent))
    assert cli.run(["scf", str(path), "--basis", "6-31g", *scratch, "--json", str(results), *arguments]) == 0
    found: dict = json.loads(results.read_text())
    return found


def test_the_command_says_what_it_used_and_can_do_without(peroxide, capsys):
    found = command(peroxide)
    assert found["point_group"] == {"name": "C2", "operations": 2, "of_atoms": 2}
    assert (
        "point group C2: of integrals that are equal by its 2 operations one is computed"
        in capsys.readouterr().out
    )
    alone = command(peroxide, "--group", "C1")
    assert alone["point_group"] is None and "point group" not in capsys.readouterr().out
    assert abs(found["energy_hartree"] - alone["energy_hartree"]) < 1e-9
    assert alone["stored"]["stored"] > 1.8 * found["stored"]["stored"]


def test_an_estimate_counts_what_a_run_computes(peroxide, capsys):
    found, run = command(peroxide, "--estimate"), command(peroxide)
    assert found["integrals"] == run["stored"]["computed"]
    assert "point group C2" in capsys.readouterr().out
    assert found["integrals"] < 0.6 * command(peroxide, "--estimate", "--group", "C1")["integrals"]


@pytest.mark.parametrize("group, said", [("D2h", "point group D2h"), ("D3", "it may be D2h, C2v")])
def test_a_group_that_the_molecule_has_not_is_refused(peroxide, group, said):
    with pytest.raises(OutcoreError, match=said):
        command(peroxide, "--group", group)


def test_range_separated_operators_have_the_symmetry_too():
    mol = molecule(PEROXIDE, "6-31g")
    density = np.random.default_rng(1).normal(size=(mol.nao, mol.nao))
    density += density.T
    with scf.RHF(mol, storage="direct", screening=EXACT) as mf:
        for mine, theirs in zip(
            mf.get_jk(dm=density, omega=0.3), reference.hf.get_jk(mol, density, omega=0.3), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, atol=1e-11)
        assert mf._stores.others[0.3].symmetry.operations.order == 2


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_densities_of_any_real_type_have_j_and_k_in_double_precision(dtype, tmp_path):
    mol = molecule(PEROXIDE, "6-31g")
    random = np.random.default_rng(1).integers(-9, 9, size=(mol.nao, mol.nao))
    density = (random + random.T).astype(dtype)
    with scf.RHF(mol, storage="disk", scratch=str(tmp_path), error=1e-11) as mf:
        for mine, theirs in zip(
            mf.get_jk(dm=density), reference.hf.get_jk(mol, density.astype(float)), strict=True
        ):
            assert mine.dtype == np.float64
            np.testing.assert_allclose(mine, theirs, atol=1e-7)
        kept = mf.two_electron
        exact = kept.energy_error(density[None].astype(float))
        assert kept.energy_error(density[None]).worst == pytest.approx(exact.worst, rel=1e-10)
