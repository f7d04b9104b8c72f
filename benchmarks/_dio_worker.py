"""One of the two processes of `bench dio`: `_dio_worker.py RESULT ROUNDS BYTES DIRECTORY MEMORY..`. Process 0 reads
and writes the parts of a shared file that are stored at process 0 and at process 1, at most BYTES each time. It
writes the seconds of each kind of request to RESULT, as JSON lists:

    MEMORY CACHE OPERATION SIZE local|distant   requests to the file
    network OPERATION SIZE                      MPI messages of the same sizes, as many of them outstanding
    .. asks, .. serves                          processor time of each process over wall time, distant requests
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from outcore import GlobalArray, SharedFile, World

SIZES = (4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20)
SMALLEST = 32 << 10  # smaller requests move fewer bytes: as many of them as of this size
OUTSTANDING = 16
CACHES = ("buffered", "direct")
MEMORIES = ("segment", "private")  # the part of a global array, and memory of NumPy
OWNERS = {"local": 0, "distant": 1}
ENDS = ("asks", "serves")

Buffer = np.ndarray[Any, np.dtype[np.uint8]]


def count_of(size: int, moved_bytes: int) -> int:
    """Number of requests of a measurement."""
    return moved_bytes // max(size, SMALLEST)


def aligned(raw: Buffer, size: int) -> list[Buffer]:
    """Aligned buffers for all requests that are outstanding at a time. raw: has room for them and one page more."""
    first = -raw.ctypes.data % 4096
    return [raw[at : at + size] for at in range(first, first + OUTSTANDING * size, size)]


class Requests:
    """Requests of one size to a file whose stripes alternate between both processes."""

    def __init__(self, world: World, size: int, cache: str, memory: Buffer, moved_bytes: int) -> None:
        self.file = SharedFile(world, "dio", typical_request=size, placement="local", page_cache=cache)
        self.size, self.count = size, count_of(size, moved_bytes)
        self.buffers = aligned(memory, size)

    def offset(self, k: int, owner: int) -> int:
        in_stripe = self.file.stripe // self.size
        return (k // in_stripe * 2 + owner) * self.file.stripe + k % in_stripe * self.size

    def seconds(self, operation: str, owner: int) -> float:
        begin = self.file.write_async if operation == "write" else self.file.read_async
        requests: list[Any] = []
        start = time.perf_counter()
        for k in range(self.count):
            if k >= OUTSTANDING:
                requests[k - OUTSTANDING].wait()
            requests.append(begin(self.buffers[k % OUTSTANDING], self.offset(k, owner)))
        for request in requests[-OUTSTANDING:]:
            request.wait()
        return time.perf_counter() - start


def processor_seconds(process: int) -> float:
    """Processor time of all threads of a process, from its clock: see clock_getcpuclockid(3)."""
    return time.clock_gettime(~process << 3 | 2)


def measure(requests: Requests, rounds: int, processes: list[int]) -> dict[str, list[float]]:
    """Measures local and distant requests in turns. The first round allocates the file and does not count.
    processes: ids of the process that asks and of the one that serves."""
    times: dict[str, list[float]] = {}
    for turn in range(-1, rounds):
        for operation in ("write", "read"):
            for where in sorted(OWNERS, reverse=turn % 2 == 0):
                used = [processor_seconds(each) for each in processes]
                taken = requests.seconds(operation, OWNERS[where])
                if turn < 0:
                    continue
                kind = f"{operation} {requests.size}"
                times.setdefault(f"{kind} {where}", []).append(taken)
                if where == "distant":
                    for end, process, before in zip(ENDS, processes, used, strict=True):
                        share = (processor_seconds(process) - before) / taken
                        times.setdefault(f"{kind} {end}", []).append(share)
    return times


def by_network(size: int, memory: Buffer, rounds: int, moved_bytes: int) -> dict[str, list[float]]:
    """Measures MPI messages. Both processes call it. For a read process 1 sends, as the owner of data does."""
    buffers, count = aligned(memory, size), count_of(size, moved_bytes)
    times: dict[str, list[float]] = {}
    for operation, sender in (("write", 0), ("read", 1)):
        for _ in range(rounds):
            MPI.COMM_WORLD.Barrier()
            begin = MPI.COMM_WORLD.Isend if MPI.COMM_WORLD.rank == sender else MPI.COMM_WORLD.Irecv
            requests: list[MPI.Request] = []
            start = time.perf_counter()
            for k in range(count):
                if k >= OUTSTANDING:
                    requests[k - OUTSTANDING].Wait()
                requests.append(begin(buffers[k % OUTSTANDING], 1 - MPI.COMM_WORLD.rank))
            MPI.Request.Waitall(requests[-OUTSTANDING:])
            MPI.COMM_WORLD.Barrier()  # the receiver has received all messages
            times.setdefault(f"network {operation} {size}", []).append(time.perf_counter() - start)
    return times


def main() -> None:
    place, given, moved, scratch, *kinds = sys.argv[1:]
    rounds, moved_bytes, results = int(given), int(moved), dict[str, list[float]]()
    with World(nodes="processes", scratch=scratch, memory="500MB") as world:
        processes = world.gather(os.getpid())
        max_bytes = OUTSTANDING * max(SIZES) + 4096
        with GlobalArray(world, (2, max_bytes // 8), np.int64) as array:
            memories = {
                "segment": array.local.reshape(-1).view(np.uint8),
                "private": np.zeros(max_bytes, np.uint8),
            }
            for size in SIZES:
                results |= by_network(size, memories["private"], rounds, moved_bytes)
            for memory, cache, size in itertools.product(kinds, CACHES, SIZES):
                memories[memory][...] = 1  # touch all pages
                requests = Requests(world, size, cache, memories[memory], moved_bytes)
                if world.rank == 0:
                    times = measure(requests, rounds, processes)
                    results |= {f"{memory} {cache} {kind}": seconds for kind, seconds in times.items()}
                world.barrier()
                requests.file.close()
        if world.rank == 0:
            Path(place).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
