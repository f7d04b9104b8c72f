"""One of the two processes of `bench ga`: `_ga_worker.py RESULT quick|full`. Process 0 measures transfers to and
from process 1, and writes the times in seconds, one list for each kind of measurement, to RESULT as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np
from mpi4py import MPI

from outcore import GlobalArray, World
from outcore.cli.bench import claim_memory

Array = np.ndarray[Any, np.dtype[np.float64]]

ROWS = 64  # patches on each process: 64 MiB, more than caches hold
LENGTH = 1 << 17  # elements of a patch that is a row of the array: 1 MiB
SIDE = 362  # side length of a square patch: 1 MiB
LARGE_ROWS = 32  # rows of a large patch: 32 MiB
NEW_BYTES = 512 << 20  # size of the array in the test that makes and fills an array
COMPUTE_S = 3.0


class Peers:
    """Three pieces of memory: a global array, an MPI window, and private memory. The system may use huge pages for
    private memory, but not for shared memory."""

    def __init__(self, world: World) -> None:
        self.array = GlobalArray(world, (2 * ROWS, LENGTH), distribution=[[0, ROWS], [0]])
        self.array.local[...] = 1.0
        size_bytes = ROWS * LENGTH * 8
        self.window = MPI.Win.Allocate(size_bytes, 8, comm=MPI.COMM_WORLD)
        memory: Array = np.asarray(self.window.tomemory()).view(np.float64)
        memory[...] = 1.0
        self.window.Lock_all(MPI.MODE_NOCHECK)
        self.private = np.ones((ROWS, LENGTH))
        self.here = np.ones((1, LENGTH))
        self.large = np.ones((LARGE_ROWS, LENGTH))
        self.square = np.ones((SIDE, SIDE))
        self.type = MPI.DOUBLE.Create_vector(SIDE, SIDE, LENGTH).Commit()
        self.word = np.zeros(1)
        world.barrier()

    def row(self, k: int) -> tuple[slice, slice]:
        return slice(ROWS + k, ROWS + k + 1), slice(0, LENGTH)

    # ---- one patch each, k of them in turn ----

    def get_ours(self, k: int) -> None:
        self.array.get(self.row(k), out=self.here)

    def get_mpi(self, k: int) -> None:
        self.window.Get([self.here, MPI.DOUBLE], 1, (k * LENGTH, LENGTH, MPI.DOUBLE))
        self.window.Flush(1)

    def get_copy(self, k: int) -> None:
        np.copyto(self.here[0], self.array.local[k])

    def get_private(self, k: int) -> None:
        np.copyto(self.here[0], self.private[k])

    def put_ours(self, k: int) -> None:
        self.array.put(self.row(k), self.here)
        self.array.world.flush()

    def put_mpi(self, k: int) -> None:
        self.window.Put([self.here, MPI.DOUBLE], 1, (k * LENGTH, LENGTH, MPI.DOUBLE))
        self.window.Flush(1)

    def put_copy(self, k: int) -> None:
        np.copyto(self.array.local[k], self.here[0])

    def put_private(self, k: int) -> None:
        np.copyto(self.private[k], self.here[0])

    # ---- large patches, two in turn ----

    def large_patch(self, k: int) -> tuple[slice, slice]:
        first = ROWS + k % 2 * LARGE_ROWS
        return slice(first, first + LARGE_ROWS), slice(0, LENGTH)

    def get_large_ours(self, k: int) -> None:
        self.array.get(self.large_patch(k), out=self.large)

    def put_large_ours(self, k: int) -> None:
        self.array.put(self.large_patch(k), self.large)
        self.array.world.flush()

    def get_large_mpi(self, k: int) -> None:
        self.window.Get([self.large, MPI.DOUBLE], 1, (k % 2 * self.large.size, self.large.size, MPI.DOUBLE))
        self.window.Flush(1)

    def put_large_mpi(self, k: int) -> None:
        self.window.Put([self.large, MPI.DOUBLE], 1, (k % 2 * self.large.size, self.large.size, MPI.DOUBLE))
        self.window.Flush(1)

    def get_large_copy(self, k: int) -> None:
        np.copyto(self.large, self.array.local[k % 2 * LARGE_ROWS :][:LARGE_ROWS])

    def put_large_copy(self, k: int) -> None:
        np.copyto(self.array.local[k % 2 * LARGE_ROWS :][:LARGE_ROWS], self.large)

    def accumulate_ours(self, k: int) -> None:
        self.array.acc(self.row(k), self.here)
        self.array.world.flush()

    def accumulate_mpi(self, k: int) -> None:
        self.window.Accumulate([self.here, MPI.DOUBLE], 1, (k * LENGTH, LENGTH, MPI.DOUBLE), MPI.SUM)
        self.window.Flush(1)

    def word_ours(self, k: int) -> None:
        self.array.get((ROWS + k % ROWS, slice(0, 1)), out=self.word)

    def word_mpi(self, k: int) -> None:
        self.window.Get([self.word, MPI.DOUBLE], 1, (k % ROWS * LENGTH, 1, MPI.DOUBLE))
        self.window.Flush(1)

    def close(self) -> None:
        self.window.Unlock_all()
        self.window.Free()
        self.type.Free()
        self.array.close()


class Squares(Peers):
    """Patches that are squares of a matrix of ROWS * LENGTH / 2048 rows."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.array.close()
        self.matrix = GlobalArray(world, (2 * 4096, 2048), distribution=[[0, 4096], [0]])
        self.matrix.local[...] = 1.0
        self.strided = MPI.DOUBLE.Create_vector(SIDE, SIDE, 2048).Commit()
        self.private_matrix = self.private.reshape(4096, 2048)
        world.barrier()

    @staticmethod
    def corner(k: int) -> tuple[int, int]:
        return k // 5 % 11 * SIDE, k % 5 * SIDE

    def get_ours(self, k: int) -> None:
        i, j = self.corner(k)
        self.matrix.get((slice(4096 + i, 4096 + i + SIDE), slice(j, j + SIDE)), out=self.square)

    def put_ours(self, k: int) -> None:
        i, j = self.corner(k)
        self.matrix.put((slice(4096 + i, 4096 + i + SIDE), slice(j, j + SIDE)), self.square)
        self.matrix.world.flush()

    def get_mpi(self, k: int) -> None:
        i, j = self.corner(k)
        self.window.Get([self.square, MPI.DOUBLE], 1, (i * 2048 + j, 1, self.strided))
        self.window.Flush(1)

    def put_mpi(self, k: int) -> None:
        i, j = self.corner(k)
        self.window.Put([self.square, MPI.DOUBLE], 1, (i * 2048 + j, 1, self.strided))
        self.window.Flush(1)

    def get_copy(self, k: int) -> None:
        i, j = self.corner(k)
        np.copyto(self.square, self.matrix.local[i : i + SIDE, j : j + SIDE])

    def put_copy(self, k: int) -> None:
        i, j = self.corner(k)
        np.copyto(self.matrix.local[i : i + SIDE, j : j + SIDE], self.square)

    def get_private(self, k: int) -> None:
        i, j = self.corner(k)
        np.copyto(self.square, self.private_matrix[i : i + SIDE, j : j + SIDE])

    def put_private(self, k: int) -> None:
        i, j = self.corner(k)
        np.copyto(self.private_matrix[i : i + SIDE, j : j + SIDE], self.square)

    def close(self) -> None:
        self.window.Unlock_all()
        self.window.Free()
        self.strided.Free()
        self.matrix.close()


def timed(move: Callable[[int], None], patches: int) -> float:
    """Seconds per patch, for so many patches one after another."""
    start = time.perf_counter()
    for k in range(patches):
        move(k)
    return (time.perf_counter() - start) / patches


def in_turns(
    moves: dict[str, Callable[[int], None]], rounds: int, patches: int = ROWS
) -> dict[str, list[float]]:
    """Times of each move, measured in turns. Each turn begins with another move."""
    times: dict[str, list[float]] = {name: [] for name in moves}
    for move in moves.values():
        timed(move, patches)  # does not count: the first touch of memory costs more
    names = list(moves)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(timed(moves[name], patches))
    return times


def filling(world: World, rounds: int) -> dict[str, list[float]]:
    """Times in which both processes make an array and fill their parts; this touches the memory for the first
    time."""

    def ours() -> None:
        with GlobalArray(world, (NEW_BYTES // 8,)) as array:
            array.local[...] = 1.0

    def mpi() -> None:
        window = MPI.Win.Allocate(NEW_BYTES // 2, 8, comm=MPI.COMM_WORLD)
        np.asarray(window.tomemory()).view(np.float64)[...] = 1.0
        window.Free()

    times: dict[str, list[float]] = {"fill ours": [], "fill mpi": []}
    for turn in range(rounds):
        for name, step in (("fill ours", ours), ("fill mpi", mpi))[:: 1 - turn % 2 * 2]:
            claim_memory(2 * NEW_BYTES // world.size)
            world.barrier()
            start = time.perf_counter()
            step()
            world.barrier()
            times[name].append(time.perf_counter() - start)
    return times


def while_computing(world: World, peers: Peers, rounds: int) -> dict[str, list[float]]:
    """Process 1 computes without calling the library or MPI, while process 0 gets 8 bytes from it."""
    world.barrier()
    times: dict[str, list[float]] = {"word ours": [], "word mpi": []}
    if world.rank == 1:
        values = np.ones(1 << 12)
        end = time.perf_counter() + COMPUTE_S
        while time.perf_counter() < end:
            values = np.sqrt(values * 1.0001 + 0.5)
    else:
        time.sleep(0.2)
        end = time.perf_counter() + COMPUTE_S - 0.6
        for k in range(rounds):
            for name, move in (("word ours", peers.word_ours), ("word mpi", peers.word_mpi)):
                start = time.perf_counter()
                move(k)
                times[name].append(time.perf_counter() - start)
            time.sleep(0.0005)
            if time.perf_counter() > end:
                break
    world.barrier()
    return times


def main() -> None:
    place, extent = sys.argv[1:]
    rounds = 7 if extent == "quick" else 25
    results: dict[str, Any] = {}
    with World() as world:
        peers = Peers(world)
        if world.rank == 0:
            kinds = ("get", "put", "accumulate")
            moves = {
                f"{kind} {who}": getattr(peers, f"{kind}_{who}")
                for kind in kinds
                for who in ("ours", "mpi", "copy", "private")
                if hasattr(peers, f"{kind}_{who}")
            }
            results |= in_turns(moves, rounds)
            large = {
                f"{kind} large {who}": getattr(peers, f"{kind}_large_{who}")
                for kind in ("get", "put")
                for who in ("ours", "mpi", "copy")
            }
            results |= in_turns(large, rounds, patches=2)
        results |= while_computing(world, peers, 2000)
        peers.close()
        squares = Squares(world)
        if world.rank == 0:
            moves = {
                f"{kind} square {who}": getattr(squares, f"{kind}_{who}")
                for kind in ("get", "put")
                for who in ("ours", "mpi", "copy", "private")
            }
            results |= in_turns(moves, rounds)
        world.barrier()
        squares.close()
        results |= filling(world, rounds)
        if world.rank == 0:
            results["peer"] = f"{MPI.Get_library_version().splitlines()[0]} by mpi4py {mpi4py.__version__}"
            results["world"] = repr(world)
            Path(place).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
