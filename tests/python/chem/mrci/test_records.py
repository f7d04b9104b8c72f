"""The determinants of a space: counts of OpenMolcas, and of the study that the method follows."""

from __future__ import annotations

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.chem.mrci import configurations
from outcore.chem.mrci.records import Functions, Orbitals, Records, ranges

# N2 in 6-31G, 1s frozen: 2s sigma inactive; sigma, pi and their partners active; D2h.
N2 = Orbitals((0, 5, 0, 6, 7, 2, 3, 5), (0, 0, 2, 3, 5, 5, 6, 7), 8)


def references(orbitals, inactive, electrons, irrep=None):
    active = range(inactive, len(orbitals.internal))
    found = configurations.every(active, electrons - 2 * inactive, (1 << inactive) - 1)
    if irrep is None:
        return found
    return found[configurations.irreps(found, orbitals.internal) == irrep]


@pytest.mark.parametrize("parity", [0, 1])
def test_counts_of_openmolcas(parity):
    chosen = references(N2, 2, 10, irrep=0)
    found = Records(N2, chosen, (5, 5), 0, parity)

    assert len(chosen) == 26
    assert found.determinants == 24742
    assert found.functions(0) == Functions(152, 1768, 2374, 2934)
    assert found.functions(0).total == 7228


def test_all_references_have_more_determinants():
    assert Records(N2, references(N2, 2, 10), (5, 5)).determinants == 50550


def test_a_folded_vector_has_one_of_two_partners():
    whole, half = (Records(N2, references(N2, 2, 10, 0), (5, 5), 0, parity) for parity in (0, 1))

    own = whole.sizes[(whole.alpha == whole.beta) & np.isin(whole.kinds, (0, 3))].sum()
    assert half.elements == (whole.elements + own) // 2


def test_native_and_python_sizes_agree():
    found = Records(N2, references(N2, 2, 10, 3), (6, 4), 3)
    offsets = found.native().offsets

    np.testing.assert_array_equal(np.diff(offsets), found.sizes)


def test_strings_of_elements_are_all_different():
    orbitals = Orbitals((0, 1, 1), (0, 0, 1), 2)
    found = Records(orbitals, references(orbitals, 1, 4), (2, 2), 1)
    strings = [found.strings(each) for each in range(len(found))]

    pairs = {(a, b) for alpha, beta in strings for a, b in zip(alpha.tolist(), beta.tolist(), strict=True)}
    assert len(pairs) == found.determinants == found.elements


def test_ranges_cover_all_records():
    found = Records(N2, references(N2, 2, 10, 0), (5, 5))
    parts = ranges(found.sizes, 1000)

    assert [first for first, _ in parts[1:]] == [last for _, last in parts[:-1]]
    assert parts[0][0] == 0 and parts[-1][1] == len(found)
    assert max(found.sizes[first:last].sum() for first, last in parts) <= 1000


def test_no_reference():
    with pytest.raises(OutcoreError, match="there is no reference"):
        Records(N2, np.zeros(0, np.uint64), (5, 5))


def test_references_of_other_electrons():
    with pytest.raises(OutcoreError, match="a reference has 10 electrons, not 9"):
        Records(N2, references(N2, 2, 10), (5, 4))


def test_count_of_configurations():
    assert configurations.count_every(6, 6) == len(configurations.every(range(6), 6)) == 141
    assert configurations.count_every(2, 5) == 0


def test_excitations_of_one_reference():
    none, one, two = configurations.reached(np.array([configurations.of_occupation((2, 2, 0))], np.uint64), 3)

    occupations = {(0, 2, 2), (2, 0, 2), (1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 2, 0)}
    assert set(none.tolist()) == {configurations.of_occupation(each) for each in occupations}
    assert (configurations.electrons(one) == 3).all() and len(one) == 5
    assert (configurations.electrons(two) == 2).all() and len(two) == 3


@pytest.mark.parametrize(
    ("open_shells", "spin", "count"), [(0, 0, 1), (2, 0, 1), (4, 0, 2), (4, 2, 3), (3, 1, 2), (2, 1, 0)]
)
def test_spin_functions(open_shells, spin, count):
    assert configurations.functions(open_shells, spin) == count
