"""Derivatives of (T) of closed shells: gradients and densities of CCSD(T); results do not depend on blocks of
orbitals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cc_support import fitted_mean_field, mean_field, molecule, of_whole_molecule

from outcore import OutcoreError
from outcore.chem import ri
from outcore.chem.cc import CCSD
from outcore.chem.cc.equations import triple_arrays
from outcore.chem.cc.equations.triple_arrays import groups
from outcore.chem.cc.equations.triple_derivatives import TripleDerivatives
from outcore.chem.gradients import properties

Values = np.ndarray[Any, np.dtype[Any]]

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
HOF = "O 0.10 0.02 0.00; F 1.43 -0.05 0.10; H -0.25 0.93 0.05"
NITROGEN = "N 0 0 0; N 0 0 1.1"
TIGHT = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}
LOOSE = {"conv_tol": 1e-4, "conv_tol_normt": 1e-3}  # steps are the same with any blocks, wherever arrays are


def fitted(atoms: Any, unit: str = "Angstrom", basis: str = "6-31g") -> Any:
    import pyscf

    mol = pyscf.M(atom=atoms, basis=basis, unit=unit, verbose=0)
    mf = ri.RHF(mol, "cc-pvdz-jkfit", comm=None, memory="1GB")
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    mf.kernel()
    return mf


def made(mf: Any, frozen: int, **settings: Any) -> CCSD:
    # Integrals of the ladder in single precision differ by place.
    given: dict[str, Any] = {"memory": "1GB", "threads": 2, "ladder": "rebuild", **TIGHT, **settings}
    return CCSD(mf, frozen, comm=None, auxbasis="cc-pvdz-ri", **given)


def gradient(atoms: str, frozen: int, **settings: Any) -> tuple[float, Values]:
    with fitted(atoms) as mf, made(mf, frozen, **settings) as cc:
        cc.kernel()
        e_t = cc.ccsd_t(derivatives=True)
        found = cc.nuc_grad_method().kernel()
        if cc.settings.conv_tol_normt <= TIGHT["conv_tol_normt"]:
            assert abs(of_whole_molecule(mf.mol, found)).max() < 1e-9
        return cc.e_tot + e_t, found


@pytest.mark.parametrize(
    ("frozen", "energy", "of_oxygen", "of_hydrogen"),
    [
        pytest.param(0, -76.1203455788, -0.011475107, -0.023478516, marks=pytest.mark.long),
        (1, -76.1194264745, -0.011548350, -0.023506851),
    ],
)
def test_water(frozen: int, energy: float, of_oxygen: float, of_hydrogen: float) -> None:
    e_tot, found = gradient(WATER, frozen)
    assert e_tot == pytest.approx(energy, abs=2e-9)
    assert found[0, 2] == pytest.approx(of_oxygen, abs=2e-9)
    assert found[1, 1] == pytest.approx(of_hydrogen, abs=2e-9)


def test_a_molecule_of_low_symmetry_with_frozen_cores() -> None:
    e_tot, of_hof = gradient(HOF, 2)
    assert e_tot == pytest.approx(-174.9298506212, abs=2e-9)
    assert of_hof[0] == pytest.approx([0.156555494, 0.029444910, 0.014996755], abs=2e-9)
    assert of_hof[1] == pytest.approx([-0.138509806, -0.010137862, -0.011906029], abs=2e-9)


def test_relaxed_moments_are_derivatives_of_the_energy_by_fields() -> None:
    mol = molecule("O 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5")
    squares = mol.intor("int1e_rr").reshape(3, 3, mol.nao, mol.nao)
    charges, places = mol.atom_charges(), mol.atom_coords()
    with fitted_mean_field(mol, "RHF") as mf, made(mf, 1) as cc:
        cc.kernel()
        cc.ccsd_t(derivatives=True)
        found = properties.of(mol, cc.relaxed_densities().densities.both)

    def energy(field: Values) -> float:
        with fitted_mean_field(mol, "RHF", field) as mf, made(mf, 1) as cc:
            cc.kernel()
            return cc.e_tot + cc.ccsd_t()

    # In a field that acts on z + 2 yz: both moments with one series of energies.
    field, h = mol.intor("int1e_r")[2] + 2 * squares[1, 2], 3e-3
    near, far = (energy(n * h * field) - energy(-n * h * field) for n in (1, 2))
    of_electrons = (8 * near - far) / (12 * h)
    of_nuclei = float(charges @ (places[:, 2] + 2 * places[:, 1] * places[:, 2]))
    assert of_nuclei - of_electrons == pytest.approx(
        found.dipole[2] + 2 * found.quadrupole[1, 2] / 1.5, abs=1e-7
    )


def test_no_more_than_three_blocks_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held, of_three = [], TripleDerivatives._sum

    def counting(self: TripleDerivatives, task: tuple[int, int], c: int, given: tuple[Any, ...]) -> float:
        energy = of_three(self, task, c, given)
        held.append({*self._blocks_read, *self._parts, *task, c})
        return energy

    monkeypatch.setattr(TripleDerivatives, "_sum", counting)
    with fitted(WATER) as mf, made(mf, 1, block=2, **LOOSE) as cc:
        cc.kernel()
        cc.ccsd_t(derivatives=True)
    assert len(set().union(*held)) > 3
    assert max(len(each) for each in held) == 3


@pytest.fixture(scope="module")
def of_hof() -> Values:
    return gradient(HOF, 2, **LOOSE)[1]


@pytest.mark.parametrize(
    "settings",
    [pytest.param({"storage": "disk", "block": 4}, marks=pytest.mark.long), {"block": 3, "threads": 1}],
    ids=["disk", "small blocks"],
)
def test_blocks_and_places_make_no_difference(of_hof: Values, settings: dict[str, Any]) -> None:
    assert abs(gradient(HOF, 2, **LOOSE, **settings)[1] - of_hof).max() < 1e-9


@pytest.mark.long
def test_gradients_are_differences_of_energies() -> None:
    from pyscf import gto

    atom, axis = 0, 1
    mol = gto.M(atom="N 0.05 0 0.02; O 1.2 0.1 -0.05; H -0.4 0.9 0.1", basis="sto-3g", verbose=0)

    def energy(step: float) -> tuple[float, Values | None]:
        places = mol.atom_coords()
        places[atom, axis] += step
        moved = [(mol.atom_symbol(n), each) for n, each in enumerate(places)]
        with fitted(moved, "Bohr", "sto-3g") as mf, made(mf, 2) as cc:
            cc.kernel()
            e_t = cc.ccsd_t()
            return cc.e_tot + e_t, None if step else cc.nuc_grad_method().kernel()

    found = energy(0.0)[1]
    assert found is not None
    h = 4e-3
    near, far = (energy(n * h)[0] - energy(-n * h)[0] for n in (1, 2))
    assert found[atom, axis] == pytest.approx((8 * near - far) / (12 * h), abs=1e-7)


def exact(mf: Any) -> CCSD:
    given: dict[str, Any] = {"memory": "1GB", "threads": 2, "ladder": "rebuild"}
    limits = {"conv_tol": 1e-12, "conv_tol_normt": 1e-10}
    return CCSD(mf, 2, comm=None, integrals="conventional", **given, **limits)


@pytest.fixture(scope="module")
def nitrogen() -> Any:
    return mean_field(NITROGEN, "6-31g")


@pytest.fixture(scope="module")
def of_nitrogen(nitrogen: Any) -> tuple[Values, Values, Values]:
    """Multipliers and the density of N2."""
    with exact(nitrogen) as cc:
        cc.kernel()
        cc.ccsd_t()
        density = cc.make_rdm1()
        return cc.l1, np.asarray(cc.l2), density


def test_multipliers_are_pyscfs(nitrogen: Any, of_nitrogen: tuple[Values, Values, Values]) -> None:
    from pyscf import cc as peers
    from pyscf.cc import ccsd_t_lambda_slow, ccsd_t_rdm_slow

    peer = peers.RCCSD(nitrogen, frozen=2)
    peer.conv_tol, peer.conv_tol_normt, peer.max_cycle = 1e-13, 1e-10, 100
    peer.kernel()
    eris = peer.ao2mo()
    _, l1, l2 = ccsd_t_lambda_slow.kernel(peer, eris, peer.t1, peer.t2, tol=1e-10)
    wanted = ccsd_t_rdm_slow.make_rdm1(peer, peer.t1, peer.t2, l1, l2, eris=eris)
    assert abs(of_nitrogen[0] - l1).max() < 1e-8
    assert abs(of_nitrogen[1] - l2).max() < 1e-8
    o, density = nitrogen.mol.nelectron // 2, of_nitrogen[2]
    assert abs(density[:o, o:] - wanted[:o, o:]).max() < 1e-8
    assert abs(np.diag(density - wanted)).max() < 1e-8  # PySCF's density lacks other elements of triples


def test_densities_of_degenerate_orbitals_are_those_of_all_triples(
    nitrogen: Any, of_nitrogen: tuple[Values, Values, Values], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triple_arrays, "SAME_ENERGY", 10.0)  # of all orbitals, none by gaps
    with exact(nitrogen) as cc:
        cc.kernel()
        cc.ccsd_t()
        assert abs(cc.make_rdm1() - of_nitrogen[2]).max() < 1e-9


@pytest.mark.parametrize("triples", [pytest.param(False, marks=pytest.mark.long), True])
def test_scanners_are_of_the_method_of_their_object(triples: bool) -> None:
    limits = {"conv_tol": 1e-9, "conv_tol_normt": 1e-7}
    mf = fitted(WATER, basis="sto-3g")
    mol = mf.mol
    places = mol.atom_coords() + np.array([[0.0, 0.0, 0.05], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    moved = mol.set_geom_(places, unit="Bohr", inplace=False)
    with mf, made(mf, 1, **limits) as cc:
        cc.has_triples = triples
        scanner = cc.nuc_grad_method().as_scanner()
        scanner(mol)
        energy, found = scanner(moved)
        of_energy = cc.as_scanner()(moved)
    atoms = [(mol.atom_symbol(n), each) for n, each in enumerate(places)]
    with fitted(atoms, "Bohr", "sto-3g") as mf, made(mf, 1, **limits) as cc:
        cc.kernel()
        total = cc.e_tot + (cc.ccsd_t(derivatives=True) if triples else 0.0)
        assert energy == pytest.approx(total, abs=1e-8)
        assert of_energy == pytest.approx(total, abs=1e-8)
        assert abs(cc.nuc_grad_method().kernel() - found).max() < 1e-6


def test_orbitals_of_the_same_energy_are_a_range() -> None:
    assert groups(np.array([0.1, 0.2, 0.2, 0.2, 0.3, 0.4, 0.4])) == [(1, 4), (5, 7)]
    assert groups(np.array([0.2, 0.1, 0.2 + 1e-7])) == [(0, 3)]
    assert groups(np.array([0.1])) == []


def test_orbitals_that_are_none_of_an_scf_are_refused_by_name() -> None:
    mf = mean_field(WATER, "sto-3g")
    mf.mo_coeff = mf.mo_coeff.copy()
    turn = np.eye(mf.mo_coeff.shape[1])
    turn[4:6, 4:6] = [[np.cos(0.1), np.sin(0.1)], [-np.sin(0.1), np.cos(0.1)]]
    mf.mo_coeff = mf.mo_coeff @ turn
    with CCSD(mf, comm=None, memory="1GB", force=True) as cc:
        cc.kernel()
        cc.ccsd_t()
        with pytest.raises(OutcoreError, match="orbitals of a Hartree-Fock calculation"):
            cc.solve_lambda()
