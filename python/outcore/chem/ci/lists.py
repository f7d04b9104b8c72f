"""Tasks in several lists, each for the processes of a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from outcore.arrays.global_array import GlobalArray
from outcore.job.collective import Closing
from outcore.parallel.tasks import STOP

if TYPE_CHECKING:
    from outcore.job.world import World

_HELPED = 8  # nodes that a process whose node is done looks for tasks at


class Lists(Closing):
    """Which tasks are taken, of one list for all, or of one for each node: a process takes those of its node, then
    what other nodes have left. Making it, `reset` and `close` are collective; `stop` and what `tasks` returns are
    for each process alone.

    Attributes: `taken`: of each list, the number after the last task that this process has taken."""

    def __init__(self, world: World, *, of_nodes: bool) -> None:
        self.of_nodes = of_nodes
        count = world.node_count if of_nodes else 1
        self._counter = world.counter() if count == 1 else None
        self._turns = GlobalArray(world, (world.size,), "int64") if count > 1 else None
        nodes = world.gather(world.node) if count > 1 else []
        # Of turns: at the first process of each node.
        self._places = [nodes.index(node) for node in range(count) if nodes]
        self._own = world.node if count > 1 else 0
        self.taken = [0] * count

    def __len__(self) -> int:
        return len(self.taken)

    def reset(self) -> None:
        """No task is taken."""
        self.taken = [0] * len(self)
        if self._counter is not None:
            self._counter.reset()
        if self._turns is not None:
            self._turns.sync()  # nobody takes any more
            self._turns.local[...] = 0
            self._turns.sync()

    def tasks(self, lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
        """(list, task) of those that this process gets, as it asks for them, of lists of these lengths."""
        for k in range(min(len(self), _HELPED + 1)):
            number = (self._own + k) % len(self)
            while (task := self._next(number, 1)) < lengths[number]:
                self.taken[number] = task + 1
                yield number, task

    def stop(self) -> None:
        """Leaves no tasks to anybody."""
        for number in range(len(self)):
            self._next(number, STOP)

    def _next(self, number: int, count: int) -> int:
        if self._counter is not None:
            return self._counter.next(count)
        assert self._turns is not None
        return self._turns.read_increment(self._places[number], count)

    def close(self) -> None:
        if self._turns is not None:
            self._turns.close()
