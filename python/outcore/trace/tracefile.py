"""Trace files: Chrome's trace event format, which Perfetto opens, with the counters of the run inside.

    {"displayTimeUnit": "ms",
     "otherData": {"outcore": {"format": 1, "report": Report.to_dict()}},
     "traceEvents": [one event a line]}

`traceEvents` begins with metadata ("M": names of processes and threads); the rest is sorted by `ts`,
microseconds since the first event with three decimals. A process is a rank, its `pid` is rank + 1 (0
has another meaning for Perfetto); `tid` are unique in the file. Blocking operations are complete events
("X"); asynchronous ones are pairs "b" and "e" of the same `cat`, `id`, `name` and `pid`. Complete events
of a thread must nest: an event that overlaps another without lying inside it is written as a pair. `cat` is
the layer, `name` the operation. "X" and "b" events have `args`: bytes, offset, file, waited_ns, failed,
sequential.

Source: the Trace Event Format description of the Chromium project, and the behaviour of Perfetto's importer.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from outcore.base.checked import FormatError, integer, item, number, text
from outcore.base.errors import OutcoreError
from outcore.base.metadata import parsed
from outcore.base.plain_file import read_bytes, written
from outcore.trace.report import ASYNCHRONOUS, LAYERS, OPERATIONS, Report

FORMAT = 1
MAX_BYTES = 4 << 30  # of a file that is read

REQUEST = np.dtype(
    [
        ("rank", "i8"),
        ("layer", "u1"),  # position in LAYERS
        ("op", "u1"),  # position in OPERATIONS
        ("start_ns", "i8"),  # since the first event
        ("end_ns", "i8"),
        ("waited_ns", "i8"),
        ("offset", "i8"),
        ("bytes", "i8"),
        ("failed", "?"),
        ("sequential", "?"),
    ]
)
"""One operation as read from a trace file."""

_COMPLETE, _BEGIN, _END = 1, 0, 2  # order among events of the same moment: a pair may have no duration


@dataclass(frozen=True, slots=True)
class ProcessEvents:
    """Events (of type trace.EVENT) of one process, the names of their files, and how far its clock is ahead of
    that of rank 0."""

    rank: int
    events: NDArray[np.void]
    files: dict[int, str]
    clock_offset_ns: int = 0


@dataclass(frozen=True, slots=True)
class TraceFile:
    """The contents of a trace file. `events` are of type REQUEST, sorted by start."""

    report: Report
    events: NDArray[np.void]


def write(path: str | os.PathLike[str], report: Report, processes: Sequence[ProcessEvents]) -> None:
    """Writes a trace file; if it fails, the old file stays. Raises OutcoreError."""
    try:
        with written(path) as file:
            _write(file, report, processes)
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, "write trace file", path=path) from error


def _write(file: TextIO, report: Report, processes: Sequence[ProcessEvents]) -> None:
    other = {"outcore": {"format": FORMAT, "report": report.to_dict()}}
    # In this order: Perfetto wants the unit before the events, and otherData inside the first block it reads.
    file.write(f'{{"displayTimeUnit": "ms",\n"otherData": {json.dumps(other)},\n"traceEvents": [')
    separator = "\n"
    for line in _lines(report, processes):
        file.write(separator + line)
        separator = ",\n"
    file.write("\n]}\n")


def _lines(report: Report, processes: Sequence[ProcessEvents]) -> Iterator[str]:
    threads = [
        (process.rank, int(thread)) for process in processes for thread in np.unique(process.events["thread"])
    ]
    tids = {key: tid for tid, key in enumerate(threads, start=len(report.processes) + 1)}
    for counters in report.processes:
        pid = counters.rank + 1
        name = f"rank {counters.rank} ({counters.node})"
        yield _metadata("process_name", pid, pid, {"name": name})
        yield _metadata("process_sort_index", pid, pid, {"sort_index": counters.rank})
    for (rank, thread), tid in tids.items():
        yield _metadata(
            "thread_name", rank + 1, tid, {"name": f"thread {thread}" if thread else "main thread"}
        )
    yield from _event_lines(processes, tids)


def _metadata(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args})


def _event_lines(processes: Sequence[ProcessEvents], tids: dict[tuple[int, int], int]) -> Iterator[str]:
    """The lines of all events of all processes, sorted by time."""
    events = [[_Event(*event) for event in process.events.tolist()] for process in processes]
    names = [{file: json.dumps(name) for file, name in process.files.items()} for process in processes]
    for moment_ns, phase, minus_duration_ns, owner, index in _schedule(processes):
        event, rank = events[owner][index], processes[owner].rank
        common = (
            f'"cat":"{LAYERS[event.layer]}","name":"{OPERATIONS[event.op]}","pid":{rank + 1},'
            f'"tid":{tids[rank, event.thread]},"ts":{_microseconds(moment_ns)}'
        )
        args = f'"args":{event.args(names[owner][event.file])}'
        if phase == _COMPLETE:
            yield f'{{"ph":"X",{common},"dur":{_microseconds(-minus_duration_ns)},{args}}}'
        elif phase == _BEGIN:
            yield f'{{"ph":"b",{common},"id":"{rank}.{index}",{args}}}'
        else:
            yield f'{{"ph":"e",{common},"id":"{rank}.{index}"}}'


def _schedule(processes: Sequence[ProcessEvents]) -> Iterator[list[int]]:
    """(moment_ns, phase, -duration_ns, process, event) of each line, in order; moments count from the first."""
    parts = [np.empty((5, 0), np.int64)]
    for owner, process in enumerate(processes):
        start = process.events["start_ns"].astype(np.int64) - process.clock_offset_ns
        end = np.maximum(process.events["end_ns"].astype(np.int64) - process.clock_offset_ns, start)
        complete = _complete(process.events, start, end)
        for phase, moment, chosen in (
            (_BEGIN, start, ~complete),
            (_COMPLETE, start, complete),
            (_END, end, ~complete),
        ):
            index = np.flatnonzero(chosen)
            same = np.ones_like(index)
            parts.append(np.stack([moment[index], phase * same, (start - end)[index], owner * same, index]))
    lines = np.concatenate(parts, axis=1)
    lines = lines[:, np.lexsort((lines[2], lines[1], lines[0]))]
    if lines.size:
        lines[0] -= lines[0, 0]
    yield from lines.T.tolist()


def _complete(
    events: NDArray[np.void], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which events become complete events: blocking ones that nest with the others of their thread."""
    result = np.zeros(len(events), bool)
    asynchronous = np.isin(events["op"], [OPERATIONS.index(op) for op in ASYNCHRONOUS])
    blocking = np.flatnonzero(~asynchronous)
    order = blocking[np.lexsort((-end[blocking], start[blocking], events["thread"][blocking]))]
    enclosing: list[int] = []  # ends of the events that the current one lies in
    thread = -1
    for index in order.tolist():
        if thread != events["thread"][index]:
            thread, enclosing = events["thread"][index], []
        while enclosing and enclosing[-1] <= start[index]:
            enclosing.pop()
        if not enclosing or end[index] <= enclosing[-1]:
            enclosing.append(end[index])
            result[index] = True
    return result


class _Event(NamedTuple):
    """The fields of trace.EVENT, in their order."""

    start_ns: int
    end_ns: int
    waited_ns: int
    offset: int
    bytes: int
    file: int
    thread: int
    op: int
    layer: int
    failed: bool
    sequential: bool

    def args(self, file: str) -> str:
        return (
            f'{{"bytes":{self.bytes},"offset":{self.offset},"file":{file},"waited_ns":{self.waited_ns},'
            f'"failed":{str(self.failed).lower()},"sequential":{str(self.sequential).lower()}}}'
        )


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def read(path: str | os.PathLike[str]) -> TraceFile:
    """Reads a trace file that `write` wrote. Raises OutcoreError: missing, unreadable, damaged, foreign."""
    try:
        data = parsed(read_bytes(path, "read trace file", MAX_BYTES))
        outcore = _outcore(data)
        report = Report.from_dict(item(outcore, "report", "otherData.outcore"), "otherData.outcore.report")
        return TraceFile(report, _requests(item(data, "traceEvents", "the file")))
    except FormatError as error:
        raise OutcoreError(errno.EINVAL, "read trace file", path=path, detail=str(error)) from error


def _outcore(data: object) -> dict[str, Any]:
    other = data.get("otherData") if isinstance(data, dict) else None
    if not isinstance(other, dict) or "outcore" not in other:
        raise FormatError("not a trace of Outcore: otherData.outcore is missing")
    outcore: dict[str, Any] = other["outcore"]
    found = item(outcore, "format", "otherData.outcore")
    if found != FORMAT:
        raise FormatError(f"otherData.outcore.format is {found!r}, this version reads {FORMAT}")
    return outcore


def _requests(data: object) -> NDArray[np.void]:
    """The events of type REQUEST; begins and ends of asynchronous operations must pair."""
    if not isinstance(data, list):
        raise FormatError("traceEvents is not a list")
    rows: list[list[Any]] = []
    begun: dict[str, tuple[str, list[Any]]] = {}  # by id: where, and its row
    for position, event in enumerate(data):
        where = f"traceEvents[{position}]"
        phase = item(event, "ph", where)
        if phase == "M":
            continue
        if phase not in ("X", "b", "e"):
            raise FormatError(f"{where}.ph is unknown: {phase!r}")
        moment_ns = _nanoseconds(event, "ts", where)
        if phase == "e":
            identity = text(event, "id", where)
            if identity not in begun:
                raise FormatError(f"{where} ends what has not begun: id {identity!r}")
            begun.pop(identity)[1][_END_FIELD] = moment_ns
            continue
        row = _row(event, moment_ns, where)
        rows.append(row)
        if phase == "X":
            row[_END_FIELD] = moment_ns + _nanoseconds(event, "dur", where)
        else:
            identity = text(event, "id", where)
            if identity in begun:
                raise FormatError(f"{where} begins what is under way: id {identity!r}")
            begun[identity] = where, row
    if begun:
        identity, (where, _) = next(iter(begun.items()))
        raise FormatError(f"{where} never ends: id {identity!r}")
    return np.array([tuple(row) for row in rows], REQUEST)


_END_FIELD = (REQUEST.names or ()).index("end_ns")


def _row(event: object, start_ns: int, where: str) -> list[Any]:
    """The fields of REQUEST; the end is not known yet."""
    args = item(event, "args", where)
    numbers = [
        integer(args, name, f"{where}.args", least=-(2**63)) for name in ("waited_ns", "offset", "bytes")
    ]
    flags = [item(args, name, f"{where}.args") is True for name in ("failed", "sequential")]
    layer = _position(event, "cat", LAYERS, where)
    operation = _position(event, "name", OPERATIONS, where)
    return [integer(event, "pid", where, least=1) - 1, layer, operation, start_ns, 0, *numbers, *flags]


def _position(event: object, key: str, names: tuple[str, ...], where: str) -> int:
    name = item(event, key, where)
    if name not in names:
        raise FormatError(f"{where}.{key} is unknown: {name!r}")
    return names.index(name)


def _nanoseconds(event: object, key: str, where: str) -> int:
    return round(number(event, key, where) * 1000)
