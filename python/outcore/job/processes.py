"""The processes of a calculation, and the memory that is left to each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outcore.job import launch, resources
from outcore.job.resources import Allowance
from outcore.job.scratch import find_scratch
from outcore.job.world import World

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

_UNPREDICTED_BYTES = 8 << 20  # at each process: modules that are loaded later, memory in pieces
_MPI_BYTES = 22 << 20
_STEP_BYTES = 16 << 20  # where a process holds more than that, its memory is predicted in steps

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


def predicted_held(world: World, usual_bytes: int) -> int:
    """What each process of a command will hold beside what its method plans, libraries that are loaded later
    included: `usual_bytes`, unless it holds more now. Collective."""
    usual = usual_bytes + (_MPI_BYTES if world.size > 1 else 0)
    present = resources.resident_bytes() + _UNPREDICTED_BYTES
    return int(world.all_reduce(max(usual, -(-present // _STEP_BYTES) * _STEP_BYTES), "max"))


def free_memory(world: World, memory_bytes: int | None, threads: int) -> Allowance:
    """Memory that this process can still take, of a budget of all together (None: half of what is available). All
    that it holds counts, and modules that come later; of a command, whose memory was predicted, not less than was
    predicted, so that runs of the same input have the same plans."""
    if world.held_bytes is not None:
        resources.trim_heap()  # what stages before have freed
    share = memory_share(world, memory_bytes, threads)
    predicted = world.held_bytes if share.reason == "--memory" else None
    held = max(resources.resident_bytes() + _UNPREDICTED_BYTES, predicted or 0)
    return Allowance(share.bytes - held, share.reason)


def free_memory_of_each(world: World, memory_bytes: int | None, threads: int) -> Allowance:
    """What every process can still take, of its memory and of what the world has for arrays. Collective."""
    budget = world.budget
    for_arrays = Allowance(budget.limit_bytes - budget.used_bytes, "the budget of the world")
    return min(world.gather(min(free_memory(world, memory_bytes, threads), for_arrays)))
