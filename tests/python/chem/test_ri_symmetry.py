"""Fitted integrals of symmetric molecules: one of several equivalent ones is computed, and nothing else
changes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli

pytest.importorskip("pyscf")
from models import molecule
from pyscf import gto
from pyscf import scf as reference

from outcore import World
from outcore.chem import operations, ri
from outcore.chem.hf.skeleton import Skeletons
from outcore.chem.ri import auxiliary
from outcore.chem.ri.exchange import Blocks
from outcore.chem.ri.jk import JkWorker
from outcore.chem.ri.symmetry import Columns, FittingSymmetry

WATER = "O 0 0 .1173; H 0 .7572 -.4692; H 0 -.7572 -.4692"
ETHYLENE = (
    "C 0 0 .6695; C 0 0 -.6695; H 0 .9289 1.2321; H 0 -.9289 1.2321; H 0 .9289 -1.2321; H 0 -.9289 -1.2321"
)
TWISTED = "C 0 0 .67; C 0 0 -.67; H .2 .9 1.23; H -.2 -.9 1.23; H -.2 .9 -1.23; H .2 -.9 -1.23"
PEROXIDE = "O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 .3"
# Geometry, basis, and by how much fewer products are stored at least.
MOLECULES = {
    "D2h, ethylene": (ETHYLENE, "6-31g*", 2.2),
    "D2, twisted ethylene": (TWISTED, "6-31g*", 2.2),
    "C2v, water": (WATER, "cc-pvtz", 1.2),
    "C2h, trans H2O2": ("O 0 .7 0; O 0 -.7 0; H .9 .8 0; H -.9 -.8 0", "6-31g*", 1.7),
    "C2, H2O2": (PEROXIDE, "cc-pvdz", 1.7),
    "Cs, methanol": ("C 0 0 0; O 0 0 1.4; H 0 .9 1.7; H 0 -1 -.3; H .9 .5 -.3; H -.9 .5 -.3", "6-31g", 1.1),
    "Ci": ("Li 1 .2 .3; Li -1 -.2 -.3; H .5 1.1 -.4; H -.5 -1.1 .4; He 0 0 1.7; He 0 0 -1.7", "6-31g**", 1.7),
    "D2h, N2": ("N 0 0 .55; N 0 0 -.55", "cc-pvtz", 1.7),
}
JKFIT = "def2-universal-jkfit"
# An auxiliary basis of orbitals, whose metric has a condition of 1e5. Sets for fitting have one of 1e14 in
# Cartesian functions, by which the rounding of J and K is larger.
SMALL = {name: gto.load("cc-pvdz", name) for name in ("H", "He", "Li", "C", "N", "O")}


def found(mol: gto.Mole, group: str | None, densities: np.ndarray, **settings) -> tuple[np.ndarray, ...]:
    """J and K for any densities, then J alone."""
    fitting = ri.DensityFitting(mol, settings.pop("auxbasis", SMALL), group=group, **settings)
    try:
        j, k = fitting.get_jk(densities, 0)
        return j, k, fitting.get_jk(densities, 0, with_k=False)[0]
    finally:
        fitting.close()


def symmetric_and_not(mol: gto.Mole) -> np.ndarray:
    random = np.random.default_rng(3).normal(size=(2, mol.nao, mol.nao))
    return np.array([reference.hf.init_guess_by_minao(mol), *random])


def close(mine: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...], tolerance: float = 1e-12) -> None:
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance * np.abs(other).max())


# ---- J and K ----


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
    atoms, basis, _ = MOLECULES[name]
    mol = molecule(atoms, basis, turned=cart, cart=cart)
    densities = symmetric_and_not(mol)
    storage = "disk" if cart else "auto"
    mine, theirs = (found(mol, group, densities, storage=storage) for group in (None, "C1"))
    close(mine, theirs)
    assert not np.array_equal(mine[1], theirs[1])  # they were made in different ways


@pytest.mark.parametrize("name", MOLECULES)
def test_j_and_k_of_a_turned_molecule_are_those_without_symmetry(name):
    atoms, basis, _ = MOLECULES[name]
    mol = molecule(atoms, basis, turned=True)
    densities = symmetric_and_not(mol)
    close(found(mol, None, densities), found(mol, "C1", densities))


def test_j_and_k_with_antisymmetric_and_complex_densities():
    mol = molecule(TWISTED, "6-31g", turned=True)
    random = np.random.default_rng(1).normal(size=(2, mol.nao, mol.nao))
    odd = random[0] - random[0].T
    density = odd + 1j * random[1]
    close(found(mol, None, density)[:2], found(mol, "C1", density)[:2])
    close(found(mol, None, odd)[1:2], found(mol, "C1", odd)[1:2])


@pytest.mark.parametrize("group", ["C2", "Ci", "Cs", "C2v", "C2h"])
def test_a_subgroup_may_be_asked_for(group):
    mol = molecule(ETHYLENE, "6-31g", turned=True)
    densities = symmetric_and_not(mol)
    close(found(mol, group, densities), found(mol, "C1", densities))


def test_j_of_a_symmetric_density_reads_the_symmetric_rows_alone(monkeypatch):
    read, add = [0], JkWorker.add

    def counted(self, irrep, rows):
        read[0] += len(rows)
        add(self, irrep, rows)

    monkeypatch.setattr(JkWorker, "add", counted)
    mol = molecule(TWISTED, "6-31g")
    symmetric, random, _ = symmetric_and_not(mol)
    for storage in ("auto", "disk"):
        fitting = ri.DensityFitting(mol, SMALL, storage=storage)
        rows = fitting.build().three_index.rows
        counts = []
        for density, with_k in ((symmetric, False), (random, False), (symmetric, True)):
            read[0] = 0
            fitting.get_jk(density, with_k=with_k)
            counts.append(read[0])
        fitting.close()
        assert counts[1:] == [rows, rows]
        assert 0.2 * rows < counts[0] < 0.4 * rows  # of the four irreps of D2


def test_range_separated_operators_have_the_symmetry_too():
    mol = molecule(PEROXIDE, "6-31g", turned=True)
    densities = symmetric_and_not(mol)
    results = []
    for group in (None, "C1"):
        fitting = ri.DensityFitting(mol, JKFIT, group=group)
        results.append(fitting.get_jk(densities, 0, omega=0.3) + fitting.get_jk(densities, 0, omega=-0.3))
        with fitting.range_coulomb(0.3) as other:
            assert other.three_index.symmetry.order == (1 if group else 2)
            results[-1] += (np.array([1.0 + other.three_index.dropped]),)
        fitting.close()
    close(*results, tolerance=1e-9)  # of singular metrics, in both ways


def test_a_linearly_dependent_auxiliary_basis_is_reduced_as_without_symmetry():
    mol = molecule(PEROXIDE, "6-31g", turned=True)
    basis = {name: gto.load("cc-pvdz-jkfit", name) * 2 for name in ("O", "H")}
    energies, dropped = [], []
    for group in (None, "C1"):
        with ri.RHF(mol, basis, group=group) as mf:
            mf.conv_tol = 1e-12
            energies.append(mf.kernel())
            dropped.append(mf.with_df.three_index.dropped)
    assert dropped[0] == dropped[1] > 0
    assert abs(energies[0] - energies[1]) < 1e-9


@pytest.mark.parametrize("cart", [False, True])
def test_rows_are_those_without_symmetry_up_to_a_rotation(cart):
    mol = molecule(TWISTED, "6-31g*", turned=True, cart=cart)
    products = []
    for group in (None, "C1"):
        fitting = ri.DensityFitting(mol, SMALL, group=group)
        rows = np.concatenate(list(fitting.loop(17)))
        assert rows.shape == (fitting.get_naoaux(), mol.nao * (mol.nao + 1) // 2)
        products.append(rows.T @ rows)
        fitting.close()
    np.testing.assert_allclose(*products, atol=1e-11)


# ---- exchange of symmetric densities ----


@every_molecule
def test_j_and_k_of_symmetric_densities_of_any_sign(name, cart):
    """Also for more orbitals than are transformed at once."""
    atoms, basis, _ = MOLECULES[name]
    mol = molecule(atoms, basis, turned=True, cart=cart)
    random = np.random.default_rng(5).normal(size=(2, mol.nao, mol.nao))
    parts = Skeletons(mol, operations.find(mol).operations).parts(random + random.transpose(0, 2, 1))
    assert all(sign == 1 for sign in parts[0].signs)
    close(found(mol, None, parts[0].matrices), found(mol, "C1", parts[0].matrices))


def test_symmetric_densities_take_functions_that_stand_for_others_alone(monkeypatch):
    mol = molecule(TWISTED, "6-31g", turned=True)
    symmetric, random, _ = symmetric_and_not(mol)
    fitting = ri.DensityFitting(mol, SMALL)
    expected = fitting.get_jk(np.array([symmetric, random]), 0)
    expand = []
    monkeypatch.setattr(Columns, "expand", lambda *given: expand.append(given))
    np.testing.assert_allclose(fitting.get_jk(symmetric, with_j=False)[1], expected[1][0], atol=1e-12)
    assert not expand and len(fitting.three_index.symmetry.standing) < 0.5 * mol.nao
    fitting.get_jk(random, 0, with_j=False)
    assert expand
    fitting.close()


def test_densities_that_are_not_quite_symmetric_are_taken_as_they_are():
    mol = molecule(TWISTED, "6-31g", turned=True)
    symmetric, random, _ = symmetric_and_not(mol)
    densities = np.array([symmetric + size * (random + random.T) for size in (1e-3, 1e-6, 1e-10)])
    close(found(mol, None, densities), found(mol, "C1", densities))


def test_orbitals_of_irreps_make_their_density():
    mol = molecule(TWISTED, "6-31g", turned=True)
    auxmol = auxiliary.build(mol, SMALL)
    used = FittingSymmetry(mol, auxmol, operations.find(mol, None, auxmol))
    density = used.densities_to_axes(reference.RHF(mol).run(conv_tol=1e-13).make_rdm1()[None])[0]
    blocks = Blocks(used, density)
    assert blocks.is_symmetric
    total = np.zeros_like(density)
    for irrep, sign, orbitals in blocks.orbitals():
        assert sign == 1.0 and orbitals.shape[1] == mol.nao
        total += orbitals.T @ orbitals
        for image, signs, character in zip(used.images, used.signs, used.characters[irrep], strict=True):
            np.testing.assert_allclose(orbitals[:, image], character * signs * orbitals, atol=1e-12)
    np.testing.assert_allclose(total, density, atol=1e-12)
    assert sum(len(orbitals) for *_, orbitals in blocks.orbitals()) == mol.nelectron // 2
    assert not Blocks(used, density + 1e-9 * np.eye(mol.nao)[0] * np.eye(mol.nao)[0][:, None]).is_symmetric


# ---- energies ----


@pytest.mark.parametrize(
    ("method", "spin", "charge", "storage"),
    [
        ("RHF", 0, 0, "auto"),
        ("UHF", 1, 1, "disk"),
        ("ROHF", 1, 1, "disk"),
        pytest.param("RHF", 0, 0, "disk", marks=pytest.mark.long),
        pytest.param("UHF", 1, 1, "auto", marks=pytest.mark.long),
        pytest.param("ROHF", 1, 1, "auto", marks=pytest.mark.long),
    ],
)
def test_energies_are_those_without_symmetry(method, spin, charge, storage):
    mol = molecule(PEROXIDE, "6-31g*", turned=True, spin=spin, charge=charge)
    energies = []
    for group in (None, "C1"):
        with getattr(ri, method)(mol, JKFIT, storage=storage, group=group) as mf:
            mf.conv_tol = 1e-12
            energies.append(mf.kernel())
            assert mf.with_df.three_index.symmetry.order == (1 if group else 2)
    assert abs(energies[0] - energies[1]) < 1e-10


@pytest.mark.parametrize(
    "atoms, given",
    [
        ("O 0 0 .1173; ghost-H 0 .7572 -.4692; ghost-H 0 -.7572 -.4692", {"basis": "6-31g"}),
        (
            "I 0 1.35 0; I 0 -1.35 0; H 1.1 1.5 .9; H -1.1 -1.5 .9",
            {"basis": {"I": "def2-svp", "H": "sto-3g"}, "ecp": {"I": "def2-svp"}},
        ),
    ],
    ids=["ghosts", "potentials"],
)
def test_energies_with_ghosts_and_core_potentials(atoms, given):
    mol = molecule(atoms, **given)
    energies = []
    for group in (None, "C1"):
        with ri.RHF(mol, JKFIT, group=group) as mf:
            mf.conv_tol = 1e-12
            energies.append(mf.kernel())
            assert mf.with_df.three_index.symmetry.order == (1 if group else 2)
    assert abs(energies[0] - energies[1]) < 1e-10


def test_a_broken_symmetry_is_that_without_symmetry():
    """For a stretched molecule UHF has a state whose spin densities are not symmetric."""
    mol = molecule("H 0 0 -1.3; H 0 0 1.3", "6-31g**")
    left = np.zeros((mol.nao, mol.nao))
    left[0, 0] = 1.0
    energies = []
    for group in (None, "C1"):
        with ri.UHF(mol, JKFIT, group=group) as mf:
            mf.conv_tol = 1e-12
            energies.append(mf.kernel(dm0=np.array([left, left[::-1, ::-1]])))
            assert mf.spin_square()[0] > 0.5
    assert abs(energies[0] - energies[1]) < 1e-10


@pytest.mark.parametrize("change", [3e-8, 3e-7, 3e-4])
def test_a_molecule_that_is_not_quite_symmetric_has_its_own_energy(change):
    mol = molecule(PEROXIDE, "6-31g*")
    places = mol.atom_coords()
    places[3, 2] += change
    mol.set_geom_(places, unit="Bohr")
    energies = []
    for group in (None, "C1"):
        with ri.RHF(mol, JKFIT, group=group) as mf:
            mf.conv_tol = 1e-12
            energies.append(mf.kernel())
            assert mf.with_df.three_index.symmetry.order == (2 if group is None and change < 1e-7 else 1)
    assert abs(energies[0] - energies[1]) < 1e-11


# ---- what is stored ----


@pytest.mark.parametrize("name", MOLECULES)
def test_fewer_products_are_stored(name):
    atoms, basis, fewer = MOLECULES[name]
    mol = molecule(atoms, basis)
    columns = []
    for group in (None, "C1"):
        fitting = ri.DensityFitting(mol, JKFIT, group=group)
        columns.append(fitting.prepare().pairs.kept_columns)
        fitting.close()
    assert columns[1] > fewer * columns[0]


def test_bytes_are_divided_by_the_number_of_operations():
    """For eight molecules in general positions, which the operations of D2h exchange."""
    water = np.array([[3.0, 4.0, 5.0], [3.6, 4.7, 5.2], [3.3, 3.2, 5.6]])
    signs = [(x, y, z) for x in (1, -1) for y in (1, -1) for z in (1, -1)]
    atoms = [(symbol, place * sign) for sign in signs for symbol, place in zip("OHH", water, strict=True)]
    mol = gto.M(atom=atoms, basis="6-31g", verbose=0)
    planned = []
    for group in (None, "C1"):
        fitting = ri.DensityFitting(mol, "def2-svp-jkfit", group=group, screening=0.0, storage="disk")
        integrals = fitting.prepare()
        planned.append((integrals.bytes, integrals.plan.build_bytes))
        fitting.close()
    (bytes_, build), (of_all, build_of_all) = planned
    assert 0.9 * 8 < of_all / bytes_ <= 8
    assert build < build_of_all


def test_the_metric_is_made_of_blocks():
    mol = molecule(TWISTED, "6-31g", turned=True)
    auxmol = auxiliary.build(mol, JKFIT)
    used = FittingSymmetry(mol, auxmol, operations.find(mol, None, auxmol))
    rows = used.adapted @ np.eye(auxmol.nao)
    np.testing.assert_allclose(rows @ rows.T, np.eye(auxmol.nao), atol=1e-14)
    assert sum(used.irreps) == auxmol.nao and len(used.irreps) == 4 and min(used.irreps) > 0
    metric = rows @ used.auxmol.intor("int2c2e") @ rows.T
    of = np.repeat(np.arange(4), used.irreps)
    assert np.abs(metric[of[:, None] != of]).max() < 1e-11
    np.testing.assert_allclose(
        np.linalg.eigvalsh(metric), np.linalg.eigvalsh(auxmol.intor("int2c2e")), atol=1e-10
    )


def test_kept_integrals_know_their_operations(tmp_path):
    mol = molecule(PEROXIDE, "6-31g", turned=True)
    density, found_again = symmetric_and_not(mol)[1], []
    results = []
    for _ in range(2):
        fitting = ri.DensityFitting(mol, JKFIT, checkpoint=tmp_path)
        results.append(fitting.get_jk(density, 0))
        found_again.append(fitting.three_index.resumed)
        fitting.close()
    assert found_again == [False, True]
    close(*results, tolerance=1e-13)
    fitting = ri.DensityFitting(mol, JKFIT, checkpoint=tmp_path, group="C1")
    with pytest.raises(OutcoreError, match="symmetry operations"):
        fitting.get_jk(density, 0)
    fitting.close()


# ---- which group ----


@pytest.mark.parametrize("group, said", [("D2h", "point group D2h"), ("D3", "it may be D2h, C2v")])
def test_a_group_that_the_molecule_has_not_is_refused(group, said):
    with pytest.raises(OutcoreError, match=said):
        ri.DensityFitting(molecule(PEROXIDE, "6-31g"), JKFIT, group=group).build()


def test_integrals_of_another_group_are_made_anew():
    mol = molecule(PEROXIDE, "6-31g")
    fitting = ri.DensityFitting(mol, JKFIT)
    first = fitting.integrals()
    fitting.group = "C1"
    assert fitting.integrals() is not first and fitting.three_index.symmetry.order == 1
    fitting.close()


def test_the_same_operations_at_all_processes_of_a_world():
    mol = molecule(PEROXIDE, "6-31g")
    with World("self") as world:
        found = operations.find_at_all(world, mol, "C2")
    assert found.operations.group == "C2"


# ---- the command ----


@pytest.fixture
def peroxide(tmp_path):
    path = tmp_path / "peroxide.xyz"
    path.write_text("4\n\n" + PEROXIDE.replace("; ", "\n") + "\n")
    return path


def command(path, *arguments: str, name: str = "ri-scf") -> dict:
    results = path.with_suffix(".json")
    given = ("--basis", "cc-pvdz", "--scratch", str(path.parent), "--json", str(results))
    assert cli.run([name, str(path), *given, *arguments]) == 0
    found: dict = json.loads(results.read_text())
    return found


def test_the_command_says_what_it_used_and_can_do_without(peroxide, capsys):
    used = command(peroxide, "--conv-tol", "1e-12")
    assert used["point_group"] == {"name": "C2", "operations": 2, "of_atoms": 2}
    line = "point group C2: of integrals that are equal by its 2 operations one is computed"
    assert line in capsys.readouterr().out
    alone = command(peroxide, "--conv-tol", "1e-12", "--group", "C1")
    assert alone["point_group"] is None and "point group" not in capsys.readouterr().out
    assert abs(used["energy_hartree"] - alone["energy_hartree"]) < 1e-10
    assert alone["integral_bytes"] > 1.7 * used["integral_bytes"]


def test_an_estimate_counts_what_a_run_stores(peroxide, capsys):
    sizes = {}
    for group in ("C2", "C1"):
        given = ("--group", group, "--storage", "disk")
        estimate = command(peroxide, *given, "--estimate")["scf_estimate"]
        assert estimate["disk_bytes"] == command(peroxide, *given)["integral_bytes"]
        sizes[group] = estimate["disk_bytes"]
    assert sizes["C1"] > 1.7 * sizes["C2"]


def test_a_correlated_run_has_the_energy_without_symmetry(peroxide):
    energies = [command(peroxide, *given, name="rimp2")["total_hartree"] for given in ((), ("--group", "C1"))]
    assert abs(energies[0] - energies[1]) < 1e-9
