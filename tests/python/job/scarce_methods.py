"""Methods on 2 processes, one of which can start only N threads, for some N, and at last any number:

    LD_PRELOAD=.../liboutcore_scarce.so mpiexec -n 2 python scarce_methods.py DIRECTORY

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

from mpi4py import MPI
from pyscf import gto, scf

import outcore
from outcore.chem import hf, ri
from outcore.chem.cc import CCSD
from outcore.chem.ci import FCI
from outcore.chem.mp2 import MP2
from outcore.chem.mrci import MRCI

LONGEST_S, THREADS = 20, (0, 1, 3, 9, 27, -1)  # -1: any number

comm = MPI.COMM_WORLD
library = ctypes.CDLL(None)
place = sys.argv[1]
mol = gto.M(atom="Li 0 0 0; H 0 0 1.6", basis="sto-3g", verbose=0)
mf = scf.RHF(mol).run(conv_tol=1e-11)


def stored(world: outcore.World) -> float:
    with hf.RHF(mol, comm=world, storage="disk", threads=2) as made:
        return float(made.kernel())


def fitted(world: outcore.World) -> float:
    with ri.RHF(mol, "def2-svp-jkfit", comm=world, storage="disk", threads=2) as made:
        return float(made.kernel())


def second_order(world: outcore.World) -> float:
    return float(MP2(mf, auxbasis="def2-svp-ri", comm=world, storage="disk", threads=2).kernel())


def coupled_cluster(world: outcore.World) -> float:
    with CCSD(mf, integrals="conventional", comm=world, storage="disk", threads=2) as made:
        return float(made.kernel()[0] + made.ccsd_t())


def full_ci(world: outcore.World) -> float:
    with FCI(mf, comm=world, threads=2) as made:
        return float(made.kernel())


def multireference(world: outcore.World) -> float:
    given: dict[str, Any] = {"inactive": 1, "active": 3, "vector_memory": 0, "integral_memory": 0}
    with MRCI.from_mean_field(mf, comm=world, threads=2, **given) as made:
        return float(made.kernel())


def attempt(method: Callable[[outcore.World], float]) -> str | float:
    try:
        with outcore.World(scratch=place, memory="400MB", nodes="processes") as world:
            return method(world)
    except outcore.OutcoreError as error:
        return str(error)


def main() -> None:
    for number, method in enumerate((stored, fitted, second_order, coupled_cluster, full_ci, multireference)):
        faulthandler.dump_traceback_later(LONGEST_S, exit=True)
        wanted, rank = comm.bcast(attempt(method)), number % 2
        for threads in THREADS:
            faulthandler.dump_traceback_later(LONGEST_S, exit=True)
            if comm.rank == rank:
                library.outcore_scarce_threads(ctypes.c_long(threads))
            said = comm.gather(attempt(method))
            enough = library.outcore_scarce_asked() <= threads
            if comm.rank == rank:
                library.outcore_scarce_threads(ctypes.c_long(-1))
            if comm.rank == 0:
                line = {"method": method.__name__, "rank": rank, "threads": threads, "said": said}
                print(json.dumps(line | {"wanted": wanted}), flush=True)
            if comm.bcast(enough, rank):
                break
    faulthandler.cancel_dump_traceback_later()


main()
