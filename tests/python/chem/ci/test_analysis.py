"""Largest determinants, weights, natural orbitals and moments, against PySCF."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import random_hamiltonian

from outcore.chem.ci import analysis, determinants, orbitals
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling
from outcore.chem.ci.vector import make
from outcore.job.world import World

pyscf = pytest.importorskip("pyscf")

IRREPS = [2, 0, 3, 0, 1, 2]
WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"


@pytest.fixture(scope="module")
def world():
    with World("self") as made:
        yield made


def random_state(world, electrons, irrep, parity, side=3):
    """A normalised vector, as tiles and in PySCF's form in the caller's orbitals."""
    from pyscf.fci import cistring

    h = random_hamiltonian(6, 1, IRREPS)
    space = Space(h, *electrons, irrep, parity)
    tiling = VectorTiling(space, side)
    states = make(world, tiling, "memory")
    rng = np.random.default_rng(3)
    for tile in states.tiles():
        block = rng.standard_normal(tile.shape)
        if parity and tile.on_diagonal:
            block = block + parity * block.T
        states.put(0, tile, block)
    norm = np.linalg.norm(states.dense())
    for tile in states.tiles():
        states.put(0, tile, states.get(0, tile) / norm)
    dense = states.dense()
    shape = [cistring.num_strings(6, each) for each in electrons]
    theirs = np.zeros(shape)
    a, a_signs = analysis.to_callers(space.alpha.strings, h.permutation)
    b, b_signs = analysis.to_callers(space.beta.strings, h.permutation)
    rows = cistring.strs2addr(6, electrons[0], np.array(a, np.int64))
    columns = cistring.strs2addr(6, electrons[1], np.array(b, np.int64))
    theirs[np.ix_(rows, columns)] = dense * np.outer(a_signs, b_signs)
    return h, states, theirs


CASES = [((3, 3), 0, 1), ((3, 3), 1, -1), ((3, 2), 2, 0), ((2, 2), 3, 0)]


@pytest.mark.parametrize(("electrons", "irrep", "parity"), CASES)
def test_the_largest_determinants_are_those_of_pyscf(world, electrons, irrep, parity):
    from pyscf.fci import addons

    h, states, theirs = random_state(world, electrons, irrep, parity)
    found = analysis.largest(states, 0, h, 12)
    assert len(found) == 12 and found[0].coefficient > 0
    expected = {
        (int(a, 2), int(b, 2)): c
        for c, a, b in addons.large_ci(theirs, 6, electrons, tol=0, return_strs=True)
    }
    turned = np.sign(expected[found[0].alpha, found[0].beta])
    for each in found:
        assert each.coefficient == pytest.approx(turned * expected[each.alpha, each.beta], abs=1e-12)
    sizes = sorted((abs(c) for c in expected.values()), reverse=True)
    np.testing.assert_allclose([abs(each.coefficient) for each in found], sizes[:12], atol=1e-12)


def test_an_occupation_is_written_in_the_callers_order():
    assert analysis.Determinant(1.0, 0b0111, 0b0101).occupation(5) == "2a200"
    assert analysis.Determinant(1.0, 0b0001, 0b1000).occupation(4) == "a00b"


@pytest.mark.parametrize(("electrons", "irrep", "parity"), CASES)
def test_weights_by_excitation_are_those_of_all_determinants(world, electrons, irrep, parity):
    _, states, _ = random_state(world, electrons, irrep, parity)
    space, dense = states.tiling.space, states.dense()
    i, j = np.unravel_index(abs(dense).argmax(), dense.shape)
    reference = int(space.alpha.strings[i]), int(space.beta.strings[j])
    found = analysis.by_excitation(analysis.weights(states, 0, reference))
    expected = np.zeros(len(found))
    for (row, column), value in np.ndenumerate(dense):
        away = int(space.alpha.strings[row]) & ~reference[0], int(space.beta.strings[column]) & ~reference[1]
        expected[away[0].bit_count() + away[1].bit_count()] += value**2
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.sum() == pytest.approx(1.0)


def test_natural_orbitals_diagonalize_the_density_within_irreps():
    h = random_hamiltonian(6, 1, IRREPS)
    density = np.random.default_rng(2).standard_normal((6, 6))
    density = (density + density.T) * (h.irreps[:, None] == h.irreps)
    found = analysis.natural(density, h)
    assert list(found.occupations) == sorted(found.occupations, reverse=True)
    turned = found.rotation.T @ density @ found.rotation
    np.testing.assert_allclose(turned, np.diag(found.occupations), atol=1e-12)
    np.testing.assert_allclose(found.rotation.T @ found.rotation, np.eye(6), atol=1e-12)
    for k, irrep in enumerate(found.irreps):
        assert not found.rotation[h.irreps != irrep, k].any()


def hartree_fock_densities(space):
    """Densities of the lowest determinant."""
    n = space.hamiltonian.orbitals
    order = space.hamiltonian.positions
    return [np.diag(np.isin(np.arange(n), order[:count]).astype(float)) for count in space.electrons]


@pytest.mark.parametrize("frozen", [0, 1])
def test_the_dipole_is_that_of_pyscf(world, frozen):
    mf = pyscf.M(atom=WATER, basis="sto-3g", symmetry=True, verbose=0).RHF().run()
    space = orbitals.of(mf, world, frozen=frozen)
    found = analysis.dipole(space, *hartree_fock_densities(space))
    np.testing.assert_allclose(found, mf.dip_moment(unit="AU", verbose=0), atol=1e-7)


def test_the_angular_momentum_of_a_determinant_names_it(world):
    mf = pyscf.M(atom="N 0 0 -0.55; N 0 0 0.55", basis="6-31g", symmetry=True, verbose=0).RHF().run()
    space = orbitals.of(mf, world, frozen=2)
    one = hartree_fock_densities(space)
    a, b = one
    two = [np.einsum("pq,rs->pqrs", a, each) for each in (a, b, b)]
    two[0] = two[0] - np.einsum("ps,rq->pqrs", a, a)
    two[2] = np.einsum("pq,rs->pqrs", b, b) - np.einsum("ps,rq->pqrs", b, b)
    momentum = analysis.axial_momentum(space, (a, b), tuple(two))
    assert momentum == pytest.approx(0, abs=1e-8)
    assert analysis.linear_label(space, 0, momentum) == "Sigma_g+"


@pytest.mark.parametrize(
    ("irrep", "momentum", "label"),
    [
        ("Ag", 0.0, "Sigma_g+"),
        ("B1g", 0.0, "Sigma_g-"),
        ("B1u", 0.001, "Sigma_u+"),
        ("Au", 0, "Sigma_u-"),
        ("B2u", 1.0, "Pi_u"),
        ("B1g", 4.001, "Delta_g"),
        ("Ag", 2.0, ""),
        ("B2g", 0.0, ""),
    ],
)
def test_states_of_linear_molecules_have_labels(world, irrep, momentum, label):
    mf = pyscf.M(atom="H 0 0 0; H 0 0 0.7", basis="sto-3g", symmetry=True, verbose=0).RHF().run()
    space = orbitals.of(mf, world)
    assert analysis.linear_label(space, space.irrep(irrep), momentum) == label


def test_natural_orbitals_are_written_for_molden(world, tmp_path):
    from pyscf.tools import molden

    mf = pyscf.M(atom=WATER, basis="6-31g", symmetry=True, verbose=0).RHF().run()
    space = orbitals.of(mf, world, frozen=1)
    found = analysis.natural(sum(hartree_fock_densities(space)), space.hamiltonian)
    analysis.write_molden(tmp_path / "no.molden", space, found)
    _, _, coefficients, occupations, labels, _ = molden.load(str(tmp_path / "no.molden"))
    assert coefficients.shape == (13, 13) and occupations.sum() == pytest.approx(10)
    assert labels[0].lower() == "core" and "B1" in labels
    overlap = mf.mol.intor("int1e_ovlp")
    np.testing.assert_allclose(coefficients.T @ overlap @ coefficients, np.eye(13), atol=1e-6)


def test_excitations_are_counted_of_each_spin(world):
    levels = np.array([[0.5, 0.1], [0.2, 0.2]])
    assert analysis.by_excitation(levels).tolist() == pytest.approx([0.5, 0.3, 0.2])
    assert determinants.count(np.array([0b1011], np.uint64)).tolist() == [3]
