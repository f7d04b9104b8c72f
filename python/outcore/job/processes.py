"""The processes of a calculation, and the memory that is left to each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.job import launch, resources
from outcore.job.resources import Allowance
from outcore.job.scratch import find_scratch
from outcore.job.world import World

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

_UNFORESEEN_BYTES = 8 << 20  # at each process: modules that are loaded later, memory in pieces
# What a process of a command holds beside what its method plans: the interpreter, the libraries that any method
# loads, what heaps keep in pieces. More than was seen, so that runs of the same input need the same memory.
PROCESS_BYTES = 146 << 20
_MPI_BYTES = 22 << 20
_STEP_BYTES = 16 << 20  # where a process holds more than that, its memory is foreseen in steps

JOB: Any = object()  # default of `comm`: all processes of the job


def make_world(comm: Intracomm | None, memory_bytes: int | None, scratch: str | None) -> World:
    """A world of a communicator (None: of this process, JOB: of all) with a share of the memory of all together.
    Collective."""
    comm = launch.world() if comm is JOB else comm
    size = 1 if comm is None else int(comm.Get_size())
    return World(
        "self" if comm is None else comm,
        memory=None if memory_bytes is None else memory_bytes // size,
        scratch=None if scratch is None else find_scratch(scratch),
    )


def memory_share(world: World, memory_bytes: int | None, threads: int) -> Allowance:
    """What this process may have, with what it has, of a budget of all together; of None, and half of its share of
    what is available. Not more than limits leave, whatever the budget."""
    resident = resources.resident_bytes()
    if memory_bytes is None:
        free = resources.allowance(world.node_size, threads)
        return Allowance(resident + free.bytes // 2, f"half of what is free ({free.reason})")
    mine = Allowance(memory_bytes // world.size, "--memory")
    left = resources.hard_allowance(world.node_size, threads)
    return mine if left is None else min(mine, Allowance(resident + left.bytes, left.reason))


def foreseen_held(world: World) -> int:
    """What each process of a command will hold beside what its method plans, libraries that are loaded later
    included. Collective."""
    usual = PROCESS_BYTES + (_MPI_BYTES if world.size > 1 else 0)
    present = resources.resident_bytes() + _UNFORESEEN_BYTES
    return int(world.all_reduce(max(usual, -(-present // _STEP_BYTES) * _STEP_BYTES), "max"))


def free_memory(world: World, memory_bytes: int | None, threads: int, *, strict: bool = False) -> Allowance:
    """Memory that this process can still take, of a budget of all together (None: half of what is available). Of
    a command, whose memory was foreseen, what it holds counts as foreseen, but if it is much more: a run that has
    begun is not refused for pages that heaps keep. strict: these pages count in full, for what takes all that is
    free and can do with less."""
    if world.held_bytes is not None:
        resources.trim_heap()  # what stages before have freed
    share = memory_share(world, memory_bytes, threads)
    held = resources.resident_bytes()
    foreseen = world.held_bytes if share.reason == "--memory" else None
    if foreseen is None or strict:
        held = max(held + _UNFORESEEN_BYTES, foreseen or 0)
    else:
        held = max(held - _UNFORESEEN_BYTES, foreseen)
    return Allowance(share.bytes - held, share.reason)


def free_memory_of_each(
    world: World, memory_bytes: int | None, threads: int, *, strict: bool = False
) -> Allowance:
    """What every process can still take, of its memory and of what the world has for arrays. strict: see
    `free_memory`. Collective."""
    budget = world.budget
    for_arrays = Allowance(budget.limit_bytes - budget.used_bytes, "the budget of the world")
    return min(world.gather(min(free_memory(world, memory_bytes, threads, strict=strict), for_arrays)))
