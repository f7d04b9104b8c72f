"""The places that a caller may say for the tiles of an array, and the back-end of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.tensor.backends.backend import Backend
from outcore.tensor.backends.disk import DiskTiles
from outcore.tensor.backends.global_memory import GlobalTiles
from outcore.tensor.backends.node import NodeTiles
from outcore.tensor.backends.process import ProcessTiles
from outcore.tensor.layout import Layout

if TYPE_CHECKING:
    from outcore.job.world import World

PLACES = ("auto", "process", "node", "global", "disk")


def check(where: str, path: Any, distribution: Any, options: dict[str, Any]) -> None:
    """Raises ValueError for a place that is none, or that the path is not of; TypeError for options of others."""
    if where not in PLACES:
        raise ValueError(f"where={where!r}; it may be {', '.join(PLACES)}")
    if path is not None and where not in ("auto", "disk"):
        raise ValueError(f"where={where!r} with a path")
    on_disk = where == "disk" or path is not None
    others = sorted(set(options) - {"path", "distribution"})
    if others and not on_disk:
        raise TypeError(f"{', '.join(others)}: options of arrays on disk, with where={where!r}")
    if distribution is not None and where != "global":
        raise TypeError(f"distribution is of where='global', not {where!r}")


def settle(where: str, path: Any, world: World, nbytes: int) -> str:
    """Where so many bytes go: on disk with a path, and else where there is room for "auto". The same at all
    processes. Collective."""
    if path is not None:
        return "disk"
    if where != "auto":
        return where
    free = world.all_reduce(world.budget.limit_bytes - world.budget.used_bytes, "min")
    if nbytes > world.size * free // 2:
        return "disk"
    return "process" if world.size == 1 else "global"


def make(
    where: str, world: World, layout: Layout, dtype: np.dtype[Any], distribution: Any = None, **options: Any
) -> Backend:
    """Zeros at a place that is settled; `options` are those of arrays on disk. Collective."""
    if where == "process":
        return ProcessTiles(world, layout, dtype)
    if where == "node":
        return NodeTiles(world, layout, dtype)
    if where == "global":
        return GlobalTiles(world, layout, dtype, distribution)
    return DiskTiles(world, layout, dtype, **options)
