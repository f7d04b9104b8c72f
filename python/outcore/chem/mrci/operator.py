"""The Hamiltonian of a multireference CI on vectors in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.mrci.vectors import MemoryVector
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore import _core
    from outcore.chem.mrci.vectors import Array, Vector, VectorLayout

TASK_OPERATIONS = 2e7  # operations of a task: some milliseconds
_TASKS = 16  # least tasks of each thread if tasks read integrals from disk


class MemoryOperator:
    """The operator for a single process. Its threads add to one vector."""

    waited_seconds = 0.0

    def __init__(self, layout: VectorLayout, kernel: _core.MRCIKernel, threads: int = 1) -> None:
        self.layout, self.kernel, self.threads = layout, kernel, threads
        largest = TASK_OPERATIONS
        if kernel.on_disk:
            largest = sum(task.cost for task in kernel.tasks(math.inf)) / (_TASKS * threads)
        self._tasks = sorted(kernel.tasks(largest), key=lambda task: -task.cost)

    def make(self, *, product: bool = False) -> MemoryVector:
        return MemoryVector(self.layout)

    def make_room(self, closing: Sequence[Vector]) -> None:
        """Nothing to do: all vectors are in memory."""

    def apply(self, x: Vector, y: Vector) -> float:
        """Adds H x to y, which must be zero. Returns <x|H|x>."""
        assert isinstance(x, MemoryVector) and isinstance(y, MemoryVector)
        given, added = x.data, y.data
        offsets = np.ascontiguousarray(self.layout.offsets[:-1])

        def work(_thread: int, task: _core.MRCITask) -> None:
            self.kernel.apply(task, given, added, offsets, self.threads > 1)

        team.each(self._tasks, self.threads, work)
        self.project(y)
        total = 0.0
        for block in range(len(self.layout.blocks)):
            self.layout.fold(block, 1.0, added[self.layout.slice(block)])
            total += float(np.einsum("i,i,i", x.read(block), self.layout.weights(block), y.read(block)))
        return total

    def project(self, x: Vector) -> None:
        """Removes the part of a vector outside the space of interacting couplings, if there are such."""
        assert isinstance(x, MemoryVector)
        singlets = self.layout.singlets
        if singlets is not None:
            singlets.project(0, len(singlets), x.data, np.ascontiguousarray(self.layout.offsets[:-1]))

    def add_density(self, x: Vector, alpha: Array, beta: Array) -> None:
        """Adds the sums of `kernel.density` to `alpha` and `beta`."""
        assert isinstance(x, MemoryVector)
        offsets = np.ascontiguousarray(self.layout.offsets[:-1])
        for task in self._tasks:
            self.kernel.density(task, x.data, offsets, alpha, beta)

    def exchange(self, x: Vector) -> float:
        """sum_pq <a+_p b+_q b_p a_q>."""
        assert isinstance(x, MemoryVector)
        data, sums = x.data, np.zeros(self.threads)
        offsets = np.ascontiguousarray(self.layout.offsets[:-1])

        def work(thread: int, task: _core.MRCITask) -> None:
            sums[thread] += self.kernel.exchange(task, data, offsets)

        team.each(self._tasks, self.threads, work)
        return float(sums.sum())

    def diagonal(self, block: int) -> Array:
        found = np.empty(self.layout.size(block))
        records = self.layout.records_of(block)
        self.kernel.diagonal(records.start, records.stop, found)
        return found
