"""A product cut into panels: which panels are zero, and in which order the others are worked on.

A geometry knows facts of arrays, not their data. The executor and the count of bytes walk through the same steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from outcore.tensor.layout.blocks import Partition, rectangles
from outcore.tensor.layout.canonical import Binary
from outcore.tensor.layout.cells import Axis, Cut, Interval, Panels, panels
from outcore.tensor.layout.letters import common_tilings
from outcore.tensor.layout.operands import Facts, Mask
from outcore.tensor.layout.triangles import triangles

Keep = Literal["result", "left", "right"]
"""Panels that stay while the rest passes by: a panel of the result alone; or with it all panels of the left operand
for its rows, or all panels of the right operand for its columns."""

Flags = np.ndarray[tuple[int, int, int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class ProductProblem:
    """A product and its arrays. `adds`: the product is added to the result. `simple`: the result is made one panel
    after another."""

    product: Binary
    extents: Mapping[str, int]
    left: Facts
    right: Facts
    out: Facts
    adds: bool = False
    simple: bool = False

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """All axes by letter, with how they may be cut. Raises OutcoreError (EINVAL) where tiles of two arrays do
        not match."""
        names = ("the left operand", "the right operand", "the result")
        found = common_tilings(
            f"einsum '{self.product}'",
            [(name, labels, facts.tilings) for name, (labels, facts) in zip(names, self.arrays, strict=True)],
        )
        sparse = {
            label
            for labels, facts in self.arrays
            if facts.readable is not None or facts.stored is not None
            for label, tiling in zip(labels, facts.tilings, strict=True)
            if tiling is not None
        }
        fixed = {label: tiling.cuts for label, tiling in found.items()}
        chunks: dict[str, int] = {}  # first of the result: a chunk that is put in part is read before
        for labels, facts in (self.arrays[2], *self.arrays[:2]):
            if facts.where == "disk" and facts.chunk is not None:
                chunks = {**dict(zip(labels, facts.chunk, strict=True)), **chunks}
        return {
            label: Axis(
                label, extent, fixed.get(label), label not in sparse, min(chunks.get(label, 1), extent)
            )
            for label, extent in self.extents.items()
        }

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements that are multiplied."""
        return np.result_type(*(facts.dtype for _, facts in self.arrays))

    @cached_property
    def copied(self) -> tuple[int, int, int]:
        """Bytes per element of a second buffer beside a panel in transit, of left, right and result. It is needed
        where the array has another type than the elements that are multiplied; elsewhere 0."""
        left, right, out = (
            0 if facts.dtype == self.dtype else facts.dtype.itemsize for _, facts in self.arrays
        )
        return left, right, out

    @cached_property
    def is_of_one_array(self) -> bool:
        """Whether both operands are the same array."""
        return self.left.array >= 0 and self.left.array == self.right.array

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether an exchange of rows and columns, which can be cut alike, leaves the result unchanged. Then an
        array is multiplied by itself, over the same axes, and no array has known zeros. A simple product does not
        count."""
        product, arrays = self.product, (self.left, self.right, self.out)
        if (
            self.simple
            or not self.is_of_one_array
            or any(each.readable is not None or each.stored is not None for each in arrays)
        ):
            return False
        others = dict(zip(product.rows, product.columns, strict=False))
        return (
            len(product.rows) == len(product.columns) > 0
            and all(others.get(x, x) == y for x, y in zip(product.left, product.right, strict=True))
            and all(
                replace(self.axes[x], label=y, chunk=self.axes[y].chunk) == self.axes[y]
                for x, y in others.items()
            )
        )

    def axes_to_cut(self, *, half: bool) -> list[list[Axis]]:
        """The axes of each group. `half`: rows and columns have the same axes; of each two axes that correspond,
        the one with the larger chunks."""
        groups = [self.group(labels) for labels in self.product.groups]
        if half:
            pairs = zip(groups[1], groups[2], strict=True)
            groups[1] = groups[2] = [max(pair, key=lambda axis: axis.chunk) for pair in pairs]
        return groups

    @property
    def has_chunks(self) -> bool:
        """Whether chunks on disk make some cuts better than others."""
        return any(1 < axis.chunk < axis.extent and axis.fixed is None for axis in self.axes.values())

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for problems whose plans are equal."""
        extents = tuple(sorted(self.extents.items()))
        return self.product, extents, self.adds, self.simple, self.left.key, self.right.key, self.out.key

    @property
    def arrays(self) -> tuple[tuple[str, Facts], ...]:
        p = self.product
        return (p.left, self.left), (p.right, self.right), (p.out, self.out)

    def group(self, labels: str) -> list[Axis]:
        return [self.axes[label] for label in labels]


class Step(NamedTuple):
    """A product of two panels, named by number: result[batch, rows, columns] += left[batch, rows, inner]
    right[batch, inner, columns]."""

    batch: int
    rows: int
    columns: int
    inner: int


@dataclass(slots=True, eq=False)
class ProductTask:
    """The steps for the panels of the result that are made at once: one panel, or those of a block. A task makes
    its steps when a caller iterates: a table of all steps would take more memory than the panels.

    Attributes:
        pairs: rows and columns of the panels of the result.
        inner: panels of inner indices, in order. The task multiplies all pairs for one of them before the next.
            -1 alone: the result is zero.
    """

    batch: int
    pairs: Sequence[tuple[int, int]]
    inner: Sequence[int]

    def __len__(self) -> int:
        return len(self.pairs) * len(self.inner)

    def __iter__(self) -> Iterator[Step]:
        return (Step(self.batch, *pair, each) for each in self.inner for pair in self.pairs)


@dataclass(frozen=True, eq=False)
class ProductGeometry:
    """Cuts and panels of batch, rows, columns and inner indices."""

    problem: ProductProblem
    cuts: tuple[Cut, Cut, Cut, Cut]
    panels: tuple[Panels, Panels, Panels, Panels]

    # ---- zeros ----

    @cached_property
    def left(self) -> Flags | None:
        """Which cells [batch, rows, inner] of the left operand are not zero; None: no cell is zero."""
        p = self.problem.product
        return cell_flags(self.problem.left.readable, p.left, (p.batch, p.rows, p.inner))

    @cached_property
    def right(self) -> Flags | None:
        """Which cells [batch, inner, columns] of the right operand are not zero."""
        p = self.problem.product
        return cell_flags(self.problem.right.readable, p.right, (p.batch, p.inner, p.columns))

    @cached_property
    def out(self) -> Flags | None:
        """Which cells [batch, rows, columns] of the result are stored."""
        p = self.problem.product
        return cell_flags(self.problem.out.stored, p.out, (p.batch, p.rows, p.columns))

    def _of_panels(self, flags: Flags | None, groups: tuple[int, int, int]) -> Flags:
        """Which panels have a nonzero cell."""
        if flags is None:
            return np.ones([len(self.panels[g]) for g in groups], bool)
        for axis, group in enumerate(groups):
            members = self.panels[group]
            flags = np.stack([flags.take(cells, axis).any(axis) for cells in members], axis)
        return flags

    @cached_property
    def steps(self) -> np.ndarray[tuple[int, int, int, int], np.dtype[np.bool_]]:
        """Which products of panels [batch, rows, columns, inner] have to be made."""
        left = self._of_panels(self.left, (0, 1, 3))
        right = self._of_panels(self.right, (0, 3, 2))
        out = self._of_panels(self.out, (0, 1, 2))
        present = left[:, :, None, :] & right.transpose(0, 2, 1)[:, None, :, :] & out[:, :, :, None]
        return present

    # ---- sizes ----

    @cached_property
    def sizes(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
        """Number of elements of each panel of each group."""
        return tuple(
            np.array([int(cut.sizes[list(cells)].sum()) for cells in members], np.int64)
            for cut, members in zip(self.cuts, self.panels, strict=True)
        )

    @cached_property
    def parts_of_chunks(self) -> float:
        """The share of the result in chunks that are put in parts."""
        groups = self.problem.product.groups[:3]
        shares = (
            cut.whole_chunks(self.problem.group(labels))
            for cut, labels in zip(self.cuts[:3], groups, strict=True)
        )
        return 1.0 - math.prod(shares)

    @cached_property
    def multiplications(self) -> float:
        """Multiplications of all steps, zeros within panels included."""
        b, m, n, k = (size.astype(float) for size in self.sizes)
        if self.steps.all():
            return float(b.sum() * m.sum() * n.sum() * k.sum())
        return float(np.einsum("bmnk,b,m,n,k->", self.steps, b, m, n, k, optimize=True))

    @cached_property
    def multiplications_of_half(self) -> float:
        """Multiplications of the steps of half of the tasks, of a product without zeros."""
        b, m, n, k = (size.astype(float) for size in self.sizes)
        return float(b.sum() * k.sum() * np.tril(np.outer(m, n)).sum())

    def elements(
        self, flags: Flags | None, groups: tuple[int, int, int]
    ) -> np.ndarray[tuple[int, int, int], np.dtype[np.int64]]:
        """Number of elements of each panel of an operand that are not zero, and so are moved."""
        if flags is None:
            b, m, k = (self.sizes[g] for g in groups)
            return b[:, None, None] * m[None, :, None] * k[None, None, :]
        b, m, k = (self.cuts[g].sizes for g in groups)
        counts = flags * b[:, None, None] * m[None, :, None] * k[None, None, :]
        for axis, group in enumerate(groups):
            counts = np.stack([counts.take(cells, axis).sum(axis) for cells in self.panels[group]], axis)
        return counts

    # ---- order ----

    def partition(self, block: int, *, half: bool) -> Partition:
        """The partition of the result into blocks of at most `block` panels. `half`: half of the panels, in
        triangles; otherwise all, in bands."""
        rows, columns = (len(self.panels[group]) for group in (1, 2))
        if half:
            return triangles(rows, block)
        _, m, n, _ = self.problem.product.sizes(self.problem.extents)
        return rectangles(rows, columns, block, m / n)

    def tasks(self, keep: Keep, parts: int = 1, *, half: bool = False, block: int = 1) -> list[ProductTask]:
        """All tasks, in the order in which one process takes them. Rows and columns turn back at their ends, inner
        indices in every task, so that the panel that was used last is used again. `parts`: tasks for each panel of
        the result, each with a range of inner indices. `half`: only panels of the result with columns <= rows.
        `block`: a task makes at most so many panels of the result."""
        if block > 1:
            return self._tasks_of_blocks(self.partition(block, half=half), parts)
        count = self.steps.shape[3]
        has_all = bool(self.steps.all())
        result: list[ProductTask] = []
        outer, other = (2, 1) if keep == "right" else (1, 2)
        for batch in range(self.steps.shape[0]):
            for turn, o in enumerate(range(self.steps.shape[outer])):
                passed = range(self.steps.shape[other])
                for i in reversed(passed) if turn % 2 else passed:
                    rows, columns = (i, o) if keep == "right" else (o, i)
                    if half and columns > rows:
                        continue
                    inner: Sequence[int] = range(count - 1, -1, -1) if len(result) % 2 else range(count)
                    if not has_all:
                        there = self.steps[batch, rows, columns]
                        inner = [k for k in inner if there[k]]
                    if inner or self._stored(batch, rows, columns):
                        result += _in_parts(batch, [(rows, columns)], inner or [-1], parts)
        return result

    def _tasks_of_blocks(self, partition: Partition, parts: int) -> list[ProductTask]:
        """The tasks of a product without zeros, by blocks."""
        batches, _, _, count = self.steps.shape
        result: list[ProductTask] = []
        for batch in range(batches):
            for block in partition.blocks():
                inner = range(count - 1, -1, -1) if len(result) % 2 else range(count)
                result += _in_parts(batch, block.pairs, inner, parts)
        return result

    def _stored(self, batch: int, rows: int, columns: int) -> bool:
        return bool(self._out_panels[batch, rows, columns])

    @cached_property
    def _out_panels(self) -> Flags:
        return self._of_panels(self.out, (0, 1, 2))

    # ---- boxes ----

    def boxes(
        self, labels: str, chosen: Mapping[int, int]
    ) -> Iterator[tuple[tuple[int, ...], list[Interval]]]:
        """The cells of a panel of an operand with these axes: the number of each cell in each group, and its box.
        `chosen[group]` is the number of the panel in each group."""
        groups = [(g, self.problem.product.groups[g]) for g in chosen]
        for cells in itertools.product(*(self.panels[g][panel] for g, panel in chosen.items())):
            where: dict[str, Interval] = {}
            for (g, letters), cell in zip(groups, cells, strict=True):
                where.update(zip(letters, self.cuts[g].cells[cell], strict=True))
            yield cells, [where[label] for label in labels]


def _in_parts(
    batch: int, pairs: Sequence[tuple[int, int]], inner: Sequence[int], parts: int
) -> Iterator[ProductTask]:
    """Tasks of so many ranges of inner indices, if there are as many."""
    if parts == 1:
        return iter((ProductTask(batch, pairs, inner),))
    count = min(parts, len(inner))
    ends = [len(inner) * i // count for i in range(count + 1)]
    return (ProductTask(batch, pairs, inner[first:last]) for first, last in itertools.pairwise(ends))


def cell_flags(mask: Mask | None, labels: str, groups: tuple[str, str, str]) -> Flags | None:
    """Flags of tiles as flags of cells in three groups of axes. The cells are single tiles then."""
    if mask is None:
        return None
    wanted = "".join(groups)
    letters = {label: chr(97 + i) for i, label in enumerate(dict.fromkeys(labels))}
    text = "".join(letters[x] for x in labels) + "->" + "".join(letters[x] for x in wanted)
    ordered = np.einsum(text, mask)
    shape, axis = [], 0
    for group in groups:
        shape.append(int(np.prod(ordered.shape[axis : axis + len(group)], dtype=np.int64)))
        axis += len(group)
    flags: Flags = ordered.reshape(shape)
    return flags


def make(
    problem: ProductProblem, cuts: tuple[Cut, Cut, Cut, Cut], most: tuple[int, int, int, int], mixed: bool
) -> ProductGeometry:
    """The geometry with panels of at most so many elements in each group. `mixed`: a panel may have cells whose
    zeros differ; then those zeros are multiplied."""
    single: Panels = ()
    bare = ProductGeometry(problem, cuts, (single, single, single, single))
    kinds = [np.zeros(len(cut.sizes), np.int64) for cut in cuts]
    maps = {(0, 1, 3): bare.left, (0, 3, 2): bare.right, (0, 1, 2): bare.out}
    for group in range(4):
        signatures = [
            np.moveaxis(flags, groups.index(group), 0).reshape(len(cuts[group].sizes), -1)
            for groups, flags in maps.items()
            if flags is not None and group in groups
        ]
        if signatures and not mixed:
            _, kinds[group] = np.unique(np.concatenate(signatures, 1), axis=0, return_inverse=True)
            kinds[group] = kinds[group].ravel()
    found = tuple(
        panels(cut.sizes.tolist(), kind.tolist(), size)
        for cut, kind, size in zip(cuts, kinds, most, strict=True)
    )
    assert len(found) == 4
    return ProductGeometry(problem, cuts, found)
