"""Multipliers and densities of closed-shell CCSD: beside PySCF's of the same fitted integrals, and identities."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import WATER, mean_field

from outcore import OutcoreError
from outcore.base.errors import NotConverged
from outcore.chem.cc import CCSD

Values = np.ndarray[Any, np.dtype[Any]]

AUXILIARY = "cc-pvdz-ri"
TIGHT = {"conv_tol": 1e-12, "conv_tol_normt": 1e-10}
PLACES: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk": {"storage": "disk", "ladder": "disk"},
    "rebuild": {"block": 4, "ladder": "rebuild"},
}


@pytest.fixture(scope="module")
def water() -> Any:
    from pyscf import scf

    mf = mean_field(WATER, "6-31g")
    fitted = scf.RHF(mf.mol).density_fit(auxbasis=AUXILIARY)
    fitted.conv_tol, fitted.conv_tol_grad = 1e-13, 1e-9
    fitted.kernel(mf.make_rdm1())
    return fitted


@pytest.fixture(scope="module")
def peer(water: Any) -> Any:
    """PySCF's CCSD with fitted integrals, with multipliers."""
    from pyscf.cc import dfccsd

    found = dfccsd.RCCSD(water, frozen=1)
    found.conv_tol, found.conv_tol_normt, found.max_cycle = 1e-12, 1e-10, 100
    found.kernel()
    found.solve_lambda()
    return found


def made(mf: Any, frozen: Any = 1, **settings: Any) -> CCSD:
    given: dict[str, Any] = {"memory": "1GB", "threads": 2, "auxbasis": AUXILIARY, **TIGHT, **settings}
    return CCSD(mf, frozen, comm=None, **given)


@pytest.fixture(scope="module", params=PLACES)
def solved(water: Any, request: pytest.FixtureRequest) -> Iterator[CCSD]:
    """The solution, with arrays in a given place."""
    with made(water, **PLACES[request.param]) as cc:
        cc.kernel()
        cc.solve_lambda()
        yield cc


def test_multipliers_are_those_of_pyscf(solved: CCSD, peer: Any) -> None:
    assert abs(solved.l1 - peer.l1).max() < 1e-8
    assert abs(np.asarray(solved.l2) - peer.l2).max() < 1e-8


def test_the_energy_is_the_sum_of_densities_and_integrals(solved: CCSD) -> None:
    found = solved.multipliers.make_densities()
    pairs = zip((found.oo, found.vo, found.vv), found.integrals.arrays, strict=True)
    oo, vo, vv = (float(np.sum(gamma.to_numpy() * b.to_numpy())) for gamma, b in pairs)
    fock = solved.spins[0].fock
    assert np.sum(found.one * fock) + oo / 2 + vo + vv / 2 == pytest.approx(solved.e_corr, abs=2e-9)


def test_elements_of_multipliers_are_those_of_the_whole(solved: CCSD) -> None:
    whole = np.asarray(solved.l2)
    assert solved.l2[1, 2, 3, 4] == whole[1, 2, 3, 4]
    assert abs(solved.l2[:2, 1:] - whole[:2, 1:]).max() == 0


@pytest.mark.parametrize("over_functions", [False, True])
def test_the_density_of_fixed_orbitals_is_pyscfs(solved: CCSD, peer: Any, over_functions: bool) -> None:
    assert abs(solved.make_rdm1(ao_repr=over_functions) - peer.make_rdm1(ao_repr=over_functions)).max() < 1e-8


def test_amplitudes_stay(water: Any, peer: Any, solved: CCSD) -> None:
    assert abs(np.asarray(solved.t2) - peer.t2).max() < 1e-7
    assert abs(solved.t1 - peer.t1).max() < 1e-7


def test_the_relaxed_dipole_moment_is_the_derivative_of_the_energy(water: Any) -> None:
    from pyscf import scf

    from outcore.chem.cc.gradient import RelaxedResponse

    def energy(field: float) -> float:
        mf = scf.RHF(water.mol).density_fit(auxbasis=AUXILIARY)
        core = water.get_hcore() + field * water.mol.intor("int1e_r")[2]
        mf.get_hcore = lambda *_: core
        mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
        mf.kernel(water.make_rdm1())
        with made(mf, conv_tol=1e-11, ladder="rebuild") as cc:
            cc.kernel()
            return cc.e_tot

    with made(water, ladder="rebuild") as cc:
        cc.kernel()
        found = RelaxedResponse(cc)
        dipole = float(np.sum(found.densities.total * water.mol.intor("int1e_r")[2]))
    h = 1e-3
    near, far = (energy(step * h) - energy(-step * h) for step in (1, 2))
    assert dipole == pytest.approx((8 * near - far) / (12 * h), abs=1e-7)


def test_multipliers_need_amplitudes_that_have_converged(water: Any) -> None:
    with made(water, max_cycle=2) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="have not converged; run kernel") as error:
            cc.solve_lambda()
        assert error.value.errno == errno.EINVAL


@pytest.mark.parametrize("is_kept", [False, True])
def test_multipliers_that_do_not_converge_are_refused_and_nothing_is_lost(
    water: Any, tmp_path: Path, is_kept: bool
) -> None:
    limits = {"conv_tol": 1e-5, "conv_tol_normt": 1e-4, "ladder": "rebuild"}
    with made(water, **limits) as whole:
        whole.kernel()
        expected = whole.solve_lambda()[0]
    with made(water, checkpoint=tmp_path / "kept" if is_kept else None, **limits) as cc:
        cc.kernel()
        before = np.asarray(cc.t2)
        cc.set(max_cycle=2)
        with pytest.raises(NotConverged, match="after 2 iterations"):
            cc.solve_lambda()
        assert cc.l1 is None
        assert abs(np.asarray(cc.t2) - before).max() == 0
        cc.set(max_cycle=50)
        found = cc.solve_lambda()[0]
        # The extrapolation begins again with those that were kept.
        assert abs(found - expected).max() < (1e-4 if is_kept else 1e-12)
        assert cc.multipliers.iterations[0].number == (3 if is_kept else 1)


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"method": "dcsd"}, "of CCSD, not of DCSD"), ({"fno": 1e-5}, "natural orbitals")],
    ids=["method", "fno"],
)
def test_other_methods_are_refused_by_name(water: Any, settings: dict[str, Any], why: str) -> None:
    with made(water, **settings) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match=why) as error:
            cc.solve_lambda()
        assert error.value.errno == errno.ENOTSUP


@pytest.mark.parametrize(
    "settings", [{"integrals": "cholesky", "tolerance": 1e-10}, {"integrals": "conventional"}], ids=str
)
def test_multipliers_of_decomposed_integrals_are_those_of_exact_ones(settings: dict[str, Any]) -> None:
    from pyscf import cc

    mf = mean_field(WATER, "6-31g")
    exact = cc.RCCSD(mf, frozen=1)
    exact.conv_tol, exact.conv_tol_normt, exact.max_cycle = 1e-12, 1e-10, 100
    exact.kernel()
    l1, l2 = exact.solve_lambda()
    with CCSD(mf, 1, comm=None, memory="1GB", threads=2, **settings, **TIGHT) as found:
        found.kernel()
        of_singles, of_doubles = found.solve_lambda()
        assert abs(of_singles - l1).max() < 1e-8
        assert abs(np.asarray(of_doubles) - l2).max() < 1e-8


def test_triples_after_multipliers_are_those_before(water: Any) -> None:
    loose = {"conv_tol": 1e-5, "conv_tol_normt": 1e-4}  # steps are the same
    with made(water, **loose) as before:
        before.kernel()
        wanted = before.ccsd_t()
        first = before.solve_lambda()[0]  # whose ladder recomputes its integrals
    with made(water, **loose) as after:
        after.kernel()
        of_ccsd = after.solve_lambda()[0]
        assert after.ccsd_t() == pytest.approx(wanted, abs=1e-12)
        assert after.l1 is None
        assert abs(after.solve_lambda()[0] - first).max() < 1e-9  # of CCSD(T)
        assert abs(of_ccsd - first).max() > 1e-5


def test_triples_after_relaxed_densities_are_refused(water: Any) -> None:
    with made(water, conv_tol=1e-3, conv_tol_normt=1e-2) as cc:
        cc.kernel()
        cc.make_rdm1(relaxed=True)
        with pytest.raises(OutcoreError, match=r"run ccsd_t\(\) before"):
            cc.ccsd_t()


def test_gradients_of_decomposed_integrals_are_refused_by_name(water: Any) -> None:
    with CCSD(mean_field(WATER, "sto-3g"), comm=None, memory="1GB", integrals="cholesky") as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="gradients are of density fitting"):
            cc.nuc_grad_method().kernel()
