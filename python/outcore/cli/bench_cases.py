"""Cases of a benchmark: parts of it that take long. If a directory is given, the result of each case is kept at
once, so that a run after an interruption does not repeat it."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcore.job import machine, resources


@dataclass
class Cases:
    """The cases of one benchmark.

    directory: where results are kept; None: they are not kept.
    quick: whether this is the short form, which has other cases.
    scratch: where cases are measured; None: the disk does not matter.
    done: name, date, commit and seconds of each case, in their order.
    runs: memory, disk space and time of whole runs of commands, see `BenchOptions.ran`.
    """

    directory: Path | None = None
    quick: bool = False
    scratch: Path | None = None
    done: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def run(self, name: str, measure: Callable[[], Any], say: Callable[[str], None]) -> Any:
        """The result of `measure`, which must be JSON. A kept result of this machine and this scratch disk is
        returned instead of a new one."""
        found = self._kept(name)
        if found is None:
            found = {"name": name, "date": now(), "commit": commit(), **self._what()}
            start = time.perf_counter()
            found["value"] = measure()
            found["seconds"] = round(time.perf_counter() - start, 1)
            self._keep(name, found)
        else:
            say(f"{name}: kept, of {found['date'][:10]}, commit {found['commit']}")
        self.done.append({key: found[key] for key in ("name", "date", "commit", "seconds")})
        return found["value"]

    def path(self, name: str) -> Path:
        """Path for files with which a case can continue."""
        assert self.directory is not None
        short = "-quick" if self.quick else ""
        return self.directory / (re.sub(r"[^\w.+-]+", "_", name) + short)

    def _file(self, name: str) -> Path:
        path = self.path(name)
        return path.with_name(f"{path.name}.json")

    def _what(self) -> dict[str, Any]:
        return {
            "quick": self.quick,
            "processor": processor(),
            "cores": resources.cores(),
            "memory_bytes": resources.total_memory_bytes(),
            "disk": "" if self.scratch is None else machine.disk_name(self.scratch),
        }

    def _kept(self, name: str) -> dict[str, Any] | None:
        if self.directory is None or not (file := self._file(name)).is_file():
            return None
        found: dict[str, Any] = json.loads(file.read_text())
        same = all(found.get(key) == value for key, value in self._what().items())
        return found if same and found.get("name") == name else None

    def _keep(self, name: str, found: dict[str, Any]) -> None:
        if self.directory is None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self._file(name)
        new = file.with_name(f"{file.name}.new")
        new.write_text(json.dumps(found, indent=2) + "\n")
        os.replace(new, file)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def commit() -> str:
    """The commit of the checkout that is measured; empty if there is no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
