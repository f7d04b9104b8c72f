"""The processes of a calculation, and the memory that each can take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.job import launch, resources
from outcore.job.resources import Allowance
from outcore.job.scratch import find_scratch
from outcore.job.world import World

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

_UNPREDICTED_BYTES = 8 << 20  # at each process: modules that are loaded later, fragmented memory
_MPI_BYTES = 22 << 20
_STEP_BYTES = 16 << 20  # memory above the usual is predicted in multiples of this

JOB: Any = object()  # default of `comm`: all processes of the job


def make_world(comm: Intracomm | None, memory_bytes: int | None, scratch: str | None) -> World:
    """A world of a communicator (None: this process alone, JOB: all processes of the job). `memory_bytes`: of all
    processes together; each gets an equal share. Collective."""
    comm = launch.world() if comm is JOB else comm
    size = 1 if comm is None else int(comm.Get_size())
    return World(
        "self" if comm is None else comm,
        memory=None if memory_bytes is None else memory_bytes // size,
        scratch=None if scratch is None else find_scratch(scratch),
    )


def memory_share(world: World, memory_bytes: int | None, threads: int) -> Allowance:
    """Memory that this process may hold, including the memory that it holds now: its share of the budget of all
    processes together; without a budget, the memory that it holds now and half of its share of the free memory.
    Never more than limits of the system allow."""
    resident = resources.resident_bytes()
    if memory_bytes is None:
        free = resources.allowance(world.node_size, threads)
        return Allowance(resident + free.bytes // 2, f"half of the free memory ({free.reason})")
    mine = Allowance(memory_bytes // world.size, "--memory")
    left = resources.hard_allowance(world.node_size, threads)
    return mine if left is None else min(mine, Allowance(resident + left.bytes, left.reason))


def predicted_held(world: World, usual_bytes: int) -> int:
    """Memory that each process of a command will hold in addition to the plan of its method, including libraries
    that are loaded later: `usual_bytes`, unless a process holds more now. Collective."""
    usual = usual_bytes + (_MPI_BYTES if world.size > 1 else 0)
    present = resources.resident_bytes() + _UNPREDICTED_BYTES
    return int(world.all_reduce(max(usual, -(-present // _STEP_BYTES) * _STEP_BYTES), "max"))


def free_memory(world: World, memory_bytes: int | None, threads: int) -> Allowance:
    """Memory that this process can still take, from its share of the budget of all processes together (None: half
    of the free memory). The memory that the process holds, and modules that it will load, count against the share;
    in a command, whose memory was predicted, at least the predicted memory counts, so that runs of the same input
    have the same plans."""
    if world.held_bytes is not None:
        resources.trim_heap()  # memory that earlier stages have freed
    share = memory_share(world, memory_bytes, threads)
    predicted = world.held_bytes if share.reason == "--memory" else None
    held = max(resources.resident_bytes() + _UNPREDICTED_BYTES, predicted or 0)
    return Allowance(share.bytes - held, share.reason)


def free_memory_of_each(world: World, memory_bytes: int | None, threads: int) -> Allowance:
    """Memory that every process can still take, from its share and from the world's budget for arrays; the smallest
    of all processes. Collective."""
    budget = world.budget
    for_arrays = Allowance(budget.limit_bytes - budget.used_bytes, "the budget of the world")
    return min(world.gather(min(free_memory(world, memory_bytes, threads), for_arrays)))
