"""The directory from which another run of the same orbitals and integrals goes on: it finds the orbitals,
amplitudes, finished steps of an iteration, and energies of tasks of (T)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore.chem.cc.equations import orbitals
from outcore.chem.cc.keep import kept_orbitals
from outcore.chem.cc.keep.kept import AMPLITUDES, TRIPLES, KeptAmplitudes
from outcore.chem.cc.keep.kept_response import KeptResponse, KeptSlabs
from outcore.chem.cc.keep.kept_states import STATES, KeptStates
from outcore.chem.cc.keep.kept_steps import STEPS, KeptSteps
from outcore.job.scratch import allocated_bytes, bytes_here
from outcore.keep.stages import Stage, Stages

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from outcore.chem.cc.equations.doubles import Doubles, Equations
    from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals
    from outcore.chem.cc.keep.kept import State
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.cc.settings import Settings
    from outcore.job.world import World
    from outcore.keep.problem import Problem
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Layout, Tile

    Values = np.ndarray[Any, np.dtype[Any]]


MULTIPLIERS, LAMBDA, DERIVATIVES = "multipliers", "lambda", "derivatives"
RESPONSE, SLABS = "response", "gradient"


@dataclass(frozen=True)
class KeptMultipliers:
    """Multipliers and steps of their iterations. Collective."""

    multipliers: KeptAmplitudes
    steps: KeptSteps
    doubles: list[Array]

    @property
    def found(self) -> State | None:
        return self.multipliers.found

    def save(self, room: Room, state: State, *, is_last: bool) -> None:
        self.multipliers.save(room, self.doubles, state, is_last=is_last)
        if state.converged:
            self.steps.remove()

    def close(self) -> None:
        self.steps.close()
        self.multipliers.close()


def _give(kept: KeptAmplitudes, room: Room, equations: Equations) -> None:
    """Puts the kept doubles into the equations."""
    for number, each in enumerate(equations.doubles):

        def take(tile: Tile, number: int = number, each: Doubles = each) -> None:
            each.put(tile, kept.values(number, each.amplitudes.layout.box(tile)))

        room.each_tile(each.amplitudes, take, "kept amplitudes")
    equations.sync()


class Checkpoint:
    """Methods are collective. They raise OutcoreError: EINVAL (of another problem), ENOTSUP (of another format),
    EIO (damaged).

    Args:
        problem: returns, for a name, all settings that the arrays of this name depend on.
    """

    def __init__(self, world: World, directory: Path, problem: Callable[[str], Problem]) -> None:
        self.world, self.directory, self._problem = world, directory, problem
        self._amplitudes: KeptAmplitudes | None = None
        self._steps: KeptSteps | None = None

    # ---- the checkpoint of another run ----

    def orbitals(self, overlap: Values, spins: list[CorrelatedOrbitals]) -> list[CorrelatedOrbitals]:
        """The kept orbitals, if they differ from the given ones by rotations alone; else the given ones."""
        problem = self._problem(kept_orbitals.NAME)
        return kept_orbitals.taken(self.world, self.directory, problem, overlap, spins)

    def find(self, layouts: list[Layout], singles: list[Values], spins: list[CorrelatedOrbitals]) -> None:
        """Looks for amplitudes; if there are none, keeps these orbitals. layouts: of the doubles."""
        self._amplitudes = KeptAmplitudes(
            self.world, self.directory, self._problem(AMPLITUDES), layouts, singles, orbitals.sketch(spins)
        )
        if self._amplitudes.found is None:
            kept_orbitals.keep(self.world, self.directory, self._problem(kept_orbitals.NAME), spins)

    @property
    def found(self) -> State | None:
        return None if self._amplitudes is None else self._amplitudes.found

    def has_converged(self, settings: Settings) -> bool:
        """Whether the amplitudes that were found have converged to the limits of these settings."""
        if self.found is None:
            return False
        tight = settings.conv_tol >= self.found.conv_tol
        return self.found.converged and tight and settings.conv_tol_normt >= self.found.conv_tol_normt

    def room_bytes(self, whole: int) -> int:
        """Bytes that must be free to keep arrays of `whole` bytes."""
        return self._room_bytes(whole, (AMPLITUDES, STEPS))

    def room_for_states(self, whole: int, side: str = "") -> int:
        """As `room_bytes`, for vectors of a search for states, from the right or the left; see KeptStates."""
        return self._room_bytes(whole, (f"{STATES}.[vh]{side}[0-9]",))

    def room_after_iterations(self, whole: int) -> int:
        """As `room_bytes`, for amplitudes, derivatives of (T), multipliers and steps of their iterations."""
        return self._room_bytes(whole, (AMPLITUDES, DERIVATIVES, MULTIPLIERS, LAMBDA))

    def room_for_triples(self, whole: int) -> int:
        """As `room_bytes`, for derivatives of (T)."""
        return self._room_bytes(whole, (DERIVATIVES,))

    def room_for_multipliers(self, whole: int) -> int:
        """As `room_bytes`, for multipliers and steps of their iterations."""
        return self._room_bytes(whole, (MULTIPLIERS, LAMBDA))

    def _room_bytes(self, whole: int, names: tuple[str, ...]) -> int:
        with self.world.together("look at the checkpoint"):
            kept = [each for name in names for each in self.directory.glob(f"{name}*")]
            # A committed array stays beside the one that replaces it.
            return max(0, bytes_here(self.world, self.directory, 2 * whole) - allocated_bytes(kept))

    def take(self, room: Room, equations: Equations, spins: list[CorrelatedOrbitals]) -> State | None:
        """Gives the equations the doubles that were found, and from now on an object that keeps their steps."""
        kept = self._amplitudes
        assert kept is not None, "find() comes first"
        arrays = [each.amplitudes for each in equations.doubles]
        equations.steps = self._steps = KeptSteps(
            room, self.directory, self._problem(STEPS), kept, arrays, orbitals.sketch(spins)
        )
        if kept.found is None:
            return None
        _give(kept, room, equations)
        return kept.found

    # ---- the checkpoint of this run ----

    def begin(self, state: State) -> None:
        """Begins an iteration from these amplitudes."""
        assert self._steps is not None, "take() comes first"
        self._steps.begin(state)

    def save(self, room: Room, doubles: list[Array], state: State, *, is_last: bool) -> None:
        """Commits amplitudes, if the last commit is long ago or they are the last of a run."""
        assert self._amplitudes is not None, "find() comes first"
        self._amplitudes.save(room, doubles, state, is_last=is_last)

    def finish(self) -> None:
        """Removes kept steps, as iterations are over."""
        if self._steps is not None:
            self._steps.remove()

    # ---- after amplitudes have converged ----

    def derivatives(
        self, room: Room, doubles: list[Array], spins: list[CorrelatedOrbitals], state: State
    ) -> KeptSteps:
        """The checkpoint of derivatives of (T) of these amplitudes. The caller closes it."""
        assert self._amplitudes is not None, "find() comes first"
        kept = KeptSteps(
            room,
            self.directory,
            self._problem(DERIVATIVES),
            self._amplitudes,
            doubles,
            orbitals.sketch(spins),
            DERIVATIVES,
        )
        kept.begin(state)
        return kept

    def multipliers(
        self,
        room: Room,
        equations: Equations,
        spins: list[CorrelatedOrbitals],
        singles: list[Values],
        mark: str,
    ) -> KeptMultipliers:
        """The checkpoint of multipliers; it puts those that it finds into the equations. mark: of the amplitudes.
        The caller closes it."""
        doubles, sketch = [each.amplitudes for each in equations.doubles], orbitals.sketch(spins)
        kept = KeptAmplitudes(
            self.world,
            self.directory,
            self._problem(MULTIPLIERS),
            [each.layout for each in doubles],
            singles,
            sketch,
            MULTIPLIERS,
            mark,
        )
        steps = KeptSteps(room, self.directory, self._problem(LAMBDA), kept, doubles, sketch, LAMBDA)
        equations.steps = steps
        if kept.found is not None:
            _give(kept, room, equations)
        return KeptMultipliers(kept, steps, doubles)

    def states(self, mark: Any, shape: tuple[int, ...], side: str = "") -> KeptStates:
        """The checkpoint of vectors of a search for states; see KeptStates."""
        return KeptStates(self.world, self.directory, self._problem(STATES), mark, shape, side)

    def response(self, mark: str) -> KeptResponse:
        """The checkpoint of multipliers of orbitals, for densities with this mark."""
        return KeptResponse(self.directory / RESPONSE, self._problem(RESPONSE), mark)

    def slabs(self, name: str, mark: str) -> KeptSlabs:
        """The checkpoint of a pass over derivative integrals, of this name, for densities with this mark."""
        name = f"{SLABS}.{name}"
        return KeptSlabs(
            self.world, Stage(Stages(self.world, self.directory), name, self._problem(name)), mark
        )

    def triples(self) -> Stage:
        return Stage(Stages(self.world, self.directory), TRIPLES, self._problem(TRIPLES))

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        if self._amplitudes is not None:
            self._amplitudes.close()
            self._amplitudes = None
