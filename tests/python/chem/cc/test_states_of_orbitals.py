"""States with Cholesky integrals, with frozen virtual orbitals and of ROHF: beside PySCF's with exact integrals,
and beside full CI of two electrons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cc_support import AMINO, WATER, mean_field, open_mean_field
from eom_support import TIGHT

from outcore.chem.cc import CCSD

Values = np.ndarray[Any, np.dtype[Any]]

CLOSED = pytest.mark.parametrize(
    ("name", "of_peer"),
    [
        ("eomee_ccsd_singlet", "EOMEESinglet"),
        pytest.param("eomee_ccsd_triplet", "EOMEETriplet", marks=pytest.mark.long),
        pytest.param("ipccsd", "EOMIP", marks=pytest.mark.long),
        pytest.param("eaccsd", "EOMEA", marks=pytest.mark.long),
    ],
)
OPEN = pytest.mark.parametrize(
    ("name", "of_peer"),
    [
        pytest.param("eomee_ccsd", "EOMEESpinKeep", marks=pytest.mark.long),
        ("eomsf_ccsd", "EOMEESpinFlip"),
        ("ipccsd", "EOMIP"),
        pytest.param("eaccsd", "EOMEA", marks=pytest.mark.long),
    ],
)
OUTER = 5
"""Frozen virtual orbitals, the highest of 13."""


def made(mf: Any, frozen: Any = 1, **settings: Any) -> CCSD:
    """A calculation whose ladder has double precision."""
    given = {"memory": "1GB", "threads": 1, "ladder": "rebuild", **TIGHT, **settings}
    cc = CCSD(mf, frozen, comm=None, **given)
    cc.kernel()
    return cc


def peer_of(mf: Any, frozen: Any) -> Any:
    from pyscf import cc

    found = cc.CCSD(mf, frozen=frozen)
    found.conv_tol, found.conv_tol_normt, found.max_cycle = 1e-12, 1e-10, 100
    found.kernel()
    return found


def energies_of(peer: Any, name: str, roots: int = 2) -> Values:
    """Energies of PySCF's EOM class of this name. It computes more states, as it may miss some of the lowest."""
    from pyscf.cc import eom_rccsd, eom_uccsd

    eom = getattr(eom_uccsd if isinstance(peer.t1, tuple) else eom_rccsd, name)(peer)
    eom.conv_tol, eom.max_cycle = 1e-11, 200
    found: Values = np.sort(np.hstack(eom.kernel(nroots=roots + 1)[0]))[:roots]
    return found


def check(cc: CCSD, name: str, expected: Values, within: float = 1e-8) -> None:
    energies, states = getattr(cc, name)(nroots=len(expected), residual=1e-9)
    assert states.converged.all()
    assert abs(energies - expected).max() < within


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "6-31g")


# ---- Cholesky integrals ----


@pytest.fixture(scope="module")
def closed(water: Any) -> Any:
    """PySCF's amplitudes, and ours with tightly decomposed integrals."""
    with made(water, integrals="cholesky", tolerance=1e-11) as cc:
        assert "Cholesky" in cc.summary()
        yield peer_of(water, 1), cc


@CLOSED
def test_states_of_closed_shells_with_cholesky_integrals(closed: Any, name: str, of_peer: str) -> None:
    peer, cc = closed
    check(cc, name, energies_of(peer, of_peer))


def test_energies_are_as_wrong_as_the_decomposition(closed: Any, water: Any) -> None:
    with made(water, integrals="cholesky", tolerance=1e-4) as cc:
        energies, _ = cc.eomee_ccsd_singlet(nroots=2, residual=1e-9)
    errors = abs(energies - energies_of(closed[0], "EOMEESinglet"))
    assert 1e-7 < errors.max() < 1e-3


@pytest.fixture(scope="module")
def opened(amino: Any) -> Any:
    """As `closed`, for open shells with few virtual orbitals."""
    n = amino.mol.nao
    frozen = [0, *range(n - OUTER, n)]
    with made(amino, frozen_virtual=OUTER, integrals="cholesky", tolerance=1e-11) as cc:
        yield peer_of(amino, [frozen, frozen]), cc


@OPEN
def test_states_of_open_shells_with_cholesky_integrals_and_frozen_virtual_orbitals(
    opened: Any, name: str, of_peer: str
) -> None:
    peer, cc = opened
    check(cc, name, energies_of(peer, of_peer))


# ---- frozen virtual orbitals ----


@pytest.fixture(scope="module")
def truncated(water: Any) -> Any:
    """PySCF's amplitudes and ours, without three of the virtual orbitals, one of which is not among the highest."""
    with made(water, [0, 6, 11, 12]) as cc:
        yield peer_of(water, [0, 6, 11, 12]), cc


@CLOSED
def test_states_with_frozen_virtual_orbitals(truncated: Any, name: str, of_peer: str) -> None:
    peer, cc = truncated
    check(cc, name, energies_of(peer, of_peer))


def test_a_number_of_frozen_virtual_orbitals_is_a_list_of_the_highest(water: Any) -> None:
    expected = energies_of(peer_of(water, [0, 11, 12]), "EOMEESinglet")
    with made(water, frozen_virtual=2) as cc:
        check(cc, "eomee_ccsd_singlet", expected)


def test_orbitals_are_named_by_their_numbers_among_all(truncated: Any) -> None:
    """The lowest singlet goes from orbital 5 to 6, the second to 8, as 7 is frozen."""
    from pyscf.cc import eom_rccsd

    peer, cc = truncated
    active = [1, 2, 3, 4, 5, 7, 8, 9, 10]
    _, vectors = eom_rccsd.EOMEESinglet(peer).kernel(nroots=2)
    _, states = cc.eomee_ccsd_singlet(nroots=2, residual=1e-5)
    o = peer.nocc
    for root, vector in enumerate(vectors):
        singles = peer.vector_to_amplitudes(vector)[0]
        i, a = np.unravel_index(abs(singles).argmax(), singles.shape)
        assert f"excitation {active[i] + 1} -> {active[o + a] + 1} " in states.character(root)


def test_moments_of_two_correlated_electrons_are_those_of_full_ci_in_their_orbitals() -> None:
    """One orbital is frozen inside, three outside; the ghost leaves no symmetry."""
    import pyscf
    from pyscf import fci, mcscf

    atoms = "Li 0 0 0; H 0 0 1.6; ghost-H 0.9 0.4 0.8"
    mf = pyscf.M(atom=atoms, basis="6-31g", verbose=0).RHF().run(conv_tol=1e-13)
    n, roots = mf.mol.nao - 4, 2
    with made(mf, 1, frozen_virtual=3) as cc:
        energies, states = cc.eomee_ccsd_singlet(nroots=roots, residual=1e-9)
        found = states.properties()
    space, solver = mcscf.CASCI(mf, n, 2), fci.direct_spin0.FCI()
    h, _ = space.get_h1eff()
    every, vectors = solver.kernel(h, space.get_h2eff(), n, 2, nroots=roots + 2, tol=1e-13)
    assert energies == pytest.approx(np.array(every[1 : roots + 1]) - every[0], abs=1e-8)
    inside, c = mf.mo_coeff[:, :1], mf.mo_coeff[:, 1 : n + 1]
    r = mf.mol.intor("int1e_r")
    fixed = mf.mol.atom_charges() @ mf.mol.atom_coords() - 2 * np.einsum("xmn,mi,ni->x", r, inside, inside)
    mu = -np.einsum("xmn,mp,nq->xpq", r, c, c)

    def moment(one: int, other: int) -> Values:
        made: Values = np.einsum("xpq,pq->x", mu, solver.trans_rdm1(vectors[one], vectors[other], n, 2))
        return made

    assert found.ground_dipole == pytest.approx(fixed + moment(0, 0), abs=1e-7)
    for root in range(roots):
        assert found.dipoles[root] == pytest.approx(fixed + moment(root + 1, root + 1), abs=1e-6)
        up = moment(0, root + 1)
        assert found.oscillator_strengths[root] == pytest.approx(2 / 3 * energies[root] * up @ up, abs=1e-7)
    between = moment(1, 2)
    gap = energies[1] - energies[0]
    assert found.strengths_from_lowest[1] == pytest.approx(2 / 3 * gap * between @ between, abs=1e-7)


# ---- ROHF ----


@pytest.fixture(scope="module")
def high_spin() -> Any:
    return open_mean_field("ROHF", AMINO, "sto-3g")


@pytest.fixture(scope="module")
def whole_shell(high_spin: Any) -> Any:
    """PySCF's amplitudes of both spins in the orbitals of ROHF, and ours."""
    with made(high_spin, 0) as cc:
        yield peer_of(high_spin, None), cc


@OPEN
def test_states_of_rohf(whole_shell: Any, name: str, of_peer: str) -> None:
    peer, cc = whole_shell
    check(cc, name, energies_of(peer, of_peer))


@pytest.mark.parametrize(
    ("name", "of_peer"),
    [pytest.param("eomee_ccsd", "EOMEESpinKeep", marks=pytest.mark.long), ("ipccsd", "EOMIP")],
)
def test_states_of_rohf_with_a_frozen_core(high_spin: Any, name: str, of_peer: str) -> None:
    """PySCF freezes orbitals of ROHF as they are."""
    expected = energies_of(peer_of(high_spin, 1), of_peer)
    with made(high_spin, orbitals="standard") as cc:
        check(cc, name, expected)
