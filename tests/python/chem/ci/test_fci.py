"""Full CI from Python: energies, densities and states, against PySCF."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import integrals

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.ci import FCI, fcidump
from outcore.chem.ci import hamiltonian as hamiltonians

pyscf = pytest.importorskip("pyscf")

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
TIGHT = {"residual": 1e-8, "comm": None}


def mean_field(atom=WATER, kind="RHF", basis="sto-3g", symmetry=True, **given):
    mf = getattr(pyscf.M(atom=atom, basis=basis, symmetry=symmetry, verbose=0, **given), kind)()
    mf.conv_tol = 1e-12
    return mf.run()


@pytest.fixture(scope="module")
def water():
    return mean_field()


def reference(mf, electrons, count, nroots=1, wfnsym=None, spin=None):
    """PySCF's CASCI, its vectors and solver."""
    mc = pyscf.mcscf.CASCI(mf, count, electrons)
    mc.verbose = 0
    mc.fcisolver.conv_tol, mc.fcisolver.nroots = 1e-13, nroots
    if wfnsym is not None:
        mc.fcisolver.wfnsym = wfnsym
    if spin is not None:
        mc.fix_spin_(ss=spin / 2 * (spin / 2 + 1))
    mc.kernel()
    return mc


@pytest.mark.parametrize(("irrep", "spin"), [("A1", 0), ("A1", 2), ("B1", 2), ("B2", 0), ("A2", 2)])
def test_states_have_the_energies_of_pyscf(water, irrep, spin):
    with FCI(water, irrep=irrep, spin=spin, roots=2, **TIGHT) as ci:
        energies = ci.kernel()
        assert ci.converged
        for root in range(2):
            assert ci.spin_square(root) == pytest.approx(spin / 2 * (spin / 2 + 1), abs=1e-8)
    expected = reference(water, 10, 7, 2, irrep, spin).e_tot
    np.testing.assert_allclose(energies, expected, atol=1e-8)


@pytest.mark.parametrize("folded", [None, False])
def test_energies_of_iterations_are_without_the_shift(water, folded):
    told = []
    with FCI(water, frozen=1, spin=2, irrep="B1", folded=folded, spin_shift=0.3, **TIGHT) as ci:
        ci.on_iteration = lambda iteration, _: told.append(iteration.energies[0])
        found = ci.kernel()
        for last in (told[-1], ci.solved.iterations[-1].energies[0]):
            assert last + ci.hamiltonian.core_energy == pytest.approx(found, abs=1e-12)
        assert abs(ci.solved.bounds[0].extrapolated - found) < 1e-12


def test_one_root_is_a_number(water):
    with FCI(water, frozen="auto", **TIGHT) as ci:
        found = ci.kernel()
        assert isinstance(found, float) and ci.e_tot == found and ci.e_states.tolist() == [found]
    assert found == pytest.approx(reference(water, 8, 6).e_tot, abs=1e-9)


def test_other_states_of_the_same_orbitals(water):
    with FCI(water, irrep="A1", **TIGHT) as ci, FCI(water, irrep="B1", spin=2, roots=2, **TIGHT) as expected:
        ci.kernel()
        other = ci.with_states(irrep="B1", spin=2, roots=2)
        np.testing.assert_allclose(other.kernel(), expected.kernel(), atol=1e-8)
        assert other.label(0) == "B1" and abs(other.dipole(0)[2]) == pytest.approx(
            abs(expected.dipole(0)[2]), abs=1e-6
        )
        other.close()
        assert ci.spin_square(0) == pytest.approx(0.0, abs=1e-8)  # its states and its world are still there
        with pytest.raises(OutcoreError, match="irrep E"):
            ci.with_states(irrep="E")


def test_open_shells_take_the_irrep_of_their_determinant():
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "ROHF", spin=2)
    with FCI(mf, frozen=4, active=6, **TIGHT) as ci:
        assert ci.hamiltonian.names[ci.target.irrep] == "B1g" and ci.target.parity == -1
        found = ci.kernel()
        assert ci.label() == "Sigma_g-"
    assert found == pytest.approx(reference(mf, (5, 3), 6).e_tot, abs=1e-8)
    with FCI(mf, frozen=4, active=6, folded=False, **TIGHT) as ci:
        assert ci.target.electrons == (5, 3)
        assert ci.kernel() == pytest.approx(found, abs=1e-9)


def test_orbitals_of_each_spin():
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "UHF", spin=2)
    mc = pyscf.mcscf.UCASCI(mf, 6, (5, 3))
    mc.fcisolver.conv_tol, mc.verbose = 1e-13, 0
    mc.kernel()
    with FCI(mf, frozen=4, active=6, **TIGHT) as ci:
        assert ci.kernel() == pytest.approx(mc.e_tot, abs=1e-8)
        a, b = ci.make_rdm1s()
        assert (np.trace(a), np.trace(b)) == pytest.approx((5, 3))
        whole = FCI(mf, **TIGHT)
        whole.kernel()
        assert whole.spin_square() == pytest.approx(2, abs=1e-6)
        with pytest.raises(OutcoreError, match=r"natural orbitals: .*alpha and beta differ"):
            ci.natural_orbitals()
        with pytest.raises(OutcoreError, match="alpha and beta differ"):
            ci.make_rdm1()


def test_densities_are_those_of_pyscf(water):
    mc = reference(water, 8, 6, 2, spin=0)
    with FCI(water, frozen=1, roots=2, **TIGHT) as ci:
        ci.kernel()
        for root in range(2):
            one, two = mc.fcisolver.make_rdm12(mc.ci[root], 6, 8)
            found = ci.make_rdm12(root)
            np.testing.assert_allclose(found[0], one, atol=1e-5)
            np.testing.assert_allclose(found[1], two, atol=1e-5)
            energy = ci.hamiltonian.core_energy + ci.densities(root).energy(ci.hamiltonian)
            assert energy == pytest.approx(ci.e_states[root], abs=1e-9)
        between = mc.fcisolver.trans_rdm1(mc.ci[0], mc.ci[1], 6, 8).T
        sign = np.sign(np.sum(between * ci.trans_rdm1(0, 1)))
        np.testing.assert_allclose(sign * ci.trans_rdm1(0, 1), between, atol=1e-5)


def test_moments_of_water(water):
    with FCI(water, **TIGHT) as ci:
        ci.kernel()
        density = water.mo_coeff @ ci.make_rdm1() @ water.mo_coeff.T
        expected = pyscf.scf.hf.dip_moment(water.mol, density, unit="AU", verbose=0)
        np.testing.assert_allclose(ci.dipole(), expected, atol=1e-8)
        natural = ci.natural_orbitals()
        assert natural.occupations.sum() == pytest.approx(10)
        weights = ci.weights()
        assert weights.sum() == pytest.approx(1) and weights[0] == pytest.approx(
            ci.largest()[0].coefficient ** 2
        )
        assert ci.largest()[0].occupation(7) == "2222200"


def test_the_transition_dipole_of_he2():
    """The values of Psi4's test fci-tdm."""
    mf = mean_field("He 0 0 0; He 0 0 2.0", "ROHF", "6-31g", charge=1, spin=1, symmetry="C2v")
    with FCI(mf, roots=2, **TIGHT) as ci:
        ci.kernel()
        moment = ci.transition_dipole(0, 1)
    mc = reference(mf, (2, 1), 4, 2)
    between = mc.fcisolver.trans_rdm1(mc.ci[0], mc.ci[1], 4, (2, 1))
    operator = mf.mol.intor("int1e_r")
    expected = np.einsum("xpq,qp->x", operator, mf.mo_coeff @ between @ mf.mo_coeff.T)
    np.testing.assert_allclose(abs(moment), abs(expected), atol=1e-5)


@pytest.mark.parametrize(
    ("irrep", "spin", "label"), [("Ag", 0, "Sigma_g+"), ("B3g", 0, "Pi_g"), ("Au", 2, None)]
)
def test_states_of_linear_molecules_are_named(irrep, spin, label):
    mf = mean_field("N 0 0 -0.55; N 0 0 0.55")
    with FCI(mf, frozen=2, irrep=irrep, spin=spin, **TIGHT) as ci:
        ci.kernel()
        assert ci.label() == label if label else ci.label() in ("Sigma_u-", "Delta_u")


def test_a_file_has_the_same_states(water, tmp_path):
    path = tmp_path / "FCIDUMP"
    with FCI(water, frozen=1, irrep="B1", spin=2, **TIGHT) as ci:
        ci.write_fcidump(path)
        expected = ci.kernel()
        largest = ci.largest(0, 4)
    with FCI.from_fcidump(path, **TIGHT) as ci:
        assert ci.target.spin == 2
        assert ci.kernel() == pytest.approx(expected, abs=1e-9) and ci.notes == ()
        for one, other in zip(ci.largest(0, 4), largest, strict=True):
            assert (one.alpha, one.beta) == (other.alpha, other.beta)
            assert one.coefficient == pytest.approx(other.coefficient, abs=1e-6)
        with pytest.raises(OutcoreError, match="which has no molecule"):
            ci.dipole()
    with FCI.from_fcidump(path, irrep=1, spin=0, **TIGHT) as ci:
        assert ci.kernel() == pytest.approx(reference(water, 8, 6).e_tot, abs=1e-8)


@pytest.mark.parametrize(
    ("electrons", "n"), [((1, 0), 4), ((0, 0), 3), ((4, 4), 4), ((3, 0), 5), ((4, 1), 4)]
)
def test_few_electrons_or_holes(electrons, n):
    from pyscf import fci

    one, two = integrals(n, 4)
    h = hamiltonians.make(one, two, core_energy=0.25)
    with FCI.from_hamiltonian(h, electrons, **TIGHT) as ci:
        found = ci.kernel()
    solver = fci.direct_spin1.FCISolver()
    if sum(electrons):
        fci.addons.fix_spin_(solver, ss=ci.target.spin / 2 * (ci.target.spin / 2 + 1))
        expected = solver.kernel(one, two, n, electrons)[0] + 0.25
    else:
        expected = 0.25
    assert found == pytest.approx(expected, abs=1e-8)


def test_a_search_begins_with_states_of_the_same_space(water):
    with FCI(water, frozen=1, **TIGHT) as ci, FCI(water, frozen=1, spin=2, **TIGHT) as triplet:
        found = ci.kernel()
        assert ci.kernel(ci.solved.roots) == pytest.approx(found, abs=1e-10)
        assert len(ci.solved.iterations) == 1
        with pytest.raises(OutcoreError, match=r"they are of <.* parity 1>, not of <.* parity -1>"):
            triplet.kernel(ci.solved.roots)
        two = FCI(water, frozen=1, roots=2, **TIGHT)
        with pytest.raises(OutcoreError, match="there are 1 for 2 roots"):
            two.kernel(ci.solved.roots)


@pytest.mark.parametrize("folded", [None, False])
def test_states_that_converge_to_another_spin_are_refused(folded):
    mf = mean_field("N 0 0 0; N 0 0 3")
    ci = FCI(mf, frozen=2, roots=2, folded=folded, guess_size=4, **TIGHT, spin_shift=0.0)
    with pytest.raises(NotConverged, match=r"root 2 has <S\^2> = 6.0000, not 0: .*raise the spin shift"):
        ci.kernel()
    with FCI(mf, frozen=2, roots=2, folded=folded, guess_size=4, **TIGHT, spin_shift=0.5) as ci:
        ci.kernel()
        assert [ci.spin_square(root) for root in range(2)] == pytest.approx([0, 0], abs=1e-6)


def test_natural_orbitals_are_written(water, tmp_path):
    with FCI(water, **TIGHT) as ci:
        ci.kernel()
        ci.write_molden(tmp_path / "orbitals.molden")
        with pytest.raises(OutcoreError, match="No such file"):
            ci.write_molden(tmp_path / "no" / "orbitals.molden")
    assert "[MO]" in (tmp_path / "orbitals.molden").read_text()


def test_what_cannot_be_is_refused(water):
    for given, told in (
        ({"spin": 1}, "10 electrons cannot have 2S = 1"),
        ({"irrep": "E"}, "C2v has the irreps"),
        ({"roots": 0}, "0 roots"),
        ({"roots": 60, "frozen": 4}, "there are"),
        ({"residual": 2.0}, "residual of 2"),
        ({"precision": "half"}, "precision 'half'"),
        ({"vectors": 1}, "1 vectors"),
        ({"guess_size": 10**6}, "small space of 1000000"),
        ({"max_cycle": 0}, "0 iterations"),
        ({"spin_shift": -1.0}, "spin shift of -1"),
    ):
        with pytest.raises(OutcoreError, match=told):
            FCI(water, **({"comm": None} | given))
    with FCI(water, comm=None) as ci:
        with pytest.raises(OutcoreError, match=r"run kernel\(\) first"):
            _ = ci.e_tot
        ci.kernel()
        with pytest.raises(OutcoreError, match=r"root 1: .*there are 1"):
            ci.largest(1)


def test_isym_without_determinants_is_refused(tmp_path):
    one, two = integrals(3, 1, [0, 0, 1])
    h = hamiltonians.make(one, two, irreps=[0, 0, 1], names=["1", "2"])
    fcidump.write(tmp_path / "FCIDUMP", h, (3, 3), 1)
    with pytest.raises(OutcoreError, match="no determinant"):
        FCI.from_fcidump(tmp_path / "FCIDUMP", comm=None)
