"""Values that were made lately, by key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """So many values; one more takes the place of the one that was not asked for longest. Any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], V], worth: Callable[[V], bool] = lambda _: True) -> V:
        """What was made for this key; else `make()`, which is kept if it is `worth` that."""
        with self._guard:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        if not worth(value):
            return value
        with self._guard:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._guard:
            self._values.clear()
