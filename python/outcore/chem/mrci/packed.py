"""Vectors of a multireference CI as packed records, in the memory of all processes and in a file, and the
Hamiltonian on them.

A product is made task by task: one thread reads the records of the next tasks, others compute, one adds the
results of the last tasks. To add to a record, the thread reads, unpacks, adds, packs and writes it once a task,
under its lock.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from outcore._core import RecordStore
from outcore.parallel import team

if TYPE_CHECKING:
    from outcore import _core
    from outcore.chem.mrci.vectors import Array, Integers, Vector, VectorLayout
    from outcore.job.world import World

SMALLEST_MEMORY = 4096  # least bytes of a process
_AHEAD = 1  # tasks that wait after they were read, and tasks that wait to be added
_POLL_S = 0.05
_TASKS = 16  # least tasks of each thread that computes
_GROUPS = 64  # groups that are projected on singlets at a time
_STOP = 1 << 48  # far beyond any number of tasks


@dataclass(frozen=True, kw_only=True)
class Packing:
    """memory_bytes: memory of this process for records. states, products: largest errors of elements of states,
    and of products of H with vectors. corrections: the same for elements of corrections of norm 1. An error of 0:
    no rounding. vectors: most vectors at a time. roots: their number. task_elements: most elements that a task
    reads.
    workers: threads that compute, of all processes."""

    memory_bytes: int
    states: float
    corrections: float
    products: float
    vectors: int
    task_elements: int
    workers: int = 1
    roots: int = 1


@dataclass(frozen=True)
class RecordSizes:
    """Number of requests for records, their packed bytes in all, and those of the smallest and the largest record
    (0: there was no request)."""

    count: int
    bytes: int
    least: int
    most: int

    @property
    def mean(self) -> float:
        return self.bytes / max(self.count, 1)


@dataclass(frozen=True)
class PackingReport:
    """A report of all processes: elements and packed bytes of all vectors at their maximum, and traffic of
    records, in all and of the file. least_bytes: bytes that cross between memory and the file at least, by the
    formulas of iterations. blocked_seconds: time in which computing threads waited for records, the most of any
    process."""

    elements: int
    packed_bytes: int
    memory_bytes: int
    file_bytes: int
    reads: RecordSizes
    writes: RecordSizes
    file_reads: RecordSizes
    file_writes: RecordSizes
    least_bytes: int
    blocked_seconds: float

    @property
    def over_least(self) -> float | None:
        """Bytes of the file that were moved, over the least; None if all vectors fit into memory."""
        moved = self.file_reads.bytes + self.file_writes.bytes
        return moved / self.least_bytes if self.least_bytes else None

    @property
    def raw_bytes(self) -> int:
        return 8 * self.elements

    @property
    def bits(self) -> float:
        """Bits of an element."""
        return 8 * self.packed_bytes / max(self.elements, 1)

    @property
    def spilled(self) -> float:
        """Share of the packed bytes that is in the file."""
        return self.file_bytes / max(self.packed_bytes, 1)


class PackedVector:
    """A vector in the units of the store from number * (units of a vector) on."""

    def __init__(self, operator: PackedOperator, number: int, *, product: bool) -> None:
        self._operator, self.number, self._product = operator, number, product
        self.expect(None)

    def expect(self, size: float | None, *, idle: bool = False) -> None:
        self._idle = idle
        packing = self._operator.packing
        if self._product or size is None:
            self.error = packing.products if self._product else packing.states
        else:
            self.error = min(packing.states, packing.corrections * size)

    def units(self, wanted: Integers) -> Integers:
        """The numbers of units of this vector in the store."""
        return wanted + self.number * len(self._operator.layout.unit_sizes)

    def _block(self, block: int) -> Integers:
        return self.units(np.arange(*self._operator.layout.blocks[block]))

    def read(self, block: int) -> Array:
        data = np.empty(self._operator.layout.size(block))
        self._operator.store.get(self._block(block), data)
        return data

    def write(self, block: int, data: Array) -> Array:
        """Returns the stored elements, which may be rounded."""
        data = np.ascontiguousarray(data)
        self._operator.store.put(self._block(block), self.error, data, self._idle)
        return self.read(block) if self.error else data

    def erase(self, block: int) -> None:
        """Sets a block to zero."""
        self._operator.store.erase(self._block(block))

    def close(self) -> None:
        """Collective."""
        self._operator.free(self)


class PackedOperator:
    """Makes vectors, and applies H to them. The constructor, `close`, `make` and `apply` are collective, and so is
    closing a vector."""

    def __init__(
        self,
        world: World,
        layout: VectorLayout,
        kernel: _core.MRCIKernel,
        packing: Packing,
        threads: int = 1,
    ) -> None:
        self.world, self.layout, self.kernel = world, layout, kernel
        self.packing, self.threads = packing, threads
        self.waited_seconds = 0.0
        self._waiting = threading.Lock()
        self._free = list(range(packing.vectors))
        self._largest = np.zeros(3, np.int64)  # elements, bytes in memory, bytes in the file
        self._counter = world.counter()
        self._hot_bytes = 0  # packed bytes of vectors that are multiplied and of their products
        self._all_bytes = 0  # of all vectors after the last product
        self._least_bytes = 0
        sizes = np.tile(layout.unit_sizes, packing.vectors)
        memory_bytes = max(SMALLEST_MEMORY, packing.memory_bytes)
        self.store = RecordStore(world, "vectors", sizes, memory_bytes=memory_bytes)
        self._memory_bytes = int(world.all_reduce(memory_bytes))
        whole = sum(task.cost for task in kernel.tasks(math.inf))
        found = kernel.tasks(whole / (_TASKS * packing.workers), packing.task_elements, layout.unit_of)
        self._tasks = sorted(found, key=lambda task: -task.cost)

    def close(self) -> None:
        self.store.close()

    # ---- vectors ----

    def make(self, *, product: bool = False) -> PackedVector:
        return PackedVector(self, self._free.pop(0), product=product)

    def free(self, vector: PackedVector) -> None:
        if vector.number in self._free:
            return
        with self.world.together("free a vector of a multireference CI"):
            for block in range(self.world.rank, len(self.layout.blocks), self.world.size):
                vector.erase(block)
        self._free.append(vector.number)

    def diagonal(self, block: int) -> Array:
        found = np.empty(self.layout.size(block))
        records = self.layout.records_of(block)
        self.kernel.diagonal(records.start, records.stop, found)
        return found

    def add_density(self, x: Vector, alpha: Array, beta: Array) -> None:
        """Adds the sums of `kernel.density` to `alpha` and `beta`. Collective."""
        assert isinstance(x, PackedVector)
        mine = np.zeros_like(alpha), np.zeros_like(beta)
        with self.world.together("density of a multireference CI"):
            offsets = np.full(len(self.layout.records), -1, np.int64)
            for task in self._tasks[self.world.rank :: self.world.size]:
                piece = self.read(self.units_of(task), x)
                records, offsets[records] = piece.records, piece.offsets
                self.kernel.density(task, piece.x, offsets, *mine)
                offsets[records] = -1
        alpha += self.world.all_reduce(mine[0])
        beta += self.world.all_reduce(mine[1])

    def exchange(self, x: Vector) -> float:
        """sum_pq <a+_p b+_q b_p a_q>. Collective."""
        assert isinstance(x, PackedVector)
        sums = np.zeros(self.threads)
        offsets_of = np.full((self.threads, len(self.layout.records)), -1, np.int64)  # each thread's own

        def work(thread: int, task: _core.MRCITask) -> None:
            piece, offsets = self.read(self.units_of(task), x), offsets_of[thread]
            offsets[piece.records] = piece.offsets
            sums[thread] += self.kernel.exchange(task, piece.x, offsets)
            offsets[piece.records] = -1

        with self.world.together("spin of a multireference CI"):
            team.each(self._tasks[self.world.rank :: self.world.size], self.threads, work)
        return float(self.world.all_reduce(sums.sum()))

    # ---- products ----

    def read(self, units: Integers, x: PackedVector) -> Piece:
        """Reads some units of a vector."""
        layout = self.layout
        sizes, first, counts = layout.unit_sizes[units], layout.units[units], np.diff(layout.units)[units]
        data = np.empty(int(sizes.sum()))
        self.store.get(x.units(units), data)
        begin = np.cumsum(sizes) - sizes  # first element of each unit
        records = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        offsets = layout.offsets[records] + np.repeat(begin - layout.offsets[first], counts)
        return Piece(units, records, offsets, data)

    def units_of(self, task: _core.MRCITask) -> Integers:
        """The units that a task reads."""
        return self.kernel.units_of(task, self.layout.unit_of)

    def apply(self, x: Vector, y: Vector) -> float:
        """Adds H x to y, which must be zero. Returns <x|H|x> for the stored x, computed before H x is packed."""
        assert isinstance(x, PackedVector) and isinstance(y, PackedVector)
        self._counter.reset()
        product = _Product(self, x, y)
        with self.world.together("multiply a vector of a multireference CI"):
            team.run(self.threads + 2, product.work, stop=lambda: self._counter.next(_STOP))
        self.project(y)
        self.waited_seconds += product.waited_seconds
        self._measure(x, y)
        twice = 2.0 if self.layout.records.parity else 1.0
        total: float = self.world.all_reduce(product.energy)
        return twice * total

    def project(self, x: Vector) -> None:
        """Removes the part of a vector outside the space of interacting couplings, if there are such.
        Collective."""
        assert isinstance(x, PackedVector)
        layout, singlets = self.layout, self.layout.singlets
        if singlets is None:
            return
        self.world.barrier()
        offsets = np.full(len(layout.records), -1, np.int64)
        with self.world.together("take the interacting part of a vector"):
            for first in range(self.world.rank * _GROUPS, len(singlets), self.world.size * _GROUPS):
                last = min(first + _GROUPS, len(singlets))
                data = self.read(np.unique(layout.unit_of[singlets.records_of(first, last)]), x)
                change = data.x.copy()
                offsets[data.records] = data.offsets
                singlets.project(first, last, change, offsets)
                offsets[data.records] = -1
                change -= data.x
                self.store.add(x.units(data.units), x.error, change)

    def make_room(self, closing: Sequence[Vector]) -> None:
        """Called before idle vectors are written and the vectors `closing` are closed. Reserves memory for the
        vectors that are multiplied next and for their products. These come before idle vectors, which only passes
        read. Collective."""
        # An iteration reads all vectors, and others take their place: those that memory cannot hold cross twice.
        self._least_bytes += 2 * max(0, self._all_bytes - self._memory_bytes)
        self._all_bytes = 0
        kept = sum(self._bytes_of(each)[1] for each in closing if isinstance(each, PackedVector))
        self.store.set_reserve(max(0, self._hot_bytes - kept) // self.world.size)

    def _bytes_of(self, *vectors: PackedVector) -> tuple[int, int, int]:
        """Elements of the stored units, and their packed bytes in memory and in the file. Collective."""
        mine = slice(self.world.rank, None, self.world.size)
        units = np.concatenate([each.units(np.arange(len(self.layout.unit_sizes)))[mine] for each in vectors])
        places = self.store.place(units)
        sizes = self.layout.unit_sizes[units[places != 0] % len(self.layout.unit_sizes)]
        found = np.array([sizes.sum(), places[places > 0].sum(), -places[places < 0].sum()], np.int64)
        elements, in_memory, in_file = (int(each) for each in self.world.all_reduce(found))
        return elements, in_memory, in_file

    def _measure(self, x: PackedVector, y: PackedVector) -> None:
        """Measures the size and the place of vectors, and keeps the largest. Collective."""
        self._hot_bytes = self.packing.roots * sum(self._bytes_of(x, y)[1:])
        every = [PackedVector(self, number, product=False) for number in range(self.packing.vectors)]
        found = np.array(self._bytes_of(*every), np.int64)
        self._all_bytes = int(found[1:].sum())
        if found[1:].sum() > self._largest[1:].sum():
            self._largest = found

    def report(self) -> PackingReport:
        """Collective."""
        counts = self.store.counts
        kinds = {name: getattr(counts, name) for name in ("reads", "writes", "file_reads", "file_writes")}
        every = self.world.gather({name: (c.count, c.bytes, c.least, c.most) for name, c in kinds.items()})
        elements, in_memory, in_file = (int(each) for each in self._largest)
        return PackingReport(
            elements=elements,
            packed_bytes=in_memory + in_file,
            memory_bytes=in_memory,
            file_bytes=in_file,
            **{name: _together([each[name] for each in every]) for name in kinds},
            least_bytes=self._least_bytes,
            blocked_seconds=float(self.world.all_reduce(self.waited_seconds, "max")),
        )


def _together(each: list[tuple[int, int, int, int]]) -> RecordSizes:
    """The sizes for all processes together."""
    there = [one for one in each if one[0]] or [(0, 0, 0, 0)]
    counts, sizes, least, most = zip(*there, strict=True)
    return RecordSizes(sum(counts), sum(sizes), min(least), max(most))


@dataclass
class Piece:
    """Units of a vector, and their records. Record records[k] begins at offsets[k] of x, and of the result t."""

    units: Integers
    records: Integers
    offsets: Integers
    x: Array

    def __post_init__(self) -> None:
        self.t = np.zeros(0)
        self.task: _core.MRCITask | None = None


class _Product:
    """One product: thread 0 reads, thread 1 adds, the others compute."""

    def __init__(self, operator: PackedOperator, x: PackedVector, y: PackedVector) -> None:
        self._of, self._x, self._y = operator, x, y
        self._read: queue.Queue[Piece | None] = queue.Queue(_AHEAD)
        self._made: queue.Queue[Piece | None] = queue.Queue(_AHEAD)
        self._computing = operator.threads
        self._guard = threading.Lock()
        self.waited_seconds = 0.0
        self.energy = 0.0

    def work(self, thread: int, stopped: team.Stopped) -> None:
        if thread == 0:
            self._reads(stopped)
        elif thread == 1:
            self._adds(stopped)
        else:
            self._computes(stopped)

    def _reads(self, stopped: team.Stopped) -> None:
        tasks = self._of._tasks
        while not stopped() and (number := self._of._counter.next()) < len(tasks):
            piece = self._of.read(self._of.units_of(tasks[number]), self._x)
            piece.task = tasks[number]
            _put(self._read, piece, stopped)
        for _ in range(self._of.threads):
            _put(self._read, None, stopped)

    def _computes(self, stopped: team.Stopped) -> None:
        layout = self._of.layout
        offsets = np.full(len(layout.records), -1, np.int64)
        while (piece := self._next(stopped)) is not None:
            assert piece.task is not None
            piece.t = np.zeros_like(piece.x)
            offsets[piece.records] = piece.offsets
            self._of.kernel.apply(piece.task, piece.x, piece.t, offsets)
            offsets[piece.records] = -1
            _put(self._made, piece, stopped)
        with self._guard:
            self._computing -= 1
            last = self._computing == 0
        if last:
            _put(self._made, None, stopped)

    def _next(self, stopped: team.Stopped) -> Piece | None:
        begin = time.monotonic()
        piece = _get(self._read, stopped)
        with self._guard:
            self.waited_seconds += time.monotonic() - begin
        return piece

    def _adds(self, stopped: team.Stopped) -> None:
        while (piece := _get(self._made, stopped)) is not None:
            self.energy += float(piece.x @ piece.t)
            if self._of.layout.records.parity:
                self._of.layout.space.fold_records(piece.records, 1.0, piece.t)
            self._of.store.add(self._y.units(piece.units), self._y.error, piece.t)


def _put(pieces: queue.Queue[Piece | None], piece: Piece | None, stopped: team.Stopped) -> None:
    while not stopped():
        try:
            pieces.put(piece, timeout=_POLL_S)
            return
        except queue.Full:
            continue


def _get(pieces: queue.Queue[Piece | None], stopped: team.Stopped) -> Piece | None:
    """The next piece; None at the end, and after an error."""
    while not stopped():
        try:
            return pieces.get(timeout=_POLL_S)
        except queue.Empty:
            continue
    return None
