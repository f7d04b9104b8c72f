"""Products of the ladders with states of open shells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.dressed_pairs import DressedPairs
from outcore.chem.cc.equations.excited.open_blocks import NONE, Labels
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outcore.chem.cc.equations.excited.open_blocks import OpenStateBlocks
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]


class OpenLadders:
    """Ladders of those parts of one kind in which both electrons have a spin. The constructor is collective."""

    def __init__(self, of: OpenTransformedHamiltonian, kind: OpenStateBlocks) -> None:
        self._kind, self._same, self._opposite = kind, of.of.ladders, of.of.opposite
        self._products: dict[int, Array] = {}
        self._keeps_spin = kind.keeps_spin
        if self._keeps_spin:
            return
        for each in self._same:
            each.release_products()
        self._opposite.release_product()
        for part, (a, _, b, _) in enumerate(kind.doubles):
            if NONE in (a, b):
                continue
            if a == b:
                self._same[a].begin_free(kind.ladder_name(part))
            else:
                self._products[part] = of.room.array(kind.ladder_name(part))

    def contract(self, vector: Sequence[Array]) -> None:
        for part, (a, _, b, _) in enumerate(self._kind.doubles):
            if NONE in (a, b):
                continue
            if part in self._products:
                name = self._kind.ladder_name(part)
                self._opposite.contract_free(vector[part], name, self._products[part], Steps())
            elif a != b:
                self._opposite.contract(vector[part], Steps())
            elif self._keeps_spin:
                self._same[a].contract(vector[part], Steps())
            else:
                self._same[a].contract_free(vector[part], Steps())

    def block(self, part: int, p: int, q: int) -> Values:
        """A_ij^pq as [p,i,q,j] of blocks of all orbitals, from the last products."""
        a, _, b, _ = self._kind.doubles[part]
        if part in self._products:
            return self._opposite.free_block(self._products[part], p, q)
        if a != b:
            return self._opposite.block(p, q)
        if not self._keeps_spin:
            return self._same[a].free_block(p, q)
        if p <= q:
            return self._same[a].block(p, q)
        return self._same[a].block(q, p).transpose(2, 3, 0, 1)


class OpenLeftLadders:
    """The same with left vectors L, which read integrals from their other side:

        T_[c,i,d,j] = sum_pq A_[ij,pq] (pc|qd),    A_ as `DressedPairs` has it of L

    The constructor is collective."""

    def __init__(self, of: OpenTransformedHamiltonian, kind: OpenStateBlocks) -> None:
        self._of, self._kind, self._same, self._opposite = of, kind, of.of.ladders, of.of.opposite
        self._products: dict[int, Array] = {}
        if kind.keeps_spin:
            for each in self._same:
                each.begin_transposed()
            self._opposite.begin_transposed()
            return
        for each in self._same:
            each.release_products()
        self._opposite.release_product()
        for part, (a, _, b, _) in enumerate(kind.doubles):
            if NONE in (a, b):
                continue
            if a == b:
                self._same[a].begin_free(kind.left_ladder_name(part), transposed=True)
            else:
                self._products[part] = of.room.array(kind.left_ladder_name(part))

    @staticmethod
    def has(labels: Labels) -> bool:
        """Whether doubles of these spins have a ladder."""
        return NONE not in (labels[0], labels[2])

    def contract(self, vector: Sequence[Array], occupied: dict[int, Values]) -> None:
        """occupied: for each part that has a ladder, the term to add to A_[ij,kl], as [k,i,l,j]."""
        of, steps = self._of, Steps()
        for part, labels in enumerate(self._kind.doubles):
            if not self.has(labels):
                continue
            a, _, b, _ = labels
            spaces, t1 = [of.spaces[a], of.spaces[b]], [of.t1[a], of.t1[b]]
            block = DressedPairs(of.room, spaces, vector[part], t1, occupied[part]).block
            if part in self._products:
                name, product = self._kind.left_ladder_name(part), self._products[part]
                self._opposite.contract_transposed(block, vector[part], steps, name, product)
            elif a != b:
                self._opposite.contract_transposed(block, vector[part], steps)
            elif self._kind.keeps_spin:
                self._same[a].contract_transposed(block, vector[part], steps)
            else:
                self._same[a].contract_transposed_free(block, vector[part], steps)

    def block(self, part: int, c: int, d: int) -> Values:
        """T_[c,i,d,j] of blocks of virtual orbitals, from the last products."""
        a, _, b, _ = self._kind.doubles[part]
        if part in self._products:
            return self._opposite.free_block(self._products[part], c, d)
        if a != b:
            return self._opposite.transposed_block(c, d)
        if not self._kind.keeps_spin:
            return self._same[a].free_block(c, d)
        return self._same[a].transposed_block(c, d)
