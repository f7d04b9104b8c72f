"""States that begin with vectors of the user and follow them by overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import mean_field, open_mean_field
from eom_support import TIGHT, Determinants

from outcore import OutcoreError
from outcore.chem.cc import CCSD

FOUR = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2"


@pytest.fixture(scope="module")
def four() -> Any:
    """Four electrons without symmetry."""
    return mean_field(FOUR, "sto-3g")


def start(mf: Any, **settings: Any) -> CCSD:
    cc = CCSD(mf, comm=None, memory="1GB", threads=1, **TIGHT | settings)
    cc.kernel()
    return cc


def test_roots_follow_start_vectors_past_lower_states(four: Any) -> None:
    with start(four) as cc:
        energies, states = cc.eomee_ccsd_singlet(nroots=3, tolerance=1e-7)
        every = [each.singles.copy() for each in states.vectors]
        swapped, found = cc.eomee_ccsd_singlet(nroots=2, guess=[every[2], every[0]], tolerance=1e-7)
        strengths = found.properties().oscillator_strengths
        exact = Determinants(four, *cc.amplitudes())
    assert found.converged.all()
    assert swapped == pytest.approx(energies[[2, 0]], abs=1e-7)
    c = four.mo_coeff
    mu = np.einsum("xmn,mp,nq->xpq", four.mol.intor("int1e_r"), c, c)
    for root, state in enumerate((2, 0)):
        one, other = (
            np.einsum("xpq,pq->x", mu, exact.density(*each)) for each in ((state + 1, 0), (0, state + 1))
        )
        assert strengths[root] == pytest.approx(2 / 3 * exact.energies[state] * one @ other, abs=1e-6)


def test_a_search_that_follows_goes_on(four: Any, tmp_path: Path) -> None:
    guess = np.zeros((2, 2))
    guess[1, 0] = 1.0
    found = []
    for tolerance in (1e-2, 1e-7):
        with start(four, checkpoint=tmp_path / "kept") as cc:
            energy, states = cc.eomee_ccsd_singlet(guess=[guess], tolerance=tolerance)
            found.append((states.found, energy, abs(states.vectors[0].singles[1, 0])))
    with start(four, checkpoint=tmp_path / "kept") as cc:
        _, others = cc.eomee_ccsd_singlet(guess=[guess[::-1]], tolerance=1e-2)
    assert found[0][0] == 0 and found[1][0] > 0  # vectors of the checkpoint are used
    assert others.found == 0  # but not by a search that follows others
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-2)
    assert found[1][2] > 0.4


def test_start_vectors_of_no_states_are_refused(four: Any) -> None:
    given: list[tuple[list[Any], str]] = [
        ([np.ones((2, 2)), np.ones((2, 2))], "2 start vectors for 1 roots"),
        ([np.ones((2, 3))], "shape"),
        ([np.zeros((2, 2))], "of no state"),
        ([np.full((2, 2), np.nan)], "of no state"),
    ]
    with start(four) as cc:
        for guess, words in given:
            with pytest.raises(OutcoreError, match=words):
                cc.eomee_ccsd_singlet(guess=guess)


def test_start_vectors_of_open_shells_are_refused() -> None:
    mf = open_mean_field("UHF", ("H 0 0 0; H 0 0 0.9; H 0 0.9 0.3", 0, 1), "sto-3g")
    with (
        start(mf, conv_tol=1e-4, conv_tol_normt=1e-2) as cc,
        pytest.raises(OutcoreError, match="closed shells"),
    ):
        cc.eomee_ccsd(guess=[np.ones(3)])
