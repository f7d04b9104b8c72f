"""The I/O report: quantities from hand-made counters, tables, gathering, and the command."""

from __future__ import annotations

import errno
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from outcore import _core, trace
from outcore.base.errors import OutcoreError
from outcore.cli.report import main_report
from outcore.trace import report, tables
from outcore.trace.report import Counter, ProcessCounters, RawRates, Report

MS = 1_000_000  # nanoseconds


def counter(count: int, size_bytes: int = 0, total_ms: int = 0, waited_ms: int = 0, **more: int) -> Counter:
    """`count` operations of the size class of `size_bytes`."""
    position = sum(size_bytes >= bound for bound in report.SIZE_CLASS_BOUNDS)
    by_size = [0] * report.SIZE_CLASSES
    by_size[position] = count
    volumes = [size * size_bytes for size in by_size]
    return Counter(
        count=count,
        nanoseconds=total_ms * MS,
        waited_ns=waited_ms * MS,
        bytes=count * size_bytes,
        by_size=tuple(by_size),
        bytes_by_size=tuple(volumes),
        **more,
    )


def process(rank: int = 0, node: str = "a", run_seconds: float = 10.0, **more: Any) -> ProcessCounters:
    return ProcessCounters(rank, node, run_seconds, more.pop("layers", {}), **more)


def one_process() -> Report:
    """Reads: blocked 1 s and 2 s; writes: blocked 1 s. Device: reads 6 s under way, busy 3 s."""
    file = {
        "read": counter(10, 65536, 1000, 1000, sequential=9),
        "read_async": counter(20, 1 << 20, 8000, 2000, sequential=20),
        "write": counter(5, 1000, 1000, 1000, failed=1),
        "wait": counter(20, 0, 2000, 2000),
    }
    device = {"read_async": counter(40, 1 << 19, 6000, 500)}
    return Report(
        (process(layers={"file": file, "device": device}, device_read_busy_ns=3000 * MS),),
        RawRates(14e6, 20e6),
    )


def two_processes(nodes: str = "aa") -> Report:
    read = [{"file": {"read": counter(1, 4096, blocked, blocked)}} for blocked in (1000, 3000)]
    return Report(
        (process(0, nodes[0], 8.0, layers=read[0]), process(1, nodes[1], 10.0, layers=read[1])),
        RawRates(1e9, 1e9),
    )


def rendered(subject: Report, *, full: bool = True, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    subject.render(console, full=full)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def lines(text: str, *starts: str) -> list[list[str]]:
    """The words of lines with this beginning."""
    words = [line.split() for line in text.splitlines()]
    return [line for line in words if line[: len(starts)] == list(starts)]


# ---- quantities


def test_seconds_of_the_file_layer_are_those_in_which_callers_were_blocked() -> None:
    rows = {row.operation: row for row in one_process().rows("file")}
    assert rows["read"].seconds == pytest.approx(1)
    assert rows["read_async"].seconds == pytest.approx(2)


def test_seconds_of_the_device_layer_are_those_under_way() -> None:
    (row,) = one_process().rows("device")
    assert row.seconds == pytest.approx(6)


def test_rows_are_the_operations_that_happened_in_order() -> None:
    assert [row.operation for row in one_process().rows("file")] == ["read", "write", "read_async", "wait"]


def test_share_of_io_time() -> None:
    rows = {row.operation: row for row in one_process().rows("file")}
    assert rows["read"].io_share == pytest.approx(1 / 4)
    assert rows["read_async"].io_share == pytest.approx(2 / 4)


def test_share_of_run_time_counts_all_processes() -> None:
    (row,) = two_processes().rows("file")
    assert row.run_share == pytest.approx(4 / (2 * 10))


def test_time_of_waits_is_not_added_to_that_of_the_operations_waited_for() -> None:
    total = one_process().total_row("file")
    wait = one_process().rows("file")[-1]
    assert total.seconds == pytest.approx(4)
    assert (wait.operation, wait.count, wait.seconds, wait.io_share) == ("wait", 20, None, None)


def test_total_counts_operations_without_waits_and_bytes_of_transfers() -> None:
    total = one_process().total_row("file")
    assert (total.count, total.failed) == (35, 1)
    assert total.bytes == 10 * 65536 + 20 * (1 << 20) + 5 * 1000


def test_preallocated_bytes_are_not_in_the_total() -> None:
    layers = {"file": {"preallocate": counter(1, 1 << 30), "write": counter(1, 100)}}
    assert Report((process(layers=layers),)).total_row("file").bytes == 100


def test_max_over_mean_shows_imbalance() -> None:
    (row,) = two_processes().rows("file")
    assert row.max_over_mean == pytest.approx(3 / 2)
    assert one_process().rows("file")[0].max_over_mean is None


def test_the_longest_run_time_counts() -> None:
    assert two_processes().run_seconds == 10.0


def test_waiting_and_overlapped_time_of_asynchronous_operations() -> None:
    file, device = one_process().async_rows()
    assert (file.layer, file.operation, file.count) == ("file", "read_async", 20)
    assert (file.seconds, file.waited_seconds, file.overlapped_seconds) == pytest.approx((8, 2, 6))
    assert device.layer == "device"
    assert device.overlapped_seconds == pytest.approx(5.5)


def test_rate_of_the_device_is_volume_over_busy_time() -> None:
    row = one_process().rates()[0]
    assert (row.layer, row.kind) == ("device", "read")
    assert row.bytes_per_s == pytest.approx(40 * (1 << 19) / 3)
    assert row.raw_share == pytest.approx(40 * (1 << 19) / 3 / 14e6)


def test_rate_of_the_program_is_volume_over_blocked_time_of_a_process() -> None:
    (row,) = two_processes().rates()
    assert row.bytes_per_s == pytest.approx(8192 / 2)


@pytest.mark.parametrize(("nodes", "raw"), [("aa", 1e9), ("ab", 2e9)])
def test_raw_rate_grows_with_the_nodes(nodes: str, raw: float) -> None:
    assert two_processes(nodes).rates()[0].raw_bytes_per_s == raw


def test_without_a_raw_rate_there_is_no_share() -> None:
    (row,) = Report((process(layers={"file": {"read": counter(1, 10, 5, 5)}}),)).rates()
    assert (row.raw_bytes_per_s, row.raw_share) == (None, None)


def test_nothing_divides_by_zero() -> None:
    empty = Report((process(run_seconds=0.0, layers={"file": {"read": counter(1, 10)}}),), RawRates(0, 0))
    assert empty.rows("file")[0].io_share is None
    assert empty.rates()[0].bytes_per_s is None
    assert "read" in rendered(empty)


# ---- tables


def test_table_of_a_layer() -> None:
    text = rendered(one_process())
    assert lines(text, "read")[0] == ["read", "10", "1.000", "640.00", "KiB", "25.0%", "10.00%"]
    assert lines(text, "write")[0][:4] == ["write", "5", "(1", "failed)"]
    assert lines(text, "wait") == [["wait", "20"]]
    assert lines(text, "total")[0] == [
        "total",
        "35",
        "(1",
        "failed)",
        "4.000",
        "20.63",
        "MiB",
        "100.0%",
        "40.00%",
    ]


def test_headline_says_the_share_of_the_run() -> None:
    assert rendered(two_processes("ab")).startswith(
        "I/O of 2 processes on 2 nodes in 10.00 s; blocked by I/O for 20.00% of it"
    )


def test_table_of_several_processes_shows_imbalance() -> None:
    text = rendered(two_processes())
    assert "max/mean" in text
    assert lines(text, "read")[0][-1] == "1.50"


def test_table_of_sizes() -> None:
    text = rendered(one_process())
    assert lines(text, "file", "below")[0][4:] == ["0", "0", "B", "5", "4.88", "KiB"]
    assert lines(text, "file", "64", "KiB")[0][6:8] == ["10", "640.00"]
    assert lines(text, "file", "1", "MiB", "to")[0][6:9] == ["20", "20.00", "MiB"]
    assert lines(text, "file", "sequential")[0] == ["file", "sequential", "96.7%", "0.0%"]


def test_table_of_rates() -> None:
    text = rendered(one_process())
    assert " ".join(lines(text, "device", "read")[0]) == "device read 20.00 MiB 3.000 7.0 MB/s 14.0 MB/s 50%"


def test_rates_without_measurement_say_so() -> None:
    text = rendered(Report((process(layers={"file": {"read": counter(1, 10, 5, 5)}}),)))
    assert lines(text, "program", "read")[0][-2:] == ["not", "measured"]


def test_table_of_overlap() -> None:
    text = rendered(one_process())
    assert " ".join(lines(text, "file", "read", "async")[0]) == "file read async 20 8.000 2.000 6.000 75.0%"


def of_rates(device_ms: int, blocked_ms: int, raw: float = 100e6) -> Report:
    """64 MiB read by the program, blocked for `blocked_ms`, and from the disk, which was busy for `device_ms`."""
    file = {"read_async": counter(64, 1 << 20, 1000, blocked_ms)}
    device = {"read_async": counter(64, 1 << 20, device_ms)} if device_ms else {}
    busy = {"device_read_busy_ns": device_ms * MS}
    return Report((process(layers={"file": file, "device": device}, **busy),), RawRates(raw, raw))


@pytest.mark.parametrize(
    ("device_ms", "blocked_ms", "device", "program"),
    [
        (1000, 1000, "67%", "67%"),
        (1000, 100, "67%", "overlapped"),
        (100, 1000, "cache", "67%"),
        (100, 100, "cache", "cache"),
        (0, 100, None, "buffers"),
    ],
)
def test_a_rate_above_that_of_the_disk_has_its_reason_in_place_of_a_share(
    device_ms: int, blocked_ms: int, device: str | None, program: str
) -> None:
    text = rendered(of_rates(device_ms, blocked_ms))
    assert [line[-1] for line in lines(text, "device", "read") if line[2] != "async"] == (
        [device] if device else []
    )
    assert lines(text, "program", "read")[0][-1] == program
    assert "671%" not in text


def test_tables_of_rates_fit_an_ordinary_terminal() -> None:
    text = rendered(of_rates(100, 100), width=80)
    assert "page cache" in text and "% of raw" in text and "…" not in text


def test_short_report_says_what_moved_and_how_fast() -> None:
    assert rendered(one_process(), full=False).splitlines() == [
        "I/O of 1 process on 1 node in 10.00 s; blocked by I/O for 40.00% of it",
        "  read 20.00 MiB at 7.0 MB/s, 50% of the disk's 14.0 MB/s; 75% overlapped",
    ]


@pytest.mark.parametrize(("kind", "way"), [("read", "from"), ("write", "into")])
def test_short_report_says_that_the_page_cache_was_faster_than_the_disk(kind: str, way: str) -> None:
    layers = {"device": {f"{kind}_async": counter(64, 1 << 20, 100)}}
    busy = {f"device_{kind}_busy_ns": 100 * MS}
    fast = process(layers=layers, **busy)
    text = rendered(Report((fast,), RawRates(600e6, 600e6)), full=False)
    assert f"671.1 MB/s, {way} the page cache (disk 600.0 MB/s)" in text and "%" not in text
    assert "page cache" not in rendered(Report((fast,), RawRates(672e6, 672e6)), full=False)
    assert rendered(Report((fast,)), full=False).splitlines()[1].endswith(" 671.1 MB/s")


def test_short_report_of_a_large_run_keeps_within_its_lines_and_columns() -> None:
    operations = {
        f"{kind}_async": counter(1 << 20, 999_999, 10**9, 10**8, failed=7) for kind in ("read", "write")
    }
    layers = {"file": operations, "device": operations}
    busy = {f"device_{kind}_busy_ns": 10**12 for kind in ("read", "write")}
    subject = Report(
        tuple(process(rank, str(rank), 123456.0, layers=layers, **busy) for rank in range(1000)),
        RawRates(9.99e8, 9.99e8),
    )
    shown = rendered(subject, full=False).splitlines()
    assert len(shown) == 3 and "into the page cache" in shown[2] and max(map(len, shown)) <= 100


def test_short_report_says_what_is_emulated_and_what_was_not_recorded() -> None:
    text = rendered(Report((process(emulated="storage: a tape", dropped_events=7),)), full=False)
    assert "EMULATED storage: a tape" in text and "7 events were not recorded" in text


def test_a_program_without_files_was_not_blocked_by_them() -> None:
    layers = {"device": {"read_async": counter(1, 4096, 1)}}
    assert "blocked" not in rendered(Report((process(layers=layers),)), full=False)


def test_emulated_storage_is_said_first() -> None:
    plain, slow = process(), process(rank=1, emulated="storage: a tape")
    assert "EMULATED" not in rendered(Report((plain,)))
    subject = Report((plain, slow, slow))
    assert subject.emulated == "storage: a tape"
    assert rendered(subject).splitlines()[1] == "EMULATED storage: a tape"
    assert Report.from_dict(subject.to_dict(), "report").emulated == "storage: a tape"


def test_dropped_events_are_said() -> None:
    assert "7 events were not recorded" in rendered(Report((process(dropped_events=7),)))
    assert "not recorded" not in rendered(one_process())


def test_a_run_without_io_has_no_tables() -> None:
    assert len(rendered(Report((process(),))).splitlines()) == 1


def test_tables_fit_a_terminal_of_80_columns() -> None:
    console = Console(file=io.StringIO(), width=80)
    one_process().render(console)
    assert "…" not in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("index", "name"),
    [(0, "below 4 KiB"), (1, "4 KiB to 64 KiB"), (4, "1 MiB to 4 MiB"), (5, "4 MiB and more")],
)
def test_names_of_size_classes(index: int, name: str) -> None:
    assert tables.size_class_name(index) == name


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (5 << 30, "5.00 GiB")]
)
def test_volumes(size_bytes: int, text: str) -> None:
    assert tables.volume(size_bytes) == text


# ---- counters of this process


def test_gather_of_one_process_has_what_was_recorded() -> None:
    trace.reset()
    _core.trace_record("file", "read", 0, 5 * MS, bytes=70000)
    gathered = report.gather(None, 2.0, RawRates(1.0, 2.0))
    assert gathered is not None
    read = gathered.total("file", "read")
    assert (read.count, read.bytes, read.waited_ns) == (1, 70000, 5 * MS)
    assert (gathered.run_seconds, gathered.raw) == (2.0, RawRates(1.0, 2.0))


class FakeComm:
    """Two ranks in one process: `gather` adds the other rank's object, as MPI would."""

    def __init__(self, rank: int, other: ProcessCounters) -> None:
        self.rank, self.other = rank, other

    def Get_rank(self) -> int:
        return self.rank

    def gather(self, mine: object, root: int) -> list[object] | None:
        return [mine, self.other] if self.rank == root else None


def test_gather_of_several_processes_is_at_rank_0_only() -> None:
    trace.reset()
    _core.trace_record("file", "read", 0, MS, bytes=5)
    other = process(1, layers={"file": {"read": counter(2, 10)}})
    gathered = report.gather(FakeComm(0, other), 1.0)  # type: ignore[arg-type]
    assert gathered is not None
    assert gathered.total("file", "read").bytes == 25
    assert [p.rank for p in gathered.processes] == [0, 1]
    assert report.gather(FakeComm(1, other), 1.0) is None  # type: ignore[arg-type]


def test_timed_records_what_python_does(tmp_path: Path) -> None:
    trace.reset()
    with trace.timed("write", tmp_path / "x", offset=3) as operation:
        operation.bytes = 12
    written = trace.snapshot()["layers"]["file"]["write"]
    assert (written["count"], written["bytes"], written["failed"]) == (1, 12, 0)


def test_timed_counts_a_failure_and_lets_it_through() -> None:
    trace.reset()
    with pytest.raises(KeyError), trace.timed("read"):
        raise KeyError
    assert trace.snapshot()["layers"]["file"]["read"]["failed"] == 1


@pytest.mark.parametrize("operation", ["read_async", "swim"])
def test_timed_takes_blocking_operations_only(operation: str) -> None:
    with pytest.raises(ValueError, match=operation), trace.timed(operation):
        pass


def test_unknown_operation_is_refused_by_the_native_trace() -> None:
    with pytest.raises(ValueError, match="swim"):
        _core.trace_record("file", "swim", 0, 1)


# ---- the command


def test_report_is_the_same_from_the_file(tmp_path: Path) -> None:
    one_process().save(tmp_path / "t.json")
    assert rendered(Report.load(tmp_path / "t.json")) == rendered(one_process())


def test_command_prints_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_processes().save(tmp_path / "t.json")
    main_report(tmp_path / "t.json")
    assert lines(capsys.readouterr().out, "read")[0][1:4] == ["2", "4.000", "8.00"]


def test_command_line_prints_the_tables(tmp_path: Path) -> None:
    one_process().save(tmp_path / "t.json")
    answer = subprocess.run(
        [sys.executable, "-m", "outcore", "report", tmp_path / "t.json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert lines(answer.stdout, "total")


def test_command_line_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "outcore", "report", tmp_path / "none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr == f"outcore: read trace file {tmp_path}/none: No such file or directory\n"


# ---- figures


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    """A trace with reads and writes at both layers, 3 of each."""
    trace.reset()
    trace.start(100)
    now = _core.trace_now_ns()
    for i in range(3):
        for layer in report.LAYERS:
            for operation in ("read", "write_async"):
                start = now + 4 * i * MS
                _core.trace_record(layer, operation, start, start + (i + 1) * MS, "/x", i * 4096, 4096 << i)
    trace.stop()
    trace.save(tmp_path / "t.json", run_seconds=1.0)
    return tmp_path / "t.json"


def test_figures_are_written(traced: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    main_report(traced, tmp_path / "new" / "figures")
    names = sorted(path.name for path in (tmp_path / "new" / "figures").iterdir())
    assert names == ["device-durations.png", "device-sizes.png", "file-durations.png", "file-sizes.png"]
    for name in names:
        content = (tmp_path / "new" / "figures" / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000


def test_points_of_a_figure_are_the_requests(traced: Path) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    from outcore.trace import plot, tracefile

    events = tracefile.read(traced).events
    figure = figures.Figure()
    plot._fill(figure, events[events["layer"] == 0], "file", "durations")
    for panel in figure.axes:
        (points,) = panel.collections
        start_s, duration_s = points.get_offsets().T.tolist()
        assert start_s == pytest.approx([0, 0.004, 0.008])
        assert duration_s == pytest.approx([0.001, 0.002, 0.003])
        assert panel.get_yscale() == "log"


def test_figures_need_reads_or_writes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    one_process().save(tmp_path / "t.json")
    with pytest.raises(OutcoreError, match="no reads or writes") as caught:
        main_report(tmp_path / "t.json", tmp_path / "figures")
    assert caught.value.errno == errno.ENODATA
    assert caught.value.path == str(tmp_path / "t.json")


def test_missing_matplotlib_names_the_extra(
    traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OutcoreError, match="pip install 'matplotlib"):
        main_report(traced, tmp_path)


def test_figures_into_a_file_say_where(traced: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(OutcoreError) as caught:
        main_report(traced, traced)
    assert caught.value.errno == errno.EEXIST
    assert caught.value.path == str(traced)
