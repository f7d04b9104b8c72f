"""Searches from the right and from the left find the lowest states: beside all eigenvalues of symmetric and nearly
degenerate molecules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import mean_field, open_mean_field
from eom_support import TIGHT, dense
from fock_space import FockSpace

from outcore.chem.cc import CCSD

Values = np.ndarray[Any, np.dtype[Any]]

SQUARE = "H 0 0 0; H 0 0 0.9; H 0.9 0 0; H 0.9 0 0.9001"
# With charge and unpaired electrons: three electrons of alpha and two of beta.
OPEN = {
    "pyramid": ("H 0 0 0; H 0 0 1.0; H 1.0 0 0; H 1.0 0 1.0; H 0.5 0.9 0.5", 0, 1),
    "no symmetry": ("H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0; H 0.9 0.2 1.2; H 1.8 0.9 0.4", 0, 1),
}
ROOTS = 3

Ground = Callable[[str], CCSD]
"""Of a molecule: the calculation with converged amplitudes, the same for all tests."""


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    def start(name: str) -> CCSD:
        mf = (
            mean_field(SQUARE, "sto-3g") if name == "square" else open_mean_field("UHF", OPEN[name], "sto-3g")
        )
        cc = stack.enter_context(CCSD(mf, comm=None, memory="1GB", threads=1, **TIGHT))
        cc.kernel()
        return cc

    with ExitStack() as stack:
        yield cache(start)


@pytest.fixture(scope="module")
def space(ground: Ground) -> Callable[[str], FockSpace]:
    """All determinants of a molecule."""
    return cache(lambda name: FockSpace(ground(name)._mf, *ground(name).amplitudes()))


def energy(cc: CCSD) -> float:
    """Of the electrons in the ground state, which is not the lowest of the pyramid."""
    return float(cc.e_tot - cc.mol.energy_nuc())


def test_a_state_is_no_result_before_others_have_been_looked_for() -> None:
    """Attachment to the singly occupied orbital, whose orbital energy lies above those of two others."""
    mf = open_mean_field("UHF", ("Be 0 0 0; H 0 0 1.34", 0, 1), "sto-3g")
    with CCSD(mf, comm=None, memory="1GB", threads=1, **TIGHT) as cc:
        cc.kernel()
        found = [cc.states("ea", residual=1e-5, max_cycle=most) for most in range(1, 20)]  # iterations
    energies = np.array([each.energies[0] for each in found])
    assert any("may still fall" in each.why for each in found)
    assert not found[-1].why
    # The lowest of all eigenvalues of PySCF's matrix.
    assert energies[np.isfinite(energies)] == pytest.approx(0.16352, abs=1e-4)


@pytest.mark.parametrize("loose", [0.5, 0.3])
def test_a_state_of_a_loose_search_is_no_lowest_one_for_a_tight_one(tmp_path: Path, loose: float) -> None:
    mf = open_mean_field("UHF", ("Be 0 0 0; H 0 0 1.34", 0, 1), "sto-3g")

    def search(residual: float) -> Any:
        with CCSD(mf, comm=None, memory="1GB", threads=1, checkpoint=tmp_path / "kept", **TIGHT) as cc:
            cc.kernel()
            return cc.states("ea", residual=residual)

    assert search(loose).converged.all()
    assert search(1e-6).energies[0] == pytest.approx(0.16352, abs=1e-5)


@pytest.mark.parametrize("kind", ["ee", "sf"])
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each == "no symmetry" else pytest.mark.long) for each in OPEN]
)
def test_no_state_of_open_shells_is_missed(ground: Ground, space: Any, name: str, kind: str) -> None:
    states = ground(name).states(kind, nroots=ROOTS, residual=1e-8)
    found = space(name)
    every = np.sort(found.states(kind)[0]) - energy(ground(name))
    every = every[abs(every) > 1e-9]  # without the ground state
    assert states.converged.all()
    assert abs(states.energies - every[:ROOTS]).max() < 1e-7


@pytest.mark.parametrize("kind", [pytest.param("ee", marks=pytest.mark.long), "sf"])
def test_left_vectors_of_open_shells_are_of_the_lowest_states(ground: Ground, space: Any, kind: str) -> None:
    found = ground("no symmetry").states(kind, nroots=ROOTS, residual=1e-8).properties()
    whole = space("no symmetry")
    every = np.sort(whole.states(kind)[0]) - energy(ground("no symmetry"))
    every = every[abs(every) > 1e-9]
    assert abs(np.sort(found.iterations[-1].energies) - every[:ROOTS]).max() < 1e-7


@pytest.mark.parametrize(
    ("kind", "multiplicity", "roots"),
    [
        ("ee", 1, 4),
        pytest.param("ee", 3, 4, marks=pytest.mark.long),
        ("ip", None, 2),
        pytest.param("ea", None, 2, marks=pytest.mark.long),
    ],
    ids=["singlets", "triplets", "ip", "ea"],
)
def test_left_vectors_of_nearly_degenerate_states_are_of_the_lowest(
    ground: Ground, kind: str, multiplicity: int | None, roots: int
) -> None:
    states = ground("square").states(kind, multiplicity=multiplicity, nroots=roots, residual=1e-8)
    every = np.sort(dense(states.equations).real)
    found = states.properties()
    assert abs(states.energies - every[:roots]).max() < 1e-7
    assert abs(np.sort(found.iterations[-1].energies) - every[:roots]).max() < 1e-7
