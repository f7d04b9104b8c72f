"""Ctrl-C and SIGTERM: deferred while threads work, raised as an exception afterwards."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED, TERMINATED = 130, 143  # exit statuses: 128 and the number of the signal


_ending: list[int] = []  # the exit status of a process that is ending because of a signal


class Terminated(KeyboardInterrupt):
    """SIGTERM has come: this process is to end."""


def end_on_sigterm() -> None:
    """From now on SIGTERM raises Terminated in the main thread, unless the program handles it already."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated


def behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The KeyboardInterrupt that led to an error, or None: libraries turn Ctrl-C into errors of their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def status_of(error: BaseException) -> int:
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED


@contextmanager
def held() -> Iterator[Callable[[], bool]]:
    """Signals that raise exceptions do so after the block; the function that it yields tells whether one has come.
    So a block that waits for threads ends only after they have ended: CPython before 3.13 takes a thread for ended
    if an exception interrupts its join. Only the main thread gets signals; in other threads nothing is deferred."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came: list[tuple[int, Any]] = []
    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[int(number)] = handler
    try:
        for each in handlers:
            signal.signal(each, lambda *signalled: came.append(signalled))
        yield lambda: bool(came)
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for each, frame in came[:1]:
            handlers[each](each, frame)


def begin_to_end(status: int) -> None:
    """Marks this process as ending with the status of a signal, and ignores further signals."""
    _ending[:] = [status]
    ignore()


def ending() -> int | None:
    """The exit status if this process is ending because of a signal, else None."""
    return _ending[0] if _ending else None


def ignore() -> None:
    """Ignores further signals: this process is ending, and cleans up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
