"""Energies of the three definitions, against PySCF's CISD and full CI, and OpenMolcas."""

from __future__ import annotations

import errno

import mrci_dense
import numpy as np
import pytest
from mrci_molecules import N2, WATER, mean_field

from outcore.base.errors import NotConverged, OutcoreError
from outcore.chem.mrci import (
    MRCI,
    configurations,
    packed,
    reference_states,
    references,
    size_consistency,
    transform,
    vectors,
)
from outcore.chem.mrci.records import Functions, Orbitals, Records

pytest.importorskip("pyscf")

RAW = 8 * 8302 * 6  # bytes of six vectors of water
PACKED = 88_100  # of them, with an error bound of 1e-8 Hartree


def n2(**settings):
    return MRCI.from_mean_field(mean_field(N2), frozen=2, inactive=2, active=6, comm=None, **settings)


def water(inactive=1, active=6, **settings):
    return MRCI.from_mean_field(mean_field(WATER), inactive=inactive, active=active, comm=None, **settings)


@pytest.mark.parametrize(
    ("references", "determinants", "energy"),
    [("all", 50550, -109.0968643780), ("symmetry", 24742, -109.0960369087)],
)
def test_definitions(references, determinants, energy):
    with n2(references=references) as ci:
        assert ci.records.determinants == determinants
        assert ci.kernel() == pytest.approx(energy, abs=2e-9)
        assert ci.converged
        assert ci.e_reference == pytest.approx(-108.9466697244, abs=2e-9)


@pytest.mark.parametrize("vector_memory", [None, 300_000])
def test_interacting_couplings_are_those_of_openmolcas(vector_memory):
    with n2(couplings="interacting", vector_memory=vector_memory) as ci:
        assert ci.functions == Functions(152, 1768, 2050, 2826)
        assert ci.records.determinants == 23326
        # OpenMolcas has -109.09594311; its bohr differs, which makes 2.4e-8 Hartree as with all couplings.
        assert ci.kernel() == pytest.approx(-109.0959431339, abs=2e-9)


@pytest.mark.parametrize(("bound", "whole", "least"), [(0.0, RAW, 0.8), (1e-8, PACKED, 0.5)])
@pytest.mark.parametrize(
    "share", [1.5, pytest.param(1.0, marks=pytest.mark.long), 0.5, pytest.param(0.01, marks=pytest.mark.long)]
)
def test_so_much_of_the_vectors_is_in_memory(share, bound, whole, least, monkeypatch):
    """Some memory stays free between records, and more between packed records, which grow."""
    monkeypatch.setattr(vectors, "UNIT_ELEMENTS", 64)
    monkeypatch.setattr(packed, "SMALLEST_MEMORY", 256)
    with water(vector_memory=int(share * whole), error_bound=bound) as ci:
        assert ci.kernel() == pytest.approx(-76.1160029238, abs=bound or 1e-9)
        assert ci.report.raw_bytes == RAW
        assert ci.report.packed_bytes == pytest.approx(whole, rel=0.05)
        in_memory = 1 - ci.report.spilled
        if share < 1:
            assert ci.report.over_least >= 1
    assert in_memory == 1 if share > 1 else least * share < in_memory <= share


@pytest.mark.parametrize(
    ("references", "determinants", "energy"),
    [("all", 18989, -76.1160042448), ("symmetry", 16093, -76.1160029238)],
)
def test_definitions_of_water(references, determinants, energy):
    with water(references=references) as ci:
        assert ci.records.determinants == determinants
        assert ci.kernel() == pytest.approx(energy, abs=2e-9)
        assert ci.e_reference == pytest.approx(-75.9951250682, abs=2e-9)


@pytest.mark.parametrize(
    ("inactive", "active", "functions", "energy"),
    [
        (2, 6, Functions(152, 10372, 94600, 85894), -109.35075787),
        pytest.param(0, 8, Functions(176, 14896, 354060, 280068), -109.35377098, marks=pytest.mark.long),
    ],
)
def test_larger_energies_of_openmolcas(inactive, active, functions, energy):
    """cc-pVTZ; OpenMolcas has another value of the bohr."""
    given = {"frozen": 2, "inactive": inactive, "active": active, "residual": 1e-4, "comm": None}
    with MRCI.from_mean_field(mean_field(N2, "cc-pvtz"), **given) as ci:
        assert ci.functions == functions
        assert ci.kernel() == pytest.approx(energy, abs=1e-7)


def test_functions_of_a_larger_basis():
    """cc-pVQZ; `outcore bench mrci` compares its energy with that of OpenMolcas."""
    mf = mean_field(N2)
    mol = mf.mol.copy()
    mol.basis = "cc-pvqz"
    mol.build(dump_input=False, parse_arg=False)
    occupied = MRCI.from_mean_field(mf, frozen=2, inactive=0, active=8, comm=None).records.orbitals.internal
    counts = np.bincount(np.array(mol.irrep_id) % 10, [each.shape[1] for each in mol.symm_orb], 8)
    counts = counts.astype(int) - np.bincount([0, 5, *occupied], minlength=8)
    orbitals = Orbitals(occupied, tuple(np.repeat(np.arange(8), counts).tolist()), 8)
    every = configurations.every(range(8), 10)
    chosen = every[configurations.irreps(every, occupied) == 0]
    found = Records(orbitals, chosen, (5, 5), 0, 1).functions(0)
    assert found == Functions(176, 29736, 1429192, 1104056) and found.total == 2563160


def test_cisd():
    from pyscf import ci as pyscf_ci

    theirs = pyscf_ci.CISD(mean_field(WATER)).run(conv_tol=1e-12).e_tot
    with water(inactive=5, active=0) as ci:
        assert ci.records.determinants == 679
        assert ci.kernel() == pytest.approx(theirs, abs=1e-9)
    assert theirs == pytest.approx(-76.1140770214, abs=1e-9)


def test_everything_active_is_full_ci():
    from outcore.chem.ci import FCI

    atoms = "Li 0 0 0; H 0 0 1.6"
    with FCI(mean_field(atoms), frozen=1, comm=None) as full:
        wanted = full.kernel()
    with MRCI.from_mean_field(mean_field(atoms), frozen=1, inactive=0, active=10, comm=None) as ci:
        assert len(ci.records.orbitals.external) == 0
        assert ci.kernel() == pytest.approx(wanted, abs=1e-10)
        assert ci.e_reference == pytest.approx(wanted, abs=1e-10)


def test_a_triplet():
    """For two electrons the space is that of full CI, whatever is active."""
    from outcore.chem.ci import FCI

    h2 = mean_field("H 0 0 0; H 0 0 1.2", "cc-pvdz")
    with FCI(h2, spin=2, irrep="B1u", comm=None) as full:
        wanted = full.kernel()
    with MRCI.from_mean_field(h2, inactive=0, active=2, spin=2, irrep="B1u", comm=None) as ci:
        assert ci.kernel() == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("name", "irrep"), [("A1g", "Ag"), ("A1u", "B1u"), ("E1ux", "B3u"), ("b2U", "B2u")])
def test_irreps_of_linear_molecules(name, irrep):
    with n2(irrep=name, with_integrals=False) as ci:
        assert ci.orbitals.group.irreps[ci.irrep] == irrep


def test_a_doublet():
    from outcore.chem.ci import FCI

    li = mean_field("Li 0 0 0", "cc-pvdz", spin=1)
    with FCI(li, comm=None) as full:
        wanted = full.kernel()
    with MRCI.from_mean_field(li, inactive=0, active=len(li.mo_energy), comm=None) as ci:
        assert ci.kernel() == pytest.approx(wanted, abs=1e-9)


def test_several_roots():
    from outcore.chem.ci import FCI

    h2 = mean_field("H 0 0 0; H 0 0 1.2", "cc-pvdz")
    with FCI(h2, roots=2, comm=None) as full:
        wanted = full.kernel()
    with MRCI.from_mean_field(h2, inactive=0, active=2, roots=2, comm=None) as ci:
        np.testing.assert_allclose(ci.kernel(), wanted, atol=1e-9)


def test_several_roots_of_a_molecule():
    """Compared with a matrix over all determinants with at most two electrons in external orbitals. States
    unlike those of the references lie below the third, and the search says so."""
    from pyscf import ao2mo

    mf = mean_field("Li 0 0 0; H 0 0 1.6")
    given = {"inactive": 1, "active": 3, "references": "all", "roots": 3, "residual": 1e-7}
    with MRCI.from_mean_field(mf, comm=None, **given) as ci:
        found = ci.kernel()
        own, passed = zip(*[(ci.own_weight(k), ci.passed_over(k)) for k in range(3)], strict=True)
        labels = np.array([*ci.orbitals.orbitals.internal, *ci.orbitals.orbitals.external])
        orbitals, count = mf.mo_coeff[:, ci.orbitals.permutation], ci.records.determinants
    n = len(labels)
    pairs = [(1 << p) + (1 << q) for p in range(n) for q in range(p)]
    alpha, beta = (each.ravel() for each in np.meshgrid(*[np.array(pairs, np.uint64)] * 2))
    inside = [[(each >> np.uint64(p)) & np.uint64(1) for p in range(n)] for each in (alpha, beta)]
    occupied = np.sum(inside, axis=0).T
    irreps = np.bitwise_xor.reduce(np.where(occupied == 1, labels, 0), axis=1)
    chosen = (occupied[:, 4:].sum(1) <= 2) & (irreps == 0)
    assert chosen.sum() == count
    one = orbitals.T @ mf.get_hcore() @ orbitals
    two = ao2mo.restore(1, ao2mo.kernel(mf.mol, orbitals), n)
    given = one, two, alpha[chosen], beta[chosen], 0
    references = occupied[chosen][:, :4].sum(1) - 2 * (occupied[chosen][:, 0] < 2) == 4
    wanted = [mrci_dense.followed(*given, references, root) for root in range(3)]
    np.testing.assert_allclose(found - mf.energy_nuc(), [energy for energy, _ in wanted], atol=1e-9)
    np.testing.assert_allclose(own, [like for _, like in wanted], atol=1e-6)
    below = mrci_dense.energies(*given) + mf.energy_nuc() < found[2] - 1e-6
    assert passed == (0, 0, below.sum() - 2) and below.sum() > 2


def test_a_casscf_object():
    from pyscf import mcscf

    mc = mcscf.CASSCF(mean_field(WATER), 4, 4).run(conv_tol=1e-11, verbose=0)
    with MRCI(mc, frozen=1, comm=None) as ci:
        assert ci.orbitals.choice.inactive == 2
        assert ci.kernel() < mc.e_tot - 0.01
        assert ci.e_reference == pytest.approx(mc.e_tot, abs=1e-9)


def test_references_by_weight():
    from pyscf import mcscf

    mc = mcscf.CASCI(mean_field(WATER), 4, 4).run(verbose=0)
    with MRCI(mc, references=0.9, comm=None) as one, MRCI(mc, references=1e-12, comm=None) as many:
        assert len(one.records.references) == 1
        assert 1 < len(many.records.references) <= 12
    with pytest.raises(OutcoreError, match="no configuration has a weight of 0"):
        MRCI(mc, references=0.9995, comm=None)


def test_references_by_weight_without_a_vector():
    """Weights are those of the wanted states over all references: the same choice as by a vector of
    PySCF's."""
    from pyscf import mcscf

    mf = mean_field(WATER)
    mc = mcscf.CASCI(mf, 6, 8).run(verbose=0)
    with (
        MRCI(mc, references=1e-3, comm=None) as theirs,
        water(references=1e-3) as ours,
        water(references=1e-3, roots=2) as more,
    ):
        assert 1 < len(ours.records.references) < 34
        np.testing.assert_array_equal(ours.records.references, theirs.records.references)
        assert set(more.records.references) > set(ours.records.references)
        assert ours.kernel() == pytest.approx(theirs.kernel(), abs=1e-9)
        assert -76.1160029238 < ours.e_tot < -76.1140770214
    with pytest.raises(OutcoreError, match="no configuration has a weight of 0"):
        water(references=0.9995)


def test_references_of_several_vectors():
    from pyscf import mcscf

    mc = mcscf.CASCI(mean_field(WATER), 4, 4)
    mc.fcisolver.nroots = 3
    mc.run(verbose=0)
    with MRCI(mc, references=0.3, comm=None) as several:
        found = set(several.records.references)
    for vector in mc.ci:
        mc.ci = vector
        with MRCI(mc, references=0.3, comm=None) as one:
            assert set(one.records.references) <= found
    assert len(found) > 1


def test_a_state_of_higher_spin_below_is_no_root():
    """If roots were the lowest states, the quartet of nitrogen, raised by the spin shift, would be the third
    doublet."""
    atom = mean_field("N 0 0 0", "cc-pvdz", "D2h", spin=3)
    given = {"frozen": 1, "inactive": 0, "active": 5, "spin": 1, "irrep": "Au", "roots": 3, "comm": None}
    found = []
    for shift in (0.05, 0.3):
        with MRCI.from_mean_field(atom, spin_shift=shift, **given) as ci:
            found.append(ci.kernel())
            assert [ci.spin_square(root) for root in range(3)] == pytest.approx([0.75] * 3, abs=1e-6)
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert found[0][2] > found[0][1] + 0.5


def test_a_root_of_another_spin_is_an_error(monkeypatch):
    monkeypatch.setattr(MRCI, "spin_square", lambda *_: 2.0)
    wanted = (
        r"root 1 has <S\^2> = 2\.0000, and not 0\.0000: .* below; raise the spin shift, which is 0\.05 Eh"
    )
    with water(functional="aqcc", residual=1e-2) as ci, pytest.raises(NotConverged, match=wanted):
        ci.kernel()
    with water(max_cycle=2) as ci:  # not judged before it has converged
        ci.kernel()
        assert not ci.converged


def test_references_of_a_file(tmp_path):
    path = tmp_path / "references"
    path.write_text("# the determinant of the SCF\n2 2 2 0 0 0\n")
    with n2(references=path) as one:
        assert len(one.records.references) == 1
        assert one.kernel() == pytest.approx(-109.0757, abs=2e-2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("# nothing\n", "it lists no reference"),
        ("22200\n", "line 1: '22200' has 5 orbitals; 6 are active"),
        ("222000\n221000", "line 2: '221000' has 5 electrons; 6 are active"),
        ("22200x", "more than the digits"),
    ],
)
def test_files_that_are_refused(tmp_path, text, message):
    path = tmp_path / "references"
    path.write_text(text)
    with pytest.raises(OutcoreError, match=message):
        n2(references=path)


def test_references_of_another_irrep_than_the_state(tmp_path):
    path = tmp_path / "references"
    path.write_text("222000\n")
    with (
        n2(references=path, irrep="B1u") as ci,
        pytest.raises(OutcoreError, match="have 0 states of irrep B1u"),
    ):
        ci.kernel()


def test_too_many_references(monkeypatch):
    monkeypatch.setattr(references, "MAX_REFERENCES", 100)
    with pytest.raises(
        OutcoreError, match="6 active orbitals have 141 configurations; at most 100"
    ) as caught:
        n2()
    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("settings", [{}, {"references": 1e-3}, {"with_integrals": False}])
def test_references_of_too_many_determinants(monkeypatch, settings):
    """Refused before integrals are made; by weight without a vector, the references to choose from count."""
    monkeypatch.setattr(reference_states, "MAX_DETERMINANTS", 50)
    monkeypatch.setattr(transform, "with_integrals", None)
    with pytest.raises(
        OutcoreError, match=r"\d determinants of the references; there may be 50.*in a vector of a CASCI"
    ) as caught:
        n2(**settings)
    assert caught.value.errno == errno.EFBIG


def test_determinants_of_a_vector_are_counted_when_they_are_chosen(monkeypatch):
    from pyscf import mcscf

    monkeypatch.setattr(reference_states, "MAX_DETERMINANTS", 3)
    mc = mcscf.CASCI(mean_field(WATER), 4, 4).run(verbose=0)
    with MRCI(mc, references=0.9, comm=None) as ci:
        assert len(ci.records.references) == 1
    with pytest.raises(OutcoreError, match="there may be 3"):
        MRCI(mc, references=1e-12, comm=None)


@pytest.mark.parametrize(("alpha", "beta"), [(3, 3), (4, 2), (6, 0), (5, 2)])
def test_determinants_are_counted_without_making_them(alpha, beta):
    every = configurations.every(range(6), alpha + beta)
    made = configurations.determinants(every, alpha, beta)
    assert configurations.count_determinants(every, alpha, beta) == len(made[0]) > 0
    assert configurations.count_determinants(every, alpha + 1, beta) == 0


@pytest.mark.parametrize("vector", [None, 7, [np.ones((6, 6)), None]])
def test_a_weight_needs_a_vector_of_the_casci_object(vector):
    from pyscf import mcscf

    mc = mcscf.CASCI(mean_field(WATER), 4, 4).run(verbose=0)
    mc.ci = vector
    with pytest.raises(OutcoreError, match="has no vectors that are arrays") as caught:
        MRCI(mc, references=0.9, comm=None)
    assert caught.value.errno == errno.EINVAL
    with MRCI(mc, comm=None) as ci:
        assert len(ci.records.references) > 1


def test_integrals_of_a_file(tmp_path):
    from pyscf.tools import fcidump

    path = str(tmp_path / "FCIDUMP")
    fcidump.from_scf(mean_field(WATER), path, tol=1e-15)
    with MRCI.from_fcidump(path, inactive=0, active=6, frozen=1, references="all", comm=None) as ci:
        found = ci.kernel()
    with MRCI.from_mean_field(
        mean_field(WATER), inactive=0, active=6, frozen=1, references="all", comm=None
    ) as ci:
        assert ci.kernel() == pytest.approx(found, abs=1e-9)


def test_functionals():
    """Against OpenMolcas; AQCC is its ACPF with another coefficient. Two electrons need no correction."""
    with n2(functional="acpf") as acpf, n2(functional="aqcc") as aqcc:
        assert acpf.kernel() == pytest.approx(-109.10315481, abs=4e-8)  # of OpenMolcas, with its bohr
        assert aqcc.kernel() == pytest.approx(-109.10144213, abs=4e-8)
    h2 = mean_field("H 0 0 0; H 0 0 1.2", "cc-pvdz")
    with (
        MRCI.from_mean_field(h2, inactive=0, active=2, functional="aqcc", comm=None) as aqcc,
        MRCI.from_mean_field(h2, inactive=0, active=2, comm=None) as ci,
    ):
        assert aqcc.kernel() == pytest.approx(ci.kernel(), abs=1e-9)


def test_corrections():
    with n2() as ci:
        ci.kernel()
        weight, found = ci.reference_weight(), ci.corrections()
        correlation = ci.e_tot - ci.e_reference
    assert weight == pytest.approx(0.94615, abs=1e-4)
    assert found.davidson == pytest.approx(correlation * (1 - weight))
    assert found.renormalised == pytest.approx(found.davidson / weight)
    assert found.davidson < found.pople < found.meissner < 0


def test_corrections_of_cisd():
    """Computed by hand, from the vector that PySCF finds."""
    from pyscf import ci as pyscf_ci

    theirs = pyscf_ci.CISD(mean_field(WATER)).run(conv_tol=1e-13)
    weight, energy, n = theirs.ci[0] ** 2, theirs.e_corr, 10
    with water(inactive=5, active=0, residual=1e-8) as ci:
        ci.kernel()
        found = ci.corrections()
    assert found.davidson == pytest.approx((1 - weight) * energy, abs=1e-8)
    assert found.renormalised == pytest.approx((1 / weight - 1) * energy, abs=1e-8)
    assert found.meissner == pytest.approx((1 / weight - 1) * energy * 8 * 7 / (10 * 9), abs=1e-8)
    cosine = 2 * weight - 1  # of twice the angle whose cosine is that of the reference
    square = 1 / cosine**2 - 1  # of its tangent
    pople = (np.sqrt(n**2 + 2 * n * square) - n) / (2 * (1 / cosine - 1)) - 1
    assert found.pople == pytest.approx(pople * energy, abs=1e-8)


def test_two_electrons_need_no_correction_of_pople_or_meissner():
    found = size_consistency.corrections(-0.04, 0.97, 2)
    assert found.pople == pytest.approx(0, abs=1e-14) and found.meissner == 0
    assert found.davidson == pytest.approx(-0.04 * 0.03)
    many = size_consistency.corrections(-0.04, 0.97, 10**8)
    assert many.meissner == pytest.approx(many.renormalised, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"active": 40}, "orbitals, but there are"),
        ({"inactive": 6}, "6 inactive orbitals for 5 alpha"),
        ({"inactive": 1, "active": 1}, "1 active orbitals cannot hold 4 alpha"),
        ({"spin": 1}, "10 electrons cannot have 2S = 1"),
        ({"irrep": "E"}, "irrep E"),
        ({"functional": "cepa"}, "is none of ci, acpf, aqcc"),
        ({"roots": 0}, "0 roots"),
        ({"couplings": "some"}, "couplings 'some' are none of all, interacting"),
        ({"couplings": "interacting", "error_bound": 1e-8}, "an error bound with interacting couplings"),
        ({"residual": 0.0}, "a residual of 0"),
        ({"spin_shift": -0.1}, "a spin shift of -0.1"),
        ({"min_weight": 1.5}, "a least weight of 1.5"),
        ({"references": 1.5}, "references of a weight of 1.5"),
    ],
)
def test_what_cannot_be(settings, message):
    with pytest.raises(OutcoreError, match=message):
        water(**settings)


def test_more_roots_than_references():
    with water(inactive=5, active=0, roots=2) as ci, pytest.raises(OutcoreError, match="have 1 states"):
        ci.kernel()


@pytest.mark.parametrize("read", [lambda ci: ci.e_tot, MRCI.spin_square, MRCI.make_rdm1, MRCI.corrections])
def test_states_before_the_search(read):
    with water() as ci, pytest.raises(OutcoreError, match=r"run kernel\(\) first"):
        read(ci)


@pytest.mark.parametrize(("atom", "spin", "irrep"), [("Be", 0, "Ag"), ("Be", 2, "B1u"), ("Li", 1, "Ag")])
def test_density_is_that_of_full_ci(atom, spin, irrep):
    """Without external orbitals; folded, and not."""
    from outcore.chem.ci import FCI

    mf = mean_field(f"{atom} 0 0 0", spin=spin % 2)
    with FCI(mf, spin=spin, irrep=irrep, residual=1e-7, comm=None) as full:
        full.kernel()
        wanted = full.make_rdm1()
    given = {"inactive": 0, "active": 9, "spin": spin, "irrep": irrep, "residual": 1e-7}
    with MRCI.from_mean_field(mf, comm=None, **given) as ci:
        ci.kernel()
        np.testing.assert_allclose(ci.make_rdm1(), wanted, atol=2e-6)


def test_density_of_electrons_of_one_spin():
    h2 = mean_field("H 0 0 0; H 0 0 1.2")
    given = {"inactive": 0, "active": 4, "spin": 2, "irrep": "B1u"}
    with MRCI.from_mean_field(h2, comm=None, **given) as ci:
        ci.kernel()
        assert ci.make_rdm1().trace() == pytest.approx(2)


def test_densities_of_both_spins_are_those_of_full_ci():
    """Without external orbitals."""
    from outcore.chem.ci import FCI

    mf = mean_field("Li 0 0 0", spin=1)
    with FCI(mf, residual=1e-7, comm=None) as full:
        full.kernel()
        wanted = full.make_rdm1s()
    with MRCI.from_mean_field(mf, comm=None, inactive=0, active=9, residual=1e-7) as ci:
        ci.kernel()
        found = ci.make_rdm1s()
    np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_density_over_functions_has_frozen_electrons():
    with water(frozen=1, inactive=4, active=0) as ci:
        ci.kernel()
        alpha, beta = ci.make_rdm1s(ao_repr=True)
        assert np.sum((alpha + beta) * ci.orbitals.mol.intor("int1e_ovlp")) == pytest.approx(10)
        assert ci.make_rdm1().trace() == pytest.approx(8)


def test_density_of_cisd():
    from pyscf import ci as pyscf_ci

    theirs = pyscf_ci.CISD(mean_field(WATER)).run(conv_tol=1e-13)
    with water(inactive=5, active=0, residual=1e-8) as ci:
        ci.kernel()
        found, natural = ci.make_rdm1(), ci.natural_orbitals()
    np.testing.assert_allclose(found, theirs.make_rdm1(), atol=1e-6)
    np.testing.assert_allclose(natural.occupations, np.linalg.eigvalsh(found)[::-1], atol=1e-12)
    assert natural.occupations.sum() == pytest.approx(10)
    assert natural.irreps.count("A1") == 7 and natural.coefficients.shape == (13, 13)
