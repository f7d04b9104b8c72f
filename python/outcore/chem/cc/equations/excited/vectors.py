"""Products and facts that a search for states needs of one kind of states."""

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
    """Equations of one kind of states.

    of: the transformed Hamiltonian.
    core: for each occupied orbital, whether it is in the core, from which each excitation has an electron at least;
        None: any electron may be excited.
    names: of arrays of doubles in the plan, one for each part.
    """

    of: Any
    core: Values | None
    room: Room
    names: tuple[str, ...]

    def multiply(self, vector: StateVector, out: tuple[Array, ...]) -> Values:
        """Singles of H times a vector; its doubles are put into `out`. Collective."""
        ...

    def products(self, vectors: Sequence[StateVector], outs: Sequence[tuple[Array, ...]]) -> Iterator[Values]:
        """The products of one vector after the other, as by `multiply`. Collective."""
        ...

    def excitations(self, singles: Values) -> list[tuple[int | None, int | None, Values]]:
        """Singles by spins of the virtual and of the occupied orbital: [i,a] of both, [i] or [a] of one."""
        ...

    def diagonal(self) -> Values:
        """Approximate diagonal elements of singles (Hartree)."""
        ...

    def diagonal_of(self, part: int, tile: Tile) -> Values:
        """Approximate diagonal elements of a tile of doubles. Any thread."""
        ...

    def guess(self, count: int) -> list[FirstState]:
        """Start vectors, about `count` of singles and of doubles each; fewer if there are no more. Collective."""
        ...

    def mask(self) -> Values | None:
        """The singles that core-valence separation leaves; None: all."""
        ...

    def mask_of(self, part: int, tile: Tile) -> Values | None:
        """As `mask`, for a tile of doubles, in any shape that broadcasts to it. Any thread."""
        ...

    def project(self, doubles: tuple[Array, ...]) -> None:
        """Removes the part of a vector that is no state: rounding adds it, and a search would find it.
        Collective."""
        ...

    def square(self, singles: Values) -> float:
        """The part of singles in the squared norm of a state."""
        ...

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        """The part of a tile of doubles in the squared norm of a state. Any thread."""
        ...


class OneByOne:
    """Equations in which products with several vectors share nothing."""

    multiply: Callable[[StateVector, tuple[Array, ...]], Values]

    def products(self, vectors: Sequence[StateVector], outs: Sequence[tuple[Array, ...]]) -> Iterator[Values]:
        for vector, out in zip(vectors, outs, strict=True):
            yield self.multiply(vector, out)


class LeftEquations(StateEquations, Protocol):
    """Equations of left vectors of one kind of states."""

    def share(self, part: int) -> float:
        """Factor of products of elements of doubles of a part in <l|r>."""
        ...


def gaps(rows: Sequence[Values]) -> Values:
    """Sums of one element of each row, an axis each."""
    found = np.zeros((1,) * len(rows))
    for axis, each in enumerate(rows):
        found = found + each.reshape([-1 if n == axis else 1 for n in range(len(rows))])
    return found
