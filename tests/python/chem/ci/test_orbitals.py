"""Orbitals of a CI: frozen, active, irreps, integrals; against PySCF's CASCI."""

from __future__ import annotations

import numpy as np
import pytest
from ci_cases import strings

from outcore.base.errors import OutcoreError
from outcore.chem.ci import guess, orbitals
from outcore.job.world import World

pyscf = pytest.importorskip("pyscf")

WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
N2 = "N 0 0 -0.55; N 0 0 0.55"


@pytest.fixture(scope="module")
def world():
    with World("self") as made:
        yield made


def mean_field(atom=WATER, kind="RHF", basis="sto-3g", **given):
    mf = getattr(pyscf.M(atom=atom, basis=basis, verbose=0, **given), kind)()
    mf.conv_tol = 1e-12
    return mf.run()


def lowest(space, irrep=0, spin=None):
    """The energy of a space without selection."""
    h = space.hamiltonian
    lists = [strings(h.irreps, h.groups, each) for each in space.electrons]
    return guess.start(h, *lists, irrep, spin=spin, size=100_000).energies[0]


def casci(mf, electrons, count, **given):
    from pyscf import mcscf

    mc = (mcscf.UCASCI if mf.istype("UHF") else mcscf.CASCI)(mf, count, electrons)
    mc.fcisolver.conv_tol = 1e-12
    for name, value in given.items():
        setattr(mc.fcisolver, name, value)
    return mc.kernel()[0]


@pytest.mark.parametrize("symmetry", [False, True, "Cs"])
@pytest.mark.parametrize("frozen", [0, 1, "auto"])
def test_the_energy_of_frozen_orbitals_is_that_of_pyscf(world, symmetry, frozen):
    mf = mean_field(symmetry=symmetry)
    space = orbitals.of(mf, world, frozen=frozen)
    cores = int(frozen != 0)
    assert space.frozen == cores and space.electrons == (5 - cores, 5 - cores)
    assert space.hamiltonian.group == {False: "C1", True: "C2v", "Cs": "Cs"}[symmetry]
    assert lowest(space) == pytest.approx(casci(mf, 10 - 2 * cores, 7 - cores), abs=1e-8)


@pytest.mark.parametrize("kind", ["ROHF", "UHF"])
def test_open_shells_have_the_energy_of_pyscf(world, kind):
    mf = mean_field("O 0 0 0; O 0 0 1.2", kind, spin=2)
    space = orbitals.of(mf, world, frozen=4, active=5)
    assert space.electrons == (5, 3) and space.hamiltonian.unrestricted == (kind == "UHF")
    assert [string.bit_count() for string in space.occupied] == [5, 3]
    assert lowest(space) == pytest.approx(casci(mf, (5, 3), 5), abs=1e-8)


def test_orbitals_of_each_spin_have_irreps(world):
    mf = mean_field(kind="UHF", charge=1, spin=1, symmetry=True)
    space = orbitals.of(mf, world)
    assert space.hamiltonian.unrestricted and space.hamiltonian.irreps.tolist() == [0] * 4 + [2] + [3] * 2
    found = min(lowest(space, irrep) for irrep in range(4))
    assert found == pytest.approx(casci(mf, (5, 4), 7), abs=1e-8)


def test_the_determinant_of_the_mean_field_is_known(world):
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "ROHF", spin=2, symmetry=True)
    space = orbitals.of(mf, world, frozen=2)
    assert space.hamiltonian.names[space.reference_irrep] == "B1g"
    from outcore.chem.ci import determinants

    a, b = (np.array([string], np.uint64) for string in space.occupied)
    assert determinants.diagonal(space.hamiltonian, a, b)[0] == pytest.approx(mf.e_tot, abs=1e-8)
    mf = mean_field("O 0 0 -0.6; O 0 0 0.6", "UHF", spin=2, symmetry=True)
    space = orbitals.of(mf, world, frozen=2)
    a, b = (np.array([string], np.uint64) for string in space.occupied)
    assert determinants.diagonal(space.hamiltonian, a, b)[0] == pytest.approx(mf.e_tot, abs=1e-8)


def test_irreps_of_orbitals_made_without_symmetry_are_found(world):
    mf = mean_field(basis="6-31g")
    space = orbitals.of(mf, world, active=9, group="c2v")
    expected = orbitals.of(mean_field(basis="6-31g", symmetry=True), world, active=9)
    assert space.hamiltonian.irreps.tolist() == expected.hamiltonian.irreps.tolist()
    np.testing.assert_allclose(abs(space.hamiltonian.one), abs(expected.hamiltonian.one), atol=1e-6)


def test_linear_molecules_have_abelian_irreps_and_their_own_names(world):
    mf = mean_field(N2, symmetry=True)
    space = orbitals.of(mf, world, frozen="auto")
    assert (space.group, space.hamiltonian.group) == ("Dooh", "D2h")
    assert space.frozen == 2 and space.hamiltonian.orbitals == 8
    assert space.irrep("A1g") == space.irrep("ag") == 0
    assert space.irrep("E1uy") == space.irrep("B2u") == 6
    assert lowest(space) == pytest.approx(casci(mf, 10, 8), abs=1e-8)
    assert space.reference_irrep == 0 and space.occupied[0] == space.occupied[1] != 0b11111
    assert orbitals.of(mf, world, group="C2v").hamiltonian.group == "C2v"


def test_density_fitted_integrals_are_summed(world):
    from pyscf import mcscf

    mf = pyscf.M(atom=WATER, basis="6-31g", verbose=0).RHF().density_fit()
    mf.run(conv_tol=1e-12)
    space = orbitals.of(mf, world, frozen=1, active=6)
    mc = mcscf.DFCASCI(mf, 6, 8)
    mc.fcisolver.conv_tol = 1e-12
    assert lowest(space) == pytest.approx(mc.kernel()[0], abs=1e-8)


@pytest.mark.parametrize("fitted", [False, True])
def test_our_own_mean_fields_are_taken(world, tmp_path, fitted):
    from outcore.chem import hf, ri

    mol = pyscf.M(atom=WATER, basis="6-31g", verbose=0)
    mf = ri.RHF(mol, comm=world) if fitted else hf.RHF(mol, comm=None, scratch=str(tmp_path))
    with mf:
        mf.conv_tol = 1e-12
        mf.kernel()
        for frozen in (0, 1):
            space = orbitals.of(mf, world, frozen=frozen, active=7 - frozen)
            theirs = mol.RHF().density_fit() if fitted else mol.RHF()
            theirs.run(conv_tol=1e-12)
            same = orbitals.of(theirs, world, frozen=frozen, active=7 - frozen)
            assert lowest(space) == pytest.approx(lowest(same), abs=1e-7)


def test_integrals_that_are_not_kept_in_memory_are_the_same(world, tmp_path):
    mf = mean_field(basis="6-31g")
    mf._eri = None
    space = orbitals.of(mf, world, max_memory_bytes=1 << 10, scratch=str(tmp_path))
    expected = orbitals.of(mf, world)
    np.testing.assert_allclose(space.hamiltonian.two, expected.hamiltonian.two, atol=1e-12)


def refused(mf, world, **given) -> str:
    with pytest.raises(OutcoreError) as caught:
        orbitals.of(mf, world, **given)
    return str(caught.value)


def test_what_cannot_be_is_refused(world):
    mf = mean_field()
    assert "6 frozen, but only 5 are occupied" in refused(mf, world, frozen=6)
    assert "4 active orbitals cannot hold 5 alpha" in refused(mf, world, active=4)
    assert "8 active orbitals, but 7 are left" in refused(mf, world, active=8)
    assert "the molecule has C2v, not D2h" in refused(mf, world, group="D2h")
    assert "it may be D2h" in refused(mf, world, group="T")
    mf.converged = False
    assert "has not converged" in refused(mf, world)
    assert "run its kernel() first" in refused(mf.mol.RHF(), world)
    assert "Kohn-Sham" in refused(mf.mol.RKS(), world)
    assert "generalized" in refused(mf.mol.GHF(), world)


def test_more_orbitals_than_bits_are_refused(world):
    mf = mean_field(N2, basis="aug-cc-pvtz")
    assert "at most 64 can be correlated: give the number of active ones" in refused(mf, world)


def test_orbitals_without_an_irrep_are_refused(world):
    mf = mean_field()
    mf.mo_coeff = mf.mo_coeff.copy()
    angle = 0.3
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    mf.mo_coeff[:, 3:5] = mf.mo_coeff[:, 3:5] @ turn
    assert "is of no irrep of C2v" in refused(mf, world, group="C2v")


def test_degenerate_orbitals_are_turned_into_their_irreps(world):
    mf = mean_field("B 0 0 0; H 0 0 1.2")
    (first,) = np.flatnonzero(abs(np.diff(mf.mo_energy)) < 1e-6)
    turn = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    mf.mo_coeff[:, first : first + 2] = mf.mo_coeff[:, first : first + 2] @ turn
    space = orbitals.of(mf, world, frozen=1, group="C2v")
    assert space.notes == ("2 orbitals of degenerate shells were mixed, so that each is of one irrep",)
    assert space.hamiltonian.irreps.tolist() == [0, 0, 0, 2, 3]
    assert lowest(space) == pytest.approx(lowest(orbitals.of(mf, world, frozen=1)), abs=1e-10)


def test_orbitals_that_are_nearly_symmetric_are_made_so_and_it_is_told(world):
    mf = mean_field()
    turn = np.array([[np.cos(1e-3), np.sin(1e-3)], [-np.sin(1e-3), np.cos(1e-3)]])
    mf.mo_coeff[:, 3:5] = mf.mo_coeff[:, 3:5] @ turn
    space = orbitals.of(mf, world, group="C2v")
    assert "the largest change of one is 1.0e-03 of its norm" in space.notes[0]
    assert lowest(space) == pytest.approx(lowest(orbitals.of(mf, world, group="C1")), abs=1e-10)


@pytest.mark.parametrize("atom", ["H 0 0 0; H 0 0 0.8; ghost-H 0 0 0.4", "He 0 0 0; ghost-He 0 0 0.7"])
def test_functions_that_nearly_depend_on_each_other_keep_the_energy(world, atom):
    basis = {"H": "6-311++g**", "He": "aug-cc-pvdz", "GHOST-H": "6-311++g**", "GHOST-He": "aug-cc-pvdz"}
    mf = mean_field(atom, basis=basis, symmetry=True)
    symmetric, plain = (orbitals.of(mf, world, group=each) for each in (None, "C1"))
    assert symmetric.hamiltonian.groups > 1
    expected = casci(mf, 2, mf.mo_coeff.shape[1])
    assert lowest(symmetric) == pytest.approx(expected, abs=1e-9)
    assert lowest(plain) == pytest.approx(expected, abs=1e-9)


def test_integrals_that_rounding_has_lost_are_refused_with_the_reason(world):
    mf = mean_field("He 0 0 0; ghost-He 0 0 0.003", basis="aug-cc-pvdz")
    values, vectors = np.linalg.eigh(mf.get_ovlp())  # all of them, of which PySCF leaves out some
    vectors /= np.sqrt(values)
    mf.mo_energy, turn = np.linalg.eigh(vectors.T @ mf.get_fock() @ vectors)
    mf.mo_coeff, mf.mo_occ = vectors @ turn, np.eye(len(values))[0] * 2
    assert "functions of the basis depend on each other" in refused(mf, world)


def test_the_field_of_the_core_is_exact_where_integrals_are_stored(world):
    from outcore.chem import hf

    mol = pyscf.M(atom=WATER, basis="6-31g", verbose=0)
    with hf.RHF(mol, comm=None, error=1e-3) as mf:
        mf.kernel()
        space = orbitals.of(mf, world, frozen=2)
    theirs = mol.RHF()
    for name in ("mo_coeff", "mo_energy", "mo_occ"):
        setattr(theirs, name, getattr(mf, name))
    theirs.converged = True
    expected = orbitals.of(theirs, world, frozen=2)
    np.testing.assert_allclose(space.hamiltonian.one, expected.hamiltonian.one, atol=1e-12)
    assert space.hamiltonian.core_energy == pytest.approx(expected.hamiltonian.core_energy, abs=1e-11)


def chosen(mf, electrons, orbitals, numbers):
    """The energy of PySCF's CASCI with these orbitals, numbered from 0."""
    from pyscf import mcscf

    mc = mcscf.CASCI(mf, orbitals, electrons)
    mc.fcisolver.conv_tol = 1e-12
    return mc.kernel(mc.sort_mo(list(numbers), base=0))[0]


def test_active_orbitals_of_a_list_are_those_of_pyscf(world):
    mf = mean_field(basis="6-31g")
    for asked in ([2, 3, 4, 6, 7, 8], "2-4,8,6-7", np.array([8, 7, 6, 4, 3, 2])):
        space = orbitals.of(mf, world, active=asked)
        assert space.electrons == (3, 3) and space.frozen == 2
        assert space.notes == ("orbitals 0, 1 (from 0) are not active and stay occupied",)
    assert lowest(space) == pytest.approx(chosen(mf, 6, 6, [2, 3, 4, 6, 7, 8]), abs=1e-9)


def test_active_orbitals_for_each_irrep_are_those_of_pyscf(world):
    from pyscf import mcscf

    mf = mean_field(basis="6-31g", symmetry=True)
    counts = {"A1": 3, "B1": 1, "B2": 2}
    space = orbitals.of(mf, world, frozen=1, active=counts)
    assert np.bincount(space.hamiltonian.irreps, minlength=4).tolist() == [3, 0, 1, 2]
    mc = mcscf.CASCI(mf, 6, 8)
    mc.fcisolver.conv_tol = 1e-12
    expected = mc.kernel(mc.sort_mo_by_irrep(counts, {"A1": 1}))[0]
    assert lowest(space) == pytest.approx(expected, abs=1e-9)
    assert lowest(orbitals.of(mf, world, frozen=1, active="A1=3,B1=1,B2=2")) == pytest.approx(
        expected, abs=1e-9
    )
    linear = mean_field(N2, symmetry=True)
    space = orbitals.of(
        linear, world, frozen=2, active={"A1g": 1, "E1ux": 1, "e1uy": 1, "A1u": 1, "E1gx": 1, "E1gy": 1}
    )
    assert np.bincount(space.hamiltonian.irreps).tolist() == [1, 0, 1, 1, 0, 1, 1, 1]


def test_frozen_orbitals_of_a_list_are_those_of_pyscf(world):
    mf = mean_field()
    space = orbitals.of(mf, world, frozen=[3, 0], frozen_virtual=[5])
    assert (space.frozen, space.hamiltonian.orbitals, space.electrons, space.notes) == (2, 4, (3, 3), ())
    assert lowest(space) == pytest.approx(chosen(mf, 6, 4, [1, 2, 4, 6]), abs=1e-9)
    same = orbitals.of(mf, world, frozen="0,3,5")
    np.testing.assert_array_equal(same.hamiltonian.two, space.hamiltonian.two)
    highest = orbitals.of(mf, world, frozen=1, frozen_virtual=1)
    assert lowest(highest) == pytest.approx(chosen(mf, 8, 5, range(1, 6)), abs=1e-9)


def test_spins_may_have_lists_of_their_own(world):
    mf = mean_field("O 0 0 0; O 0 0 1.2", "UHF", spin=2)
    space = orbitals.of(mf, world, frozen=[[0, 1, 2], [1, 0, 2]], frozen_virtual=1)
    assert space.electrons == (6, 4) and space.hamiltonian.orbitals == 6
    assert lowest(space) == pytest.approx(casci(mf, (6, 4), 6), abs=1e-8)


def test_orbitals_that_cannot_be_active_are_refused_by_name(world):
    mf = mean_field(symmetry=True)
    for active, told in (
        ([3, 3], "orbital 3 is listed more than once"),
        ([3, 7], "there is no orbital 7: they are 0 to 6"),
        ([0, 3], "orbital 0 is frozen as well"),
        ("3-", "'3-' is neither a number of orbitals nor a list"),
        ("99999999999999999999", "99999999999999999999 is no range"),
        ({"A1": 9}, "9 active orbitals of A1, but 3 are left"),
        ({"E1ux": 1}, "point group C2v has A1, A2, B1, B2"),
        ("A1=2,a1=2", "an irrep is named more than once"),
        ({"A1": -1}, "'-1' is no number of orbitals of A1"),
        ([], "an empty list"),
        (0, "0 active orbitals"),
        (True, "neither a number"),
    ):
        assert told in refused(mf, world, frozen=1, active=active)
    mf = mean_field("O 0 0 0; O 0 0 1.2", "ROHF", spin=2)
    assert "orbital 7 (from 0) holds one electron" in refused(mf, world, active=[5, 6, 8])
    assert "orbital 7 (from 0) holds one electron" in refused(mf, world, frozen=[7])
    mf = mean_field("O 0 0 0; O 0 0 1.2", "UHF", spin=2)
    assert "give lists that are as long for both" in refused(mf, world, frozen=[[0, 1], [0]])
