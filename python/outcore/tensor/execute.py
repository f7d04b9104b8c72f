"""Carries out the plan of a product: panels come ahead of their use, threads multiply, results go to where they
lie.

Pieces of work are dealt out by a counter, to processes or, where those of a node share panels, to nodes. A process
works on one at a time, with all its threads; those of a node that share panels make its results together.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore.parallel import tasks as dealt
from outcore.parallel import team
from outcore.tensor.amounts import Amounts
from outcore.tensor.crew import Crew, Work
from outcore.tensor.gemm import add_product
from outcore.tensor.geometry import Step, Task
from outcore.tensor.operands import Array, Operand
from outcore.tensor.panel import Side
from outcore.tensor.panels import NodeMemory, OwnPanels, SharedPanels
from outcore.tensor.product_plan import Planned
from outcore.tensor.progress import Told
from outcore.tensor.shares import Share

if TYPE_CHECKING:
    from outcore._core import Counter

_STOP = 1 << 48  # far beyond any number of tasks
_PRODUCT_BYTES = 1 << 20  # of what NumPy has multiplied, before it is added
_SMALL = 48**3  # multiplications of a matrix: of smaller ones NumPy multiplies many at a time
_NAMES = {"disk": "disk_read", "global": "network"}  # of what is read; else it is copied


class _Ahead(NamedTuple):
    """A step whose panels have been asked for. `done`: the part of its task that is done after it."""

    step: Step
    task: int
    done: float


class _Running:
    """Steps that have been begun: those whose panels are on their way, and those that are multiplied. There are as
    many together as panels have room for."""

    def __init__(self, panels: OwnPanels | SharedPanels, steps: Iterator[_Ahead]) -> None:
        self._panels, self._steps = panels, steps
        self.ahead: deque[_Ahead] = deque()

    def ask(self, crew: Crew) -> None:
        """For the panels of further steps."""
        for item in itertools.islice(self._steps, self._panels.ahead - len(self.ahead) - crew.under_way):
            self._panels.begin(item.step)
            self.ahead.append(item)

    def wait(self, crew: Crew) -> None:
        """For the step that was given to the threads first."""
        crew.wait()
        self._panels.release()


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
        self._out = Side(out, product.out, (0, 1, 2), geometry.out, dtype, geometry)
        self._moved = {"disk_read": 0.0, "disk_written": 0.0, "network": 0.0, "copied": 0.0, "flops": 0.0}

    def run(self, counter: Counter | None = None, progress: Told | None = None) -> Amounts:
        """This process's part, and what it has moved. The counter must be at zero; None: all is done here, or on
        this node. Raises the first error of this process, and leaves nothing to the others then."""
        begun = time.perf_counter()
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
            self._work(panels, self._tasks(panels, counter), stopped, progress)

        try:
            team.run(1, work, stop=stop)
        finally:
            panels.close()
        for side, read in zip(self._sides, panels.read, strict=True):
            self._moved[_NAMES.get(side.operand.facts.where, "copied")] += read
        return Amounts(**self._moved, seconds=time.perf_counter() - begun)

    def _tasks(self, panels: OwnPanels | SharedPanels, counter: Counter | None) -> Iterator[tuple[int, Task]]:
        """Those of this process, or of its node, with their numbers."""
        units, each = self._planned.units, self._planned.plan.unit
        if isinstance(panels, SharedPanels):
            mine = panels.units(counter, len(units))
        else:
            mine = iter(range(len(units))) if counter is None else dealt.tasks_of(counter, len(units))
        for number in mine:
            yield from enumerate(units[number], number * each)

    def _work(
        self,
        panels: OwnPanels | SharedPanels,
        tasks: Iterator[tuple[int, Task]],
        stopped: team.Stopped,
        progress: Told | None,
    ) -> None:
        steps = (
            _Ahead(step, number, (place + 1) / len(task))
            for number, task in tasks
            for place, step in enumerate(task)
        )
        running = _Running(panels, steps)
        result = np.empty(self._planned.largest_share, self._planned.dtype)
        current = -1
        with Crew(self._threads) as crew:
            while not stopped():
                running.ask(crew)
                if not running.ahead:
                    if not crew.under_way:
                        return
                    running.wait(crew)
                    continue
                while crew.under_way >= panels.slots:  # panels of this step may take the place of theirs
                    running.wait(crew)
                item = running.ahead.popleft()
                here = panels.wait(stopped)
                if here is None:
                    return
                panel = (item.step.batch, item.step.rows, item.step.columns)
                share = self._share(panel)
                matrices = self._out.matrices(result, panel, share)
                if item.step.inner < 0:
                    crew.give([partial(matrices.fill, 0)])
                else:
                    crew.give(self._parts(_of_share(here, share), matrices, add=item.task == current))
                current = item.task
                if item.done == 1:
                    while crew.under_way:
                        running.wait(crew)
                    running.ask(crew)
                    self._finish(panel, matrices, share)
                if progress is not None:
                    count = len(self._planned.tasks)
                    progress((item.task + item.done) / count, item.task + (item.done == 1), count)

    def _share(self, panel: tuple[int, int, int]) -> Share | None:
        """Of this process; None: all of the panel."""
        return None if self._memory is None else self._planned.shares.of(self._memory.rank, panel)

    def _finish(self, panel: tuple[int, int, int], matrices: Array, share: Share | None) -> None:
        requests, moved = self._out.put(panel, matrices, share, add=self._add)
        for request in requests:
            request.wait()
        where = self._out.operand.facts.where
        self._moved["disk_written" if where == "disk" else _NAMES.get(where, "copied")] += moved
        if self._add and where == "disk":
            self._moved["disk_read"] += moved

    # ---- multiplication ----

    def _parts(self, panels: list[Array], out: Array, *, add: bool) -> list[Work]:
        """Of a product of panels, for each thread: the same part of a result in all its steps."""
        left, right = panels
        batch, rows, columns = out.shape
        if 0 in out.shape:
            return []
        self._moved["flops"] += 2.0 * batch * rows * columns * left.shape[2]
        if batch >= self._threads or rows * columns < self._threads:
            parts = [(left[i], right[i], out[i]) for i in _ranges(batch, self._threads)]
        elif rows >= columns:
            parts = [(left[:, i], right, out[:, i]) for i in _ranges(rows, self._threads)]
        else:
            parts = [(left, right[:, :, i], out[:, :, i]) for i in _ranges(columns, self._threads)]
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
        add_product(a, b, c, scale, add=add)


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
