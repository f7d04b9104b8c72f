"""The finished part of a product H x, described independently of its tasks: another run continues from it with
tasks of any size."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from outcore.chem.ci.groups import Task
    from outcore.chem.ci.tiles import VectorTiling

Flags = NDArray[np.bool_]


class ProductName(NamedTuple):
    """Names a product of an iteration: `of` the "state" or the "correction" of a root."""

    of: str
    root: int


class Finished:
    """The finished part of one product. A task with holes adds these, with the same-spin part of their home rows. A
    task without holes adds its home rows; if it is transposed these are columns.

    Attributes: `holes`, `rows`, `columns`: flags of those that are in the product; `tiles`: flags of tiles that may
    differ from zero."""

    def __init__(self, tiling: VectorTiling) -> None:
        space = tiling.space
        self._tiling = tiling
        by_holes = min(space.electrons) > 0
        self.holes = np.zeros(comb(space.orbitals, space.electrons[0] - 1) if by_holes else 0, bool)
        self.rows = np.zeros(0 if by_holes else len(space.alpha.strings), bool)
        self.columns = np.zeros(0 if space.folded else len(space.beta.strings), bool)
        self.tiles = np.zeros(len(tiling), bool)

    def __bool__(self) -> bool:
        return any(bool(each.any()) for each in (self.holes, self.rows, self.columns))

    def add(self, task: Task) -> None:
        if task.transposed:
            self.columns[task.home] = True
        elif task.holes:
            self.holes[task.holes.start : task.holes.stop] = True
        else:
            self.rows[task.home] = True
        self.tiles[task.tiles(self._tiling)] = True

    def as_json(self) -> dict[str, Any]:
        return {name: _runs(getattr(self, name)) for name in _NAMES}

    @classmethod
    def of_json(cls, tiling: VectorTiling, found: Any) -> Finished:
        """Reads the result of `as_json`. Raises ValueError if it is not one for this tiling."""
        self = cls(tiling)
        for name in _NAMES:
            flags: Flags = getattr(self, name)
            runs = found.get(name) if isinstance(found, dict) else None
            if not isinstance(runs, list) or len(runs) % 2 or not all(type(each) is int for each in runs):
                raise ValueError(f"it does not say which {name} are finished")
            if any(one > other for one, other in pairwise([0, *runs, len(flags)])):
                raise ValueError(f"it does not have {len(flags)} {name}")
            for begin, end in zip(runs[::2], runs[1::2], strict=True):
                flags[begin:end] = True
        return self


_NAMES = ("holes", "rows", "columns", "tiles")


def borders(flags: Flags) -> NDArray[np.int64]:
    """Begin and end of each run of set flags, in turn."""
    return np.flatnonzero(np.diff(flags, prepend=False, append=False)).astype(np.int64)


def _runs(flags: Flags) -> list[int]:
    found: list[int] = borders(flags).tolist()
    return found
