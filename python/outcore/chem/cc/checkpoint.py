"""The directory from which another run of the same orbitals and integrals goes on: it finds the orbitals,
amplitudes, what is finished of an iteration, and energies of tasks of (T)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore.chem.cc import kept_orbitals, orbitals
from outcore.chem.cc.kept import AMPLITUDES, TRIPLES, KeptAmplitudes
from outcore.chem.cc.kept_steps import STEPS, KeptSteps
from outcore.job.scratch import allocated_bytes, bytes_here
from outcore.keep.stages import Stage, Stages

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from outcore.chem.cc.doubles import Doubles, Equations
    from outcore.chem.cc.kept import State
    from outcore.chem.cc.orbitals import Active
    from outcore.chem.cc.room import Room
    from outcore.chem.cc.settings import Settings
    from outcore.job.world import World
    from outcore.keep.problem import Problem
    from outcore.tensor.array import Array
    from outcore.tensor.layout import Layout, Tile

    Values = np.ndarray[Any, np.dtype[Any]]


class Checkpoint:
    """Methods are collective. They raise OutcoreError: EINVAL (of another problem), ENOTSUP (of another format),
    EIO (damaged).

    Args:
        problem: all that what is kept depends on, of a name.
    """

    def __init__(self, world: World, directory: Path, problem: Callable[[str], Problem]) -> None:
        self.world, self.directory, self._problem = world, directory, problem
        self._amplitudes: KeptAmplitudes | None = None
        self._steps: KeptSteps | None = None

    # ---- what another run has kept ----

    def orbitals(self, overlap: Values, spins: list[Active]) -> list[Active]:
        """Those that are kept, where they are the given ones but for rotations; else the given ones."""
        problem = self._problem(kept_orbitals.NAME)
        return kept_orbitals.taken(self.world, self.directory, problem, overlap, spins)

    def find(self, layouts: list[Layout], singles: list[Values], spins: list[Active]) -> None:
        """Looks for amplitudes; layouts: of the doubles. Without any these orbitals are kept."""
        self._amplitudes = KeptAmplitudes(
            self.world, self.directory, self._problem(AMPLITUDES), layouts, singles, orbitals.sketch(spins)
        )
        if self._amplitudes.found is None:
            kept_orbitals.keep(self.world, self.directory, self._problem(kept_orbitals.NAME), spins)

    @property
    def found(self) -> State | None:
        return None if self._amplitudes is None else self._amplitudes.found

    def has_converged(self, settings: Settings) -> bool:
        """Whether the amplitudes that were found have, for these settings."""
        if self.found is None:
            return False
        tight = settings.conv_tol >= self.found.conv_tol
        return self.found.converged and tight and settings.conv_tol_normt >= self.found.conv_tol_normt

    def room_bytes(self, whole: int) -> int:
        """What has to be free for arrays of `whole` bytes that are kept."""
        with self.world.together("look at what is kept"):
            kept = [each for name in (AMPLITUDES, STEPS) for each in self.directory.glob(f"{name}*")]
            # What was committed stays beside what replaces it.
            return max(0, bytes_here(self.world, self.directory, 2 * whole) - allocated_bytes(kept))

    def take(self, room: Room, equations: Equations, spins: list[Active]) -> State | None:
        """Gives the equations the doubles that were found, and from now on what keeps their steps."""
        kept = self._amplitudes
        assert kept is not None, "find() comes first"
        arrays = [each.amplitudes for each in equations.doubles]
        equations.steps = self._steps = KeptSteps(
            room, self.directory, self._problem(STEPS), kept, arrays, orbitals.sketch(spins)
        )
        if kept.found is None:
            return None
        for number, each in enumerate(equations.doubles):

            def take(tile: Tile, number: int = number, each: Doubles = each) -> None:
                each.put(tile, kept.values(number, each.amplitudes.layout.box(tile)))

            room.each_tile(each.amplitudes, take, "kept amplitudes")
        equations.sync()
        return kept.found

    # ---- what this run keeps ----

    def begin(self, state: State) -> None:
        """An iteration from these amplitudes."""
        assert self._steps is not None, "take() comes first"
        self._steps.begin(state)

    def save(self, room: Room, doubles: list[Array], state: State, *, is_last: bool) -> None:
        """Commits amplitudes, if the last commit is long ago or they are the last of a run."""
        assert self._amplitudes is not None, "find() comes first"
        self._amplitudes.save(room, doubles, state, is_last=is_last)

    def finish(self) -> None:
        """Iterations are over."""
        if self._steps is not None:
            self._steps.remove()

    def triples(self) -> Stage:
        return Stage(Stages(self.world, self.directory), TRIPLES, self._problem(TRIPLES))

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        if self._amplitudes is not None:
            self._amplitudes.close()
            self._amplitudes = None
