"""Files and arrays of another host over links of 1 and 10 Gbit/s, near and far, against a TCP stream.

The two hosts are namespaces of this machine, each with its own network. A token bucket (tc tbf) limits the rate at
which a host sends to that of the link, and a relay holds each frame for the time that it takes one way, as
`tc netem` does, which not every kernel has. Process 0 reads and writes the part of a shared file on the other host,
in the page cache there, and gets and puts the part of a global array in the memory of the other host. So many
requests are under way that they hold twice what the link holds, 16 at least. In turns with this, two programs that
do nothing else send as many bytes through one TCP connection: the limit of the link. Both ends, the relay and the
link itself share the cores. The benchmark needs root.
"""

from __future__ import annotations

import errno
import json
import math
import statistics
import tempfile
from contextlib import nullcontext
from pathlib import Path

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_least, median_claim

from ._hosts import Hosts, missing
from ._link_worker import SIZES
from ._workers import compile_worker

REASONS = {".*, 10 Gbit/s, .*": "both ends share two cores, which TCP alone keeps busy at this rate"}

LINKS = {"1 Gbit/s": 1e9, "10 Gbit/s": 10e9}
DELAYS = {"near": 0.0, "0.1 ms": 1e-4, "1 ms": 1e-3}  # one way
LEAST_OUTSTANDING = 16
NAMES = {
    ("file", "read"): "distant read",
    ("file", "write"): "distant write",
    ("array", "read"): "get",
    ("array", "write"): "put",
}
PROGRAM = """
from pathlib import Path
from outcore.cli.bench import load
load("_link_worker").main({})
"""


def outstanding(bits_per_s: float, delay: float) -> dict[int, int]:
    """Requests under way, by size: twice what the link holds in the time of a round trip."""
    held_bytes = bits_per_s / 8 * 2 * delay
    return {size: max(LEAST_OUTSTANDING, math.ceil(2 * held_bytes / size)) for size in SIZES}


def measure(hosts: Hosts, counts: dict[int, int], options: BenchOptions) -> dict[str, list[float]]:
    """MB/s of each kind of request, with so many under way by size."""
    moved_bytes, rounds = (16 << 20, 3) if options.quick else (64 << 20, 9)
    given = f"Path({str(hosts.directory)!r}), {hosts.address(1)!r}, {moved_bytes}, {rounds}, {counts}"
    hosts.run(PROGRAM.format(given), 2, limit_s=600)
    found: dict[str, list[float]] = json.loads((hosts.directory / "times.json").read_text())
    hosts.clear()
    return {name: [moved_bytes / each / 1e6 for each in times] for name, times in found.items()}


def claims_of(rates: dict[str, list[float]], counts: dict[int, int], link: str) -> list[Claim]:
    """rates: in MB/s."""
    claims = []
    for size in SIZES:
        for (what, operation), name in NAMES.items():
            ours, stream = rates[f"{what} {operation} {size}"], rates[f"stream {operation} {size}"]
            how = (
                f"ours {statistics.median(ours):.0f} MB/s, the stream {statistics.median(stream):.0f} MB/s; "
                f"{counts[size]} outstanding; {len(ours)} times in turns"
            )
            ratios = [mine / theirs for mine, theirs in zip(ours, stream, strict=True)]
            claim = f"{name}, {size >> 10} kB, {link}, of the link"
            claims.append(median_claim(claim, ratios, "x", at_least(0.95), "one TCP stream", how))
    return claims


def run(options: BenchOptions) -> list[Claim]:
    if reason := missing():
        raise OutcoreError(errno.EPERM, "bench link", detail=reason)
    claims = []
    delays = dict(list(DELAYS.items())[::2]) if options.quick else DELAYS
    with tempfile.TemporaryDirectory(dir=options.scratch) as place:
        relay = compile_worker("_relay.cpp", options.scratch)
        hosts = Hosts(2, Path(place))
        try:
            for link, bits_per_s in LINKS.items():
                hosts.limit(bits_per_s)
                for far, delay in delays.items():
                    counts = outstanding(bits_per_s, delay)
                    with hosts.delayed(relay, delay) if delay else nullcontext():
                        claims += claims_of(measure(hosts, counts, options), counts, f"{link}, {far}")
                    options.say(f"{link}, {far}: measured")
        finally:
            hosts.close()
            relay.unlink()
    return claims
