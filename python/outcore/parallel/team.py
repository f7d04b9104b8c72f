"""Threads that share work, each with a BLAS of one thread: they wait for each other once, at the end, not in every
product of matrices, so that other work on the machine delays them less."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable, Sized
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from outcore.base import interrupts
from outcore.base import threads as system

T = TypeVar("T")
Stopped = Callable[[], bool]

_WATCH_S = 0.1  # between two calls of a watch


def run(
    threads: int,
    work: Callable[[int, Stopped], None],
    *,
    watch: Callable[[], None] | None = None,
    stop: Callable[[], object] | None = None,
) -> None:
    """Calls `work(thread, stopped)` in so many threads at once; returns when all have returned. Raises the first
    error, or Ctrl-C, after all threads have ended; it leaves no thread behind, whatever it raises.

    Args:
        work: in thread 0, 1, ..; once `stopped()` is true, an error or a signal has come, and `work` must begin
            nothing more.
        watch: called every 0.1 s by the calling thread, which then does not work; without it, the calling thread
            is thread 0.
        stop: called after an error or a signal, by each thread that notices it, so maybe several times.
    """
    errors: list[BaseException] = []

    def fail(error: BaseException) -> None:
        errors.append(error)
        if stop is not None:
            stop()

    def stopped() -> bool:
        return bool(errors) or interrupted()

    def member(thread: int) -> None:
        try:
            work(thread, stopped)
        except BaseException as error:
            fail(error)

    with interrupts.held() as interrupted, blas_of_one_thread():
        first = 0 if watch is not None else 1
        helpers: list[threading.Thread] = []
        try:
            for thread in range(first, threads):
                helpers.append(system.start("outcore-team", member, thread))
            if watch is None:
                member(0)
            else:
                _watch(helpers, watch, interrupted)
            if interrupted() and stop is not None:
                stop()
        except BaseException as error:  # a thread that cannot be started, a watch that raises
            fail(error)
        finally:
            for helper in helpers:
                helper.join()
    if errors:
        raise errors[0]


def _watch(helpers: list[threading.Thread], watch: Callable[[], None], interrupted: Stopped) -> None:
    for helper in helpers:
        while helper.is_alive() and not interrupted():
            helper.join(_WATCH_S)
            watch()


def each(
    items: Iterable[T],
    threads: int,
    work: Callable[[int, T], None],
    *,
    stop: Callable[[], object] | None = None,
) -> None:
    """Calls `work(thread, item)` for every item; a thread takes the next item when it is free, and one thread at a
    time asks the iterable. Raises the first error, or Ctrl-C, after all threads have stopped. `stop`: see `run`."""
    if isinstance(items, Sized):
        threads = min(threads, max(1, len(items)))
    source, guard = iter(items), threading.Lock()

    def take(thread: int, stopped: Stopped) -> None:
        while not stopped():
            with guard:
                try:
                    item = next(source)
                except StopIteration:
                    return
            work(thread, item)

    run(threads, take, stop=stop)


# ---- BLAS ----


class _OneThread:
    """OpenBLAS has one setting for the process: counts the threads inside the block, and restores the setting that
    the first of them has found."""

    def __init__(self) -> None:
        self._guard, self._users = threading.Lock(), 0
        self._before: list[tuple[Any, int]] = []  # setters of the number of threads, with the old numbers

    def __enter__(self) -> None:
        with self._guard:
            if self._users == 0:
                functions = _openblas(len(sys.modules))
                self._before = [(put, get()) for get, put in functions]
                for _, put in functions:
                    put(1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._users -= 1
            if self._users == 0:
                for put, threads in self._before:
                    put(threads)


_one_thread = _OneThread()


def blas_of_one_thread() -> AbstractContextManager[None]:
    """Inside the block NumPy's BLAS, if it is OpenBLAS, uses one thread for each call; another BLAS follows the
    environment. Several threads of the program may be inside at a time; the last to leave restores the setting that
    the first has found. [M32]"""
    return _one_thread


@lru_cache(maxsize=1)
def _openblas(_modules: int) -> list[tuple[Any, Any]]:
    """Functions that get and set the number of threads, for each OpenBLAS that is loaded: NumPy and SciPy bring
    their own. When more modules have been imported, it searches again."""
    np.ones((2, 2)) @ np.ones((2, 2))
    paths = {
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line
    }
    found = []
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", ""):
                names = [f"{prefix}_{verb}_num_threads{suffix}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    found.append((getattr(library, names[0]), getattr(library, names[1])))
    return found
