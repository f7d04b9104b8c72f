"""Derivatives of (T) of open shells: densities and gradients of UHF-CCSD(T) beside PySCF's, finite
differences and closed shells; results do not depend on blocks of orbitals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import fitted_mean_field as mean_field
from cc_support import of_whole_molecule

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.equations import triple_arrays
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]

AMINO = "N 0.02 0.01 0; H 0.9 0.1 0.3; H -0.5 0.85 -0.1"
HYDROXYL = "O 0 0 0.02; H 0.3 0.1 0.91"
IMIDOGEN = "N 0 0 0; H 0 0 1.04"
FLUORIDE = "F 0 0 0.05; H 0 0 0.97"
TIGHT = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}
LOOSE = {"conv_tol": 1e-4, "conv_tol_normt": 1e-3}  # steps are the same with any blocks, wherever arrays are


def molecule(atoms: str, spin: int, basis: str = "6-31g") -> Any:
    import pyscf

    return pyscf.M(atom=atoms, spin=spin, basis=basis, verbose=0)


def made(mf: Any, frozen: int, **settings: Any) -> CCSD:
    # Integrals of the ladder in single precision differ by place.
    given: dict[str, Any] = {"memory": "1GB", "threads": 1, "ladder": "rebuild", **TIGHT, **settings}
    sets = {} if "integrals" in given else {"auxbasis": "cc-pvdz-ri"}
    return CCSD(mf, frozen, comm=None, **sets, **given)


def gradient(mol: Any, frozen: int, kind: str = "UHF", **settings: Any) -> tuple[float, Values]:
    with mean_field(mol, kind) as mf, made(mf, frozen, **settings) as cc:
        cc.kernel()
        e_t = cc.ccsd_t(derivatives=True)
        found = cc.nuc_grad_method().kernel()
        assert abs(of_whole_molecule(mol, found)).max() < 1e-9
        return cc.e_tot + e_t, found


def energy(mol: Any, frozen: int, field: Values | None = None) -> float:
    with mean_field(mol, field=field) as mf, made(mf, frozen) as cc:
        cc.kernel()
        return cc.e_tot + cc.ccsd_t()


def slope(of: Any, h: float) -> float:
    """The derivative of a function at 0, from four values."""
    near, far = (of(step * h) - of(-step * h) for step in (1, 2))
    return float((8 * near - far) / (12 * h))


@pytest.fixture(scope="module")
def hydroxyl() -> Any:
    """The hydroxyl radical, with exact integrals."""
    from pyscf import scf

    mf = scf.UHF(molecule(HYDROXYL, 1))
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    return mf.run()


@pytest.fixture(scope="module")
def of_pyscf(hydroxyl: Any) -> tuple[Any, Any, Any]:
    """Multipliers and the unrelaxed density."""
    from pyscf import cc as peers
    from pyscf.cc import uccsd_t_lambda, uccsd_t_rdm

    peer = peers.UCCSD(hydroxyl, frozen=1)
    peer.conv_tol, peer.conv_tol_normt, peer.max_cycle = 1e-12, 1e-10, 200
    peer.kernel()
    eris = peer.ao2mo()
    _, l1, l2 = uccsd_t_lambda.kernel(peer, eris, peer.t1, peer.t2, tol=1e-9)
    return l1, l2, uccsd_t_rdm.make_rdm1(peer, peer.t1, peer.t2, l1, l2, eris=eris)


def test_multipliers_and_densities_of_fixed_orbitals_are_pyscfs(hydroxyl: Any, of_pyscf: Any) -> None:
    l1, l2, expected = of_pyscf
    with made(hydroxyl, 1, integrals="conventional", block=2) as cc:
        cc.kernel()
        cc.ccsd_t()
        assert max(abs(x - y).max() for x, y in zip(cc.solve_lambda()[0], l1, strict=True)) < 1e-8
        assert max(abs(np.asarray(x) - y).max() for x, y in zip(cc.l2, l2, strict=True)) < 1e-8
        density = cc.make_rdm1()
    for x, y, o in zip(density, expected, hydroxyl.nelec, strict=True):
        assert abs(x[:o, o:] - y[:o, o:]).max() < 1e-8
        assert abs(np.diag(x - y)).max() < 1e-8  # PySCF's density lacks other elements of triples


@pytest.mark.parametrize(
    ("frozen", "total", "of_nitrogen", "of_hydrogen"),
    [
        pytest.param(0, -55.62323632895, 0.0891987608, -0.0348900045, marks=pytest.mark.long),
        (1, -55.62223985408, 0.0892526833, -0.0349199338),
    ],
)
def test_a_radical_of_low_symmetry(frozen: int, total: float, of_nitrogen: float, of_hydrogen: float) -> None:
    # Values of finite differences of energies.
    e_tot, found = gradient(molecule(AMINO, 1), frozen)
    assert e_tot == pytest.approx(total, abs=1e-9)
    assert found[0, 0] == pytest.approx(of_nitrogen, abs=1e-9)
    assert found[1, 2] == pytest.approx(of_hydrogen, abs=1e-9)


@pytest.fixture(scope="module")
def of_imidogen() -> tuple[float, Values, Any]:
    """Energy, gradient and the unrelaxed density."""
    return with_density(IMIDOGEN, 2, 1, **LOOSE)


def with_density(atoms: str, spin: int, frozen: int, **settings: Any) -> tuple[float, Values, Any]:
    with mean_field(molecule(atoms, spin)) as mf, made(mf, frozen, **settings) as cc:
        cc.kernel()
        e_t = cc.ccsd_t(derivatives=True)
        density = cc.make_rdm1()
        return e_t, cc.nuc_grad_method().kernel(), density


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"storage": "disk", "block": 4}, id="disk"),
        pytest.param({"block": 2, "threads": 2}, id="two threads", marks=pytest.mark.long),
    ],
)
def test_blocks_and_places_make_no_difference(
    of_imidogen: tuple[float, Values, Any], settings: dict[str, Any]
) -> None:
    e_t, found, density = with_density(IMIDOGEN, 2, 1, **LOOSE, **settings)
    assert e_t == pytest.approx(of_imidogen[0], abs=1e-11)
    assert abs(found - of_imidogen[1]).max() < 1e-9
    assert abs(np.array(density) - np.array(of_imidogen[2])).max() < 1e-9


def test_densities_of_degenerate_orbitals_are_those_of_all_triples(
    of_imidogen: tuple[float, Values, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triple_arrays, "SAME_ENERGY", 10.0)  # of all orbitals, none by gaps
    density = with_density(IMIDOGEN, 2, 1, **LOOSE)[2]
    assert abs(np.array(density) - np.array(of_imidogen[2])).max() < 1e-11


def test_of_closed_shells_it_is_that_of_their_own_equations() -> None:
    mol = molecule(FLUORIDE, 0)
    limits = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7}
    (e_open, of_open), (e_closed, of_closed) = (gradient(mol, 1, kind, **limits) for kind in ("UHF", "RHF"))
    assert e_open == pytest.approx(e_closed, abs=1e-7)
    assert of_open == pytest.approx(of_closed, abs=1e-6)


def test_where_one_spin_alone_is_correlated() -> None:
    # Triples of one spin alone. Values of finite differences of energies.
    import pyscf

    atoms = "H 0 0 0; H 0.3 0 1.1; H 2 1 1; H -1 1 0.5"
    found = gradient(pyscf.M(atom=atoms, spin=3, charge=1, basis="6-31g", verbose=0), 0)[1]
    assert found[0, 1] == pytest.approx(0.0191608585, abs=1e-9)
    assert found[1, 0] == pytest.approx(-0.0262612192, abs=1e-9)


def test_relaxed_densities_of_both_spins_are_derivatives_by_fields_on_them() -> None:
    mol = molecule(AMINO, 1, "sto-3g")
    x = mol.intor("int1e_r")[0]
    field = np.array([x, -0.5 * x])  # on alpha and on beta
    with mean_field(mol) as mf, made(mf, 1) as cc:
        cc.kernel()
        cc.ccsd_t(derivatives=True)
        found = np.array(cc.make_rdm1(relaxed=True, ao_repr=True))
    expected = slope(lambda step: energy(mol, 1, step * field), 4e-3)
    assert np.sum(found * field) == pytest.approx(expected, abs=1e-7)
    assert np.sum((found[0] - found[1]) * mol.intor("int1e_ovlp")) == pytest.approx(1.0, abs=1e-10)


def test_the_energy_is_the_sum_of_densities_and_integrals() -> None:
    with (
        mean_field(molecule(HYDROXYL, 1)) as mf,
        made(mf, 1, conv_tol=1e-9, conv_tol_normt=1e-7) as cc,
    ):
        cc.kernel()
        e_t = cc.ccsd_t(derivatives=True)
        found, total = cc.multipliers.make_densities(), 0.0
        for one, spin, each in zip(found.one, cc.spins, found.three_index, strict=True):
            pairs = zip((each.oo, each.vo, each.vv), each.integrals.arrays, strict=True)
            oo, vo, vv = (float(np.sum(gamma.to_numpy() * b.to_numpy())) for gamma, b in pairs)
            total += float(np.sum(one * spin.fock)) + oo / 2 + vo + vv / 2
        assert total == pytest.approx(cc.e_corr + e_t, abs=1e-7)


def test_derivatives_go_on_where_a_run_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyscf import scf

    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    told: list[float] = []

    def stop(name: str, fraction: float) -> None:
        if name == "derivatives of triples":
            told.append(fraction)
            if len(told) == 3:
                raise KeyboardInterrupt

    again: list[str] = []
    mf = scf.UHF(molecule(AMINO, 1, "sto-3g")).density_fit(auxbasis="cc-pvdz-jkfit")
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    mf.kernel()
    with made(mf, 0, block=2, **LOOSE) as cc:
        cc.kernel()
        cc.ccsd_t(derivatives=True)
        expected = cc.make_rdm1()
    with made(mf, 0, block=2, checkpoint=tmp_path / "kept", **LOOSE) as cc, pytest.raises(KeyboardInterrupt):
        cc.kernel()
        cc.on_progress = stop
        cc.ccsd_t(derivatives=True)
    with made(mf, 0, block=3, checkpoint=tmp_path / "kept", **LOOSE) as cc:
        cc.on_progress = lambda name, _: again.append(name)
        cc.kernel()
        cc.ccsd_t(derivatives=True)
        assert abs(np.array(cc.make_rdm1()) - np.array(expected)).max() < 1e-9
    assert 0 < again.count("derivatives of triples") <= round(1 / told[0]) - 2


def test_of_rohf_they_are_refused_by_name() -> None:
    with mean_field(molecule(HYDROXYL, 1, "sto-3g"), "ROHF") as mf, made(mf, 1, **LOOSE) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="RHF or UHF"):
            cc.ccsd_t(derivatives=True)
