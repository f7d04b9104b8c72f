"""Panels and order of a product that fit into given memory and take least time: a search over what the panels of
the rows, columns and inner indices may be."""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.tensor.layout.geometry import Keep, ProductProblem
from outcore.tensor.layout.triangles import counts_of_planes
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.estimates import MAX_STEPS, priced
from outcore.tensor.plan.passes import DEPTH, Grid, Panels, in_parts, of_blocks, of_one
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.sizes import MAX_CELLS, STEP, Size, are_too_many, sizes_of, sizes_with_zeros

_FINE = 1.1  # of inner indices of triangle blocks, each has so many times as many panels as the one before
_COARSE = 3  # one size of panels of so many, where arrays are placed
FULL = 0.97  # of the memory of a process is for panels: what is left is for pieces that are put
_AMPLE = 8  # times what whole arrays take: every choice fits then, with as many panels as there may be
SLOWER = 1.12  # plans that take at most so much longer than the fastest are weighed against it


def search(problem: ProductProblem, memory_bytes: int, rates: Rates) -> Choice:
    """The choice of least time; where arrays lie on disk, of those that take little more the one that weighs least,
    as others use the disk, too.

    Raises: OutcoreError (ENOMEM) if not even the smallest panels fit: says how much memory does; ENOTSUP if there
        are too many tiles for any memory.
    """
    if (whole := undivided(problem, memory_bytes * FULL, rates)) is not None:
        return whole
    found = _all_options(problem, memory_bytes * FULL, rates)
    point = _chosen(found, problem, memory_bytes * FULL)
    if point is None:
        raise _refusal(problem, memory_bytes, _least(found))
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
    needed = b * _whole(problem, m, n, k)
    if needed > memory_bytes or any(size.count > 1 for size in sizes):
        return None
    most, pieces = tuple(size.most for size in sizes), tuple(size.pieces for size in sizes)
    return Choice("result", False, most, pieces)  # type: ignore[arg-type]


def _refusal(problem: ProductProblem, memory_bytes: int, least: float) -> OutcoreError:
    """Of a product whose smallest panels take so much memory."""
    what = f"plan einsum '{problem.product}'"
    if math.isinf(least):
        detail = f"zeros keep apart the tiles of a group of axes, of which {MAX_CELLS} can be planned"
        return OutcoreError(errno.ENOTSUP, what, detail=detail)
    needed = math.ceil(least / FULL)
    needed += needed * FULL < least
    return OutcoreError(errno.ENOMEM, what, detail=too_little("", needed, memory_bytes))


def too_little(beside: str, needed: int, memory_bytes: int) -> str:
    """How much memory the smallest panels take, with what is `beside` them, and how much is missing."""
    return (
        f"the smallest panels take {needed} bytes, in at most {MAX_STEPS} steps{beside}; of memory there are "
        f"{memory_bytes} bytes, {needed - memory_bytes} too few"
    )


def _least(found: Sequence[_Options]) -> float:
    return min((options.least for options in found), default=math.inf)


@dataclass(frozen=True)
class TradePoint:
    """What a choice takes: memory of a process, seconds, and bytes of disk and network."""

    workspace_bytes: float
    seconds: float
    moved: float
    choice: Choice


def min_workspace(problem: ProductProblem, rates: Rates) -> float:
    """Of all points of `trade` whatever the memory; infinite if there are too many tiles."""
    return _least(_all_options(problem, 0, rates, coarse=True))


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
    if any(are_too_many(problem.group(labels)) for labels in problem.product.groups):
        return []
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
    fastest = min((float(each.min()) for each in seconds), default=math.inf)
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
    fits = [size for size in sizes if size.largest * _whole(problem, m, n, k) <= memory_bytes]
    return [fits[0]] if fits else [sizes[-1]]


def ample_bytes(problem: ProductProblem) -> int:
    """Of a process: with more memory the plan is no other."""
    b, m, n, k = problem.product.sizes(problem.extents)
    return math.ceil(_AMPLE * b * _whole(problem, m, n, k))


def _whole(problem: ProductProblem, m: int, n: int, k: int) -> int:
    """Bytes of matrices of one panel each."""
    word, (left, right, out) = problem.dtype.itemsize, problem.copied
    return m * n * (word + out) + DEPTH * (m * k * (word + left) + k * n * (word + right))


@dataclass(frozen=True, eq=False)
class _Options:
    """All sizes of panels of rows, columns and inner indices, for one batch and one way to go through them: seconds
    (infinite where there are too many), bytes of disk and network, and of memory; what the smallest of those that
    are not too many take of that."""

    panels: Panels
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
    steps, counts = (STEP, STEP, _FINE if half else STEP), counts_of_planes() if half else ()
    sizes = [
        sizes_with_zeros(problem, axes, group, batch, mixed, by_chunks, step, counts if group < 3 else ())
        for group, step in zip((1, 2, 3), steps, strict=True)
    ]
    if coarse:
        sizes = [[*each[:-1:_COARSE], each[-1]] for each in sizes]
    panels = Panels(batch, sizes[0], sizes[1], sizes[2], half, half)
    found = [(panels, way) for way in of_one(panels, rates)]
    has_zeros = any(facts.readable is not None or facts.stored is not None for _, facts in problem.arrays)
    if not problem.simple and not has_zeros:
        found += of_blocks(panels, problem)
    while found:  # each is given up when it has been gone through, with all its arrays
        panels, each = found.pop(0)
        for way in in_parts(each, panels, rates):
            for results, seconds, moved, memory in priced(problem, rates, panels, way):
                least = float(np.where(np.isfinite(seconds), memory, np.inf).min())
                yield _Options(
                    panels, way.keep, way.parts, way.block, way.at_once, mixed, by_chunks, seconds, moved,
                    memory, least, results,
                )  # fmt: skip
