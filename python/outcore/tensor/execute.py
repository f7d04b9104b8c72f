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
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from outcore.parallel import tasks as dealt
from outcore.parallel import team
from outcore.tensor.amounts import Amounts
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
        ahead: deque[_Ahead] = deque()
        result = np.empty(self._planned.largest_share, self._planned.dtype)
        current = -1
        with ThreadPoolExecutor(max(1, self._threads - 1)) as crew:
            while not stopped():
                for item in itertools.islice(steps, panels.ahead - len(ahead)):
                    panels.begin(item.step)
                    ahead.append(item)
                if not ahead:
                    return
                item = ahead.popleft()
                here = panels.wait(stopped)
                if here is None:
                    return
                panel = (item.step.batch, item.step.rows, item.step.columns)
                share = self._share(panel)
                matrices = self._out.matrices(result, panel, share)
                if item.step.inner < 0:
                    matrices[...] = 0
                else:
                    self._multiply(crew, _of_share(here, share), matrices, add=item.task == current)
                panels.release()
                current = item.task
                if item.done == 1:
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

    def _multiply(self, crew: ThreadPoolExecutor, panels: list[Array], out: Array, *, add: bool) -> None:
        left, right = panels
        batch, rows, columns = out.shape
        if 0 in out.shape:
            return
        self._moved["flops"] += 2.0 * batch * rows * columns * left.shape[2]
        pieces = []
        if batch >= self._threads or rows * columns < self._threads:
            for part in _parts(batch, self._threads):
                pieces.append((left[part], right[part], out[part]))
        elif rows >= columns:
            for part in _parts(rows, self._threads):
                pieces.append((left[:, part], right, out[:, part]))
        else:
            for part in _parts(columns, self._threads):
                pieces.append((left, right[:, :, part], out[:, :, part]))
        others = [crew.submit(multiply, *piece, self._scale, add=add) for piece in pieces[1:]]
        multiply(*pieces[0], self._scale, add=add)
        for other in others:
            other.result()


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


def _parts(count: int, threads: int) -> list[slice]:
    parts = max(1, min(count, threads))
    return [slice(count * i // parts, count * (i + 1) // parts) for i in range(parts)]
