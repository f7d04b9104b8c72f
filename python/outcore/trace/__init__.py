"""The I/O trace of this process: counters that are always on, events on demand.

`start()` begins recording events, `save()` writes those of all processes into one file that opens in Perfetto
(https://ui.perfetto.dev) and that `outcore report` reads.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outcore import _core
from outcore.base.errors import OutcoreError, as_outcore_error
from outcore.trace import report, tracefile

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

EVENT: np.dtype[np.void] = np.dtype(_core.trace_event_fields())
"""One operation: start_ns, end_ns, waited_ns (CLOCK_MONOTONIC), offset, bytes, file, thread, op (position in
`report.OPERATIONS`), layer (position in `report.LAYERS`), failed, sequential."""

DEFAULT_CAPACITY = 1 << 18


def start(capacity: int = DEFAULT_CAPACITY) -> None:
    """Records events from now on, at most `capacity` (64 bytes each); further ones are counted as dropped.

    Discards events recorded before. Raises OutcoreError (ENOMEM) if there is no memory for the buffer.
    """
    _core.trace_enable_events(capacity)


def stop() -> None:
    """Stops recording events; those recorded stay."""
    _core.trace_disable_events()


def events() -> NDArray[np.void]:
    """The events recorded so far, of type EVENT, in the order in which operations completed."""
    return np.frombuffer(_core.trace_events(), EVENT)


def dropped() -> int:
    """Number of events since `start` that were lost because the buffer was full."""
    return _core.trace_dropped_events()


def snapshot() -> dict[str, Any]:
    """The counters: `["layers"][layer][operation][counter]`, and the busy times of the device."""
    return _core.trace_snapshot()


def reset() -> None:
    """Sets all counters to zero."""
    _core.trace_reset()


class Operation:
    """An operation that is being timed; set `bytes` to the number of bytes that it moved."""

    bytes = 0


@contextmanager
def timed(operation: str, path: str | os.PathLike[str] = "", offset: int = 0) -> Iterator[Operation]:
    """Records I/O done in Python as one blocking operation of the file layer.

    >>> with timed("read", path) as operation:
    ...     operation.bytes = len(Path(path).read_bytes())
    """
    if operation not in report.OPERATIONS or operation in report.ASYNCHRONOUS:
        raise ValueError(f"not a blocking operation: {operation!r}")
    current, failed, start_ns = Operation(), True, _core.trace_now_ns()
    try:
        yield current
        failed = False
    finally:
        _core.trace_record(
            "file",
            operation,
            start_ns,
            _core.trace_now_ns(),
            path=os.fspath(path),
            offset=offset,
            bytes=current.bytes,
            failed=failed,
        )


def save(
    path: str | os.PathLike[str],
    comm: Comm | None = None,
    *,
    run_seconds: float | None = None,
    raw: report.RawRates | None = None,
) -> report.Report | None:
    """Writes the events and counters of all processes of `comm` into one trace file. Collective.

    `run_seconds`: time of the run; without it the time since this process loaded Outcore. Returns the report at
    rank 0, None elsewhere. All processes raise the same OutcoreError if the file cannot be written.
    """
    if run_seconds is None:
        taken = snapshot()
        run_seconds = (taken["taken_ns"] - taken["process_start_ns"]) * 1e-9
    gathered = report.gather(comm, run_seconds, raw)
    mine = _of_this_process(comm)
    everyone = [mine] if comm is None else comm.gather(mine, root=0)
    failure: OutcoreError | None = None
    if gathered is not None:
        try:
            tracefile.write(path, gathered, everyone or [])
        except Exception as error:
            failure = as_outcore_error(error, "write the trace")
    if comm is not None:
        failure = comm.bcast(failure, root=0)
    if failure is not None:
        raise failure
    return gathered


def _of_this_process(comm: Comm | None) -> tracefile.ProcessEvents:
    recorded = events()
    files = {int(number): _core.trace_file_name(int(number)) for number in np.unique(recorded["file"])}
    rank = 0 if comm is None else comm.Get_rank()
    return tracefile.ProcessEvents(rank, recorded, files, _clock_offset_ns(comm))


def _clock_offset_ns(comm: Comm | None) -> int:
    """How far the clock of this process is ahead of that of rank 0.

    Processes on one kernel share CLOCK_MONOTONIC: exactly 0. Other processes read their clocks just after a
    barrier, and take the median of several differences; its error is as large as the barrier is long.
    """
    if comm is None:
        return 0
    kernel = _kernel()
    kernels = comm.allgather(kernel)
    if len(set(kernels)) == 1:
        return 0
    differences = []
    for _ in range(9):
        comm.Barrier()
        now = _core.trace_now_ns()
        differences.append(now - comm.bcast(now, root=0))
    return 0 if kernel == kernels[0] else int(statistics.median(differences))


def _kernel() -> str:
    """A name for the running kernel, and so for its clock."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
