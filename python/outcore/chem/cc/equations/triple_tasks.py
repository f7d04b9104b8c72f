"""Tasks of (T), for closed and for open shells: the energy is a sum over tasks, each of two blocks of virtual
orbitals and all third ones. Processes take one task after another; another run does not repeat finished ones."""

from __future__ import annotations

import errno
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.chem.cc.keep.kept import KeptTasks
from outcore.chem.cc.plan.triple_sizes import (
    OF_FREE,
    Range,
    TripleOperands,
    TriplesEnergy,
    block_bytes,
    largest_block,
    ranges_of,
)
from outcore.parallel.tasks import STOP, Progress, tasks_of

if TYPE_CHECKING:
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.keep.stages import Stage
    from outcore.tensor.arrays.array import Array

Values = np.ndarray[Any, np.dtype[Any]]

TRIPLES = "triple excitations"
EVERY = slice(None)


class CountingReader:
    """Reads sections of arrays, and counts the bytes of the tiles that it reads. Any thread."""

    def __init__(self) -> None:
        self.bytes = 0.0
        self._guard = threading.Lock()

    def __call__(self, array: Array, *box: slice) -> Values:
        count = array.nbytes / array.layout.elements
        for each, axis in zip(box, array.layout.tilings, strict=True):
            begin, end, _ = each.indices(axis.size)
            count *= axis.cuts[bisect_left(axis.cuts, end)] - axis.cuts[bisect_right(axis.cuts, begin) - 1]
        with self._guard:
            self.bytes += count
        found: Values = array[box]
        return found


class TripleTasks(ABC):
    """Collective. The derived class has `tasks`, those with most work first, `_begin` and `_task`.

    Args:
        spaces: of each spin, or of closed shells.
        auxiliary: three-index functions.
        block: most orbitals of a block; None: as the memory has room for.
        stage: where energies of tasks are kept, of amplitudes with this stamp.

    Raises OutcoreError (ENOMEM).
    """

    tasks: list[Any]
    need = staticmethod(block_bytes)
    """Bytes of blocks of some size, see `plan.triple_sizes`."""

    def __init__(
        self,
        room: Room,
        spaces: Sequence[Spaces],
        auxiliary: int,
        free_bytes: int,
        block: int | None,
        stage: Stage | None,
        stamp: str,
    ) -> None:
        self._block, self._reads = block, CountingReader()
        self._room, self._stage, self._stamp = room, stage, stamp
        occupied, virtual = [each.occupied for each in spaces], [each.virtual for each in spaces]

        def need(size: int) -> int:
            return self.need(occupied, virtual, auxiliary, size, room.threads)

        with room.world.together(TRIPLES):
            if need(1) > free_bytes:
                raise OutcoreError(
                    errno.ENOMEM,
                    TRIPLES,
                    detail=f"they need {in_words(need(1))} in each process, but {in_words(free_bytes)} are free",
                )
        count, processes = max(virtual), room.world.size
        most = largest_block(count, need, free_bytes, processes)
        size = largest_block(count, need, max(need(1), OF_FREE * free_bytes), processes)
        self.most = most
        """The most orbitals of a block for which the memory has room."""
        size = size if block is None else min(size, block)
        self.blocks: list[list[Range]] = ranges_of(virtual, -(-count // size))
        """Blocks of each spin."""
        if stage is not None:
            found = KeptTasks.blocks_of(stage, stamp)
            if found is not None and all(end - begin <= most for spin in found for begin, end in spin):
                self.blocks = [[(begin, end) for begin, end in spin] for spin in found]

    @property
    @abstractmethod
    def operands(self) -> TripleOperands:
        """The arrays that tasks read."""

    @property
    def kernel(self) -> TriplesEnergy:
        """The energy as a statement of a plan."""
        room = self._room
        return TriplesEnergy(room.sizes, room.threads, room.world.size, self.operands, self._block)

    def shares(self) -> list[float]:
        """For each block of the spin with most virtual orbitals, the share of the traffic of all tasks that `run`
        has counted. Collective."""
        planned = sum(each.read for each in self.kernel.moved_by(self.blocks).values())
        counted = float(self._room.world.all_reduce(self._reads.bytes, "sum"))
        return [counted / planned if planned else 0.0] * max(map(len, self.blocks))

    def run(self, progress: Progress | None = None) -> float:
        """The energy (Hartree)."""
        world = self._room.world
        if not self.tasks:
            return 0.0
        done = self._keeps()
        left = np.flatnonzero(done.before[1] == 0)
        counter = world.counter()
        stream = tasks_of(counter, len(left))
        self._begin()
        while done.more():
            deadline = done.deadline()
            with world.together(TRIPLES):
                done.exhausted = True
                try:
                    for number in stream:
                        done.finish(int(left[number]), self._run_task(int(left[number]), done))
                        if progress is not None:
                            progress((number + 1) / len(left))
                        if time.monotonic() > deadline:
                            done.exhausted = False
                            break
                except BaseException:
                    counter.next(STOP)  # others begin no more tasks
                    raise
        self._end()  # what the caller does next has the same work space
        return float(np.sum(done.result()))

    def _keeps(self) -> Any:
        """The record of finished tasks. Collective."""
        return KeptTasks(self._room.world, len(self.tasks), self._stage, self._stamp, self._facts())

    def _run_task(self, number: int, done: Any) -> float:
        energy: float = self._task(self.tasks[number])
        return energy

    def _facts(self) -> list[list[list[int]]]:
        return [[list(block) for block in spin] for spin in self.blocks]

    @abstractmethod
    def _begin(self) -> None:
        """Reads the data that all tasks need."""

    @abstractmethod
    def _task(self, task: Any) -> float:
        """The energy of a task (Hartree), by the threads of this process."""

    @abstractmethod
    def _end(self) -> None:
        """Gives the memory of tasks back."""


def product(left: Values, right: Values, signs: Values | None) -> Values:
    """sum_Q s_Q left[Q,p,q] right[Q,r,s] as [p,q,r,s]; signs None: all s_Q are 1."""
    if signs is not None:
        left = left * signs[:, None, None]
    flat = left.reshape(len(left), -1).T @ right.reshape(len(right), -1)
    return flat.reshape(*left.shape[1:], *right.shape[1:])
