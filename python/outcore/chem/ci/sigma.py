"""The product of a Hamiltonian with a vector, task by task, with the vectors wherever they are.

While a task computes, the rows of the next task are read, and the result of the last task is added to the product.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.arrays.global_array import GlobalArray
from outcore.base.threads import Pool
from outcore.chem.ci.deal import LINE_BYTES, first_of_nodes
from outcore.chem.ci.lists import Lists
from outcore.chem.ci.rows import NodeRows
from outcore.chem.ci.strips import UNIT_BYTES, Strips
from outcore.parallel import team
from outcore.parallel.prefetch import Prefetch
from outcore.parallel.tasks import tasks_of

if TYPE_CHECKING:
    from outcore.chem.ci.deal import Deal
    from outcore.chem.ci.finished import ProductName
    from outcore.chem.ci.groups import Flags, Task
    from outcore.chem.ci.kept_products import KeptProducts
    from outcore.chem.ci.near import Near
    from outcore.chem.ci.passes import Place
    from outcore.chem.ci.space import Integers
    from outcore.chem.ci.tiles import VectorTile, VectorTiling
    from outcore.chem.ci.vector import Array
    from outcore.job.world import World

_AHEAD_BYTES = 4 << 20  # bytes under way while a tile is put into panels
_CALL_FLOPS = 1e10  # operations of a thread in one call of the kernel, during which Ctrl-C has no effect
_POLL_S = 0.001
_FAILED = 1 << 40  # value of the turn after a failure: no process waits any longer


@dataclass
class SigmaTraffic:
    """Bytes that one process or several have read from vectors and strips and added to them, and seconds in which
    tasks waited for them. least: the sum of `least_moved` over whole products; process 0 counts it."""

    read: int = 0
    added: int = 0
    least: int = 0
    waited_seconds: float = 0.0
    computed_seconds: float = 0.0

    @property
    def bytes(self) -> int:
        return self.read + self.added

    @classmethod
    def sum(cls, parts: Iterable[SigmaTraffic]) -> SigmaTraffic:
        """The sum over several processes, or searches."""
        return cls(*(sum(each) for each in zip(*map(astuple, [cls(), *parts]), strict=True)))


class _Slot:
    """The panels of a task, of x and of the product; their rows are in units of `unit` bytes. Their memory is
    reused by the next task, as long as the panels of x have no more than `most` elements together."""

    def __init__(self, kernel: Any, dtype: str, most: int, unit: int) -> None:
        self._kernel, self._dtype, self._most, self._unit = kernel, dtype, most, unit
        self._panels: dict[bool, tuple[Any, Any]] = {}  # transposed or not
        self._room: dict[bool, int] = {}  # elements for which a panel of x has memory
        self.number = -1
        self.task: Task | None = None
        self.touched: Flags = np.zeros((0, 0), bool)

    def take(self, number: int, task: Task, tiling: VectorTiling) -> None:
        self.number, self.task, self.touched = number, task, task.touched(tiling)
        kind = task.transposed
        room = {**self._room, kind: max(task.elements(tiling.space), self._room.get(kind, 0))}
        if sum(room.values()) > self._most:
            self._panels.clear()
            room = {kind: task.elements(tiling.space)}
        self._room = room
        rows = task.home, task.others, task.begins
        if kind in self._panels:
            for panel in self._panels[kind]:
                panel.assign(*rows)
        else:
            x, t = (
                _core.CIPanel(self._kernel, *rows, self._dtype, transposed=kind, unit=self._unit)
                for _ in range(2)
            )
            self._panels[kind] = x, t

    @property
    def panels(self) -> tuple[Any, Any]:
        """The panel of x and that of the product."""
        assert self.task is not None
        return self._panels[self.task.transposed]


def least_moved(tiling: VectorTiling, dtype: str) -> int:
    """Bytes that a product moves whatever its tasks are: it reads each element of x and writes each element of H x.
    With memory for half as many rows as a row has neighbours no more is needed, see docs/why/bounds.md."""
    return 2 * tiling.elements * np.dtype(dtype).itemsize


def tiles_ahead(tiling: VectorTiling, dtype: str) -> int:
    """Number of tiles that are under way while one is put into panels."""
    tile = tiling.largest * np.dtype(dtype).itemsize
    return min(max(_AHEAD_BYTES // tile, 4), 32)


class Sigma:
    """Adds H x to y. `threads` of each process compute; two sets of panels if it `overlaps` moving with computing.
    `tasks` makes them for a precision, and of what is not finished, the same at all processes. `bands` makes tasks
    of whole rows of the vector, or None: then tasks move tiles, else rows of strips, between which and tiles these
    bands are moved before and after. `deal` says which node does which tasks and has which rows, or is None; else
    tasks move rows that lie in memory, see rows.py. `ordered`: sums are made in the same order whatever processes
    do, with one thread each. `kept`: where finished tasks outlast the run.

    The constructor and `apply` are collective.
    """

    def __init__(
        self,
        world: World,
        kernel: Any,
        tiling: VectorTiling,
        tasks: Callable[..., list[Task]],
        bands: Callable[[str], list[Task] | None] = lambda _: None,
        deal: Callable[[str], Deal | None] = lambda _: None,
        *,
        threads: int = 1,
        overlaps: bool = True,
        ordered: bool = False,
        kept: KeptProducts | None = None,
    ) -> None:
        self.world, self.kernel, self.tiling = world, kernel, tiling
        self._kept = kept
        self._make_tasks, self._make_bands, self._make_deal = tasks, bands, deal
        self.threads = 1 if ordered else threads
        self.overlaps, self.ordered = overlaps, ordered
        self.moved, self.products = SigmaTraffic(), 0  # since this object was made
        self._counter = world.counter()
        self._lists = Lists(world, of_nodes=False)
        self._turn = GlobalArray(world, (1,), "int64") if ordered and world.size > 1 else None
        self._slots: list[_Slot] = []
        self._type, self.tasks = "", list["Task"]()
        self._bands: list[Task] | None = None
        self._deal: Deal | None = None
        self._strips: Strips | None = None
        self._rows: NodeRows | None = None
        self._near: Near | None = None  # copies of rows that tasks use
        self._movers, self._stopped = 1, False

    def apply(self, x: Place, y: Place, product: ProductName | None = None) -> None:
        """Adds H x to y, which has the type of x. product: the name under which its finished part is kept for
        another run; None: it is not kept. Raises OutcoreError, at all processes."""
        if self._turn is not None:
            self._turn.local[...] = 0
            self._turn.sync()
        if self._type != x.vectors.dtype.name:
            self._prepare(x.vectors.dtype.name)
        self.products, self._stopped = self.products + 1, False
        least = least_moved(self.tiling, self._type) if self.world.rank == 0 else 0
        if self._kept is None or product is None:
            self.moved.least += least
            self._add(x, y, self.tasks, partial(self._end_round, y))
            return
        kept, tasks = self._kept, self.tasks
        finished = kept.begin(product, y)
        self.moved.least += 0 if finished else least
        if finished:
            with self.world.together("tasks of products that are left"):
                tasks = self._make_tasks(self._type, finished)

        def end(done: list[Task]) -> None:
            with kept.committing() if kept.clock.is_late() else nullcontext():
                self._end_round(y, done)
                kept.add(product, done)

        # Strips that are gathered more often make sums in another order.
        in_rounds = not (self.ordered and self._lines is not None)
        self._add(x, y, tasks, end, kept.clock.deadline if in_rounds else lambda: inf)

    def _add(
        self,
        x: Place,
        y: Place,
        tasks: list[Task],
        end_round: Callable[[list[Task]], None],
        deadline: Callable[[], float] = lambda: inf,
    ) -> None:
        """Adds tasks to y, in rounds until a deadline, all processes together. What they have made is complete when
        a round has ended, with its tasks."""
        if not tasks:
            return
        self._near = None if self._rows is None or tasks is not self.tasks else self._rows.near
        if self._near is not None:
            self._near.begin()
        if self._lines is not None:
            self._lines.clear()
            self._collectively("spread a CI vector", partial(self._waiting, self._spread, x))
        if self._rows is not None:
            self._rows.sync()
        first = self._first_of_lists(tasks)
        done = first[:-1]
        while done != first[1:]:
            work = partial(self._work, x, y, tasks, list(zip(done, first[1:], strict=True)), deadline())
            self._lists.reset()
            self._collectively("product with the CI Hamiltonian", work)
            taken = self.world.all_reduce(np.array(self._lists.taken), "max").tolist()
            ended = [tasks[begin : begin + count] for begin, count in zip(done, taken, strict=True)]
            done = [begin + count for begin, count in zip(done, taken, strict=True)]
            if self._near is not None and done != first[1:]:
                self._near.sync()
                self._collectively("send sums of a CI product", partial(self._send_rest, self._near))
            end_round([task for each in ended for task in each])
            if self._lines is not None and done != first[1:]:
                self._lines.clear()

    def _first_of_lists(self, tasks: list[Task]) -> list[int]:
        """The number of the first task of each list, and how many tasks there are."""
        if len(self._lists) == 1:
            return [0, len(tasks)]
        assert self._deal is not None
        if tasks is self.tasks:
            return self._deal.first
        return first_of_nodes([task.cost for task in tasks], self._deal.nodes)

    def _send_rest(self, near: Near) -> None:
        self.moved.added += near.send_rest()

    def _end_round(self, y: Place, _: list[Task]) -> None:
        if self._rows is not None:
            self._rows.sync()
        if self._lines is not None:
            self._collectively("gather a CI product", partial(self._waiting, self._gather, y))
        y.vectors.sync()

    @property
    def _lines(self) -> Strips | NodeRows | None:
        """What tasks move, if it is not tiles."""
        return self._strips if self._rows is None else self._rows

    def _prepare(self, dtype: str) -> None:
        """For products in this precision."""
        if self._lines is not None:
            self._lines.close()
        self._type, self._strips, self._rows, self._near = "", None, None, None
        with self.world.together("tasks of products", dtype):
            self._slots.clear()
            self._deal, self._bands = self._make_deal(dtype), self._make_bands(dtype)
            self.tasks = self._make_tasks(dtype) if self._deal is None else self._deal.tasks
            unit = LINE_BYTES if self._bands is None else UNIT_BYTES
            if self._deal is not None:
                most = self._deal.work.largest
            else:
                most = max(task.elements(self.tiling.space) for task in [*self.tasks, *(self._bands or [])])
            slots = 2 if self.overlaps and len(self.tasks) > 1 else 1
            self._slots = [_Slot(self.kernel, dtype, most, unit) for _ in range(slots)]
        if self._bands is not None:
            self._strips = Strips(self.world, self.tiling.space, dtype)
        if self._deal is not None:
            self._deal.check(self.world)
            copies = None if self.ordered else self._deal.copies  # sums of copies come in another order
            self._rows = NodeRows(self.world, self.tiling, dtype, self._deal.owners, copies)
        dealt = self._deal is not None and len(self._deal.nodes) > 1
        if self._lists.of_nodes != (dealt and not self.ordered):
            self._lists.close()
            self._lists = Lists(self.world, of_nodes=not self._lists.of_nodes)
        self._type = dtype

    def _collectively(self, what: str, do: Callable[[], None]) -> None:
        self._counter.reset()
        for slot in self._slots:
            slot.task = None
        with self.world.together(what):
            try:
                with team.blas_of_one_thread():
                    do()
            except BaseException:  # this thread waits for movers, and they and others need not continue
                self._stopped = True
                self._counter.next(_FAILED)
                self._lists.stop()
                if self._near is not None:
                    self._near.fail()
                if self._turn is not None:
                    self._turn.read_increment(0, _FAILED)
                raise

    @property
    def waited_seconds(self) -> float:
        return self.moved.waited_seconds

    def diagonal(self, tile: VectorTile) -> Array:
        found = np.empty(tile.shape)
        self.kernel.diagonal(*tile.first, found)
        return found

    def close(self) -> None:
        """Frees the panels. Collective."""
        self._slots.clear()
        if self._lines is not None:
            self._lines.close()
        self._lists.close()
        if self._turn is not None:
            self._turn.close()

    # ---- tasks ----

    def _taken(self, lists: list[tuple[int, int]], deadline: float) -> Iterator[int]:
        """Numbers of tasks that this process works on: of those of each list that none has taken, until the
        deadline."""
        for which, number in self._lists.tasks([last - first for first, last in lists]):
            yield lists[which][0] + number
            if self._stopped or time.monotonic() > deadline:
                return

    def _work(
        self, x: Place, y: Place, tasks: list[Task], lists: list[tuple[int, int]], deadline: float
    ) -> None:
        numbers = ((number, tasks[number]) for number in self._taken(lists, deadline))
        # Moving does not overlap with computing in one set of panels: then all threads move.
        movers = self.threads if len(self._slots) == 1 else 1
        with self._moving(movers), Pool("outcore-mover", 1) as mover, self._fetching():
            try:
                which = 0
                coming = mover.submit(self._move, x, y, which, numbers)
                while self._arrived(coming):
                    if len(self._slots) > 1:
                        coming = mover.submit(self._move, x, y, 1 - which, numbers)
                        self._compute(self._slots[which])
                        which = 1 - which
                    else:
                        self._compute(self._slots[which])
                        coming = mover.submit(self._move, x, y, which, numbers)
                for slot in self._slots:
                    self._arrived(mover.submit(self._unload, y, slot))
            except BaseException:
                self._stopped = True
                raise

    @contextmanager
    def _fetching(self) -> Iterator[None]:
        """Meanwhile copies of rows come that the node of this process needs."""
        if self._near is None:
            yield
            return
        with Pool("outcore-fetcher", 1) as fetcher:
            coming = fetcher.submit(self._fetch, self._near)
            yield
            self.moved.read += coming.result()

    def _fetch(self, near: Near) -> int:
        try:
            return near.fetch(self._is_stopped)
        except BaseException:  # nobody need wait for what does not come
            self._stopped = True
            near.fail()
            raise

    @contextmanager
    def _moving(self, movers: int) -> Iterator[None]:
        """A context in which `movers` threads share the moves between tiles and panels."""
        self._movers = movers
        with Pool("outcore-mover", movers) as self._sharing:
            yield

    def _waiting(self, move: Callable[[Place], None], place: Place) -> None:
        """Moves a vector while nothing computes, and counts the seconds as waited."""
        begun = time.perf_counter()
        move(place)
        self.moved.waited_seconds += time.perf_counter() - begun

    def _spread(self, x: Place) -> None:
        """x from tiles into strips, or into rows."""
        if self._rows is not None:
            read, put = self._of_tiles(x, self._rows.put_x)
            self.moved.read, self.moved.added = self.moved.read + read, self.moved.added + put
            return
        slot = self._slots[0]
        assert self._bands is not None and self._strips is not None
        with self._moving(self.threads):
            for number in tasks_of(self._counter, len(self._bands)):
                slot.take(number, self._bands[number], self.tiling)
                self._load_from_tiles(x, slot)
                self.moved.added += self._strips.write_x(slot.panels[0], self._is_stopped)

    def _gather(self, y: Place) -> None:
        """T from strips, or from rows, into tiles."""
        if self._rows is not None:
            read, added = self._of_tiles(y, self._rows.add_to_tiles)
            self.moved.read, self.moved.added = self.moved.read + read, self.moved.added + added
            return
        slot = self._slots[0]
        assert self._bands is not None and self._strips is not None
        with self._moving(self.threads):
            for number in tasks_of(self._counter, len(self._bands)):
                slot.take(number, self._bands[number], self.tiling)
                self.moved.read += self._strips.read_t(slot.panels[1], self._is_stopped)
                self._unload_to_tiles(y, slot)

    def _of_tiles(
        self, place: Place, move: Callable[[Place, list[int], Callable[[], bool]], tuple[int, int]]
    ) -> tuple[int, int]:
        """Of those that this process has, each thread some: what `move` returns."""
        shares = np.array_split(np.array(place.vectors.own_tiles(), np.int64), self.threads)
        with self._moving(self.threads):
            every = [self._sharing.submit(move, place, share.tolist(), self._is_stopped) for share in shares]
            moved = [each.result() for each in every]
        return sum(read for read, _ in moved), sum(written for _, written in moved)

    def _is_stopped(self) -> bool:
        return self._stopped

    def _arrived(self, coming: Future[Any]) -> Any:
        asked = time.perf_counter()
        try:
            return coming.result()
        finally:
            self.moved.waited_seconds += time.perf_counter() - asked

    def _compute(self, slot: _Slot) -> None:
        begun = time.perf_counter()
        assert slot.task is not None
        x, t = slot.panels
        for first, last in itertools.pairwise(self._calls(slot.task.holes)):
            self.kernel.opposite_spin(x, t, first, last, self.threads)
        self.kernel.same_spin(x, t, self.threads)
        self.moved.computed_seconds += time.perf_counter() - begun

    def _calls(self, holes: range) -> list[int]:
        """Boundaries of the holes of each call of the kernel, so that Ctrl-C takes effect between calls."""
        if not holes:
            return []
        flops = self.kernel.flops(holes.start, holes.stop)
        count = min(int(flops / (_CALL_FLOPS * self.threads)) + 1, len(holes))
        return [holes.start + len(holes) * k // count for k in range(count + 1)]

    def _move(self, x: Place, y: Place, which: int, numbers: Iterator[tuple[int, Task]]) -> bool:
        """Adds the result in a slot to y, and loads the next task into the slot; False if there is none."""
        slot = self._slots[which]
        self._unload(y, slot)
        coming = next(numbers, None)
        if coming is None:
            return False
        slot.take(*coming, self.tiling)
        self._load(x, slot)
        return True

    def _load(self, x: Place, slot: _Slot) -> None:
        assert slot.task is not None
        slot.panels[1].clear(self._movers)
        if self._rows is not None and not slot.task.transposed:
            self.moved.read += self._rows.read_x(slot.panels[0], self._is_stopped, self._node(slot))
        elif self._strips is not None and not slot.task.transposed:
            self.moved.read += self._strips.read_x(slot.panels[0], self._is_stopped)
        else:
            self._load_from_tiles(x, slot)

    def _node(self, slot: _Slot) -> int | None:
        """Whose copies of rows the task in a slot uses; None: none."""
        return None if self._near is None or self._deal is None else self._deal.node(slot.number)

    def _load_from_tiles(self, x: Place, slot: _Slot) -> None:
        assert slot.task is not None
        numbers = slot.task.tiles(self.tiling)
        if (memory := x.vectors.values(x.index, numbers)) is not None:
            values, places = memory
            slot.panels[0].load_tiles(values, places, self.tiling.parity, self._movers)
        else:
            self._in_shares(numbers, partial(self._load_tiles, x, slot))
        self.moved.read += int(self.tiling.sizes[numbers].sum()) * x.vectors.dtype.itemsize

    def _in_shares(self, numbers: Integers, move: Callable[[list[int], int], None]) -> None:
        """Gives each mover a run of tiles. `move(tiles, depth)` may have `depth` tiles under way."""
        depth = max(tiles_ahead(self.tiling, self._type) // self._movers, 2)
        shares = [share.tolist() for share in np.array_split(numbers, self._movers)]
        for done in [self._sharing.submit(move, share, depth) for share in shares]:
            done.result()

    def _load_tiles(self, x: Place, slot: _Slot, numbers: list[int], depth: int) -> None:
        buffers = [np.empty(self.tiling.largest, x.vectors.dtype) for _ in range(depth)]
        arrived: list[Any] = [None] * depth

        def start(number: int, place: int) -> Any:
            tile = self.tiling[number]
            values = buffers[place][: tile.size].reshape(tile.shape)
            arrived[place] = x.vectors.get_async(x.index, tile, values)
            return arrived[place]

        with Prefetch(numbers, start, depth) as ahead:
            for number, place in ahead.in_order():
                if self._stopped:
                    return
                self._put_into_panels(slot, self.tiling[number], arrived[place].wait())

    def _put_into_panels(self, slot: _Slot, tile: VectorTile, values: Array) -> None:
        (row, column), parity, touched = tile.first, self.tiling.parity, slot.touched
        panel = slot.panels[0]
        if slot.task is not None and slot.task.transposed:
            panel.load(column, row, values, transpose=True)
        elif touched[tile.row, tile.column]:
            panel.load(row, column, values)
        if parity and not tile.on_diagonal and touched[tile.column, tile.row]:
            panel.load(column, row, values, transpose=True, scale=float(parity))

    def _unload(self, y: Place, slot: _Slot) -> None:
        """Adds the result in a slot to the product."""
        if slot.task is None:
            return
        if self._turn is not None and not self._wait_for_turn(slot.number):
            return
        read = written = 0
        if self._rows is not None and not slot.task.transposed:
            read, written = self._rows.add_t(slot.panels[1], self._is_stopped, self._node(slot))
        elif self._strips is not None and not slot.task.transposed:
            read, written = self._strips.add_t(slot.panels[1], self._is_stopped)
        else:
            self._unload_to_tiles(y, slot)
        self.moved.read, self.moved.added = self.moved.read + read, self.moved.added + written
        if self._turn is not None:
            self._turn.read_increment(0, 1)
        slot.task = None

    def _unload_to_tiles(self, y: Place, slot: _Slot) -> None:
        """Adds T to the tiles; for a folded vector T + parity T^T."""
        assert slot.task is not None
        numbers = slot.task.tiles(self.tiling)
        if (memory := y.vectors.values(y.index, numbers)) is not None:
            values, places = memory
            slot.panels[1].add_to_tiles(values, places, self.tiling.parity, self._movers)
        else:
            self._in_shares(numbers, partial(self._unload_tiles, y, slot))
        self.moved.added += int(self.tiling.sizes[numbers].sum()) * y.vectors.dtype.itemsize

    def _unload_tiles(self, y: Place, slot: _Slot, numbers: list[int], depth: int) -> None:
        buffers = [np.empty(self.tiling.largest, y.vectors.dtype) for _ in range(depth)]
        under_way: list[Any] = [None] * depth
        for count, number in enumerate(numbers):
            place = count % depth
            if self._stopped:
                break
            if under_way[place] is not None:
                under_way[place].wait()
            tile = self.tiling[number]
            values = buffers[place][: tile.size].reshape(tile.shape)
            self._take_from_panels(slot, tile, values)
            under_way[place] = y.vectors.acc_async(y.index, tile, values)
        for each in under_way:
            if each is not None:
                each.wait()

    def _take_from_panels(self, slot: _Slot, tile: VectorTile, values: Array) -> None:
        (row, column), parity, touched = tile.first, self.tiling.parity, slot.touched
        panel = slot.panels[1]
        values[...] = 0
        if slot.task is not None and slot.task.transposed:
            panel.unload(column, row, values, transpose=True)
        elif touched[tile.row, tile.column]:
            panel.unload(row, column, values)
        if parity and not tile.on_diagonal and touched[tile.column, tile.row]:
            panel.unload(column, row, values, transpose=True, scale=float(parity))
        if parity and tile.on_diagonal:
            values[...] = values + parity * values.T  # exactly (anti)symmetric

    def _wait_for_turn(self, number: int) -> bool:
        """Waits for the turn of this task. False: it will not come, as a process has failed; all raise its
        error."""
        assert self._turn is not None
        while (turn := self._turn.read_increment(0, 0)) < number:
            if self._stopped:
                return False
            time.sleep(_POLL_S)
        return turn < _FAILED
