"""Computing while reading: the time of both together against the longer of the two; and how long the calls take.

A thread reads a file from the disk with nonblocking requests and computes on the data that have arrived. The
computation is repeated until it takes about as long as the reading, where overlap is hardest to reach.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Literal

import numpy as np

from outcore import ExclusiveFile, _core
from outcore.cli.bench import BenchOptions, Claim, at_most, drop_page_cache

REASONS = {
    "a nonblocking .* returns": "nearly all of it is the wake-up of an idle core of a virtual machine",
}

RECORD_BYTES = 4 << 20
CALL_BYTES = 1 << 20
DEPTH = 4
Record = np.ndarray[tuple[int], np.dtype[np.float64]]


def records(count: int) -> list[Record]:
    """Buffers that are aligned for direct I/O."""
    memory = np.zeros(count * RECORD_BYTES + 4096, np.uint8)
    skip = -memory.ctypes.data % 4096
    whole = memory[skip : skip + count * RECORD_BYTES].view(np.float64)
    return list(whole.reshape(count, -1))


def compute(record: Record, rounds: int) -> float:
    """Computes in this thread alone, on data that stay in its cache, as a contraction of integrals does."""
    block = record[: 1 << 12]
    total = 0.0
    for _ in range(rounds):
        total += float(np.sqrt(block * 1.0001 + 0.5).sum())
    return total


def only_compute(buffers: list[Record], count: int, rounds: int) -> float:
    start = time.perf_counter()
    for i in range(count):
        compute(buffers[i % DEPTH], rounds)
    return time.perf_counter() - start


def read_and_compute(file: ExclusiveFile, buffers: list[Record], count: int, rounds: int) -> float:
    """Seconds to read `count` records, DEPTH of them under way, and to compute on each (rounds may be 0)."""
    start = time.perf_counter()
    under_way = deque(file.read_async(buffers[i], i * RECORD_BYTES) for i in range(DEPTH))
    for i in range(count):
        under_way.popleft().wait()
        compute(buffers[i % DEPTH], rounds)
        if i + DEPTH < count:
            under_way.append(file.read_async(buffers[i % DEPTH], (i + DEPTH) * RECORD_BYTES))
    return time.perf_counter() - start


def calibrate(buffers: list[Record], seconds: float) -> int:
    """The number of rounds of computing on one record that take about `seconds`."""
    trial = 20
    once = min(only_compute(buffers, 1, trial) for _ in range(20)) / trial
    return max(1, round(seconds / once))


def call_seconds(
    file: ExclusiveFile, operation: Literal["read", "write"], buffers: list[Record], count: int, rounds: int
) -> list[float]:
    """Seconds of each of `count` nonblocking calls of CALL_BYTES, DEPTH under way, with computing between them."""
    begin = file.read_async if operation == "read" else file.write_async
    under_way: deque[_core.Request] = deque()
    seconds = []
    for i in range(count):
        if len(under_way) == DEPTH:
            under_way.popleft().wait()
        compute(buffers[i % DEPTH], rounds)
        part = buffers[i % DEPTH].view(np.uint8)[:CALL_BYTES]
        start = time.perf_counter()
        under_way.append(begin(part, i * CALL_BYTES))
        seconds.append(time.perf_counter() - start)
    while under_way:
        under_way.popleft().wait()
    return seconds


def wake_seconds(buffers: list[Record], count: int, rounds: int) -> list[float]:
    """Seconds of each of `count` writes to a pipe that wake a sleeping process, with computing between them. For
    comparison: a nonblocking call also has to wake a thread, of the engine or of the system."""
    command = [sys.executable, "-c", "import os\nwhile os.read(0, 1): pass"]
    seconds = []
    with subprocess.Popen(command, stdin=subprocess.PIPE) as reader:
        assert reader.stdin
        for i in range(count):
            compute(buffers[i % DEPTH], rounds)
            start = time.perf_counter()
            os.write(reader.stdin.fileno(), b"x")
            seconds.append(time.perf_counter() - start)
        reader.stdin.close()
    return seconds


def call_claims(
    options: BenchOptions, file: ExclusiveFile, buffers: list[Record], count: int, rounds: int
) -> list[Claim]:
    wake = statistics.median(wake_seconds(buffers, count, rounds)) * 1e6
    how = (
        f"{count} calls on a file on the disk (direct), {DEPTH} under way, the same thread computing between them, "
        f"about as long as one of them is under way; median. To wake a sleeping process through a pipe alone took "
        f"{wake:.1f} us"
    )
    options.say(f"to wake a sleeping process through a pipe takes {wake:.1f} us")
    claims = []
    for operation in ("read", "write"):
        seconds = call_seconds(file, operation, buffers, count, rounds)
        name = f"a nonblocking {operation} of 1 MiB returns"
        claims.append(Claim(name, statistics.median(seconds) * 1e6, "us", at_most(20), "", how))
    return claims


def run(options: BenchOptions) -> list[Claim]:
    count, repeats = (100, 5) if options.quick else (250, 31)
    buffers = records(DEPTH)
    read, computed, both = [], [], []
    with ExclusiveFile("overlap", scratch=options.scratch, page_cache="direct", keep=True) as file:
        for i in range(count):
            file.write(buffers[0], i * RECORD_BYTES)
        file.flush()
        place = Path(file.path)
        drop_page_cache(place)
        reading = statistics.median(read_and_compute(file, buffers, count, 0) for _ in range(3))
        rounds = calibrate(buffers, reading / count)
        for _ in range(repeats):
            drop_page_cache(place)
            read.append(read_and_compute(file, buffers, count, 0))
            computed.append(only_compute(buffers, count, rounds))
            drop_page_cache(place)
            both.append(read_and_compute(file, buffers, count, rounds))
        per_call = max(1, rounds * CALL_BYTES // RECORD_BYTES)
        calls = call_claims(options, file, buffers, count * RECORD_BYTES // CALL_BYTES, per_call)
        file.delete()
    ratios = [together / max(alone) for together, *alone in zip(both, read, computed, strict=True)]
    options.say(
        f"reading {statistics.median(read):.3f} s, computing {statistics.median(computed):.3f} s, "
        f"both {statistics.median(both):.3f} s"
    )
    how = (
        f"{count} records of 4 MiB from the disk (direct), {DEPTH} under way; computing in the same thread, as "
        f"long as the reading; median of {repeats} ratios, each of times taken in a row"
    )
    ratio = statistics.median(ratios)
    return [
        Claim("computing while reading, against the longer of the two", ratio, "x", at_most(1.1), "", how),
        *calls,
    ]
