"""One of the two processes of `bench link`, each on its own host. Process 0 moves data of process 1."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from outcore import GlobalArray, SharedFile, World

SIZES = (64 << 10, 256 << 10, 1 << 20)

Buffer = np.ndarray[Any, np.dtype[np.uint8]]


class Stream:
    """A TCP stream between both hosts. Two programs that do nothing else move data this fast: the limit of the
    link."""

    def __init__(self, address: str, moved_bytes: int) -> None:
        self._data: Buffer = np.ones(moved_bytes, np.uint8)
        door = socket.create_server(("", 0))
        port = MPI.COMM_WORLD.bcast(door.getsockname()[1], root=1)
        if MPI.COMM_WORLD.rank == 0:
            self._socket = socket.create_connection((address, port))
        else:
            self._socket = door.accept()[0]
        door.close()

    def seconds(self, operation: str) -> float:
        """For a read process 1 sends. Collective. The receiver answers with one byte at the end."""
        sends = (MPI.COMM_WORLD.rank == 0) == (operation == "write")
        MPI.COMM_WORLD.Barrier()
        start = time.perf_counter()
        if sends:
            self._socket.sendall(self._data.data)
            self._socket.recv(1)
        else:
            left = self._data.data
            while left:
                left = left[self._socket.recv_into(left) :]
            self._socket.sendall(b"!")
        return time.perf_counter() - start


def requests_seconds(begin: Callable[[int], Any], count: int, outstanding: int) -> float:
    """Seconds of `count` requests, with so many of them under way at a time."""
    under_way: list[Any] = []
    start = time.perf_counter()
    for k in range(count):
        if k >= outstanding:
            under_way[k - outstanding].wait()
        under_way.append(begin(k))
    for each in under_way[-outstanding:]:
        each.wait()
    return time.perf_counter() - start


class Ours:
    """Requests of process 0 to a file whose stripes alternate between both hosts, and to an array on both."""

    def __init__(self, world: World, size: int, moved_bytes: int, outstanding: int) -> None:
        self._size, self.count, self._outstanding = size, moved_bytes // size, outstanding
        self._file = SharedFile(
            world, f"link{size}", typical_request=size, placement="local", page_cache="buffered"
        )
        self._array = GlobalArray(world, (2, outstanding * size), np.uint8, distribution=[[0, 1], [0]])
        self._buffers: Buffer = np.ones((outstanding, 1, size), np.uint8)

    def _place(self, k: int) -> int:
        in_stripe = self._file.stripe // self._size
        return (k // in_stripe * 2 + 1) * self._file.stripe + k % in_stripe * self._size

    def _part(self, k: int) -> tuple[slice, slice]:
        first = k % self._outstanding * self._size
        return slice(1, 2), slice(first, first + self._size)

    def seconds(self, what: str, operation: str) -> float:
        def begin(k: int) -> Any:
            buffer = self._buffers[k % self._outstanding]
            if what == "file":
                way = self._file.write_async if operation == "write" else self._file.read_async
                return way(buffer, self._place(k))
            if operation == "write":
                return self._array.put_async(self._part(k), buffer)
            return self._array.get_async(self._part(k), buffer)

        return requests_seconds(begin, self.count, self._outstanding)

    def close(self) -> None:
        self._file.close()
        self._array.close()


def main(directory: Path, address: str, moved_bytes: int, rounds: int, outstanding: dict[int, int]) -> None:
    """Writes lists of times to `times.json` in the directory, with keys `stream|file|array OPERATION SIZE`.
    outstanding: requests under way, by size."""
    times: dict[str, list[float]] = {}
    stream = Stream(address, moved_bytes)
    with World(nodes="processes", scratch=str(directory / "scratch"), memory="500MB") as world:
        for size in SIZES:
            ours = Ours(world, size, moved_bytes, outstanding[size])
            for turn in range(-1, rounds):  # turn -1 allocates the file and does not count
                for operation in ("write", "read"):
                    taken = {f"stream {operation} {size}": stream.seconds(operation)}
                    for what in ("file", "array"):
                        if world.rank == 0:
                            taken[f"{what} {operation} {size}"] = ours.seconds(what, operation)
                        world.barrier()
                    if turn >= 0:
                        for name, seconds in taken.items():
                            times.setdefault(name, []).append(seconds)
            ours.close()
        if world.rank == 0:
            (directory / "times.json").write_text(json.dumps(times))
