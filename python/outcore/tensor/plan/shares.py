"""How processes that make the panels of a result together divide each: among them along one group of its axes, into
ranges whose boxes each of them can put."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outcore.tensor.layout.cells import Interval
from outcore.tensor.layout.geometry import ProductGeometry


@dataclass(frozen=True)
class Shares:
    """Of all panels. `group`: 0 batch, 1 rows, 2 columns; `bounds`: of each panel of the group, where the share of
    each process begins and ends; `uneven`: how many times as large as the mean the largest share is."""

    group: int
    bounds: tuple[tuple[int, ...], ...]
    uneven: float

    @property
    def native(self) -> tuple[int, list[list[int]]]:
        """For `tensor_product`."""
        return self.group, [list(each) for each in self.bounds]

    @property
    def largest(self) -> int:
        """Elements of the group in any share."""
        return max((b - a for bounds in self.bounds for a, b in itertools.pairwise(bounds)), default=0)


def divide(geometry: ProductGeometry, processes: int) -> Shares:
    """Along the group along which it is most even; rows before columns and columns before batch."""
    return min((_along(geometry, group, processes) for group in (1, 2, 0)), key=lambda shares: shares.uneven)


def _along(geometry: ProductGeometry, group: int, processes: int) -> Shares:
    found = []
    longest = total = 0
    for panel in range(len(geometry.panels[group])):
        places = _places(geometry, group, panel)
        size = int(places[-1])
        wanted = size * np.arange(processes + 1) / processes
        above = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
        below = np.maximum(above - 1, 0)
        nearer = np.where(wanted - places[below] < places[above] - wanted, below, above)
        bounds = tuple(int(place) for place in places[nearer])
        found.append(bounds)
        longest += max(b - a for a, b in itertools.pairwise(bounds))
        total += size
    return Shares(group, tuple(found), longest * processes / max(1, total))


def _places(geometry: ProductGeometry, group: int, panel: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where a panel may be divided: between cells, and within one along the first axis that it has more than one
    element of, between tiles if that has any."""
    axes = geometry.problem.group(geometry.problem.product.groups[group])
    found: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = [np.zeros(1, np.int64)]
    place = 0
    for number in geometry.panels[group][panel]:
        cell = geometry.cuts[group].cells[number]
        size = int(geometry.cuts[group].sizes[number])
        if size > 1:
            axis, inner = _divided_axis(cell)
            begin, end = cell[axis]
            fixed = axes[axis].fixed
            inside = range(begin + 1, end) if fixed is None else [cut for cut in fixed if begin < cut < end]
            found.append(place + (np.array(inside, np.int64) - begin) * inner)
        place += size
        found.append(np.array([place], np.int64))
    return np.unique(np.concatenate(found))


def _divided_axis(cell: Sequence[Interval]) -> tuple[int, int]:
    """The first axis along which a cell has more than one element, and how many elements one of its places has: so
    many lie side by side. The cell has more than one element."""
    sizes = [end - begin for begin, end in cell]
    axis = next(axis for axis, size in enumerate(sizes) if size > 1)
    return axis, math.prod(sizes[axis + 1 :])
