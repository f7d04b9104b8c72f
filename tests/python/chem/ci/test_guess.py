"""Matrix elements between determinants, and start vectors."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import all_determinants, integrals, random_hamiltonian, reference_matrix, strings

from outcore.base.errors import OutcoreError
from outcore.chem.ci import determinants, guess
from outcore.chem.ci import hamiltonian as hamiltonians

pytest.importorskip("pyscf")

IRREPS = [2, 0, 3, 0, 1, 2]


def lists(h, electrons):
    return [strings(h.irreps, h.groups, each) for each in electrons]


@pytest.mark.parametrize("electrons", [(3, 3), (3, 2), (1, 4), (0, 2), (6, 1), (6, 6), (1, 0)])
@pytest.mark.parametrize("irreps", [None, IRREPS])
def test_elements_are_those_of_pyscf(electrons, irreps):
    h = random_hamiltonian(6, 3, irreps, core_energy=1.5)
    a, b = all_determinants(h, electrons)
    expected = reference_matrix(h, electrons, a, b)
    np.testing.assert_allclose(determinants.matrix(h, a, b), expected, atol=1e-12)


def test_elements_of_orbitals_that_differ_in_spin():
    (one_a, aa), (one_b, bb) = integrals(5, 1), integrals(5, 2)
    ab = aa + np.einsum("pq,rs->pqrs", one_a, one_b)
    h = hamiltonians.make((one_a, one_b), (aa, ab, bb))
    a, b = all_determinants(h, (3, 2))
    np.testing.assert_allclose(determinants.matrix(h, a, b), reference_matrix(h, (3, 2), a, b), atol=1e-12)


@pytest.mark.parametrize("electrons", [(3, 3), (3, 2), (2, 4), (4, 0)])
def test_spin_square_is_that_of_pyscf(electrons):
    from pyscf.fci import cistring, spin_op

    h = random_hamiltonian(6)
    a, b = all_determinants(h, electrons)
    rows = cistring.strs2addr(6, electrons[0], a.astype(np.int64))
    columns = cistring.strs2addr(6, electrons[1], b.astype(np.int64))
    shape = [cistring.num_strings(6, each) for each in electrons]
    square = determinants.spin_square(a, b)
    for k in range(0, len(a), 1 + len(a) // 10):
        vector = np.zeros(shape)
        vector[rows[k], columns[k]] = 1.0
        expected = spin_op.contract_ss(vector, 6, electrons)[rows, columns]
        np.testing.assert_allclose(square[:, k], expected, atol=1e-12)


@pytest.mark.parametrize("spin", [0, 2, 4])
@pytest.mark.parametrize("irrep", [0, 1])
def test_a_space_that_has_all_gives_the_states_of_a_spin(spin, irrep):
    h = random_hamiltonian(6, 5, IRREPS)
    a, b = all_determinants(h, (3, 3), irrep)
    matrix, square = determinants.matrix(h, a, b), determinants.spin_square(a, b)
    energies, vectors = np.linalg.eigh(matrix)
    squares = np.einsum("ik,ik->k", vectors, square @ vectors)
    expected = energies[abs(squares - spin / 2 * (spin / 2 + 1)) < 1e-6][:4]
    found = guess.start(h, *lists(h, (3, 3)), irrep, roots=len(expected), spin=spin, size=10_000)
    np.testing.assert_allclose(found.energies, expected, atol=1e-10)
    where = {pair: k for k, pair in enumerate(zip(found.alpha.tolist(), found.beta.tolist(), strict=True))}
    swapped = found.vectors[[where[b, a] for a, b in where]]
    np.testing.assert_array_equal(swapped, (-1) ** (spin // 2) * found.vectors)


def test_a_small_space_is_complete_in_spin_and_lies_low():
    h = random_hamiltonian(8, 2)
    alpha, beta = lists(h, (4, 4))
    a, b, whole = guess.select(h, alpha, beta, 0, 100)
    assert not whole and 20 < len(a) <= 100 and len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(a)
    square = determinants.spin_square(a, b)
    spins = np.sqrt(np.linalg.eigvalsh(square) + 0.25) - 0.5
    np.testing.assert_allclose(spins, np.round(spins), atol=1e-9)
    everything = determinants.diagonal(h, *all_determinants(h, (4, 4)))
    assert determinants.diagonal(h, a, b).min() == everything.min()


def test_a_larger_space_lies_lower_down_to_the_whole():
    h = random_hamiltonian(6, 4)
    alpha, beta = lists(h, (3, 3))
    energies = [guess.start(h, alpha, beta, 0, size=size).energies[0] for size in (1, 20, 60, 400)]
    exact = np.linalg.eigvalsh(determinants.matrix(h, *all_determinants(h, (3, 3))))[0]
    assert energies == sorted(energies, reverse=True) and len(set(energies)) == 4
    assert energies[-1] == pytest.approx(exact, abs=1e-10)


def test_too_many_roots_are_refused():
    h = random_hamiltonian(4, 1)
    alpha, beta = lists(h, (1, 1))
    assert len(guess.start(h, alpha, beta, 0, roots=6, spin=2).energies) == 6
    with pytest.raises(OutcoreError, match=r"find 7 roots: .*there are 6 states of irrep A with 2S = 2"):
        guess.start(h, alpha, beta, 0, roots=7, spin=2)


def test_an_irrep_without_determinants_has_no_states():
    h = hamiltonians.make(*integrals(3, 1, [0, 0, 0]), irreps=[0, 0, 0], group="C2v")
    with pytest.raises(OutcoreError, match="0 states of irrep B1"):
        guess.start(h, *lists(h, (2, 1)), 2)
