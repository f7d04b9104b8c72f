"""The workers of bench sf: shared files of Outcore, MPI-IO, and plain calls of the first process alone.

Argument: a directory. The commands (see `_workers`) name the side, the bytes of a request and of the whole file:
`write SIDE REQUEST TOTAL` makes a file and writes it round-robin, request k by process k % n; `read SIDE REQUEST
TOTAL` reads what the neighbour wrote; `end SIDE` removes the file. Times are from the moment when the first process
begins until the last is done.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from mpi4py import MPI

import outcore

from ._workers import Answer, serve

Buffer = np.ndarray[tuple[int], np.dtype[np.int64]]


class Side(Protocol):
    def create(self, request: int, total: int) -> None: ...
    def write(self, buffer: Buffer, offset: int) -> object: ...
    def read(self, buffer: Buffer, offset: int) -> object: ...
    def written(self) -> None: ...
    def remove(self) -> None: ...


class Ours:
    def __init__(self, world: outcore.World, placement: str) -> None:
        self.world, self.placement = world, placement

    def create(self, request: int, total: int) -> None:
        self.file = outcore.SharedFile(
            self.world,
            "bench",
            hard_limit=total,
            soft_limit=total,
            reserve=True,
            typical_request=request,
            placement=self.placement,
        )
        self.write, self.read = self.file.write, self.file.read

    def written(self) -> None:
        self.file.sync()

    def remove(self) -> None:
        self.file.close()


class MpiIo:
    """Independent access; explicit offsets."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "mpi")

    def create(self, request: int, total: int) -> None:
        self.file = MPI.File.Open(MPI.COMM_WORLD, self.path, MPI.MODE_CREATE | MPI.MODE_RDWR)

    def write(self, buffer: Buffer, offset: int) -> None:
        self.file.Write_at(offset, buffer)

    def read(self, buffer: Buffer, offset: int) -> None:
        self.file.Read_at(offset, buffer)

    def written(self) -> None:
        pass

    def remove(self) -> None:
        self.file.Close()
        if MPI.COMM_WORLD.rank == 0:
            os.unlink(self.path)


class Plain:
    """pread and pwrite of one file by one process."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "plain"

    def create(self, request: int, total: int) -> None:
        self.fd = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)

    def write(self, buffer: Buffer, offset: int) -> None:
        os.pwrite(self.fd, buffer.data, offset)

    def read(self, buffer: Buffer, offset: int) -> None:
        os.preadv(self.fd, (buffer.data,), offset)

    def written(self) -> None:
        pass

    def remove(self) -> None:
        os.close(self.fd)
        self.path.unlink()


def _write(side: Side, buffer: Buffer, numbers: range) -> None:
    size, write = buffer.nbytes, side.write
    for k in numbers:
        buffer[0] = buffer[-1] = k
        write(buffer, k * size)
    side.written()


def _read(side: Side, buffer: Buffer, numbers: range) -> bool:
    size, read, good = buffer.nbytes, side.read, True
    for k in numbers:
        read(buffer, k * size)
        good = good and buffer[0] == k == buffer[-1]
    return good


def _memory(size_bytes: int) -> Buffer:
    """At the begin of a page."""
    raw = np.zeros(size_bytes // 8 + 512, np.int64)
    first = -raw.ctypes.data % 4096 // 8
    return raw[first : first + size_bytes // 8]


def start() -> Callable[[str], Answer | None]:
    directory = Path(sys.argv[1])
    comm = MPI.COMM_WORLD
    world = outcore.World(comm, scratch=directory, memory="500MB")
    sides: dict[str, Side] = {
        "ours": Ours(world, "auto"),
        "mpi": MpiIo(directory),
        "plain": Plain(directory),
    }
    alone = {"plain"}

    def obey(line: str) -> Answer | None:
        command, name, *numbers = line.split()
        side, idle = sides[name], name in alone and comm.rank > 0
        rank, count = (0, 1) if name in alone else (comm.rank, comm.size)
        if command == "end":
            if not idle:
                side.remove()
            return None
        request, total = map(int, numbers)
        buffer = _memory(request)
        if command == "write" and not idle:
            side.create(request, total)
        world.barrier()
        begin, good = time.clock_gettime(time.CLOCK_MONOTONIC), True
        if not idle and command == "write":
            _write(side, buffer, range(rank, total // request, count))
        elif not idle:
            good = _read(side, buffer, range((rank + 1) % count, total // request, count))
        end = time.clock_gettime(time.CLOCK_MONOTONIC)
        return (
            world.all_reduce(begin, "min"),
            world.all_reduce(0.0 if idle else end, "max"),
            bool(world.all_reduce(int(good), "min")),
        )

    return obey


def main() -> None:
    serve(start)


if __name__ == "__main__":
    main()
