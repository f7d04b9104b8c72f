"""Cores and memory that this process may use: affinity masks and control groups count, not the whole machine."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import re
import resource
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_M_ARENA_MAX = -8
_LIBRARIES_BYTES = 380 << 20  # address space of NumPy, SciPy, PySCF and the libraries that they load
_MAPPED_BYTES = 48 << 20  # address space for libraries and pieces of the heap that a run adds later
_BLAS_BYTES = 32 << 20  # per thread
_LARGE_BYTES = 256 << 10  # larger pieces go back to the system; for smaller ones page faults would cost more

_LOOK_S = 1.0  # between two looks at quotas of cores

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


def cores(*, root: str | Path = "/") -> int:
    """Cores that this process may use: its affinity mask, cut by a control-group quota and by the cores that Slurm
    gave the job on this node. Slurm itself binds no process where the site has no task plug-in."""
    given = os.environ.get("SLURM_CPUS_ON_NODE", "")
    bound = bound_cores(root=root)
    return min(bound, int(given)) if given.isdigit() and int(given) > 0 else bound


def bound_cores(pid: int = 0, *, root: str | Path = "/") -> int:
    """Cores that the system lets the process `pid` (0: this one) use."""
    allowed = len(os.sched_getaffinity(pid))
    quota = _min_quota(str(root), int(time.monotonic() / _LOOK_S))
    return allowed if quota is None else min(allowed, max(1, math.ceil(quota)))


@lru_cache(maxsize=1)
def _min_quota(root: str, _look: int) -> float | None:
    """The smallest quota of all groups of this process; a new value of `_look` makes it read them again."""
    found = (_cpu_quota(group) for group in _core.control_groups("cpu", root))
    return min((quota for quota in found if quota is not None), default=None)


@dataclass(frozen=True, order=True)
class Allowance:
    """Memory that a process may take, and the limit that decides it, for messages."""

    bytes: int
    reason: str


def allowance(processes: int = 1, threads: int = 0, *, root: str | Path = "/") -> Allowance:
    """Memory that one of `processes` on this node can still take without swapping, an error or being killed: the
    smallest remainder of all limits. The `threads` that it will start need address space, but no memory."""
    return min(_allowances(_core.memory_limits(root), processes, threads))


def hard_allowance(processes: int = 1, threads: int = 0, *, root: str | Path = "/") -> Allowance | None:
    """As `allowance`, for limits that no option of the user can exceed; None if there are none."""
    hard = [limit for limit in _core.memory_limits(root) if limit.hard]
    return min(_allowances(hard, processes, threads), default=None)


def _allowances(limits: Iterable[_core.MemoryLimit], processes: int, threads: int) -> Iterator[Allowance]:
    for limit in limits:
        left = limit.left_bytes // processes
        if not limit.shared:
            left = limit.left_bytes - _MAPPED_BYTES - threads * _thread_bytes()
        yield Allowance(max(0, left), f"{limit.name}, {in_words(limit.limit_bytes)} in {limit.source}")


def _thread_bytes() -> int:
    """Address space of a thread: its stack, and the work space of BLAS."""
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _BLAS_BYTES + (min(stack, 64 << 20) if stack > 0 else 2 << 20)


def refuse_little_address_space(threads: int) -> None:
    """Raises OutcoreError (ENOMEM) if the libraries of a calculation could not be loaded: some of them would then
    wait for ever, or end the process."""
    for limit in _core.memory_limits():
        libraries = (
            _LIBRARIES_BYTES if "RLIMIT_AS" in limit.name else _LIBRARIES_BYTES // 3
        )  # code is no data
        least = libraries + threads * 2 * _thread_bytes()  # two libraries of linear algebra at least
        if not limit.shared and limit.left_bytes < least:
            raise OutcoreError(
                errno.ENOMEM,
                "start",
                detail=f"{limit.name}, {in_words(limit.limit_bytes)} in {limit.source}, leaves "
                f"{in_words(limit.left_bytes)}; libraries and {threads} threads take {in_words(least)}",
            )


def available_memory_bytes() -> int:
    """Memory that the processes of this node can still take without swapping or being killed."""
    return allowance().bytes


def total_memory_bytes(*, root: str | Path = "/") -> int:
    """Memory that this process may use, including memory in use: that of the machine, or the smallest limit."""
    return min(limit.limit_bytes for limit in _core.memory_limits(root))


def resident_bytes() -> int:
    """Memory that this process holds now."""
    return _status_bytes("VmRSS")


def peak_resident_bytes() -> int:
    """The most memory that this process has held so far."""
    return _status_bytes("VmHWM")


def give_back_freed_memory() -> None:
    """From now on memory of freed arrays of this process goes back to the system, so that a budget of memory can be
    kept: otherwise glibc keeps freed memory in its heap, up to the size of the largest array freed so far. Only
    programs call it, not the library, because it changes the whole process. It has no effect on other C libraries.
    [M34]"""
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        for parameter, count in ((_M_MMAP_THRESHOLD, _LARGE_BYTES), (_M_TRIM_THRESHOLD, _LARGE_BYTES)):
            library.mallopt(parameter, count)


def trim_heap() -> None:
    """Gives memory that this process has freed back to the system: from the heaps of all threads (only with glibc),
    and buffers of transfers to and from disk."""
    _core.trim_buffers()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def spare_address_space() -> None:
    """From now on the threads of this process share one heap if its address space is limited: otherwise each would
    map 64 MiB for a heap of its own. Only programs call it."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        library = ctypes.CDLL(None)
        if hasattr(library, "gnu_get_libc_version"):
            library.mallopt(_M_ARENA_MAX, 1)


def _status_bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


def _cpu_quota(group: Path) -> float | None:
    """Number of cores whose time the group may use, None without a limit."""
    try:  # version 2: "MAX PERIOD" in microseconds, MAX may be "max"
        most, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        quota, interval = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        return quota / interval if quota and interval and quota > 0 else None
    return None if most == "max" else int(most) / int(period)


def _number(path: Path) -> int | None:
    """The number in a file; None if there is no file or it says "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def parse_bytes(size: str | int) -> int:
    """Bytes from "400MB", "2GiB", "1e9", or a number. Raises OutcoreError."""
    if type(size) is int and 0 < size < 1 << 63:
        return size
    text = str(size)
    match = re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([kKmMgGtT]?i?)[bB]?\s*", text)
    try:
        if match is None:
            raise ValueError
        count = int(float(match[1]) * _UNITS[match[2].upper()])
    except (ValueError, OverflowError):
        raise OutcoreError(
            errno.EINVAL, f"size '{text}'", detail="write it as 400MB, 2GB or 1.5GiB"
        ) from None
    if not 0 < count < 1 << 63:
        raise OutcoreError(errno.EINVAL, f"size '{text}'", detail="it must be positive, and less than 2^63")
    return count
