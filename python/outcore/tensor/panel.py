"""Panels in memory: matrices into which boxes of arrays are brought, in whatever order of axes. [M37]"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from outcore.parallel.prefetch import Waitable
from outcore.tensor.geometry import Geometry
from outcore.tensor.operands import Array, Operand
from outcore.tensor.shares import Share, within

Flags = np.ndarray[Any, np.dtype[np.bool_]]
_Cell = tuple[
    tuple[int, ...], list[tuple[int, int]], tuple[tuple[int, int], ...]
]  # numbers, box, place in a panel
_KNOWN = 1000  # panels of which cells are kept


@dataclass(frozen=True)
class Side:
    """An array of a product, and the three groups of its axes, by number: those of the matrix that a panel is.

    Attributes:
        flags: which cells are not zero, or are stored; None: all.
        dtype: of the elements that are multiplied.
    """

    operand: Operand
    labels: str
    groups: tuple[int, int, int]
    flags: Flags | None
    dtype: np.dtype[Any]
    geometry: Geometry

    @property
    def letters(self) -> list[str]:
        """Of each group."""
        return [self.geometry.problem.product.groups[group] for group in self.groups]

    def matrices(self, buffer: Array, panel: tuple[int, ...], share: Share | None = None) -> Array:
        """[batch, first group, second group] in a buffer, laid out so that the last axis of the array stays the
        fastest where that is an axis of the matrix; of a share of the panel."""
        sizes = [int(self.geometry.sizes[g][p]) for g, p in zip(self.groups, panel, strict=True)]
        if share is not None:
            sizes[share.group] = share.end - share.begin
        flat = buffer[: math.prod(sizes)]
        if self.labels and self.labels[-1] in self.letters[1]:
            return flat.reshape(sizes[0], sizes[2], sizes[1]).transpose(0, 2, 1)
        return flat.reshape(sizes)

    def boxes(
        self, panel: tuple[int, ...], matrices: Array, share: Share | None = None
    ) -> list[tuple[list[tuple[int, int]], Array]]:
        """The boxes that make up a panel, or a share of it, and are not zero, and where each lies in that, in the
        order of the axes of the array (of their first occurrence, where a letter is there twice)."""
        result = []
        for cells, whole, places in self._cells(panel):
            box, ranges = whole, list(places)
            if share is not None:
                cut = self._cut(cells, whole, ranges[share.group], share)
                if cut is None:
                    continue
                box, ranges[share.group] = cut
            inside = matrices[tuple(slice(*each) for each in ranges)]
            result.append((box, self._as_axes(inside, box)))
        return result

    def _cells(self, panel: tuple[int, ...]) -> list[_Cell]:
        """Of a panel those that are not zero."""
        found = self._known.get(panel)
        if found is None:
            chosen = dict(zip(self.groups, panel, strict=True))
            begins = [self._begins(group, number) for group, number in chosen.items()]
            found = [
                (cells, box, tuple(begin[cell] for begin, cell in zip(begins, cells, strict=True)))
                for cells, box in self.geometry.boxes(self.labels, chosen)
                if self.flags is None or self.flags[cells]
            ]
            if len(self._known) < _KNOWN:
                self._known[panel] = found
        return found

    @cached_property
    def _known(self) -> dict[tuple[int, ...], list[_Cell]]:
        return {}

    def _cut(
        self, cells: Sequence[int], box: list[tuple[int, int]], here: tuple[int, int], share: Share
    ) -> tuple[list[tuple[int, int]], tuple[int, int]] | None:
        """What a share has of a box, and where in the share that lies; None: nothing. `here`: where the box lies in
        the panel."""
        begin, end = max(here[0], share.begin), min(here[1], share.end)
        if begin >= end:
            return None
        cell = self.geometry.cuts[share.group].cells[cells[share.group]]
        intervals = dict(
            zip(self.letters[share.group], within(cell, begin - here[0], end - here[0]), strict=True)
        )
        parts = [intervals.get(label, interval) for label, interval in zip(self.labels, box, strict=True)]
        return parts, (begin - share.begin, end - share.begin)

    def _begins(self, group: int, panel: int) -> Mapping[int, tuple[int, int]]:
        place, found = 0, {}
        for cell in self.geometry.panels[group][panel]:
            size = int(self.geometry.cuts[group].sizes[cell])
            found[cell] = place, place + size
            place += size
        return found

    def _as_axes(self, matrix: Array, box: Sequence[tuple[int, int]]) -> Array:
        extents = {label: end - begin for label, (begin, end) in zip(self.labels, box, strict=True)}
        order = "".join(self.letters)
        split = matrix.reshape([extents[label] for label in order])  # a view: no axes are put together
        return split.transpose([order.index(label) for label in dict.fromkeys(self.labels)])

    # ---- transfers ----

    def get(
        self, panel: tuple[int, ...], buffer: Array, *, in_place: bool = True
    ) -> tuple[Array, list[Waitable]]:
        """Starts to bring a panel into a buffer; the matrices, which are complete when all is waited for. They
        lie in the array itself where that is possible and allowed."""
        matrices = self._in_place(panel) if in_place else None
        if matrices is not None:
            return matrices, []
        matrices = self.matrices(buffer, panel)
        if self.flags is not None or self.operand.facts.readable is not None:
            matrices[...] = 0
        started: list[Waitable] = []
        for box, target in self.boxes(panel, matrices):
            started += self._get(box, target)
        return matrices, started

    def prefetch(self, panel: tuple[int, ...]) -> None:
        """Hints that a panel will be wanted soon."""
        if self.operand.facts.where == "disk":
            self.operand.prefetch([box for _, box, _ in self._cells(panel)])

    def _get(self, box: list[tuple[int, int]], target: Array) -> list[Waitable]:
        facts = self.operand.facts
        if facts.dtype == self.dtype and len(set(self.labels)) == len(self.labels):
            return self.operand.get(box, target)
        buffer = np.zeros([end - begin for begin, end in box], facts.dtype)
        return [_Converted(self.operand.get(box, buffer), buffer, self.labels, target)]

    def _in_place(self, panel: tuple[int, ...]) -> Array | None:
        """The panel as a view of an array in the memory of this process, if it is one of matrices there."""
        if not self.operand.has_views or self.operand.facts.dtype != self.dtype or self.flags is not None:
            return None
        chosen = dict(zip(self.groups, panel, strict=True))
        if any(len(self.geometry.panels[group][number]) > 1 for group, number in chosen.items()):
            return None
        ((_, box),) = self.geometry.boxes(self.labels, chosen)
        view = self.operand.view(box)
        if view is None or len(set(self.labels)) < len(self.labels):
            return None
        return merged(view.transpose([self.labels.index(x) for x in "".join(self.letters)]), self.letters)

    @property
    def copies_what_it_puts(self) -> bool:
        """Beside the buffer: of another type, or in tiles."""
        facts = self.operand.facts
        return facts.dtype != self.dtype or any(cuts is not None for cuts in facts.tiles)

    def put(
        self, panel: tuple[int, ...], matrices: Array, share: Share | None = None, *, add: bool
    ) -> tuple[list[Waitable], int]:
        """Starts to put or add a panel, or a share of one; it must not change until all is waited for. And its
        bytes."""
        started: list[Waitable] = []
        dtype, count = self.operand.facts.dtype, 0
        for box, value in self.boxes(panel, matrices, share):
            count += value.size
            started += self.operand.put(box, value if dtype == value.dtype else value.astype(dtype), add=add)
        return started, count * self.operand.facts.item_bytes

    @cached_property
    def _elements(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return self.geometry.elements(self.flags, self.groups)

    def bytes_of(self, panel: tuple[int, ...]) -> int:
        """Of a whole panel, as it is stored."""
        return int(self._elements[panel]) * self.operand.facts.item_bytes


class _Converted:
    """A box that comes in another type, or of which the diagonal is wanted."""

    def __init__(self, requests: list[Waitable], buffer: Array, labels: str, target: Array) -> None:
        self._requests, self._buffer, self._labels, self._target = requests, buffer, labels, target

    def wait(self) -> None:
        for request in self._requests:
            request.wait()
        labels = self._labels
        if len(set(labels)) == len(labels):
            self._target[...] = self._buffer
        else:
            self._target[...] = np.einsum(f"{labels}->{''.join(dict.fromkeys(labels))}", self._buffer)


def merged(view: Array, groups: Sequence[str]) -> Array | None:
    """Axes of each group as one, without a copy; None if they do not lie so."""
    shape, strides, axis = [], [], 0
    for letters in groups:
        dims = [
            (extent, stride)
            for extent, stride in zip(view.shape[axis:][: len(letters)], view.strides[axis:], strict=False)
            if extent != 1
        ]
        axis += len(letters)
        for (_, outer), (extent, stride) in itertools.pairwise(dims):
            if outer != extent * stride:
                return None
        shape.append(math.prod(extent for extent, _ in dims))
        strides.append(dims[-1][1] if dims else view.itemsize)
    return np.lib.stride_tricks.as_strided(view, shape, strides)
