"""Memory of the budget that arrays on disk take beside what plans give to panels: their caches, and elements on
their way between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outcore.job.world import World

_CACHES, _MAX_CACHED = 1 / 16, 64 << 20  # of the budget, of all arrays on disk that a plan makes
_STAGED, _MIN_STAGED, _MAX_STAGED = 1 / 16, 4 << 20, 32 << 20  # as src/dio/staging.cpp has it


def cache_bytes(world: World, arrays: int) -> int:
    """Of each of so many arrays that are on disk at a time: together they have the cache that one would have. An
    array takes two chunks at least. The same at all processes if their budgets are."""
    return int(min(_CACHES * world.budget.limit_bytes, _MAX_CACHED)) // max(1, arrays)


def staging_bytes(world: World) -> int:
    """What elements on their way to and from other processes take at most, in each process."""
    if world.size == 1:
        return 0
    return int(min(max(_STAGED * world.budget.limit_bytes, _MIN_STAGED), _MAX_STAGED))
