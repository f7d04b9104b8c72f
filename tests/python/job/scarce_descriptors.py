"""Programs of 2 processes, one of which can open only N files, for N = 0, 1, .. until that is enough:

    mpiexec -n 2 python scarce_descriptors.py DIRECTORY

Rank 0 prints a line for each run: the messages of all processes, as JSON. A run that waits for ever ends with
stacks.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI

import outcore

LONGEST_S, ENOUGH = 20, 40

comm = MPI.COMM_WORLD
place = sys.argv[1]


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Leaves this number of free descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(map(int, os.listdir("/proc/self/fd"))) + 1  # and that of the listing
    taken = [os.open("/dev/null", os.O_RDONLY)]
    while taken[-1] < most:
        taken.append(os.open("/dev/null", os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in taken:
            os.close(each)


def memory(world: outcore.World, number: int) -> None:
    """Memory that processes of a host share: there is one node, or an error."""
    outcore.NodeArray(world, (1000,)).close()
    outcore.GlobalArray(world, (100, 100)).close()
    assert world.node_size == comm.size


def files(world: outcore.World, number: int) -> None:
    """Arrays and files on disk that all processes read."""
    with outcore.DiskArray(world, (60, 60), path=f"{place}/array", overwrite=True) as array:
        array.acc(np.s_[10:50, 10:50], np.ones((40, 40)))
        array.get_async(np.s_[:, :], np.empty((60, 60))).wait()
        world.barrier()
    with outcore.RecordFile(world, "records", records=4, placement="local") as records:
        for k in range(comm.rank, 4, comm.size):
            records[k] = np.ones(1000)
        world.barrier()
        assert all(len(records[k]) == 8000 for k in range(4))
        world.barrier()


def saved(world: outcore.World, number: int) -> None:
    """A checkpoint that replaces the previous one each time."""
    with outcore.GlobalArray(world, (50, 50)) as array:
        array.local[...] = number
        array.sync()
        outcore.checkpoint.save(world, f"{place}/saved", {"a": array}, {"number": number})
    with outcore.checkpoint.load(world, f"{place}/saved") as found:
        assert found.meta["number"] == number


def attempt(program: Callable[[outcore.World, int], None], number: int) -> str:
    try:
        with outcore.World(scratch=place, memory="100MB") as world:
            program(world, number)
    except outcore.OutcoreError as error:
        return str(error)
    return "ok"


def main() -> None:
    _ = outcore.World, outcore.NodeArray, outcore.GlobalArray  # loaded
    number = 0
    for program in (memory, files, saved):
        if program is not memory:  # nor is the name of the host known before that
            assert (
                comm.allgather(attempt(program, number)) == ["ok"] * comm.size
            )  # and all modules are loaded
        for rank in range(comm.size):
            for count in range(ENOUGH):
                number += 1
                faulthandler.dump_traceback_later(LONGEST_S, exit=True)
                with free_descriptors(count if comm.rank == rank else 1000):
                    outcome = attempt(program, number)
                said = comm.allgather(outcome)
                if comm.rank == 0:
                    line = {"program": program.__name__, "rank": rank, "count": count, "said": said}
                    print(json.dumps(line), flush=True)
                if said == ["ok"] * comm.size:
                    break
    faulthandler.cancel_dump_traceback_later()


main()
