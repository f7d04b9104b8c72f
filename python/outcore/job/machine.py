"""Rates of this machine, for plans and estimates: disk, memory, products of matrices, network.

A measurement runs the real operation for some tenths of a second. Its rate is then known to every run with the same
settings on the same node, and is measured again from time to time (`rate_cache`). The rate of one thread is its
rate while `threads` threads do the same.
"""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.job import rate_cache, resources
from outcore.parallel import team
from outcore.trace.report import RawRates

if TYPE_CHECKING:
    from outcore.job.world import World

Call = Callable[[], Any]

_ASSUMED = RawRates(read_bytes_per_s=100e6, write_bytes_per_s=100e6)  # of a slow disk
_ASSUMED_NETWORK = 100e6
_BLOCK_BYTES = 2 << 20
MEASURED_BYTES = 128 << 20  # written and read by `measure_disk`
_COPIED_BYTES = 4 << 20
_SAMPLE_S = 0.02
_GEMM_CALLS = 4  # at least: times of single large products differ by a third
_NETWORK_BYTES = 4 << 20
_NETWORK_S = 0.1
_LARGEST_GEMM, _SMALLEST_GEMM = 1024, 16  # rows of measured products; larger products are no faster


# ---- disk ----


def disk(
    directory: str | os.PathLike[str],
    *,
    fresh: bool = False,
    moved_bytes: float = math.inf,
    kept_at: str | os.PathLike[str] | None = None,
) -> RawRates | None:
    """Rates of large requests with direct I/O in a directory, from `measure_disk`. `fresh`: measure now, whatever
    is known. A run that writes at most `moved_bytes`, less than a measurement writes, does not measure: it uses the
    rates of earlier runs. None if the rates cannot be measured, or if the run also has files at `kept_at`, on
    another file system."""
    if kept_at is not None and not _same_file_system(directory, kept_at):
        return None

    def measure() -> rate_cache.Values | None:
        rates = measure_disk(directory)
        return None if rates is None else {"read": rates.read_bytes_per_s, "write": rates.write_bytes_per_s}

    try:
        settings = _disk_settings(directory)
    except OSError:
        return None
    if moved_bytes < MEASURED_BYTES:
        found = rate_cache.current("disk", settings, due=True)
    else:
        found = rate_cache.known("disk", settings, measure, fresh=fresh)
    return None if found is None else RawRates(found["read"], found["write"])


def _same_file_system(directory: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """`other` need not exist yet."""
    there = Path(other).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        return os.stat(directory).st_dev == os.stat(there).st_dev
    except OSError:
        return False


def _disk_settings(directory: str | os.PathLike[str]) -> dict[str, Any]:
    system = _core.file_system(directory)
    return {
        "file system": [system.type, system.total_bytes, os.stat(directory).st_dev],
        "engine": _core.engine_name(),
        "emulated": _core.emulation(),
    }


def disk_name(directory: str | os.PathLike[str]) -> str:
    """The facts on which rates of this disk depend, as a text; empty if they are not known."""
    try:
        return json.dumps(_disk_settings(directory), sort_keys=True)
    except OSError:
        return ""


def planning_disk(directory: str | os.PathLike[str]) -> tuple[RawRates, bool]:
    """Rates for plans, and whether they were measured; if not, they are those of a slow disk."""
    rates = disk(directory)
    return (_ASSUMED, False) if rates is None else (rates, True)


def measure_disk(
    directory: str | os.PathLike[str], *, size_bytes: int = MEASURED_BYTES, limit_s: float = 0.5
) -> RawRates | None:
    """Measures rates of large requests with direct I/O in `directory` now: writes a file of `size_bytes` there,
    with eight requests of 2 MiB under way, reads it back, and removes it. It stops after `limit_s` seconds each
    way, with the bytes moved until then. The trace counts these requests: take its snapshot before.

    The file takes at most a quarter of the free space. Returns None if that is too little, or if anything fails: a
    program that needs the disk will get the error itself, and another can go on."""
    try:
        most = min(size_bytes, _core.file_system(directory).free_bytes // 4)
        return _measured(directory, most // _BLOCK_BYTES, limit_s) if most >= _BLOCK_BYTES else None
    except (OSError, MemoryError):
        return None


def _measured(directory: str | os.PathLike[str], blocks: int, limit_s: float) -> RawRates:
    block_bytes, depth = _BLOCK_BYTES, min(8, blocks)
    lanes = [mmap.mmap(-1, block_bytes) for _ in range(depth)]  # aligned to pages, as direct I/O needs
    for lane in lanes:
        lane.write(os.urandom(4096) * (block_bytes // 4096))

    def move(start: Callable[[Any, int], _core.Request], count: int) -> tuple[float, int]:
        requests: list[_core.Request] = []
        begun = time.perf_counter()
        moved = 0
        for block in range(count):
            if block >= depth:
                requests[block - depth].wait()
                if time.perf_counter() - begun > limit_s:
                    break
            requests.append(start(lanes[block % depth], block * block_bytes))
            moved += 1
        for request in requests[-depth:]:
            request.wait()
        return moved * block_bytes / (time.perf_counter() - begun), moved

    file = _core.ExclusiveFile("rate", scratch=str(directory), page_cache="direct")
    try:
        written, count = move(file.write_async, blocks)
        read, _ = move(file.read_async, count)
    finally:
        file.delete()
    return RawRates(read_bytes_per_s=read, write_bytes_per_s=written)


# ---- processor ----


def copying(threads: int) -> float:
    """Bytes a second that one thread copies inside the caches of its core."""

    def copy() -> Call:
        here, there = np.zeros(_COPIED_BYTES, np.uint8), np.zeros(_COPIED_BYTES, np.uint8)
        return lambda: np.copyto(there, here)

    return of_processor("copying", threads, {}, lambda: _COPIED_BYTES * frequency(copy, threads))


def gemm(rows: int, columns: int, inner: int, threads: int, dtype: str = "float64") -> float:
    """Operations a second of one thread in products [rows][inner] times [inner][columns], two operations for each
    multiplication. Shapes are rounded up to powers of two, within the range in which the shape matters."""
    m, n, k = (_rounded(each) for each in (rows, columns, inner))

    def multiply() -> Call:
        left, right, out = np.ones((m, k), dtype), np.ones((k, n), dtype), np.empty((m, n), dtype)
        return lambda: np.matmul(left, right, out=out)

    return of_processor(
        "gemm",
        threads,
        {"shape": [m, n, k], "type": dtype, "blas": _blas()},
        lambda: 2.0 * m * n * k * frequency(multiply, threads, calls=_GEMM_CALLS),
    )


def frequency(make: Callable[[], Call], threads: int, seconds: float = _SAMPLE_S, calls: int = 1) -> float:
    """Calls a second of one thread, for kernels that only a method knows. Each of `threads` threads calls a
    function of its own, which `make` returns, for at least so many seconds and calls."""
    counts = [0.0] * threads

    def sample(thread: int, call: Call) -> None:
        call()
        count, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < seconds or count < calls:
            call()
            count += 1
        counts[thread] += count / passed

    team.each([make() for _ in range(threads)], threads, sample)
    return sum(counts) / threads


def of_processor(name: str, threads: int, more: dict[str, Any], measure: Callable[[], float]) -> float:
    """A rate of this processor while so many threads work, stored by its name and by the other settings `more` on
    which it depends."""
    settings = {"processor": _processor(), "cores": resources.cores(), "threads": threads, **more}

    def measured() -> rate_cache.Values:
        rate = measure()
        resources.trim_heap()  # a budget counts the memory that the process holds when its work begins
        return {"rate": rate}

    found = rate_cache.known(name, settings, measured)
    assert found is not None
    return found["rate"]


def _rounded(count: int) -> int:
    return min(max(1 << (max(count, 1) - 1).bit_length(), _SMALLEST_GEMM), _LARGEST_GEMM)


@cache
def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return os.uname().machine


def _blas() -> str:
    """Names NumPy's BLAS by the version of NumPy, which includes it."""
    return f"NumPy {np.__version__}"


# ---- network ----


def network(world: World) -> float:
    """Bytes a second that a process reads from the memory of another one while all do the same: each from one of
    the next node, or from the next rank if there is one node; the slowest process counts. Infinite for one process;
    the rate of a slow network if the budget leaves no room to measure. Collective; the same at all."""
    if world.size == 1:
        return math.inf
    nodes = world.gather(os.uname().nodename)
    settings = {"processes": nodes, "nodes": world.node_count, "transport": world.description}

    def at_first(look: Callable[[], rate_cache.Values | None]) -> rate_cache.Values | None:
        return world.broadcast(look() if world.rank == 0 else None)

    found = at_first(lambda: rate_cache.current("network", settings))
    if found is None:
        try:
            values = {"rate": float(world.all_reduce(_network(world), "min"))}
            found = at_first(lambda: rate_cache.add("network", settings, values))
        except OutcoreError as error:
            if error.errno != errno.ENOMEM:
                raise
            found = at_first(lambda: rate_cache.current("network", settings, due=True))
    return _ASSUMED_NETWORK if found is None else float(found["rate"])


def _network(world: World) -> float:
    from outcore.arrays.global_array import GlobalArray

    count, other = _NETWORK_BYTES // 8, _next(world)
    with GlobalArray(world, (world.size, count), distribution=[list(range(world.size)), [0]]) as array:
        buffer = np.empty((1, count))
        array.get(np.s_[other : other + 1, :], buffer)
        world.barrier()
        gets, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < _NETWORK_S or gets == 0:
            array.get(np.s_[other : other + 1, :], buffer)
            gets += 1
        world.barrier()
    return gets * _NETWORK_BYTES / passed


def _next(world: World) -> int:
    """Of processes of several nodes one of the next node, so that all of a node share its network."""
    if world.node_count == 1:
        return (world.rank + 1) % world.size
    there = (world.node + 1) % world.node_count
    others = [rank for rank, node in enumerate(world.gather(world.node)) if node == there]
    return others[world.node_rank % len(others)]
