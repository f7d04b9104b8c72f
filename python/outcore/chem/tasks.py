"""Tasks distributed over processes and threads as they finish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore._core import Counter

_STOP = 1 << 48  # far beyond any number of tasks


def run_tasks(
    counter: Counter,
    cost: Sequence[float] | np.ndarray[Any, Any],
    threads: int,
    work: Callable[[int, int, int], None],
    progress: Callable[[float], None] | None = None,
    chunk: int = 4,
) -> None:
    """This process's part in working off tasks 0 .. len(cost): `work(thread, first, last)` in `threads` threads,
    while the calling thread reports the fraction of the cost handed out so far, over all processes.

    The counter must have been reset. Raises the first error of this process's threads, after leaving nothing to
    those of all processes.
    """
    total = np.concatenate([[0.0], np.cumsum(cost, dtype=float)])
    count = len(total) - 1
    handed_out = 0
    errors: list[BaseException] = []

    def worker(thread: int) -> None:
        nonlocal handed_out
        try:
            while (first := counter.next(chunk)) < count:
                handed_out = min(first + chunk, count)
                work(thread, first, min(first + chunk, count))
        except BaseException as error:
            errors.append(error)
            counter.next(_STOP)

    team = [threading.Thread(target=worker, args=(thread,), daemon=True) for thread in range(threads)]
    for member in team:
        member.start()
    try:
        for member in team:
            while member.is_alive():
                member.join(0.1)
                if progress is not None and count:
                    progress(float(total[handed_out] / total[count]))
    except BaseException:
        counter.next(_STOP)
        for member in team:
            member.join()
        raise
    if errors:
        raise errors[0]
    if progress is not None:
        progress(1.0)
