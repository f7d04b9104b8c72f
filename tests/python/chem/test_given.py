"""Two-electron integrals that a mean-field object provides: their kinds, and MP2 and CI with them beside
PySCF's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from models import MODELS, changed_helium, hubbard
from pyscf import ao2mo, fci, mp

from outcore import OutcoreError
from outcore.chem import hf, ri
from outcore.chem.cc import CCSD
from outcore.chem.ci import FCI
from outcore.chem.mp2 import MP2
from outcore.chem.mrci import MRCI
from outcore.chem.ri import given as given_integrals
from outcore.job.processes import make_world

SMALL: dict[str, Any] = {"comm": None, "memory": "1GB", "threads": 1}


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


@pytest.mark.parametrize("given", MODELS, ids=str)
@pytest.mark.parametrize("storage", ["auto", "disk"])
def test_second_order_of_models_is_that_of_pyscf(given: dict[str, Any], storage: str) -> None:
    mf = hubbard(**given)
    ours = MP2(mf, **SMALL, storage=storage)
    assert ours.kernel() == pytest.approx(mp.MP2(mf).run().e_corr, abs=1e-9)
    assert "three-index functions" in ours.summary()


def test_second_order_of_changed_integrals_is_that_of_pyscf() -> None:
    mf = changed_helium()
    assert MP2(mf, **SMALL).kernel() == pytest.approx(mp.MP2(mf).run().e_corr, abs=1e-9)


def exact(mf: Any) -> float:
    core, n = mf.get_hcore(), len(mf.get_ovlp())
    c = np.linalg.inv(np.linalg.cholesky(mf.get_ovlp())).T
    integrals = ao2mo.restore(1, ao2mo.kernel(mf._eri, c), n)
    energy, _ = fci.direct_spin1.kernel(c.T @ core @ c, integrals, n, mf.mol.nelec, tol=1e-12)
    return float(energy + mf.energy_nuc())


@pytest.mark.parametrize("given", MODELS, ids=str)
def test_full_ci_of_models_is_that_of_pyscf(given: dict[str, Any]) -> None:
    mf = hubbard(**given)
    with FCI(mf, **SMALL) as ci:
        assert ci.kernel() == pytest.approx(exact(mf), abs=1e-9)
        spin = mf.mol.spin / 2
        assert ci.spin_square() == pytest.approx(spin * (spin + 1), abs=1e-7)
        with pytest.raises(OutcoreError, match="functions of a model lie nowhere in space"):
            ci.dipole()


ATTRACTION = partial(hubbard, -1.0)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (changed_helium, "conventional"),
        (changed_helium, "cholesky"),
        (partial(hubbard, 2.0), "conventional"),
        (partial(hubbard, 2.0), "cholesky"),
        (ATTRACTION, "conventional"),
    ],
)
def test_multireference_ci_of_given_integrals_is_exact(make: Callable[[], Any], kind: str) -> None:
    mf = make()
    with MRCI.from_mean_field(mf, active=len(mf.mo_occ), integrals=kind, tolerance=1e-9, **SMALL) as ci:
        assert ci.kernel() == pytest.approx(exact(mf), abs=1e-8)


def test_core_of_a_ci_is_of_given_integrals_of_our_objects_too() -> None:
    peer = changed_helium()
    ours = hf.RHF(peer.mol, comm=None)
    ours._eri = peer._eri
    field = peer.get_hcore() + 0.01 * peer.mol.intor("int1e_r")[2]
    peer.get_hcore = ours.get_hcore = lambda *_: field
    for mf in (peer, ours):
        mf.run(conv_tol=1e-12)
    with FCI(peer, frozen=1, **SMALL) as ci:
        expected = ci.kernel()
    with FCI(ours, frozen=1, **SMALL) as ci:
        assert ci.kernel() == pytest.approx(expected, abs=1e-9)
    with MRCI.from_mean_field(ours, frozen=1, active=3, **SMALL) as ci:
        assert ci.kernel() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("make", [changed_helium, partial(hubbard, 2.0)], ids=["molecule", "model"])
def test_given_integrals_are_never_fitted(make: Callable[[], Any]) -> None:
    mf = make()
    with pytest.raises(OutcoreError, match="auxiliary functions do not fit them: integrals='ri'"):
        CCSD(mf, integrals="ri", **SMALL)
    with pytest.raises(OutcoreError, match="do not fit them: auxbasis has no effect"):
        MP2(mf, auxbasis="def2-svp-ri", **SMALL)
    with pytest.raises(OutcoreError, match="do not fit them: integrals='ri'"):
        MRCI.from_mean_field(mf, active=4, inactive=len(mf.mo_occ) - 4, integrals="ri", **SMALL)
    with pytest.raises(OutcoreError, match="do not fit them: screening has no effect"):
        MP2(mf, screening=1e-12, **SMALL)


def test_there_is_no_forecast_of_second_order_of_given_integrals() -> None:
    ours = MP2(hubbard(2.0), **SMALL)
    ours.prepare()
    with pytest.raises(OutcoreError, match="there is none for integrals that are given"):
        ours.forecast()


def test_a_model_has_no_auxiliary_functions() -> None:
    with pytest.raises(OutcoreError, match="a model without atoms has none"):
        ri.density_fit(hubbard(2.0), comm=None).kernel()


def test_what_a_ci_cannot_treat_is_named() -> None:
    mf = hubbard(-1.0)
    with pytest.raises(OutcoreError, match="a model without atoms has C1 alone"):
        FCI(mf, group="D2h", **SMALL)
    with pytest.raises(OutcoreError, match="not positive, as those of an attraction"):
        MRCI.from_mean_field(mf, active=6, integrals="cholesky", **SMALL)
    mf._eri = None
    with pytest.raises(OutcoreError, match=r"no two-electron integrals: set mf\._eri"):
        FCI(mf, **SMALL)
