"""What a search for states has to know of one kind of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


@dataclass
class StateVector:
    """A state: `singles` are in memory at all processes, `doubles` extended arrays, one for each part."""

    singles: Values
    doubles: tuple[Array, ...]


class StateEquations(Protocol):
    """Of one kind of states.

    of: the transformed Hamiltonian.
    core: of each occupied orbital, whether states are of excitations from it alone; None: states are of all.
    names: of arrays of their doubles in the plan, of each part.
    """

    of: Any
    core: Values | None
    room: Room
    names: tuple[str, ...]

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """Singles of H times a vector; its doubles are put into `out`. Collective."""
        ...

    def products(self, vectors: Sequence[StateVector], outs: Sequence[tuple[Array, ...]]) -> Iterator[Values]:
        """As `multiply`, of one vector after the other. Collective."""
        ...

    def excitations(self, singles: Values) -> list[tuple[int | None, int | None, Values]]:
        """Singles by spins of the virtual and of the occupied orbital: [i,a] of both, [i] or [a] of one."""
        ...

    def diagonal(self) -> Values:
        """About the diagonal elements of singles (Hartree)."""
        ...

    def diagonal_of(self, part: int, tile: Tile) -> Values:
        """About those of a tile of doubles. Any thread."""
        ...

    def guess(self, count: int) -> list[FirstState]:
        """Vectors to begin with, about `count` of singles and of doubles each: as many as there are. Collective."""
        ...

    def mask(self) -> Values | None:
        """Which singles states have, as core-valence separation leaves them; None: all."""
        ...

    def mask_of(self, part: int, tile: Tile) -> Values | None:
        """Of a tile of doubles; any shape that fits. Any thread."""
        ...

    def project(self, doubles: tuple[Array, ...]) -> None:
        """Takes from a vector what is no state, which rounding brings and a search would find. Collective."""
        ...

    def square(self, singles: Values) -> float:
        """What singles add to the square of the norm of a state."""
        ...

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        """What a tile of doubles adds. Any thread."""
        ...


class OneByOne:
    """Of equations in which vectors share nothing."""

    multiply: Callable[[StateVector, tuple[Array, ...]], Values]

    def products(self, vectors: Sequence[StateVector], outs: Sequence[tuple[Array, ...]]) -> Iterator[Values]:
        for vector, out in zip(vectors, outs, strict=True):
            yield self.multiply(vector, out)


class LeftEquations(StateEquations, Protocol):
    """Of left vectors of one kind of states."""

    def share(self, part: int) -> float:
        """What products of elements of doubles of a part are multiplied by in <l|r>."""
        ...


def gaps(rows: Sequence[Values]) -> Values:
    """Sums of one element of each row, an axis each."""
    found = np.zeros((1,) * len(rows))
    for axis, each in enumerate(rows):
        found = found + each.reshape([-1 if n == axis else 1 for n in range(len(rows))])
    return found
