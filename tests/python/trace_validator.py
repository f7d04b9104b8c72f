"""Checks a trace file against the Trace Event Format and the rules of Perfetto's importer."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

COMMON: dict[str, type] = {"ph": str, "cat": str, "name": str, "pid": int, "tid": int, "ts": float}
OF_PHASE: dict[str, dict[str, type]] = {
    "X": {"dur": float, "args": dict},
    "b": {"id": str, "args": dict},
    "e": {"id": str},
}
METADATA = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name"}


def validate(path: Path) -> list[dict[str, Any]]:
    """Asserts that the file is a faultless trace; returns its events without metadata."""
    data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    # Perfetto needs the time unit first and stops reading at a key it does not know.
    assert list(data) == ["displayTimeUnit", "otherData", "traceEvents"]
    assert data["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(data["otherData"], dict)
    metadata = [event for event in data["traceEvents"] if event["ph"] == "M"]
    events = [event for event in data["traceEvents"] if event["ph"] != "M"]
    assert data["traceEvents"] == metadata + events, "metadata comes first"
    check_metadata(metadata, events)
    check_fields(events)
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events), "not sorted by ts"
    assert not events or events[0]["ts"] == 0
    check_pairs([event for event in events if event["ph"] != "X"])
    check_nesting([event for event in events if event["ph"] == "X"])
    return events


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def check_metadata(metadata: list[dict[str, Any]], events: list[dict[str, Any]]) -> None:
    """Every process and thread has a name; numbers are positive; a tid belongs to one process."""
    for event in metadata:
        assert METADATA[event["name"]] in event["args"]
        assert event["pid"] > 0
        assert event["tid"] > 0
    named = {(event["name"], event["pid"]) for event in metadata}
    threads = {(event["pid"], event["tid"]) for event in metadata if event["name"] == "thread_name"}
    for event in events:
        assert ("process_name", event["pid"]) in named
        assert (event["pid"], event["tid"]) in threads
    assert len({tid for _, tid in threads}) == len(threads), "tid used by two processes"


def check_fields(events: list[dict[str, Any]]) -> None:
    for event in events:
        fields = COMMON | OF_PHASE[event["ph"]]
        assert set(event) == set(fields), event
        for name, kind in fields.items():
            assert type(event[name]) is kind, (name, event)
        assert event.get("dur", 0.0) >= 0
        if "args" in event:
            assert type(event["args"]["bytes"]) is int
            assert type(event["args"]["offset"]) is int
            assert type(event["args"]["file"]) is str


def check_pairs(events: list[dict[str, Any]]) -> None:
    """Each b has one e after it with the same cat, id, name and pid, and the id is used once."""
    begun, used = set(), set()
    for event in events:
        key = event["cat"], event["id"], event["name"], event["pid"]
        if event["ph"] == "b":
            assert key not in used, f"{key} twice"
            begun.add(key)
            used.add(key)
        else:
            assert key in begun, f"{key} ends but has not begun"
            begun.remove(key)
    assert not begun, f"never end: {begun}"


def check_nesting(events: list[dict[str, Any]]) -> None:
    """Complete events of a thread lie inside each other or beside each other, the outer one first."""
    enclosing: dict[int, list[int]] = defaultdict(list)
    for event in events:
        start, end = round(event["ts"] * 1000), round(event["ts"] * 1000) + round(event["dur"] * 1000)
        stack = enclosing[event["tid"]]
        while stack and stack[-1] <= start:
            stack.pop()
        assert not stack or end <= stack[-1], f"overlaps another: {event}"
        stack.append(end)
