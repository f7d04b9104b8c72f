"""What a search for states does with its arrays, found by running its parts without data."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from outcore.chem.cc.equations.excited.left_singlets import RIGHT, LeftSinglets
from outcore.chem.cc.equations.excited.one_particle import StateDensities
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.multipliers import MultiplierEquations
from outcore.chem.cc.excited import passes
from outcore.chem.cc.excited.search import VectorArrays
from outcore.chem.cc.plan import assembly
from outcore.chem.cc.plan.describe import ITERATIONS, RecordingRoom
from outcore.chem.cc.settings import Settings
from outcore.chem.cc.updates import Updates
from outcore.chem.davidson import Limits

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.vectors import StateEquations
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.plan.sizes import Sizes


@lru_cache(maxsize=8)
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
) -> RecordingRoom:
    """From converged amplitudes to `roots` states of a kind, with a small space of `vectors` for
    each."""
    recording = RecordingRoom(
        replace(sizes, vectors=(vectors + 1) * roots), block, threads, processes, each=each
    )
    room, spins = cast("Room", recording), recording.spins
    t1 = [np.zeros((spin.occupied, spin.virtual)) for spin in spins]
    equations = assembly.states(kind, room, [spin.fock for spin in spins], t1, is_stored=is_stored)
    _search(recording, equations, roots, vectors)
    return recording


@lru_cache(maxsize=8)
def properties(
    sizes: Sizes,
    block: int,
    threads: int,
    processes: int = 1,
    *,
    is_stored: bool,
    each: bool = False,
    roots: int,
    vectors: int,
) -> RecordingRoom:
    """From right vectors of `roots` singlets to left ones, with a small space as `states` has it, multipliers of
    the ground state, and densities."""
    most = max((vectors + 1) * roots, sizes.vectors)
    recording = RecordingRoom(replace(sizes, vectors=most), block, threads, processes, each=each)
    room, spins = cast("Room", recording), recording.spins
    t1 = [np.zeros((spin.occupied, spin.virtual)) for spin in spins]
    right = [StateVector(t1[0], (room.array(f"{RIGHT}{n}"),)) for n in range(roots)]
    products = assembly.multipliers(room, [spin.fock for spin in spins], t1, is_stored=is_stored)
    assert isinstance(products, MultiplierEquations)
    left = _search(recording, LeftSinglets(products, right), roots, vectors)
    passes.overlaps(room, left, right)
    updates = Updates(room, spins, products, sizes.vectors)
    singles = products.put_first()
    updates.extrapolation.fill(np.zeros(sum(one.size for one in t1)))
    with recording.loop(ITERATIONS):
        updates.advance(singles, Settings())
        products.energy(singles)
    found, ground = StateDensities(products), StateVector(t1[0], (products.multipliers,))
    for one, other in ((ground, right[0]), (left[0], right[0])):
        found.between(one, other, 0.0, found.of_left(one), with_ground=False)
    return recording


def _search(
    recording: RecordingRoom, equations: StateEquations, roots: int, vectors: int
) -> list[StateVector]:
    """Its iterations; some vectors."""
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
        for one, product in zip(group[-roots:], multiplied[-roots:], strict=True):
            equations.multiply(one, product.doubles)
        passes.products(room, group, multiplied, len(group) - roots)
    return group[:roots]
