"""Threads of Python: if one cannot be started, the error names it."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from outcore.base.errors import OutcoreError

_NO_THREAD = "start new thread"  # part of Python's message


def start(name: str, target: Callable[..., object], *arguments: object) -> threading.Thread:
    """Starts a thread that does not keep the process from ending. Raises OutcoreError (EAGAIN) if the system has no
    thread left."""
    thread = threading.Thread(name=name, target=target, args=arguments, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise _not_started(name) from error
    return thread


class Pool(ThreadPoolExecutor):
    """Threads that are started as they are needed. `submit` raises OutcoreError (EAGAIN) if the system has no
    thread left."""

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._name = name

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        try:
            return super().submit(work, *arguments, **named)
        except RuntimeError as error:
            if _NO_THREAD not in str(error):
                raise
            raise _not_started(self._name) from error


def _not_started(name: str) -> OutcoreError:
    return OutcoreError(
        errno.EAGAIN,
        f"start the thread {name}",
        detail="the number of processes (ulimit -u, pids of the control group) or the address space (ulimit -v) is "
        "limited",
    )
