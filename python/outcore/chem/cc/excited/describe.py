"""What a search for states does with its arrays, found by running its parts without data."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.excited import passes
from outcore.chem.cc.excited.search import VectorArrays
from outcore.chem.cc.plan import assembly
from outcore.chem.cc.plan.describe import ITERATIONS, RecordingRoom
from outcore.chem.davidson import Limits

if TYPE_CHECKING:
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
    return recording
