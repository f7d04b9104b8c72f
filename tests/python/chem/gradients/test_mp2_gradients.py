"""Densities and gradients of RI-MP2: equal to PySCF's, and to derivatives of our own energy."""

from __future__ import annotations

import errno
import functools

import numpy as np
import pytest

from outcore.base.errors import NotConverged, OutcoreError

pytest.importorskip("pyscf")
from pyscf import gto, lib, scf
from pyscf.mp import dfmp2_native, dfump2_native

from outcore.chem import hf, ri
from outcore.chem.gradients import response
from outcore.chem.mp2 import MP2, densities

SETS = "cc-pvdz-jkfit", "cc-pvdz-ri"
MOLECULES = {
    "RHF": {"atom": "O 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5", "basis": "6-31g"},
    "UHF": {"atom": "N 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5", "basis": "6-31g", "spin": 1},
}
NATIVE = {"RHF": dfmp2_native.DFRMP2, "UHF": dfump2_native.DFUMP2}


def molecule(kind: str, **more) -> gto.Mole:
    return gto.M(verbose=0, **MOLECULES[kind] | more)


def converged(mf):
    mf.conv_tol, mf.conv_tol_grad, mf.max_cycle = 1e-12, 1e-8, 100
    mf.kernel()
    assert mf.converged
    return mf


def fitted(mol: gto.Mole, kind: str):
    return converged(getattr(ri, kind)(mol, SETS[0]))


def moved(mol: gto.Mole, atom: int, axis: int, length: float) -> gto.Mole:
    places = mol.atom_coords()
    places[atom, axis] += length
    return mol.set_geom_(places, unit="Bohr", inplace=False)


def derivative(energy_at, step: float) -> float:
    return (energy_at(step) - energy_at(-step)) / (2 * step)


@pytest.mark.parametrize(
    ("kind", "frozen", "storage"),
    [
        pytest.param("RHF", 0, "auto", marks=pytest.mark.long),
        pytest.param("UHF", 1, "auto", marks=pytest.mark.long),
        ("RHF", [1], "disk"),
        ("UHF", [[0], []], "disk"),
    ],
)
def test_gradients_are_derivatives_of_the_energy(kind, frozen, storage):
    mol = molecule(kind)

    def energy_at(length: float) -> float:
        mp2 = MP2(fitted(moved(mol, 1, 2, length), kind), frozen, SETS[1], frozen_virtual=1)
        mp2.kernel()
        return mp2.e_tot

    mp2 = MP2(fitted(mol, kind), frozen, SETS[1], frozen_virtual=1, storage=storage)
    gradient = mp2.nuc_grad_method().kernel()
    assert gradient[1, 2] == pytest.approx(derivative(energy_at, 5e-4), abs=1e-7)
    assert gradient.sum(0) == pytest.approx(0, abs=1e-8)
    assert np.cross(mol.atom_coords(), gradient).sum(0) == pytest.approx(0, abs=1e-8)


def test_with_exact_integrals_of_the_scf_they_are_derivatives_too():
    mol, kind = molecule("UHF"), "UHF"

    def scf_at(length: float):
        return converged(getattr(hf, kind)(moved(mol, 1, 2, length), storage="direct", screening=1e-14))

    def energy_at(length: float) -> float:
        mp2 = MP2(scf_at(length), 1, SETS[1])
        mp2.kernel()
        return mp2.e_tot

    gradient = MP2(scf_at(0.0), 1, SETS[1]).nuc_grad_method().kernel()
    assert gradient[1, 2] == pytest.approx(derivative(energy_at, 5e-4), abs=1e-7)
    assert np.cross(mol.atom_coords(), gradient).sum(0) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("relaxed", [True, False])
@pytest.mark.parametrize("kind", ["RHF", "UHF"])
def test_densities_are_pyscfs(kind, relaxed, monkeypatch):
    # Its solver stops early by default: a dipole moment of it was 3e-7 from the derivative of its energy.
    monkeypatch.setattr(lib, "krylov", functools.partial(lib.krylov, lindep=1e-28))
    mf = converged(getattr(scf, kind)(molecule(kind)).density_fit(SETS[0]))
    native = NATIVE[kind](mf, frozen=1, auxbasis=SETS[1])
    native.kernel()
    expected = (native.make_rdm1_relaxed if relaxed else native.make_rdm1_unrelaxed)(ao_repr=True)
    found = MP2(mf, 1, SETS[1]).make_rdm1(ao_repr=True, relaxed=relaxed)
    assert found == pytest.approx(expected, abs=1e-8)


def test_the_density_over_orbitals_holds_the_electrons():
    found = MP2(fitted(molecule("UHF"), "UHF"), 1, SETS[1]).make_rdm1()
    assert [each.trace() for each in found] == pytest.approx([5, 4], abs=1e-10)


@pytest.mark.parametrize("sign", [1, -1], ids=["dipole", "spin"])
def test_moments_are_derivatives_by_a_field_on_both_spins(sign):
    mol, kind = molecule("UHF"), "UHF"
    position = mol.intor("int1e_r")[2]
    of_spins = np.array([position, sign * position])

    def scf_in(field: float):
        mf = getattr(scf, kind)(mol).density_fit(SETS[0])
        core = scf.hf.get_hcore(mol) + field * of_spins if field else scf.hf.get_hcore(mol)
        mf.get_hcore = lambda *_: core
        return converged(mf)

    def energy_in(field: float) -> float:
        mp2 = MP2(scf_in(field), 1, SETS[1])
        mp2.kernel()
        return mp2.e_tot

    density = MP2(scf_in(0.0), 1, SETS[1]).make_rdm1(ao_repr=True)
    near, far = (derivative(energy_in, step) for step in (4e-3, 8e-3))
    assert np.vdot(of_spins, density) == pytest.approx((4 * near - far) / 3, abs=1e-7)


def test_few_virtual_orbitals_at_a_time_give_the_same(monkeypatch):
    mp2 = MP2(fitted(molecule("UHF"), "UHF"), 1, SETS[1])
    expected = mp2.nuc_grad_method().kernel()
    whole = densities.densities

    def few(world, integrals, gammas, plan, columns, *more):
        return whole(world, integrals, gammas, plan, 3, *more)

    monkeypatch.setattr(densities, "densities", few)
    assert mp2.nuc_grad_method().kernel() == pytest.approx(expected, abs=1e-10)


def test_a_spin_without_electrons():
    mol = gto.M(atom="H 0 0 0", basis="cc-pvdz", spin=1, verbose=0)
    mp2 = MP2(converged(ri.UHF(mol)))
    assert mp2.nuc_grad_method().kernel() == pytest.approx(0, abs=1e-10)


def test_a_scanner_gives_energies_and_gradients_of_molecules():
    mol = molecule("RHF")
    mp2 = MP2(fitted(mol, "RHF"), 1, SETS[1])
    scanner = mp2.nuc_grad_method().as_scanner()
    energy, gradient = scanner(moved(mol, 1, 2, 0.05))
    there = MP2(fitted(moved(mol, 1, 2, 0.05), "RHF"), 1, SETS[1])
    there.kernel()
    assert energy == pytest.approx(there.e_tot, abs=1e-8)
    assert gradient == pytest.approx(there.nuc_grad_method().kernel(), abs=1e-6)


def test_pyscfs_optimiser_finds_the_least_energy():
    pytest.importorskip("geometric")
    mol, h = gto.M(atom="H 0 0 0; F 0 0 1.0", basis="6-31g", verbose=0), 0.02
    found = MP2(fitted(mol, "RHF"), 1, SETS[1]).nuc_grad_method().optimizer(solver="geomeTRIC").kernel()
    length, energies = np.linalg.norm(np.subtract(*found.atom_coords())), []
    for step in (-h, 0.0, h):
        places = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, length + step]])
        mp2 = MP2(fitted(mol.set_geom_(places, unit="Bohr", inplace=False), "RHF"), 1, SETS[1])
        mp2.kernel()
        energies.append(mp2.e_tot)
    left, middle, right = energies
    least = h * (left - right) / (2 * (left + right - 2 * middle))  # of a parabola, from `length` on
    assert abs(least) < 1e-3


# ---- what is refused ----


def test_a_response_that_does_not_converge_is_refused_and_loses_nothing(monkeypatch):
    mp2 = MP2(fitted(molecule("UHF"), "UHF"), 1, SETS[1])
    expected = mp2.nuc_grad_method().kernel()
    with monkeypatch.context() as patched:
        patched.setattr(response, "_PRODUCTS", 2)
        with pytest.raises(NotConverged, match=r"Z-vector .* residual of .* after 2 products"):
            mp2.nuc_grad_method().kernel()
    assert mp2.nuc_grad_method().kernel() == pytest.approx(expected, abs=1e-9)


def test_auxiliary_functions_that_depend_on_each_other_have_no_gradient():
    functions = [[0, [0.5, 1.0]], [0, [0.5 + 1e-9, 1.0]], [0, [2.0, 1.0]], [1, [1.0, 1.0]]]
    mol = gto.M(atom="H 0 0 0; H 0 0 0.8", basis="sto-3g", verbose=0)
    mp2 = MP2(converged(ri.RHF(mol)), auxbasis={"H": functions})
    with pytest.raises(OutcoreError, match="depend on others") as caught:
        mp2.nuc_grad_method().kernel()
    assert caught.value.errno == errno.ENOTSUP


def test_rohf_orbitals_have_no_gradient():
    mf = fitted(molecule("UHF"), "ROHF")
    with pytest.raises(OutcoreError, match="gradients are of RHF and UHF") as caught:
        MP2(mf, noncanonical="semicanonical").nuc_grad_method().kernel()
    assert caught.value.errno == errno.ENOTSUP


def test_a_field_has_no_gradient():
    mf = ri.RHF(molecule("RHF"))
    core = mf.get_hcore() + 0.01 * mf.mol.intor("int1e_r")[2]
    mf.get_hcore = lambda *_: core
    with pytest.raises(OutcoreError, match="one-electron Hamiltonian"):
        MP2(converged(mf)).nuc_grad_method().kernel()


def test_one_frozen_orbital_of_a_degenerate_pair_has_no_gradient():
    mol = gto.M(atom="H 0 0 0; F 0 0 0.92", basis="6-31g", verbose=0)
    with pytest.raises(OutcoreError, match="have the same energy") as caught:
        MP2(converged(ri.RHF(mol)), [4]).nuc_grad_method().kernel()
    assert caught.value.errno == errno.ENOTSUP
