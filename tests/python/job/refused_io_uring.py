"""A filter of system calls, as in containers, forbids io_uring to process 1:

    mpiexec -n 2 python refused_io_uring.py DIRECTORY

Each process prints its engine and an element that both have added to, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys

import numpy as np
from mpi4py import MPI

import outcore
from outcore import _core

_IO_URING_SETUP = 425  # on every architecture
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2  # of prctl
_NOT_PERMITTED, _ALLOWED = 0x00050001, 0x7FFF0000


class Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction)))


def refuse_io_uring() -> None:
    steps = (Instruction * 4)(
        Instruction(0x20, 0, 0, 0),  # the number of the call
        Instruction(0x15, 0, 1, _IO_URING_SETUP),
        Instruction(0x06, 0, 0, _NOT_PERMITTED),
        Instruction(0x06, 0, 0, _ALLOWED),
    )
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_NO_NEW_PRIVILEGES, 1, 0),
        (_SECCOMP, _FILTER, ctypes.byref(Program(len(steps), steps))),
    ):
        if library.prctl(*arguments, 0, 0):
            sys.exit(f"prctl {arguments[0]}: errno {ctypes.get_errno()}")


comm = MPI.COMM_WORLD
if comm.rank == 1:
    refuse_io_uring()
with (
    outcore.World(scratch=sys.argv[1], memory="100MB") as world,
    outcore.DiskArray(world, (300, 300)) as array,
):
    array.acc(np.s_[10:200, 10:200], np.ones((190, 190)))
    world.barrier()
    found = [_core.engine_name(), _core.engine_reason(), array[20, 20]]
every = comm.gather(found)
if comm.rank == 0:
    print(json.dumps(every))
