"""Roots follow the states of the references, past other states, and not in the order of energies."""

from __future__ import annotations

import numpy as np
import pytest
from mrci_molecules import c2, mean_field

from outcore.base.errors import NotConverged
from outcore.chem import small_space
from outcore.chem.mrci import MRCI, size_consistency

pytest.importorskip("pyscf")


@pytest.mark.parametrize("vector_memory", [None, pytest.param(10**7, marks=pytest.mark.long)])
def test_acpf_does_not_end_in_a_state_without_references(vector_memory):
    """Published values. The lowest state of the functional has none, 0.3 Hartree below."""
    with c2(functional="acpf", comm=None, vector_memory=vector_memory) as ci:
        assert ci.kernel() == pytest.approx(-75.628938782, abs=2e-9)
        assert ci.converged and ci.reference_weight() == pytest.approx(0.8101, abs=1e-4)
        assert ci.passed_over() == 2
    with c2(roots=2, comm=None, vector_memory=vector_memory) as ci:
        assert ci.kernel() == pytest.approx([-75.5982111865, -75.5625020584], abs=5e-9)
        assert ci.passed_over(0) == ci.passed_over(1) == 0


def test_roots_of_a_functional_are_above_their_own_references():
    """The first root is the same if it is the only one."""
    with c2(functional="aqcc", comm=None) as one, c2(functional="aqcc", roots=2, comm=None) as two:
        assert one.kernel() == pytest.approx(two.kernel()[0], abs=1e-9)
        assert two.converged and two.own_weight(1) == pytest.approx(0.6604, abs=1e-3)


def test_a_functional_of_a_stretched_bond_converges():
    """The singlet of N2, from which a quintet would not stay away without a spin shift."""
    given = {"frozen": 2, "inactive": 2, "active": 6, "functional": "acpf", "comm": None}
    with MRCI.from_mean_field(mean_field("N 0 0 0; N 0 0 2.5"), **given) as ci:
        ci.kernel()
        assert ci.converged and ci.spin_square() == pytest.approx(0, abs=1e-8)


def lif(**settings):
    given = {"frozen": 2, "inactive": 3, "active": 2, "comm": None}
    return MRCI.from_mean_field(mean_field("Li 0 0 0; F 0 0 5", symmetry="C2v"), **given, **settings)


def test_states_in_another_order_than_their_references():
    """The ionic state of LiF has more correlation than the other."""
    with lif(roots=2) as ci:
        first, second = ci.kernel()
        assert ci.e_reference[0] < ci.e_reference[1] and first > second
        assert ci.own_weight(0) > 0.5 and ci.own_weight(1) > 0.5
        assert ci.corrections(1).davidson < ci.corrections(0).davidson


@pytest.mark.parametrize("error_bound", [0.0, 1e-7])
def test_roots_of_a_functional_are_those_of_a_ci(error_bound):
    """Two states share two references: each root is a different state, also if little of the references is
    left."""
    with lif(roots=2, functional="aqcc", error_bound=error_bound) as ci:
        assert ci.kernel() == pytest.approx([-106.82648608, -106.87911456], abs=2e-7)
        assert ci.converged


def test_references_that_do_not_describe_a_state_are_an_error():
    """An error of ACPF; without the limit the root is found."""
    wanted = (
        r"root 1 has a weight of references of 0\.3\d*, less than 0\.5: the references do not describe this"
    )
    with lif(functional="acpf", max_cycle=80) as ci, pytest.raises(NotConverged, match=wanted):
        ci.kernel()
    with lif(functional="acpf", max_cycle=80, min_weight=0) as ci:
        ci.kernel()
        assert ci.converged and ci.reference_weight() < 0.4


@pytest.mark.parametrize(
    ("likeness", "chosen"),
    [
        ([[0.1, 0.9]], [1]),
        ([[0.3, 0.2, 0.4]], [0]),  # alike, so the lower
        ([[0.1, 0.8, 0.0], [0.9, 0.1, 0.0]], [1, 0]),
        ([[0.5, 0.4, 0.0], [0.6, 0.1, 0.35]], [1, 0]),  # no state twice
        ([[0.0, 0.02, 0.7, 0.1], [0.0, 0.0, 0.2, 0.6]], [2, 3]),
    ],
)
def test_the_states_that_roots_follow(likeness, chosen):
    assert small_space.choose(np.array(likeness)) == chosen


@pytest.mark.parametrize("electrons", [0, 1, 2, 3])
def test_what_is_exact_has_no_functional(electrons):
    assert size_consistency.penalty("aqcc", electrons) == 1
    assert electrons == 3 or size_consistency.penalty("acpf", electrons) == 1
