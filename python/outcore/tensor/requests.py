"""What transfers of tiles return, where no native request does: something to wait for."""

from __future__ import annotations

import threading
from collections import deque
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


class Window:
    """Requests that hold memory from when they begin until they have been waited for: so many bytes of them are
    under way, or one, and they begin in the order in which they are added. Any thread; each is waited for by
    one, best in that order."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held = 0
        self._queue: deque[_Queued] = deque()
        self._guard = threading.Lock()

    def add(self, start: Callable[[], Waitable], nbytes: int) -> Waitable:
        """A request that `start` begins, now or later."""
        item = _Queued(self, start, nbytes)
        with self._guard:
            self._queue.append(item)
            self._begin()
        return item

    def _begin(self, until: _Queued | None = None) -> None:
        """All that there is room for, and up to one that cannot wait."""
        while self._queue:
            forced = not self._held or (until is not None and until.request is None)
            if not forced and self._held + self._queue[0].nbytes > self._most:
                break
            item = self._queue.popleft()
            self._held += item.nbytes
            try:
                item.request = item.start()
            except BaseException as error:  # for the thread that waits for this one, not for another
                item.request = _Failed(error)

    def _end(self, item: _Queued) -> None:
        with self._guard:
            self._held -= item.nbytes
            self._begin()

    def _wait(self, item: _Queued) -> Any:
        with self._guard:
            if item.request is None:
                self._begin(item)
        assert item.request is not None
        try:
            return item.request.wait()
        finally:
            self._end(item)


class _Failed:
    """A request that could not begin."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def wait(self) -> Any:
        raise self._error


class _Queued:
    """Of a window; waited for once."""

    __slots__ = ("_window", "nbytes", "request", "start")

    def __init__(self, window: Window, start: Callable[[], Waitable], nbytes: int) -> None:
        self._window, self.start, self.nbytes = window, start, nbytes
        self.request: Waitable | None = None

    def wait(self) -> Any:
        return self._window._wait(self)
