"""Ways to go through the panels of a product, for all sizes of panels at once: which stay in memory, and how often
each operand is read then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from outcore.tensor.layout.blocks import Partition, useful_rectangles
from outcore.tensor.layout.geometry import Keep, ProductProblem
from outcore.tensor.layout.triangles import MOST_ROWS, useful_triangles
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.sizes import Size

_KEEPS: tuple[Keep, ...] = ("result", "left", "right")
DEPTH = 2  # panels of an operand that passes by: one used, one on its way
_SPLIT = 4  # parts of the inner indices for each process, at most
_RECTANGLES = 8  # panels of rows, of which several blocks are made; of triangle blocks there are many more

Grid = np.ndarray[tuple[int, ...], np.dtype[np.floating[Any]]]


@dataclass(frozen=True, eq=False)
class Panels:
    """Sizes of panels of rows, columns and inner indices, each with each. `paired`: each of rows with the one of
    columns that has its number; arrays have no axis for columns then. `half`: half of the result is made."""

    batch: Size
    rows: Sequence[Size]
    columns: Sequence[Size]
    inner: Sequence[Size]
    paired: bool
    half: bool

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        return len(self.rows), 1 if self.paired else len(self.columns), len(self.inner)

    def at(self, index: tuple[int, ...]) -> tuple[Size, Size, Size]:
        i, j, k = index
        return self.rows[i], self.columns[i if self.paired else j], self.inner[k]

    def _arrays(self, numbers: Callable[[Size], float]) -> tuple[Grid, Grid, Grid]:
        a, w, c = (np.array([*map(numbers, each)], float) for each in (self.rows, self.columns, self.inner))
        return a[:, None, None], w[:, None, None] if self.paired else w[None, :, None], c[None, None, :]

    @cached_property
    def sizes(self) -> tuple[Grid, Grid, Grid]:
        """Elements of the largest."""
        return self._arrays(lambda size: size.largest)

    @cached_property
    def counts(self) -> tuple[Grid, Grid, Grid]:
        return self._arrays(lambda size: size.count)

    @cached_property
    def made(self) -> Grid | float:
        """The share of the result that is multiplied."""
        return (1 + 1 / self.counts[0]) / 2 if self.half else 1.0

    @cached_property
    def in_parts_of_chunks(self) -> Grid:
        """The share of the result in chunks that are cut."""
        rows, columns, _ = self._arrays(lambda size: size.whole)
        return np.asarray(1 - self.batch.whole * rows * columns)


@dataclass(frozen=True, eq=False)
class Reuse:
    """What stays in memory: times that each operand is read, pieces of work that can be dealt out and results that
    are made one after another, elements of panels of the left and of the right operand, `block` of the choice and
    panels of the result that are made at once, parts of the inner indices."""

    keep: Keep
    left: Grid
    right: Grid
    units: Grid
    results: Grid
    held: tuple[Grid, Grid]
    block: Grid
    at_once: Grid
    parts: Grid


_ONE: Grid = np.ones((1, 1, 1))


def of_one(panels: Panels, rates: Rates) -> list[Reuse]:
    """One panel of the result at a time. Of a half what the right operand would be kept for the left one is; where
    none is kept, panels of one array serve on both sides."""
    (a, w, c), (ta, tb, tc), made = panels.sizes, panels.counts, panels.made
    ways = []
    for keep in _KEEPS[:2] if panels.half else _KEEPS:
        held: list[Grid] = [DEPTH * a * c, DEPTH * w * c]
        if keep == "left":
            held[0] = a * np.minimum(c * tc + c, 2 * c * tc)
        if keep == "right":
            held[1] = w * np.minimum(c * tc + c, 2 * c * tc)
        left, right, units = _times(keep, ta, tb, tc, panels.batch.count, rates.processes)
        if panels.half and keep == "result":
            left, right = ta - (ta * ta * made - 1) / (ta * tc), 0 * right
        else:
            right = right * made
        results = ta * tb * panels.batch.count * made
        ways.append(Reuse(keep, left, right, units * made, results, (held[0], held[1]), _ONE, _ONE, _ONE))
    return ways


def of_blocks(panels: Panels, problem: ProductProblem) -> list[tuple[Panels, Reuse]]:
    """Several panels of the result at a time. For each number of panels there are several partitions, each of which
    has more at a time and reads less than the one before."""
    _, m, n, _ = problem.product.sizes(problem.extents)
    rows: list[Size] = []
    columns: list[Size] = []
    found: list[tuple[int, Partition]] = []
    for number, row in enumerate(panels.rows):
        for column in [panels.columns[number]] if panels.half else panels.columns:
            if max(row.count, column.count) > (MOST_ROWS if panels.half else _RECTANGLES):
                continue
            own = (
                useful_triangles(row.count)
                if panels.half
                else useful_rectangles(row.count, column.count, m / n)
            )
            rows += [row] * len(own)
            columns += [column] * len(own)
            found += own
    if not found:
        return []
    several = replace(panels, rows=rows, columns=columns, paired=True)
    (a, w, c), (ta, tb, _) = several.sizes, several.counts
    block, at_once, blocks, left, right, held_left, held_right = (
        np.array(numbers, float)[:, None, None]
        for numbers in zip(
            *((most, each.most, each.count, *each.read, *each.held) for most, each in found),
            strict=True,
        )
    )
    units = blocks * panels.batch.count
    held = held_left * a * c, held_right * w * c
    one = np.ones_like(held[0])
    return [
        (
            several,
            Reuse(
                "result", one * left / ta, one * right / tb, one * units, units, held, block, at_once, _ONE
            ),
        )
    ]


def in_parts(way: Reuse, panels: Panels, rates: Rates) -> Iterator[Reuse]:
    """With several processes also such that inner indices are dealt out: so many pieces that each process gets a
    few, and all equally many where that is possible."""
    yield way
    if rates.processes > 1 and way.keep == "result":
        pieces = _SPLIT * rates.processes / way.units
        for rounded in (np.ceil, np.floor):
            yield replace(way, parts=np.clip(rounded(pieces), 1, panels.counts[2]))


def _times(keep: Keep, ta: Grid, tb: Grid, tc: Grid, batches: int, processes: int) -> tuple[Grid, Grid, Grid]:
    """How often each operand is read in all, and the pieces of work that can be dealt out."""
    all_steps = ta * tb * tc
    left = (all_steps - ta * (tb - 1)) / (ta * tc)
    right = (all_steps - (ta - 1)) / (tb * tc)
    units = ta * tb * batches
    shared = 4.0 * processes if processes > 1 else 1.0
    if keep == "left":
        parts = np.clip(np.ceil(shared / (ta * batches)), 1, tb)
        left, units = parts + 0 * all_steps, ta * parts * batches + 0 * tc
    elif keep == "right":
        parts = np.clip(np.ceil(shared / (tb * batches)), 1, ta)
        left = (all_steps - (tb - 1)) / (ta * tc)
        right, units = parts + 0 * all_steps, tb * parts * batches + 0 * tc
    return left, right, units + 0 * all_steps
