"""Rates that were measured on this machine, kept for later runs.

A machine that does something else meanwhile is measured too slow, and never too fast. So a rate is measured in
three runs, ten minutes apart at least, and then by the first run of each day: the best of the last three counts.

One file of JSON for a user, `machine.json` in OUTCORE_CACHE, else in `outcore` below XDG_CACHE_HOME or ~/.cache. A
rate is known by its name and by all settings that it depends on. The node is one of them, as home directories are
shared. What cannot be read or written is measured again: nothing depends on the file.
"""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from outcore.keep.problem import canonical, fingerprint

FORMAT = 1
_VALID_S = 30 * 24 * 3600.0  # disks are filled and replaced, machines are moved
_MEASUREMENTS = 3
_SOON_S, _LATER_S = 600.0, 24 * 3600.0  # until a rate is measured again that has fewer, and as many
_MAX_BYTES = 16 << 20  # of a file that is ours

Values = dict[str, float]
Measured = list[tuple[float, Values]]  # when, and what

_of_this_process: dict[str, Values] = {}
_changes = [0]
_unknown: set[str] = set()  # keys that the file did not have


def known(
    name: str, settings: dict[str, Any], measure: Callable[[], Values | None], *, fresh: bool = False
) -> Values | None:
    """Positive numbers by name that were measured with these settings, or are measured now: if they were not, if it
    is time to do it again, or if `fresh` insists on what is measured now alone. None where they could not be
    measured."""
    found = None if fresh else current(name, settings)
    if found is not None:
        return found
    values = measure()
    if values is None:
        return None if fresh else current(name, settings, due=True)
    return add(name, settings, values, alone=fresh)


def current(name: str, settings: dict[str, Any], *, due: bool = False) -> Values | None:
    """What is known. None if that is nothing, or if this process should measure again and does not insist
    (`due`)."""
    key = fingerprint(_record(name, settings))
    found = _of_this_process.get(key)
    if found is not None or key in _unknown:
        return found
    past = _valid_of(_entries()).get(key, [])
    if not past and due:  # so that plans do not read the file again and again
        _unknown.add(key)
    if not past or (_is_due(past) and not due):
        return None
    _of_this_process[key] = _best(past)
    return _of_this_process[key]


def add(name: str, settings: dict[str, Any], values: Values, *, alone: bool = False) -> Values:
    """Keeps what was measured. Returns the best of it and of what was measured before; `alone`: in place of
    that."""
    record = _record(name, settings)
    key = fingerprint(record)
    past, now = [] if alone else _valid_of(_entries()).get(key, []), time.time()
    if past and now - past[-1][0] < _SOON_S:  # by another process beside this one: one moment counts once
        when, others = past.pop()
        now, values = when, {name: max(rate, others.get(name, 0.0)) for name, rate in values.items()}
    measured = [*past, (now, values)][-_MEASUREMENTS:]
    _of_this_process[key] = _best(measured)
    _unknown.discard(key)
    _changes[0] += 1
    _write(key, record, measured)
    return _of_this_process[key]


def changes() -> int:
    """How often what this process knows has changed, but for what it has read."""
    return _changes[0]


def forget() -> None:
    """What this process knows; the file stays."""
    _changes[0] += 1
    _of_this_process.clear()
    _unknown.clear()


def path() -> Path | None:
    """Of the file; None where there is no place for one."""
    if directory := os.environ.get("OUTCORE_CACHE"):
        return Path(directory) / "machine.json"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "outcore" / "machine.json" if os.path.isabs(base) else None


def _entries() -> dict[str, Any]:
    """Of the file, as they are."""
    file = path()
    try:
        if file is None or file.stat().st_size > _MAX_BYTES:
            return {}
        found = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return {}
    entries = found.get("rates")
    return entries if isinstance(entries, dict) else {}


def _record(name: str, settings: dict[str, Any]) -> Any:
    return canonical({"name": name, "node": platform.node(), **settings})


def _is_due(past: Measured) -> bool:
    return time.time() - past[-1][0] > (_SOON_S if len(past) < _MEASUREMENTS else _LATER_S)


def _best(past: Measured) -> Values:
    return {name: max(values.get(name, 0.0) for _, values in past) for name in past[-1][1]}


def _valid_of(entries: dict[str, Any]) -> dict[str, Measured]:
    """What entries of the file say that is not too old, the newest at the end."""
    result = {}
    for key, entry in entries.items():
        measured = entry.get("measured") if isinstance(entry, dict) else None
        past = [found for each in measured if (found := _valid(each))] if isinstance(measured, list) else []
        if past:
            result[key] = past
    return result


def _valid(entry: Any) -> tuple[float, Values] | None:
    values, when = (entry.get("values"), entry.get("time")) if isinstance(entry, dict) else (None, None)
    numbers = isinstance(values, dict) and all(
        type(each) is float and math.isfinite(each) and each > 0 for each in values.values()
    )
    if numbers and values and type(when) is float and 0 <= time.time() - when < _VALID_S:
        return when, values
    return None


def _write(key: str, record: Any, measured: Measured) -> None:
    """Beside what is there; of several that write at a time one may be lost, and is measured again."""
    file = path()
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        entries = _entries()
        fresh = {old: entries[old] for old in _valid_of(entries)}
        entry = {"of": record, "measured": [{"values": values, "time": when} for when, values in measured]}
        number, temporary = tempfile.mkstemp(dir=file.parent, prefix=".machine.")
        try:
            with os.fdopen(number, "w") as stream:
                json.dump({"format": FORMAT, "rates": {**fresh, key: entry}}, stream, indent=1)
            os.replace(temporary, file)
        except BaseException:
            os.unlink(temporary)
            raise
