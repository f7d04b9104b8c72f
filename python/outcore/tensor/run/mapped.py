"""Functions of tiles, as statements of a program run."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.job.world import World
from outcore.parallel import tasks as dealt
from outcore.tensor.layout.cells import Axis, cut_for
from outcore.tensor.layout.operands import Box, Operand
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.statements import Map
from outcore.tensor.run.progress import Told


class Mapped:
    """A function of tiles, over all boxes of a result, which are dealt out to processes and threads.

    Args:
        arrays: operands and result.
        begin: where the arrays begin in those of the program, if they are sections of them.
    """

    def __init__(
        self,
        world: World,
        statement: Map,
        arrays: Sequence[Operand],
        memory_bytes: int,
        threads: int,
        watch: Told | None,
        begin: Sequence[int] | None = None,
    ) -> None:
        self.world, self.statement, self.threads = world, statement, threads
        self.inputs, self.out = list(arrays[:-1]), arrays[-1]
        self.memory_bytes, self.watch = memory_bytes, watch
        shape = self.out.facts.shape
        self.begin = [0] * len(shape) if begin is None else list(begin)
        fixed: list[Any] = [None] * len(shape)
        whole = [True] * len(shape)
        for each in [self.out, *self.inputs]:
            for axis, cuts in enumerate(each.facts.tiles):
                if cuts is not None:
                    fixed[axis] = cuts
                    whole[axis] &= each.facts.readable is None and each.facts.stored is None
        axes = [
            Axis(str(i), n, cuts, mergeable)
            for i, (n, cuts, mergeable) in enumerate(zip(shape, fixed, whole, strict=True))
        ]
        word = max(each.facts.dtype.itemsize for each in [self.out, *self.inputs])
        most = max(1, memory_bytes // ((len(self.inputs) + 2) * word * self.threads))
        self.boxes = [
            (number, list(box)) for number, box in enumerate(cut_for(axes, most).cells) if self._is_there(box)
        ]

    def _is_there(self, box: Box) -> bool:
        stored = self.out.facts.stored
        if stored is None:
            return True
        cuts = self.out.facts.tiles
        tile = tuple(
            axis.index(begin) for axis, (begin, _) in zip(cuts, box, strict=True) if axis is not None
        )
        return bool(stored[tile])

    def run(self) -> Amounts:
        world = self.world
        moved = [0.0] * self.threads

        def work(thread: int, task: int) -> None:
            moved[thread] += self._one(self.boxes[task][1])

        # If the result has copies, as NumPy's arrays have, each process or node that has one makes all of it.
        has_copies = self.out.copies(world) > 1
        alone = has_copies and self.out.facts.where == "process"
        first, step = (0, 1) if alone else (world.node_rank, world.node_size)
        counter = None if has_copies else world.counter()
        with world.together("map", str(self.statement)):
            world.budget.reserve(self.memory_bytes, f"blocks of '{self.statement}'")
            try:
                if counter is None:
                    for number in range(first, len(self.boxes), step):
                        work(0, number)
                else:
                    dealt.each_task(counter, len(self.boxes), self.threads, work, self._told)
                if self.watch is not None:
                    self._told(1.0)
            finally:
                world.budget.release(self.memory_bytes)
        self.out.sync()
        return Amounts(disk_read=float(world.all_reduce(sum(moved))))

    def _told(self, fraction: float) -> None:
        if self.watch is not None:
            self.watch(fraction, round(fraction * len(self.boxes)), len(self.boxes))

    def _one(self, box: list[tuple[int, int]]) -> float:
        """Does one box; returns its traffic of disk and network (bytes)."""
        shape = [end - begin for begin, end in box]
        moved = 0.0
        blocks, requests = [], []
        for each in self.inputs:
            block = np.zeros(shape, each.facts.dtype)
            requests += each.get(box, block)
            blocks.append(block)
            moved += block.nbytes if each.facts.where in ("disk", "global") else 0
        for request in requests:
            request.wait()
        place = tuple(slice(a + first, b + first) for (a, b), first in zip(box, self.begin, strict=True))
        value = np.asarray(self.statement.function(place, *blocks))
        if value.shape != tuple(shape):
            raise OutcoreError(
                errno.EINVAL,
                f"run '{self.statement}'",
                detail=f"a block of shape {value.shape} for {tuple(shape)}",
            )
        value = value.astype(self.out.facts.dtype, copy=False, casting="same_kind")
        for request in self.out.put(box, value, add=self.statement.accumulate):
            request.wait()
        written = value.nbytes if self.out.facts.where in ("disk", "global") else 0
        reads = self.statement.accumulate and self.out.facts.where == "disk"  # it adds to tiles on disk
        return moved + (2 * written if reads else written)
