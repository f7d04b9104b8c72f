"""Pieces of Markdown for the reports of studies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from outcore.study.cases import Case
from outcore.study.runner import Outcome
from outcore.trace.report import OPERATIONS, READS, SIZE_CLASSES, WRITES
from outcore.trace.tables import size_class_name, volume


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def cut(now: float, before: float) -> str:
    """The change from `before` to `now`, in per cent."""
    return "-" if before <= 0 else f"{100 * (now / before - 1):+.0f} %"


def io_summary(outcome: Outcome[Case]) -> str:
    """A table of the program's requests: operation, count, time, volume, share of I/O time and of run time."""
    report = outcome.report
    groups: dict[str, tuple[str, ...]] = {"read": READS, "write": WRITES}
    groups |= {op: (op,) for op in OPERATIONS if op not in (*READS, *WRITES, "wait")}
    run = report.run_seconds * len(report.processes)
    rows = []
    for name, operations in groups.items():
        total = report.total("file", operations)
        if total.count:
            seconds = sum(p.seconds("file", op) for p in report.processes for op in operations)
            moved = volume(total.bytes) if total.bytes else ""
            share = percent(seconds / outcome.io_seconds, 2) if outcome.io_seconds else ""
            rows.append([name, str(total.count), f"{seconds:.3f}", moved, share, percent(seconds / run, 2)])
    moved = volume(report.total("file", (*READS, *WRITES)).bytes)
    rows.append(["all", "", f"{outcome.io_seconds:.3f}", moved, "100.00 %", percent(outcome.io_share, 2)])
    return table(["operation", "count", "seconds", "volume", "% of I/O time", "% of run time"], rows)


def size_classes(outcome: Outcome[Case]) -> str:
    """A table of numbers of reads and writes of the program by size."""
    reads, writes = (outcome.report.total("file", operations) for operations in (READS, WRITES))
    rows = [
        [
            size_class_name(i),
            str(reads.by_size[i]),
            volume(reads.bytes_by_size[i]),
            str(writes.by_size[i]),
            volume(writes.bytes_by_size[i]),
        ]
        for i in range(SIZE_CLASSES)
        if reads.by_size[i] + writes.by_size[i]
    ]
    return table(["size", "reads", "bytes read", "writes", "bytes written"], rows)
