"""Requests: every nonblocking operation returns one; these functions make new requests:

done(value)             a request that is complete
then(request, finish)   applies a function to the result of a request
all_of(requests)        several requests as one, whose result is a list

`wait_all` and `wait_any` take all of these, and native requests, in any mixture.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from outcore import _core


@runtime_checkable
class Request(Protocol):
    """A nonblocking operation under way: a read or write of a file, a transfer of an array or a tile, a call, a
    collective transfer. It goes on by itself, and keeps its memory, and its file or array, alive until it is done.

    A failed operation raises its error from each `wait` and `test`. If it was to change a file or an array, and
    nobody has waited for it, the next sync, flush or close of that raises its error. Any thread may wait; other
    Python threads run meanwhile.
    """

    def wait(self) -> Any:
        """Blocks until it is done and returns its result: the number of bytes that a file has moved (fewer than
        asked for only at the end of an exclusive file; for a record: its size), the array of a get, the reply of a
        call (a uint8 array, a part of the buffer given to World.call if there was one), else None."""

    def test(self) -> bool:
        """True once it is done; never waits for a disk or a process."""

    @property
    def done(self) -> bool:
        """True once complete or failed, so that `wait` would not wait for a disk or a process. Never raises."""


def done(value: Any = None) -> Request:
    """A request that is complete, with the result `value`."""
    return _Done(value)


def then(request: Request, finish: Callable[[Any], Any]) -> Request:
    """A request whose result is `finish` applied to the result of `request`. `finish` runs once, in the first
    thread that waits or tests; if it raises, each `wait` and `test` raises its error."""
    return _Then(request, finish)


def all_of(requests: Iterable[Request]) -> Request:
    """A request whose result is the list of the results of `requests`. Its error is that of the first failed
    request in the list, raised when all are done."""
    return _All(list(requests))


def wait_all(requests: Iterable[Request]) -> None:
    """Waits for all requests, of any kinds, then raises the error of the first failed one in the list, if any."""
    _All(_checked(requests)).wait()


def wait_any(requests: Sequence[Request]) -> int:
    """Waits until one request is done, of any kinds, and returns its position, the first if several are done. The
    request's own `wait` raises its error. OutcoreError (EINVAL) for an empty sequence."""
    every = _checked(requests)
    while True:
        # Collected before the loop looks at `done`: a native request that ends in between is still waited for here.
        under_way = list(_natives(every))
        for position, request in enumerate(every):
            if request.done:
                return position
        if under_way or not every:
            _core.wait_any(under_way)


def _checked(requests: Iterable[Request]) -> list[Request]:
    every = list(requests)
    for each in every:
        if not isinstance(each, _core.Request | _Composed):
            raise _foreign(each)
    return every


def _foreign(request: Any) -> TypeError:
    return TypeError(f"{request!r} is no request of Outcore, and was not made of them by `then` or `all_of`")


def _natives(requests: Iterable[Request]) -> Iterator[_core.Request]:
    """The native requests that these wait for. A queued request of a Window begins."""
    for request in requests:
        if isinstance(request, _Composed):
            yield from _natives(request.parts())
        elif not isinstance(request, _core.Request):
            raise _foreign(request)
        elif not request.done:
            yield request


class _Composed(ABC):
    """A request that is made of others."""

    __slots__ = ()

    @abstractmethod
    def wait(self) -> Any: ...

    @abstractmethod
    def parts(self) -> Sequence[Request]:
        """The requests that it waits for."""

    @property
    def done(self) -> bool:
        return all(part.done for part in self.parts())

    def test(self) -> bool:
        for part in self.parts():
            with suppress(Exception):  # `wait` raises it, when all are done
                part.test()
        if not self.done:
            return False
        self.wait()
        return True


class _Done(_Composed):
    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        return self._value

    def parts(self) -> Sequence[Request]:
        return ()


class _Then(_Composed):
    __slots__ = ("_error", "_finish", "_guard", "_request", "_value")

    def __init__(self, request: Request, finish: Callable[[Any], Any]) -> None:
        self._request: Request | None = request
        self._finish: Callable[[Any], Any] | None = finish
        self._guard = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None

    def wait(self) -> Any:
        request = self._request
        if request is not None:
            self._end(request.wait())
        if self._error is not None:
            raise self._error
        return self._value

    def _end(self, brought: Any) -> None:
        with self._guard:
            if self._finish is None:
                return
            try:
                self._value = self._finish(brought)
            except Exception as error:
                self._error = error
            self._request = self._finish = None

    def parts(self) -> Sequence[Request]:
        request = self._request
        return () if request is None else (request,)


class _All(_Composed):
    __slots__ = ("_requests",)

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests

    def wait(self) -> list[Any]:
        brought, errors = list[Any](), list[Exception]()
        for request in self._requests:
            try:
                brought.append(request.wait())
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return brought

    def parts(self) -> Sequence[Request]:
        return self._requests


class Window:
    """Limits the memory of requests, each of which holds memory from its begin until a thread has waited for it. At
    most `max_bytes` are under way, or one request if it is larger; requests begin in the order in which they are
    added. Any thread; each request is waited for once, best in that order. If a thread waits for or tests a queued
    request, this one and those before it begin at once."""

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes
        self._held = 0
        self._queue: deque[_Queued] = deque()
        self._guard = threading.Lock()

    def add(self, start: Callable[[], Request], nbytes: int) -> Request:
        """A request that `start` begins, at once or later."""
        item = _Queued(self, start, nbytes)
        with self._guard:
            self._queue.append(item)
            self._begin()
        return item

    def _begin(self, until: _Queued | None = None) -> None:
        """Begins all requests for which there is room, and all up to `until`, if given, without regard to room."""
        while self._queue:
            forced = not self._held or (until is not None and until.request is None)
            if not forced and self._held + self._queue[0].nbytes > self._most:
                break
            item = self._queue.popleft()
            self._held += item.nbytes
            try:
                item.request = item.start()
            except BaseException as error:  # the thread that waits for this request raises it, not another
                item.request = _Failed(error)

    def _begun(self, item: _Queued) -> Request:
        with self._guard:
            if item.request is None:
                self._begin(item)
        assert item.request is not None
        return item.request

    def _end(self, item: _Queued) -> None:
        with self._guard:
            if not item.ended:
                item.ended = True
                self._held -= item.nbytes
                self._begin()


class _Failed(_Done):
    """A request that could not begin."""

    __slots__ = ()

    def wait(self) -> Any:
        raise self._value


class _Queued(_Composed):
    """A request of a Window."""

    __slots__ = ("_window", "ended", "nbytes", "request", "start")

    def __init__(self, window: Window, start: Callable[[], Request], nbytes: int) -> None:
        self._window, self.start, self.nbytes = window, start, nbytes
        self.request: Request | None = None
        self.ended = False

    def wait(self) -> Any:
        request = self._window._begun(self)
        try:
            return request.wait()
        finally:
            self._window._end(self)

    def parts(self) -> Sequence[Request]:
        return (self._window._begun(self),)

    @property
    def done(self) -> bool:
        return self.request is not None and self.request.done
