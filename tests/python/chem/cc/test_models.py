"""Coupled cluster of Hamiltonians whose integrals the mean-field object gives, beside PySCF's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyscf import ao2mo, cc, gto, mp, scf

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.mp2 import MP2
from outcore.chem.ri import given as given_integrals
from outcore.job.processes import make_world

TIGHT: dict[str, Any] = {
    "comm": None,
    "memory": "1GB",
    "threads": 1,
    "conv_tol": 1e-11,
    "conv_tol_normt": 1e-9,
    "ladder": "rebuild",
}


def hubbard(
    repulsion: float, kind: str = "RHF", form: int = 8, electrons: int = 6, range_: float = 0.0
) -> Any:
    """A ring of six sites; with a range the model of Pariser, Parr and Pople."""
    mol = gto.M(verbose=0)
    mol.nelectron, mol.spin, mol.incore_anyway = electrons, electrons % 2, True
    hopping = -np.roll(np.eye(6), 1, axis=1)
    hopping = hopping + hopping.T + np.diag(0.05 * np.arange(6))
    eri = np.zeros((6,) * 4)
    for i in range(6):
        for j in range(6):
            far = min(abs(i - j), 6 - abs(i - j))
            eri[i, i, j, j] = (
                repulsion / np.sqrt(1 + (far / range_) ** 2) if range_ else repulsion * (far == 0)
            )
    mf = getattr(scf, kind)(mol)
    mf.get_hcore, mf.get_ovlp, mf.energy_nuc = lambda *_: hopping, lambda *_: np.eye(6), lambda *_: 0.0
    mf._eri = eri if form == 1 else ao2mo.restore(form, eri, 6)
    mf.conv_tol, mf.conv_tol_grad = 1e-12, 1e-8
    mf.kernel(None if kind == "RHF" else np.array([np.diag([1.0, 0] * 3), np.diag([0, 1.0] * 3)]))
    return mf


models = pytest.mark.parametrize(
    "given",
    [
        {"repulsion": 2.0},
        {"repulsion": -1.0, "form": 1},
        {"repulsion": 3.0, "range_": 1.5, "form": 4},
        {"repulsion": 4.0, "kind": "UHF", "electrons": 5},
        {"repulsion": -1.5, "kind": "UHF", "electrons": 5},
    ],
    ids=str,
)


@models
def test_energies_of_models_are_those_of_pyscf(given: dict[str, Any]) -> None:
    mf = hubbard(**given)
    peer = cc.CCSD(mf).set(conv_tol=1e-11, conv_tol_normt=1e-9, max_cycle=200)
    peer.kernel()
    with CCSD(mf, max_cycle=200, **TIGHT) as ours:
        assert ours.kernel()[0] == pytest.approx(peer.e_corr, abs=1e-9)
        assert ours.e_tot == pytest.approx(peer.e_tot, abs=1e-9)
        assert ours.ccsd_t() == pytest.approx(peer.ccsd_t(), abs=1e-9)


@models
@pytest.mark.parametrize("storage", ["auto", "disk"])
def test_second_order_of_models_is_that_of_pyscf(given: dict[str, Any], storage: str) -> None:
    mf = hubbard(**given)
    ours = MP2(mf, comm=None, memory="1GB", threads=1, storage=storage)
    assert ours.kernel() == pytest.approx(mp.MP2(mf).run().e_corr, abs=1e-9)
    assert "three-index functions" in ours.summary()


def changed_helium() -> Any:
    """Two atoms whose repulsion is weaker."""
    mf = scf.RHF(gto.M(atom="He 0 0 0; He 0 0 2", basis="6-31g", verbose=0))
    mf._eri = 0.9 * mf.mol.intor("int2e", aosym="s8")
    return mf.run(conv_tol=1e-12)


def test_integrals_of_a_molecule_that_were_changed_count() -> None:
    mf = changed_helium()
    second_order = MP2(mf, comm=None, memory="1GB", threads=1).kernel()
    assert second_order == pytest.approx(mp.MP2(mf).run().e_corr, abs=1e-9)
    with CCSD(mf, **TIGHT) as ours:
        assert ours.kernel()[0] == pytest.approx(cc.CCSD(mf).run(conv_tol=1e-10).e_corr, abs=1e-9)
        assert "given integrals" in ours.summary()
    with CCSD(scf.RHF(mf.mol).run(), **TIGHT) as plain:
        assert "given integrals" not in plain.summary()


@pytest.mark.parametrize("element", [0, 17, 54])
def test_one_integral_that_was_changed_is_found(element: int) -> None:
    mf = changed_helium()
    integrals = mf.mol.intor("int2e", aosym="s8")
    with make_world(None, 1 << 30, None) as world:
        for mf._eri in (integrals, ao2mo.restore(1, integrals, 4)):
            assert given_integrals.of_rank_0(world, mf) is None
        mf._eri = integrals.copy()
        mf._eri[element] += 1e-8
        assert given_integrals.of_rank_0(world, mf) is not None


@pytest.mark.parametrize("make", [changed_helium, partial(hubbard, 2.0)], ids=["molecule", "model"])
def test_given_integrals_are_never_fitted(make: Callable[[], Any]) -> None:
    mf = make()
    with pytest.raises(OutcoreError, match="auxiliary functions do not fit them: integrals='ri'"):
        CCSD(mf, integrals="ri", comm=None, memory="1GB")
    with pytest.raises(OutcoreError, match="do not fit them: auxbasis has no effect"):
        MP2(mf, auxbasis="def2-svp-ri", comm=None, memory="1GB")
    with pytest.raises(OutcoreError, match="do not fit them: screening has no effect"):
        MP2(mf, screening=1e-12, comm=None, memory="1GB")


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
    with pytest.raises(OutcoreError, match=r"shape \(6, 6\), which is that of integrals of no form"):
        CCSD(mf, comm=None, memory="1GB")
    mf._eri = np.random.default_rng(1).normal(size=(6, 6, 6, 6))
    with pytest.raises(OutcoreError, match="lacks the symmetry"):
        CCSD(mf, comm=None, memory="1GB")
    mf._eri = None
    with pytest.raises(OutcoreError, match=r"no two-electron integrals: set mf\._eri"):
        CCSD(mf, comm=None, memory="1GB")
