"""Coupled cluster of Hamiltonians whose integrals the mean-field object gives, beside PySCF's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import MODELS, changed_helium, hubbard
from pyscf import cc, scf

from outcore import OutcoreError
from outcore.chem.cc import CCSD

TIGHT: dict[str, Any] = {
    "comm": None,
    "memory": "1GB",
    "threads": 1,
    "conv_tol": 1e-11,
    "conv_tol_normt": 1e-9,
    "ladder": "rebuild",
}


@pytest.mark.parametrize("given", MODELS, ids=str)
def test_energies_of_models_are_those_of_pyscf(given: dict[str, Any]) -> None:
    mf = hubbard(**given)
    peer = cc.CCSD(mf).set(conv_tol=1e-11, conv_tol_normt=1e-9, max_cycle=200)
    peer.kernel()
    with CCSD(mf, max_cycle=200, **TIGHT) as ours:
        assert ours.kernel()[0] == pytest.approx(peer.e_corr, abs=1e-9)
        assert ours.e_tot == pytest.approx(peer.e_tot, abs=1e-9)
        assert ours.ccsd_t() == pytest.approx(peer.ccsd_t(), abs=1e-9)


def test_integrals_of_a_molecule_that_were_changed_count() -> None:
    mf = changed_helium()
    with CCSD(mf, **TIGHT) as ours:
        assert ours.kernel()[0] == pytest.approx(cc.CCSD(mf).run(conv_tol=1e-10).e_corr, abs=1e-9)
        assert "given integrals" in ours.summary()
    with CCSD(scf.RHF(mf.mol).run(), **TIGHT) as plain:
        assert "given integrals" not in plain.summary()


def test_kept_amplitudes_are_of_the_given_integrals(tmp_path: Path) -> None:
    mf = hubbard(2.0)
    given = TIGHT | {"checkpoint": tmp_path}
    with CCSD(mf, max_cycle=2, **given) as ours:
        ours.kernel()
    with CCSD(mf, **given) as again:
        again.set_up()
        assert again.found == 2
    mf._eri = 1.0000001 * mf._eri
    with pytest.raises(OutcoreError, match="given two-electron integrals"):
        CCSD(mf, **given).kernel()


def test_what_cannot_be_treated_is_named() -> None:
    mf = hubbard(2.0)
    mf._eri = np.zeros((6, 6))
    with pytest.raises(OutcoreError, match=r"shape \(6, 6\), which fits no form of integrals"):
        CCSD(mf, comm=None, memory="1GB")
    mf._eri = np.random.default_rng(1).normal(size=(6, 6, 6, 6))
    with pytest.raises(OutcoreError, match="lacks the symmetry"):
        CCSD(mf, comm=None, memory="1GB")
    mf._eri = None
    with pytest.raises(OutcoreError, match=r"no two-electron integrals: set mf\._eri"):
        CCSD(mf, comm=None, memory="1GB")
