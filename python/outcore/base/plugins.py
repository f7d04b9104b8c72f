"""Objects that other packages add to Outcore by name: in a call, or as an entry point of an installed package."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from importlib import metadata

T = TypeVar("T")


class Plugins(Generic[T]):
    """Objects of one kind, such as codecs. If a caller asks for a name that nobody has added, the entry point of
    this name in `group` is imported. `check(name, found)` turns the imported object into one of the kind, or raises
    TypeError. Any thread."""

    def __init__(self, group: str, check: Callable[[str, object], T]) -> None:
        self.group, self._check = group, check
        self._added: dict[str, T] = {}
        self._lock = threading.RLock()

    @cached_property
    def _points(self) -> dict[str, metadata.EntryPoint]:
        from importlib import metadata  # slow to load, and few programs need it

        return {each.name: each for each in metadata.entry_points(group=self.group)}

    def add(self, name: str, given: T) -> None:
        """Adds an object. Raises OutcoreError (EEXIST) if another object has the name."""
        with self._lock:
            if self._added.setdefault(name, given) is not given:
                raise OutcoreError(errno.EEXIST, f"add {name!r} to {self.group}", detail="the name is taken")

    def find(self, name: str) -> T | None:
        """The object of this name, or None. Raises OutcoreError (ENOTSUP) if its entry point cannot be used."""
        with self._lock:
            if name not in self._added and name in self._points:
                try:
                    self._added[name] = self._check(name, self._points[name].load())
                except Exception as error:
                    raise OutcoreError(
                        errno.ENOTSUP,
                        f"use {name!r} of {self.group}",
                        detail=f"{self._points[name].value}: {type(error).__name__}: {error}",
                    ) from error
            return self._added.get(name)

    def names(self) -> list[str]:
        """All names, sorted. Nothing is imported."""
        with self._lock:
            return sorted({*self._added, *self._points})
