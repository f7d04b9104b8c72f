"""Start vectors from determinants with large weights in a small CI."""

from __future__ import annotations

import ci_water
import numpy as np
import pytest
from ci_cases import all_determinants, integrals, random_hamiltonian, strings

import outcore
from outcore.base.errors import OutcoreError
from outcore.chem.ci import FCI, FCISolver, determinants, guess, selected, solver
from outcore.chem.ci import hamiltonian as hamiltonians

IRREPS = [2, 0, 3, 0, 1, 2]


def lists(h, electrons):
    return [strings(h.irreps, h.groups, each) for each in electrons]


@pytest.mark.parametrize("electrons", [(3, 3), (3, 1), (0, 2), (6, 5)])
@pytest.mark.parametrize("irreps", [None, IRREPS])
def test_neighbours_are_all_determinants_with_one_or_two_electrons_moved(electrons, irreps):
    h = random_hamiltonian(6, 3, irreps)
    a, b = (each.tolist() for each in all_determinants(h, electrons))
    for of in range(0, len(a), 1 + len(a) // 5):
        found = {}
        for bra_a, bra_b, moved in selected.neighbours(h, a[of], b[of]):
            for pair in zip(bra_a.tolist(), bra_b.tolist(), strict=True):
                assert pair not in found
                found[pair] = moved
        moves = {
            pair: tuple((x ^ y).bit_count() // 2 for x, y in zip(pair, (a[of], b[of]), strict=True))
            for pair in zip(a, b, strict=True)
        }
        assert found == {pair: moved for pair, moved in moves.items() if sum(moved) in (1, 2)}


@pytest.mark.parametrize("spins_differ", [False, True])
@pytest.mark.parametrize("roots", [1, 2])
def test_the_heaviest_are_those_of_perturbation_theory(spins_differ, roots, monkeypatch):
    """For a matrix of all determinants, whose small elements outside of a small space are as small as they are
    here: each weight is the square of an element over a difference of energies."""
    monkeypatch.setattr(selected, "_SHARE", 1.0)
    one, two = integrals(6, 5)
    one, two = one + 20 * np.diag(np.arange(6)), 1e-2 * two
    if spins_differ:
        h = hamiltonians.make((one, 1.01 * one), (two, two, two))
    else:
        h = hamiltonians.make(one, two)
    a, b = all_determinants(h, (2, 2))
    matrix = determinants.matrix(h, a, b)
    small = np.argsort(np.diag(matrix), kind="stable")[: 4 if spins_differ else 6]
    if not spins_differ:
        chosen = determinants.first_occupations(a[small], b[small], 6)[:2]
        pairs = list(zip(a.tolist(), b.tolist(), strict=True))
        small = np.array([pairs.index(each) for each in zip(*(x.tolist() for x in chosen), strict=True)])
    energies, vectors = np.linalg.eigh(matrix[np.ix_(small, small)])
    energies, vectors = energies[:roots], vectors[:, :roots]
    gaps = np.diag(matrix)[:, None] - energies
    gaps[small] = 1.0
    weights = ((matrix[:, small] @ vectors / gaps) ** 2).max(axis=1)
    weights[small] = (vectors**2).max(axis=1)
    if not spins_differ:
        occupations = [(x & y, x ^ y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        weights = np.array(
            [weights[[k for k, o in enumerate(occupations) if o == each]].sum() for each in occupations]
        )
    found = selected.heaviest(h, a[small], b[small], energies, vectors, 40)
    numbers = [
        k
        for k, pair in enumerate(zip(a.tolist(), b.tolist(), strict=True))
        if pair in set(zip(*(each.tolist() for each in found), strict=True))
    ]
    assert 30 < len(numbers) <= 40
    others = np.setdiff1d(np.arange(len(a)), numbers)
    assert weights[numbers].min() >= weights[others].max() * (1 - 1e-3)


@pytest.mark.parametrize("spin", [0, 2, None])
def test_states_of_as_many_determinants_lie_lower(spin):
    h = random_hamiltonian(6, 3, IRREPS)
    for size in (10, 30, 60):
        found = [
            guess.start(h, *lists(h, (3, 3)), 0, roots=2, spin=spin, size=size, selection=each)
            for each in guess.SELECTIONS
        ]
        assert found[1].energies.mean() <= found[0].energies.mean()
        square = determinants.spin_square(found[1].alpha, found[1].beta)
        squares = np.einsum("ik,ij,jk->k", found[1].vectors, square, found[1].vectors)
        np.testing.assert_allclose(squares, found[1].spin_squares, atol=1e-8)
    assert found[1].energies.mean() < found[0].energies.mean() - 1e-4


def test_the_whole_space_is_not_selected_from():
    h = random_hamiltonian(6, 3, IRREPS)
    found = [
        guess.start(h, *lists(h, (3, 3)), 1, size=1000, selection=each).energies for each in guess.SELECTIONS
    ]
    np.testing.assert_array_equal(*found)


@pytest.fixture(scope="module")
def nitrogen():
    """With broken bonds: determinants with high diagonal elements weigh as much as the lowest one."""
    from pyscf import gto, scf

    mol = gto.M(atom="N 0 0 0; N 0 0 2.1", basis="sto-3g", symmetry="D2h", verbose=0)
    return scf.RHF(mol).run(conv_tol=1e-11)


def test_a_search_needs_fewer_iterations_and_finds_the_same(nitrogen, tmp_path):
    counts, energies = [], []
    for selection in guess.SELECTIONS:
        given = {"frozen": 2, "guess_size": 50, "guess_selection": selection}
        with FCI(nitrogen, comm=None, threads=1, scratch=str(tmp_path), **given) as ci:
            energies.append(ci.kernel())
            assert ci.converged
            counts.append(len(ci.solved.iterations))
    assert counts[1] < counts[0] - 2
    assert energies[1] == pytest.approx(energies[0], abs=1e-10)


def test_the_solver_of_casscf_selects_as_well(nitrogen):
    from pyscf import mcscf

    first, energies = [], []
    for selection in guess.SELECTIONS:
        mc = mcscf.CASCI(nitrogen, 8, 10)
        mc.verbose = 0
        mc.fcisolver = FCISolver(nitrogen.mol, comm=None, threads=1, guess_size=50, guess_selection=selection)
        mc.fcisolver.on_solved = lambda ci: first.append(float(ci.solved.iterations[0].energies[0]))
        energies.append(mc.kernel()[0])
        mc.fcisolver.close()
        mc.fcisolver.world.close()
    assert first[1] < first[0] - 0.02
    assert energies[1] == pytest.approx(energies[0], abs=1e-9)


def test_several_roots_of_one_spin_are_found(given, tmp_path):
    """Each root has large determinants of its own in the start."""
    hamiltonian = ci_water.hamiltonian(given)
    expected = ci_water.expected(given, roots=3)
    with outcore.World("self", scratch=tmp_path, memory="400MB") as world:
        solved = solver.solve(
            world,
            ci_water.space(hamiltonian),
            hamiltonian,
            roots=3,
            spin=0,
            guess_size=60,
            guess_selection="weights",
            options=solver.SearchOptions(tolerance=1e-7),
        )
        np.testing.assert_allclose(solved.energies, expected, atol=1e-9)
        solved.close()


def test_a_selection_that_is_none_is_refused():
    with pytest.raises(OutcoreError, match="selection by 'size' is none of energy, weights"):
        FCI.from_hamiltonian(random_hamiltonian(4), (2, 2), guess_selection="size")
