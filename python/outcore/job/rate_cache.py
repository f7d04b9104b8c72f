"""Rates that were measured on this machine, kept for later runs.

On a machine that has other work at the same time, a rate is measured too slow, and never too fast. So three runs,
ten minutes apart at least, measure a rate, and then the first run of each day: the best of the last three
measurements counts.

Each user has one file of JSON, `machine.json` in OUTCORE_CACHE, else in `outcore` below XDG_CACHE_HOME or ~/.cache.
A rate is stored by its name and by all settings on which it depends. The node is one of them, as nodes share home
directories. If the file cannot be read or written, rates are measured again: nothing depends on the file.
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
_SOON_S, _LATER_S = 600.0, 24 * 3600.0  # until the next measurement, with fewer than these, and with as many
_MAX_BYTES = 16 << 20  # a larger file is not ours

Values = dict[str, float]
Measured = list[tuple[float, Values]]  # times of measurements, and their rates

_of_this_process: dict[str, Values] = {}
_changes = [0]
_unknown: set[str] = set()  # keys that the file did not have


def known(
    name: str, settings: dict[str, Any], measure: Callable[[], Values | None], *, fresh: bool = False
) -> Values | None:
    """Rates (positive numbers by name) that were measured with these settings. It measures now if there are none,
    if the next measurement is due, or with `fresh`, which ignores earlier ones. None if they cannot be measured."""
    found = None if fresh else current(name, settings)
    if found is not None:
        return found
    values = measure()
    if values is None:
        return None if fresh else current(name, settings, due=True)
    return add(name, settings, values, alone=fresh)


def current(name: str, settings: dict[str, Any], *, due: bool = False) -> Values | None:
    """The known rates. None if there are none, or if the next measurement is due; with `due`, it returns old rates
    nevertheless."""
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
    """Stores measured rates. Returns the best of these and of earlier measurements; `alone`: they replace the
    earlier ones."""
    record = _record(name, settings)
    key = fingerprint(record)
    past, now = [] if alone else _valid_of(_entries()).get(key, []), time.time()
    if past and now - past[-1][0] < _SOON_S:  # another process measured at the same time: both count as one
        when, others = past.pop()
        now, values = when, {name: max(rate, others.get(name, 0.0)) for name, rate in values.items()}
    measured = [*past, (now, values)][-_MEASUREMENTS:]
    _of_this_process[key] = _best(measured)
    _unknown.discard(key)
    _changes[0] += 1
    _write(key, record, measured)
    return _of_this_process[key]


def changes() -> int:
    """How often the known rates of this process have changed, except by reading the file."""
    return _changes[0]


def forget() -> None:
    """Forgets the rates in this process; the file stays."""
    _changes[0] += 1
    _of_this_process.clear()
    _unknown.clear()


def path() -> Path | None:
    """Path of the file; None if there is no directory for it."""
    if directory := os.environ.get("OUTCORE_CACHE"):
        return Path(directory) / "machine.json"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "outcore" / "machine.json" if os.path.isabs(base) else None


def _entries() -> dict[str, Any]:
    """Entries of the file, unchecked."""
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
    """Valid measurements of each entry of the file that are not too old, the newest last."""
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
    """Adds an entry to the file. If several processes write at the same time, an entry may be lost; it is measured
    again."""
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
