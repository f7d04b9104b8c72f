"""Files and arrays of another host over links of 1 and 10 Gbit/s, against a TCP stream over the same link.

The two hosts are namespaces of this machine, each with its own network; a token bucket (tc tbf) limits the rate at
which a host sends to that of the link. Process 0 reads and writes the part of a shared file on the other host,
in the page cache there, and gets and puts the part of a global array in the memory of the other host, with 16
requests under way. In turns with this, two programs that do nothing else send as many bytes through one TCP
connection: the limit of the link. Both ends and the link itself share the cores. The benchmark needs root.
"""

from __future__ import annotations

import errno
import json
import statistics
import tempfile
from pathlib import Path

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_least, median_claim

from ._hosts import Hosts, missing
from ._link_worker import OUTSTANDING, SIZES

REASONS = {".*, 10 Gbit/s, .*": "both ends share two cores, which TCP alone keeps busy at this rate"}

LINKS = {"1 Gbit/s": 1e9, "10 Gbit/s": 10e9}
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


def measure(hosts: Hosts, options: BenchOptions) -> dict[str, list[float]]:
    moved_bytes, rounds = (16 << 20, 3) if options.quick else (64 << 20, 9)
    given = f"Path({str(hosts.directory)!r}), {hosts.address(1)!r}, {moved_bytes}, {rounds}"
    hosts.run(PROGRAM.format(given), 2, limit_s=600)
    found: dict[str, list[float]] = json.loads((hosts.directory / "times.json").read_text())
    hosts.clear()
    return {name: [moved_bytes / each / 1e6 for each in times] for name, times in found.items()}


def claims_of(rates: dict[str, list[float]], link: str) -> list[Claim]:
    """rates: in MB/s."""
    claims = []
    for size in SIZES:
        for (what, operation), name in NAMES.items():
            ours, stream = rates[f"{what} {operation} {size}"], rates[f"stream {operation} {size}"]
            how = (
                f"ours {statistics.median(ours):.0f} MB/s, the stream {statistics.median(stream):.0f} MB/s; "
                f"{OUTSTANDING} outstanding; {len(ours)} times in turns"
            )
            ratios = [mine / theirs for mine, theirs in zip(ours, stream, strict=True)]
            claim = f"{name}, {size >> 10} kB, {link}, of the link"
            claims.append(median_claim(claim, ratios, "x", at_least(0.95), "one TCP stream", how))
    return claims


def run(options: BenchOptions) -> list[Claim]:
    if reason := missing():
        raise OutcoreError(errno.EPERM, "bench link", detail=reason)
    claims = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as place:
        hosts = Hosts(2, Path(place))
        try:
            for link, bits_per_s in LINKS.items():
                hosts.limit(bits_per_s)
                claims += claims_of(measure(hosts, options), link)
                options.say(f"{link}: measured")
        finally:
            hosts.close()
    return claims
