"""Orbitals that are not canonical, and spins that have nothing to correlate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cc_support import IMIDOGEN, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD

TIGHT = {"conv_tol": 1e-10, "conv_tol_normt": 1e-8, "threads": 1}


def test_localized_orbitals_have_the_energies_of_canonical_ones_and_amplitudes_of_their_own() -> None:
    mf = mean_field(WATER, "sto-3g")
    with CCSD(mf, 1, integrals="conventional", comm=None, memory="1GB", **TIGHT) as cc:
        energies = cc.kernel()[0], cc.ccsd_t()
        canonical = cc.amplitudes()
    generator = np.random.default_rng(5)
    rotation = np.eye(7)
    for box in (slice(1, 5), slice(5, 7)):
        matrix = generator.normal(size=rotation[box, box].shape)
        rotation[box, box] = np.linalg.qr(matrix + matrix.T)[0]
    mf.mo_coeff = mf.mo_coeff @ rotation
    mf.mo_energy = mf.mo_energy + np.arange(7) * 1e-12  # they stay in order
    with CCSD(mf, 1, integrals="conventional", comm=None, memory="1GB", **TIGHT) as cc:
        cc.kernel()
        cc.ccsd_t()
        assert "made semicanonical" in cc.summary()
        t1, t2 = cc.amplitudes()
        assert abs(cc.active_orbitals - mf.mo_coeff[:, 1:]).max() < 1e-12
        assert np.array_equal(cc.t2[1:3, :, 0], t2[1:3, :, 0])
    assert abs(cc.e_corr - energies[0]) < 1e-9
    assert abs(cc.e_t - energies[1]) < 1e-9
    o, v = rotation[1:5, 1:5], rotation[5:, 5:]
    assert abs(t1 - o.T @ canonical[0] @ v).max() < 1e-7
    turned = np.einsum("ijab,ik,jl,ac,bd->klcd", canonical[1], o, o, v, v)
    assert abs(t2 - turned).max() < 1e-7


def test_amplitudes_of_rohf_are_of_its_orbitals() -> None:
    from pyscf import cc as peers

    mf = open_mean_field("ROHF", IMIDOGEN, "sto-3g")
    peer = peers.UCCSD(mf)
    peer.conv_tol, peer.conv_tol_normt = 1e-11, 1e-9
    peer.kernel()
    with CCSD(mf, integrals="conventional", comm=None, memory="1GB", **TIGHT) as cc:
        cc.kernel()
        assert "made semicanonical before orbitals are frozen" in cc.summary()
        singles, doubles = cc.amplitudes()
    for mine, other in zip((*singles, *doubles), (*peer.t1, *peer.t2), strict=True):
        assert abs(mine - other).max() < 1e-7


@pytest.mark.parametrize(
    ("molecule", "basis"),
    [
        (("H 0 0 0", 0, 1), "cc-pvdz"),
        (("H 0 0 0; H 0 0 1.0", 1, 1), "6-31g"),
        (("He 0 0 0", 0, 2), "cc-pvdz"),
    ],
    ids=["H", "H2+", "He"],
)
@pytest.mark.parametrize("kind", ["UHF", "ROHF"])
def test_one_spin_alone_is_correlated(
    kind: str, molecule: tuple[str, int, int], basis: str, tmp_path: Path
) -> None:
    from pyscf import fci

    mf = open_mean_field(kind, molecule, basis)
    exact = fci.FCI(mf if kind == "ROHF" else mf.to_rhf()).kernel()[0]
    with CCSD(mf, comm=None, memory="1GB", checkpoint=tmp_path / "kept", **TIGHT) as cc:
        cc.kernel()
        assert cc.ccsd_t() == 0.0
        assert "electrons of spin alpha alone are correlated" in cc.summary()
        singles, doubles = cc.amplitudes()
    assert abs(cc.e_tot - exact) < 1e-9
    n, v = mf.mol.nelectron, mf.mol.nao
    assert [each.shape[1] for each in cc.active_orbitals] == [v, v]
    assert [each.shape for each in singles] == [(n, v - n), (0, v)]
    assert [each.shape for each in doubles] == [(n, n, v - n, v - n), (n, 0, v - n, v), (0, 0, v, v)]
