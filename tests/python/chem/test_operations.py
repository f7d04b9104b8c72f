"""Operations of the point group of a molecule, on its atoms, shells and functions, in any frame."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.base.errors import OutcoreError

pyscf = pytest.importorskip("pyscf")
from pyscf import gto  # noqa: E402

from outcore.chem import operations  # noqa: E402

# Geometry, its group, number of operations, and number of those that move atoms differently.
MOLECULES = {
    "water": ("O 0 0 .1173; H 0 .7572 -.4692; H 0 -.7572 -.4692", "C2v", 4, 2),
    "ethylene": (
        "C 0 0 .6695; C 0 0 -.6695; H 0 .9289 1.2321; H 0 -.9289 1.2321; H 0 .9289 -1.2321; H 0 -.9289 -1.2321",
        "D2h",
        8,
        4,
    ),
    "twisted ethylene": (
        "C 0 0 .67; C 0 0 -.67; H .2 .9 1.23; H -.2 -.9 1.23; H -.2 .9 -1.23; H .2 -.9 -1.23",
        "D2",
        4,
        4,
    ),
    "trans H2O2": ("O 0 .7 0; O 0 -.7 0; H .9 .8 0; H -.9 -.8 0", "C2h", 4, 2),
    "H2O2": ("O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 .3", "C2", 2, 2),
    "methanol": ("C 0 0 0; O 0 0 1.4; H 0 .9 1.7; H 0 -1 -.3; H .9 .5 -.3; H -.9 .5 -.3", "Cs", 2, 2),
    "four atoms": (
        "Li 1 .2 .3; Li -1 -.2 -.3; H .5 1.1 -.4; H -.5 -1.1 .4; He 0 0 1.7; He 0 0 -1.7",
        "Ci",
        2,
        2,
    ),
    "methane": ("C 0 0 0; H .6 .6 .6; H -.6 -.6 .6; H -.6 .6 -.6; H .6 -.6 -.6", "D2", 4, 4),
    "nitrogen": ("N 0 0 0; N 0 0 1.1", "D2h", 8, 2),
}
NONE = {
    "one atom": "Ne 0 0 0",
    "linear, of different ends": "H 0 0 0; F 0 0 1.1",
    "no symmetry": "O 0 0 0; H 0 .9 .3; F 1.2 -.5 .4; H -.4 -.3 .9",
}


def turned(mol: gto.Mole) -> gto.Mole:
    """The molecule in a frame unrelated to its axes."""
    axes = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    places = mol.atom_coords() @ axes + (0.3, -1.1, 0.7)
    atoms = [(mol.atom_symbol(atom), place) for atom, place in enumerate(places)]
    return gto.M(atom=atoms, unit="Bohr", basis=mol.basis, cart=mol.cart, verbose=0)


@pytest.mark.parametrize("cart", [False, True])
@pytest.mark.parametrize("name", MOLECULES)
def test_functions_turn_as_their_integrals_do(name, cart):
    atoms, group, whole, order = MOLECULES[name]
    basis = {"default": "6-31g", "C": "cc-pvtz", "O": "cc-pvtz", "N": "cc-pvqz"}
    own = gto.M(atom=atoms, basis=basis, cart=cart, verbose=0)
    for mol in (own, turned(own)):
        found = operations.find(mol).operations
        assert (found.group, found.whole, found.order) == (group, whole, order)
        assert found.change < 1e-13
        for u in (each @ np.eye(mol.nao) for each in operations.matrices(mol, found)):
            for kind in ("int1e_ovlp", "int1e_kin", "int1e_nuc"):
                matrix = mol.intor(kind)
                assert np.abs(u.T @ matrix @ u - matrix).max() < 1e-12 * np.abs(matrix).max()
            assert np.abs(u @ u - np.eye(mol.nao)).max() < 1e-13


@pytest.mark.parametrize("name", MOLECULES)
def test_operations_are_a_group_of_different_permutations(name):
    mol = gto.M(atom=MOLECULES[name][0], basis="sto-3g", verbose=0)
    found = operations.find(mol).operations
    every = {tuple(range(mol.natm)), *(tuple(map(int, image)) for image in found.atoms)}
    assert len(every) == found.order
    assert {tuple(a[n] for n in b) for a in every for b in every} == every
    for atoms, shells in zip(found.atoms, found.shells, strict=True):
        assert [mol.bas_atom(to) for to in shells] == [
            atoms[mol.bas_atom(shell)] for shell in range(mol.nbas)
        ]


@pytest.mark.parametrize("name", NONE)
def test_molecules_of_which_no_operation_moves_an_atom_have_none(name):
    found = operations.find(gto.M(atom=NONE[name], basis="sto-3g", verbose=0, spin=None))
    assert found.operations is None and not found.note


def test_atoms_that_are_almost_symmetric_are_not_symmetric():
    atoms = "O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 {}"
    found = operations.find(gto.M(atom=atoms.format(0.3 + 2e-6), basis="sto-3g", verbose=0))
    assert found.operations is None and "C2 holds to" in found.note
    near = operations.find(gto.M(atom=atoms.format(0.3 + 1e-8), basis="sto-3g", verbose=0)).operations
    assert near.group == "C2" and 1e-10 < near.change < operations.SAME_PLACE
    apart = np.linalg.norm(near.coordinates[:, None] - near.coordinates, axis=2)
    for image in near.atoms:
        assert np.abs(apart[np.ix_(image, image)] - apart).max() < 1e-14


@pytest.mark.parametrize(
    "given",
    {
        "basis": {"basis": {"O": "6-31g", "H1": "sto-3g", "H2": "6-31g"}},
        "core potential": {
            "basis": "lanl2dz",
            "atom": "Zn 0 0 0; Na1 0 0 2; Na2 0 0 -2",
            "ecp": {"Zn": "lanl2dz", "Na1": "lanl2dz"},
        },
        "ghost": {"basis": "sto-3g", "atom": "O 0 0 .1173; H 0 .7572 -.4692; ghost-H 0 -.7572 -.4692"},
    }.items(),
    ids=lambda each: each[0],
)  # fmt: skip
def test_atoms_with_other_functions_or_potentials_are_not_alike(given):
    water = {"atom": "O 0 0 .1173; H1 0 .7572 -.4692; H2 0 -.7572 -.4692", "verbose": 0, "spin": None}
    assert operations.find(gto.M(**(water | given[1]))).operations is None


def test_ghosts_on_both_sides_are_alike():
    atoms = "O 0 0 .1173; ghost-H 0 .7572 -.4692; ghost-H 0 -.7572 -.4692"
    assert operations.find(gto.M(atom=atoms, basis="sto-3g", verbose=0)).operations.order == 2


@pytest.mark.parametrize(
    "group, whole", [("C2", 2), ("Ci", 2), ("C2v", 4), ("d2H", 8), ("auto", 8), ("C2h", 4)]
)
def test_a_subgroup_may_be_asked_for(group, whole):
    mol = gto.M(atom=MOLECULES["ethylene"][0], basis="sto-3g", verbose=0)
    found = operations.find(mol, group).operations
    assert found.group == ("D2h" if whole == 8 else group) and found.whole == whole
    assert operations.find(mol, "C1").operations is None


@pytest.mark.parametrize("group", ["D2h", "C2h", "Ci", "D3", "nothing"])
def test_a_group_that_is_not_there_is_refused(group):
    with pytest.raises(OutcoreError, match=f"point group {group}"):
        operations.find(gto.M(atom=MOLECULES["water"][0], basis="sto-3g", verbose=0), group)


def test_shells_may_lie_in_any_order():
    """As in a basis with shells sorted by angular momentum, so that those of an atom are not neighbours."""
    mol = gto.M(atom=MOLECULES["H2O2"][0], basis="6-31g*", verbose=0)
    order = np.argsort(mol._bas[:, 1], kind="stable")
    mol._bas = np.asarray(mol._bas[order], order="C")
    assert np.any(np.diff(mol._bas[:, 0]) < 0)
    found = operations.find(mol).operations
    for atoms, shells in zip(found.atoms, found.shells, strict=True):
        assert sorted(shells) == list(range(mol.nbas))
        for shell, image in enumerate(shells):
            assert mol.bas_atom(image) == atoms[mol.bas_atom(shell)]
            assert np.array_equal(mol._bas[image, 1:], mol._bas[shell, 1:])
    overlap = mol.intor_symmetric("int1e_ovlp")
    for u in (each @ np.eye(mol.nao) for each in operations.matrices(mol, found)):
        np.testing.assert_allclose(u.T @ overlap @ u, overlap, atol=1e-12)


@pytest.mark.parametrize("size", [1, 5, 200])
def test_a_matrix_with_few_elements_in_each_row_multiplies_as_a_dense_one(size):
    generator = np.random.default_rng(size)
    dense = np.where(generator.random((size, size)) < 3 / size, generator.normal(size=(size, size)), 0.0)
    if size > 1:
        dense[1] = 0.0  # a row without any
    rows, columns = np.nonzero(dense)
    order = generator.permutation(len(rows))
    rows, columns = rows[order], columns[order]
    few = operations.FewInRows.of(rows, columns, dense[rows, columns], size)
    other = generator.normal(size=(size, 3))
    np.testing.assert_allclose(few @ other, dense @ other, atol=1e-13)
    np.testing.assert_allclose(few.transposed @ other, dense.T @ other, atol=1e-13)


@pytest.mark.parametrize("cart", [False, True])
@pytest.mark.parametrize("name", MOLECULES)
def test_along_the_axes_functions_are_exchanged_up_to_signs(name, cart):
    atoms, _, _, order = MOLECULES[name]
    basis = {"default": "6-31g", "C": "cc-pvtz", "O": "cc-pvtz", "N": "cc-pvqz"}
    mol = turned(gto.M(atom=atoms, basis=basis, cart=cart, verbose=0))
    found = operations.find(mol).operations
    placed, w = operations.along_axes(mol, found), operations.to_axes(mol, found) @ np.eye(mol.nao)
    images, signs = operations.functions(mol, found)
    assert images.shape == signs.shape == (order, mol.nao)
    for kind in ("int1e_ovlp", "int1e_kin", "int1e_nuc"):
        matrix = placed.intor(kind)
        largest = np.abs(matrix).max()
        assert np.abs(w.T @ matrix @ w - mol.intor(kind)).max() < 1e-11 * largest
        for image, sign in zip(images, signs, strict=True):
            copy = matrix[np.ix_(image, image)] * np.outer(sign, sign)
            assert np.abs(copy - matrix).max() < 1e-12 * largest


def test_operations_are_products_of_generators():
    found = operations.find(
        gto.M(atom=MOLECULES["twisted ethylene"][0], basis="sto-3g", verbose=0)
    ).operations
    every = [np.ones(3, int), *found.signs]
    for number, signs in enumerate(every):
        product = np.prod([every[1 << bit] for bit in range(2) if number >> bit & 1], axis=0)
        assert np.array_equal(signs, product * np.ones(3, int))


def test_other_functions_on_the_atoms_have_to_be_exchanged_too():
    atoms = "O 0 0 .1173; H1 0 .7572 -.4692; H2 0 -.7572 -.4692"
    mol = gto.M(atom=atoms.replace("H1", "H").replace("H2", "H"), basis="sto-3g", verbose=0)
    beside = gto.M(atom=atoms, basis={"O": "6-31g", "H1": "6-31g", "H2": "sto-3g"}, verbose=0)
    assert operations.find(mol).operations.order == 2
    assert operations.find(mol, None, beside).operations is None
    with pytest.raises(OutcoreError, match="point group C2v"):
        operations.find(mol, "C2v", beside)


@pytest.mark.parametrize("name", ["H2O2", "nitrogen", "four atoms", "ethylene"])
def test_axes_are_those_of_the_frame_where_these_are_as_good(name):
    mol = gto.M(atom=MOLECULES[name][0], basis="6-31g*", verbose=0)
    places = mol.atom_coords()
    places[0, 1] += 2e-8  # by which found axes are turned
    for each, same in (
        (mol, True),
        (mol.set_geom_(places, unit="Bohr", inplace=False), True),
        (turned(mol), False),
    ):
        found = operations.find(each).operations
        # Of a centre of symmetry any axes are as good.
        assert np.array_equal(found.axes, np.eye(3)) == (same or found.group == "Ci")
        for atoms, signs in zip(found.atoms, found.signs, strict=True):
            matrix = (found.axes.T * signs) @ found.axes
            moved = (found.coordinates - found.coordinates.mean(axis=0)) @ matrix.T
            image = found.coordinates[atoms] - found.coordinates.mean(axis=0)
            assert np.abs(moved - image).max() < 1e-13
