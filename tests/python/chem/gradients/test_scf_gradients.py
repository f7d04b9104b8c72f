"""Gradients of Hartree-Fock: equal to PySCF's and to finite differences, whatever the integrals and the memory."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from outcore.base.errors import OutcoreError

pytest.importorskip("pyscf")
from pyscf import gto, scf

from outcore.chem import hf, ri
from outcore.chem.gradients import fitted

WATER = "O 0 0 0.1; H 0 0.75 -0.47; H 0.1 -0.75 -0.5"
MOLECULES = {
    "RHF": {"atom": WATER, "basis": "6-31g*"},
    "UHF": {"atom": "O 0 0 0; H 0.1 0 0.97", "basis": "6-31g*", "spin": 1},
    "ROHF": {"atom": "O 0 0 0; H 0.1 0 0.97", "basis": "6-31g*", "spin": 1},
    "cartesian": {"atom": WATER, "basis": "6-31g*", "cart": True},
    "potentials and ghosts": {
        "atom": "Zn 0 0 0; ghost-O 1.8 0.3 0.2; H -1.5 0.2 0.1; H 1.5 0 0.3",
        "basis": {"Zn": "lanl2dz", "ghost-O": "6-31g", "H": "6-31g"},
        "ecp": {"Zn": "lanl2dz"},
    },
}
AUXILIARY = {"potentials and ghosts": "def2-universal-jkfit"}


def molecule(name: str) -> gto.Mole:
    return gto.M(verbose=0, **MOLECULES[name])


def kind(name: str) -> str:
    return name if name in ("UHF", "ROHF") else "RHF"


def converged(mf, density=None):
    mf.conv_tol, mf.conv_tol_grad, mf.max_cycle = 1e-12, 1e-8, 100
    mf.kernel(density)
    assert mf.converged
    return mf


def of_whole_molecule(mf, gradient):
    """Derivatives of the energy by translations and rotations of the whole molecule."""
    return np.concatenate([gradient.sum(0), np.cross(mf.mol.atom_coords(), gradient).sum(0)])


@pytest.fixture(scope="module")
def pyscfs():
    """PySCF's SCF and gradient, by molecule and whether integrals are fitted; made once."""
    made = {}

    def make(name: str, fitted: bool):
        if (name, fitted) not in made:
            mf = getattr(scf, kind(name))(molecule(name))
            mf = converged(mf.density_fit(auxbasis=AUXILIARY.get(name)) if fitted else mf)
            made[name, fitted] = mf, mf.nuc_grad_method().kernel()
        return made[name, fitted]

    return make


@pytest.mark.parametrize("storage", ["auto", "disk"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each != "potentials and ghosts" else pytest.mark.long)
        for each in MOLECULES
    ],
)
def test_with_fitted_integrals_it_is_pyscfs(pyscfs, name, storage):
    reference, expected = pyscfs(name, True)
    method = getattr(ri, kind(name))
    with method(molecule(name), AUXILIARY.get(name), storage=storage, threads=2) as mf:
        found = converged(mf, reference.make_rdm1()).nuc_grad_method().kernel()
    assert found == pytest.approx(expected, abs=1e-8)
    assert of_whole_molecule(mf, found) == pytest.approx(0, abs=1e-8)


def test_a_spin_without_electrons_has_no_exchange():
    mol = gto.M(atom="H 0 0 0; H 0 0 0.9", basis="6-31g", spin=2, verbose=0)
    expected = converged(scf.UHF(mol).density_fit("def2-svp-jkfit")).nuc_grad_method().kernel()
    for method in (ri.UHF, ri.ROHF):
        with method(mol, "def2-svp-jkfit", threads=1) as mf:
            assert converged(mf).nuc_grad_method().kernel() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "storage"),
    [
        *(("RHF", "disk"), ("RHF", "mixed"), ("UHF", "direct"), ("UHF", "auto")),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("RHF", "direct"), ("RHF", "auto"), ("UHF", "disk"), ("UHF", "mixed"))
        ),
    ],
)
def test_wherever_integrals_are_it_is_pyscfs(pyscfs, name, storage):
    reference, expected = pyscfs(name, False)
    more = {"disk_bytes": 100_000} if storage == "mixed" else {}
    method = getattr(hf, kind(name))
    with method(molecule(name), storage=storage, error=1e-11, threads=2, **more) as mf:
        found = converged(mf, reference.make_rdm1()).nuc_grad_method().kernel()
    assert found == pytest.approx(expected, abs=1e-8)
    assert of_whole_molecule(mf, found) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("name", ["ROHF", "cartesian", "potentials and ghosts"])
def test_with_exact_integrals_it_is_pyscfs_of_any_molecule(pyscfs, name):
    reference, expected = pyscfs(name, False)
    with getattr(hf, kind(name))(molecule(name), storage="direct") as mf:
        found = converged(mf, reference.make_rdm1()).nuc_grad_method().kernel()
    assert found == pytest.approx(expected, abs=1e-8)
    assert of_whole_molecule(mf, found) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("method", [ri.RHF, ri.UHF, ri.ROHF])
def test_it_is_the_finite_difference_of_our_own_energy(method):
    mol = gto.M(
        atom="O 0 0 0; H 0.1 0 0.97",
        basis="6-31g",
        verbose=0,
        spin=0 if method is ri.RHF else 1,
        charge=-1 if method is ri.RHF else 0,
    )
    with method(mol, "cc-pvdz-jkfit") as mf:
        gradient = converged(mf).nuc_grad_method().kernel()
        energy_at, step, energies = mf.as_scanner(), 1e-3, []
        for sign in (2, 1, -1, -2):
            place = mol.atom_coords()
            place[1, 2] += sign * step
            energies.append(energy_at(mol.set_geom_(place, unit="Bohr", inplace=False)))
    far, near, back, further = energies
    expected = (8 * (near - back) - (far - further)) / (12 * step)
    assert gradient[1, 2] == pytest.approx(expected, abs=1e-7)


def test_slabs_as_small_as_they_can_be_give_the_same(monkeypatch):
    whole = fitted.plan
    with converged(ri.RHF(molecule("RHF"))) as mf:
        expected = mf.nuc_grad_method().kernel()

        def least(sizes, free_bytes, *given, **named):
            return whole(sizes, sizes.least_bytes(1, 1, "disk"), *given, **named)

        monkeypatch.setattr("outcore.chem.gradients.two_electron.plan", least)
        mf.with_df._storage, mf.with_df.threads = "disk", 1
        assert mf.nuc_grad_method().kernel() == pytest.approx(expected, abs=1e-10)


def test_orbitals_with_a_level_shift_count_with_their_fock_matrix():
    with converged(ri.RHF(molecule("RHF"))) as mf:
        expected = mf.nuc_grad_method().kernel()
        density = mf.make_rdm1()
    with ri.RHF(molecule("RHF")) as mf:
        mf.level_shift = 0.3
        found = converged(mf, density).nuc_grad_method().kernel()
    assert found == pytest.approx(expected, abs=1e-7)


def test_some_atoms_alone():
    with converged(ri.RHF(molecule("RHF"))) as mf:
        gradients = mf.nuc_grad_method()
        every = gradients.kernel()
        assert gradients.kernel(atmlst=[2, 0]) == pytest.approx(every[[2, 0]], abs=1e-12)


def test_geometries_are_optimised_by_pyscfs_way_to_geometric():
    pytest.importorskip("geometric")
    mol = gto.M(atom="H 0 0 0; F 0 0 1.0", basis="6-31g", verbose=0)
    with ri.RHF(mol) as mf:
        found = mf.nuc_grad_method().optimizer(solver="geomeTRIC").kernel()
    own = scf.RHF(mol).density_fit().nuc_grad_method().optimizer(solver="geomeTRIC").kernel()
    lengths = [np.linalg.norm(np.subtract(*each.atom_coords())) for each in (found, own)]
    assert lengths[0] == pytest.approx(lengths[1], abs=1e-4)


# ---- what is refused ----


def refusal(mf, **given) -> OutcoreError:
    with pytest.raises(OutcoreError) as caught:
        mf.nuc_grad_method().kernel(**given)
    return caught.value


def test_an_scf_that_has_not_converged_has_none():
    with ri.RHF(molecule("RHF")) as mf:
        mf.max_cycle = 1
        mf.kernel()
        error = refusal(mf)
    assert error.errno == errno.EINVAL and "has not converged" in str(error)


def test_smeared_occupations_have_none():
    with ri.RHF(molecule("RHF")) as mf:
        smeared = mf.smearing(sigma=0.1, method="fermi")
        smeared.kernel()
        error = refusal(smeared)
    assert error.errno == errno.ENOTSUP and "smears occupations" in str(error)


def test_a_hamiltonian_that_is_not_the_molecules_has_none():
    with ri.RHF(molecule("RHF")) as mf:
        plain = mf.get_hcore()
        mf.get_hcore = lambda *_: plain + 0.01 * mf.mol.intor("int1e_r")[2]
        error = refusal(converged(mf))
    assert error.errno == errno.ENOTSUP and "one-electron Hamiltonian" in str(error)


def test_auxiliary_functions_that_depend_on_each_other_have_none():
    functions = [[0, [0.5, 1.0]], [0, [0.5 + 1e-9, 1.0]], [0, [2.0, 1.0]], [1, [1.0, 1.0]]]
    with ri.RHF(gto.M(atom="H 0 0 0; H 0 0 0.8", basis="sto-3g", verbose=0), {"H": functions}) as mf:
        error = refusal(converged(mf))
    assert error.errno == errno.ENOTSUP and "depend on others" in str(error)


@pytest.mark.parametrize(("method", "sets"), [(hf.RHF, []), (ri.RHF, ["cc-pvdz-jkfit"])])
def test_functions_that_depend_on_each_other_have_none(method, sets):
    functions = [[0, [0.5, 1.0]], [0, [0.5 + 1e-9, 1.0]], [0, [2.0, 1.0]], [1, [1.0, 1.0]]]
    with method(gto.M(atom="H 0 0 0; H 0 0 0.8", basis={"H": functions}, verbose=0), *sets) as mf:
        error = refusal(converged(mf))
    assert error.errno == errno.ENOTSUP and "2 combinations of 12 functions were left out" in str(error)


def test_fitted_coulomb_integrals_alone_have_none():
    with hf.RHF(molecule("RHF")).density_fit(only_dfj=True) as mf:
        error = refusal(converged(mf))
    assert error.errno == errno.ENOTSUP and "only_dfj" in str(error)


def test_orbitals_that_are_not_those_of_the_scf_are_refused():
    with converged(ri.RHF(molecule("RHF"))) as mf:
        assert "not stationary" in str(refusal(mf, mo_coeff=mf.mo_coeff))
