"""Products of the ladders with states of open shells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.excited.open_blocks import NONE
from outcore.chem.cc.equations.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outcore.chem.cc.equations.excited.open_blocks import OpenStateBlocks
    from outcore.chem.cc.equations.excited.open_transformed import OpenTransformedHamiltonian
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]


class OpenLadders:
    """Of the parts of one kind whose electrons are of a spin each. Collective to make."""

    def __init__(self, of: OpenTransformedHamiltonian, kind: OpenStateBlocks) -> None:
        self._kind, self._same, self._opposite = kind, of.of.ladders, of.of.opposite
        self._products: dict[int, Array] = {}
        self._keeps_spin = kind.doubles[1] == (0, 0, 1, 1)  # doubles are those of amplitudes
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
