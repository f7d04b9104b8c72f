"""Tasks, distributed over processes and threads: each takes the next when it has finished one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.parallel import team

if TYPE_CHECKING:
    from outcore._core import Counter

STOP = 1 << 48  # added to a counter, it leaves no tasks to any process

Progress = Callable[[float], None]  # called with the fraction that is done


def run_tasks(
    counter: Counter,
    cost: Sequence[float] | np.ndarray[Any, Any],
    threads: int,
    work: Callable[[int, int, int], None],
    progress: Progress | None = None,
    chunk: int = 4,
) -> None:
    """Does this process's part of tasks 0 .. len(cost): `work(thread, first, last)` in `threads` threads, while the
    calling thread reports the fraction of the cost handed out so far, over all processes.

    The counter must have been reset. Raises the first error of this process's threads, or Ctrl-C, after its threads
    have stopped; no process gets further tasks then.
    """
    total = np.concatenate([[0.0], np.cumsum(cost, dtype=float)])
    count = len(total) - 1
    handed_out = 0

    def take(thread: int, stopped: team.Stopped) -> None:
        nonlocal handed_out
        while not stopped() and (first := counter.next(chunk)) < count:
            handed_out = min(first + chunk, count)
            work(thread, first, min(first + chunk, count))

    def watch() -> None:
        if progress is not None and count:
            progress(float(total[handed_out] / total[count]))

    team.run(threads, take, watch=watch, stop=lambda: counter.next(STOP))
    if progress is not None:
        progress(1.0)


def tasks_of(counter: Counter, count: int) -> Iterator[int]:
    """The tasks, among 0 .. count, that this process gets, one whenever the caller asks."""
    while (task := counter.next()) < count:
        yield task


def uneven(costs: Sequence[float], workers: int) -> float:
    """How much longer the last of some workers takes than their mean, if each takes the next task when it has done
    one: tasks in the order of `costs`, whose sum is not zero."""
    total = float(sum(costs))
    if workers >= len(costs):
        return float(max(costs)) * workers / total
    ends = [0.0] * workers
    for cost in costs:
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends) * workers / total


def each_task(
    counter: Counter,
    count: int,
    threads: int,
    work: Callable[[int, int], None],
    progress: Progress | None = None,
) -> None:
    """Calls `work(thread, task)` for the tasks, among 0 .. count, that this process gets, one at a time. The
    calling thread is one of the `threads`; after each of its own tasks it reports the fraction handed out, over all
    processes, and 1 at the end. Everything else is as for `run_tasks`."""

    def do(thread: int, task: int) -> None:
        work(thread, task)
        if progress is not None and thread == 0:
            progress((task + 1) / count)

    team.each(tasks_of(counter, count), threads, do, stop=lambda: counter.next(STOP))
    if progress is not None:
        progress(1.0)
