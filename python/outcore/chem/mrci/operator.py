"""The Hamiltonian of a multireference CI on vectors in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from outcore.chem.mrci.vectors import MemoryVector
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore import _core
    from outcore.chem.mrci.vectors import Array, Layout, Vector

TASK_OPERATIONS = 2e7  # of a task: some milliseconds


class MemoryOperator:
    """For a single process, whose threads add to one vector."""

    waited_seconds = 0.0

    def __init__(self, layout: Layout, kernel: _core.MRCIKernel, threads: int = 1) -> None:
        self.layout, self.kernel, self.threads = layout, kernel, threads
        self._tasks = sorted(kernel.tasks(TASK_OPERATIONS), key=lambda task: -task.cost)

    def make(self) -> MemoryVector:
        return MemoryVector(self.layout)

    def apply(self, x: Vector, y: Vector) -> float:
        """Adds H x to y, which is zero; returns <x|H|x>."""
        assert isinstance(x, MemoryVector) and isinstance(y, MemoryVector)
        given, added = x.data, y.data
        offsets = np.ascontiguousarray(self.layout.offsets[:-1])

        def work(_thread: int, task: _core.MRCITask) -> None:
            self.kernel.apply(task, given, added, offsets, self.threads > 1)

        team.each(self._tasks, self.threads, work)
        total = 0.0
        for block in range(len(self.layout.blocks)):
            self.layout.fold(block, 1.0, added[self.layout.slice(block)])
            total += float(np.einsum("i,i,i", x.read(block), self.layout.weights(block), y.read(block)))
        return total

    def diagonal(self, block: int) -> Array:
        found = np.empty(self.layout.size(block))
        self.kernel.diagonal(*self.layout.blocks[block], found)
        return found
