"""What transfers of tiles return, where no native request does: something to wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from outcore.parallel.prefetch import Waitable


class Done:
    """A request that is complete."""

    __slots__ = ("_value",)

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def wait(self) -> Any:
        return self._value


class Then:
    """What is made, once, by the thread that waits first, of what a request brings. One thread waits."""

    __slots__ = ("_finish", "_request", "_value")

    def __init__(self, request: Waitable, finish: Callable[[Any], Any]) -> None:
        self._request: Waitable | None = request
        self._finish: Callable[[Any], Any] | None = finish
        self._value: Any = None

    def wait(self) -> Any:
        if self._request is not None and self._finish is not None:
            self._value = self._finish(self._request.wait())
            self._request = self._finish = None
        return self._value
