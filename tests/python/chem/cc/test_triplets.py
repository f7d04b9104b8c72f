"""Triplets of closed shells: beside PySCF's of the same integrals, and all roots of a small matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cc_support import WATER, mean_field
from eom_support import dense, fitted, made, peer_of

from outcore.chem.cc import CCSD

Values = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def water() -> Any:
    return fitted(WATER, "6-31g")


@pytest.fixture(scope="module")
def triplets(water: Any) -> Values:
    from pyscf.cc import eom_rccsd

    eom = eom_rccsd.EOMEETriplet(peer_of(water))
    eom.conv_tol, eom.max_cycle = 1e-12, 200
    return np.array(eom.kernel(nroots=3)[0])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"storage": "disk", "ladder": "disk", "block": 4}, marks=pytest.mark.long),
        {"block": 4, "ladder": "rebuild"},
    ],
    ids=["memory", "disk", "rebuild"],
)
def test_triplets_are_those_of_pyscf(water: Any, triplets: Values, settings: dict[str, Any]) -> None:
    with made(water, **settings) as cc:
        cc.kernel()
        energies, states = cc.eomee_ccsd_triplet(nroots=3, residual=1e-9)
    assert states.converged.all()
    assert abs(energies - triplets).max() < 1e-8


def test_no_triplet_is_missed() -> None:
    mf = mean_field("H 0 0 0; H 0 0 0.9; H 0.9 0 0; H 0.9 0 0.9001", "sto-3g")
    with CCSD(mf, comm=None, memory="1GB", threads=1, conv_tol=1e-11, conv_tol_normt=1e-9) as cc:
        cc.kernel()
        states = cc.states("ee", multiplicity=3, nroots=4, residual=1e-8)
        every = np.sort(dense(states.equations).real)
    assert abs(states.energies - every[:4]).max() < 1e-7
