"""Hamiltonians: order of orbitals, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import integrals

from outcore.base.errors import OutcoreError
from outcore.chem.ci import hamiltonian as hamiltonians

IRREPS = [2, 0, 3, 0, 1, 2]


def refused(one, two, **given) -> str:
    with pytest.raises(OutcoreError) as caught:
        hamiltonians.make(one, two, **given)
    return str(caught.value)


def test_orbitals_are_sorted_by_irrep_and_can_be_found_again():
    one, two = integrals(6, 1, IRREPS)
    h = hamiltonians.make(one, two, irreps=IRREPS, group="C2v", core_energy=2.5)
    assert h.irreps.tolist() == [0, 0, 1, 2, 2, 3]
    assert h.permutation.tolist() == [1, 3, 4, 0, 5, 2]
    order = h.positions
    np.testing.assert_array_equal(h.one[np.ix_(order, order)], one)
    np.testing.assert_allclose(h.two[np.ix_(order, order, order, order)], two, atol=1e-15)
    assert (h.groups, h.group, h.core_energy, h.orbitals) == (4, "C2v", 2.5, 6)


def test_packed_integrals_are_taken():
    ao2mo = pytest.importorskip("pyscf").ao2mo
    one, two = integrals(5)
    for fold in (4, 8):
        h = hamiltonians.make(one, ao2mo.restore(fold, two, 5))
        np.testing.assert_allclose(h.two, two, atol=1e-15)


def test_orbitals_may_differ_in_spin():
    (one_a, aa), (one_b, bb) = integrals(4, 1), integrals(4, 2)
    ab = aa + np.einsum("pq,rs->pqrs", one_a, one_b)
    h = hamiltonians.make((one_a, one_b), (aa, ab, bb))
    assert h.unrestricted
    np.testing.assert_array_equal(h.ones[1], one_b)
    np.testing.assert_allclose(h.twos[1], ab, atol=1e-15)
    wrong = ab.copy()
    wrong[0, 1, 2, 3] += 1e-4
    assert "alpha-beta two-electron integrals are not symmetric" in refused((one_a, one_b), (aa, wrong, bb))
    assert "not of the same orbitals" in refused((one_a, one_b), aa)


def test_irreps_have_names():
    one, two = integrals(6, 1, IRREPS)
    h = hamiltonians.make(one, two, irreps=IRREPS, group="C2v")
    assert [h.irrep(each) for each in ("A1", "a2", "B1", "b2")] == [0, 1, 2, 3]
    with pytest.raises(OutcoreError, match="C2v has the irreps A1, A2, B1, B2"):
        h.irrep("B3u")


def test_what_is_not_symmetric_is_refused_by_name():
    one, two = integrals(4)
    wrong = one.copy()
    wrong[1, 2] += 1e-4
    assert "one-electron integrals are not symmetric: (2|3) is" in refused(wrong, two)
    for where, told in (((0, 1, 2, 3), "(1 2|3 4)"), ((2, 2, 0, 1), "(3 3|1 2)")):
        wrong = two.copy()
        wrong[where] += 1e-4
        message = refused(one, wrong)
        assert "two-electron integrals are not symmetric" in message and told in message


def test_what_symmetry_forbids_is_refused_by_name():
    one, two = integrals(6, 1, IRREPS)
    wrong = one.copy()
    wrong[0, 1] = wrong[1, 0] = 1e-3
    message = refused(wrong, two, irreps=IRREPS, group="C2v")
    assert "(1|2) of orbitals in B1, A1 is 1.000e-03, but symmetry forbids it" in message
    wrong = two.copy()
    for p, q, r, s in ((0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)):
        wrong[p, q, r, s] = 1e-3
    assert "symmetry forbids" in refused(one, wrong, irreps=IRREPS, group="C2v")
    noise = one.copy()
    noise[0, 1] = noise[1, 0] = 1e-12
    h = hamiltonians.make(noise, two, irreps=IRREPS, group="C2v")
    assert h.one[3, 0] == 0.0


def test_numbers_that_are_none_are_refused():
    one, two = integrals(3)
    assert "complex" in refused(one + 1j, two)
    wrong = two.copy()
    wrong[0, 0, 1, 1] = np.inf
    assert "(1, 1, 2, 2), counted from 1, is inf" in refused(one, wrong)
    assert "core energy of nan" in refused(one, two, core_energy=np.nan)
    assert "no square matrix" in refused(one[:2], two)
    assert "for 2 orbitals" in refused(one[:2, :2], two)
    assert "0 to 3" in refused(one, two, irreps=[0, 4, 1], group="C2v")
    assert "point group D3h" in refused(one, two, irreps=[0, 0, 0], group="D3h")


def test_more_orbitals_than_bits_are_refused():
    assert "65 orbitals; there may be 1 to 64" in refused(np.eye(65), np.zeros(1))


def test_a_hamiltonian_cannot_be_changed():
    h = hamiltonians.make(*integrals(3))
    with pytest.raises(ValueError, match="read-only"):
        h.one[0, 0] = 1.0


def test_what_rounding_explains_is_averaged_away_and_told():
    one, two = integrals(6, 1, IRREPS)
    noise = two.copy()
    noise[0, 3, 1, 1] += 4e-6
    noise[0, 0, 0, 1] = 3e-6
    assert "not symmetric" in refused(one, noise, irreps=IRREPS, group="C2v")
    h = hamiltonians.make(one, noise, irreps=IRREPS, group="C2v", rounding=(0.0, 1e-5))
    (note,) = h.notes
    assert "two-electron integrals were made symmetric" in note
    assert 3e-6 < h.averaged[1] < 8e-6 and h.averaged[0] == 0.0
    np.testing.assert_array_equal(h.two, h.two.transpose(2, 3, 0, 1))
    assert abs(h.two[np.ix_(*[h.positions] * 4)] - two).max() < 3e-6
    assert hamiltonians.make(one, two, irreps=IRREPS, group="C2v").notes == ()


def test_more_than_rounding_is_refused_whatever_is_allowed():
    one, two = integrals(6, 1, IRREPS)
    wrong = two.copy()
    wrong[0, 3, 1, 1] += 1e-3
    assert "not symmetric" in refused(one, wrong, rounding=None)
