"""mrci_run.py DIRECTORY DIE [BYTES]: solves water; the last process kills itself after iteration DIE."""

import os
import signal
import sys
from pathlib import Path

from mrci_molecules import WATER, mean_field

import outcore
from outcore.chem.mrci import MRCI

directory, die = Path(sys.argv[1]), int(sys.argv[2])
memory = int(sys.argv[3]) if len(sys.argv) > 3 else None


def told(iteration):
    if iteration.number == die and world.rank == world.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)


with outcore.World(scratch=directory, memory="300MB") as world:
    given = {"inactive": 1, "active": 6, "vector_memory": memory, "checkpoint": directory / "kept"}
    with MRCI.from_mean_field(mean_field(WATER), comm=world, **given) as ci:
        ci.on_iteration = told
        energy = ci.kernel()
        if world.rank == 0:
            print(ci.went_on, ci.kept_iteration, len(ci.found.iterations), repr(energy))
