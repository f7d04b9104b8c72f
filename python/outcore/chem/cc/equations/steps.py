"""The steps of an iteration: rows of the products of its ladders, and contractions. Here all of them are done;
`kept_steps` leaves out those that another run has finished."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile


class LadderRows:
    """Rows of the products of a ladder, which are made for one part of their columns after the other.

    exhausted: this process has no more rows to do in this part; it sets this in each round.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.exhausted = False

    def left(self, part: int) -> list[int]:
        """Rows that are still to be made, the same at all processes."""
        return list(range(self._count))

    def finish(self, part: int, row: int) -> None:
        """Notes that this process has put a row of all products. Any of its threads may call it."""

    def rounds(self) -> Iterator[float]:
        """Rounds of a part until all processes are exhausted: yields the deadline of each, on the clock of
        time.monotonic. Collective."""
        yield math.inf


class Steps:
    """Steps of one residual after the other. Collective."""

    def rows(
        self, products: Mapping[str, Array], count: int, parts: int, tile: Callable[[int, int], Tile]
    ) -> LadderRows:
        """Rows of a ladder, for one residual.

        Args:
            products: by name; each has a tile, `tile(row, part)`, of each of `count` rows and `parts` parts.
        """
        return LadderRows(count)

    def step(self, name: str, array: Array, work: Callable[[], None]) -> None:
        """Calls `work`, which changes one array, of this name, and uses nothing else that steps change. An array
        may have several steps in each residual; the first one fills it."""
        work()
