"""Densities by irreps of a molecule with symmetry."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.chem.hf.skeleton import Skeletons

pyscf = pytest.importorskip("pyscf")
from pyscf import gto, scf  # noqa: E402

from outcore.chem import operations  # noqa: E402

TWISTED = "C 0 0 .67; C 0 0 -.67; H .2 .9 1.23; H -.2 -.9 1.23; H -.2 .9 -1.23; H .2 -.9 -1.23"
PEROXIDE = "O 0 .7 0; O 0 -.7 0; H .9 .8 .3; H -.9 -.8 .3"


def skeletons(mol: gto.Mole) -> Skeletons:
    return Skeletons(mol, operations.find(mol).operations)


@pytest.mark.parametrize("cart", [False, True])
def test_parts_add_up_to_the_density_and_turn_as_their_signs_say(cart):
    mol = gto.M(atom=TWISTED, basis="cc-pvdz", cart=cart, verbose=0)
    found = operations.find(mol).operations
    densities = np.random.default_rng(1).normal(size=(2, mol.nao, mol.nao))
    parts = skeletons(mol).parts(densities)
    assert len(parts) == found.order == 4 and parts[0].signs == (1, 1)
    total = np.zeros_like(densities)
    for part in parts:
        total[part.which] += part.matrices
        turns = [u @ np.eye(mol.nao) for u in operations.matrices(mol, found)]
        for sign, u in zip(part.signs, turns, strict=True):
            for matrix in part.matrices:
                np.testing.assert_allclose(u @ matrix @ u.T, sign * matrix, atol=1e-12)
    np.testing.assert_allclose(total, densities, atol=1e-12)


def test_a_density_of_an_irrep_has_one_part():
    mol = gto.M(atom=TWISTED, basis="cc-pvdz", verbose=0)
    symmetric = scf.RHF(mol).run().make_rdm1()
    every = skeletons(mol).parts(np.random.default_rng(1).normal(size=(1, mol.nao, mol.nao)))
    odd = every[-1].matrices[0]
    assert [part.signs for part in skeletons(mol).parts(symmetric[None])] == [(1, 1)]
    assert [part.signs for part in skeletons(mol).parts(odd[None])] == [every[-1].signs]
    both = skeletons(mol).parts(np.array([symmetric, odd]))
    assert [part.which for part in both] == [[0], [1]]
    mixed = skeletons(mol).parts((symmetric + 1e-7 * odd)[None])
    assert [part.signs for part in mixed] == [(1, 1), every[-1].signs]


def test_a_density_of_nothing_has_a_part():
    mol = gto.M(atom=TWISTED, basis="sto-3g", verbose=0)
    parts = skeletons(mol).parts(np.zeros((1, mol.nao, mol.nao)))
    assert len(parts) == 1 and not parts[0].matrices.any()


def test_atoms_that_are_symmetric_to_some_digits_have_a_symmetric_density():
    mol = gto.M(atom=PEROXIDE, basis="cc-pvdz", verbose=0)
    places = mol.atom_coords() + np.random.default_rng(1).uniform(-1e-8, 1e-8, size=(4, 3))
    mol.set_geom_(places, unit="Bohr")
    density = scf.RHF(mol).run(conv_tol=1e-11).make_rdm1()
    assert 1e-10 < operations.find(mol).operations.change < 1e-7
    assert len(skeletons(mol).parts(density[None])) == 1


def test_without_operations_densities_stay_together():
    mol = gto.M(atom="H 0 0 0; F 0 0 1", basis="sto-3g", verbose=0)
    densities = np.ones((3, mol.nao, mol.nao))
    (part,) = skeletons(mol).parts(densities)
    assert part.which == [0, 1, 2] and part.matrices is densities
