"""Buffers that are used again and again, as new pages cost more than the work on them."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[Any]]


class Buffers:
    """One buffer for each key, which one thread uses at a time."""

    def __init__(self) -> None:
        self._flat: dict[Hashable, Values] = {}

    def clear(self) -> None:
        """Gives the memory back."""
        self._flat.clear()

    def take(self, key: Hashable, shape: tuple[int, ...]) -> Values:
        """A contiguous array in the buffer of this key. It is not cleared; its elements are finite numbers."""
        size = math.prod(shape)
        found = self._flat.get(key)
        if found is None or found.size < size:
            self._flat.pop(key, None)
            found = self._flat[key] = np.zeros(size)
        return found[:size].reshape(shape)


class ThreadBuffers(threading.local, Buffers):
    """Buffers of each thread."""

    def __init__(self) -> None:
        Buffers.__init__(self)
