"""A cache of the values that were used last, by key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """A cache with a limit of weight: a new value replaces those that were not asked for longest. Any thread.

    Args:
        most: largest weight of all values together.
        weigh: returns the weight of a value; without it each value weighs 1.
        heaviest: a value that weighs more is not kept; None: `most`.
    """

    def __init__(
        self, most: int, weigh: Callable[[V], int] = lambda _: 1, heaviest: int | None = None
    ) -> None:
        self._most, self._weigh = most, weigh
        self._heaviest = most if heaviest is None else heaviest
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._weight = 0
        self._guard = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value that is kept for this key; else `make()`, whose result is kept from then on."""
        with self._guard:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
                return found[0]
        value = make()
        weight = self._weigh(value)
        if weight > self._heaviest:
            return value
        with self._guard:
            _, before = self._values.pop(key, (value, 0))  # another thread may have made it meanwhile
            self._values[key] = value, weight
            self._weight += weight - before
            while self._weight > self._most:
                self._weight -= self._values.popitem(last=False)[1][1]
        return value

    def clear(self) -> None:
        with self._guard:
            self._values.clear()
            self._weight = 0


class Key:
    """A key of several parts, whose hash is computed once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: Hashable) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Key) and self._parts == other._parts)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Key], tuple[Hashable, ...]]:
        return Key, self._parts  # in another process the hash differs
