"""Persistent arrays that are open to write, in case the program does not close them.

To commit an array is collective, but Python destroys its object at a different time at each process. So the world
keeps the files of an array whose object is gone, until the next call that makes or opens an array on disk, or until
the end of the world: there the processes learn that none of them has the object any more, and commit the array
together.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from outcore.base.errors import OutcoreError
from outcore.job.collective import in_gate

if TYPE_CHECKING:
    from outcore.job.world import World

AnyArray = TypeVar("AnyArray", bound=Any)

_GONE, _LEFT, _ORPHAN, _HELD = range(4)
"""State of an array at a process: _GONE: closed, or with nothing more to commit; _LEFT: left by an error, but the
program still holds it; _ORPHAN: only the world holds it; _HELD: the program holds it."""


class _Native(Protocol):
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def drop(self) -> None: ...


@dataclass(eq=False)
class _Entry:
    native: _Native | None  # None: left by an error at this process, so that the world does not keep it
    owner: weakref.ref[Any]
    path: str

    @property
    def state(self) -> int:
        owner = self.owner()
        if self.native is None:
            return _GONE if owner is None or owner.closed else _LEFT
        return _GONE if self.native.closed else _ORPHAN if owner is None else _HELD


class Unclosed:
    """Unclosed arrays of one world, in the order in which they were made, which is the same at all processes."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._flushed: list[weakref.ref[Any]] = []  # arrays that `only_flushed` took out
        self.committing = False  # at the end of the world: all processes are here

    def add(self, owner: Any, native: _Native, path: str) -> None:
        self._entries.append(_Entry(native, weakref.ref(owner), path))

    def remove(self, owner: Any) -> None:
        """Called when an array was closed, or when its owner alone shall commit it. At all processes."""
        self._entries = [each for each in self._entries if each.owner() is not owner]

    def only_flushed(self, owner: Any) -> None:
        """The end of the world will close the array in the state of its last flush. At all processes."""
        self.remove(owner)
        self._flushed = [each for each in self._flushed if each() is not None]
        self._flushed.append(weakref.ref(owner))

    def leave(self, owner: Any) -> None:
        """Called when an error has left the `with` block of an array at this process: the array is not committed
        unless its owner closes it."""
        for each in self._entries:
            if each.owner() is owner:
                each.native = None

    def clear(self) -> None:
        """Called in a forked child, to which none of the arrays belongs."""
        self._entries, self._flushed = [], []

    def settle(self, world: World) -> None:
        """Commits and closes arrays that no process holds any more. Collective. Raises the error of a commit."""
        if not self._entries:
            return
        for entry, states in zip(list(self._entries), self._states(world), strict=True):
            if states & {_HELD, _LEFT}:
                continue
            self._entries.remove(entry)
            self._end(world, entry, states, "it is committed, as no process holds it any more")

    def end(self, world: World) -> None:
        """Commits and closes all arrays at the end of the world. Collective. Raises the first error of a commit."""
        if not self._entries:
            return
        try:
            found = self._states(world)
        except OutcoreError:  # another process is elsewhere, or ends by an error
            return
        failure: OutcoreError | None = None
        self.committing = True
        for entry, states in zip(list(self._entries), found, strict=True):
            self._entries.remove(entry)
            try:
                self._end(world, entry, states, "the end of its world commits it")
            except OutcoreError as error:  # at all processes
                failure = failure or error
        if failure is not None:
            raise failure

    def lose(self, world: World) -> None:
        """The remaining arrays keep the state that was committed last. Not collective; the world has ended."""
        for entry in self._entries:
            state = entry.state
            if entry.native is not None:
                with suppress(OutcoreError):
                    entry.native.drop()
            if state != _GONE or entry.native is None:
                _say_lost(world, entry.path)
        self._entries = []
        for each in self._flushed:
            if (owner := each()) is not None and not owner.closed:
                with suppress(OutcoreError):
                    owner.drop()
        self._flushed = []

    def _states(self, world: World) -> list[set[int]]:
        """The states of each array at all processes."""
        own = in_gate(
            "look for arrays that nobody has closed",
            world.gather_bytes,
            lambda: bytes(each.state for each in self._entries),
        )
        return [set(states) for states in zip(*own, strict=True)]

    def _end(self, world: World, entry: _Entry, states: set[int], committed: str) -> None:
        native = entry.native
        if native is not None and not states & {_GONE, _LEFT}:
            try:
                native.close()
            except OutcoreError:
                native.drop()
                raise
            if world.rank == 0:
                text = f"the array in {entry.path} was not closed: {committed}"
                warnings.warn(text, ResourceWarning, stacklevel=5)
            return
        if native is not None:
            native.drop()
        if native is None or states != {_GONE}:
            _say_lost(world, entry.path)


def _say_lost(world: World, path: str) -> None:
    if world.rank == 0:
        text = (
            f"the array in {path} was left open by an error: it keeps the state that was committed last; if there "
            "is none, no array remains"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=5)


def only_flushed(array: AnyArray) -> AnyArray:
    """Returns the array, which the end of its world will not commit from now on: its contents are consistent only
    when its owner flushes it, so no other state may be found. The end of the world closes its files, even if the
    program still holds the array, so that another world of this process can open it. At all processes."""
    on_disk = getattr(getattr(array, "backend", None), "array", array)
    on_disk.world.unclosed.only_flushed(on_disk)
    return array
