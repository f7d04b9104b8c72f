"""The I/O of a run: counters of all processes, and the quantities of the report.

With P processes, a run of T seconds, and two layers (`file`: requests of the program; `device`: requests to
the disk after combining, splitting and reading ahead):

- seconds of an operation: at the file layer the time in which it blocked callers, at the device
  layer the time from the start of a request to its completion; both summed over requests, threads and
  processes. Time blocked in `wait` belongs to the asynchronous operation waited for; the row `wait` only
  counts the calls.
- I/O time: the sum of the seconds of all operations of the layer. "% of I/O time" is the share in it.
- "% of run time": seconds / (P T). At the file layer it is the share of the run in which the program
  stood still, for a program with one thread a process. At the device layer, 100 % means one request
  always under way at every process; with overlapping requests it can exceed 100 %.
- max/mean: the largest seconds of a process, over the mean of all processes.
- size classes: requests by the bytes they moved; bounds are exclusive upper ones.
- sequential: share of requests that start where the previous one of their kind on their file ended.
- asynchronous operations: seconds under way from submission to completion; waiting is the part in which
  the caller was blocked, overlapped is the rest.
- rate of the device: volume / the time in which at least one request was under way, at the process where
  this time was longest. If it exceeds the raw rate, the page cache served requests, and the report says so.
- rate of the program: volume / (blocked seconds / P). Overlap with computing can make it larger than the
  rate of any device.
- raw rate: the rate measured with direct I/O on one node before or after the run, times the number of
  nodes.

Source of the form: the Pablo-based characterisation of the disk-based Hartree-Fock code in the PASSION study.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outcore import _core
from outcore.base import html
from outcore.base.checked import FormatError, integer, integers, item, mapping, number, text
from outcore.base.sizes import in_words

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

    from outcore.base.console import Printer

LAYERS = _core.trace_layers()
OPERATIONS = _core.trace_ops()
READS, WRITES = ("read", "read_async"), ("write", "write_async")
TRANSFERS = READS + WRITES
ASYNCHRONOUS = ("read_async", "write_async")
SIZE_CLASS_BOUNDS = _core.trace_size_class_bounds()
SIZE_CLASSES = len(SIZE_CLASS_BOUNDS) + 1
_NS = 1e-9


@dataclass(frozen=True, slots=True)
class Counter:
    """Totals of one operation; the fields of the native counter."""

    count: int = 0
    failed: int = 0
    nanoseconds: int = 0
    waited_ns: int = 0
    bytes: int = 0
    sequential: int = 0
    by_size: tuple[int, ...] = (0,) * SIZE_CLASSES
    bytes_by_size: tuple[int, ...] = (0,) * SIZE_CLASSES

    def __add__(self, other: Counter) -> Counter:
        return Counter(
            self.count + other.count,
            self.failed + other.failed,
            self.nanoseconds + other.nanoseconds,
            self.waited_ns + other.waited_ns,
            self.bytes + other.bytes,
            self.sequential + other.sequential,
            tuple(a + b for a, b in zip(self.by_size, other.by_size, strict=True)),
            tuple(a + b for a, b in zip(self.bytes_by_size, other.bytes_by_size, strict=True)),
        )

    @classmethod
    def from_dict(cls, data: object, where: str) -> Counter:
        values = {name: integer(data, name, where) for name in _SCALARS}
        arrays = {name: integers(data, name, SIZE_CLASSES, where) for name in ("by_size", "bytes_by_size")}
        return cls(**values, **arrays)  # type: ignore[arg-type]


_SCALARS = ("count", "failed", "nanoseconds", "waited_ns", "bytes", "sequential")


@dataclass(frozen=True, slots=True)
class RawRates:
    """The rates of the disk: bytes per second of large requests with direct I/O."""

    read_bytes_per_s: float
    write_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class ProcessCounters:
    """Counters of one process. Operations that never happened may be absent from `layers`."""

    rank: int
    node: str
    run_seconds: float
    layers: Mapping[str, Mapping[str, Counter]]
    device_read_busy_ns: int = 0
    device_write_busy_ns: int = 0
    dropped_events: int = 0
    emulated: str = ""  # the storage that the engine emulated; empty: none

    def counter(self, layer: str, operation: str) -> Counter:
        return self.layers.get(layer, {}).get(operation, Counter())

    def seconds(self, layer: str, operation: str) -> float:
        """Time of an operation as the report defines it for the layer."""
        counter = self.counter(layer, operation)
        return (counter.waited_ns if layer == "file" else counter.nanoseconds) * _NS

    @classmethod
    def of_this_process(cls, rank: int, run_seconds: float) -> ProcessCounters:
        taken = _core.trace_snapshot()
        layers = {
            layer: {
                name: Counter.from_dict(counter, name)
                for name, counter in operations.items()
                if counter["count"] or counter["waited_ns"]
            }
            for layer, operations in taken["layers"].items()
        }
        return cls(
            rank,
            socket.gethostname(),
            run_seconds,
            layers,
            taken["device_read_busy_ns"],
            taken["device_write_busy_ns"],
            _core.trace_dropped_events(),
            _core.emulation(),
        )

    @classmethod
    def from_dict(cls, data: object, where: str) -> ProcessCounters:
        layers = {
            layer: {
                name: Counter.from_dict(counter, f"{where}.layers.{layer}.{name}")
                for name, counter in mapping(operations, OPERATIONS, f"{where}.layers.{layer}").items()
            }
            for layer, operations in mapping(item(data, "layers", where), LAYERS, f"{where}.layers").items()
        }
        return cls(
            integer(data, "rank", where),
            text(data, "node", where),
            number(data, "run_seconds", where),
            layers,
            integer(data, "device_read_busy_ns", where),
            integer(data, "device_write_busy_ns", where),
            integer(data, "dropped_events", where),
            text(data, "emulated", where) if isinstance(data, dict) and "emulated" in data else "",
        )


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One line of the table of a layer; `seconds` and shares are None for `wait`."""

    operation: str
    count: int
    failed: int
    seconds: float | None
    bytes: int
    io_share: float | None
    run_share: float | None
    max_over_mean: float | None


@dataclass(frozen=True, slots=True)
class AsyncRow:
    """Time of asynchronous operations under way, and how it divides."""

    layer: str
    operation: str
    count: int
    seconds: float
    waited_seconds: float

    @property
    def overlapped_seconds(self) -> float:
        return max(self.seconds - self.waited_seconds, 0.0)


@dataclass(frozen=True, slots=True)
class RateRow:
    """Volume moved in a time, and the raw rate of the disk if it is known."""

    layer: str
    kind: str  # "read" or "write"
    bytes: int
    seconds: float
    raw_bytes_per_s: float | None

    @property
    def bytes_per_s(self) -> float | None:
        return self.bytes / self.seconds if self.seconds > 0 else None

    @property
    def raw_share(self) -> float | None:
        rate = self.bytes_per_s
        return rate / self.raw_bytes_per_s if rate is not None and self.raw_bytes_per_s else None


@dataclass(frozen=True)
class Report:
    """Counters of all processes of a run, ordered by rank. The docstring of the module defines the derived
    quantities."""

    processes: tuple[ProcessCounters, ...]
    raw: RawRates | None = None
    run_seconds: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "run_seconds", max(p.run_seconds for p in self.processes))

    @property
    def emulated(self) -> str:
        """The storage that any process emulated; empty: all used the storage of the machine."""
        return "; ".join(dict.fromkeys(process.emulated for process in self.processes if process.emulated))

    def total(self, layer: str, operations: str | Iterable[str]) -> Counter:
        """Sum over processes, and over operations if several are named."""
        names = (operations,) if isinstance(operations, str) else operations
        return sum((p.counter(layer, name) for name in names for p in self.processes), Counter())

    def io_seconds(self, layer: str) -> float:
        """I/O time of a layer, summed over processes."""
        return sum(p.seconds(layer, op) for p in self.processes for op in OPERATIONS if op != "wait")

    def rows(self, layer: str) -> list[OperationRow]:
        """The table of a layer: operations that happened."""
        return [self._row(layer, (op,), op) for op in OPERATIONS if self.total(layer, op).count]

    def total_row(self, layer: str) -> OperationRow:
        """The last line of the table: all operations except waits; bytes are those of reads and writes."""
        return self._row(layer, tuple(op for op in OPERATIONS if op != "wait"), "total")

    def _row(self, layer: str, operations: tuple[str, ...], name: str) -> OperationRow:
        total = self.total(layer, operations)
        moved = self.total(layer, TRANSFERS).bytes if name == "total" else total.bytes
        if name == "wait":
            return OperationRow(name, total.count, total.failed, None, moved, None, None, None)
        each = [sum(p.seconds(layer, op) for op in operations) for p in self.processes]
        seconds = sum(each)
        return OperationRow(
            name,
            total.count,
            total.failed,
            seconds,
            moved,
            _ratio(seconds, self.io_seconds(layer)),
            _ratio(seconds, self.run_seconds * len(each)),
            _ratio(max(each), seconds / len(each)) if len(each) > 1 else None,
        )

    def async_rows(self) -> list[AsyncRow]:
        """Time waited and time overlapped, for asynchronous operations that happened."""
        totals = ((layer, op, self.total(layer, op)) for layer in LAYERS for op in ASYNCHRONOUS)
        return [
            AsyncRow(layer, op, total.count, total.nanoseconds * _NS, total.waited_ns * _NS)
            for layer, op, total in totals
            if total.count
        ]

    def rates(self) -> list[RateRow]:
        """Bandwidth of the device and of the program, for reads and writes, if there were any."""
        nodes = len({p.node for p in self.processes})
        rows = []
        for kind, operations in (("read", READS), ("write", WRITES)):
            raw = getattr(self.raw, f"{kind}_bytes_per_s") * nodes if self.raw else None
            busy = max(getattr(p, f"device_{kind}_busy_ns") for p in self.processes) * _NS
            blocked = sum(p.seconds("file", op) for p in self.processes for op in operations)
            rows.append(RateRow("device", kind, self.total("device", operations).bytes, busy, raw))
            rows.append(
                RateRow(
                    "file", kind, self.total("file", operations).bytes, blocked / len(self.processes), raw
                )
            )
        return sorted((row for row in rows if row.bytes), key=lambda row: row.layer)

    def render(self, console: Printer, *, full: bool = True) -> None:
        """Prints all tables; without `full` a few lines."""
        from outcore.trace.tables import render, summarize

        (render if full else summarize)(self, console)

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{layer} {row.operation.replace('_', ' ')}",
                row.count,
                in_words(row.bytes),
                "" if row.seconds is None else f"{row.seconds:.3f}",
                "" if row.run_share is None else f"{row.run_share:.1%}",
            )
            for layer in LAYERS
            for row in self.rows(layer)
        ]
        count = len(self.processes)
        return html.table(
            f"I/O of {count} {'process' if count == 1 else 'processes'}, {self.run_seconds:.3g} s"
            + (f", emulated: {self.emulated}" if self.emulated else ""),
            ("operation", "count", "size", "seconds", "of the run"),
            rows,
        )

    def save(self, path: str | Path) -> None:
        """Writes a trace file without events, which `load` and `outcore report` read."""
        from outcore.trace import tracefile

        tracefile.write(path, self, [])

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Reads the report from a trace file. Raises OutcoreError if it is missing, damaged or foreign."""
        from outcore.trace import tracefile

        return tracefile.read(path).report

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "size_class_bounds": list(SIZE_CLASS_BOUNDS),
            "raw": asdict(self.raw) if self.raw else None,
            "processes": [asdict(process) for process in self.processes],
        }

    @classmethod
    def from_dict(cls, data: object, where: str) -> Report:
        """A report from `to_dict`. Raises FormatError."""
        if item(data, "size_class_bounds", where) != list(SIZE_CLASS_BOUNDS):
            raise FormatError(f"{where}.size_class_bounds is not {list(SIZE_CLASS_BOUNDS)}")
        processes = item(data, "processes", where)
        if not isinstance(processes, list) or not processes:
            raise FormatError(f"{where}.processes is not a list of at least one")
        raw = item(data, "raw", where)
        return cls(
            tuple(ProcessCounters.from_dict(p, f"{where}.processes[{i}]") for i, p in enumerate(processes)),
            raw
            if raw is None
            else RawRates(
                number(raw, "read_bytes_per_s", f"{where}.raw"),
                number(raw, "write_bytes_per_s", f"{where}.raw"),
            ),
        )


def gather(comm: Comm | None, run_seconds: float, raw: RawRates | None = None) -> Report | None:
    """The report of all processes of `comm`, at its rank 0; None at the others. Collective.

    `comm` None: this process alone. `run_seconds` is the time of the run at this process; the longest counts.
    """
    if comm is None:
        return Report((ProcessCounters.of_this_process(0, run_seconds),), raw)
    mine = ProcessCounters.of_this_process(comm.Get_rank(), run_seconds)
    everyone = comm.gather(mine, root=0)
    return None if everyone is None else Report(tuple(everyone), raw)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
