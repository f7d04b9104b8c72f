"""How one axis of a tensor is cut into tiles, and the labels of each tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from outcore.job import arguments


class Tiling:
    """An axis of `size` elements, cut into tiles; elements of one tile have equal labels.

    Args:
        size: number of elements.
        cuts: boundaries of the tiles: 0, ..., size, rising.
        tile: used without `cuts`: the tiles have nearly equal sizes, none larger than this. Without either the axis
            is one tile.
        irreps: the irrep of each tile, a number from 0 to 7 of an Abelian point group; irreps multiply by XOR.
        spins: twice the spin projection of each tile: -1, 0 (none) or 1.
        name: a name for messages, as "occupied".

    Tilings are values. They are equal if their cuts and labels are; the name does not count.
    Raises ValueError or TypeError that names the wrong argument.
    """

    __slots__ = ("cuts", "irreps", "name", "spins")

    def __init__(
        self,
        size: int,
        cuts: Sequence[int] | None = None,
        *,
        tile: int | None = None,
        irreps: Sequence[int] | None = None,
        spins: Sequence[int] | None = None,
        name: str = "",
    ) -> None:
        extent = arguments.integer("size", size)
        if extent < 0:
            raise ValueError(f"size is {extent}; an axis has no fewer than 0 elements")
        if cuts is not None and tile is not None:
            raise TypeError("give either cuts or tile")
        if cuts is None:
            cuts = even_cuts(extent, extent if tile is None else arguments.integer("tile", tile))
        self.cuts: tuple[int, ...] = tuple(arguments.integers("cuts", cuts))
        if not self.cuts or self.cuts[0] != 0 or self.cuts[-1] != extent:
            raise ValueError(f"cuts {_short(self.cuts)} do not go from 0 to {extent}")
        if any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError(f"cuts {_short(self.cuts)} do not rise")
        self.irreps = self._labels("irreps", irreps, 0, 7)
        self.spins = self._labels("spins", spins, -1, 1)
        self.name = arguments.text("name", name)

    def _labels(self, name: str, values: Sequence[int] | None, low: int, high: int) -> tuple[int, ...]:
        if values is None:
            return (0,) * len(self)
        labels = tuple(arguments.integers(name, values))
        if len(labels) != len(self):
            raise ValueError(f"{name}: {len(labels)} labels of {len(self)} tiles")
        if not all(low <= label <= high for label in labels):
            raise ValueError(f"{name} {_short(labels)} are not all within {low}..{high}")
        return labels

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.cuts[-1]

    def __len__(self) -> int:
        """Number of tiles."""
        return len(self.cuts) - 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of elements of each tile."""
        return tuple(b - a for a, b in pairwise(self.cuts))

    def slices(self) -> Iterator[slice]:
        """The elements of each tile, as slices."""
        return (slice(a, b) for a, b in pairwise(self.cuts))

    def overlapping(self, begin: int, end: int) -> range:
        """The numbers of the tiles that have some of the elements begin .. end."""
        if begin >= end:
            return range(0)
        first, last = np.searchsorted(self.cuts, [begin, end - 1], side="right")
        return range(int(first) - 1, int(last))

    def as_json(self) -> dict[str, Any]:
        return {
            "cuts": list(self.cuts),
            "irreps": list(self.irreps),
            "spins": list(self.spins),
            "name": self.name,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Tiling:
        cuts = value["cuts"]
        return cls(cuts[-1], cuts, irreps=value["irreps"], spins=value["spins"], name=value["name"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tiling):
            return NotImplemented
        return (self.cuts, self.irreps, self.spins) == (other.cuts, other.irreps, other.spins)

    def __hash__(self) -> int:
        return hash((self.cuts, self.irreps, self.spins))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tiling.from_json, (self.as_json(),)

    def __repr__(self) -> str:
        labels = ""
        if any(self.irreps):
            labels += f", irreps {_short(self.irreps)}"
        if any(self.spins):
            labels += f", spins {_short(self.spins)}"
        return f"<outcore.Tiling {self.name or 'of'} {self.size}, {len(self)} tiles{labels}>"


def Space(name: str, sizes: int | Sequence[int], **options: Any) -> Tiling:
    """A named tiling. `sizes`: the size of each tile; or the size of the axis, which `tile=` or `cuts=` cuts. Other
    options are those of Tiling."""
    if isinstance(sizes, int | np.integer):
        return Tiling(int(sizes), name=name, **options)
    extents = arguments.integers("sizes", sizes)
    cuts = [0, *(int(each) for each in np.cumsum(extents))]
    return Tiling(cuts[-1], cuts, name=name, **options)


def as_tiling(axis: Tiling | int) -> Tiling:
    """The tiling of an axis. A number stands for an axis of so many elements, in one tile."""
    return axis if isinstance(axis, Tiling) else Tiling(axis)


def even_cuts(size: int, tile: int) -> list[int]:
    """Boundaries of the fewest tiles of at most `tile` elements. Their sizes differ by one at most."""
    if size == 0:
        return [0]
    if tile < 1:
        raise ValueError(f"tiles of {tile} elements")
    count = -(-size // tile)
    return [size * i // count for i in range(count + 1)]


def _short(values: Sequence[int]) -> str:
    """Values for messages; of many values only the first."""
    return str(list(values)) if len(values) <= 12 else f"[{', '.join(map(str, values[:10]))}, ..]"
