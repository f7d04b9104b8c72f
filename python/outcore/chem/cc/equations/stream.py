"""Products of the integrals of a ladder, which stream by once, with amplitudes that are held in memory."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.cc.equations.steps import LadderRows
from outcore.parallel import team
from outcore.parallel.requests import all_of, done, then
from outcore.parallel.tasks import STOP, tasks_of
from outcore.tensor.plan.gemm import add_product

if TYPE_CHECKING:
    from outcore.chem.cc.plan.room import Room
    from outcore.parallel.requests import Request
    from outcore.tensor.arrays.array import Array
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]
Start = Callable[[int, int], "Request"]

AHEAD = 3  # tiles of each thread that are under way or used
_SMALL = 1e7  # operations of products that take less time than to start a thread


class _Slots(threading.local):
    """Buffers of each thread for tiles from the disk, used in turn, so that tiles need no new memory."""

    def __init__(self) -> None:
        self._buffers: list[dict[int, Values]] = [{} for _ in range(AHEAD)]
        self._begun = 0

    def take(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> list[Values]:
        slot = self._buffers[self._begun % AHEAD]
        self._begun += 1
        for number, shape in enumerate(shapes):
            if number not in slot or slot[number].size < math.prod(shape):
                slot[number] = np.empty(math.prod(shape), dtype)
        return [slot[number][: math.prod(shape)].reshape(shape) for number, shape in enumerate(shapes)]


def stored(arrays: Sequence[Array], tile: Callable[[int, int], Tile], *, transposed: bool = False) -> Start:
    """Fetches tiles of arrays in the precision that they are stored with; `transposed`: as `turned` matrices."""
    slots = _Slots()

    def start(row: int, column: int) -> Request:
        wanted = tile(row, column)
        outs: Sequence[Values | None] = [None] * len(arrays)
        if arrays[0].where == "disk":
            outs = slots.take([each.layout.tile_shape(wanted) for each in arrays], arrays[0].store_dtype)
        found = all_of(
            [
                each.backend.get_async(each.layout.numbers[wanted], out)
                for each, out in zip(arrays, outs, strict=True)
            ]
        )
        return then(found, lambda tiles: [turned(each) for each in tiles]) if transposed else found

    return start


def turned(tile: Values) -> Values:
    """The transpose of a tile as a matrix, whose rows are the first half of its axes."""
    return tile.reshape(math.prod(tile.shape[: tile.ndim // 2]), -1).T


def made(make: Callable[[int, int], list[Values]]) -> Start:
    """Tiles that the waiting thread makes itself."""
    return lambda row, column: then(done(), lambda _: make(row, column))


def threads_of(room: Room, rows: int, amplitudes: Sequence[Sequence[Values]], *, is_stored: bool) -> int:
    """How many threads make products with `rows` rows of integrals: one for few operations with stored
    integrals."""
    operations = 2.0 * rows * sum(each.size for of_v in amplitudes for each in of_v)
    return 1 if is_stored and operations <= _SMALL else room.threads


def multiply(
    room: Room,
    rows: LadderRows,
    part: int,
    start: Start,
    amplitudes: Sequence[Sequence[Values]],
    put: Callable[[int, list[Values]], None],
    threads: int,
) -> float:
    """sum_x V[row, x] t[x] for each row of tiles of one V or more that is left, each by one thread of a process.

    Args:
        part: the part of the columns of all products.
        start: (row, x) begins to fetch a tile of each V, in a list; a thread has AHEAD of them.
        amplitudes: t for each V, by x: [elements][columns].
        put: takes the result of a row, a matrix of each V.
        threads: number of threads of this process.

    Returns the seconds that a thread has waited for tiles, as a mean. Collective.
    """
    counter = room.world.counter()
    left = rows.left(part)
    numbers = tasks_of(counter, len(left))
    waited = [0.0] * threads
    wide = [np.empty(0)] * threads  # of each thread, a tile in double precision
    count = len(amplitudes[0])

    def work(thread: int, number: int) -> None:
        row = left[number]
        results: list[Values] = []
        under_way: deque[Request] = deque()
        for column in range(count):
            for ahead in range(column + len(under_way), min(column + AHEAD, count)):
                under_way.append(start(row, ahead))
            begun = time.monotonic()
            tiles = under_way.popleft().wait()
            waited[thread] += time.monotonic() - begun
            for v, (tile, each) in enumerate(zip(tiles, amplitudes, strict=True)):
                matrix = tile.reshape(-1, len(each[column]))
                if matrix.dtype != np.float64:
                    if wide[thread].size < matrix.size:
                        wide[thread] = np.empty(matrix.size)
                    target = wide[thread][: matrix.size]
                    if matrix.flags.c_contiguous:
                        target = target.reshape(matrix.shape)
                    else:  # a transposed tile keeps the order of its elements
                        target = target.reshape(matrix.shape[::-1]).T
                    target[...] = matrix
                    matrix = target
                if column == 0:
                    results.append(np.empty((len(matrix), each[0].shape[1])))
                add_product(matrix, each[column], results[v], add=column > 0)
        put(row, results)
        rows.finish(part, row)
        operations = sum(
            2.0 * len(v) * sum(map(np.size, each)) for v, each in zip(results, amplitudes, strict=True)
        )
        room.meter.add(operations * room.world.size)  # others do as much meanwhile

    def until(deadline: float) -> Iterator[int]:
        rows.exhausted = False
        for number in numbers:
            yield number
            if time.monotonic() > deadline:
                return
        rows.exhausted = True

    for deadline in rows.rounds():
        with room.world.together("ladder"):
            team.each(until(deadline), threads, work, stop=lambda: counter.next(STOP))
    return sum(waited) / threads
