"""Core-excited states and core ions: all roots of the matrix restricted to excitations from the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from cc_support import mean_field
from eom_support import TIGHT, dense_matrix

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.excited.settings import StateSettings


@pytest.fixture(scope="module")
def hydride() -> Any:
    return mean_field("Li 0 0 0; H 0 0 1.6", "sto-3g")


def made(mf: Any, frozen: int = 0) -> CCSD:
    return CCSD(mf, frozen, comm=None, memory="1GB", threads=1, **TIGHT)


def allowed(equations: Any, places: Any, singles: int) -> Any:
    """The projector on vectors that Pauli's principle allows: the dense matrix has others, which are no states."""
    room, (name,) = equations.room, equations.names
    array = room._made(f"{name}0")
    found = np.eye(singles + len(places))
    for column, each in enumerate(places, singles):
        whole = np.zeros(array.shape)
        for place in each:
            whole[place] = 1.0
        for tile in array.layout.stored:
            array.put_tile(tile, np.ascontiguousarray(whole[array.layout.box(tile)]))
        equations.project((array,))
        made = array.to_numpy()
        found[singles:, column] = [made[each[0]] for each in places]
    room.release(array)
    return found


@pytest.mark.parametrize(("kind", "multiplicity"), [("ee", 1), ("ee", 3), ("ip", None)])
def test_roots_are_those_of_the_projected_matrix(hydride: Any, kind: str, multiplicity: int | None) -> None:
    with made(hydride) as cc:
        cc.kernel()
        roots = 1 if kind == "ip" else 2
        states = cc.states(kind, multiplicity=multiplicity, nroots=roots, cvs=1, residual=1e-9)
        matrix, places = dense_matrix(states.equations)
        o, v = cc.spins[0].sizes
        singles = np.array(
            [n % o == 0 if kind == "ip" else n // v == 0 for n in range(len(matrix) - len(places))]
        )
        doubles = [0 in (each[0][1], each[0][2] if kind == "ip" else each[0][3]) for each in places]
        kept = np.flatnonzero(np.concatenate([singles, doubles]))
        basis = allowed(states.equations, places, len(singles))[np.ix_(kept, kept)]
    basis = scipy.linalg.orth(basis)
    every = np.sort(np.linalg.eigvals(basis.T @ matrix[np.ix_(kept, kept)] @ basis).real)
    assert states.converged.all()
    assert every[0] > 1.5  # of the 1s orbital
    assert abs(states.energies - every[:roots]).max() < 1e-8


def test_a_core_that_is_frozen_is_refused(hydride: Any) -> None:
    with made(hydride, 1) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="do not freeze it"):
            cc.states("ip", cvs=1)


@pytest.mark.parametrize(("cvs", "core"), [(2, [0, 1]), (np.int64(1), [0]), ([2, 0, 2], [0, 2]), ((1,), [1])])
def test_a_core_is_a_number_of_orbitals_or_a_list(cvs: Any, core: list[int]) -> None:
    assert StateSettings(cvs=cvs).core == core


@pytest.mark.parametrize("cvs", [True, 1.5, "1"])
def test_a_core_of_no_integers_is_refused(cvs: Any) -> None:
    with pytest.raises(TypeError, match=r"cvs .* is not made of integers"):
        StateSettings(cvs=cvs)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"nroots": 2.5}, r"nroots 2\.5 is none of the integers"),
        ({"max_cycle": "9"}, "max_cycle '9' is none of the integers"),
        ({"residual": None}, "residual is None, no number"),
        ({"guess": 5}, "guess is no list"),
    ],
)
def test_settings_of_other_types_are_refused(setting: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        StateSettings(**setting)


def test_attached_states_have_no_core(hydride: Any) -> None:
    with made(hydride) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError, match="core-valence"):
            cc.states("ea", cvs=1)
