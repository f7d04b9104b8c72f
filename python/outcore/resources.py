"""Cores and memory that this process has been given: affinity masks and control groups count, not the machine."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from outcore.errors import OutcoreError

_CGROUP_ROOT = Path("/sys/fs/cgroup")

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_LARGE_BYTES = 256 << 10  # of what is given back: smaller pieces would cost more page faults than memory

_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}


def cores(pid: int = 0) -> int:
    """Cores that the process `pid` (0: this one) may use: its affinity mask, cut by a control-group quota."""
    allowed = len(os.sched_getaffinity(pid))
    for group in _cgroups():
        quota = _cpu_quota(group)
        if quota is not None:
            allowed = min(allowed, max(1, math.ceil(quota)))
    return allowed


def available_memory_bytes() -> int:
    """Memory that can still be taken without swapping or being killed: the least of what the machine has
    available and what is left in each control group around this process."""
    available = _meminfo_bytes("MemAvailable")
    for group in _cgroups():
        left = _memory_left_bytes(group)
        if left is not None:
            available = min(available, left)
    return max(0, available)


def total_memory_bytes() -> int:
    """Memory given to this process: the machine's, or the smallest limit of a control group around it."""
    total = _meminfo_bytes("MemTotal")
    for group in _cgroups():
        limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
        if limit is not None:
            total = min(total, limit)
    return total


def resident_bytes() -> int:
    """Memory that this process holds now."""
    return _status_bytes("VmRSS")


def peak_resident_bytes() -> int:
    """The most memory that this process has held so far."""
    return _status_bytes("VmHWM")


def give_back_freed_memory() -> None:
    """From now on arrays of this process that are freed are the system's again, so that a budget of memory can be
    kept: the C library would take the size of the largest array freed so far as what is to be kept in its heap.
    For programs, as a library is a guest in its process. Other C libraries than glibc do as they do."""
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        for parameter, count in ((_M_MMAP_THRESHOLD, _LARGE_BYTES), (_M_TRIM_THRESHOLD, _LARGE_BYTES)):
            library.mallopt(parameter, count)


def _status_bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


def _cgroups() -> Iterator[Path]:
    """The control groups of this process, innermost first, of version 2 and of version 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers not in ("", "memory", "cpu,cpuacct", "cpu"):
            continue
        root = _CGROUP_ROOT / controllers
        group = root / name.lstrip("/")
        while True:
            if group.is_dir():
                yield group
            if group == root or root not in group.parents:
                break
            group = group.parent


def _cpu_quota(group: Path) -> float | None:
    """Cores' worth of time that the group may use, None without a limit."""
    try:  # version 2: "MAX PERIOD" in microseconds, MAX may be "max"
        most, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        quota, interval = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        return quota / interval if quota and interval and quota > 0 else None
    return None if most == "max" else int(most) / int(period)


def _memory_left_bytes(group: Path) -> int | None:
    """Limit minus what is in use and cannot be dropped: the page cache of inactive files can."""
    limit = _number(group / "memory.max")
    used = _number(group / "memory.current")
    droppable = "inactive_file"
    if limit is None:
        limit, used = _number(group / "memory.limit_in_bytes"), _number(group / "memory.usage_in_bytes")
        droppable = "total_inactive_file"
    if limit is None or used is None:
        return None
    return limit - used + _statistic(group / "memory.stat", droppable)


def _statistic(path: Path, name: str) -> int:
    try:
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass
    return 0


def _number(path: Path) -> int | None:
    """The number in a file; None if there is no file or it says "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _meminfo_bytes(name: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/meminfo has no {name}")


def parse_bytes(size: str | int) -> int:
    """Bytes from "400MB", "2GiB", "1e9", or a number. Raises OutcoreError."""
    text = str(size)
    match = re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([kKmMgGtT]?i?)[bB]?\s*", text)
    try:
        if match is None:
            raise ValueError
        count = int(float(match[1]) * _UNITS[match[2].upper()])
    except ValueError:
        raise OutcoreError(
            errno.EINVAL, f"size '{text}'", detail="write it as 400MB, 2GB or 1.5GiB"
        ) from None
    if count <= 0:
        raise OutcoreError(errno.EINVAL, f"size '{text}'", detail="it must be positive")
    return count
