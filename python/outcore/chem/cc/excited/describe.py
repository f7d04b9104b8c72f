"""Arrays and operations of a search for states, recorded by running its parts without data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from outcore.chem.cc.equations.excited import between_states, kinds
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.excited import passes
from outcore.chem.cc.excited.search import VectorArrays
from outcore.chem.cc.plan import assembly
from outcore.chem.cc.plan.describe import ITERATIONS, RecordingRoom, remembered
from outcore.chem.cc.settings import Settings
from outcore.chem.cc.updates import Updates
from outcore.chem.davidson import Limits

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import StateEquations
    from outcore.chem.cc.plan.describe import Describe
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.plan.sizes import Sizes
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]

RIGHT, LEFT = "R", "L"
"""Names of arrays of right and of left vectors that have been found begin with it."""


@remembered
def states(
    sizes: Sizes,
    block: int,
    threads: int,
    processes: int = 1,
    *,
    is_stored: bool,
    each: bool = False,
    kind: str,
    roots: int,
    vectors: int,
    keeps_rings: bool = False,
) -> RecordingRoom:
    """Records the search from converged amplitudes to `roots` states of a kind, with a small space of `vectors` for
    each. keeps_rings: rings of singles are kept, see `assembly.states`."""
    recording = RecordingRoom(
        replace(sizes, vectors=(vectors + 1) * roots), block, threads, processes, each=each
    )
    room, focks, t1 = _begun(recording)
    equations = assembly.states(
        kind, room, focks, t1, is_stored=is_stored, together=roots, keeps_rings=keeps_rings
    )
    _search(recording, equations, roots, vectors)
    return recording


@remembered
def left(
    sizes: Sizes,
    block: int,
    threads: int,
    processes: int = 1,
    *,
    is_stored: bool,
    each: bool = False,
    kind: str,
    roots: int,
    vectors: int,
) -> RecordingRoom:
    """Records the search from right vectors of `roots` states to left ones, with a small space as in `states`."""
    recording = RecordingRoom(
        replace(sizes, vectors=(vectors + 1) * roots), block, threads, processes, each=each
    )
    room, focks, t1 = _begun(recording)
    of_right = _arrays(room, kind, roots, RIGHT)
    made = assembly.left_states(kind, room, focks, t1, [], is_stored=is_stored)
    found = _search(recording, made, roots, vectors)
    singles, shares = np.zeros(made.diagonal().shape), [1.0] * len(made.names)
    passes.overlaps(room, found, [StateVector(singles, each) for each in of_right], shares=shares)
    return recording


@remembered
def densities(
    sizes: Sizes,
    block: int,
    threads: int,
    processes: int = 1,
    *,
    is_stored: bool,
    each: bool = False,
    kind: str,
    roots: int,
) -> RecordingRoom:
    """Records how multipliers of the ground state, and densities, are made from vectors of `roots` states."""
    most = max(roots, sizes.vectors)
    recording = RecordingRoom(replace(sizes, vectors=most), block, threads, processes, each=each)
    room, focks, t1 = _begun(recording)
    right, left_ = (_arrays(room, kind, roots, side) for side in (RIGHT, LEFT))
    products = assembly.multipliers(room, focks, t1, is_stored=is_stored)
    updates = Updates(room, recording.spins, products, sizes.vectors)
    singles = products.put_first()
    updates.extrapolation.fill(np.zeros(sum(one.size for one in t1)))
    with recording.loop(ITERATIONS):
        updates.advance(singles, Settings())
        products.energy(singles)
    found = between_states.of_states(kind, products, t1)
    row = _no_singles(kind, t1)
    for one, other in zip(left_, right, strict=True):
        found.of_root(StateVector(row, one), StateVector(row, other), 0.0)
    return recording


def _begun(recording: RecordingRoom) -> tuple[Room, list[Values], list[Values]]:
    """The room of a recording, and for each spin the Fock matrix and singles of the ground state."""
    spins = recording.spins
    singles: list[Values] = [np.zeros((spin.occupied, spin.virtual)) for spin in spins]
    return cast("Room", recording), [spin.fock for spin in spins], singles


def _arrays(room: Room, kind: str, roots: int, side: str) -> list[tuple[Array, ...]]:
    """Arrays of doubles of vectors that have been found."""
    return [tuple(room.array(name) for name in beside(kind, side, n)) for n in range(roots)]


def _no_singles(kind: str, t1: list[Values]) -> Values:
    of, (o, v) = kinds.of(kind), t1[0].shape
    if of.blocks is None:
        return np.zeros({"ip": (o,), "ea": (v,)}.get(kind, (o, v)))
    inside, outside = ([each.shape[axis] for each in t1] + [1] for axis in (0, 1))
    return np.zeros(sum(inside[i] * outside[a] for a, i in of.blocks.singles))


def beside(kind: str, side: str, number: int) -> list[str]:
    """Names of arrays of a vector that has been found."""
    return [f"{side}{name}{number}" for name in kinds.of(kind).names]


def largest(*every: Describe) -> Describe:
    """The description with most arrays."""

    def found(*given: Any, **options: Any) -> RecordingRoom:
        return max((each(*given, **options) for each in every), key=lambda made: len(made.arrays))

    return found


def _search(
    recording: RecordingRoom, equations: StateEquations, roots: int, vectors: int
) -> list[StateVector]:
    """Runs the iterations of a search; returns some of its vectors."""
    room = cast("Room", recording)
    pool = VectorArrays(equations, Limits(vectors=vectors), roots)
    singles = np.zeros(equations.diagonal().shape)
    every = [StateVector(singles, array) for array in pool.vectors]
    new, group = every[:roots], every[roots:]
    multiplied = [StateVector(singles, array) for array in pool.products]
    energies, states = np.zeros(roots), np.zeros((roots, len(group)))
    with recording.loop(ITERATIONS):
        passes.correct(room, equations, group, multiplied, states, energies, new)
        for each_new in new:
            equations.project(each_new.doubles)
        for _ in equations.products(group[-roots:], [each.doubles for each in multiplied[-roots:]]):
            pass
        passes.products(room, group, multiplied, len(group) - roots)
    return group[:roots]
