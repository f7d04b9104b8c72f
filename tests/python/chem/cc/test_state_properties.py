"""Left vectors, moments and densities of excited singlets: beside full CI of two electrons, and beside
exp(-T) H exp(T) in the space of all determinants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import mean_field
from eom_support import TIGHT, Determinants, dense_matrix

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.excited import describe
from outcore.chem.cc.inherited import Inherited
from outcore.chem.cc.keep.kept_states import KeptStates
from outcore.chem.cc.plan import assembly
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]

FOUR = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2"
PLACES: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk": {"storage": "disk", "ladder": "disk", "block": 1},
}
LOOSE = {"conv_tol": 1e-5, "conv_tol_normt": 1e-4}


@pytest.fixture(scope="module")
def four() -> Any:
    """Four electrons without symmetry."""
    return mean_field(FOUR, "sto-3g")


def start(mf: Any, frozen: int = 0, **settings: Any) -> CCSD:
    given: dict[str, Any] = {"memory": "1GB", "threads": 1, **TIGHT, **settings}
    cc = CCSD(mf, frozen, comm=None, **given)
    cc.kernel()
    return cc


Ground = Callable[[str], CCSD]
"""Of a place of arrays: the object whose amplitudes have converged, the same for all tests."""


@pytest.fixture(scope="module")
def ground(four: Any) -> Iterator[Ground]:
    with ExitStack() as stack:
        yield cache(lambda place: stack.enter_context(start(four, **PLACES[place])))


@pytest.fixture(scope="module")
def determinants(four: Any, ground: Ground) -> Determinants:
    return Determinants(four, *ground("memory").amplitudes())


def test_products_from_the_left_are_the_transpose(ground: Ground) -> None:
    cc = ground("memory")
    states = cc.eomee_ccsd_singlet(residual=1e-3)[1]
    right, places = dense_matrix(states.equations)
    inherited = Inherited(cc)
    room = inherited.room(inherited.plan(partial(describe.left, kind="ee", roots=1, vectors=4)))
    focks = [spin.fock for spin in cc.spins]
    products = assembly.left_states("ee", room, focks, cc.singles, [], is_stored=inherited.is_stored)
    cc.replace_room(room, products.of.of)
    left, _ = dense_matrix(products)
    weights = np.array([1.0] * (len(right) - len(places)) + [len(each) for each in places])
    assert abs(weights[:, None] * right - (weights[:, None] * left).T).max() < 1e-12


def _moments(mf: Any) -> Values:
    c = mf.mo_coeff
    found: Values = -np.einsum("xmn,mp,nq->xpq", mf.mol.intor("int1e_r"), c, c)
    return found


@pytest.mark.parametrize("place", [pytest.param("memory", marks=pytest.mark.long), "disk"])
def test_densities_are_those_of_all_determinants(
    four: Any, ground: Ground, determinants: Determinants, place: str
) -> None:
    energies, states = ground(place).eomee_ccsd_singlet(nroots=2, residual=1e-8)
    found = states.properties()
    c, overlap = four.mo_coeff, four.get_ovlp()
    assert abs(energies - determinants.energies[:2]).max() < 1e-7
    mu = _moments(four)
    for root in range(2):
        up, down = determinants.density(root + 1, 0), determinants.density(0, root + 1)
        strength = np.einsum("xpq,pq->x", mu, up) @ np.einsum("xpq,pq->x", mu, down)
        expected = 2 / 3 * determinants.energies[root] * strength
        assert found.oscillator_strengths[root] == pytest.approx(expected, abs=1e-7)
        sides = np.array([up.ravel(), down.T.ravel()])  # of unknown norms, the product of which is known
        shares, *_ = np.linalg.lstsq(sides.T, found.transition_density(root).ravel(), rcond=None)
        assert abs(shares @ sides - found.transition_density(root).ravel()).max() < 1e-6
        assert np.prod(shares) == pytest.approx(0.25, abs=1e-5)
        of_state = determinants.density(root + 1, root + 1)
        inverse = c.T @ overlap
        made = inverse @ found.state_density(root) @ inverse.T
        assert abs(made - 0.5 * (of_state + of_state.T)).max() < 1e-6
    assert found.ground_dipole == pytest.approx(
        four.mol.atom_charges() @ four.mol.atom_coords()
        + np.einsum("xpq,pq->x", mu, determinants.density(0, 0)),
        abs=1e-7,
    )


def test_two_electrons_are_those_of_full_ci() -> None:
    import pyscf
    from pyscf import ao2mo, fci

    mol = pyscf.M(atom="He 0 0 0; H 0 0 0.9", charge=1, basis="6-31g", verbose=0)
    mf = mol.RHF().run(conv_tol=1e-13)
    with start(mf) as cc:
        energies, states = cc.eomee_ccsd_singlet(nroots=2, residual=1e-9)
        found = states.properties()
    n, c = mol.nao, mf.mo_coeff
    solver = fci.direct_spin0.FCI()
    every, vectors = solver.kernel(c.T @ mf.get_hcore() @ c, ao2mo.kernel(mol, c), n, 2, nroots=3, tol=1e-13)
    z = -np.einsum("mn,mp,nq->pq", mol.intor("int1e_r")[2], c, c)
    nuclei = (mol.atom_charges() @ mol.atom_coords())[2]
    assert energies == pytest.approx(np.array(every[1:]) - every[0], abs=1e-8)
    for root, vector in enumerate(vectors[1:]):
        moment = np.vdot(z, solver.trans_rdm1(vectors[0], vector, n, 2))
        strength = 2 / 3 * energies[root] * moment**2
        assert found.oscillator_strengths[root] == pytest.approx(strength, abs=1e-7)
        dipole = nuclei + np.vdot(z, solver.make_rdm1(vector, n, 2))
        assert found.dipoles[root] == pytest.approx([0, 0, dipole], abs=1e-7)
    assert found.ground_dipole[2] == pytest.approx(
        nuclei + np.vdot(z, solver.make_rdm1(vectors[0], n, 2)), abs=1e-7
    )


def test_frozen_orbitals_are_part_of_the_dipole_moment() -> None:
    with start(mean_field("Li 0 0 0; H 0 0 1.6", "sto-3g"), 1, **LOOSE) as cc:
        found = cc.eomee_ccsd_singlet(residual=1e-3)[1].properties()
        density = cc.make_rdm1(ao_repr=True)
        mol = cc.mol
    expected = mol.atom_charges() @ mol.atom_coords() - np.einsum("xmn,mn->x", mol.intor("int1e_r"), density)
    assert found.ground_dipole == pytest.approx(expected, abs=1e-9)
    total = np.vdot(found.state_density(0), mol.intor("int1e_ovlp"))
    assert total == pytest.approx(mol.nelectron, abs=1e-9)


@pytest.mark.long
def test_a_search_for_left_vectors_goes_on(
    four: Any, determinants: Determinants, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception):
        pass

    def stop(found: Any) -> None:
        if found.number == 2:
            raise Stopped

    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with start(four, checkpoint=tmp_path / "kept") as cc:
        states = cc.eomee_ccsd_singlet(residual=1e-7)[1]
        with pytest.raises(Stopped):
            states.properties(stop)
    brought = list[int]()
    right = KeptStates.bring

    def bring(self: KeptStates, room: Any, number: int, *given: Any) -> Any:
        found = right(self, room, number, *given)
        if found is not None:
            brought.append(number)
        return found

    with start(four, checkpoint=tmp_path / "kept") as cc:
        states = cc.eomee_ccsd_singlet(residual=1e-7)[1]
        monkeypatch.setattr(KeptStates, "bring", bring)
        found = states.properties()
    assert brought
    up, down = determinants.density(1, 0), determinants.density(0, 1)
    mu = _moments(four)
    strength = np.einsum("xpq,pq->x", mu, up) @ np.einsum("xpq,pq->x", mu, down)
    assert found.oscillator_strengths[0] == pytest.approx(2 / 3 * states.energies[0] * strength, abs=1e-6)


def test_states_have_properties_until_another_calculation(ground: Ground) -> None:
    cc = ground("memory")
    first, second = (cc.eomee_ccsd_singlet(residual=1e-2)[1] for _ in range(2))
    assert second.properties() is second.properties()
    with pytest.raises(OutcoreError, match="given back"):
        first.properties()


def test_states_that_have_not_converged_have_no_properties(ground: Ground) -> None:
    early = ground("memory").eomee_ccsd_singlet(max_cycle=1)[1]
    with pytest.raises(OutcoreError, match="root 1 has not converged"):
        early.properties()


def test_states_after_triples_have_no_properties(four: Any) -> None:
    with start(four, **LOOSE) as cc:
        cc.ccsd_t()
        states = cc.eomee_ccsd_singlet(residual=1e-2)[1]
        with pytest.raises(OutcoreError, match="after ccsd_t"):
            states.properties()
