"""SC-NEVPT2 against PySCF's, which contracts a four-particle density."""

from __future__ import annotations

import errno
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from outcore.base.errors import OutcoreError
from outcore.chem.doubts import DoubtfulResult

pyscf = pytest.importorskip("pyscf")

from pyscf import ao2mo, fci, gto, mcscf, mrpt, scf  # noqa: E402

from outcore.chem.ci import FCISolver, solver  # noqa: E402
from outcore.chem.nevpt2 import NEVPT2  # noqa: E402

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"


@pytest.fixture
def solved(tmp_path):
    """A CASCI or CASSCF with our solver."""
    made = []

    def make(mf, orbitals, electrons, roots=1, method="CASCI", memory="2GB"):
        mc = getattr(mcscf, method)(mf, orbitals, electrons)
        mc.verbose = 0
        mc.fcisolver = FCISolver(mf.mol, comm=None, threads=1, scratch=str(tmp_path), memory=memory)
        made.append(mc.fcisolver)
        mc.fcisolver.nroots, mc.fcisolver.spin, mc.fcisolver.conv_tol = roots, mf.mol.spin, 1e-13
        mc.kernel()
        return mc

    yield make
    for each in made:
        each.close()
        each.world.close()


@cache
def mean_field(atom, basis="6-31g", fitted=False, **given):
    mf = pyscf.M(atom=atom, basis=basis, verbose=0, **given).ROHF()
    return (mf.density_fit() if fitted else mf).run(conv_tol=1e-12)


def of_pyscf(mc, root=0):
    """The same states by PySCF's solver, in the same orbitals."""
    other = mcscf.CASCI(mc._scf, mc.ncas, mc.nelecas)
    other.verbose, other.fcisolver.conv_tol, other.fcisolver.nroots = 0, 1e-13, mc.fcisolver.nroots
    if mc.mol.spin == 0:
        other.fcisolver = fci.direct_spin0.FCI(mc.mol)
        other.fcisolver.conv_tol, other.fcisolver.nroots = 1e-13, mc.fcisolver.nroots
    other.kernel(mc.mo_coeff)
    return mrpt.NEVPT(other, root).kernel()


@pytest.mark.parametrize(
    ("given", "orbitals", "electrons"),
    [
        ({"atom": WATER}, 4, 4),
        ({"atom": WATER, "fitted": True}, 4, 4),
        ({"atom": "O 0 0 0; H 0 0 0.97", "spin": 1, "symmetry": True}, 3, 3),
        ({"atom": "C 0 0 0; H 0 0.9 0.6; H 0 -0.9 0.6", "spin": 2}, 3, 4),
        ({"atom": "Be 0 0 0"}, 3, 4),  # no core
        ({"atom": "Be 0 0 0"}, 8, 2),  # no virtual orbitals
        ({"atom": "Li 0 0 0", "spin": 1}, 2, 1),  # one electron
    ],
)
def test_energy_is_that_of_pyscf(solved, given, orbitals, electrons):
    mc = solved(mean_field(**given), orbitals, electrons)
    found = NEVPT2(mc)
    assert found.kernel() == pytest.approx(of_pyscf(mc), abs=1e-8)
    assert found.e_tot == pytest.approx(mc.e_tot + found.e_corr, abs=1e-12)


def test_products_with_perturbers_on_disk_move_no_less_than_the_bound(solved, monkeypatch):
    mc = solved(mean_field(WATER), 4, 4)
    found = NEVPT2(mc)
    expected, plan = found.kernel(), solver.plan
    assert found.moved_by_products.least == 0  # vectors are in memory
    monkeypatch.setattr(
        solver, "plan", lambda *given, **more: replace(plan(*given, **more), kind="disk", cache_bytes=1 << 20)
    )
    assert found.kernel() == pytest.approx(expected, abs=1e-12)
    moved = found.moved_by_products
    outer = 3 + 6  # core and virtual orbitals
    assert moved.read + moved.added >= moved.least >= 2 * outer * 2 * 8 * mc.ci.ci.space.determinants / 2


def test_orbitals_may_be_those_of_kohn_sham(solved):
    mol = pyscf.M(atom="Li 0 0 0; H 0 0 1.6", basis="sto-3g", verbose=0)
    mc = solved(mol.RKS(xc="lda,vwn").run(conv_tol=1e-12), 2, 2)
    assert NEVPT2(mc).kernel() == pytest.approx(of_pyscf(mc), abs=1e-8)


def test_each_class_is_that_of_pyscf(solved, monkeypatch):
    from pyscf.mrpt import nevpt2

    mc = solved(mean_field(WATER), 4, 4)
    energies = {}

    def keep(name):
        function = getattr(nevpt2, name)

        def kept(*given, **more):
            norm, energies[name[1:]] = function(*given, **more)
            return norm, energies[name[1:]]

        monkeypatch.setattr(nevpt2, name, kept)

    for name in ("Sr", "Si", "Sijrs", "Sijr", "Srsi", "Srs", "Sij", "Sir"):
        keep(name)
    of_pyscf(mc)
    found = NEVPT2(mc)
    found.kernel()
    assert found.e_classes == pytest.approx(energies, abs=1e-9)


def test_an_excited_root_has_the_energy_of_pyscf(solved):
    mc = solved(mean_field(WATER), 4, 4, roots=2)
    found = NEVPT2(mc, root=1)
    assert found.kernel() == pytest.approx(of_pyscf(mc, root=1), abs=1e-8)
    assert found.e_tot == pytest.approx(float(mc.e_tot[1]) + found.e_corr, abs=1e-12)


def test_energy_of_nitrogen_is_that_of_pyscfs_documentation(solved):
    mc = solved(mean_field("N 0 0 0; N 0 0 1.4"), 4, 4, method="CASSCF")
    assert NEVPT2(mc).kernel() == pytest.approx(-0.14058324991532101, abs=1e-6)


def test_a_triplet_of_folded_vectors_is_that_of_unpaired_electrons(solved):
    mf = mean_field(WATER)
    energies = []
    for electrons in ((2, 2), (3, 1)):
        mc = mcscf.CASCI(mf, 4, electrons)
        mc.verbose, mc.fcisolver = 0, solved(mf, 4, 4).fcisolver
        mc.fcisolver.spin = 2
        mc.kernel()
        assert mc.ci.ci.space.folded == (electrons == (2, 2))
        energies.append(NEVPT2(mc).kernel())
    assert energies[0] == pytest.approx(energies[1], abs=1e-9)


def test_roots_of_a_state_average_are_those_of_a_casci_in_its_orbitals(solved):
    mf = mean_field("Li 0 0 0; H 0 0 1.6", basis="sto-3g")
    mc = mcscf.CASSCF(mf, 3, 2)
    mc.verbose = 0
    mc.fcisolver = solved(mf, 3, 2).fcisolver
    mc = mc.state_average([0.5, 0.5])
    mc.kernel()
    ci = solved(mf, 3, 2, roots=2)
    ci.kernel(mc.mo_coeff)
    expected = NEVPT2(ci, root=1)
    found = NEVPT2(mc, root=1)
    assert found.kernel() == pytest.approx(expected.kernel(), abs=1e-7)
    assert found.e_cas == pytest.approx(mc.e_states[1], abs=1e-10)


def test_nothing_is_outside_of_all_orbitals(solved):
    mc = solved(mean_field("Li 0 0 0; H 0 0 1.6", basis="sto-3g"), 6, 4)
    found = NEVPT2(mc)
    assert found.kernel() == 0.0 and found.e_tot == mc.e_tot


def test_frozen_orbitals_are_those_of_a_smaller_problem(solved):
    """Its Hamiltonian has the field of the frozen core, and lacks the highest virtual orbital."""
    mc = solved(mean_field(WATER), 4, 4)
    found = NEVPT2(mc, frozen="auto", frozen_virtual=1)
    mf = mc._scf
    density = mc.fcisolver.make_rdm1(mc.ci, 4, 4)
    mo = mc.mo_coeff.copy()
    core = 2 * mo[:, :3] @ mo[:, :3].T + mo[:, 3:7] @ density @ mo[:, 3:7].T
    fock = mf.get_hcore() + mc.get_veff(mf.mol, core)
    for part in (mo[:, :3], mo[:, 7:]):
        part[:] = part @ np.linalg.eigh(part.T @ fock @ part)[1]
    kept = mo[:, 1:-1]
    frozen = 2 * np.outer(mo[:, 0], mo[:, 0])
    field = mf.get_hcore() + mc.get_veff(mf.mol, frozen)
    mol = gto.M(verbose=0)
    mol.nelectron, mol.incore_anyway = 8, True
    small = scf.RHF(mol)
    small.get_hcore = lambda *_: kept.T @ field @ kept
    small.get_ovlp = lambda *_: np.eye(kept.shape[1])
    small._eri = ao2mo.kernel(mf.mol, kept)
    small.mo_coeff, small.mo_occ = np.eye(kept.shape[1]), np.repeat([2.0, 0.0], [4, kept.shape[1] - 4])
    small.mo_energy, small.e_tot, small.converged = np.zeros(kept.shape[1]), 0.0, True
    other = mcscf.CASCI(small, 4, 4)
    other.verbose, other.fcisolver = 0, fci.direct_spin0.FCI(mol)
    other.fcisolver.conv_tol = 1e-13
    other.kernel()
    assert found.kernel() == pytest.approx(mrpt.NEVPT(other).kernel(), abs=1e-8)


def test_integrals_on_disk_and_narrow_blocks_give_the_same(solved, monkeypatch):
    from outcore.chem.nevpt2 import integrals

    mc = solved(mean_field(WATER, fitted=True), 4, 4)
    expected = NEVPT2(mc).kernel()
    monkeypatch.setattr(integrals, "_WIDEST", 2)
    found = NEVPT2(mc, storage="disk")
    assert found.kernel() == pytest.approx(expected, abs=1e-12)


def test_auxiliary_functions_fit_the_integrals_of_outer_orbitals(solved):
    mc = solved(mean_field(WATER), 4, 4)
    exact, fitted = NEVPT2(mc), NEVPT2(mc, auxbasis="def2-tzvpp-ri")
    difference = abs(fitted.kernel() - exact.kernel())
    assert 1e-8 < difference < 2e-4
    assert "def2-tzvpp-ri" in fitted.integral_title and "Cholesky" in exact.integral_title


def test_degenerate_orbitals_give_one_energy(solved):
    """The energy does not depend on a rotation of the pairs of pi orbitals."""
    mf = mean_field("O 0 0 0; O 0 0 1.2", basis="sto-3g", spin=2)
    mc = solved(mf, 4, 6)
    expected = NEVPT2(mc).kernel()
    angle = 0.4
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    energies = mf.mo_energy
    pairs = [k for k in range(4) if abs(energies[k + 1] - energies[k]) < 1e-6]
    mc.mo_coeff = mc.mo_coeff.copy()
    for k in pairs:
        mc.mo_coeff[:, k : k + 2] = mc.mo_coeff[:, k : k + 2] @ turn
    assert NEVPT2(mc).kernel() == pytest.approx(expected, abs=1e-9)


def test_too_little_memory_is_refused_with_what_is_enough(solved):
    mc = solved(mean_field(WATER), 4, 4)
    with pytest.raises(OutcoreError, match=r"need at least [\d.]+ MB more in each of 1 processes"):
        NEVPT2(mc, memory="1MB").kernel()


def test_what_cannot_be_treated_is_refused_by_name(solved):
    mf = mean_field("Li 0 0 0; H 0 0 1.6", basis="sto-3g")
    mc = solved(mf, 2, 2)
    cases = (
        ({"root": 1}, "root 1: there are 1, counted from 0"),
        ({"screening": 1e-9}, "integrals are exact: screening has no effect"),
        ({"storage": "tape"}, "tape"),
        ({"frozen": [0]}, "a list of frozen orbitals"),
        ({"frozen": 2}, "2 frozen, but only 1 are occupied"),
        ({"frozn": 1}, "frozen"),
    )
    for given, message in cases:
        with pytest.raises((OutcoreError, TypeError), match=message):
            NEVPT2(mc, **given).kernel()
    mc.mo_coeff = mc.mo_coeff[:, [0, 4, 2, 3, 1, 5]]
    with pytest.raises(OutcoreError, match="it was found with other orbitals"):
        NEVPT2(mc).kernel()
    theirs = mcscf.CASCI(mf, 2, 2)
    with pytest.raises(OutcoreError, match=r"run mc.kernel\(\) first"):
        NEVPT2(theirs)
    theirs.run()
    with pytest.raises(OutcoreError, match=r"set mc.fcisolver"):
        NEVPT2(theirs)
    mc = solved(mf, 2, 2)
    mc.converged = False
    with pytest.raises(OutcoreError, match="has not converged; force=True"):
        NEVPT2(mc)
    assert NEVPT2(mc, force=True).kernel() < 0


def test_orbitals_that_differ_in_spin_are_refused(solved):
    mf = pyscf.M(atom="O 0 0 0; H 0 0 0.97", basis="sto-3g", spin=1, verbose=0).UHF().run()
    mc = solved(mf, 3, 3, method="UCASCI")
    with pytest.raises(OutcoreError, match="orbitals of spin alpha and beta differ") as raised:
        NEVPT2(mc).kernel()
    assert raised.value.errno == errno.ENOTSUP


def test_a_perturber_below_the_state_is_told(solved):
    """The active space lacks the highest occupied orbital."""
    mf = mean_field("Be 0 0 0; H 0 0 3.0", basis="6-31g", spin=1)
    mc = mcscf.CASCI(mf, 2, 1)
    mc.verbose, mc.fcisolver = 0, solved(mf, 2, 1).fcisolver
    order = [0, 1, 4, 3, 2, *range(5, mf.mol.nao)]
    mc.kernel(mf.mo_coeff[:, order])
    with pytest.warns(DoubtfulResult, match="lies .* below the state"):
        NEVPT2(mc).kernel()
