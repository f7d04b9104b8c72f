"""Left vectors, densities and Dyson orbitals of ions, triplets and states of open shells: beside exp(-T) H exp(T)
in the space of all determinants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import mean_field, open_mean_field
from eom_support import TIGHT, dense_matrix
from fock_space import FockSpace

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.excited import describe
from outcore.chem.cc.inherited import Inherited
from outcore.chem.cc.keep.kept_states import KeptStates
from outcore.chem.cc.plan import assembly
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]

FOUR = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2"
FIVE = ("H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2; H 1.8 0.9 0.4", 0, 1)
THREE = ("H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0", 0, 1)
GHOSTS = "GHOST-H 1.0 0.1 0; GHOST-H 0.9 0.2 1.2"
DISK = {"storage": "disk", "ladder": "disk", "block": 1}
PLACES: dict[str, dict[str, Any]] = {"memory": {}, "disk": DISK}
ON_DISK_LONG = pytest.mark.parametrize("place", ["memory", pytest.param("disk", marks=pytest.mark.long)])
CORE = (0,)


@pytest.fixture(scope="module")
def four() -> Any:
    """Four electrons without symmetry."""
    return mean_field(FOUR, "sto-3g")


@pytest.fixture(scope="module")
def five() -> Any:
    """Three electrons of alpha and two of beta, without symmetry."""
    return open_mean_field("UHF", FIVE, "sto-3g")


def start(mf: Any, **settings: Any) -> CCSD:
    cc = CCSD(mf, 0, comm=None, **{"memory": "1GB", "threads": 1, **TIGHT, **settings})
    cc.kernel()
    return cc


Ground = Callable[[str, str], CCSD]
"""Of a reference and a place of arrays: the object whose amplitudes have converged, the same for all tests."""


@pytest.fixture(scope="module")
def ground(four: Any, five: Any) -> Iterator[Ground]:
    references = {"four": four, "five": five}
    with ExitStack() as stack:
        yield cache(lambda name, place: stack.enter_context(start(references[name], **PLACES[place])))


@pytest.fixture(scope="module")
def properties(ground: Ground) -> Callable[..., Any]:
    """Of states of a reference, computed once."""

    @cache
    def found(name: str, place: str, kind: str, *, roots: int = 2, **more: Any) -> Any:
        return ground(name, place).states(kind, nroots=roots, residual=1e-8, **more).properties()

    return found


@pytest.fixture(scope="module")
def of_four(four: Any, ground: Ground) -> FockSpace:
    return FockSpace(four, *ground("four", "memory").amplitudes())


@pytest.fixture(scope="module")
def of_five(five: Any, ground: Ground) -> FockSpace:
    return FockSpace(five, *ground("five", "memory").amplitudes())


def check(space: FockSpace, kind: str, found: Any) -> None:
    """Compares all properties of the states that are found with those of the states of these energies."""
    every, right, left = space.states(kind, found.states.settings.core)
    energies, summed = found.states.energies, len(found.orbitals_of_spins) == 1
    where = [int(np.argmin(abs(every - space.energy - each))) for each in energies]
    assert every[where] - space.energy == pytest.approx(energies, abs=1e-7)
    nuclei = space.mol.atom_charges() @ space.mol.atom_coords()
    assert found.ground_dipole == pytest.approx(
        nuclei + space.moment(space.density(space.ground[1], space.ground[0])), abs=1e-6
    )
    lowest = where[int(np.argmin(energies))]
    for root, k in enumerate(where):
        state = right[:, k], left[k]
        expected = space.density(state[1], state[0])
        assert found.dipoles[root] == pytest.approx(nuclei + space.moment(expected), abs=1e-6)
        density = found.state_density(root)
        if summed:
            expected, density = [expected[0] + expected[1]], [density]
        for c, one, other in zip(space.orbitals, expected, density, strict=False):
            inverse = np.linalg.inv(c)
            assert abs(inverse @ other @ inverse.T - 0.5 * (one + one.T)).max() < 1e-6
        if found.states.kind.is_ion:
            pole = space.pole(*state, is_attached=kind == "ea")
            assert found.pole_strengths[root] == pytest.approx(pole, abs=1e-6)
        if found.states.kind.from_ground:
            strength = space.strength(energies[root], state, space.ground)
            assert found.oscillator_strengths[root] == pytest.approx(strength, abs=1e-6)
        gap = every[k] - every[lowest]
        strength = space.strength(gap, state, (right[:, lowest], left[lowest]))
        assert found.strengths_from_lowest[root] == pytest.approx(strength, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("ip", "memory"),
        ("ea", "memory"),
        pytest.param("ea", "disk", marks=pytest.mark.long),
        pytest.param("ip", "disk", marks=pytest.mark.long),
    ],
)
def test_ions_of_closed_shells(properties: Any, of_four: FockSpace, kind: str, place: str) -> None:
    check(of_four, kind, properties("four", place, kind))


@ON_DISK_LONG
def test_triplets_of_closed_shells(properties: Any, of_four: FockSpace, place: str) -> None:
    check(of_four, "ee", properties("four", place, "ee", multiplicity=3))


@pytest.mark.parametrize(
    ("kind", "multiplicity"),
    [("ee", 1), ("ip", None), pytest.param("ee", 3, marks=pytest.mark.long)],
)
@ON_DISK_LONG
def test_states_of_a_core(
    properties: Any, of_four: FockSpace, kind: str, multiplicity: int | None, place: str
) -> None:
    roots = 1 if kind == "ip" else 2
    check(of_four, kind, properties("four", place, kind, multiplicity=multiplicity, roots=roots, cvs=CORE))


def test_transitions_from_a_core_know_no_origin(properties: Any) -> None:
    found = properties("four", "memory", "ee", multiplicity=1, roots=2, cvs=CORE)
    for each in (found.transition_density(0), found.transition_densities(0)[0]):
        assert abs(np.trace(each)) < 1e-10


@pytest.mark.parametrize("kind", ["ee", "sf"])
def test_states_of_open_shells(properties: Any, of_five: FockSpace, kind: str) -> None:
    check(of_five, kind, properties("five", "memory", kind))


@pytest.mark.parametrize("kind", [pytest.param("ip", marks=pytest.mark.long), "ea"])
def test_ions_of_open_shells(ground: Ground, properties: Any, of_five: FockSpace, kind: str) -> None:
    check_alpha(of_five, kind, properties("five", "memory", kind, roots=3), ground("five", "memory"))


def check_alpha(space: FockSpace, kind: str, found: Any, cc: CCSD) -> None:
    """As `check`, of ions of open shells: the lowest alpha states; beta states may lie between them."""
    spin = cc.spins[0]
    alpha = [
        root
        for root, each in enumerate(found.states.vectors)
        if abs(each.singles[: spin.occupied if kind == "ip" else spin.virtual]).max() > 1e-3
    ]
    every, right, left = space.states(kind)
    assert alpha
    for root in alpha:
        k = int(np.argmin(abs(every - space.energy - found.states.energies[root])))
        assert every[k] - space.energy == pytest.approx(found.states.energies[root], abs=1e-7)
        expected = space.density(left[k], right[:, k])
        nuclei = space.mol.atom_charges() @ space.mol.atom_coords()
        assert found.dipoles[root] == pytest.approx(nuclei + space.moment(expected), abs=1e-6)
        pole = space.pole(right[:, k], left[k], is_attached=kind == "ea")
        assert found.pole_strengths[root] == pytest.approx(pole, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "multiplicity", "place"),
    [
        ("ee", 3, "disk"),
        ("ea", None, "memory"),
        pytest.param("ee", 3, "memory", marks=pytest.mark.long),
        pytest.param("ea", None, "disk", marks=pytest.mark.long),
    ],
)
def test_states_of_one_occupied_orbital(kind: str, multiplicity: int | None, place: str) -> None:
    mf = mean_field(f"H 0 0 0; H 0 0.1 0.9; {GHOSTS}", "sto-3g")
    with start(mf, **PLACES[place]) as cc:
        found = cc.states(kind, multiplicity=multiplicity, nroots=2, residual=1e-8).properties()
        check(FockSpace(mf, *cc.amplitudes()), kind, found)
        singlet, _ = cc.eomee_ccsd_singlet(residual=1e-8)  # the object goes on
    with start(mf) as cc:
        assert cc.eomee_ccsd_singlet(residual=1e-8)[0] == pytest.approx(singlet, abs=1e-7)


@ON_DISK_LONG
def test_states_of_open_shells_with_one_occupied_orbital_of_a_spin(place: str) -> None:
    atoms, *others = THREE
    mf = open_mean_field("UHF", (f"{atoms}; GHOST-H 0.9 0.2 1.2", *others), "sto-3g")
    with start(mf, **PLACES[place]) as cc:
        space = FockSpace(mf, *cc.amplitudes())
        check(space, "sf", cc.eomsf_ccsd(nroots=2, residual=1e-8)[1].properties())
        check_alpha(space, "ea", cc.eaccsd(nroots=3, residual=1e-8)[1].properties(), cc)


@pytest.mark.parametrize(
    "kind", ["ea", *(pytest.param(each, marks=pytest.mark.long) for each in ("ee", "ip", "sf"))]
)
def test_places_of_arrays_make_no_difference(kind: str) -> None:
    found, mf = [], open_mean_field("UHF", THREE, "sto-3g")
    for settings in ({}, DISK | {"block": 2}):
        with start(mf, **settings) as cc:
            found.append(cc.states(kind, residual=1e-7).properties().dipoles[0])
    assert found[1] == pytest.approx(found[0], abs=1e-5)


@pytest.mark.parametrize("kind", ["ip", "ea"])
def test_left_products_are_the_transpose(ground: Ground, kind: str) -> None:
    cc = ground("four", "memory")
    states = cc.states(kind, residual=1e-3)
    right, _ = dense_matrix(states.equations)
    inherited = Inherited(cc)
    plan = inherited.plan(partial(describe.left, kind=kind, roots=1, vectors=4))
    room, focks = inherited.room(plan), [spin.fock for spin in cc.spins]
    left = assembly.left_states(kind, room, focks, cc.singles, [], is_stored=inherited.is_stored)
    cc.replace_room(room, left.of.of)
    found, _ = dense_matrix(left)
    assert abs(right - found.T).max() < 1e-12


def test_ions_of_two_electrons_are_those_of_full_ci() -> None:
    import pyscf
    from pyscf import ao2mo, fci

    mol = pyscf.M(atom="He 0 0 0; H 0 0 0.9", charge=1, basis="6-31g", verbose=0)
    mf = mol.RHF().run(conv_tol=1e-13)
    with start(mf) as cc:
        energy, states = cc.ipccsd(residual=1e-9)
        found = states.properties()
    n, c = mol.nao, mf.mo_coeff
    h = c.T @ mf.get_hcore() @ c
    ground, vector = fci.direct_spin0.FCI().kernel(h, ao2mo.kernel(mol, c), n, 2, tol=1e-13)
    every, vectors = np.linalg.eigh(h)
    assert energy == pytest.approx(every[0] - ground, abs=1e-8)
    dyson = vectors[:, 0] @ vector
    assert found.pole_strengths[0] == pytest.approx(dyson @ dyson, abs=1e-7)
    orbital = c @ vectors[:, 0]
    dipole = (mol.atom_charges() @ mol.atom_coords())[2] - orbital @ mol.intor("int1e_r")[2] @ orbital
    assert found.dipoles[0] == pytest.approx([0, 0, dipole], abs=1e-7)


@pytest.mark.long
def test_closed_shells_of_two_spins_have_the_same_strengths(four: Any, properties: Any) -> None:
    of_closed = properties("four", "memory", "ee", roots=1)
    with start(four.to_uhf()) as cc:
        found = cc.states("ee", nroots=2, residual=1e-8).properties()
    singlet = int(np.argmax(found.oscillator_strengths))
    assert found.oscillator_strengths[singlet] == pytest.approx(of_closed.oscillator_strengths[0], abs=1e-7)
    assert found.dipoles[singlet] == pytest.approx(of_closed.dipoles[0], abs=1e-6)


def of_lowest(space: FockSpace, kind: str, energy: float) -> list[Values]:
    """The density of the state of this energy."""
    every, right, left = space.states(kind)
    k = int(np.argmin(abs(every - space.energy - energy)))
    assert every[k] - space.energy == pytest.approx(energy, abs=1e-6)
    return space.density(left[k], right[:, k])


@pytest.mark.parametrize("kind", ["ip", pytest.param("ee", marks=pytest.mark.long)])
def test_a_search_for_left_vectors_goes_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception):
        pass

    def stop(found: Any) -> None:
        if found.number == 2:
            raise Stopped

    mf = open_mean_field("UHF", THREE, "sto-3g")
    limits = {"conv_tol": 1e-8, "conv_tol_normt": 1e-7}
    with start(mf, checkpoint=tmp_path / "kept", **limits) as cc:
        states = cc.states(kind, residual=1e-7)
        with monkeypatch.context() as patched, pytest.raises(Stopped):
            patched.setattr(clock, "INTERVAL_S", 0.0)
            states.properties(stop)
    brought = list[int]()
    bring = KeptStates.bring

    def counted(self: KeptStates, room: Any, number: int, *given: Any) -> Any:
        found = bring(self, room, number, *given)
        if found is not None:
            brought.append(number)
        return found

    with start(mf, checkpoint=tmp_path / "kept", **limits) as cc:
        states = cc.states(kind, residual=1e-7)
        monkeypatch.setattr(KeptStates, "bring", counted)
        found = states.properties()
        monkeypatch.setattr(KeptStates, "bring", bring)
        space = FockSpace(mf, *cc.amplitudes())
        expected = space.moment(of_lowest(space, kind, states.energies[0]))
    assert brought
    nuclei = mf.mol.atom_charges() @ mf.mol.atom_coords()
    assert found.dipoles[0] == pytest.approx(nuclei + expected, abs=1e-5)


def test_transitions_that_spin_forbids_are_refused(properties: Any) -> None:
    found = properties("four", "memory", "ee", multiplicity=3)
    with pytest.raises(OutcoreError, match="triplets has no transitions"):
        _ = found.oscillator_strengths
    with pytest.raises(OutcoreError, match="no Dyson orbitals"):
        found.dyson_orbitals(0)
