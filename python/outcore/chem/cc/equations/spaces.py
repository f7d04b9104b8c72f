"""Orbitals of one spin as axes of extended arrays: occupied ones in one tile, virtual ones in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from outcore.chem.cc.equations.pairs import PairAxis
from outcore.tensor.layout.symmetry import Symmetry
from outcore.tensor.layout.tiling import Tiling

PAIR = Symmetry(4, [((2, 3, 0, 1), 1)])
"""The symmetry t[a,i,b,j] = t[b,j,a,i]."""


@dataclass(frozen=True)
class Spaces:
    """`block`: most virtual orbitals of a block."""

    occupied: int
    virtual: int
    block: int

    @property
    def orbitals(self) -> int:
        return self.occupied + self.virtual

    @cached_property
    def o(self) -> Tiling:
        return Tiling(self.occupied, name="occupied")

    @cached_property
    def v(self) -> Tiling:
        return Tiling(self.virtual, tile=self.block, name="virtual")

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Boundaries of blocks of all orbitals, occupied ones first."""
        return (0, *(self.occupied + cut for cut in self.v.cuts))

    @cached_property
    def all(self) -> Tiling:
        """All orbitals."""
        return Tiling(self.orbitals, self.cuts, name="orbitals")

    @cached_property
    def all_pairs(self) -> PairAxis:
        return PairAxis(self.cuts)

    @cached_property
    def virtual_pairs(self) -> PairAxis:
        return PairAxis(self.v.cuts)
