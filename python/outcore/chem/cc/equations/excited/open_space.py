"""Parts that right and left states of open shells share; see `open_states`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.open_blocks import (
    NONE,
    Folding,
    OpenStateBlocks,
    OrbitalRanges,
    Pair,
    blocks_of,
    flat,
)
from outcore.chem.cc.equations.excited.vectors import OneByOne, gaps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class OpenStateSpace(OneByOne):
    """The facts that a search needs; singles are one row."""

    def __init__(self, of: OpenTransformedHamiltonian, kind: OpenStateBlocks) -> None:
        self.of, self.kind, self.room, self.spaces = of, kind, of.room, of.spaces
        room, name = of.room, kind.name
        ranges = OrbitalRanges(tuple(of.spaces))
        self._occupied = [*(-np.diag(each) for each in of.foo), np.zeros(1)]
        self._virtual = [*(np.diag(each) for each in of.fvv), np.zeros(1)]
        self._cuts = [each.cuts for each in ranges.virtual]
        self.names = tuple(kind.array_name(part) for part in range(len(kind.doubles)))
        self._x = [room.array(kind.scratch_name(part)) for part in range(len(kind.doubles))]
        self._rings = {each: room.array(kind.ring_name(each)) for each in kind.rings()}
        self._yr, self._zr, self._poo, self._pvo = (
            {
                (a, i): room.array(f"{name}{what}{'abx'[a]}{'abx'[i]}")
                for a, i in kind.singles
                if what in ("Y", "Z") or a != NONE
            }
            for what in ("Y", "Z", "P", "V")
        )
        self._foldings = [Folding.of(each) for each in kind.doubles]

    def blocks(self, singles: Values) -> dict[Pair, Values]:
        """Singles [i,a] by their spins a, i."""
        return blocks_of(self.kind, self.spaces, singles)

    # ---- of a search ----

    def project(self, doubles: tuple[Array, ...]) -> None:
        """Keeps the antisymmetric part alone, where electrons have the same spin."""
        for part, array in enumerate(doubles):
            self._project(self._foldings[part], array)

    def _project(self, folding: Folding, array: Array) -> None:
        if folding.count == 1:
            return

        def work(tile: Tile) -> None:
            a, _, b, _ = tile
            values = array.get_tile(tile)
            if folding.occupied:
                values = 0.5 * (values - values.transpose(0, 3, 2, 1))
            if folding.virtual and a == b:  # the tile holds both orders
                values = 0.5 * (values - values.transpose(2, 1, 0, 3))
            elif folding.virtual and not folding.occupied:
                if a > b:
                    return
                turned = (b, 0, a, 0)
                values = 0.5 * (values - array.get_tile(turned).transpose(2, 1, 0, 3))
                array.put_tile(turned, -values.transpose(2, 1, 0, 3))
            array.put_tile(tile, values)

        self.room.each_tile(array, work, "project")

    core: Values | None = None

    def mask(self) -> Values | None:
        return None

    def mask_of(self, part: int, tile: Tile) -> Values | None:
        return None

    def excitations(self, singles: Values) -> list[tuple[int | None, int | None, Values]]:
        found: list[tuple[int | None, int | None, Values]] = []
        for (a, i), each in self.blocks(singles).items():
            spins = (None if a == NONE else a), (None if i == NONE else i)
            found.append((*spins, each.ravel() if None in spins else each))
        return found

    def diagonal(self) -> Values:
        return flat(gaps([self._occupied[i], self._virtual[a]]) for a, i in self.kind.singles)

    def diagonal_of(self, part: int, tile: Tile) -> Values:
        a, i, b, j = self.kind.doubles[part]
        return gaps([self._box(a, tile[0]), self._occupied[i], self._box(b, tile[2]), self._occupied[j]])

    def _box(self, spin: int, block: int) -> Values:
        cuts = self._cuts[spin]
        return self._virtual[spin][cuts[block] : cuts[block + 1]]

    def square(self, singles: Values) -> float:
        return float(np.vdot(singles, singles))

    def square_of(self, part: int, tile: Tile, doubles: Array) -> float:
        values = doubles.get_tile(tile)
        weight = float(sum(1 for _ in doubles.layout.images(tile)))
        return weight * float(np.vdot(values, values)) / self._foldings[part].count
