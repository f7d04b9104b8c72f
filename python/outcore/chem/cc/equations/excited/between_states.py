"""Densities of all states of a kind, and of transitions between them: those of singlets of closed shells as
`one_particle` has them, others by spin orbitals (`spin_densities`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from outcore.chem.cc.equations.excited import kinds
from outcore.chem.cc.equations.excited.one_particle import StateDensities
from outcore.chem.cc.equations.excited.spin_densities import SpinOrbitalDensities
from outcore.chem.cc.equations.excited.spin_vectors import ClosedVectors, OpenVectors
from outcore.chem.cc.equations.excited.vectors import StateVector
from outcore.chem.cc.equations.open_multipliers import OpenMultiplierEquations

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.spin_vectors import SpinVectors
    from outcore.chem.cc.equations.multipliers import MultiplierEquations

Values = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class OfRoot:
    """Densities of one root. Lists have one for each spin, or the sum of both.

    Attributes:
        state: <k|p'q|k>, without the determinant of the reference, [p][q].
        from_left, from_right: <k|p'q|0> and <0|p'q|k>; of ions Dyson orbitals <k|p|0> and <0|p'|k> of ionisation,
            <k|p'|0> and <0|p|k> of attachment, [p]. Empty where spin forbids them.
    """

    state: list[Values]
    from_left: list[Values]
    from_right: list[Values]


class BetweenStates(Protocol):
    """Collective. ground: the left ground state, if right vectors may overlap with it. shares: factors of its
    parts of doubles."""

    ground: StateVector | None
    shares: Sequence[float]

    def ground_density(self) -> list[Values]:
        """The density of the ground state, without the determinant of the reference."""
        ...

    def of_root(self, left: StateVector, right: StateVector, r0: float) -> OfRoot:
        """Densities of a root. r0: share of the ground state in the right vector."""
        ...

    def between(self, left: StateVector, right: StateVector, r0: float) -> list[Values]:
        """The transition density of two states."""
        ...


class ClosedSinglets:
    """Densities of singlets of closed shells, from converged multipliers."""

    ground: StateVector | None
    shares: Sequence[float] = (1.0,)

    def __init__(self, of: MultiplierEquations, l1: Sequence[Values]) -> None:
        self._densities = StateDensities(of)
        self.ground = self._ground = StateVector(l1[0], (of.multipliers,))
        self._of_ground = self._densities.of_left(self._ground)

    def ground_density(self) -> list[Values]:
        return [self._densities.of_amplitudes + self._of_ground]

    def of_root(self, left: StateVector, right: StateVector, r0: float) -> OfRoot:
        found = self._densities
        of_left = found.of_left(left)
        state = found.of_amplitudes + found.between(left, right, r0, of_left, with_ground=False)
        from_right = found.between(self._ground, right, r0, self._of_ground, with_ground=True)
        return OfRoot([state], [of_left], [from_right])

    def between(self, left: StateVector, right: StateVector, r0: float) -> list[Values]:
        of_left = self._densities.of_left(left)
        return [self._densities.between(left, right, r0, of_left, with_ground=False)]


class SpinOrbitalStates:
    """Densities by spin orbitals, from converged multipliers."""

    ground: StateVector | None = None
    shares: Sequence[float] = (0.25, 1.0, 0.25)

    def __init__(
        self, of: MultiplierEquations | OpenMultiplierEquations, l1: Sequence[Values], kind: kinds.Kind
    ) -> None:
        self._kind = kind
        self._vectors: SpinVectors
        if isinstance(of, OpenMultiplierEquations):
            assert kind.blocks is not None
            self._vectors, t1 = OpenVectors(of, kind.blocks), list(of.t)
            if kind.from_ground:
                row = np.concatenate([each.ravel() for each in l1])
                self.ground = StateVector(row, (of.same[0], of.mixed, of.same[1]))
        else:
            self._vectors, t1 = ClosedVectors(of, kind.names[0]), [of.t1, of.t1]
        self._restricted = kind.blocks is None
        self._of = SpinOrbitalDensities(of.room, t1, self._vectors.t2)
        self._left = self._vectors.ground(l1)
        self._dressed = self._of.dressed(self._left)

    def _spins(self, gamma: Values, *, amplitudes: bool) -> list[Values]:
        found = [self._of.of_spin(gamma, s) for s in (0, 1)]
        if amplitudes:
            found = [each + self._of.of_amplitudes(s) for s, each in enumerate(found)]
        return [found[0] + found[1]] if self._restricted else found

    def ground_density(self) -> list[Values]:
        return self._spins(self._of.of_left(self._dressed), amplitudes=True)

    def of_root(self, left: StateVector, right: StateVector, r0: float) -> OfRoot:
        of, kind = self._of, self._kind
        one, other = self._vectors.left(left), self._vectors.right(right)
        dressed = of.dressed(one)
        state = self._spins(of.between(one, dressed, other, r0), amplitudes=True)
        if not (kind.from_ground or kind.is_ion):
            return OfRoot(state, [], [])
        up = of.of_left(dressed)
        down = of.between(self._left, self._dressed, other, r0, with_ground=True)
        if kind.from_ground:
            return OfRoot(state, self._spins(up, amplitudes=False), self._spins(down, amplitudes=False))
        spins = (0,) if self._restricted else (0, 1)
        return OfRoot(state, *([of.dyson(each, s) for s in spins] for each in (up, down)))

    def between(self, left: StateVector, right: StateVector, r0: float) -> list[Values]:
        one, other = self._vectors.left(left), self._vectors.right(right)
        return self._spins(self._of.between(one, self._of.dressed(one), other, r0), amplitudes=False)


def of_states(
    kind: str, of: MultiplierEquations | OpenMultiplierEquations, l1: Sequence[Values]
) -> BetweenStates:
    """Densities of a kind of states. l1: singles of multipliers."""
    if kind == "ee":
        assert not isinstance(of, OpenMultiplierEquations)
        return ClosedSinglets(of, l1)
    return SpinOrbitalStates(of, l1, kinds.of(kind))
