"""Amplitudes of double excitations of two spins, with their residual and scratch arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.cc.equations.steps import Steps
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


def exchanged(tile: Values) -> Values:
    """t_ij^ba of t_ij^ab, of a tile [a,i,b,j] with all i and j."""
    return tile.transpose(0, 3, 2, 1)


def spin_pairs(spins: int) -> list[tuple[int, int]]:
    """Pairs of spins: the one of closed shells, or aa, ab, bb of two spins."""
    return [(0, 0)] if spins == 1 else [(0, 0), (0, 1), (1, 1)]


@dataclass(frozen=True)
class Doubles:
    """Arrays [a,i,b,j] of amplitudes and of their residual.

    put: puts a tile of amplitudes, and of arrays that are made from them.
    spins: of a, i and of b, j.
    integrals: returns the integrals of a tile that second order divides by energies.
    free: two scratch arrays of the same shape, without symmetry; their contents are undefined between residuals.
    """

    amplitudes: Array
    residual: Array
    put: Callable[[Tile, Values], None]
    spins: tuple[int, int]
    integrals: Callable[[Tile], Values]
    free: tuple[Array, Array]


class Equations(Protocol):
    """Equations of amplitudes: singles [i,a] of each spin are in memory, doubles are extended arrays."""

    doubles: list[Doubles]
    steps: Steps

    def residual(self, amplitudes: list[Values]) -> list[Values]:
        """The residual of singles; that of doubles goes to their arrays."""
        ...

    def energy(self, singles: list[Values]) -> float:
        """The correlation energy (Hartree)."""
        ...

    def sync(self) -> None:
        """Makes amplitudes that were put visible to all processes."""
        ...
