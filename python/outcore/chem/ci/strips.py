"""Strips: rows of a vector x and of a product T on disk, for tasks that would move much more than they need if they
moved tiles.

Both halves of a folded vector are stored. Rows of a sector lie one after another and begin at multiples of
`UNIT_BYTES`, so a task moves its rows, each from the first column that it needs, and little else. T is zero at
first: parts to which nothing was added are not read. Both are scratch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.arrays.global_array import GlobalArray
from outcore.chem.ci.groups import PanelLayout
from outcore.files.shared_file import SharedFile
from outcore.job.collective import Closing
from outcore.parallel.prefetch import Prefetch

if TYPE_CHECKING:
    from outcore.chem.ci.groups import Task
    from outcore.chem.ci.space import Integers, Space
    from outcore.job.world import World
    from outcore.parallel.requests import Request

UNIT_BYTES = 4096  # unit of direct I/O
BATCH_BYTES = 2 << 20  # bytes of one request
_APART_BYTES = 512  # distance between rows in a panel: see chem/ci/panel.cpp
_READS, _WRITES = 2, 2  # batches under way, beside one that is worked on

Range = tuple[int, Any]  # a place in a file, and a part of a panel's row
Stopped = Callable[[], bool]


def layout(dtype: str) -> PanelLayout:
    """The layout of panels whose rows are moved to and from strips."""
    word = np.dtype(dtype).itemsize
    return PanelLayout(UNIT_BYTES // word, _APART_BYTES // word)


def task_bytes(space: Space, task: Task, dtype: str) -> int:
    """Bytes of the rows of a task that are moved in one direction."""
    word = np.dtype(dtype).itemsize
    return word * task.elements(space, PanelLayout(UNIT_BYTES // word))


def _pitches(space: Space, dtype: str) -> Integers:
    """Bytes from a row to the next, for each irrep."""
    widths = np.array(space.counts[1], np.int64)[np.arange(space.groups) ^ space.irrep]
    found: Integers = -(-widths * np.dtype(dtype).itemsize // UNIT_BYTES) * UNIT_BYTES
    return found


def file_bytes(space: Space, dtype: str) -> int:
    """Bytes of x, or of T."""
    return int(np.array(space.counts[0], np.int64) @ _pitches(space, dtype))


def buffer_bytes(space: Space, dtype: str) -> int:
    """Bytes of the buffers of a process that adds to T."""
    return (_READS + 1) * (BATCH_BYTES + int(_pitches(space, dtype).max()))


class Strips(Closing):
    """The strips of one x and one T at a time, of type `dtype`. The constructor, `clear` and `close` are
    collective. Each process calls the other methods alone, from one thread at a time; they end early once
    `stopped` returns True, and return the bytes that they have moved. Panels must have the layout of `layout`.
    Errors are those of SharedFile."""

    def __init__(self, world: World, space: Space, dtype: str) -> None:
        self._offsets = space.alpha.offsets
        self._pitches = _pitches(space, dtype)
        sizes = np.diff(self._offsets) * self._pitches
        self._bases: Integers = np.cumsum(sizes) - sizes
        self._x, self._t = (
            SharedFile(
                world, name, soft_limit=int(sizes.sum()), typical_request=max(int(self._pitches.max()), 1)
            )
            for name in ("CI vector", "CI product")
        )
        # For each row of T the first byte to which something was added.
        self._reached = GlobalArray(world, (len(space.alpha.strings),), "int64")
        self._locks = [world.lock() for _ in range(space.groups)] if world.size > 1 else []

    def clear(self) -> None:
        """Sets T to zero. Collective."""
        self._reached.local[...] = self._pitches.max()
        self._reached.sync()

    def close(self) -> None:
        for each in (self._x, self._t, self._reached):
            each.close()

    def write_x(self, panel: Any, stopped: Stopped) -> int:
        """Writes the rows of a panel to x."""
        return self._move(lambda _, batch: self._x.writev_async(self._ranges(panel, batch)), panel, stopped)

    def read_x(self, panel: Any, stopped: Stopped) -> int:
        """Reads all rows of a panel from x."""
        return self._move(lambda _, batch: self._x.readv_async(self._ranges(panel, batch)), panel, stopped)

    def read_t(self, panel: Any, stopped: Stopped) -> int:
        """Reads all rows of a panel from T. Parts to which nothing was added are not read: they become zero."""

        def begin(irrep: int, batch: range) -> Request:
            ranges, asked = self._ranges(panel, batch), list[Range]()
            skipped, _ = self._not_added(irrep, panel.rows[batch.start : batch.stop], ranges)
            for (offset, values), skip in zip(ranges, skipped.tolist(), strict=True):
                values[: skip // values.itemsize] = 0
                if skip < values.nbytes:
                    asked.append((offset + skip, values[skip // values.itemsize :]))
            return self._t.readv_async(asked)

        return self._move(begin, panel, stopped)

    def _move(self, begin: Callable[[int, range], Request], panel: Any, stopped: Stopped) -> int:
        moved, under_way = 0, deque["Request"]()
        for irrep, batches in enumerate(self._batches(panel.rows)):
            for batch in batches:
                if stopped():
                    break
                if len(under_way) == _READS:
                    moved += under_way.popleft().wait()
                under_way.append(begin(irrep, batch))
        for each in under_way:
            moved += each.wait()
        return moved

    def add_t(self, panel: Any, stopped: Stopped) -> tuple[int, int]:
        """Adds the rows of a panel to T; this changes the panel. Returns bytes read and bytes written."""
        read = written = 0
        for irrep, batches in enumerate(self._batches(panel.rows)):
            if batches and not stopped():
                with self._locks[irrep] if self._locks else nullcontext():
                    moved = self._add_to_sector(irrep, batches, panel, stopped)
                read, written = read + moved[0], written + moved[1]
        return read, written

    def _add_to_sector(
        self, irrep: int, batches: list[range], panel: Any, stopped: Stopped
    ) -> tuple[int, int]:
        rows: Integers = panel.rows
        ranges: list[list[Range]] = [[] for _ in range(_READS + 1)]
        sums: list[list[tuple[Any, Any]]] = [[] for _ in range(_READS + 1)]
        read = written = 0

        def start(batch: range, slot: int) -> Request | None:
            ranges[slot] = self._ranges(panel, batch)
            skipped = self._reach(irrep, rows[batch.start : batch.stop], ranges[slot])
            sums[slot], asked = [], []
            for (offset, values), skip in zip(ranges[slot], skipped.tolist(), strict=True):
                if skip < values.nbytes:
                    part = values[skip // values.itemsize :]
                    old = np.empty_like(part)
                    sums[slot].append((part, old))
                    asked.append((offset + skip, old))
            return self._t.readv_async(asked) if asked else None

        writes: deque[Request] = deque()
        with Prefetch(batches, start, _READS + 1) as ahead:
            for _, slot in ahead.in_order():
                if stopped():
                    break
                for part, old in sums[slot]:
                    np.add(part, old, out=part)
                    read += old.nbytes
                if len(writes) == _WRITES:
                    written += writes.popleft().wait()
                writes.append(self._t.writev_async(ranges[slot]))
        for each in writes:
            written += each.wait()
        return read, written

    def _reach(self, irrep: int, rows: Integers, ranges: list[Range]) -> Integers:
        """Notes that something is added to these ranges. Returns the result of `_not_added` before that."""
        skipped, begins = self._not_added(irrep, rows, ranges)
        box, mine = np.s_[int(rows[0]) : int(rows[-1]) + 1], rows - rows[0]
        reached = self._reached.get(box)
        reached[mine] = np.minimum(reached[mine], begins)
        self._reached.put(box, reached)
        return skipped

    def _not_added(self, irrep: int, rows: Integers, ranges: list[Range]) -> tuple[Integers, Integers]:
        """For each range the number of its first bytes to which nothing was added, and its first byte in its
        row."""
        begins = np.array([offset for offset, _ in ranges], np.int64)
        begins -= self._bases[irrep] + (rows - self._offsets[irrep]) * self._pitches[irrep]
        reached = self._reached.get(np.s_[int(rows[0]) : int(rows[-1]) + 1])[rows - rows[0]]
        skipped: Integers = np.maximum(reached - begins, 0)
        return skipped, begins

    def _batches(self, rows: Integers) -> list[list[range]]:
        """For each irrep the batches of rows that are moved together, as ranges in the list of rows."""
        found = []
        for (first, last), pitch in zip(
            pairwise(np.searchsorted(rows, self._offsets).tolist()), self._pitches.tolist(), strict=True
        ):
            count = max(BATCH_BYTES // max(pitch, 1), 1)
            found.append([range(k, min(k + count, last)) for k in range(first, last, count)])
        return found

    def _ranges(self, panel: Any, batch: range) -> list[Range]:
        found: list[Range] = panel.ranges(self._bases, self._pitches, batch.start, batch.stop)
        return found
