"""Panels and order of a product that fit into given memory and take least time: a search over what the panels of
the rows, columns and inner indices may be.

Memory of a process, in bytes of the elements that are multiplied: one panel of the result or two (one goes to disk
while the other is made), two panels of each operand (one is used, one is on its way), and of an operand that is
kept all its panels.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.blocks import Partition, useful_rectangles, useful_triangles
from outcore.tensor.layout.cells import Axis, Cut, cut_for, panels
from outcore.tensor.layout.geometry import Keep, ProductGeometry, ProductProblem, make
from outcore.tensor.plan.rates import Rates

KEEPS: tuple[Keep, ...] = ("result", "left", "right")
_DEPTH = 2  # panels of an operand that passes by: one used, one on its way
_STEPS = 200_000  # more panels are not looked at
_CELLS = 20_000  # of a group
_COARSE = 3  # one size of panels of so many, where arrays are placed
_SPLIT = 4  # parts of the inner indices for each process, at most
STEP_S = 1e-4  # of the interpreter and of requests, for each step
FULL = 0.97  # of the memory of a process is for panels: what is left is for pieces that are put
_TRIANGLES, _RECTANGLES = 73, 8  # panels of rows, of which several blocks are made
SLOWER = 1.12  # plans that take at most so much longer than the fastest are weighed against it


@dataclass(frozen=True)
class Size:
    """One way to cut a group: at most so many elements of a panel. `whole`: the share of elements in chunks that
    are not cut."""

    most: int
    pieces: int
    largest: int  # elements that a panel really has
    count: int  # panels
    whole: float


@dataclass(frozen=True)
class Choice:
    """What was decided: sizes of panels of batch, rows, columns and inner indices, and what is kept. `parts`:
    ranges of inner indices that are dealt out apart; each is added to the result; `results`: panels of it
    that a process has memory for; `by_chunks`: whether axes are cut between chunks, or each chunk evenly; `half`:
    of a symmetric result one of two panels that are alike is made, and put twice; `block`: so many panels of the
    result are made at once, at most."""

    keep: Keep
    mixed: bool
    most: tuple[int, int, int, int]
    pieces: tuple[int, int, int, int]
    parts: int = 1
    results: int = 1
    by_chunks: bool = False
    half: bool = False
    block: int = 1

    def geometry(self, problem: ProductProblem) -> ProductGeometry:
        groups = problem.axes_to_cut(half=self.half)
        cuts = tuple(
            cut_for(axes, most, pieces, by_chunks=self.by_chunks)
            for axes, most, pieces in zip(groups, self.most, self.pieces, strict=True)
        )
        assert len(cuts) == 4
        return make(problem, cuts, self.most, self.mixed)


@lru_cache(maxsize=256)
def sizes_of(axes: tuple[Axis, ...], by_chunks: bool = False) -> list[Size]:
    """From the largest to the smallest."""
    total = math.prod(axis.extent for axis in axes)
    targets = {max(1, math.ceil(total / parts)) for parts in _parts()}
    if by_chunks:
        targets |= {_of_whole_chunks(axes, most) for most in targets}
    found: dict[int, Size] = {}
    for most in sorted(targets, reverse=True):
        for pieces in (1,) if by_chunks else (1, 2, 3, 5):
            cut = cut_for(axes, most, pieces, by_chunks=by_chunks)
            if math.prod(len(axis) - 1 for axis in cut.cuts) > _CELLS or (pieces > 1 and len(cut.sizes) == 1):
                continue
            size = _size(axes, cut, most, pieces)
            known = found.get(size.count)
            if known is None or (size.largest, size.pieces) < (known.largest, known.pieces):
                found[size.count] = size
            if size.largest > 0.9 * most:
                break
    return sorted(found.values(), key=lambda size: size.count)


def _of_whole_chunks(axes: Sequence[Axis], most: int) -> int:
    """So many elements or more, that reach to the end of a chunk along the axis that is cut then."""
    inner = 1
    for axis in reversed(axes):
        if most < inner * axis.extent:
            each = inner * axis.chunk
            return min(math.ceil(most / each) * each, inner * axis.extent)
        inner *= max(1, axis.extent)
    return most


def _size(axes: Sequence[Axis], cut: Cut, most: int, pieces: int) -> Size:
    whole = cut.whole_chunks(axes)
    if 2 * int(cut.sizes.min()) > most:  # each cell is a panel
        return Size(most, pieces, int(cut.sizes.max()), len(cut.sizes), whole)
    sizes = cut.sizes.tolist()
    members = panels(sizes, [0] * len(sizes), most)
    largest = max(sum(sizes[cell] for cell in cells) for cells in members)
    return Size(most, pieces, largest, len(members), whole)


def _parts() -> Iterator[int]:
    parts = 1.0
    while parts < 1e5:
        yield int(parts)
        parts = parts + 1 if parts < 8 else parts * 1.2


def search(problem: ProductProblem, memory_bytes: int, rates: Rates) -> Choice:
    """The choice of least time; where arrays lie on disk, of those that take little more the one that weighs least,
    as others use the disk, too.

    Raises: OutcoreError (ENOMEM) if not even the smallest panels fit: says how much memory does.
    """
    if (whole := undivided(problem, memory_bytes * FULL, rates)) is not None:
        return whole
    found = _all_options(problem, memory_bytes * FULL, rates)
    point = _chosen(found, problem, memory_bytes * FULL)
    if point is None:
        raise OutcoreError(
            errno.ENOMEM,
            f"plan einsum '{problem.product}'",
            detail=f"{_needed(min(options.least for options in found))}, of memory there are {memory_bytes} bytes",
        )
    return point.choice


def undivided(problem: ProductProblem, memory_bytes: float, rates: Rates) -> Choice | None:
    """One panel of each array, which one process without zeros and disks multiplies fastest; None if that does not
    fit, or if other panels may be faster. What the search finds, in a twentieth of its time."""
    arrays = [facts for _, facts in problem.arrays]
    if (
        rates.processes > 1
        or problem.is_symmetric
        or any(
            each.where == "disk" or each.readable is not None or each.stored is not None for each in arrays
        )
    ):
        return None
    groups = [tuple(problem.group(labels)) for labels in problem.product.groups]
    if not all(axis.mergeable for axes in groups for axis in axes):
        return None
    sizes = [sizes_of(axes)[0] for axes in groups]
    b, m, n, k = (size.largest for size in sizes)
    needed = word_bytes(problem) * b * (m * n + _DEPTH * (m * k + k * n))
    if needed > memory_bytes or any(size.count > 1 for size in sizes):
        return None
    most, pieces = tuple(size.most for size in sizes), tuple(size.pieces for size in sizes)
    return Choice("result", False, most, pieces)  # type: ignore[arg-type]


def _needed(panels_bytes: float) -> str:
    if math.isinf(panels_bytes):
        return "there are too many tiles for any panels"
    needed = math.ceil(panels_bytes / FULL)
    return f"the smallest panels take {needed + (needed * FULL < panels_bytes)} bytes"


@dataclass(frozen=True)
class TradePoint:
    """What a choice takes: memory of a process, seconds, and bytes of disk and network."""

    workspace_bytes: float
    seconds: float
    moved: float
    choice: Choice


def min_workspace(problem: ProductProblem, rates: Rates) -> float:
    """Of all points of `trade`, whatever the memory."""
    found = _all_options(problem, 0, rates, coarse=True)
    return min(each.least for each in found)


def trade(problem: ProductProblem, levels: Sequence[float], rates: Rates) -> list[TradePoint]:
    """The best choice for each of some amounts of memory, rising; of those that are better than all with less. It
    looks at every third size of panels: enough to place arrays."""
    together: Sequence[TradePoint | None] = [None] * len(levels)
    if may_share(problem, rates):
        sharing = rates.sharing
        found = _trade(problem, [level * sharing for level in levels], rates.of_nodes)
        together = [
            None if each is None else replace(each, workspace_bytes=each.workspace_bytes / sharing)
            for each in found
        ]
    result: list[TradePoint] = []
    for points in zip(_trade(problem, levels, rates), together, strict=True):
        point = min(
            (each for each in points if each is not None), key=lambda each: each.seconds, default=None
        )
        last = result[-1] if result else None
        if point is not None and (
            last is None or point.seconds < 0.999 * last.seconds or point.moved < 0.999 * last.moved
        ):
            result.append(point)
    return result


def may_share(problem: ProductProblem, rates: Rates) -> bool:
    """Whether processes of a node could read less together."""
    return rates.sharing > 1 and any(
        each.where in ("disk", "global") for each in (problem.left, problem.right)
    )


def _trade(problem: ProductProblem, levels: Sequence[float], rates: Rates) -> list[TradePoint | None]:
    """The best choice for each amount of memory; None where nothing fits."""
    fixed = None if problem.product.batch else _all_options(problem, max(levels), rates, coarse=True)
    return [
        _chosen(fixed or _all_options(problem, level, rates, coarse=True), problem, level) for level in levels
    ]


def _all_options(
    problem: ProductProblem, memory_bytes: float, rates: Rates, *, coarse: bool = False
) -> list[_Options]:
    arrays = (problem.left, problem.right, problem.out)
    sparse = any(facts.readable is not None or facts.stored is not None for facts in arrays)
    ways = [False, True] if problem.has_chunks else [False]
    return [
        options
        for mixed in ((False, True) if sparse else (False,))
        for batch in _batches(problem, memory_bytes)
        for by_chunks in (ways[-1:] if coarse else ways)
        for half in ((False, True) if problem.is_symmetric else (False,))
        for options in _options(problem, rates, batch, mixed, by_chunks, coarse, half)
    ]


def _chosen(found: Sequence[_Options], problem: ProductProblem, memory_bytes: float) -> TradePoint | None:
    """The best of what fits; None if nothing does."""
    seconds = [np.where(each.memory <= memory_bytes, each.seconds, np.inf) for each in found]
    fastest = min(float(each.min()) for each in seconds)
    if math.isinf(fastest):
        return None
    on_disk = any(facts.where == "disk" for _, facts in problem.arrays)
    limit = fastest * (SLOWER if on_disk else 1.0)
    best: tuple[tuple[float, float], TradePoint] | None = None
    for options, times in zip(found, seconds, strict=True):
        fits = times <= limit
        weighed = weight(options.moved.astype(float), np.where(fits, times, 0.0)) if on_disk else times
        weighed = np.where(fits, weighed, np.inf)
        index = np.unravel_index(int(weighed.argmin()), weighed.shape)
        key = float(weighed[index]), float(times[index])
        if math.isfinite(key[0]) and (best is None or key < best[0]):
            choice = options.choice(tuple(int(x) for x in index))
            best = key, TradePoint(float(options.memory[index]), key[1], float(options.moved[index]), choice)
    assert best is not None
    return best[1]


def weight(moved: Any, seconds: Any) -> Any:
    """Of a plan: one percent of the bytes is worth two of the time."""
    return moved * moved * seconds


def _batches(problem: ProductProblem, memory_bytes: float) -> list[Size]:
    """As many matrices at a time as fit in whole, or one."""
    sizes = sizes_of(tuple(problem.group(problem.product.batch)))
    _, m, n, k = problem.product.sizes(problem.extents)
    whole = (m * n + _DEPTH * (m * k + k * n)) * word_bytes(problem)
    fits = [size for size in sizes if size.largest * whole <= memory_bytes]
    return [fits[0]] if fits else [sizes[-1]]


Grid = np.ndarray[tuple[int, ...], np.dtype[np.floating[Any]]]


@dataclass(frozen=True, eq=False)
class _Options:
    """All sizes of panels of rows, columns and inner indices, for one batch and one way to go through them: seconds
    (infinite where there are too many), bytes of disk and network, and of memory; what the smallest of those that
    are not too many take of that."""

    panels: _Panels
    keep: Keep
    parts: Grid
    block: Grid
    at_once: Grid
    mixed: bool
    by_chunks: bool
    seconds: Grid
    moved: Grid
    memory: Grid
    least: float
    results: int  # of those that are made at once

    def choice(self, index: tuple[int, ...]) -> Choice:
        panels = self.panels
        chosen = (panels.batch, *panels.at(index))
        most, pieces = tuple(size.most for size in chosen), tuple(size.pieces for size in chosen)
        parts, at_once, block = (
            int(np.broadcast_to(each, panels.shape)[index]) for each in (self.parts, self.at_once, self.block)
        )
        return Choice(
            self.keep,
            self.mixed,
            most,  # type: ignore[arg-type]
            pieces,  # type: ignore[arg-type]
            parts,
            self.results * at_once,
            self.by_chunks,
            panels.half,
            block,
        )


def _options(
    problem: ProductProblem,
    rates: Rates,
    batch: Size,
    mixed: bool,
    by_chunks: bool,
    coarse: bool,
    half: bool,
) -> Iterator[_Options]:
    axes = problem.axes_to_cut(half=half)
    sizes = [_sizes_with_zeros(problem, axes, group, batch, mixed, by_chunks) for group in (1, 2, 3)]
    if coarse:
        sizes = [[*each[:-1:_COARSE], each[-1]] for each in sizes]
    panels = _Panels(batch, sizes[0], sizes[1], sizes[2], half, half)
    found = [(panels, way) for way in _of_one(panels, rates)]
    has_zeros = any(facts.readable is not None or facts.stored is not None for _, facts in problem.arrays)
    if not problem.simple and not has_zeros:
        found += _of_blocks(panels, problem)
    while found:  # each is given up when it has been gone through, with all its arrays
        panels, each = found.pop(0)
        for way in _in_parts(each, panels, rates):
            for results, seconds, moved, memory in _priced(problem, rates, panels, way):
                least = float(np.where(np.isfinite(seconds), memory, np.inf).min())
                yield _Options(
                    panels, way.keep, way.parts, way.block, way.at_once, mixed, by_chunks, seconds, moved,
                    memory, least, results,
                )  # fmt: skip


def _priced(
    problem: ProductProblem, rates: Rates, panels: _Panels, way: _Way
) -> Iterator[tuple[int, Grid, Grid, Grid]]:
    """With memory for the results that are made at once, and for twice as many: seconds, bytes of disk and network,
    and of memory. All options are there together, so estimates are short numbers."""
    (a, w, c), (ta, tb, tc) = panels.sizes, panels.counts
    work, puts, disk, moved = _seconds(
        problem,
        rates,
        (way.left, way.right, _puts(problem, way.parts)),
        (a, w, c),
        way.units * way.parts,
        np.ceil(tc / way.parts) * way.parts / tc - 1,
        panels.made,
    )
    if problem.out.where == "disk" and not problem.adds:  # a chunk that is put in parts is read before
        in_parts = panels.in_parts_of_chunks * problem.out.bytes
        again = np.where(way.parts > 1, 0.0, in_parts / (rates.read * rates.nodes))
        puts, disk = puts + again, disk + again
    moved = moved.astype(np.float32)
    steps = ta * tb * tc * panels.batch.count * panels.made
    results_each = np.maximum(1.0, way.results * way.parts / rates.processes)
    for results in (1, 2) if problem.out.where == "disk" else (1,):
        waits = puts if results == 1 else puts / results_each  # of the last alone
        seconds = np.maximum(work + waits, disk) + steps * (STEP_S / rates.processes)
        seconds = np.where(steps <= _STEPS, seconds, np.inf).astype(np.float32)
        panels_held = results * way.at_once * a * w + way.held
        yield results, seconds, moved, word_bytes(problem) * panels.batch.largest * panels_held


# ---- ways to go through panels ----


@dataclass(frozen=True, eq=False)
class _Panels:
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
class _Way:
    """What stays in memory: times that each operand is read, pieces of work that can be dealt out and results that
    are made one after another, elements of panels of operands, `block` of the choice and panels of the result that
    are made at once, parts of the inner indices."""

    keep: Keep
    left: Grid
    right: Grid
    units: Grid
    results: Grid
    held: Grid
    block: Grid
    at_once: Grid
    parts: Grid


_ONE: Grid = np.ones((1, 1, 1))


def _of_one(panels: _Panels, rates: Rates) -> list[_Way]:
    """One panel of the result at a time. Of a half what the right operand would be kept for the left one is; where
    none is kept, panels of one array serve on both sides."""
    (a, w, c), (ta, tb, tc), made = panels.sizes, panels.counts, panels.made
    ways = []
    for keep in KEEPS[:2] if panels.half else KEEPS:
        held: list[Grid] = [_DEPTH * a * c, _DEPTH * w * c]
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
        ways.append(_Way(keep, left, right, units * made, results, held[0] + held[1], _ONE, _ONE, _ONE))
    return ways


def _of_blocks(panels: _Panels, problem: ProductProblem) -> list[tuple[_Panels, _Way]]:
    """Several panels of the result at a time. For each number of panels there are several partitions, each of which
    has more at a time and reads less than the one before."""
    _, m, n, _ = problem.product.sizes(problem.extents)
    rows: list[Size] = []
    columns: list[Size] = []
    found: list[tuple[int, Partition]] = []
    for number, row in enumerate(panels.rows):
        for column in [panels.columns[number]] if panels.half else panels.columns:
            if max(row.count, column.count) > (_TRIANGLES if panels.half else _RECTANGLES):
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
    of_blocks = replace(panels, rows=rows, columns=columns, paired=True)
    (a, w, c), (ta, tb, _) = of_blocks.sizes, of_blocks.counts
    block, at_once, blocks, left, right, held_left, held_right = (
        np.array(numbers, float)[:, None, None]
        for numbers in zip(
            *((most, each.most, each.count, *each.read, *each.held) for most, each in found),
            strict=True,
        )
    )
    units = blocks * panels.batch.count
    held = held_left * a * c + held_right * w * c
    one = np.ones_like(held)
    return [
        (
            of_blocks,
            _Way("result", one * left / ta, one * right / tb, one * units, units, held, block, at_once, _ONE),
        )
    ]


def _in_parts(way: _Way, panels: _Panels, rates: Rates) -> Iterator[_Way]:
    """With several processes also such that inner indices are dealt out: so many pieces that each process gets a
    few, and all equally many where that is possible."""
    yield way
    if rates.processes > 1 and way.keep == "result":
        pieces = _SPLIT * rates.processes / way.units
        for rounded in (np.ceil, np.floor):
            yield replace(way, parts=np.clip(rounded(pieces), 1, panels.counts[2]))


def word_bytes(problem: ProductProblem) -> int:
    """Of an element as it is multiplied."""
    return int(np.result_type(problem.left.dtype, problem.right.dtype, problem.out.dtype).itemsize)


def _sizes_with_zeros(
    problem: ProductProblem,
    groups: Sequence[Sequence[Axis]],
    group: int,
    batch: Size,
    mixed: bool,
    by_chunks: bool,
) -> list[Size]:
    """Of panels as they are when cells of different classes are kept apart."""
    sizes = sizes_of(tuple(groups[group]), by_chunks)
    if mixed or all(axis.mergeable for axis in groups[group]):
        return sizes
    result = []
    for size in sizes:
        most, pieces = [1, 1, 1, 1], [1, 1, 1, 1]
        most[0], pieces[0] = batch.most, batch.pieces
        most[group] = size.most
        choice = Choice("result", False, tuple(most), tuple(pieces), by_chunks=by_chunks)  # type: ignore[arg-type]
        geometry = choice.geometry(problem)
        counts = geometry.sizes[group]
        result.append(Size(size.most, size.pieces, int(counts.max()), len(counts), size.whole))
    return result


def shortest_side(rows: Any, columns: Any, inner: Any, threads: int) -> Any:
    """Of the matrices that one thread multiplies: threads divide the longer side of a panel of the result."""
    longer, shorter = np.maximum(rows, columns), np.minimum(rows, columns)
    return np.minimum(np.minimum(longer / threads, shorter), inner)


def _density(problem: ProductProblem) -> tuple[float, float, float]:
    """Stored shares of left, right and result, by tiles."""

    def share(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None) -> float:
        return 1.0 if mask is None else max(1e-12, float(mask.mean()))

    return share(problem.left.readable), share(problem.right.readable), share(problem.out.stored)


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


def _puts(problem: ProductProblem, parts: Grid) -> Grid:
    """How often the result is moved: what is added is read, too; before several parts zeros are put."""
    reads = problem.out.where == "disk"
    added = (2.0 if reads else 1.0) * parts
    if problem.adds:
        return added
    return np.where(parts > 1, added + 1, 1.0)


def _seconds(
    problem: ProductProblem,
    rates: Rates,
    times: tuple[Grid, Grid, Grid],
    panel: tuple[Grid, Grid, Grid],
    units: Grid,
    uneven: Grid,
    made: Grid | float,
) -> tuple[Grid, Grid, Grid, Grid]:
    """Seconds of processors, of puts of the result to disk and of the disk; and bytes of disk and network.
    `uneven`: by how much the longest piece of work is longer than the mean, relative to that. `made`: the share of
    the result that is multiplied."""
    a, w, c = panel
    b, m, n, k = problem.product.sizes(problem.extents)
    density = _density(problem)
    workers = rates.threads * rates.processes
    rate = rates.flops(shortest_side(a, w, c, rates.threads))
    idle = (np.ceil(units / rates.processes) + uneven) * rates.processes / units
    work = 2.0 * b * m * n * k * made * min(density) / (rate * workers) * idle
    disk, network = np.zeros_like(units), np.zeros_like(units)
    puts = np.zeros_like(units)
    for (_, facts), elements, share, count, speed in zip(
        problem.arrays,
        (b * m * k, b * k * n, b * m * n),
        density,
        times,
        (rates.read, rates.read, rates.write),
        strict=True,
    ):
        moved = elements * share * facts.item_bytes * count
        work = work + moved / (rates.copy * workers)
        if facts.where == "disk":
            disk = disk + moved / (speed * rates.nodes)
            puts = moved / (speed * rates.nodes) if facts is problem.out else puts
        elif facts.where == "global":
            network = network + moved
    work = work + network / (rates.network * rates.processes)
    return work, puts, disk, disk * rates.read + network
