"""Multipliers and densities of CCSD of open shells: beside PySCF's of the same integrals, and identities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from outcore.chem.cc import CCSD

AMINO = "N 0.02 0.01 0; H 0.9 0.1 0.3; H -0.5 0.85 -0.1"
AUXILIARY = "cc-pvdz-ri"
TIGHT = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}
PLACES = [
    pytest.param({}, id="memory", marks=pytest.mark.long),
    pytest.param({"storage": "disk", "ladder": "disk"}, id="disk"),
    pytest.param({"block": 1, "ladder": "rebuild"}, id="rebuild"),
]


def mean_field(
    kind: str, fitted: bool, atoms: str = AMINO, spin: int = 1, charge: int = 0, basis: str = "6-31g"
) -> Any:
    import pyscf
    from pyscf import scf

    mol = pyscf.M(atom=atoms, spin=spin, charge=charge, basis=basis, verbose=0)
    mf = getattr(scf, kind)(mol)
    mf = mf.density_fit(auxbasis=AUXILIARY) if fitted else mf
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    mf.kernel()
    return mf


def solved_by_pyscf(peer: Any) -> Any:
    peer.conv_tol, peer.conv_tol_normt, peer.max_cycle = 1e-12, 1e-10, 200
    peer.kernel()
    peer.solve_lambda()
    return peer


@pytest.fixture(scope="module")
def amino() -> Any:
    return mean_field("UHF", True, basis="sto-3g")


@pytest.fixture(scope="module")
def peer(amino: Any) -> Any:
    from pyscf.cc import dfuccsd

    return solved_by_pyscf(dfuccsd.UCCSD(amino, frozen=1))


def made(mf: Any, frozen: Any = 1, **settings: Any) -> CCSD:
    fitted = "auxbasis" not in settings and settings.get("integrals", "ri") == "ri"
    given: dict[str, Any] = {"memory": "1GB", "threads": 1, **TIGHT, **settings}
    return CCSD(mf, frozen, comm=None, **given, **({"auxbasis": AUXILIARY} if fitted else {}))


def differences(found: Any, expected: Any) -> float:
    return max(float(abs(np.asarray(a) - b).max()) for a, b in zip(found, expected, strict=True))


@pytest.fixture(scope="module", params=PLACES)
def solved(amino: Any, request: pytest.FixtureRequest) -> Iterator[CCSD]:
    """The solution, with arrays in a given place."""
    with made(amino, **request.param) as cc:
        cc.kernel()
        cc.solve_lambda()
        yield cc


def test_multipliers_are_those_of_pyscf(solved: CCSD, peer: Any) -> None:
    assert differences(solved.l1, peer.l1) < 1e-8
    assert differences(solved.l2, peer.l2) < 1e-8


@pytest.mark.parametrize("over_functions", [False, True])
def test_the_densities_of_fixed_orbitals_are_pyscfs(solved: CCSD, peer: Any, over_functions: bool) -> None:
    found = solved.make_rdm1(ao_repr=over_functions)
    assert differences(found, peer.make_rdm1(ao_repr=over_functions)) < 1e-8


def test_amplitudes_stay(solved: CCSD, peer: Any) -> None:
    assert differences(solved.t1, peer.t1) < 1e-7
    assert differences(solved.t2, peer.t2) < 1e-7


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        pytest.param("UHF", {"integrals": "cholesky", "tolerance": 1e-10}, marks=pytest.mark.long),
        ("ROHF", {"integrals": "conventional", "orbitals": "standard"}),
    ],
    ids=["Cholesky", "ROHF"],
)
def test_of_exact_and_decomposed_integrals_they_are_pyscfs(kind: str, settings: dict[str, Any]) -> None:
    from pyscf import cc as peers
    from pyscf import scf

    mf = mean_field(kind, False, basis="sto-3g")
    exact = solved_by_pyscf(peers.UCCSD(mf if kind == "UHF" else scf.addons.convert_to_uhf(mf), frozen=1))
    with made(mf, **settings) as cc:
        cc.kernel()
        l1, l2 = cc.solve_lambda()
        assert differences(l1, exact.l1) < 1e-8
        assert differences(l2, exact.l2) < 1e-8
        assert differences(cc.make_rdm1(), exact.make_rdm1()) < 1e-8


def test_of_rohf_with_semicanonical_orbitals_they_are_pyscfs_of_the_same_orbitals() -> None:
    from pyscf import cc as peers
    from pyscf import scf

    mf = mean_field("ROHF", False, basis="sto-3g")
    given = scf.addons.convert_to_uhf(mf)
    for spin, (fock, o) in enumerate(zip(given.get_fock(), mf.nelec, strict=True)):
        orbitals = given.mo_coeff[spin].copy()
        for part in (slice(0, o), slice(o, None)):
            block = orbitals[:, part]
            orbitals[:, part] = block @ np.linalg.eigh(block.T @ fock @ block)[1]
        given.mo_coeff[spin] = orbitals
    exact = solved_by_pyscf(peers.UCCSD(given, frozen=1))
    with made(mf, integrals="conventional", orbitals="semicanonical") as cc:
        cc.kernel()
        l1, l2 = cc.solve_lambda()
        assert cc.e_corr == pytest.approx(exact.e_corr, abs=1e-9)
        # Signs of orbitals are free.
        assert differences(map(abs, l1), map(abs, exact.l1)) < 1e-8
        assert differences([abs(np.asarray(each)) for each in l2], map(abs, exact.l2)) < 1e-8
        found = cc.make_rdm1(ao_repr=True)
        assert differences(found, exact.make_rdm1(ao_repr=True)) < 1e-8
    with made(mf, integrals="conventional", orbitals="standard") as cc:
        cc.kernel()
        assert differences(cc.make_rdm1(ao_repr=True), found) > 1e-5  # another core


def test_of_two_electrons_of_one_spin_densities_are_those_of_full_ci() -> None:
    from pyscf import fci

    mf = mean_field("UHF", False, "H 0 0 0; H 0.3 0 1.1; He 2 1 1", 2, 2)
    full = fci.FCI(mf)
    full.conv_tol = 1e-13
    full.kernel()
    c = mf.mo_coeff[0]
    expected = c @ full.make_rdm1s(full.ci, c.shape[1], (2, 0))[0] @ c.T
    with made(mf, None, integrals="conventional") as cc:
        cc.kernel()
        alpha, beta = cc.make_rdm1(ao_repr=True)
        assert abs(alpha - expected).max() < 1e-9
        assert abs(beta).max() == 0
        assert [each.shape for each in cc.l2] == [(2, 2, 4, 4), (2, 0, 4, 6), (0, 0, 6, 6)]


def test_triples_after_multipliers_are_those_before(amino: Any) -> None:
    loose = {"conv_tol": 1e-3, "conv_tol_normt": 1e-2}
    with made(amino, None, **loose) as before, made(amino, None, **loose) as after:
        before.kernel()
        after.kernel()
        after.solve_lambda()
        assert after.ccsd_t() == pytest.approx(before.ccsd_t(), abs=1e-12)
        assert after.l1 is None


def test_the_energy_is_the_sum_of_densities_and_integrals(solved: CCSD) -> None:
    found = solved.multipliers.make_densities()
    total = 0.0
    for one, spin, each in zip(found.one, solved.spins, found.three_index, strict=True):
        pairs = zip((each.oo, each.vo, each.vv), each.integrals.arrays, strict=True)
        oo, vo, vv = (float(np.sum(gamma.to_numpy() * b.to_numpy())) for gamma, b in pairs)
        total += float(np.sum(one * spin.fock)) + oo / 2 + vo + vv / 2
    assert total == pytest.approx(solved.e_corr, abs=2e-8)
