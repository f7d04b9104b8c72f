"""Additions to packed records, in all processes of a job. Prints their rate and the rate of packing alone as JSON.
Both are measured in turns, so that other work on the machine slows both.

Arguments: share of the records that is in memory, records of each process, additions of each process.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.job.processes import JOB, make_world

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ELEMENTS = 1250  # per record, as for N2 in cc-pVQZ
ERROR = 1e-8
BYTES = 2300  # approximate size of such a record
_TURNS = 20
_ROOM = 4  # times that per record: a record that grows moves to another place


def _packing(numbers: Array, additions: int) -> float:
    """Seconds of the same arithmetic without the store: the limit of the cores for so many processes."""
    packed, sums = _core.pack_numbers(numbers, ERROR), np.empty_like(numbers)
    begin = time.perf_counter()
    for _ in range(additions):
        _core.unpack_numbers(packed, ERROR, sums)
        sums += numbers
        _core.pack_numbers(sums, ERROR)
    return time.perf_counter() - begin


def _adding(store: _core.RecordStore, records: Integers, numbers: Array) -> float:
    """Seconds of adding `numbers` to each of the records."""
    begin = time.perf_counter()
    for record in records:
        store.add(np.array([record]), ERROR, numbers)
    return time.perf_counter() - begin


def main() -> None:
    share, records, additions = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with make_world(JOB, None, None) as world:
        sizes = np.full(records * world.size, ELEMENTS, np.int64)
        store = _core.RecordStore(world, "records", sizes, memory_bytes=int(share * _ROOM * BYTES * records))
        random = np.random.default_rng(world.rank)
        numbers = random.standard_normal(ELEMENTS) * 1e-5
        for record in range(world.rank, len(sizes), world.size):
            store.add(np.array([record]), ERROR, numbers)
        chosen = random.integers(0, len(sizes), additions)
        seconds = alone = 0.0
        for turn in np.array_split(chosen, _TURNS):
            world.barrier()
            seconds += _adding(store, turn, numbers)
            world.barrier()
            alone += _packing(numbers, len(turn))
        world.barrier()
        places = store.place(np.arange(len(sizes)))
        slowest = float(world.all_reduce(seconds, "max"))
        alone = float(world.all_reduce(alone, "max"))
        store.close()
        if world.rank == 0:
            print(
                json.dumps(
                    {
                        "rate": 8e-6 * ELEMENTS * additions / slowest,
                        "packing": 8e-6 * ELEMENTS * additions / alone,
                        "in_memory": float((places > 0).mean()),
                        "bytes": float(abs(places).mean()),
                    }
                )
            )
