"""The states that are searched, and requests that cannot be met."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import integrals, random_hamiltonian

from outcore.base.errors import OutcoreError
from outcore.chem.ci import hamiltonian as hamiltonians
from outcore.chem.ci import target

IRREPS = [2, 0, 3, 0, 1, 2]


@pytest.fixture
def hamiltonian():
    return hamiltonians.make(*integrals(6, 1, IRREPS), irreps=IRREPS, group="C2v")


@pytest.mark.parametrize(
    ("electrons", "spin", "pair", "parity"),
    [
        ((3, 3), None, (3, 3), 1),
        ((3, 3), 2, (3, 3), -1),
        ((4, 2), None, (3, 3), -1),
        ((4, 2), 0, (3, 3), 1),
        ((3, 3), 4, (5, 1), 0),
        ((4, 3), None, (4, 3), 0),
        ((3, 4), None, (4, 3), 0),
        ((3, 4), 3, (5, 2), 0),
        ((0, 0), None, (0, 0), 1),
        ((1, 0), None, (1, 0), 0),
        ((6, 6), None, (6, 6), 1),
    ],
)
def test_electrons_follow_from_the_spin(hamiltonian, electrons, spin, pair, parity):
    found = target.of(hamiltonian, electrons, spin=spin)
    assert (found.electrons, found.parity) == (pair, parity)
    assert found.spin == (abs(electrons[0] - electrons[1]) if spin is None else spin)


def test_folding_can_be_switched_off(hamiltonian):
    found = target.of(hamiltonian, (3, 3), spin=2, folded=False)
    assert (found.electrons, found.parity) == ((4, 2), 0)
    with pytest.raises(OutcoreError, match="2S = 4 are not folded"):
        target.of(hamiltonian, (3, 3), spin=4, folded=True)


def test_electrons_of_each_spin_can_be_fixed(hamiltonian):
    found = target.of(hamiltonian, (4, 2), fixed=True)
    assert (found.electrons, found.parity, found.spin) == ((4, 2), 0, 2)
    found = target.of(hamiltonian, (2, 4), fixed=True)
    assert (found.electrons, found.parity, found.spin) == ((2, 4), 0, 2)
    found = target.of(hamiltonian, (3, 3), spin=2, fixed=True)
    assert (found.electrons, found.parity) == ((3, 3), -1)
    with pytest.raises(OutcoreError, match="with 4 unpaired electrons, not with 0"):
        target.of(hamiltonian, (3, 3), spin=4, fixed=True)


def test_orbitals_that_differ_in_spin_have_states_of_any_spin():
    (one_a, aa), (one_b, bb) = integrals(4, 1), integrals(4, 2)
    ab = aa + np.einsum("pq,rs->pqrs", one_a, one_b)
    h = hamiltonians.make((one_a, one_b), (aa, ab, bb))
    for electrons in ((3, 1), (1, 3), (2, 2)):
        found = target.of(h, electrons)
        assert (found.electrons, found.spin, found.parity) == (electrons, None, 0)
    with pytest.raises(OutcoreError, match="cannot be folded"):
        target.of(h, (2, 2), folded=True)


@pytest.mark.parametrize(
    ("electrons", "given", "told"),
    [
        ((3, 3), {"spin": 1}, "6 electrons cannot have 2S = 1"),
        ((3, 3), {"spin": 8}, "6 electrons cannot have 2S = 8"),
        ((3, 3), {"spin": -2}, "cannot have 2S = -2"),
        ((5, 5), {"spin": 4}, "6 orbitals cannot hold 7 electrons of one spin"),
        ((3, 3), {"irrep": 4}, "irrep 4 is none of 4"),
        ((3, 3), {"roots": 0}, "0 roots; there may be 1 to 64"),
    ],
)
def test_what_cannot_be_is_refused(hamiltonian, electrons, given, told):
    with pytest.raises(OutcoreError, match=told):
        target.of(hamiltonian, electrons, **given)


def test_a_target_is_told_in_words(hamiltonian):
    assert target.of(hamiltonian, (3, 3), irrep=2, roots=2).title(hamiltonian) == "2 roots of B1, 2S = 0"
    assert random_hamiltonian(3).names == ("A",)
