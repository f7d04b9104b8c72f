"""Carries out the plan of a product: panels come ahead of their use, threads multiply, results go to where they
lie.

Tasks are dealt out by a counter to the processes; each process works on one at a time, with all its threads.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.parallel import tasks as dealt
from outcore.parallel import team
from outcore.parallel.prefetch import Waitable
from outcore.tensor.amounts import Amounts
from outcore.tensor.gemm import add_product
from outcore.tensor.geometry import Step, Task
from outcore.tensor.operands import Array, Operand
from outcore.tensor.panel import Side
from outcore.tensor.product_plan import Held, Planned
from outcore.tensor.progress import Told

if TYPE_CHECKING:
    from outcore._core import Counter

_STOP = 1 << 48  # far beyond any number of tasks
_PRODUCT_BYTES = 1 << 20  # of what NumPy has multiplied, before it is added
_SMALL = 48**3  # multiplications of a matrix: of smaller ones NumPy multiplies many at a time


@dataclass
class _Ahead:
    """A step whose panels have been asked for. `done`: the part of its task that is done after it."""

    step: Step
    task: int
    done: float
    panels: list[Array] = field(default_factory=list)
    requests: list[list[Waitable]] = field(default_factory=list)  # shared with other steps that use a panel


class Product:
    """One product, in one process.

    Args:
        planned: the plan, the same at all processes.
        left, right, out: the arrays, as the plan knows them.
        scale: of the product.
        add: to what is in `out`, in place of putting it.
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
    ) -> None:
        problem, geometry = planned.problem, planned.geometry
        product = problem.product
        dtype = np.result_type(problem.left.dtype, problem.right.dtype, problem.out.dtype)
        self._planned, self._geometry = planned, geometry
        self._scale, self._add, self._threads = scale, add, threads
        self._sides = (
            Side(left, product.left, (0, 1, 3), geometry.left, dtype, geometry),
            Side(right, product.right, (0, 3, 2), geometry.right, dtype, geometry),
        )
        self._out = Side(out, product.out, (0, 1, 2), geometry.out, dtype, geometry)
        largest = [
            int(np.prod([int(geometry.sizes[group].max(initial=0)) for group in side.groups]))
            for side in (*self._sides, self._out)
        ]
        self._held = [Held(slots) for slots in planned.plan.slots]
        self._buffers: list[list[Array | None]] = [[None] * slots for slots in planned.plan.slots]
        self._largest, self._dtype = largest, dtype
        self._here: list[dict[int, tuple[Array, list[Waitable]]]] = [{}, {}]
        self._elements = [geometry.elements(side.flags, side.groups) for side in (*self._sides, self._out)]
        self._moved = {"disk_read": 0.0, "disk_written": 0.0, "network": 0.0, "copied": 0.0, "flops": 0.0}

    def run(self, counter: Counter | None = None, progress: Told | None = None) -> Amounts:
        """This process's part, and what it has moved. The counter must be at zero; None: all is done here. Raises
        the first error of this process, and leaves nothing to the others then."""
        begun = time.perf_counter()
        stop = None if counter is None else (lambda: counter.next(_STOP))

        def work(_: int, stopped: team.Stopped) -> None:
            self._work(self._tasks(counter), stopped, progress)

        team.run(1, work, stop=stop)
        return Amounts(**self._moved, seconds=time.perf_counter() - begun)

    def _tasks(self, counter: Counter | None) -> Iterator[tuple[int, Task]]:
        """Those of this process, with their numbers."""
        units, each = self._planned.units, self._planned.plan.unit
        mine = range(len(units)) if counter is None else dealt.tasks_of(counter, len(units))
        for number in mine:
            yield from enumerate(units[number], number * each)

    def _work(
        self, tasks: Iterator[tuple[int, Task]], stopped: team.Stopped, progress: Told | None = None
    ) -> None:
        steps = (
            _Ahead(step, number, (place + 1) / len(task))
            for number, task in tasks
            for place, step in enumerate(task)
        )
        depth = min(self._planned.plan.slots)
        ahead: deque[_Ahead] = deque()
        result = np.empty(self._largest[2], self._dtype)
        current = -1
        with ThreadPoolExecutor(max(1, self._threads - 1)) as crew:
            while not stopped():
                for step in itertools.islice(steps, depth - len(ahead)):
                    self._begin(step)
                    ahead.append(step)
                if not ahead:
                    return
                item = ahead[0]
                for requests in item.requests:
                    while requests:
                        requests.pop(0).wait()
                panel = (item.step.batch, item.step.rows, item.step.columns)
                matrices = self._out.matrices(result, panel)
                if item.step.inner < 0:
                    matrices[...] = 0
                else:
                    self._multiply(crew, item.panels, matrices, add=item.task == current)
                current = item.task
                if item.done == 1:
                    self._finish(panel, matrices)
                ahead.popleft()
                if progress is not None:
                    count = len(self._planned.tasks)
                    progress((item.task + item.done) / count, item.task + (item.done == 1), count)

    def _begin(self, item: _Ahead) -> None:
        """Asks for the panels of a step that are not here."""
        step = item.step
        if step.inner < 0:
            return
        wanted = (step.batch, step.rows, step.inner), (step.batch, step.inner, step.columns)
        for side, panel in enumerate(wanted):
            slot, missing = self._held[side].take(panel)
            if missing:
                buffer = self._buffers[side][slot]
                if buffer is None:
                    buffer = self._buffers[side][slot] = np.empty(self._largest[side], self._dtype)
                self._here[side][slot] = self._sides[side].get(panel, buffer)
                self._count_read(side, panel)
            matrices, requests = self._here[side][slot]
            item.panels.append(matrices)
            item.requests.append(requests)

    def _finish(self, panel: tuple[int, int, int], matrices: Array) -> None:
        for request in self._out.put(panel, matrices, add=self._add):
            request.wait()
        facts = self._out.operand.facts
        name = {"disk": "disk_written", "global": "network"}.get(facts.where, "copied")
        moved = self._out.bytes_of(panel, self._elements[2])
        self._moved[name] += moved
        if self._add and facts.where == "disk":
            self._moved["disk_read"] += moved

    def _count_read(self, side: int, panel: tuple[int, ...]) -> None:
        facts = self._sides[side].operand.facts
        name = {"disk": "disk_read", "global": "network"}.get(facts.where, "copied")
        self._moved[name] += self._sides[side].bytes_of(panel, self._elements[side])

    # ---- multiplication ----

    def _multiply(self, crew: ThreadPoolExecutor, panels: list[Array], out: Array, *, add: bool) -> None:
        left, right = panels
        batch, rows, columns = out.shape
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
