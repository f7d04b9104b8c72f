"""The space of vectors of ionised and of attached states, which right and left vectors share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.vectors import OneByOne, gaps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class _IonSpace(OneByOne):
    def __init__(self, of: TransformedHamiltonian) -> None:
        self.of, self.room, self.spaces = of, of.room, of.spaces
        self._occupied, self._virtual = np.diag(of.foo), np.diag(of.fvv)

    def _box(self, virtual: int) -> Values:
        """Energies of the virtual orbitals of a block."""
        cuts = self.spaces.v.cuts
        return self._virtual[cuts[virtual] : cuts[virtual + 1]]

    # ---- of a search ----

    core: Values | None = None

    def project(self, doubles: tuple[Array, ...]) -> None:
        """Does nothing: all doubles are those of states."""

    def square(self, singles: Values) -> float:
        return float(np.vdot(singles, singles))


class IonizedSpace(_IonSpace):
    """Singles [i], doubles [a,i,j]."""

    names = ("ip",)

    def mask(self) -> Values | None:
        return self.core

    def mask_of(self, part: int, tile: Tile) -> Values | None:
        core = self.core
        return None if core is None else core[None, :, None] | core[None, None, :]

    @staticmethod
    def turned(doubles: Array, tile: Tile) -> Values:
        """A tile of the doubles with i and j exchanged, with axes as before."""
        values: Values = doubles.get_tile(tile).transpose(0, 2, 1)
        return values

    def excitations(self, singles: Values) -> list[tuple[int | None, int | None, Values]]:
        return [(None, 0, singles)]

    def diagonal(self) -> Values:
        return -self._occupied

    def diagonal_of(self, part: int, tile: Tile) -> Values:
        return gaps([self._box(tile[0]), -self._occupied, -self._occupied])


class AttachedSpace(_IonSpace):
    """Singles [a], doubles [a,i,b]."""

    names = ("ea",)

    def mask(self) -> Values | None:
        return None

    def mask_of(self, part: int, tile: Tile) -> Values | None:
        return None

    @staticmethod
    def turned(doubles: Array, tile: Tile) -> Values:
        """A tile of the doubles with a and b exchanged, with axes as before."""
        values: Values = doubles.get_tile((tile[2], 0, tile[0])).transpose(2, 1, 0)
        return values

    def excitations(self, singles: Values) -> list[tuple[int | None, int | None, Values]]:
        return [(0, None, singles)]

    def diagonal(self) -> Values:
        return self._virtual

    def diagonal_of(self, part: int, tile: Tile) -> Values:
        return gaps([self._box(tile[0]), -self._occupied, self._box(tile[2])])
