"""How products H x are made within the memory of a plan: through tiles, through strips of rows on disk where that
moves less, through rows at nodes where the network between them counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from outcore.chem.ci import deal, speeds, strips
from outcore.chem.ci.deal import TilesOfNodes
from outcore.chem.ci.groups import Holes, PanelLayout, make_bands, make_tasks

if TYPE_CHECKING:
    from outcore.chem.ci.deal import Deal
    from outcore.chem.ci.finished import Finished
    from outcore.chem.ci.groups import Task
    from outcore.chem.ci.space import Space
    from outcore.chem.ci.tiles import VectorTiling
    from outcore.tensor.plan.rates import Rates

PANELS = 2  # of a task: of x and of the product
PAGE_BYTES = 2 << 20  # panels take whole huge pages
_TASKS_OF_A_PROCESS = 6  # so that all end at about the same time
_TIMES = (1, 2, 4, 8)  # as many, through rows
_REACHED_BYTES = 160  # of planning, for each row of a hole
_COUNTERS_BYTES = 16  # of a row
_ROW_S = 15e-6  # of the thread that moves a row, or a part of a tile
_SAMPLED = 16  # tasks that tell how much tiles would move


class ProductBytes(NamedTuple):
    """read, added: from vectors, strips and rows and to them. again: what is read to be added to, but for tiles
    that nothing was added to before. Through rows, between nodes: crossing, while tasks compute; turning, from
    tiles to rows before and back after."""

    read: int
    added: int
    again: int
    crossing: int = 0
    turning: int = 0


@dataclass(frozen=True)
class ProductWay:
    """How a product is made.

    bands: of whole rows, through strips; see strips.py. deal: which node does which tasks, through rows; see
    rows.py.
    """

    moved: ProductBytes
    _tasks: list[Task] | None = None
    bands: list[Task] | None = None
    deal: Deal | None = None
    row_bytes: int = 0  # of rows of tasks, in one direction

    @property
    def tasks(self) -> list[Task]:
        if self.deal is not None:
            return self.deal.tasks
        assert self._tasks is not None, "neither tasks nor a deal"
        return self._tasks


def between_nodes(product: ProductWay, rates: Rates) -> tuple[float, float]:
    """Seconds of a product through rows: of moving them for tasks, by the network and by a thread of each process,
    whichever takes longer; and from tiles to rows and back. The busiest node counts."""
    assert product.deal is not None
    dealt, moved, processes = product.deal, product.moved, sum(product.deal.nodes)
    crossing, turning = (
        each * busiest / speeds.network(rates)
        for each, busiest in (
            (moved.crossing, dealt.crossing.busiest),
            (moved.turning, dealt.turning.busiest),
        )
    )
    # x is copied, sums are read and written.
    here = (3 * product.row_bytes / rates.copy + 2 * _ROW_S * dealt.visits) / processes
    return max(crossing, here), max(turning, 2 * _ROW_S * dealt.boxes / processes)


def alone(product: ProductWay, computing: float, crossing: float) -> float:
    """Seconds in which the first task of a process is loaded, or the last one computed or added, and nothing goes
    on beside it."""
    assert product.deal is not None
    return min(computing, crossing) * sum(product.deal.nodes) / product.deal.first[-1]


@dataclass(frozen=True)
class ProductWays:
    """Of vectors of a `kind` (vector.KINDS) at so many processes, with so many bytes for panels of each, two sets
    of them if moving `overlaps` computing, of which rows may take `row_bytes`. nodes: of each process. threads: of
    all. rates: None: what the network can do counts for nothing."""

    space: Space
    tiling: VectorTiling
    kind: str
    processes: int
    threads: int
    nodes: tuple[int, ...]
    overlaps: bool
    panel_bytes: int
    row_bytes: float
    rates: Rates | None

    def choose(self, dtype: str) -> ProductWay:
        if (rows := self._best_rows(dtype)) is not None:
            return rows
        tiles = self.by_tiles(dtype)
        by_strips = self.by_strips(dtype) if self.kind == "disk" else None
        less = by_strips is not None and sum(by_strips.moved) < sum(tiles.moved)
        return by_strips if by_strips is not None and less else tiles

    def left(self, product: ProductWay, dtype: str, finished: Finished) -> list[Task]:
        """Its tasks of what is not finished."""
        layout = PanelLayout() if product.bands is None else strips.layout(dtype)
        taken = 0
        if product.deal is not None:
            taken = self._row_bytes(product.deal, dtype) + self._planning_bytes
        found = self._tasks(dtype, layout, finished, taken)
        assert found is not None, "parts of tasks that fit do not fit"
        return found

    # ---- through tiles and strips ----

    def by_tiles(self, dtype: str) -> ProductWay:
        found = self._tasks(dtype, PanelLayout())
        assert found is not None, "the plan was made for panels that do not fit"
        word = np.dtype(dtype).itemsize
        moved = word * self._in_tiles(found)
        again = max(moved - word * self.tiling.elements, 0) if self.kind == "disk" else 0
        return ProductWay(ProductBytes(moved, moved, again), found)

    def by_strips(self, dtype: str) -> ProductWay | None:
        """None if they do not fit."""
        layout = strips.layout(dtype)
        tasks = self._tasks(dtype, layout)
        bands = make_bands(self.tiling, self._limit(dtype), layout)
        if tasks is None or bands is None:
            return None
        word, whole = np.dtype(dtype).itemsize, strips.file_bytes(self.space, dtype)
        rows = sum(strips.task_bytes(self.space, task, dtype) for task in tasks if not task.transposed)
        tiles = word * (self._in_tiles(bands) + self._in_tiles([task for task in tasks if task.transposed]))
        # x: tiles, rows. T: rows, but for those that nothing was added to before, and all rows in the end.
        again = tiles - word * self.tiling.elements
        return ProductWay(ProductBytes(tiles + 2 * rows, whole + rows + tiles, again), tasks, bands)

    def _tasks(
        self, dtype: str, layout: PanelLayout, finished: Finished | None = None, taken_bytes: int = 0
    ) -> list[Task] | None:
        share = 1.0 if self.processes == 1 else 1.0 / (_TASKS_OF_A_PROCESS * self.processes)
        return make_tasks(self.space, self._limit(dtype, taken_bytes), share, layout, finished)

    def _limit(self, dtype: str, taken_bytes: int = 0) -> int:
        """Elements of a panel, if so many bytes of those for panels are taken."""
        slots = 2 if self.overlaps else 1
        panels = self.panel_bytes - taken_bytes - slots * PANELS * PAGE_BYTES
        return panels // (2 * slots * np.dtype(dtype).itemsize)

    def _in_tiles(self, tasks: list[Task]) -> int:
        """Elements of the tiles that tasks move."""
        return sum(int(self.tiling.sizes[task.tiles(self.tiling)].sum()) for task in tasks)

    # ---- through rows ----

    def by_rows(
        self, dtype: str, of_process: int, *, near_tiles: bool = False, copied: bool = False
    ) -> ProductWay | None:
        """With about so many tasks of each process; see deal.py. None if they do not fit."""
        work = self._work(dtype, of_process)
        return None if work is None else self._of_work(work, dtype, near_tiles=near_tiles, copied=copied)

    def _work(self, dtype: str, of_process: int) -> deal.NodeTasks | None:
        return deal.make_node_tasks(self._parts[0], self._sizes, of_process, self._limit(dtype), dtype)

    def _of_work(
        self, work: deal.NodeTasks, dtype: str, *, near_tiles: bool, copied: bool
    ) -> ProductWay | None:
        found = deal.make_deal(work, self._parts[1], self.space, near_tiles=near_tiles, copied=copied)
        taken = self._row_bytes(found, dtype)
        if taken > self.row_bytes or work.largest > self._limit(dtype, taken + self._planning_bytes):
            return None
        word, whole = np.dtype(dtype).itemsize, self.space.determinants
        slabs = self._in_tiles(work.slabs)
        copies = 0 if found.copies is None else int(found.copies.sizes.sum())
        # x: tiles, copies, rows. T: rows, their sums, and all of them in the end. The product: tiles.
        moved = word * (self.tiling.elements + copies + found.moved + whole + slabs)
        crossing = 2 * word * (found.crossing.elements + int(self._far * slabs))
        return ProductWay(
            ProductBytes(moved, moved, 0, crossing, 2 * word * found.turning.elements),
            row_bytes=word * found.moved,
            deal=found,
        )

    def _best_rows(self, dtype: str) -> ProductWay | None:
        """In the memory of several nodes, with tasks and places of rows that make a product take the least time.
        None where they do not fit, or tiles move less between nodes."""
        word = np.dtype(dtype).itemsize
        if (
            self.kind != "global"
            or len(self._sizes) < 2
            or self.rates is None
            or not min(self.space.electrons)
        ):
            return None
        if 2 * self.space.determinants * word > self.processes * min(self.panel_bytes, self.row_bytes):
            return None
        best = self._fastest(dtype, [2 * _TASKS_OF_A_PROCESS], copied=True)
        if best is None:
            counts = [_TASKS_OF_A_PROCESS * times for times in _TIMES]
            best = self._fastest(dtype, counts, copied=False)
        if best is None:
            return None
        some = best.tasks[:: -(-len(best.tasks) // _SAMPLED)]
        by_tiles = word * self._in_tiles(some) * len(best.tasks) / len(some)
        moving = max(
            2 * self._far * by_tiles / speeds.network(self.rates),
            3 * by_tiles / self.rates.copy / self.processes,
        )
        computing = self._computing(best)
        tiles = max(computing, moving) if self.overlaps else computing + moving
        return best if self._all_seconds(best) < tiles else None

    def _fastest(self, dtype: str, counts: list[int], *, copied: bool) -> ProductWay | None:
        """With so many tasks of each process. Fewer move less, if there are no copies; of more less is left that
        nothing goes on beside, and their panels are smaller."""
        best = None
        for count in counts:
            if (work := self._work(dtype, count)) is None:
                continue
            for near_tiles in (False, True):
                found = self._of_work(work, dtype, near_tiles=near_tiles, copied=copied)
                if found is not None and (best is None or self._all_seconds(found) < self._all_seconds(best)):
                    best = found
        return best

    @cached_property
    def _parts(self) -> tuple[Holes, TilesOfNodes]:
        return Holes(self.space), TilesOfNodes(self.tiling, self.nodes)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """Processes of each node."""
        return tuple(np.bincount(self.nodes).tolist())

    @property
    def _far(self) -> float:
        """The share of what lies at all processes that another node has."""
        shares = np.array(self._sizes, float) / len(self.nodes)
        return float(1 - shares @ shares)

    def _all_seconds(self, product: ProductWay) -> float:
        """About."""
        assert self.rates is not None
        computing = self._computing(product)
        crossing, turning = between_nodes(product, self.rates)
        if not self.overlaps:
            return computing + crossing + turning
        return max(computing, crossing) + alone(product, computing, crossing) + turning

    def _computing(self, product: ProductWay) -> float:
        assert self.rates is not None and product.deal is not None
        flops = deal.about_flops(self.space)
        return speeds.of_product(self.rates, flops, self.threads) * product.deal.work.uneven

    def _row_bytes(self, dealt: Deal, dtype: str) -> int:
        """Of arrays of a process: x and T, and counters of copies."""
        row = 2 * deal.pitch(self.space, dtype) * np.dtype(dtype).itemsize + _COUNTERS_BYTES
        return dealt.rows_of_process * row

    @property
    def _planning_bytes(self) -> int:
        """Of what a process knows of each row of a hole."""
        return _REACHED_BYTES * len(self.space.alpha.strings) * self.space.electrons[0]
