"""What a calculation may use: memory of each process, and where its scratch is."""

from __future__ import annotations

import errno
import os

from outcore import _core, resources
from outcore.errors import OutcoreError
from outcore.resources import Allowance
from outcore.world import World


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


def find_scratch(directory: str | None) -> str:
    """The scratch directory to use. Raises OutcoreError if it is missing or cannot be written."""
    if directory is None:
        return str(_core.default_scratch())
    if not os.path.isdir(directory):
        raise OutcoreError(errno.ENOENT, "use scratch directory", path=directory, detail="no such directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise OutcoreError(errno.EACCES, "use scratch directory", path=directory, detail="not writable")
    return os.path.abspath(directory)
