"""Carries out the plan of a product: native code fetches panels ahead of their use, multiplies with threads, and
puts results where they lie.

Pieces of work are dealt out by a counter, to processes or, where those of a node share panels, to nodes. A process
works on one at a time, with all its threads; those of a node that share panels make its results together.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from outcore import _core
from outcore.base import interrupts
from outcore.parallel import tasks as dealt
from outcore.parallel import team
from outcore.tensor.layout.operands import Operand
from outcore.tensor.plan import gemm, loop
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.product_plan import Planned
from outcore.tensor.run.progress import Told

if TYPE_CHECKING:
    from outcore._core import Counter, NodePanels

_HINTED_BYTES = 8 << 20  # bytes of panels beyond those asked for that get a prefetch hint
_HINTED = 8  # steps, at most
_NAMES = {"disk": "disk_read", "global": "network"}  # names of amounts by place; else "copied"


class Product:
    """One product, in one process.

    Args:
        planned: the plan, the same at all processes.
        left, right, out: the arrays, as the plan knows them.
        scale: factor of the product.
        add: the product is added to `out`, not put.
        memory: shared by the processes of a node, if the plan says so.
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
        memory: NodePanels | None = None,
    ) -> None:
        self._planned, self._memory = planned, memory
        self._scale, self._add, self._threads = scale, add, threads
        self._arrays = left, right, out
        self._moved = {"disk_read": 0.0, "disk_written": 0.0, "network": 0.0, "copied": 0.0, "flops": 0.0}

    def run(self, counter: Counter | None = None, progress: Told | None = None) -> Amounts:
        """Does this process's part; returns its amounts. The counter must be at zero; None: all is done here, or on
        this node. Raises the first error of this process; the others begin no more tasks then."""
        begun = time.perf_counter()
        gemm.has_blas()  # before the number of its threads is set
        planned, plan, product = self._planned, self._planned.plan, self._planned.problem.product
        count, dtype = len(planned.tasks), planned.dtype
        left, right, out = self._arrays
        with interrupts.held() as interrupted, team.blas_of_one_thread():

            def watch(fraction: float, tasks: int) -> bool:
                if progress is not None:
                    progress(fraction, tasks, count)
                return interrupted()

            try:
                multiply, alpha = loop.multiplication(dtype, self._scale)
                *got, put, flops = _core.tensor_product(
                    planned.steps,
                    loop.boxes_of(left, product.left, dtype, "get"),
                    loop.boxes_of(right, product.right, dtype, "get"),
                    loop.boxes_of(out, product.out, dtype, "add" if self._add else "put"),
                    slots=plan.slots,
                    results=plan.choice.results,
                    unit=plan.unit,
                    hinted=self._hinted,
                    threads=self._threads,
                    add=self._add,
                    one_put=self._copies_what_it_puts,
                    element_bytes=dtype.itemsize,
                    multiply=multiply,
                    alpha=alpha,
                    counter=counter,
                    watch=watch,
                    memory=self._memory,
                    shares=None if self._memory is None else planned.shares.native,
                )
            except BaseException:
                if self._memory is not None:
                    self._memory.fail()
                if counter is not None:
                    counter.next(dealt.STOP)
                raise
            if interrupted() and counter is not None:
                counter.next(dealt.STOP)
        for operand, elements in zip((left, right), got, strict=True):
            self._moved[_NAMES.get(operand.facts.where, "copied")] += elements * operand.facts.item_bytes
        self._count_put(put * out.facts.item_bytes)
        self._moved["flops"] += flops
        return Amounts(**self._moved, seconds=time.perf_counter() - begun)

    def _count_put(self, nbytes: float) -> None:
        where = self._arrays[2].facts.where
        self._moved["disk_written" if where == "disk" else _NAMES.get(where, "copied")] += nbytes
        if self._add and where == "disk":
            self._moved["disk_read"] += nbytes

    @property
    def _copies_what_it_puts(self) -> bool:
        """Whether a result needs another buffer when it is put, as it has another type or goes to tiles. One such
        result at a time is on its way."""
        facts = self._arrays[2].facts
        return facts.dtype != self._planned.dtype or any(cuts is not None for cuts in facts.tiles)

    @property
    def _hinted(self) -> int:
        """How many further steps get a prefetch hint, to the owners of operands on disk."""
        pair = zip(self._arrays[:2], self._planned.largest[:2], strict=True)
        each = sum(size * operand.facts.item_bytes for operand, size in pair if operand.facts.where == "disk")
        return min(_HINTED, _HINTED_BYTES // each) if each else 0
