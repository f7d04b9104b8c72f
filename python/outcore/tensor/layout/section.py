"""A part of an array along one axis as an operand of contractions. Nothing is copied."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.parallel.requests import Request
from outcore.tensor.layout.operands import Array, Box, Facts, LocalOperand, Mask, Operand, Use
from outcore.tensor.layout.tiling import Tiling


class SectionOperand(Operand):
    """Elements `begin` .. `end` along `axis` of an array. If the axis has tiles, they are whole tiles. A section of
    an array with several copies can only be read."""

    def __init__(self, whole: Operand, axis: int, begin: int, end: int) -> None:
        self._whole, self._axis, self._begin = whole, axis, begin
        self.world = whole.world
        self.facts = section_facts(whole.facts, axis, begin, end)

    def _moved(self, box: Box) -> list[tuple[int, int]]:
        """The same box, with places in the whole array."""
        return [
            (first + self._begin, last + self._begin) if axis == self._axis else (first, last)
            for axis, (first, last) in enumerate(box)
        ]

    def get(self, box: Box, out: Array) -> list[Request]:
        return self._whole.get(self._moved(box), out)

    def prefetch(self, boxes: Sequence[Box]) -> None:
        self._whole.prefetch([self._moved(box) for box in boxes])

    def put(self, box: Box, value: Array, *, add: bool) -> list[Request]:
        if self.world is not None and self._whole.copies(self.world) > 1:
            raise OutcoreError(
                errno.ENOTSUP, "write a section of an array", detail="there are several copies"
            )
        return self._whole.put(self._moved(box), value, add=add)

    def native(self, use: Use) -> _core.Boxes | None:
        whole = self._whole.native(use)
        return None if whole is None else whole.section(self._axis, self._begin)

    @property
    def storage(self) -> Any:
        return self._whole.storage

    @property
    def read_only(self) -> bool:
        return self._whole.read_only

    def sync(self) -> None:
        self._whole.sync()


def section(operand: Operand, labels: str, letter: str, begin: int, end: int) -> Operand:
    """The part of an array with axes `labels` between two places along `letter`; without such an axis, the whole
    array."""
    if letter not in labels:
        return operand
    axis = labels.index(letter)
    if not isinstance(operand, LocalOperand):
        return SectionOperand(operand, axis, begin, end)
    part = copy(operand)
    part.array = operand.array[(slice(None),) * axis + (slice(begin, end),)]
    part.facts = section_facts(operand.facts, axis, begin, end)
    return part


def section_facts(facts: Facts, axis: int, begin: int, end: int) -> Facts:
    shape = (*facts.shape[:axis], end - begin, *facts.shape[axis + 1 :])
    if facts.chunk is not None and begin % facts.chunk[axis]:  # no chunk begins where the section does
        facts = replace(facts, chunk=(*facts.chunk[:axis], 1, *facts.chunk[axis + 1 :]))
    tiling = facts.tilings[axis]
    if tiling is None:
        return replace(facts, shape=shape)
    first, last = tiling.cuts.index(begin), tiling.cuts.index(end)
    part = Tiling(
        end - begin,
        [cut - begin for cut in tiling.cuts[first : last + 1]],
        irreps=tiling.irreps[first:last],
        spins=tiling.spins[first:last],
        name=tiling.name,
    )

    def cut(mask: Mask | None) -> Mask | None:
        return None if mask is None else np.take(mask, range(first, last), axis)

    tilings = (*facts.tilings[:axis], part, *facts.tilings[axis + 1 :])
    return replace(
        facts, shape=shape, tilings=tilings, readable=cut(facts.readable), stored=cut(facts.stored)
    )
