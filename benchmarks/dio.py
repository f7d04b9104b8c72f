"""Distant I/O: requests to a file on the disk of another process, against requests to the local disk.

Two processes, each a node of its own. Process 0 reads and writes the parts of a shared file at itself and at
process 1, which sleeps; with 16 requests outstanding, with and without the page cache, in its part of a global
array, which process 1 can access, and in memory of NumPy, which process 1 cannot access. There are two
settings, as in `bench gpc`: on one host, and as between hosts, over TCP, where both ends share the cores with
all other work. --quick moves a quarter of the bytes, in memory that process 1 can access.

In the second setting the rates are compared, in turns, with two programs of the same structure: one serves a file
with MPI messages, pread and pwrite, as Outcore does; the other one with TCP sockets and sendfile, on one connection
or four, which is about the limit of the system. They are also compared with the rate of MPI over the same network
(16 messages of that size outstanding) where that is below the local rate. The claims show the share of a core that
each end takes.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from outcore.base.errors import OutcoreError
from outcore.cli.bench import BenchOptions, Claim, at_least, median_claim
from outcore.job import launch

from ._dio_worker import CACHES, ENDS, MEMORIES, OUTSTANDING, SIZES, count_of
from ._workers import compile_worker
from .gpc import HOSTS, ONE_HOST, SETTINGS

REASONS = {
    "distant .* (256|1024) kB, .* as between hosts, .*": "neither end takes a whole core: each waits for the "
    "other, and sleeps between looks at the network, where the peer polls",
    "distant .* as between hosts, .*": "both ends share two cores, see the shares of each",
    "distant .* on one host, .*": "both processes share two cores, see the shares of each",
}

LIMIT_S = 600
BAR_FROM_BYTES = 32 << 10
WAYS = {"buffered": "in the page cache", "direct": "past the page cache"}
PLACES = {"segment": "", "private": ", private memory"}


Times = dict[str, list[float]]
SERVER = "MPI"
PEERS = {SERVER: "a server of MPI messages", "socket": "one socket", "sockets": "four sockets"}


@dataclass(frozen=True)
class Effort:
    """How long to measure. moved_bytes: by requests of one measurement, unless they are very small."""

    turns: int
    rounds: int
    moved_bytes: int
    memories: tuple[str, ...]


FULL = Effort(turns=3, rounds=5, moved_bytes=64 << 20, memories=MEMORIES)
QUICK = Effort(turns=1, rounds=2, moved_bytes=16 << 20, memories=MEMORIES[:1])


def measure(setting: str, options: BenchOptions, effort: Effort) -> tuple[Times, Times]:
    """Seconds of each kind of request: of the worker, with shares of a core, and of peers, in turns."""
    ours: Times = {}
    peers: Times = {}
    program = compile_worker("_dio_peers.cpp", options.scratch) if setting == HOSTS else None
    numbers = [str(effort.rounds), str(effort.moved_bytes)]
    for _ in range(effort.turns):
        place = options.scratch / "dio.json"
        worker = Path(__file__).with_name("_dio_worker.py")
        _run(setting, [sys.executable, worker, place, *numbers, options.scratch, *effort.memories])
        for name, values in json.loads(place.read_text()).items():
            ours.setdefault(name, []).extend(values)
        if program is not None:
            _run(setting, [program, place, options.scratch, *numbers])
            for line in place.read_text().splitlines():
                peer, cache, operation, size, *values = line.split()
                for what, value in zip(("", *ENDS), values, strict=True):
                    name = f"{peer} {cache} {operation} {size} {what}".strip()
                    peers.setdefault(name, []).append(float(value))
        place.unlink()
    if program is not None:
        program.unlink()
    return ours, peers


def _run(setting: str, command: Sequence[str | Path]) -> None:
    """Runs a command in two processes."""
    answer = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", *map(str, command)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **SETTINGS[setting]},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if answer.returncode != 0:
        raise OutcoreError(errno.EIO, "run two processes", detail=(answer.stdout + answer.stderr)[-2000:])


def _shares(times: Times, name: str) -> str:
    asks, serves = (statistics.median(times[f"{name} {each}"]) for each in ENDS)
    return f"{asks:.2f} of a core asks, {serves:.2f} serves"


def _against_peers(
    ours: Times, peers: Times, memory: str, cache: str, operation: str, size: int, moved: int
) -> Iterator[Claim]:
    """Claims against the MPI server of the same structure and against sockets. moved: bytes, each time."""
    kind = f"{operation} {size}"
    mine = ours[f"{memory} {cache} {kind} distant"]
    floor = min(list(PEERS)[1:], key=lambda peer: statistics.median(peers[f"{peer} {cache} {kind}"]))
    for peer in (SERVER, floor):
        theirs = peers[f"{peer} {cache} {kind}"]
        rates = [moved / statistics.median(each) / 1e9 for each in (mine, theirs)]
        how = (
            f"ours {rates[0]:.2f} GB/s, {_shares(ours, f'{memory} {cache} {kind}')}; theirs {rates[1]:.2f} GB/s, "
            f"{_shares(peers, f'{peer} {cache} {kind}')}; {OUTSTANDING} outstanding; {len(mine)} times in turns, "
            f"{moved >> 20} MiB each"
        )
        against = "a server" if peer == SERVER else "sockets"
        what = (
            f"distant {operation}, {size >> 10} kB, {WAYS[cache]}{PLACES[memory]}, {HOSTS}, against {against}"
        )
        has_bar = peer == SERVER and size >= BAR_FROM_BYTES and memory == "segment"
        ratios = [a / b for a, b in zip(theirs, mine, strict=True)]
        yield median_claim(what, ratios, "x", at_least(0.9) if has_bar else None, PEERS[peer], how)


def claims_of(times: Times, peers: Times, setting: str, moved_bytes: int) -> list[Claim]:
    claims: list[Claim] = []
    for memory, cache, operation, size in itertools.product(MEMORIES, CACHES, ("read", "write"), SIZES):
        if f"{memory} {cache} {operation} {size} local" not in times:
            continue
        local, distant = (
            times[f"{memory} {cache} {operation} {size} {where}"] for where in ("local", "distant")
        )
        moved = size * count_of(size, moved_bytes)
        rates = [moved / statistics.median(each) / 1e9 for each in (local, distant)]
        what = f"distant {operation}, {size >> 10} kB, {WAYS[cache]}{PLACES[memory]}, {setting}"
        how = f"local {rates[0]:.2f} GB/s, distant {rates[1]:.2f} GB/s"
        ratios = [a / b for a, b in zip(local, distant, strict=True)]
        if setting == ONE_HOST:
            what += ", against local"
            how += f", {_shares(times, f'{memory} {cache} {operation} {size}')}"
        else:
            network = statistics.median(times[f"network {operation} {size}"])
            how += f", MPI over the network {moved / network / 1e9:.2f} GB/s"
            how += f"; {statistics.median(ratios):.2f} of local"
            ratios = [max(a, network) / b for a, b in zip(local, distant, strict=True)]
            what += ", against the slower of local and network"
            claims.extend(_against_peers(times, peers, memory, cache, operation, size, moved))
        how += f"; {OUTSTANDING} outstanding; {len(local)} times in turns, {moved >> 20} MiB each"
        has_bar = setting == ONE_HOST and size >= BAR_FROM_BYTES and memory == "segment"
        claims.append(median_claim(what, ratios, "x", at_least(0.9) if has_bar else None, "", how))
    return claims


def run(options: BenchOptions) -> list[Claim]:
    claims, effort = [], QUICK if options.quick else FULL
    for setting in SETTINGS:
        claims += claims_of(*measure(setting, options, effort), setting, effort.moved_bytes)
        options.say(f"{setting}: measured")
    return claims
