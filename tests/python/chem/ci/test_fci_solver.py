"""Our solver in PySCF's CASCI and CASSCF."""

from __future__ import annotations

import gc
import io

import numpy as np
import pytest

from outcore.base.errors import OutcoreError

pyscf = pytest.importorskip("pyscf")

from pyscf import mcscf  # noqa: E402

from outcore.chem.ci import FCISolver  # noqa: E402

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
N2 = "N 0 0 -0.55; N 0 0 0.55"


def mean_field(atom=WATER, kind="RHF", basis="6-31g", **given):
    mf = getattr(pyscf.M(atom=atom, basis=basis, verbose=0, **given), kind)()
    return mf.run(conv_tol=1e-12)


@pytest.fixture
def solver():
    made = []

    def make(mf, **given):
        made.append(FCISolver(mf.mol, comm=None, threads=1, **given))
        return made[-1]

    yield make
    for each in made:
        each.close()
        each.world.close()


@pytest.fixture(scope="module")
def water():
    return mean_field()


def both(mf, solver, method, count, electrons, **given):
    """The same calculation with PySCF's solver and with ours."""
    theirs, ours = (getattr(mcscf, method)(mf, count, electrons) for _ in range(2))
    ours.fcisolver = solver(mf)
    for each in (theirs, ours):
        each.verbose = 0
        each.fcisolver.conv_tol = 1e-12
        for name, value in given.items():
            setattr(each.fcisolver, name, value)
    return theirs, ours


@pytest.mark.parametrize("symmetry", [False, True])
def test_casci_has_the_energy_of_pyscf(solver, symmetry):
    theirs, ours = both(mean_field(symmetry=symmetry), solver, "CASCI", 6, 8)
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-8) and ours.converged
    one, two = ours.fcisolver.make_rdm12(ours.ci, 6, 8)
    expected = theirs.fcisolver.make_rdm12(theirs.ci, 6, 8)
    np.testing.assert_allclose(one, expected[0], atol=1e-5)
    np.testing.assert_allclose(two, expected[1], atol=1e-5)
    np.testing.assert_allclose(ours.make_rdm1(), theirs.make_rdm1(), atol=1e-5)
    assert ours.fcisolver.spin_square(ours.ci, 6, 8) == pytest.approx((0, 1), abs=1e-6)


def test_casci_of_functions_that_nearly_depend_on_each_other(solver):
    """The field of the core comes from integrals stored with an error; PySCF's own field has none."""
    from outcore.chem import hf

    mol = pyscf.M(atom="Li 0 0 0; H 0 0 1.6; ghost-H 0 0 0.8", basis="6-31++g", symmetry=True, verbose=0)
    with hf.RHF(mol, comm=None, error=1e-3) as mf:
        mf.kernel()
        said = io.StringIO()
        ours = mcscf.CASCI(mf, mf.mo_coeff.shape[1] - 1, 2)
        ours.fcisolver = solver(mf)
        ours.fcisolver.verbose, ours.fcisolver.stdout = 3, said
        energy = ours.kernel()[0]
        plain = mol.RHF()
        plain.mo_coeff, plain.mo_energy, plain.mo_occ = mf.mo_coeff, mf.mo_energy, mf.mo_occ
        theirs = mcscf.CASCI(plain, ours.ncas, 2)
        assert energy == pytest.approx(theirs.kernel()[0], abs=1e-4)
    assert said.getvalue().count("one-electron integrals were made symmetric") == 1


def test_casscf_converges_to_the_energy_of_pyscf(water, solver):
    theirs, ours = both(water, solver, "CASSCF", 4, 4)
    for each in (theirs, ours):
        each.conv_tol = 1e-10
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-8) and ours.converged


def test_casscf_with_symmetry_of_a_linear_molecule(solver):
    theirs, ours = both(mean_field(N2, symmetry=True, basis="sto-3g"), solver, "CASSCF", 6, 6)
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-8)
    assert ours.ci.ci.hamiltonian.group == "D2h"


def test_states_are_averaged(water, solver):
    theirs, ours = both(water, solver, "CASSCF", 4, 4)
    theirs.fix_spin_(ss=0)
    theirs, ours = (each.state_average([0.5, 0.5]) for each in (theirs, ours))
    for each in (theirs, ours):  # energies of states, unlike their mean, are of first order in orbitals
        each.conv_tol, each.conv_tol_grad = 1e-10, 1e-6
        each.kernel()
    assert ours.e_tot == pytest.approx(theirs.e_tot, abs=1e-7)
    np.testing.assert_allclose(ours.e_states, theirs.e_states, atol=1e-6)


def test_states_of_several_solvers_are_averaged(solver):
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "ROHF", "sto-3g", spin=2, symmetry="D2h")
    found = []
    for make in (lambda: solver(mf), lambda: pyscf.fci.direct_spin1_symm.FCI(mf.mol)):
        solvers = [make(), make()]
        for each, spin, irrep in zip(solvers, (2, 0), ("B1g", "Ag"), strict=True):
            each.spin, each.wfnsym, each.conv_tol = spin, irrep, 1e-12
        mc = mcscf.CASSCF(mf, 6, 8)
        mc.verbose = 0
        mcscf.state_average_mix_(mc, solvers, [0.5, 0.5])
        mc.kernel()
        found.append(mc.e_states)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_a_calculation_begins_with_the_states_of_another(water, solver):
    mc = mcscf.CASCI(water, 4, 4)
    mc.verbose, mc.fcisolver = 0, solver(water)
    mc.fcisolver.nroots = 2
    energies, states = mc.kernel()[0], mc.ci
    same = [mc.fcisolver.transform_ci_for_orbital_rotation(each, 4, 4, np.eye(4)) for each in states]
    np.testing.assert_allclose(mc.kernel(ci0=same)[0], energies, atol=1e-10)
    assert len(mc.ci[0].ci.solved.iterations) == 1
    mc.fcisolver.nroots = 1
    assert mc.kernel(ci0=states)[0] == pytest.approx(energies[0], abs=1e-10)
    assert len(mc.ci.ci.solved.iterations) == 1
    mc.fcisolver.nroots = 3
    np.testing.assert_allclose(mc.kernel(ci0=states)[0][:2], energies, atol=1e-8)


def test_averaged_states_have_natural_orbitals(water, solver):
    theirs, ours = both(water, solver, "CASSCF", 4, 4)
    theirs.fix_spin_(ss=0)
    theirs, ours = (each.state_average([0.5, 0.5]) for each in (theirs, ours))
    for each in (theirs, ours):
        each.natorb = True
        each.kernel()
    np.testing.assert_allclose(ours.mo_occ, theirs.mo_occ, atol=1e-4)


def test_another_state_can_be_chosen(water, solver):
    theirs, ours = both(water, solver, "CASSCF", 4, 4)
    theirs.fix_spin_(ss=0)
    theirs, ours = (mcscf.state_specific_(each, 1) for each in (theirs, ours))
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-7)


def test_open_shells_and_triplets(solver):
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "ROHF", "sto-3g", spin=2, symmetry=True)
    theirs, ours = both(mf, solver, "CASCI", 6, (5, 3))
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-8)
    for one, other in zip(
        ours.fcisolver.make_rdm1s(ours.ci, 6, (5, 3)),
        theirs.fcisolver.make_rdm1s(theirs.ci, 6, (5, 3)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)
    folded = mcscf.CASCI(mf, 6, (4, 4))
    folded.verbose, folded.fcisolver = 0, solver(mf)
    folded.fcisolver.spin = 2
    assert folded.kernel()[0] == pytest.approx(theirs.e_tot, abs=1e-8)
    assert folded.fcisolver.spin_square(folded.ci, 6, (4, 4)) == pytest.approx((2, 3), abs=1e-6)


def test_orbitals_of_each_spin(solver):
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "UHF", "sto-3g", spin=2)
    theirs, ours = both(mf, solver, "UCASCI", 6, (5, 3))
    assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-8)
    found, expected = (each.fcisolver.make_rdm12s(each.ci, 6, (5, 3)) for each in (ours, theirs))
    np.testing.assert_allclose(found[1][1], expected[1][1], atol=1e-5)


def test_the_irrep_can_be_chosen(solver):
    mf = mean_field(symmetry=True)
    for wfnsym in ("B1", 2):
        theirs, ours = both(mf, solver, "CASCI", 6, 8, wfnsym=wfnsym)
        theirs.fix_spin_(ss=0)
        assert ours.kernel()[0] == pytest.approx(theirs.kernel()[0], abs=1e-8)


def test_densities_between_states_are_those_of_pyscf(water, solver):
    theirs, ours = both(water, solver, "CASCI", 5, 6, nroots=2)
    theirs.fix_spin_(ss=0)
    theirs.kernel()
    ours.kernel()
    found, expected = (each.fcisolver.trans_rdm12(*each.ci, 5, 6) for each in (ours, theirs))
    sign = np.sign(np.sum(found[0] * expected[0]))
    np.testing.assert_allclose(sign * found[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(sign * found[1], expected[1], atol=1e-5)
    found, expected = (each.fcisolver.trans_rdm12s(*each.ci, 5, 6) for each in (ours, theirs))
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(sign * one, other, atol=1e-5)
    one = ours.fcisolver.trans_rdm1(*ours.ci, 5, 6)
    np.testing.assert_allclose(sign * one, theirs.fcisolver.trans_rdm1(*theirs.ci, 5, 6), atol=1e-5)


def test_large_coefficients_are_those_of_pyscf(water, solver):
    theirs, ours = both(water, solver, "CASCI", 6, 8)
    theirs.kernel()
    ours.kernel()
    for strings in (True, False):
        found, expected = (
            each.fcisolver.large_ci(each.ci, 6, 8, tol=0.04, return_strs=strings) for each in (ours, theirs)
        )
        found, expected = ({str((a, b)) for _, a, b in each} for each in (found, _plain(expected)))
        assert found == expected
    h1, core = ours.get_h1eff()
    energy = ours.fcisolver.energy(h1, ours.get_h2eff(), ours.ci, 6, 8) + core
    assert energy == pytest.approx(ours.e_tot, abs=1e-8)


def _plain(determinants):
    return [
        (c, *(each if isinstance(each, str) else [int(q) for q in each] for each in ab))
        for c, *ab in determinants
    ]


def test_natural_orbitals_and_analysis_work(water, solver):
    theirs, ours = both(water, solver, "CASSCF", 4, 4)
    for each in (theirs, ours):
        each.natorb = True
        each.kernel()
    occupations = [np.diag(each.fcisolver.make_rdm1(each.ci, 4, 4)) for each in (ours, theirs)]
    np.testing.assert_allclose(occupations[0], occupations[1], atol=1e-4)
    ours.analyze(verbose=0)


def test_products_with_a_hamiltonian_are_vectors(solver):
    theirs, ours = both(mean_field(symmetry=True), solver, "CASCI", 6, 8)
    ours.kernel()
    h1, core = ours.get_h1eff()
    absorbed = ours.fcisolver.absorb_h1e(h1, ours.get_h2eff(), 6, 8, 0.5)
    product = ours.fcisolver.contract_2e(absorbed, ours.ci, 6, 8)
    assert ours.ci.dot(product) + core == pytest.approx(ours.e_tot, abs=1e-8)
    assert product.dot(product) == pytest.approx((ours.e_tot - core) ** 2, abs=1e-6)
    assert theirs.kernel()[0] == pytest.approx(ours.e_tot, abs=1e-8)
    ours.fcisolver.orbsym = None  # that of the state counts
    again = ours.fcisolver.contract_2e(absorbed, ours.ci, 6, 8)
    assert ours.ci.dot(again) + core == pytest.approx(ours.e_tot, abs=1e-8)


def test_states_of_other_spins_do_not_overlap(water, solver):
    mc = mcscf.CASCI(water, 4, 4)
    mc.verbose, mc.fcisolver = 0, solver(water)
    mc.kernel()
    singlet = mc.ci
    mc.fcisolver.spin = 2
    mc.kernel()
    assert singlet.dot(mc.ci) == 0
    smaller = mcscf.CASCI(water, 3, 4)
    smaller.verbose, smaller.fcisolver = 0, mc.fcisolver
    smaller.kernel()
    with pytest.raises(OutcoreError, match="overlap of states"):
        singlet.dot(smaller.ci)


@pytest.mark.parametrize("symmetry", [False, True])
def test_states_are_rotated_with_orbitals(solver, symmetry):
    import scipy.linalg

    mf = mean_field(symmetry=symmetry)
    theirs, ours = both(mf, solver, "CASCI", 6, 8)
    for each in (theirs, ours):
        each.kernel()
    generator = np.random.default_rng(1).standard_normal((6, 6))
    if symmetry:
        irreps = np.asarray(ours.fcisolver.orbsym)
        generator = generator * (irreps[:, None] == irreps)
    u = scipy.linalg.expm(generator - generator.T)
    found, expected = (
        each.fcisolver.transform_ci_for_orbital_rotation(each.ci, 6, 8, u) for each in (ours, theirs)
    )
    assert found.dot(found) == pytest.approx(1)
    one, two = ours.fcisolver.make_rdm12(found, 6, 8)
    reference = theirs.fcisolver.make_rdm12(expected, 6, 8)
    np.testing.assert_allclose(one, reference[0], atol=1e-5)
    np.testing.assert_allclose(two, reference[1], atol=1e-5)


def test_gradients_of_a_casscf(water, solver):
    theirs, ours = both(water, solver, "CASSCF", 4, 4)
    for each in (theirs, ours):
        each.conv_tol = 1e-10
        each.kernel()
    np.testing.assert_allclose(ours.nuc_grad_method().kernel(), theirs.nuc_grad_method().kernel(), atol=1e-5)


def test_states_are_dropped_with_their_handles(water, solver):
    mc = mcscf.CASCI(water, 4, 4)
    mc.verbose, mc.fcisolver = 0, solver(water)
    mc.kernel()
    first = mc.ci
    mc.kernel()
    mc.kernel()
    gc.collect()
    assert len(mc.fcisolver._open) == 3
    assert first.densities().one.trace() == pytest.approx(4)
    del first
    mc.kernel()
    assert len(mc.fcisolver._open) == 2


def test_what_has_no_effect_is_refused(water, solver):
    with pytest.raises(OutcoreError, match="residual has no effect; set conv_tol"):
        FCISolver(water.mol, residual=1e-3)
    with pytest.raises(AttributeError, match="checkpoint"):
        solver(water).checkpoint = "elsewhere"
    mc = mcscf.CASCI(water, 4, 4)
    mc.verbose, mc.fcisolver = 0, solver(water)
    mc.fix_spin_(ss=1.5)
    with pytest.raises(OutcoreError, match=r"<S\^2> = 1.5 is S\(S \+ 1\) of no spin"):
        mc.kernel()
    mc.fcisolver = solver(water)
    mc.fcisolver.spin = 4
    with pytest.raises(OutcoreError, match="with 4 unpaired electrons, not with 0"):
        mc.kernel()
    with pytest.raises(OutcoreError, match="a ndarray is no state"):
        mc.fcisolver.make_rdm1(np.zeros(3), 4, 4)
    with pytest.raises(OutcoreError, match="any_integrals has no effect"):
        FCISolver(water.mol, checkpoint="kept", any_integrals=True)
    mc.fcisolver.spin = 0
    mc.kernel()
    for orbitals, electrons in ((5, 4), (4, 6), (4, (3, 1))):
        with pytest.raises(OutcoreError, match=r"a state of \(2, 2\) electrons in 4 orbitals is none of"):
            mc.fcisolver.make_rdm1(mc.ci, orbitals, electrons)
    with pytest.raises(OutcoreError, match=r"not mc.newton\(\)"):
        mc.fcisolver.gen_linkstr(4, 4)


def test_the_spin_is_fixed_as_with_pyscf(water, solver):
    """By PySCF's function, and by that of the solver: the energy is that of two unpaired electrons."""
    theirs, by_pyscf, by_solver = (mcscf.CASCI(water, 4, electrons) for electrons in ((3, 1), 4, 4))
    for ours in (by_pyscf, by_solver):
        ours.fcisolver = solver(water)
    by_pyscf.fix_spin_(shift=0.2, ss=2)
    by_solver.fcisolver.fix_spin_(ss=2)
    assert by_solver.fcisolver.spin == 2
    for each in (theirs, by_pyscf, by_solver):
        each.verbose, each.fcisolver.conv_tol = 0, 1e-12
        each.kernel()
    for ours in (by_pyscf, by_solver):
        assert ours.e_tot == pytest.approx(theirs.e_tot, abs=1e-9)
        assert ours.fcisolver.spin_square(ours.ci, 4, 4)[0] == pytest.approx(2, abs=1e-8)
    by_solver.fcisolver.fix_spin_(ss=0)
    assert by_solver.kernel()[0] < theirs.e_tot


def test_what_works_on_elements_is_refused_by_name(water, solver):
    from pyscf import mrpt

    casci, newton, averaged = (getattr(mcscf, each)(water, 4, 4) for each in ("CASCI", "CASSCF", "CASSCF"))
    for each in (casci, newton, averaged):
        each.verbose, each.fcisolver = 0, solver(water)
    casci.kernel()
    averaged = averaged.state_average([0.5, 0.5])
    averaged.kernel()
    for work in (
        mrpt.NEVPT(casci).kernel,
        newton.newton().kernel,
        lambda: averaged.nuc_grad_method().kernel(state=0),
        lambda: mcscf.spin_square(casci),
        lambda: np.asarray(casci.ci),
    ):
        with pytest.raises(
            OutcoreError, match=r"elements of <state 0 of .*it is no array in memory, but mc.newton"
        ):
            work()


def test_a_large_active_space_has_the_energy_of_pyscf(solver):
    """CASSCF(10,10), for which PySCF 2.14 with its own solver takes a minute."""
    mf = mean_field(N2, symmetry="D2h")
    mc = mcscf.CASSCF(mf, 10, 10)
    mc.verbose, mc.fcisolver = 0, solver(mf, precision="mixed", memory="1GB")
    mc.conv_tol, mc.fcisolver.conv_tol = 1e-9, 1e-11
    assert mc.kernel()[0] == pytest.approx(-109.053768126876, abs=1e-8) and mc.converged
    assert mc.ci.determinants == 8072
