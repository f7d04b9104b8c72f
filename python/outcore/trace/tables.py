"""The report as text: a few lines, or tables in the form of studies of I/O in quantum chemistry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outcore.trace.report import (
    LAYERS,
    READS,
    SIZE_CLASS_BOUNDS,
    SIZE_CLASSES,
    WRITES,
    OperationRow,
    RateRow,
    Report,
)

if TYPE_CHECKING:
    from rich.table import Table

    from outcore.base.console import Printer

_TITLES = {
    "file": "File layer: what the program asked for",
    "device": "Device layer: what the disk was asked for",
}
_SECONDS = {"file": "seconds\nblocked", "device": "seconds\nunder way"}
_ASKED_BY = {"file": "program", "device": "device"}


def summarize(report: Report, console: Printer) -> None:
    """Prints how much moved between processes and disks, how fast, and which share was overlapped with other work:
    a headline and two lines of at most 100 columns, and lines about emulation and lost events, if any."""
    _print_head(report, console)
    hidden = {row.operation: row for row in report.async_rows() if row.layer == "file"}
    for row in report.rates():
        if row.layer != "device":
            continue
        line = f"  {'read' if row.kind == 'read' else 'wrote'} {volume(row.bytes)}"
        if row.bytes_per_s is not None:
            line += f" at {rate(row.bytes_per_s)}{against_disk(row)}"
        under_way = hidden.get(f"{row.kind}_async")
        if under_way is not None and under_way.seconds > 0:
            line += f"; {under_way.overlapped_seconds / under_way.seconds:.0%} overlapped"
        console.print(line, soft_wrap=True)
    _print_warnings(report, console)


def render(report: Report, console: Printer) -> None:
    """Prints all tables of a report, except empty ones."""
    _print_head(report, console)
    for layer in LAYERS:
        if report.rows(layer):
            console.print(operations_table(report, layer))
    for table in (sizes_table(report), rates_table(report), overlap_table(report)):
        if table.row_count:
            console.print(table)
    _print_warnings(report, console)


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
    """Bandwidth beside the raw bandwidth of the disk; if it is larger than that, the table says why."""
    table = _table("Bandwidth", "of the", "operation", "bytes", "seconds", "rate", "raw rate", "% of raw")
    rows = report.rates()
    device = {row.kind: row for row in rows if row.layer == "device"}
    for row in rows:
        table.add_row(
            _ASKED_BY[row.layer],
            row.kind,
            volume(row.bytes),
            f"{row.seconds:.3f}",
            rate(row.bytes_per_s),
            rate(row.raw_bytes_per_s) or "not measured",
            _share(row, device.get(row.kind)),
        )
    return table


def against_disk(row: RateRow) -> str:
    """Text that follows a rate of the device: its share of the raw rate of the disk; empty if that was not
    measured. A rate above the raw rate is reported as one of the page cache."""
    if row.raw_share is None:
        return ""
    if row.raw_share <= 1:
        return f", {row.raw_share:.0%} of the disk's {rate(row.raw_bytes_per_s)}"
    way = "from" if row.kind == "read" else "into"
    return f", {way} the page cache (disk {rate(row.raw_bytes_per_s)})"


def _share(row: RateRow, device: RateRow | None) -> str:
    """Share of the raw rate; if the rate is larger than raw, the reason: "buffers" if no request reached the
    device, "overlapped" if the device was no faster than raw but worked while the program computed, else "page
    cache"."""
    if row.raw_share is None or row.raw_share <= 1:
        return _number(row.raw_share, ".0%")
    if device is None:
        return "buffers"
    return "overlapped" if device.raw_share is not None and device.raw_share <= 1 else "page cache"


def overlap_table(report: Report) -> Table:
    """Asynchronous operations: time waiting, and time overlapped with other work."""
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


def _print_head(report: Report, console: Printer) -> None:
    console.print(_headline(report), soft_wrap=True)
    if report.emulated:
        console.print(f"EMULATED {report.emulated}", style="bold yellow", highlight=False)


def _headline(report: Report) -> str:
    count = len(report.processes)
    nodes = len({process.node for process in report.processes})
    share = report.total_row("file").run_share if report.rows("file") else None
    blocked = "" if share is None else f"; blocked by I/O for {share:.2%} of it"
    return (
        f"I/O of {count} process{'es' if count > 1 else ''} on {nodes} node{'s' if nodes > 1 else ''} "
        f"in {report.run_seconds:.2f} s{blocked}"
    )


def _print_warnings(report: Report, console: Printer) -> None:
    dropped = sum(process.dropped_events for process in report.processes)
    if dropped:
        warning = "events were not recorded (buffer full): timeline and figures lack them, the tables do not"
        console.print(f"{dropped} {warning}", style="yellow", highlight=False)


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for i, column in enumerate(columns):
        left = i == 0 or column in ("operation", "size")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    return table


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
