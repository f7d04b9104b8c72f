"""Trace files: Perfetto accepts them, and reading returns the recorded events."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_validator import validate

from outcore import _core, trace
from outcore.base.errors import OutcoreError
from outcore.trace import report, tracefile
from outcore.trace.report import ProcessCounters, Report

READ, WRITE, ASYNC_READ, ASYNC_WRITE = (
    report.OPERATIONS.index(name) for name in ("read", "write", "read_async", "write_async")
)


def made(*events: tuple[int, int, int] | tuple[int, int, int, int]) -> np.ndarray[Any, np.dtype[np.void]]:
    """Events from operation, start_ns, end_ns and thread (0 if left out)."""
    result = np.zeros(len(events), trace.EVENT)
    for position, (operation, start_ns, end_ns, *thread) in enumerate(events):
        result[position]["op"] = operation
        result[position]["start_ns"] = start_ns
        result[position]["end_ns"] = end_ns
        result[position]["thread"] = thread[0] if thread else 0
    return result


def written(
    path: Path, *events: np.ndarray[Any, np.dtype[np.void]], offsets_ns: tuple[int, ...] = ()
) -> Path:
    """A trace file with the events of one rank after another."""
    counters = tuple(ProcessCounters(rank, "node", 1.0, {}) for rank in range(len(events)))
    processes = [
        tracefile.ProcessEvents(rank, mine, {0: "/x"}, offsets_ns[rank] if offsets_ns else 0)
        for rank, mine in enumerate(events)
    ]
    tracefile.write(path, Report(counters), processes)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.json"


# ---- writing


def test_a_trace_without_events_is_valid(path: Path) -> None:
    assert validate(written(path, made())) == []


def test_blocking_operations_are_complete_events(path: Path) -> None:
    (event,) = validate(written(path, made((READ, 5_000, 7_500))))
    assert (event["ph"], event["name"], event["cat"], event["dur"]) == ("X", "read", "file", 2.5)


def test_asynchronous_operations_are_pairs(path: Path) -> None:
    events = validate(written(path, made((ASYNC_READ, 1_000, 9_000), (ASYNC_WRITE, 2_000, 3_001))))
    phases = [(event["ph"], event["name"], event["ts"]) for event in events]
    assert phases == [
        ("b", "read_async", 0.0),
        ("b", "write_async", 1.0),
        ("e", "write_async", 2.001),
        ("e", "read_async", 8.0),
    ]


def test_an_asynchronous_operation_without_duration_begins_before_it_ends(path: Path) -> None:
    events = validate(written(path, made((ASYNC_READ, 7, 7), (ASYNC_READ, 7, 7))))
    assert [event["ph"] for event in events] == ["b", "b", "e", "e"]


def test_nested_operations_of_a_thread_stay_complete_events(path: Path) -> None:
    events = validate(written(path, made((READ, 20, 30), (READ, 10, 40), (READ, 10, 50), (READ, 50, 60))))
    assert [(event["ph"], event["dur"]) for event in events] == [
        ("X", 0.04),
        ("X", 0.03),
        ("X", 0.01),
        ("X", 0.01),
    ]


def test_operations_of_a_thread_that_overlap_become_pairs(path: Path) -> None:
    events = validate(written(path, made((READ, 10, 30), (WRITE, 20, 40))))
    assert [(event["ph"], event["name"]) for event in events] == [
        ("X", "read"),
        ("b", "write"),
        ("e", "write"),
    ]


def test_operations_of_several_threads_may_overlap(path: Path) -> None:
    events = validate(written(path, made((READ, 10, 30, 0), (READ, 20, 40, 1))))
    assert [event["ph"] for event in events] == ["X", "X"]
    assert events[0]["tid"] != events[1]["tid"]


def test_arguments_of_an_event(path: Path) -> None:
    event = made((READ, 1, 2))
    event["offset"], event["bytes"], event["waited_ns"], event["sequential"] = 1 << 40, 77, 1, True
    (line,) = validate(written(path, event))
    assert line["args"] == {
        "bytes": 77, "offset": 1 << 40, "file": "/x", "waited_ns": 1, "failed": False, "sequential": True,
    }  # fmt: skip


def test_file_names_may_hold_anything(path: Path) -> None:
    process = tracefile.ProcessEvents(0, made((READ, 1, 2)), {0: 'a "b"\\\n{é\udcff'})
    tracefile.write(path, Report((ProcessCounters(0, "n", 1.0, {}),)), [process])
    (event,) = validate(path)
    assert event["args"]["file"] == 'a "b"\\\n{é\udcff'


def test_processes_are_merged_and_named(path: Path) -> None:
    events = validate(written(path, made((READ, 100, 200)), made((READ, 150, 160), (ASYNC_READ, 90, 300))))
    assert [(event["pid"], event["ph"], event["ts"]) for event in events] == [
        (2, "b", 0.0),
        (1, "X", 0.01),
        (2, "X", 0.06),
        (2, "e", 0.21),
    ]
    names = {
        event["pid"]: event["args"]["name"]
        for event in json.loads(path.read_text())["traceEvents"]
        if event["name"] == "process_name"
    }
    assert names == {1: "rank 0 (node)", 2: "rank 1 (node)"}


def test_clocks_that_differ_are_aligned(path: Path) -> None:
    ahead = written(
        path, made((READ, 100, 200)), made((READ, 1_000_100, 1_000_200)), offsets_ns=(0, 1_000_000)
    )
    assert [event["ts"] for event in validate(ahead)] == [0.0, 0.0]


def test_many_random_events_are_valid(path: Path) -> None:
    generator = np.random.default_rng(7)
    ranks = []
    for _ in range(3):
        start = generator.integers(0, 500, 400)
        end = start + generator.integers(0, 60, 400)
        operations = generator.choice([READ, WRITE, ASYNC_READ, ASYNC_WRITE], 400)
        ranks.append(made(*zip(operations, start, end, generator.integers(0, 3, 400), strict=True)))
    events = validate(written(path, *ranks))
    assert sum(event["ph"] != "e" for event in events) == 1200
    assert len(tracefile.read(path).events) == 1200


def test_an_unwritable_place_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutcoreError) as caught:
        written(tmp_path / "none" / "t.json", made())
    assert caught.value.errno == errno.ENOENT
    assert caught.value.path == str(tmp_path / "none" / "t.json")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_not_replaced_by_a_trace(tmp_path: Path) -> None:
    (tmp_path / "t.json").mkdir()
    with pytest.raises(OutcoreError) as caught:
        written(tmp_path / "t.json", made())
    assert caught.value.errno == errno.EISDIR
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.json"]


# ---- reading


def test_reading_gives_back_the_events(path: Path) -> None:
    event = made((ASYNC_WRITE, 1_000, 4_321))
    event["layer"], event["offset"], event["bytes"], event["waited_ns"] = 1, 4096, 512, 99
    event["failed"], event["sequential"] = True, True
    (got,) = tracefile.read(written(path, made(), event)).events
    assert got.tolist() == (1, 1, ASYNC_WRITE, 0, 3_321, 99, 4096, 512, True, True)


def test_reading_gives_back_the_report(path: Path) -> None:
    counters = ProcessCounters(0, "n", 2.5, {"file": {"read": report.Counter(count=3, bytes=9)}}, 5, 6, 7)
    saved = Report((counters,), report.RawRates(1e9, 2e9))
    saved.save(path)
    assert Report.load(path) == saved


def test_a_run_is_recorded_saved_and_read(path: Path) -> None:
    trace.reset()
    trace.start(10)
    with trace.timed("write", "/a/b", offset=64) as operation:
        operation.bytes = 32
    trace.stop()
    trace.save(path, run_seconds=3.0)
    content = tracefile.read(path)
    assert content.report.run_seconds == 3.0
    assert content.report.total("file", "write").bytes == 32
    (event,) = content.events
    assert (event["op"], event["offset"], event["bytes"]) == (WRITE, 64, 32)
    assert json.loads(path.read_text())["traceEvents"][-1]["args"]["file"] == "/a/b"


def test_dropped_events_are_in_the_report(path: Path) -> None:
    trace.start(2)
    for _ in range(5):
        _core.trace_record("file", "read", 0, 1)
    assert (len(trace.events()), trace.dropped()) == (2, 3)
    trace.save(path)
    trace.stop()
    assert Report.load(path).processes[0].dropped_events == 3


def test_the_run_time_is_that_of_the_process_if_not_given(path: Path) -> None:
    saved = trace.save(path)
    assert saved is not None
    assert saved.run_seconds > 0
    assert Report.load(path) == saved


def refusal(path: Path) -> str:
    with pytest.raises(OutcoreError) as caught:
        tracefile.read(path)
    assert caught.value.errno == errno.EINVAL
    assert caught.value.path == str(path)
    assert str(path) in str(caught.value)
    return caught.value.detail


def test_a_missing_file_is_enoent(path: Path) -> None:
    with pytest.raises(OutcoreError) as caught:
        tracefile.read(path)
    assert (caught.value.errno, caught.value.path) == (errno.ENOENT, str(path))


def test_a_directory_is_eisdir(tmp_path: Path) -> None:
    with pytest.raises(OutcoreError) as caught:
        tracefile.read(tmp_path)
    assert caught.value.errno == errno.EISDIR


def test_a_truncated_file_says_where(path: Path) -> None:
    written(path, made((READ, 1, 2), (READ, 3, 4)))
    path.write_bytes(path.read_bytes()[:-40])
    assert refusal(path).startswith(f"no JSON at line {len(path.read_text().splitlines())}, column ")


@pytest.mark.parametrize("content", [b"", b"x", b"\xff\xfe\x00", b"[" * 100_000])
def test_what_is_no_json_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert refusal(path).startswith(
        ("no JSON at line 1", "no text: byte 0xff at position 0", "nested too deeply")
    )


@pytest.mark.parametrize(
    "content", ["[]", "1", '{"traceEvents": []}', '{"otherData": 5}', '{"otherData": {}}']
)
def test_a_foreign_trace_is_refused(path: Path, content: str) -> None:
    path.write_text(content)
    assert refusal(path) == "not a trace of Outcore: otherData.outcore is missing"


def change(where: list[Any], value: Any) -> Callable[[Any], None]:
    def apply(data: Any) -> None:
        for key in where[:-1]:
            data = data[key]
        if value is None:
            del data[where[-1]]
        else:
            data[where[-1]] = value

    return apply


OUTCORE = ["otherData", "outcore"]
REPORT = [*OUTCORE, "report"]
PROCESS = [*REPORT, "processes", 0]
COUNTER = [*PROCESS, "layers", "file", "read"]
LAST = ["traceEvents", -1]


@pytest.mark.parametrize(
    ("where", "value", "detail"),
    [
        (OUTCORE, 3, "otherData.outcore is not an object"),
        ([*OUTCORE, "format"], 99, "otherData.outcore.format is 99, this version reads 1"),
        (REPORT, None, "otherData.outcore.report is missing"),
        ([*REPORT, "size_class_bounds"], [1], "otherData.outcore.report.size_class_bounds is not"),
        ([*REPORT, "processes"], [], "otherData.outcore.report.processes is not a list of at least one"),
        ([*REPORT, "raw"], 7, "otherData.outcore.report.raw is not an object"),
        ([*PROCESS, "rank"], -1, "processes[0].rank is not a whole number of at least 0: -1"),
        ([*PROCESS, "node"], 5, "processes[0].node is not a text: 5"),
        (
            [*PROCESS, "run_seconds"],
            "long",
            "processes[0].run_seconds is not a number from 0 to 4503599627370496: 'long'",
        ),
        ([*PROCESS, "layers"], [], "processes[0].layers is not an object"),
        ([*PROCESS, "layers", "moon"], {}, "processes[0].layers.moon is unknown"),
        ([*PROCESS, "layers", "file", "swim"], {}, "processes[0].layers.file.swim is unknown"),
        ([*COUNTER, "count"], None, "processes[0].layers.file.read.count is missing"),
        ([*COUNTER, "bytes"], 1.5, "layers.file.read.bytes is not a whole number of at least 0: 1.5"),
        ([*COUNTER, "by_size"], [1, 2], "layers.file.read.by_size is not a list of 6"),
        ([*COUNTER, "by_size"], [1, 2, 3, 4, 5, "x"], "by_size holds something else than whole numbers"),
        (["traceEvents"], {}, "traceEvents is not a list"),
        (LAST, 3, "traceEvents[5] is not an object"),
        ([*LAST, "ph"], "Q", "traceEvents[5].ph is unknown: 'Q'"),
        ([*LAST, "ts"], None, "traceEvents[5].ts is missing"),
        ([*LAST, "ts"], float("inf"), "traceEvents[5].ts is not a number from 0 to"),
        ([*LAST, "ts"], float("nan"), "traceEvents[5].ts is not a number from 0 to"),
        ([*LAST, "ts"], 10**400, "traceEvents[5].ts is not a number from 0 to"),
        ([*LAST, "ts"], True, "traceEvents[5].ts is not a number from 0 to"),
        ([*LAST, "id"], "other", "traceEvents[5] ends what has not begun: id 'other'"),
        ([*LAST, "ph"], "M", "traceEvents[4] never ends: id '0.1'"),
        (["traceEvents", 4, "cat"], "moon", "traceEvents[4].cat is unknown: 'moon'"),
        (["traceEvents", 4, "name"], ["x"], "traceEvents[4].name is unknown: ['x']"),
        (["traceEvents", 4, "pid"], 0, "traceEvents[4].pid is not a whole number of at least 1: 0"),
        (["traceEvents", 4, "args", "bytes"], 2**63, "traceEvents[4].args.bytes is not a whole number"),
        (["traceEvents", 4, "id"], [], "traceEvents[4].id is not a text: []"),
        (["traceEvents", 3, "dur"], None, "traceEvents[3].dur is missing"),
    ],
)
def test_a_damaged_trace_says_what_is_wrong_and_where(
    path: Path, where: list[Any], value: Any, detail: str
) -> None:
    counters = ProcessCounters(0, "n", 1.0, {"file": {"read": report.Counter(count=1)}})
    events = tracefile.ProcessEvents(0, made((READ, 1, 5), (ASYNC_READ, 2, 9)), {0: "/x"})
    tracefile.write(path, Report((counters,)), [events])
    data = json.loads(path.read_text())
    assert len(data["traceEvents"]) == 6
    change(where, value)(data)
    path.write_text(json.dumps(data))
    assert detail in refusal(path)


def test_an_operation_that_begins_twice_is_refused(path: Path) -> None:
    written(path, made((ASYNC_READ, 1, 5), (ASYNC_READ, 2, 9)))
    path.write_text(path.read_text().replace('"0.1"', '"0.0"'))
    assert refusal(path) == "traceEvents[4] begins what is under way: id '0.0'"


# ---- the validator finds what it is for


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["traceEvents", 4, "ts"], 99.0),
        (["traceEvents", 4, "pid"], 1.5),
        (["traceEvents", 4, "tid"], 77),
        (["traceEvents", -1, "id"], "0.9"),
        (["traceEvents", -1, "name"], "write_async"),
        (["traceEvents", 3, "dur"], -1.0),
        (["traceEvents", 4, "args", "bytes"], 1.0),
        (["displayTimeUnit"], "s"),
        (["extra"], 1),
    ],
)
def test_the_validator_finds_damage(path: Path, where: list[Any], value: Any) -> None:
    data = json.loads(written(path, made((READ, 1, 5), (ASYNC_READ, 2, 9))).read_text())
    change(where, value)(data)
    path.write_text(json.dumps(data))
    with pytest.raises(AssertionError):
        validate(path)
