"""Tasks distributed over processes and threads as they finish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import interrupts

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

    The counter must have been reset. Raises the first error of this process's threads, or Ctrl-C, after its threads
    have stopped, and leaves nothing to those of all processes.
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

    with interrupts.held() as interrupted:
        team = [threading.Thread(target=worker, args=(thread,), daemon=True) for thread in range(threads)]
        try:
            for member in team:
                member.start()
            for member in team:
                while member.is_alive() and not interrupted():
                    member.join(0.1)
                    if progress is not None and count:
                        progress(float(total[handed_out] / total[count]))
            if interrupted():
                counter.next(_STOP)
        except BaseException:
            counter.next(_STOP)
            raise
        finally:
            for member in team:
                if member.ident is not None:
                    member.join()
    if errors:
        raise errors[0]
    if progress is not None:
        progress(1.0)
