"""Which sizes panels may have: ways to cut a group of axes, and how many panels that makes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from outcore.tensor.layout.cells import Axis, Cut, cells_for, cut_for, panels
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.plan.choice import Choice

STEP = 1.2  # of the number of panels
MAX_CELLS = 20_000  # of a group


@dataclass(frozen=True)
class Size:
    """One way to cut a group: at most so many elements of a panel. `whole`: the share of elements in chunks that
    are not cut."""

    most: int
    pieces: int
    largest: int  # elements that a panel really has
    count: int  # panels
    whole: float


@lru_cache(maxsize=256)
def sizes_of(
    axes: tuple[Axis, ...], by_chunks: bool = False, step: float = STEP, counts: tuple[int, ...] = ()
) -> list[Size]:
    """From the largest to the smallest: each of many panels has about `step` times as many as the one before.
    `counts`: of panels that there are beside these."""
    total = math.prod(axis.extent for axis in axes)
    targets = {max(1, math.ceil(total / parts)) for parts in (*_parts(step), *counts)}
    if by_chunks:
        targets |= {_of_whole_chunks(axes, most) for most in targets}
    found: dict[int, Size] = {}
    for most in sorted(targets, reverse=True):
        for pieces in (1,) if by_chunks else (1, 2, 3, 5):
            cells = cells_for(axes, most, pieces, by_chunks=by_chunks)  # a cut of millions would take seconds
            if cells > MAX_CELLS or (pieces > 1 and cells == 1):
                continue
            size = _size(axes, cut_for(axes, most, pieces, by_chunks=by_chunks), most, pieces)
            known = found.get(size.count)
            if known is None or (size.largest, size.pieces) < (known.largest, known.pieces):
                found[size.count] = size
            if size.largest > 0.9 * most:
                break
    return sorted(found.values(), key=lambda size: size.count)


def are_too_many(axes: Sequence[Axis]) -> bool:
    """Whether a group has more tiles than cells may be, and none of them can be put together."""
    return cells_for(axes, math.prod(axis.extent for axis in axes)) > MAX_CELLS


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
    if not (cut.sizes[1:] + cut.sizes[:-1] <= most).any():  # each cell is a panel
        return Size(most, pieces, int(cut.sizes.max()), len(cut.sizes), whole)
    sizes = cut.sizes.tolist()
    members = panels(sizes, [0] * len(sizes), most)
    largest = max(sum(sizes[cell] for cell in cells) for cells in members)
    return Size(most, pieces, largest, len(members), whole)


def _parts(step: float) -> Iterator[int]:
    parts = 1.0
    while parts < 1e5:
        yield int(parts)
        parts = max(parts * step, math.floor(parts) + 1) if parts >= 8 else parts + 1


def sizes_with_zeros(
    problem: ProductProblem,
    groups: Sequence[Sequence[Axis]],
    group: int,
    batch: Size,
    mixed: bool,
    by_chunks: bool,
    step: float = STEP,
    counts: tuple[int, ...] = (),
) -> list[Size]:
    """Of panels as they are when cells of different classes are kept apart."""
    sizes = sizes_of(tuple(groups[group]), by_chunks, step, counts)
    if mixed or all(axis.mergeable for axis in groups[group]):
        return sizes
    result = []
    for size in sizes:
        most, pieces = [1, 1, 1, 1], [1, 1, 1, 1]
        most[0], pieces[0] = batch.most, batch.pieces
        most[group] = size.most
        choice = Choice("result", False, tuple(most), tuple(pieces), by_chunks=by_chunks)  # type: ignore[arg-type]
        geometry = choice.geometry(problem)
        elements = geometry.sizes[group]
        result.append(Size(size.most, size.pieces, int(elements.max()), len(elements), size.whole))
    return result
