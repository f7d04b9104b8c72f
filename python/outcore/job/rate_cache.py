"""Rates that were measured on this machine, kept for later runs.

One file of JSON for a user, `machine.json` in OUTCORE_CACHE, else in `outcore` below XDG_CACHE_HOME or ~/.cache. A
rate is known by its name and by all settings that it depends on, of which the node is one, as home directories are
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
_MAX_BYTES = 16 << 20  # of a file that is ours

Values = dict[str, float]

_of_this_process: dict[str, Values] = {}


def known(
    name: str, settings: dict[str, Any], measure: Callable[[], Values | None], *, fresh: bool = False
) -> Values | None:
    """Positive numbers by name that were measured with these settings, or are measured now, which is what `fresh`
    insists on. None where they could not be measured."""
    record = canonical({"name": name, "node": platform.node(), **settings})
    key = fingerprint(record)
    if not fresh:
        found = _of_this_process.get(key) or _read().get(key)
        if found is not None:
            _of_this_process[key] = found
            return found
    values = measure()
    if values is not None:
        _of_this_process[key] = values
        _write(key, record, values)
    return values


def forget() -> None:
    """What this process knows; the file stays."""
    _of_this_process.clear()


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


def _read() -> dict[str, Values]:
    """What the file knows and is not too old."""
    now = time.time()
    result = {}
    for key, entry in _entries().items():
        values, when = (entry.get("values"), entry.get("time")) if isinstance(entry, dict) else (None, None)
        numbers = isinstance(values, dict) and all(
            type(each) is float and math.isfinite(each) and each > 0 for each in values.values()
        )
        if numbers and values and type(when) is float and 0 <= now - when < _VALID_S:
            result[key] = values
    return result


def _write(key: str, record: dict[str, Any], values: Values) -> None:
    """Beside what is there; of several that write at a time one may be lost, and is measured again."""
    file = path()
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = {old: entry for old, entry in _entries().items() if old in _read()}
        entries = {**fresh, key: {"of": record, "values": values, "time": time.time()}}
        number, temporary = tempfile.mkstemp(dir=file.parent, prefix=".machine.")
        try:
            with os.fdopen(number, "w") as stream:
                json.dump({"format": FORMAT, "rates": entries}, stream, indent=1)
            os.replace(temporary, file)
        except BaseException:
            os.unlink(temporary)
            raise
