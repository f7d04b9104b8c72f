"""QD-NEVPT2 against perturbers that are constructed one by one in the determinants of all orbitals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from outcore.base.errors import OutcoreError

pyscf = pytest.importorskip("pyscf")

from pyscf import ao2mo, fci, mcscf  # noqa: E402
from pyscf.fci import cistring  # noqa: E402

from outcore.chem.ci import FCISolver  # noqa: E402
from outcore.chem.nevpt2 import NEVPT2, QDNEVPT2  # noqa: E402

H6 = "H 0 0 0; H 0.1 0.9 0.2; H 1.3 0.2 -0.3; H 1.2 1.4 0.5; H -0.3 0.4 1.5; H 0.8 -0.5 1.4"
H7 = H6 + "; H 2.1 0.9 1.0"
WATER = "O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587"
LIH = "Li 0 0 0; H 0 0 1.6"


@pytest.fixture
def solver(tmp_path):
    made = []

    def make(mol, roots, spin=None, memory="2GB", comm=None):
        found = FCISolver(mol, comm=comm, threads=1, scratch=str(tmp_path), memory=memory)
        found.nroots, found.spin, found.conv_tol = roots, mol.spin if spin is None else spin, 1e-14
        made.append(found)
        return found

    yield make
    for each in made:
        each.close()
        each.world.close()


@cache
def mean_field(atom, basis="sto-3g", **given):
    return pyscf.M(atom=atom, basis=basis, verbose=0, **given).ROHF().run(conv_tol=1e-12)


def casci(mf, orbitals, electrons, solver, coefficients=None):
    mc = mcscf.CASCI(mf, orbitals, electrons)
    mc.verbose, mc.fcisolver = 0, solver
    mc.kernel(coefficients)
    return mc


class Determinants:
    """States of a CASCI in the determinants of all orbitals; outer orbitals are canonical for one of them."""

    def __init__(self, mc, vectors, root):
        mf, mo = mc._scf, mc.mo_coeff
        core, active, virtual = np.split(mo, [mc.ncore, mc.ncore + mc.ncas], axis=1)
        one = fci.direct_spin1.make_rdm1(vectors[root], mc.ncas, mc.nelecas)
        fock = mf.get_hcore() + mc.get_veff(mf.mol, 2 * core @ core.T + active @ one @ active.T)
        low, core = canonical(core, fock)
        high, virtual = canonical(virtual, fock)
        self.mo = np.hstack([core, active, virtual])
        self.n, self.core, self.active = self.mo.shape[1], mc.ncore, mc.ncas
        self.electrons = tuple(each + mc.ncore for each in mc.nelecas)
        self.h = self.mo.T @ mf.get_hcore() @ self.mo
        self.g = ao2mo.restore(1, ao2mo.kernel(mf.mol, self.mo), self.n)
        inside = slice(mc.ncore, mc.ncore + mc.ncas)
        self.h0, self.g0 = np.diag([*low, *np.zeros(mc.ncas), *high]), np.zeros_like(self.g)
        self.h0[inside, inside] = (
            active.T @ (mf.get_hcore() + mc.get_veff(mf.mol, 2 * core @ core.T)) @ active
        )
        self.g0[inside, inside, inside, inside] = self.g[inside, inside, inside, inside]
        strings = [cistring.make_strings(range(self.n), each) for each in self.electrons]
        self.outer = [
            np.array([[s >> p & 1 for p in self._outer_orbitals] for s in each]) for each in strings
        ]
        self.states = [self._embedded(each, strings, mc.nelecas) for each in vectors]

    @property
    def _outer_orbitals(self):
        return [p for p in range(self.n) if not self.core <= p < self.core + self.active]

    def _embedded(self, vector, strings, electrons):
        rows = []
        for spin, count in enumerate(electrons):
            inside = cistring.make_strings(range(self.active), count)
            full = [(int(s) << self.core) | ((1 << self.core) - 1) for s in inside]
            rows.append(np.searchsorted(strings[spin], full))
        found = np.zeros([len(each) for each in strings])
        found[np.ix_(*rows)] = vector.reshape([len(each) for each in rows])
        return found

    def times(self, h, g, vector):
        joined = fci.direct_spin1.absorb_h1e(h, g, self.n, self.electrons, 0.5)
        return fci.direct_spin1.contract_2e(joined, vector, self.n, self.electrons)

    def column(self, root):
        """The contributions of a state's perturbers to <n|H|root>."""
        products = [self.times(self.h, self.g, each) for each in self.states]
        occupations = self.outer[0][:, None] + self.outer[1][None, :]
        keys = occupations @ 3 ** np.arange(occupations.shape[2])
        reference = keys[tuple(np.argwhere(self.states[root])[0])]
        zero = np.vdot(self.states[root], self.times(self.h0, self.g0, self.states[root]))
        found = np.zeros(len(self.states))
        for key in np.unique(keys):
            perturber = np.where(keys == key, products[root], 0.0)
            norm = np.vdot(perturber, perturber)
            if key != reference and norm > 1e-14:
                above = np.vdot(perturber, self.times(self.h0, self.g0, perturber)) / norm - zero
                found -= [np.vdot(perturber, each) / above for each in products]
        return found


def canonical(coefficients, fock):
    energies, rotation = np.linalg.eigh(coefficients.T @ fock @ coefficients)
    return energies, coefficients @ rotation


def by_determinants(mc):
    """The columns of the effective Hamiltonian."""
    roots = mc.fcisolver.nroots
    solver = fci.addons.fix_spin(
        fci.direct_spin1.FCI(mc.mol), ss=(mc.fcisolver.spin / 2) * (mc.fcisolver.spin / 2 + 1)
    )
    other = mcscf.CASCI(mc._scf, mc.ncas, mc.nelecas)
    other.verbose, other.fcisolver = 0, solver
    solver.nroots, solver.conv_tol = roots, 1e-14
    other.kernel(mc.mo_coeff)
    np.testing.assert_allclose(other.e_tot, mc.e_tot, atol=1e-9)
    vectors = [np.asarray(each) for each in other.ci]
    found = np.diag(mc.e_tot)
    for m in range(roots):
        found[:, m] += Determinants(other, vectors, m).column(m)
    return found


@pytest.mark.parametrize(
    ("given", "orbitals", "electrons", "roots"),
    [
        ({"atom": H6}, 2, 2, 3),  # all singlets
        ({"atom": H7, "charge": 1}, 3, 4, 3),
        ({"atom": H7, "spin": 1}, 3, 3, 3),  # doublets
        ({"atom": H6, "spin": 2}, 3, 4, 3),  # triplets
        ({"atom": H6}, 4, 6, 2),  # no core
        ({"atom": H6}, 4, 2, 3),  # no virtual orbital
        ({"atom": H7, "charge": 2, "spin": 1}, 3, 1, 3),  # one electron
    ],
)
def test_columns_are_those_of_perturbers_in_all_determinants(solver, given, orbitals, electrons, roots):
    mf = mean_field(**given)
    mc = casci(mf, orbitals, electrons, solver(mf.mol, roots))
    expected = by_determinants(mc)
    found = QDNEVPT2(mc)
    energies = found.kernel()
    assert abs(expected - np.diag(np.diag(expected))).max() > 1e-4
    np.testing.assert_allclose(abs(found.columns), abs(expected), atol=1e-10)
    np.testing.assert_allclose(energies, np.linalg.eigvalsh((expected + expected.T) / 2), atol=1e-10)


def test_diagonal_is_that_of_each_state(solver):
    mf = mean_field(WATER, "6-31g")
    mc = casci(mf, 4, 4, solver(mf.mol, 3))
    given = {"frozen": "auto", "frozen_virtual": 1}
    found = QDNEVPT2(mc, **given)
    energies = found.kernel()
    alone = [NEVPT2(mc, root, **given) for root in range(3)]
    np.testing.assert_allclose(
        found.e_roots, [mc.e_tot[k] + each.kernel() for k, each in enumerate(alone)], atol=1e-11
    )
    assert found.e_classes[1] == pytest.approx(alone[1].e_classes, abs=1e-11)
    assert sum(energies) == pytest.approx(sum(found.e_roots), abs=1e-11)
    np.testing.assert_allclose(
        found.mixing @ np.diag(energies) @ found.mixing.T, found.hamiltonian, atol=1e-10
    )


def test_rotations_of_active_orbitals_change_nothing(solver):
    mf = mean_field(H7, charge=1)
    mc = casci(mf, 3, 4, solver(mf.mol, 2))
    expected = QDNEVPT2(mc).kernel()
    rotation = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))[0]
    mo = mf.mo_coeff.copy()
    mo[:, 1:4] = mo[:, 1:4] @ rotation
    np.testing.assert_allclose(QDNEVPT2(casci(mf, 3, 4, solver(mf.mol, 2), mo)).kernel(), expected, atol=1e-9)


def test_symmetry_of_vectors_changes_nothing(solver):
    found = []
    for symmetry in (False, "C2v"):
        mf = mean_field(LIH, "6-31g", symmetry=symmetry)
        ours = solver(mf.mol, 2)
        if symmetry:
            ours.wfnsym = "A1"
        found.append(QDNEVPT2(casci(mf, 2, 2, ours)))
        found[-1].kernel()
    np.testing.assert_allclose(found[1].e_tot, found[0].e_tot, atol=1e-9)
    np.testing.assert_allclose(abs(found[1].columns), abs(found[0].columns), atol=1e-9)
    assert abs(found[1].columns[0, 1]) > 1e-4


def test_states_of_two_irreps_do_not_mix_without_symmetry_either(solver):
    """For water; with symmetry the states come from two solvers."""
    mf = mean_field(WATER, "6-31g")
    mc = casci(mf, 4, 4, solver(mf.mol, 2))
    found = QDNEVPT2(mc)
    energies = found.kernel()
    assert abs(found.columns[0, 1]) < 1e-9
    symmetric = mean_field(WATER, "6-31g", symmetry=True)
    solvers = [solver(symmetric.mol, 1), solver(symmetric.mol, 1)]
    solvers[0].wfnsym, solvers[1].wfnsym = "A1", "B1"
    other = mcscf.CASCI(symmetric, 4, 4)
    other.verbose = 0
    other = mcscf.state_average_mix(other, solvers, [0.5, 0.5])
    other.kernel()
    mixed = QDNEVPT2(other)
    np.testing.assert_allclose(mixed.kernel(), energies, atol=1e-8)
    assert mixed.columns[0, 1] == 0.0


def test_states_of_several_spins_mix_with_their_own(solver):
    mf = mean_field(H6)
    solvers = [solver(mf.mol, 2), solver(mf.mol, 1, spin=2)]
    mc = mcscf.CASCI(mf, 2, 2)
    mc.verbose = 0
    mc = mcscf.state_average_mix(mc, solvers, [0.3, 0.3, 0.4])
    mc.kernel()
    found = QDNEVPT2(mc)
    energies = found.kernel()
    singlets = QDNEVPT2(casci(mf, 2, 2, solver(mf.mol, 2))).kernel()
    np.testing.assert_allclose(energies, np.sort([*singlets, found.e_roots[2]]), atol=1e-9)
    assert not found.columns[2, :2].any() and not found.columns[:2, 2].any()
    assert abs(found.columns[0, 1]) > 1e-4


def test_states_may_be_of_calculations_of_their_own(solver):
    """Such as states after a rotation of orbitals."""
    mf = mean_field(H7, charge=1)
    mc = casci(mf, 3, 4, solver(mf.mol, 2))
    expected = QDNEVPT2(mc).kernel()
    mc.ci = [mc.fcisolver.transform_ci_for_orbital_rotation(each, 3, 4, np.eye(3)) for each in mc.ci]
    assert mc.ci[0].ci is not mc.ci[1].ci
    np.testing.assert_allclose(QDNEVPT2(mc).kernel(), expected, atol=1e-10)


def test_lithium_fluoride_has_one_avoided_crossing(solver):
    """SC-NEVPT2 of the averaged states inverts their order between the crossing of the CASSCF and its own."""
    found, start = [], None
    for distance in (4.0, 4.5, 5.5, 6.5):
        mol = pyscf.M(atom=f"Li 0 0 0; F 0 0 {distance}", basis="6-31+g*", symmetry="C2v", verbose=0)
        mc = mcscf.CASSCF(mol.RHF().run(), 2, 2)
        mc.verbose, mc.fcisolver = 0, solver(mol, 2)
        mc.fcisolver.wfnsym = "A1"
        mc = mc.state_average([0.5, 0.5])
        mc.kernel(None if start is None else mcscf.project_init_guess(mc, start[0], prev_mol=start[1]))
        found.append(QDNEVPT2(mc, frozen="auto"))
        found[-1].on_warning = lambda line: None
        found[-1].kernel()
        start = mc.mo_coeff, mol
    assert [each.e_roots[0] < each.e_roots[1] for each in found] == [True, False, False, True]
    ionic = [abs(each.mixing[:, 0]).argmax() for each in found]
    assert ionic == [0, 1, 1, 0]  # the lower state goes on as the lower one
    energies = np.array([each.e_tot for each in found])
    assert np.all(np.diff(energies[:, 0]) > 0) and np.all(energies[:, 1] - energies[:, 0] > 0)


def test_fitted_integrals_on_disk_give_the_same(solver):
    mf = pyscf.M(atom=H7, basis="6-31g", charge=1, verbose=0).RHF().density_fit().run(conv_tol=1e-12)
    mc = casci(mf, 3, 4, solver(mf.mol, 2))
    expected = QDNEVPT2(mc).kernel()
    np.testing.assert_allclose(QDNEVPT2(mc, storage="disk").kernel(), expected, atol=1e-11)


def test_what_cannot_be_treated_is_refused_by_name(solver):
    mf = mean_field(LIH)
    one = casci(mf, 2, 2, solver(mf.mol, 1))
    with pytest.raises(OutcoreError, match="1 state mixes with none; take NEVPT2"):
        QDNEVPT2(one)
    mc = casci(mf, 2, 2, solver(mf.mol, 2))
    with pytest.raises(OutcoreError, match="screening has no effect"):
        QDNEVPT2(mc, screening=1e-9)
    with pytest.raises(TypeError, match="root"):
        QDNEVPT2(mc, root=1)
    with pytest.raises(OutcoreError, match=r"need at least [\d.]+ MB more"):
        QDNEVPT2(mc, memory="1MB").kernel()
    first = solver(mf.mol, 1)
    second = solver(mf.mol, 1, comm=first.world)
    for others, message in (
        ([first, second], "overlap by"),
        ([first, solver(mf.mol, 1)], "different worlds or spaces"),
    ):
        twice = mcscf.state_average_mix(mcscf.CASCI(mf, 2, 2), others, [0.5, 0.5])
        twice.verbose = 0
        twice.kernel()
        with pytest.raises(OutcoreError, match=message):
            QDNEVPT2(twice)


def test_progress_and_warnings_name_the_root(solver):
    mf = mean_field(LIH)
    found = QDNEVPT2(casci(mf, 2, 2, solver(mf.mol, 2)))
    parts = set()
    found.on_progress = lambda part, fraction: parts.add(part.split(":")[0])
    found.kernel()
    assert parts == {"root 1", "root 2"}
