"""Programs of 2 processes, one of which can start only N threads, for N = 0, 1, .. until that is enough:

    LD_PRELOAD=.../liboutcore_scarce.so mpiexec -n 2 python scarce_threads.py DIRECTORY

Rank 0 prints a line for each run: the messages of all processes, as JSON. A run that waits for ever ends with
stacks.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import outcore
from outcore.tensor.plan import gemm

LONGEST_S, ENOUGH = 20, 30

comm = MPI.COMM_WORLD
library = ctypes.CDLL(None)
place = sys.argv[1]


def committed(world: outcore.World, number: int) -> None:
    """A disk array that all processes access; it is committed and read again."""
    path = f"{place}/{comm.size}.{number}"
    with outcore.DiskArray(world, (60, 60), path=path) as array:
        array.acc(np.s_[10:50, 10:50], np.ones((40, 40)))
        array.get_async(np.s_[:, :], np.empty((60, 60))).wait()
        world.barrier()
    with outcore.DiskArray.open(world, path) as array:
        assert array[20, 20] == comm.size


def distant(world: outcore.World, number: int) -> None:
    """A file whose parts lie at their owners, and a product of arrays."""
    with outcore.SharedFile(world, "file", placement="local") as file:
        file.write(np.full(1 << 17, comm.rank, np.uint8), offset=comm.rank << 17)
        file.sync()
        world.barrier()
        file.read(np.empty(1 << 17, np.uint8), offset=(1 - comm.rank) << 17)
    with outcore.DiskArray(world, (300, 300)) as x:  # large enough for threads
        outcore.einsum("ij,jk->ik", x, x, threads=2).close()


def calling(world: outcore.World, number: int) -> None:
    """Calls that wait for calls, each in its own thread."""

    def relay(caller: int, header: bytes, payload: bytes) -> bytes:
        depth = header[0]
        return world.call(1 - comm.rank, "relay", bytes([depth - 1])).wait() if depth else b""

    world.register("relay", relay)
    world.barrier()
    if comm.rank == 0:
        world.call(1, "relay", bytes([7])).wait()
    world.barrier()


def attempt(program: Callable[[outcore.World, int], None], nodes: str, number: int) -> str:
    try:
        with outcore.World(scratch=place, memory="200MB", nodes=nodes) as world:
            program(world, number)
    except outcore.OutcoreError as error:
        return str(error)
    return "ok"


def main() -> None:
    gemm.has_blas()  # which starts threads of its own
    number = 0
    programs: list[tuple[Any, str]] = [(committed, "hosts"), (distant, "processes"), (calling, "hosts")]
    for program, nodes in programs:
        attempt(program, nodes, number)  # threads of a process that outlive a world
        for rank in range(comm.size):
            for threads in range(ENOUGH):
                number += 1
                faulthandler.dump_traceback_later(LONGEST_S, exit=True)
                if comm.rank == rank:
                    library.outcore_scarce_threads(ctypes.c_long(threads))
                said = comm.gather(attempt(program, nodes, number))
                enough = library.outcore_scarce_asked() <= threads
                if comm.rank == rank:
                    library.outcore_scarce_threads(ctypes.c_long(-1))
                if comm.rank == 0:
                    line = {"program": program.__name__, "rank": rank, "threads": threads, "said": said}
                    print(json.dumps(line), flush=True)
                if comm.bcast(enough, rank):
                    break
    faulthandler.cancel_dump_traceback_later()


main()
