"""Threads that share work, each with a BLAS of one thread: they meet once at the end, not in every product of
matrices, so that other work on the machine does not make them wait for each other."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from outcore import interrupts

T = TypeVar("T")


def each(items: Iterable[T], threads: int, work: Callable[[int, T], None]) -> None:
    """`work(thread, item)` for every item, which threads take as they come to it; items are asked for by one thread
    at a time. Raises the first error, or Ctrl-C, after all threads have stopped."""
    source, guard, errors = iter(items), threading.Lock(), list[BaseException]()

    def run(thread: int) -> None:
        try:
            while not errors and not interrupted():
                with guard:
                    item = next(source)
                work(thread, item)
        except StopIteration:
            pass
        except BaseException as error:
            errors.append(error)

    with interrupts.held() as interrupted, blas_of_one_thread():
        helpers = [threading.Thread(target=run, args=(thread,), daemon=True) for thread in range(1, threads)]
        for helper in helpers:
            helper.start()
        run(0)
        for helper in helpers:
            helper.join()
    if errors:
        raise errors[0]


@contextmanager
def blas_of_one_thread() -> Iterator[None]:
    """NumPy's BLAS, if it is OpenBLAS, uses one thread for each call; others do as the environment says."""
    functions = _openblas()
    before = [get() for get, _ in functions]
    for _, put in functions:
        put(1)
    try:
        yield
    finally:
        for (_, put), threads in zip(functions, before, strict=True):
            put(threads)


@cache
def _openblas() -> list[tuple[Any, Any]]:
    """Functions that ask for and set the number of threads, of the OpenBLAS that NumPy has loaded."""
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
