"""Parts that excited singlets and triplets of closed-shell EOM-CCSD share; see `singlets`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited import guess
from outcore.chem.cc.equations.excited.vectors import OneByOne, gaps

if TYPE_CHECKING:
    from outcore.chem.cc.equations.excited.guess import FirstState
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.equations.transformed import TransformedHamiltonian
    from outcore.chem.cc.plan.room import Room
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]


class ExcitationSpace(OneByOne):
    """The facts that a search needs of these states.

    Args:
        of: makes products with vectors; it has `foo` and `fvv` of `transformed`.

    names: of arrays of doubles.
    """

    room: Room
    spaces: Spaces
    names: tuple[str, ...]

    def __init__(self, of: Any) -> None:
        self.of, self.room, self.spaces = of, of.room, of.spaces
        self._occupied, self._virtual = np.diag(of.foo), np.diag(of.fvv)

    def project(self, doubles: tuple[Array, ...]) -> None:
        """Keeps, in tiles that hold both orders of pairs, the part that is the same in both."""
        (array,) = doubles

        def work(tile: Tile) -> None:
            if tile[0] == tile[2]:
                values = array.get_tile(tile)
                array.put_tile(tile, 0.5 * (values + values.transpose(2, 3, 0, 1)))

        self.room.each_tile(array, work, "project")

    core: Values | None = None

    def mask(self) -> Values | None:
        return None if self.core is None else self.core[:, None]

    def mask_of(self, part: int, tile: Tile) -> Values | None:
        core = self.core
        return None if core is None else core[None, :, None, None] | core[None, None, None, :]

    def excitations(self, singles: Values) -> list[tuple[int | None, int | None, Values]]:
        return [(0, 0, singles)]

    def diagonal(self) -> Values:
        return gaps([-self._occupied, self._virtual])

    def diagonal_of(self, part: int, tile: Tile) -> Values:
        cuts = self.spaces.v.cuts
        a, b = (self._virtual[cuts[n] : cuts[n + 1]] for n in (tile[0], tile[2]))
        return gaps([a, -self._occupied, b, -self._occupied])


class Excitations(ExcitationSpace, ABC):
    """Right vectors.

    coulomb: how often a state of single excitations has integrals (ia|jb): 2 in singlets, 0 in triplets.
    """

    of: TransformedHamiltonian
    coulomb: float

    def __init__(self, of: TransformedHamiltonian) -> None:
        super().__init__(of)
        self.rest, self.ring = of.of.rest, of.of.ring
        self.poo, self.pvo, self.yr = (self.room.array(name) for name in ("Poo", "Pvo", "Yr"))

    def mean_field(self, r1: Values) -> Values:
        """The mean field of r1 [i,a], over all orbitals [p,q]. Also puts [B~, r1] of occupied orbitals into `poo`,
        and sum_c B~[Q,a,c] r1[k,c] into `pvo`. Collective."""
        of, c, o, n = self.of, self.room.contract, self.spaces.occupied, self.spaces.orbitals
        poo = c("Qck,ic->Qki", of.bvo, r1, out=self.poo)
        pvo = c("Qca,kc->Qak", of.dvv, r1, out=self.pvo)
        g = np.empty((n, n))
        g[:o, :o] = -c("Qlk,Qki->li", poo, of.doo)
        g[:o, o:] = -c("Qlk,Qck->lc", poo, of.bvo)
        g[o:, :o] = -c("Qak,Qki->ai", pvo, of.doo)
        g[o:, o:] = -c("Qak,Qck->ac", pvo, of.bvo)
        if self.coulomb:
            j = self.coulomb * c("Qck,kc->Q", of.bvo, r1)
            g[:o, :o] += c("Qki,Q->ki", of.doo, j)
            g[:o, o:] += c("Qck,Q->kc", of.bvo, j)
            g[o:, :o] += c("Qai,Q->ai", of.z, j) - c("Qai,Q->ai", of.y, j)
            g[o:, o:] += c("Qca,Q->ac", of.dvv, j)
        return g

    @abstractmethod
    def product(self, factors: tuple[Values, Values], part: int, tile: Tile) -> Values:
        """A tile of doubles that are the product of two singles [i,a]. Any thread."""

    def guess(self, count: int) -> list[FirstState]:
        return guess.excitations(self.of, self.product, count, coulomb=self.coulomb, core=self.core)
