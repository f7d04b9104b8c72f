"""Processes at work together: dynamic distribution of tasks, light waiting, and errors that all of them raise."""

from __future__ import annotations

import atexit
import errno
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.errors import OutcoreError

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm, Request, Win

_STOP = 1 << 48  # far beyond any number of tasks


def wait(request: Request) -> None:
    """Completes an MPI request without burning the core that another process may need: MPI's own waits spin."""
    pause_s = 20e-6
    while not request.Test():
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 1e-3)


def raise_together(comm: Intracomm | None, error: BaseException | None) -> None:
    """Collective: if any process comes with an error, all raise that of the lowest rank that has one.

    Its attribute `collective` is then true, so that nobody tells the others again.
    """
    if comm is None:
        if error is not None:
            raise error
        return
    wait(comm.Ibarrier())  # arrive without spinning, then exchange
    first = next((entry for entry in comm.allgather(_portable(error)) if entry is not None), None)
    if first is not None:
        first.collective = True
        raise first from error


def is_collective(error: BaseException) -> bool:
    """True if all processes have raised this error."""
    return getattr(error, "collective", False)


def _portable(error: BaseException | None) -> OutcoreError | None:
    if error is None or isinstance(error, OutcoreError):
        return error
    return OutcoreError(getattr(error, "errno", None) or errno.EIO, type(error).__name__, detail=str(error))


@cache
def _window_key() -> int:
    from mpi4py import MPI

    return MPI.Comm.Create_keyval(delete_fn=lambda _comm, _key, window: _free(window))


def _window(comm: Intracomm) -> Win:
    """The window of a communicator: one, made when first needed (collective), freed with it or at exit."""
    from mpi4py import MPI

    present = comm.Get_attr(_window_key())
    if isinstance(present, MPI.Win):
        return present
    window = MPI.Win.Allocate(8 if comm.rank == 0 else 0, 8, comm=comm)
    window.Lock_all(MPI.MODE_NOCHECK)
    comm.Set_attr(_window_key(), window)
    atexit.register(_free, window)
    return window


def _free(window: Win) -> None:
    if window:
        window.Unlock_all()
        window.Free()


class SharedCounter:
    """A number that processes and threads count up together, for dynamic distribution. Making and resetting it
    is collective; `take` and `stop` are not. Any thread may call them (MPI_THREAD_MULTIPLE). The counters of a
    communicator share one place: use one at a time."""

    def __init__(self, comm: Intracomm | None) -> None:
        self._comm = comm
        self._lock = threading.Lock()
        self._value = 0
        self._window = None if comm is None else _window(comm)
        self.reset()

    def take(self, count: int) -> int:
        """Adds `count` and returns the value before."""
        if self._window is None:
            with self._lock:
                value = self._value
                self._value += count
                return value
        from mpi4py import MPI

        before = np.zeros(1, np.int64)
        with self._lock:
            self._window.Fetch_and_op(np.array([count], np.int64), before, 0, 0, MPI.SUM)
            self._window.Flush(0)
        return int(before[0])

    def stop(self) -> None:
        """Lets everyone who takes from now on find nothing left."""
        self.take(_STOP)

    def reset(self) -> None:
        """Back to zero. Collective."""
        if self._comm is None or self._window is None:
            self._value = 0
            return
        from mpi4py import MPI

        wait(self._comm.Ibarrier())
        if self._comm.rank == 0:
            self._window.Fetch_and_op(np.zeros(1, np.int64), np.zeros(1, np.int64), 0, 0, MPI.REPLACE)
            self._window.Flush(0)
        wait(self._comm.Ibarrier())


def run_tasks(
    counter: SharedCounter,
    cost: Sequence[float] | np.ndarray[Any, Any],
    threads: int,
    work: Callable[[int, int, int], None],
    progress: Callable[[float], None] | None = None,
    chunk: int = 4,
) -> None:
    """This process's part in working off tasks 0 .. len(cost): `work(thread, first, last)` in `threads` threads,
    while the calling thread reports the fraction of the cost handed out so far, over all processes.

    The counter must have been reset. Raises the first error of this process's threads, after stopping those of
    all processes.
    """
    total = np.concatenate([[0.0], np.cumsum(cost, dtype=float)])
    count = len(total) - 1
    handed_out = 0
    errors: list[BaseException] = []

    def worker(thread: int) -> None:
        nonlocal handed_out
        try:
            while (first := counter.take(chunk)) < count:
                handed_out = min(first + chunk, count)
                work(thread, first, min(first + chunk, count))
        except BaseException as error:
            errors.append(error)
            counter.stop()

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
        counter.stop()
        for member in team:
            member.join()
        raise
    if errors:
        raise errors[0]
    if progress is not None:
        progress(1.0)
