"""States of open shells: beside PySCF's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cc_support import AMINO, WATER, mean_field, open_mean_field
from eom_support import TIGHT

from outcore import OutcoreError
from outcore.chem.cc import CCSD

Values = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "6-31g")


@pytest.fixture(scope="module")
def peer(amino: Any) -> Any:
    from pyscf import cc

    found = cc.UCCSD(amino, frozen=1)
    found.conv_tol, found.conv_tol_normt, found.max_cycle = 1e-12, 1e-10, 100
    found.kernel()
    return found


def made(mf: Any, **settings: Any) -> CCSD:
    return CCSD(mf, 1, comm=None, **{"memory": "2GB", "threads": 1, **TIGHT, **settings})


@pytest.fixture(scope="module")
def ground(amino: Any) -> Iterator[CCSD]:
    """The object whose amplitudes have converged, the same for all tests."""
    with made(amino) as cc:
        cc.kernel()
        yield cc


KINDS = pytest.mark.parametrize(
    ("name", "of_peer", "roots"),
    [
        ("eomee_ccsd", "EOMEESpinKeep", 2),
        ("eomsf_ccsd", "EOMEESpinFlip", 2),
        ("ipccsd", "EOMIP", 2),
        ("eaccsd", "EOMEA", 2),
    ],
)


@KINDS
def test_states_are_those_of_pyscf(ground: CCSD, peer: Any, name: str, of_peer: str, roots: int) -> None:
    from pyscf.cc import eom_uccsd

    eom = getattr(eom_uccsd, of_peer)(peer)
    eom.conv_tol, eom.max_cycle = 1e-11, 200
    expected = np.sort(np.hstack(eom.kernel(nroots=roots)[0]))[:roots]
    energies, states = getattr(ground, name)(nroots=roots, residual=1e-8)
    assert states.converged.all()
    assert abs(energies - expected).max() < 1e-8


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("ee", marks=pytest.mark.long),
        "sf",
        pytest.param("ip", marks=pytest.mark.long),
        pytest.param("ea", marks=pytest.mark.long),
    ],
)
def test_places_of_arrays_make_no_difference(kind: str) -> None:
    mf = open_mean_field("UHF", AMINO, "sto-3g")
    found = []
    for settings in ({}, {"storage": "disk", "block": 2}):
        with made(mf, ladder="rebuild", **settings) as cc:
            cc.kernel()
            found.append(cc.states(kind, nroots=2, residual=1e-10).energies)
    assert abs(found[1] - found[0]).max() < 1e-9


def test_closed_shells_of_two_spins_have_singlets_and_triplets() -> None:
    mf = mean_field(WATER, "sto-3g")
    with made(mf) as cc:
        cc.kernel()
        expected = [cc.states("ee", multiplicity=m, residual=1e-9).energies[0] for m in (1, 3)]
        ions = cc.states("ip", nroots=2, residual=1e-9).energies
    with made(mf.to_uhf()) as cc:
        cc.kernel()
        assert abs(np.sort(expected) - cc.states("ee", nroots=2, residual=1e-8).energies).max() < 1e-8
        assert abs(np.repeat(ions, 2) - cc.states("ip", nroots=4, residual=1e-8).energies).max() < 1e-8


def test_pairs_of_electrons_that_one_virtual_orbital_has_no_room_for_are_no_states() -> None:
    from pyscf import cc as peers
    from pyscf.cc import eom_uccsd

    mf = open_mean_field("UHF", ("N 0 0 0; H 0 0 1.04", 0, 2), "sto-3g")  # one virtual orbital of alpha
    peer = peers.UCCSD(mf, frozen=1)
    peer.conv_tol, peer.conv_tol_normt = 1e-12, 1e-10
    peer.kernel()
    multiply, diagonal = eom_uccsd.EOMEESpinKeep(peer).gen_matvec()
    matrix = np.array([multiply([column])[0] for column in np.eye(diagonal.size)]).T
    expected = np.sort(np.linalg.eigvals(matrix).real)[:3]
    with made(mf) as cc:
        cc.kernel()
        assert abs(cc.eomee_ccsd(nroots=3, residual=1e-8)[0] - expected).max() < 1e-8


@pytest.mark.parametrize(
    "kind",
    [
        "ee",
        pytest.param("sf", marks=pytest.mark.long),
        pytest.param("ip", marks=pytest.mark.long),
        pytest.param("ea", marks=pytest.mark.long),
    ],
)
def test_what_rounding_adds_that_is_no_state_is_removed(kind: str) -> None:
    """H takes it to nothing: a search would find it as a state of the energy 0."""
    random = np.random.default_rng(1)
    with made(open_mean_field("UHF", AMINO, "sto-3g"), block=2) as cc:
        cc.kernel()
        states = cc.states(kind, nroots=1, residual=1e-1)
        equations: Any = states.equations
        (vector,) = states.vectors
        for array in vector.doubles:
            for tile in array.layout.stored:
                array.put_tile(tile, random.normal(size=array.layout.tile_shape(tile)))
        equations.project(vector.doubles)
        for (a, i, b, j), array in zip(equations.kind.doubles, vector.doubles, strict=True):
            found = array.to_numpy()
            assert abs(found).max() > 0.1
            if i == j:
                assert found == pytest.approx(-found.transpose(0, 3, 2, 1), abs=1e-14)
            if a == b:
                assert found == pytest.approx(-found.transpose(2, 1, 0, 3), abs=1e-14)


def test_a_state_of_another_symmetry_below_those_of_the_first_start_vectors_is_found() -> None:
    """Attachment to the singly occupied orbital, whose orbital energy lies above those of two others."""
    mf = open_mean_field("UHF", ("Be 0 0 0; H 0 0 1.34", 0, 1), "sto-3g")
    with CCSD(mf, 0, comm=None, memory="1GB", threads=1) as cc:
        cc.kernel()
        energy, _ = cc.eaccsd(nroots=1, residual=1e-6)
    assert energy == pytest.approx(0.16352, abs=1e-5)  # of all eigenvalues of PySCF's matrix


def test_orbitals_are_named_with_their_spins(ground: CCSD) -> None:
    assert "a -> 5b" in ground.states("sf", nroots=1, residual=1e-2).character(0)


def test_a_multiplicity_of_open_shells_is_refused(ground: CCSD) -> None:
    with pytest.raises(OutcoreError, match="UHF reference"):
        ground.eomee_ccsd_triplet()


def test_spins_of_closed_shells_are_not_flipped() -> None:
    with made(mean_field(WATER, "sto-3g")) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="high-spin"):
            cc.eomsf_ccsd()


def test_a_spin_without_correlated_orbitals_is_refused() -> None:
    with made(open_mean_field("UHF", ("Li 0 0 0; H 0 0 1.6", 0, 2), "sto-3g")) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="of one spin nothing is correlated") as caught:
            cc.eaccsd()
    assert caught.value.errno == errno.ENOTSUP
