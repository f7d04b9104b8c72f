"""PySCF's conversions of objects with integrals out of core give PySCF's energies."""

from __future__ import annotations

import copy
import errno
import pickle
from functools import cache

import numpy as np
import pytest

from outcore.base.errors import OutcoreError

pytest.importorskip("pyscf")
from pyscf import df, dft, gto
from pyscf import scf as reference

from outcore.chem import ri
from outcore.chem.driver import RootDriven
from outcore.chem.hf import scf

pytestmark = pytest.mark.usefixtures("short_surveys", "one_thread")

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
OTHER = WATER.replace("0.757", "0.85")
AUXILIARY = "def2-universal-jkfit"
GIVEN = {
    "water": {"atom": WATER, "basis": "6-31g"},
    "oxygen": {"atom": "O 0 0 0; O 0 0 1.2", "basis": "6-31g", "spin": 2},
    "nitric oxide": {"atom": "N 0 0 0; O 0 0 1.15", "basis": "6-31g", "spin": 1},
    "hydrogen": {"atom": "H 0 0 0", "basis": "6-31g", "spin": 1},
    "water, symmetric": {"atom": WATER, "basis": "6-31g", "symmetry": True},
    "nitrogen, subgroup": {"atom": "N 0 0 0; N 0 0 1.1", "basis": "6-31g", "symmetry": "D2h"},
}


@cache
def molecule(name: str) -> gto.Mole:
    return gto.M(verbose=0, **GIVEN[name])


def run(mf):
    mf.conv_tol = 1e-11
    return mf.run().e_tot


def occupied(**irreps):
    def call(mf):
        mf.irrep_nelec = irreps
        return run(mf)

    return call


def smeared(mf):
    """The free energy: errors of the orbitals change it in second order, but the energy alone in first order.
    The default gradient threshold leaves PySCF's own runs with errors of 1e-9 Eh, different each time."""
    mf = mf.smearing(0.01)
    mf.conv_tol_grad = 1e-8
    run(mf)
    return mf.e_free


def scanned(mf):
    """Energies of a scan of two geometries, and of the object itself afterwards."""
    mf.conv_tol = 1e-11
    scanner = mf.as_scanner()
    return [scanner(WATER), scanner(OTHER), mf.kernel()]


def copied(mf):
    run(mf)
    again = copy.deepcopy(mf)
    again.mol.set_geom_(OTHER)
    again.mo_coeff = None
    return [run(again), mf.kernel()]


def pickled(mf):
    run(mf)
    ours = isinstance(mf, RootDriven)  # PySCF cannot pickle its fitted objects
    again = pickle.loads(pickle.dumps(mf)) if ours else mf.copy()
    kept = again.e_tot
    again.mo_coeff = None
    return [kept, run(again)]


def excited(method):
    def call(mf):
        run(mf)
        return getattr(mf, method)().run(nstates=2).e

    return call


def reset(mf):
    run(mf)
    mf.reset(gto.M(atom=OTHER, basis="cc-pvdz", verbose=0))
    mf.mo_coeff = None
    return run(mf)


def fast_newton(mf):
    mf.conv_tol = 1e-11
    return reference.fast_newton(mf, verbose=0).e_tot


def hessian(mf):
    run(mf)
    return mf.Hessian().kernel()


def gradient(mf):
    run(mf)
    return mf.nuc_grad_method().kernel()


def stability(mf):
    run(mf)
    return [float(each) for each in mf.stability(external=True, return_status=True)[2:]]


def potential(mf):
    """The potential of several densities that are neither symmetric nor antisymmetric."""
    shape = (3, mf.mol.nao, mf.mol.nao) if mf.istype("RHF") else (2, 3, mf.mol.nao, mf.mol.nao)
    return np.asarray(mf.get_veff(dm=np.random.default_rng(0).normal(size=shape), hermi=0))


# name: how, kind, molecule
WAYS = {
    "itself": (run, "RHF", "water"),
    "restricted, odd electrons": (run, "RHF", "nitric oxide"),
    "restricted, triplet": (run, "RHF", "oxygen"),
    "restricted open-shell": (run, "ROHF", "oxygen"),
    "restricted, one electron": (run, "ROHF", "hydrogen"),
    "symmetry": (run, "RHF", "water, symmetric"),
    "irreps": (occupied(Ag=6, B1u=4, B2u=2, B3u=2), "RHF", "nitrogen, subgroup"),
    "irreps of both spins": (occupied(A1=(3, 3), B1=(0, 1), B2=(2, 1)), "UHF", "water, symmetric"),
    "to_uhf": (lambda mf: run(mf.to_uhf()), "RHF", "water"),
    "to_rhf": (lambda mf: run(mf.to_rhf()), "UHF", "oxygen"),
    "to_ghf": (lambda mf: run(mf.to_ghf()), "RHF", "water"),
    "to_rks": (lambda mf: run(mf.to_rks("b3lyp")), "RHF", "water"),
    "to_rks, long range": (lambda mf: run(mf.to_rks("camb3lyp")), "RHF", "water"),
    "to_rks, short range": (lambda mf: run(mf.to_rks("hse06")), "RHF", "water"),
    "to_rks, open shells": (lambda mf: run(mf.to_rks("wb97x")), "ROHF", "oxygen"),
    "to_uks": (lambda mf: run(mf.to_uks("camb3lyp")), "UHF", "oxygen"),
    "to_hf": (lambda mf: run(mf.to_rks("pbe").to_hf()), "RHF", "water"),
    "newton": (lambda mf: run(mf.newton()), "UHF", "oxygen"),
    "newton, fitted Hessian": (lambda mf: run(mf.newton().density_fit()), "RHF", "water"),
    "remove_soscf": (lambda mf: run(mf.newton().remove_soscf()), "RHF", "water"),
    "fast_newton": (fast_newton, "RHF", "water"),
    "fast_newton, open shells": (fast_newton, "ROHF", "oxygen"),
    "x2c": (lambda mf: run(mf.x2c()), "RHF", "water"),
    "smearing": (smeared, "UHF", "oxygen"),
    "as_scanner": (scanned, "RHF", "water"),
    "reset": (reset, "RHF", "water"),
    "deepcopy": (copied, "RHF", "water"),
    "pickle": (pickled, "RHF", "water"),
    "pickle, unrestricted": (pickled, "UHF", "oxygen"),
    "TDA": (excited("TDA"), "RHF", "water"),
    "TDHF": (excited("TDHF"), "UHF", "oxygen"),
    "get_veff": (potential, "RHF", "water"),
    "get_veff, both spins": (potential, "UHF", "oxygen"),
    "stability": (stability, "RHF", "water"),
    "gradient": (gradient, "ROHF", "oxygen"),
    "gradient, long range": (lambda mf: gradient(mf.to_rks("camb3lyp")), "RHF", "water"),
    "Hessian": (hessian, "RHF", "water"),
}


REPEATED = {
    "restricted, triplet",
    "restricted, one electron",
    "irreps of both spins",
    "to_rks",
    "to_rks, long range",
    "to_uks",
    "fast_newton, open shells",
    "pickle, unrestricted",
    "get_veff, both spins",
}
every_way = pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.long if each in REPEATED else ()) for each in WAYS]
)


def check(ours, theirs, call):
    expected = call(theirs)
    np.testing.assert_allclose(call(ours), expected, rtol=0, atol=1e-9 if np.ndim(expected) == 0 else 1e-6)


@every_way
def test_with_stored_integrals(name, tmp_path):
    call, kind, given = WAYS[name]
    mol = molecule(given).copy()
    with getattr(scf, kind)(mol, scratch=str(tmp_path), screening=1e-12) as mf:
        check(mf, getattr(reference, kind)(molecule(given).copy()), call)


@every_way
def test_with_fitted_integrals(name):
    call, kind, given = WAYS[name]
    with getattr(ri, kind)(molecule(given).copy(), AUXILIARY) as mf:
        theirs = getattr(reference, kind)(molecule(given).copy()).density_fit(AUXILIARY)
        if name == "as_scanner":  # PySCF's leaves the fitting of the last geometry in the object itself
            expected = [run(reference.RHF(gto.M(atom=each, basis="6-31g", verbose=0)).density_fit(AUXILIARY))
                        for each in (WATER, OTHER, WATER)]  # fmt: skip
            np.testing.assert_allclose(scanned(mf), expected, rtol=0, atol=1e-9)
        else:
            check(mf, theirs, call)


@pytest.mark.parametrize(
    "integrals", ["disk", pytest.param("mixed", marks=pytest.mark.long), "direct", "auto"]
)
@pytest.mark.parametrize("omega", [0.3, -0.3, 0.0])
@pytest.mark.parametrize("hermi", [0, 1, 2])
def test_jk_of_another_operator(integrals, omega, hermi, tmp_path):
    mol = molecule("water")
    densities = np.random.default_rng(0).normal(size=(2, mol.nao, mol.nao))
    if hermi:
        densities = densities + (3 - 2 * hermi) * densities.transpose(0, 2, 1)
    expected = reference.RHF(mol).get_jk(mol, densities, hermi, omega=omega)
    disk = {"disk_bytes": 20_000} if integrals == "mixed" else {}
    with scf.RHF(mol, storage=integrals, scratch=str(tmp_path), screening=1e-12, **disk) as mf:
        np.testing.assert_allclose(mf.get_jk(mol, densities, hermi, omega=omega), expected, atol=1e-9)
        np.testing.assert_allclose(mf.get_j(mol, densities, hermi, omega=omega), expected[0], atol=1e-9)
        np.testing.assert_allclose(mf.get_k(mol, densities, hermi, omega=omega), expected[1], atol=1e-9)


@pytest.mark.parametrize("integrals", ["disk", "direct", "auto"])
def test_a_molecule_with_an_operator_of_its_own(integrals, tmp_path):
    mol = molecule("water").copy()
    mol.omega = 0.3
    expected = run(reference.RHF(mol))
    with scf.RHF(mol, storage=integrals, scratch=str(tmp_path), screening=1e-12) as mf:
        assert run(mf) == pytest.approx(expected, abs=1e-9)
        density = mf.make_rdm1()
        np.testing.assert_allclose(
            mf.get_jk(dm=density, omega=0), reference.hf.get_jk(molecule("water"), density), atol=1e-9
        )


def test_integrals_that_were_given_are_used(tmp_path):
    mol = molecule("water")
    with scf.RHF(mol, scratch=str(tmp_path)) as mf:
        theirs = reference.RHF(mol)
        mf._eri = theirs._eri = 1.01 * mol.intor("int2e", aosym="s8")
        assert run(mf) == pytest.approx(run(theirs), abs=1e-9)


def test_density_fitting_of_stored_integrals_stays_out_of_core_and_comes_back(tmp_path):
    mol = molecule("water")
    with scf.RHF(mol, scratch=str(tmp_path), screening=1e-12) as mf:
        fitted = mf.density_fit(AUXILIARY)
        assert isinstance(fitted.with_df, ri.DensityFitting)
        assert run(fitted) == pytest.approx(run(reference.RHF(mol).density_fit(AUXILIARY)), abs=1e-9)
        assert mf.stored_summary is None
        assert run(fitted.undo_df()) == pytest.approx(run(reference.RHF(mol)), abs=1e-9)
        fitted.close()
        exact_exchange = mf.density_fit(AUXILIARY, only_dfj=True)
        expected = run(reference.RHF(mol).density_fit(AUXILIARY, only_dfj=True))
        assert run(exact_exchange) == pytest.approx(expected, abs=1e-9)
        exact_exchange.close()


def test_density_fitting_that_is_undone_says_that_it_leaves(capfd):
    mol = gto.M(verbose=2, **GIVEN["water"])
    mf = ri.RHF(mol, AUXILIARY)
    plain = mf.undo_df()
    assert "undo_df leaves Outcore" in "".join(capfd.readouterr())
    assert type(plain) is reference.hf.RHF
    assert run(plain) == pytest.approx(run(reference.RHF(mol)), abs=1e-9)
    mf.close()


def test_a_kohn_sham_object_of_pyscf(tmp_path):
    mol = molecule("oxygen")
    with scf.out_of_core(dft.UKS(mol, xc="wb97x"), scratch=str(tmp_path), screening=1e-12) as mf:
        assert run(mf) == pytest.approx(run(dft.UKS(mol, xc="wb97x")), abs=1e-9)


def test_what_has_no_effect_is_refused():
    mol = molecule("water")
    for mf in (scf.RHF(mol), ri.RHF(mol, AUXILIARY)):
        mf.irrep_nelec = {"A1": 6, "B1": 2, "B2": 2}
        with pytest.raises(OutcoreError, match="irrep_nelec has no effect on"):
            mf.kernel()
        with pytest.raises(OutcoreError, match="which no GPU reads"):
            mf.to_gpu()
    mf = ri.RHF(mol, AUXILIARY)
    for name in ("_cderi", "_cderi_to_save"):
        with pytest.raises(OutcoreError, match=f"{name} has no effect") as caught:
            setattr(mf.with_df, name, "integrals.h5")
        assert caught.value.errno == errno.ENOTSUP
    with pytest.raises(OutcoreError, match="_cderi has no effect"):
        mf._cderi = np.zeros((2, 2))


def test_closed_shells_of_unpaired_electrons_are_refused(tmp_path):
    for mf in (
        scf.out_of_core(reference.hf.RHF(molecule("nitric oxide")), scratch=str(tmp_path)),
        ri.density_fit(reference.hf.RHF(molecule("oxygen")), AUXILIARY),
        scf.RHF(molecule("water"), scratch=str(tmp_path)).reset(molecule("nitric oxide")),
    ):
        with pytest.raises(OutcoreError, match="has closed shells"):
            mf.kernel()


def test_fitted_integrals_of_another_molecule_are_refused():
    mol = molecule("water")
    with ri.RHF(mol, AUXILIARY) as mf, pytest.raises(OutcoreError, match="another molecule"):
        mf.get_jk(gto.M(atom=OTHER, basis="6-31g", verbose=0), np.eye(mol.nao))


def test_gradients_take_the_functions_that_were_fitted():
    mol = molecule("water")
    with ri.RHF(mol, "etb") as mf:
        run(mf)
        theirs = reference.RHF(mol).density_fit(df.addons.aug_etb(mol))
        run(theirs)
        np.testing.assert_allclose(
            mf.nuc_grad_method().kernel(), theirs.nuc_grad_method().kernel(), atol=1e-7
        )
