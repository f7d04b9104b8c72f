"""CCSD of open shells: residuals and energies beside PySCF's and those of the literature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cc_support import AMINO, BORANE, WATER, mean_field, open_mean_field

from outcore.base.errors import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.doubts import DoubtfulResult
from outcore.chem.mp2 import MP2

TIGHT = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7, "threads": 1}


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "6-31g")


def random_amplitudes(o: tuple[int, int], v: tuple[int, int]) -> tuple[Any, Any]:
    generator = np.random.default_rng(3)
    singles = tuple(0.1 * generator.normal(size=(o[s], v[s])) for s in (0, 1))

    def same(s: int) -> Any:
        t = 0.1 * generator.normal(size=(o[s], o[s], v[s], v[s]))
        t = t - t.transpose(1, 0, 2, 3)
        return t - t.transpose(0, 1, 3, 2)

    return singles, (same(0), 0.1 * generator.normal(size=(o[0], o[1], v[0], v[1])), same(1))


@pytest.fixture(scope="module")
def fitted() -> Any:
    """UHF whose integrals are those of density fitting, with the set of coupled cluster."""
    import pyscf
    from pyscf import ao2mo, df, scf

    atoms, charge, spin = AMINO
    mol = pyscf.M(atom=atoms, charge=charge, spin=spin, basis="6-31g", verbose=0)
    rows = df.incore.cholesky_eri(mol, auxbasis=df.make_auxbasis(mol, mp2fit=True))
    mf = scf.UHF(mol)
    mf._eri = ao2mo.restore(8, rows.T @ rows, mol.nao)
    mf.conv_tol = 1e-12
    mf.kernel()
    return mf


def fits(mf: Any) -> Any:
    """The mean field as an object that fits its integrals itself, in the same way as coupled cluster."""
    from pyscf import df, scf

    other = scf.UHF(mf.mol).density_fit(auxbasis=df.make_auxbasis(mf.mol, mp2fit=True))
    for name in ("mo_coeff", "mo_energy", "mo_occ", "e_tot", "converged"):
        setattr(other, name, getattr(mf, name))
    return other


@pytest.mark.parametrize(
    "settings", [{}, {"block": 3, "storage": "disk"}, {"block": 4, "ladder": "rebuild"}], ids=str
)
def test_residual_of_any_amplitudes_is_that_of_pyscf(fitted: Any, settings: dict[str, Any]) -> None:
    from pyscf import cc as peers

    peer = peers.UCCSD(fitted)
    eris = peer.ao2mo()
    o = peer.nocc
    v = tuple(peer.nmo[s] - o[s] for s in (0, 1))
    singles, doubles = random_amplitudes(o, v)
    new1, new2 = peer.update_amps(singles, doubles, eris)
    gaps = [eris.mo_energy[s][: o[s], None] - eris.mo_energy[s][o[s] :] for s in (0, 1)]
    pairs = [gaps[s][:, None, :, None] + gaps[r][None, :, None, :] for s, r in ((0, 0), (0, 1), (1, 1))]
    with CCSD(fits(fitted), integrals="ri", comm=None, memory="1GB", threads=1, **settings) as cc:
        equations = cc.set_up()
        for each, values in zip(equations.doubles, doubles, strict=True):
            whole, layout = values.transpose(2, 0, 3, 1), each.amplitudes.layout
            for tile in layout.stored:
                each.put(tile, np.ascontiguousarray(whole[layout.box(tile)]))
        found = equations.residual(list(singles))
        for s in (0, 1):
            assert abs(found[s] - (new1[s] - singles[s]) * gaps[s]).max() < 1e-12
        # Stored integrals of the ladder are right within single precision.
        precision = 1e-12 if "ladder" in settings else 1e-6
        for each, old, new, gap in zip(equations.doubles, doubles, new2, pairs, strict=True):
            values = each.residual.to_numpy().transpose(1, 3, 0, 2)
            assert abs(values - (new - old) * gap).max() < precision


def test_energy_is_that_of_pyscf_whatever_the_tiles(amino: Any) -> None:
    from pyscf import cc as peers

    peer = peers.UCCSD(amino)
    peer.conv_tol, peer.conv_tol_normt = 1e-11, 1e-9
    peer.kernel()
    with CCSD(
        amino, integrals="conventional", comm=None, memory="1GB", block=4, storage="disk", **TIGHT
    ) as cc:
        cc.kernel()
        singles, doubles = cc.amplitudes()
        assert abs(cc.ccsd_t() - peer.ccsd_t()) < 1e-8
    assert cc.converged
    assert abs(cc.e_corr - peer.e_corr) < 2e-9
    assert abs(singles[1] - peer.t1[1]).max() < 1e-6
    assert abs(doubles[1] - peer.t2[1]).max() < 1e-6


@pytest.mark.parametrize(
    ("kind", "energy", "triples"),
    [("UHF", -0.08217287869, -0.00062614), ("ROHF", -0.08357160616, -0.000713766189)],
    ids=["UHF", "ROHF"],
)
def test_energies_are_those_of_the_suite(kind: str, energy: float, triples: float) -> None:
    mf = open_mean_field(kind, BORANE, "cc-pvdz")
    with CCSD(mf, integrals="conventional", comm=None, memory="1GB", **TIGHT) as cc:
        cc.kernel()
        cc.ccsd_t()
    assert abs(cc.e_corr - energy) < 1e-8
    assert abs(cc.e_t - triples) < 1e-8


def test_frozen_orbitals_of_rohf_before_and_after_they_are_made_semicanonical() -> None:
    mf = open_mean_field("ROHF", BORANE, "cc-pvdz")
    energies = []
    for orbitals in ("semicanonical", "standard"):
        with CCSD(
            mf, "auto", integrals="conventional", orbitals=orbitals, comm=None, memory="1GB", **TIGHT
        ) as cc:
            energies.append(cc.kernel()[0])
            if orbitals == "semicanonical":
                assert abs(cc.ccsd_t() - -0.000691982886) < 1e-8
    assert abs(energies[0] - -0.082563103526) < 1e-8
    assert abs(energies[1] - -0.08256719) < 1e-8


def test_the_order_of_freezing_without_frozen_orbitals_is_refused() -> None:
    mf = open_mean_field("ROHF", BORANE, "cc-pvdz")
    with pytest.raises(OutcoreError, match="orbitals='standard' without frozen orbitals has no effect"):
        CCSD(mf, orbitals="standard", comm=None, memory="1GB")


def test_what_makes_a_result_doubtful_is_a_warning() -> None:
    """Carbon with a hole in 2s: a root of the equations above the determinant. Rounding decides how far above the
    iterations have come."""
    import pyscf
    from pyscf import scf

    mf = scf.UHF(pyscf.M(atom="C 0 0 0", basis="6-31g", spin=2, verbose=0)).run(conv_tol=1e-11)
    occupations = mf.mo_occ.copy()
    occupations[0][[1, 4]] = 0, 1
    excited = scf.addons.mom_occ(scf.UHF(mf.mol), mf.mo_coeff, occupations)
    excited.kernel(excited.make_rdm1(mf.mo_coeff, occupations))
    with (
        CCSD(excited, integrals="conventional", comm=None, memory="1GB", max_cycle=9, threads=1) as cc,
        pytest.warns(DoubtfulResult, match=r"the correlation energy is positive, 0\.0[678]"),
        pytest.warns(
            DoubtfulResult, match="orbital of spin alpha at -0.380.* lies above a virtual one at -0.385"
        ),
    ):
        cc.kernel()
    excited.converged = False
    mp2 = MP2(excited, auxbasis="cc-pvdz-ri", force=True, comm=None, memory="1GB", threads=1)
    with pytest.warns(DoubtfulResult, match="lies above a virtual one"):
        mp2.kernel()
    mp2.close()
    with CCSD(mf, integrals="conventional", comm=None, memory="1GB", threads=1) as cc:
        assert cc.warnings == []


def test_orbitals_that_were_swapped_make_a_result_doubtful_though_both_are_frozen() -> None:
    mf = mean_field(WATER, "sto-3g").copy()
    mf.mo_occ, mf.converged = mf.mo_occ.copy(), False
    mf.mo_occ[[4, 5]] = 0, 2
    given: dict[str, Any] = {"force": True, "comm": None, "memory": "1GB", "threads": 1}
    for frozen in ({}, {"frozen": [5], "frozen_virtual": [4]}):
        with CCSD(mf, integrals="conventional", **frozen, **given) as cc:
            assert "the determinant is not the lowest of its occupation" in cc.warnings[0]
        with MP2(mf, auxbasis="cc-pvdz-ri", **frozen, **given) as mp2:
            assert "the determinant is not the lowest of its occupation" in mp2.warnings[0]
