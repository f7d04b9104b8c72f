"""Carries out the plan of a product: panels come ahead of their use, threads multiply, results go to where they
lie.

Pieces of work are dealt out by a counter, to processes or, where those of a node share panels, to nodes. A process
works on one at a time, with all its threads; those of a node that share panels make its results together.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore.parallel import tasks as dealt
from outcore.parallel import team
from outcore.parallel.prefetch import Waitable
from outcore.tensor import gemm
from outcore.tensor.amounts import Amounts
from outcore.tensor.crew import Crew, Work
from outcore.tensor.geometry import Step
from outcore.tensor.operands import Array, Operand
from outcore.tensor.panel import Side
from outcore.tensor.panels import NodeMemory, OwnPanels, SharedPanels
from outcore.tensor.product_plan import Planned
from outcore.tensor.progress import Told
from outcore.tensor.shares import Share

if TYPE_CHECKING:
    from outcore._core import Counter

_STOP = 1 << 48  # far beyond any number of tasks
_PARTS = 4  # of a large step, for each thread
_LARGE = 1e9  # operations of a step; a part of it takes a thousand times as long as to hand it over
_PRODUCT_BYTES = 1 << 20  # of what NumPy has multiplied, before it is added
_SMALL = 48**3  # multiplications of a matrix: of smaller ones NumPy multiplies many at a time
_HINTED_BYTES = 8 << 20  # of panels that owners read ahead, beyond those that were asked for
_HINTED = 8  # steps, at most
_NAMES = {"disk": "disk_read", "global": "network"}  # of what is read; else it is copied


class _Ahead(NamedTuple):
    """A step whose panels are asked for. `done`: the part of its task that is done after it; `later`: steps of the
    same piece of work that are hinted at then."""

    step: Step
    task: int
    done: float
    later: Sequence[Step]


class _Made(NamedTuple):
    """A result, or a share of one, in its buffer."""

    panel: tuple[int, int, int]
    matrices: Array
    share: Share | None


class _Results:
    """The buffers that results are made in, in turn. A result goes to where it lies while the next is made in
    another buffer; where there is one buffer alone, that waits."""

    def __init__(self, side: Side, count: int, elements: int, *, add: bool) -> None:
        self._side, self._add = side, add
        self._elements = elements
        self._buffers: list[Array | None] = [None] * count
        self._begun = self._put = 0
        self._under_way: deque[list[Waitable]] = deque()  # of the results that were put last
        self.moved = 0.0  # bytes

    @property
    def is_full(self) -> bool:
        """Whether the buffer of the next result has one that was not put yet."""
        return self._begun - self._put >= len(self._buffers)

    def begin(self, panel: tuple[int, int, int], share: Share | None) -> _Made:
        """The next result, when its buffer is free. Raises the error of a put."""
        while self._put - len(self._under_way) <= self._begun - len(self._buffers):
            self._complete()
        place = self._begun % len(self._buffers)
        buffer = self._buffers[place]
        if buffer is None:
            buffer = self._buffers[place] = np.empty(self._elements, self._side.dtype)
        self._begun += 1
        return _Made(panel, self._side.matrices(buffer, panel, share), share)

    def put(self, made: _Made) -> None:
        """Starts to put the result that was begun first of those that were not put."""
        if self._side.copies_what_it_puts:  # one result of such copies at a time
            self.finish()
        requests, moved = self._side.put(made.panel, made.matrices, made.share, add=self._add)
        self._under_way.append(requests)
        self._put += 1
        self.moved += moved

    def finish(self) -> None:
        """All that was put is where it lies. Raises the first error."""
        while self._under_way:
            self._complete()

    def give_up(self) -> None:
        """After an error: nothing is under way any more."""
        while self._under_way:
            for request in self._under_way.popleft():
                with suppress(Exception):
                    request.wait()

    def _complete(self) -> None:
        requests = self._under_way[0]
        while requests:
            requests.pop(0).wait()
        self._under_way.popleft()


class _Running:
    """Steps that have been begun: those whose panels are on their way, and those that are multiplied. There are as
    many together as panels have room for."""

    def __init__(
        self, panels: OwnPanels | SharedPanels, steps: Iterator[_Ahead], crew: Crew, results: _Results
    ) -> None:
        self._panels, self._steps, self._crew, self._results = panels, steps, crew, results
        self.ahead: deque[_Ahead] = deque()
        self._given: deque[tuple[_Ahead, _Made]] = deque()

    def ask(self) -> None:
        """For the panels of further steps."""
        for item in itertools.islice(
            self._steps, self._panels.ahead - len(self.ahead) - self._crew.under_way
        ):
            self._panels.begin(item.step)
            self.ahead.append(item)
            for step in item.later:
                self._panels.hint(step)

    def give(self, item: _Ahead, made: _Made, parts: list[Work]) -> None:
        """The first step that was asked for to the threads."""
        self.ahead.popleft()
        self._crew.give(parts)
        self._given.append((item, made))

    @property
    def ends_result(self) -> bool:
        """Whether a result is complete with the step that was given to the threads first."""
        return self._given[0][0].done == 1

    def wait(self) -> _Ahead:
        """For the step that was given to the threads first. A result that is complete with it starts to go to where
        it lies."""
        self._crew.wait()
        self._panels.release()
        item, made = self._given.popleft()
        if item.done == 1:
            self.ask()
            self._results.put(made)
        return item


class Product:
    """One product, in one process.

    Args:
        planned: the plan, the same at all processes.
        left, right, out: the arrays, as the plan knows them.
        scale: of the product.
        add: to what is in `out`, in place of putting it.
        memory: what the processes of a node share, if the plan says so.
    """

    def __init__(
        self,
        planned: Planned,
        left: Operand,
        right: Operand,
        out: Operand,
        *,
        scale: complex = 1,
        add: bool = False,
        threads: int = 1,
        memory: NodeMemory | None = None,
    ) -> None:
        geometry, product = planned.geometry, planned.problem.product
        dtype = planned.dtype
        self._planned, self._memory = planned, memory
        self._scale, self._add, self._threads = scale, add, threads
        self._sides = (
            Side(left, product.left, (0, 1, 3), geometry.left, dtype, geometry),
            Side(right, product.right, (0, 3, 2), geometry.right, dtype, geometry),
        )
        self._most_inner = int(geometry.sizes[3].max(initial=0))
        self._out = Side(out, product.out, (0, 1, 2), geometry.out, dtype, geometry)
        self._moved = {"disk_read": 0.0, "disk_written": 0.0, "network": 0.0, "copied": 0.0, "flops": 0.0}

    def run(self, counter: Counter | None = None, progress: Told | None = None) -> Amounts:
        """This process's part, and what it has moved. The counter must be at zero; None: all is done here, or on
        this node. Raises the first error of this process, and leaves nothing to the others then."""
        begun = time.perf_counter()
        gemm.load(self._planned.dtype.name)
        panels: OwnPanels | SharedPanels
        if self._memory is None:
            panels = OwnPanels(self._sides, self._planned.plan.slots, self._planned.largest)
        else:
            panels = SharedPanels(self._sides, self._memory)

        def stop() -> None:
            panels.stop()
            if counter is not None:
                counter.next(_STOP)

        def work(_: int, stopped: team.Stopped) -> None:
            self._work(panels, self._steps(panels, counter), stopped, progress)

        try:
            team.run(1, work, stop=stop)
        finally:
            panels.close()
        for side, read in zip(self._sides, panels.read, strict=True):
            self._moved[_NAMES.get(side.operand.facts.where, "copied")] += read
        return Amounts(**self._moved, seconds=time.perf_counter() - begun)

    def _steps(self, panels: OwnPanels | SharedPanels, counter: Counter | None) -> Iterator[_Ahead]:
        """Those of this process, or of its node."""
        units, each = self._planned.units, self._planned.plan.unit
        if isinstance(panels, SharedPanels):
            mine = panels.units(counter, len(units))
        else:
            mine = iter(range(len(units))) if counter is None else dealt.tasks_of(counter, len(units))
        hinted = self._hinted if self._hinted >= panels.ahead else 0
        for number in mine:
            steps = [
                (step, which, (place + 1) / len(task))
                for which, task in enumerate(units[number], number * each)
                for place, step in enumerate(task)
            ]
            for place, item in enumerate(steps):
                later = steps[place + hinted if place else panels.ahead : place + hinted + 1]
                yield _Ahead(*item, [step for step, _, _ in later] if hinted else [])

    @property
    def _hinted(self) -> int:
        """Steps beyond those whose panels are asked for that owners of what is on disk are told of."""
        pair = zip(self._sides, self._planned.largest[:2], strict=True)
        each = sum(
            size * side.operand.facts.item_bytes for side, size in pair if side.operand.facts.where == "disk"
        )
        return min(_HINTED, _HINTED_BYTES // each) if each else 0

    def _work(
        self,
        panels: OwnPanels | SharedPanels,
        steps: Iterator[_Ahead],
        stopped: team.Stopped,
        progress: Told | None,
    ) -> None:
        results = _Results(
            self._out, self._planned.plan.choice.results, self._planned.largest_share, add=self._add
        )
        try:
            self._make(results, panels, steps, stopped, progress)
            results.finish()
        except BaseException:
            results.give_up()
            raise
        where = self._out.operand.facts.where
        self._moved["disk_written" if where == "disk" else _NAMES.get(where, "copied")] += results.moved
        if self._add and where == "disk":
            self._moved["disk_read"] += results.moved

    def _make(
        self,
        results: _Results,
        panels: OwnPanels | SharedPanels,
        steps: Iterator[_Ahead],
        stopped: team.Stopped,
        progress: Told | None,
    ) -> None:
        """All results, until something has failed."""
        current, made = -1, None  # of the result that is being made
        with Crew(self._threads) as crew:
            running = _Running(panels, steps, crew, results)

            def wait() -> None:
                item = running.wait()
                if progress is not None:
                    count = len(self._planned.tasks)
                    progress((item.task + item.done) / count, item.task + (item.done == 1), count)

            while not stopped():
                running.ask()
                if not running.ahead:
                    if not crew.under_way:
                        return
                    wait()
                    continue
                while crew.under_way >= panels.slots:  # panels of this step may take the place of theirs
                    wait()
                item = running.ahead[0]
                here = panels.wait(stopped)
                if here is None:
                    return
                begins = item.task != current
                if begins:
                    while results.is_full:
                        wait()
                    panel = item.step.batch, item.step.rows, item.step.columns
                    current, made = item.task, results.begin(panel, self._share(panel))
                assert made is not None
                if item.step.inner < 0:
                    parts: list[Work] = [partial(made.matrices.fill, 0)]
                else:
                    parts = self._parts(_of_share(here, made.share), made.matrices, add=not begins)
                running.give(item, made, parts)
                while crew.under_way > 1 and running.ends_result:  # it is put while the next one is made
                    wait()

    def _share(self, panel: tuple[int, int, int]) -> Share | None:
        """Of this process; None: all of the panel."""
        return None if self._memory is None else self._planned.shares.of(self._memory.rank, panel)

    # ---- multiplication ----

    def _parts(self, panels: list[Array], out: Array, *, add: bool) -> list[Work]:
        """Of a product of panels: the same parts of a result in all its steps."""
        left, right = panels
        batch, rows, columns = out.shape
        if 0 in out.shape:
            return []
        self._moved["flops"] += 2.0 * batch * rows * columns * left.shape[2]
        # By the result alone, as steps may differ in their inner indices.
        large = 2.0 * batch * rows * columns * self._most_inner > _LARGE
        count = self._threads * (_PARTS if large and self._threads > 1 else 1)
        if batch >= count or rows * columns < count:
            parts = [(left[i], right[i], out[i]) for i in _ranges(batch, count)]
        elif rows >= columns:
            parts = [(left[:, i], right, out[:, i]) for i in _ranges(rows, count)]
        else:
            parts = [(left, right[:, :, i], out[:, :, i]) for i in _ranges(columns, count)]
        return [partial(multiply, *each, self._scale, add=add) for each in parts]


def _of_share(panels: list[Array], share: Share | None) -> list[Array]:
    """Of the panels of both operands what a share of the result needs."""
    if share is None:
        return panels
    left, right = panels
    part = slice(share.begin, share.end)
    if share.group == 1:
        return [left[:, part], right]
    return [left, right[:, :, part]] if share.group == 2 else [left[part], right[part]]


def multiply(left: Array, right: Array, out: Array, scale: complex, *, add: bool) -> None:
    """out[b] (+)= scale left[b] right[b], matrices each."""
    batch, rows, columns = out.shape
    inner = left.shape[2]
    if batch > 1 and rows * columns * inner <= _SMALL:
        chunk = max(1, _PRODUCT_BYTES // (rows * columns * out.itemsize))
        for begin in range(0, batch, chunk):
            part = slice(begin, begin + chunk)
            _multiply_small(left[part], right[part], out[part], scale, add=add)
        return
    for a, b, c in zip(left, right, out, strict=True):
        gemm.add_product(a, b, c, scale, add=add)


def _multiply_small(left: Array, right: Array, out: Array, scale: complex, *, add: bool) -> None:
    product: Any = left * right if left.shape[1:] == right.shape[1:] == (1, 1) else left @ right
    if scale != 1:
        product *= out.dtype.type(scale)
    if add:
        out += product
    else:
        out[...] = product


def _ranges(count: int, threads: int) -> list[slice]:
    parts = max(1, min(count, threads))
    return [slice(count * i // parts, count * (i + 1) // parts) for i in range(parts)]
