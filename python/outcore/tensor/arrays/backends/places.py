"""The places that a caller may say for the tiles of an array, and the back-end of each."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.base.plugins import Plugins
from outcore.job import arguments
from outcore.tensor.arrays.backends.backend import Backend
from outcore.tensor.arrays.backends.disk import DiskTiles
from outcore.tensor.arrays.backends.global_memory import GlobalTiles
from outcore.tensor.arrays.backends.node import NodeTiles
from outcore.tensor.arrays.backends.process import ProcessTiles
from outcore.tensor.layout.layout import Layout

if TYPE_CHECKING:
    from outcore.job.world import World

PLACES = ("auto", "process", "node", "global", "disk")

Make = Callable[..., Backend]
"""`make(world, layout, dtype, **options)`, as the constructor of a Backend: collective."""


def add_backend(name: str, make: Make) -> None:
    """`outcore.Array(.., where=name, **options)` puts tiles where `make(world, layout, dtype, **options)` says, in
    this process until it ends. `make` is a class derived from Backend, or returns one; it is called by all
    processes. A repeated call does nothing.

    Raises TypeError for what cannot be called; OutcoreError (EEXIST) if the name is taken.
    """
    if name in PLACES:
        raise OutcoreError(errno.EEXIST, f"add back-end {name!r}", detail="the name is taken")
    _ADDED.add(arguments.text("name", name), _loaded(name, make))


def _loaded(name: str, found: object) -> Make:
    if not callable(found):
        raise TypeError(f"back-end {name!r} cannot be called: {found!r}")
    return found


_ADDED: Plugins[Make] = Plugins("outcore.backends", _loaded)


def is_place(where: str) -> bool:
    """Whether a place is known; a package that has it is imported. Raises OutcoreError (ENOTSUP) if it cannot be
    used."""
    return where in PLACES or _ADDED.find(where) is not None


def check(where: str, path: Any, distribution: Any, options: dict[str, Any]) -> None:
    """Raises ValueError for an unknown place, or a path with a place that has none; TypeError for options of other
    places."""
    if not is_place(where):
        raise ValueError(f"where={where!r}; it may be {', '.join([*PLACES, *_ADDED.names()])}")
    if path is not None and where not in ("auto", "disk"):
        raise ValueError(f"where={where!r} with a path")
    on_disk = where == "disk" or path is not None
    others = sorted(set(options) - {"path", "distribution"})
    if others and not on_disk and where in PLACES:
        raise TypeError(f"{', '.join(others)}: options of arrays on disk, with where={where!r}")
    if distribution is not None and where != "global":
        raise TypeError(f"distribution is of where='global', not {where!r}")


def settle(where: str, path: Any, world: World, nbytes: int) -> str:
    """The place of `nbytes`: on disk with a path; for "auto" where there is room. The same at all processes.
    Collective."""
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
    """Tiles of zeros at a settled place; `options` are those of arrays on disk, or of a place that was added.
    Collective."""
    added = _ADDED.find(where)
    if added is not None:
        found = added(world, layout, dtype, **options)
        if not isinstance(found, Backend):
            raise TypeError(f"where={where!r}: {found!r} is no outcore.extend.Backend")
        found.where = where
        return found
    if where == "process":
        return ProcessTiles(world, layout, dtype)
    if where == "node":
        return NodeTiles(world, layout, dtype)
    if where == "global":
        return GlobalTiles(world, layout, dtype, distribution)
    return DiskTiles(world, layout, dtype, **options)
