"""The report as text: tables in the form that studies of I/O in quantum chemistry have used."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from outcore.trace.report import LAYERS, READS, SIZE_CLASS_BOUNDS, SIZE_CLASSES, WRITES, OperationRow, Report

_TITLES = {
    "file": "File layer: what the program asked for",
    "device": "Device layer: what the disk was asked for",
}
_SECONDS = {"file": "seconds\nblocked", "device": "seconds\nunder way"}
_ASKED_BY = {"file": "program", "device": "device"}


def render(report: Report, console: Console) -> None:
    """Prints all tables of a report; those that would be empty are left out."""
    console.print(_headline(report), highlight=False)
    if report.emulated:
        console.print(f"EMULATED {report.emulated}", style="bold yellow", highlight=False)
    for layer in LAYERS:
        if report.rows(layer):
            console.print(operations_table(report, layer))
    for table in (sizes_table(report), rates_table(report), overlap_table(report)):
        if table.row_count:
            console.print(table)
    for warning in _warnings(report):
        console.print(warning, style="yellow", highlight=False)


def operations_table(report: Report, layer: str) -> Table:
    """Operation, count, seconds, bytes, % of I/O time, % of run time."""
    several = len(report.processes) > 1
    columns = ["operation", "count", _SECONDS[layer], "bytes", "% of\nI/O time", "% of\nrun time"]
    table = _table(_TITLES[layer], *columns, *(["max/mean"] if several else []))
    rows = report.rows(layer)
    for row in [*rows, report.total_row(layer)]:
        if row.operation == "total":
            table.add_section()
        table.add_row(*_operation_cells(row), *([_number(row.max_over_mean, ".2f")] if several else []))
    return table


def _operation_cells(row: OperationRow) -> list[str]:
    failed = f" ({row.failed} failed)" if row.failed else ""
    return [
        row.operation.replace("_", " "),
        f"{row.count}{failed}",
        "" if row.seconds is None else f"{row.seconds:.3f}",
        volume(row.bytes) if row.bytes else "",
        _number(row.io_share, ".1%"),
        _number(row.run_share, ".2%"),
    ]


def sizes_table(report: Report) -> Table:
    """Reads and writes by size class, and the share of sequential ones."""
    table = _table("Requests by size", "layer", "size", "reads", "bytes read", "writes", "bytes written")
    for layer in LAYERS:
        reads, writes = report.total(layer, READS), report.total(layer, WRITES)
        if not reads.count + writes.count:
            continue
        for i in range(SIZE_CLASSES):
            if reads.by_size[i] + writes.by_size[i]:
                table.add_row(
                    layer,
                    size_class_name(i),
                    str(reads.by_size[i]),
                    volume(reads.bytes_by_size[i]),
                    str(writes.by_size[i]),
                    volume(writes.bytes_by_size[i]),
                )
        shares = [f"{c.sequential / c.count:.1%}" if c.count else "" for c in (reads, writes)]
        table.add_row(layer, "sequential", shares[0], "", shares[1], "", style="italic", end_section=True)
    return table


def rates_table(report: Report) -> Table:
    """Bandwidth achieved against the raw bandwidth of the disk."""
    table = _table("Bandwidth", "of the", "operation", "bytes", "seconds", "rate", "raw rate", "% of raw")
    for row in report.rates():
        table.add_row(
            _ASKED_BY[row.layer],
            row.kind,
            volume(row.bytes),
            f"{row.seconds:.3f}",
            rate(row.bytes_per_s),
            rate(row.raw_bytes_per_s) or "not measured",
            _number(row.raw_share, ".0%"),
        )
    return table


def overlap_table(report: Report) -> Table:
    """Asynchronous operations: time waiting against time overlapped with other work."""
    table = _table(
        "Asynchronous operations", "layer", "operation", "count", "seconds", "waiting", "overlapped", "%"
    )
    for row in report.async_rows():
        table.add_row(
            row.layer,
            row.operation.replace("_", " "),
            str(row.count),
            f"{row.seconds:.3f}",
            f"{row.waited_seconds:.3f}",
            f"{row.overlapped_seconds:.3f}",
            f"{row.overlapped_seconds / row.seconds:.1%}" if row.seconds else "",
        )
    return table


def size_class_name(index: int) -> str:
    """For example "4 KiB to 64 KiB"; the upper bound is exclusive."""
    if index == 0:
        return f"below {volume(SIZE_CLASS_BOUNDS[0], 0)}"
    if index == len(SIZE_CLASS_BOUNDS):
        return f"{volume(SIZE_CLASS_BOUNDS[-1], 0)} and more"
    return f"{volume(SIZE_CLASS_BOUNDS[index - 1], 0)} to {volume(SIZE_CLASS_BOUNDS[index], 0)}"


def volume(size_bytes: float, digits: int = 2) -> str:
    """Bytes in the binary unit that suits them."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size_bytes < 1024 or unit == "TiB":
            break
        size_bytes /= 1024
    return f"{size_bytes:.{0 if unit == 'B' else digits}f} {unit}"


def rate(bytes_per_s: float | None) -> str:
    """Decimal megabytes or gigabytes a second, as disks are rated."""
    if bytes_per_s is None:
        return ""
    return f"{bytes_per_s / 1e9:.2f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.1f} MB/s"


def _headline(report: Report) -> str:
    count = len(report.processes)
    nodes = len({process.node for process in report.processes})
    share = report.total_row("file").run_share
    blocked = "" if share is None else f"; blocked by I/O for {share:.2%} of it"
    return (
        f"I/O of {count} process{'es' if count > 1 else ''} on {nodes} node{'s' if nodes > 1 else ''} "
        f"in {report.run_seconds:.2f} s{blocked}"
    )


def _warnings(report: Report) -> list[str]:
    dropped = sum(process.dropped_events for process in report.processes)
    if not dropped:
        return []
    return [
        f"{dropped} events were not recorded (buffer full): timeline and figures lack them, the tables do not"
    ]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        left = i == 0 or column in ("operation", "size")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    return table


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
