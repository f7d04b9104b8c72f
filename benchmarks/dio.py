"""Distant I/O: requests to a file on the disk of another process, beside those to a disk of one's own.

Two processes, each a node of its own. Process 0 reads and writes a shared file, 16 requests outstanding, once where
it lies at process 0 and once where it lies at process 1, which sleeps; through the page cache and past it; into and
out of its part of a global array, which process 1 sees, and memory of NumPy, which it does not. In two settings, as
in `bench gpc`: by the means of one host, and as between hosts, over TCP, where both ends of it share the cores with
all else. There the rate is compared with what MPI moves over the same network, 16 messages of that size
outstanding, where that is less than the local rate.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_least, median_claim
from outcore.job import launch

from ._dio_worker import CACHES, MEMORIES, OUTSTANDING, SIZES, count_of
from .gpc import ONE_HOST, SETTINGS

REASONS = {
    "distant .* as between hosts, .*": "disk, network and both processes share two cores",
    "distant .* on one host, .*": "both processes share two cores",
}

LIMIT_S = 600
BAR_FROM_BYTES = 32 << 10
WAYS = {"buffered": "in the page cache", "direct": "past the page cache"}
PLACES = {"segment": "", "private": ", private memory"}


def measure(setting: str, options: BenchOptions) -> dict[str, list[float]]:
    """Times in seconds of every kind, as the worker took them."""
    place = options.scratch / "dio.json"
    worker = Path(__file__).with_name("_dio_worker.py")
    command = [
        str(launch.find_launcher()), "-n", "2", sys.executable, str(worker), str(place),
        "quick" if options.quick else "full", str(options.scratch),
    ]  # fmt: skip
    answer = subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", **SETTINGS[setting]},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if answer.returncode != 0:
        raise OutcoreError(errno.EIO, "run two processes", detail=(answer.stdout + answer.stderr)[-2000:])
    result: dict[str, list[float]] = json.loads(place.read_text())
    place.unlink()
    return result


def claims_of(times: dict[str, list[float]], setting: str) -> list[Claim]:
    claims = []
    for memory, cache, operation, size in itertools.product(MEMORIES, CACHES, ("read", "write"), SIZES):
        local, distant = (
            times[f"{memory} {cache} {operation} {size} {where}"] for where in ("local", "distant")
        )
        moved = size * count_of(size)
        rates = [moved / statistics.median(each) / 1e9 for each in (local, distant)]
        what = f"distant {operation}, {size >> 10} kB, {WAYS[cache]}{PLACES[memory]}, {setting}"
        how = f"local {rates[0]:.2f} GB/s, distant {rates[1]:.2f} GB/s"
        ratios = [a / b for a, b in zip(local, distant, strict=True)]
        if setting == ONE_HOST:
            what += ", against local"
        else:
            network = statistics.median(times[f"network {operation} {size}"])
            how += f", MPI over the network {moved / network / 1e9:.2f} GB/s"
            how += f"; {statistics.median(ratios):.2f} of local"
            ratios = [max(a, network) / b for a, b in zip(local, distant, strict=True)]
            what += ", against the slower of local and network"
        how += f"; {OUTSTANDING} outstanding; {len(local)} times in turns"
        bar = at_least(0.9) if size >= BAR_FROM_BYTES and memory == "segment" else None
        claims.append(median_claim(what, ratios, "x", bar, "", how))
    return claims


def run(options: BenchOptions) -> list[Claim]:
    claims = []
    for setting in SETTINGS:
        claims += claims_of(measure(setting, options), setting)
        options.say(f"{setting}: measured")
    return claims
