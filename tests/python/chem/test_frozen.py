"""Frozen orbitals, by numbers and by lists."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyscf
import pytest
from pyscf import scf

from outcore import OutcoreError
from outcore.chem import frozen, reference

SIX = [(range(6), 3)]
OPEN = [(range(6), 3), (range(6), 2)]
ACID = pyscf.M(atom="O 0 0 0; ghost-O 0 0 2; F 0 0 4", basis="sto-3g", spin=1, verbose=0)


@pytest.mark.parametrize(
    ("given", "spins", "occupied", "virtual"),
    [
        ((None, None), SIX, [[0, 1, 2]], [[3, 4, 5]]),
        ((1, 2), SIX, [[1, 2]], [[3]]),
        (([0, 4], None), SIX, [[1, 2]], [[3, 5]]),
        (([1], 1), SIX, [[0, 2]], [[3, 4]]),
        ((1, [3]), SIX, [[1, 2]], [[4, 5]]),
        (("0,2-3", None), SIX, [[1]], [[4, 5]]),
        (("1,", "4-5"), SIX, [[0, 2]], [[3]]),
        ((np.array([2, 0]), None), SIX, [[1]], [[3, 4, 5]]),
        ((3, 1), OPEN, [[], []], [[3, 4], [2, 3, 4]]),
        (([0, 2], None), OPEN, [[1], [1]], [[3, 4, 5], [3, 4, 5]]),
        (([[0], [1, 5]], None), OPEN, [[1, 2], [0]], [[3, 4, 5], [2, 3, 4]]),
        (("0/1,5", "3,"), OPEN, [[1, 2], [0]], [[4, 5], [2, 4]]),
    ],
)
def test_what_is_correlated(given: Any, spins: Any, occupied: Any, virtual: Any) -> None:
    found = frozen.of(ACID, given[0], given[1], spins)
    left = [found.active(number, *each) for number, each in enumerate(spins)]
    assert [o.tolist() for o, _ in left] == occupied
    assert [v.tolist() for _, v in left] == virtual


def test_numbers_are_those_of_the_object() -> None:
    """Occupied orbitals are numbers 5 and 2 of the object."""
    found = frozen.of(ACID, [2, 0], None, [([5, 2, 0, 1, 3, 4], 2)])
    assert [each.tolist() for each in found.active(0, [5, 2, 0, 1, 3, 4], 2)] == [[0], [3, 4, 5]]


@pytest.mark.parametrize(
    ("given", "spins", "words"),
    [
        ((4, None), SIX, "4 frozen, but only 3 are occupied"),
        ((None, 4), SIX, "4 virtual ones frozen, but there are only 3"),
        (([6], None), SIX, "there is no orbital 6: they are 0 to 5"),
        (([0, -1], None), SIX, "there is no orbital -1"),
        (([0, 1, 0], None), SIX, "orbital 0 is listed more than once"),
        (([4], [4]), SIX, "orbital 4 is listed more than once"),
        (([0, 1.5], None), SIX, "'1.5' in a list is no number"),
        ((None, [2]), OPEN[:1], "orbital 2 is occupied, not virtual"),
        (([0, 4], 1), SIX, "a number of virtual orbitals beside a list that has virtual ones"),
        (([0, 1, 2], 3), SIX, "all orbitals are frozen"),
        (([[0], [1]], None), SIX, "both spins share their orbitals, give one list"),
        (([[0], [1], [2]], None), OPEN, "one of alpha and one of beta"),
        ((True, None), SIX, "neither a number of orbitals nor 'auto'"),
        (("core", None), SIX, "neither a number of orbitals nor 'auto'"),
        ((None, "auto"), SIX, "'auto' is neither a number of orbitals nor a list"),
        (("3-1", None), SIX, "3-1 is no range"),
    ],
)
def test_what_cannot_be_frozen_is_named(given: Any, spins: Any, words: str) -> None:
    with pytest.raises(OutcoreError, match=words):
        frozen.of(ACID, given[0], given[1], spins)


def test_ghosts_have_no_cores() -> None:
    assert frozen.of(ACID, "auto", None, [(range(15), 9), (range(15), 8)]).lowest == 2


@functools.cache
def open_shells(kind: str) -> Any:
    mol = pyscf.M(atom="N; H 1 1.008; H 1 1.008 2 105.0", basis="6-31g", spin=1, verbose=0)
    return getattr(scf, kind)(mol).run(conv_tol=1e-11)


def test_singles_of_frozen_orbitals_do_not_count() -> None:
    """Only active orbitals count: all of them, some, or none; frozen orbitals do not change."""
    mf = open_shells("ROHF")
    given: dict[str, Any] = {"noncanonical": "semicanonical"}
    every = reference.of(mf, **given).singles
    core = reference.of(mf, frozen=1, **given).singles
    assert every < core < 0
    assert reference.of(mf, frozen=5, **given).singles == 0.0
    listed = reference.of(mf, frozen=[0], **given)
    assert (listed.spins[0].coefficients[:, 0] == mf.mo_coeff[:, 0]).all()
    assert listed.singles == pytest.approx(core, abs=1e-6)
