"""Shared files: the ChemIO test, against MPI-IO, Global Arrays' SF and plain system calls.

A file of 1.3 GB in requests of 32 and 64 kB, by 1, 2 and 4 processes; a process waits for each request. Process
k % n writes request k, and its neighbour reads it. The reads are repeated five times, because one pass is
short. All sides are compiled programs, in C or C++. No side syncs the file, so the rates are those of the page
cache.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from outcore.cli.bench import BenchOptions, Claim, at_least, claim_memory, median_claim
from outcore.job.launch import find_launcher

from ._ga_programs import compile_ga, debian_version, ga_command
from ._workers import Workers, compile_worker, remove_contents

REASONS = {
    "read, .*": "all sides copy out of the page cache, and share the cores",
}

PROCESSES = (1, 2, 4)
REQUESTS = (32 << 10, 64 << 10)
OPERATIONS = ("write", "read")
PASSES = {"write": 1, "read": 5}  # passes over the file
OURS, MPI_IO, GA, PLAIN = "ours", "MPI-IO", "Global Arrays' SF", "plain calls of one process"
COMMAND_NAMES = {OURS: "ours", MPI_IO: "mpi", GA: "ga", PLAIN: "plain"}

Key = tuple[str, str, int, int]  # operation, side, request, processes
Seconds = dict[Key, list[float]]


@contextmanager
def jobs(scratch: Path, worker: Path, ga_program: Path | None) -> Iterator[dict[tuple[str, int], Workers]]:
    """The workers of each side and number of processes. They sleep while others are measured."""
    with ExitStack() as stack:
        found: dict[tuple[str, int], Workers] = {}
        for count in PROCESSES:
            command = [str(find_launcher()), "-n", str(count), str(worker), str(scratch)]
            ours = Workers(f"{count} processes", [command])
            stack.callback(ours.close)
            found |= {(side, count): ours for side in (OURS, MPI_IO)}
            if count == 1:
                found[PLAIN, 1] = ours
            if ga_program is not None:
                ga = Workers(f"{GA}, {count} processes", [ga_command(ga_program, count, str(scratch))])
                stack.callback(ga.close)
                found[GA, count] = ga
        for each in found.values():
            each.wait_until_ready()
        yield found


def measure(found: dict[tuple[str, int], Workers], total: int, rounds: int, say: BenchOptions) -> Seconds:
    """Seconds of all sides, measured in turns. Each turn begins with another side."""
    seconds: Seconds = defaultdict(list)
    order = list(found)
    for turn in range(-1, rounds):  # turn -1 does not count
        for request in REQUESTS:
            first = turn % len(order)
            for side, count in order[first:] + order[:first]:
                workers, name = found[side, count], COMMAND_NAMES[side]
                claim_memory(2 * total)
                for operation in OPERATIONS:
                    taken = 0.0
                    for _ in range(PASSES[operation]):
                        begin, end = workers.command(f"{operation} {name} {request} {total}")
                        taken += (end - begin) / PASSES[operation]
                    if turn >= 0:
                        seconds[operation, side, request, count].append(taken)
                workers.command(f"end {name}")
        say.say(f"round {turn + 1} of {rounds}")
    return seconds


def ratios(seconds: Seconds, peer: Key, ours: Key) -> list[float]:
    """The peer's times over Outcore's, turn by turn."""
    return [a / b for a, b in zip(seconds[peer], seconds[ours], strict=True)]


def rate(seconds: Seconds, key: Key, total: int) -> str:
    return f"{total / statistics.median(seconds[key]) / 1e9:.2f} GB/s"


def claims_of(seconds: Seconds, versions: dict[str, str], total: int) -> list[Claim]:
    claims = []
    for operation in OPERATIONS:
        turns = len(seconds[operation, OURS, REQUESTS[0], 1])
        for request in REQUESTS:
            kilobytes = f"{request >> 10} kB"
            for count in PROCESSES:
                ours = (operation, OURS, request, count)
                peers = {side: (operation, side, request, count) for side in (MPI_IO, GA)}
                peers[PLAIN] = (operation, PLAIN, request, 1)
                peers = {side: key for side, key in peers.items() if key in seconds}
                rates = ", ".join(f"{side} {rate(seconds, key, total)}" for side, key in peers.items())
                how = f"ours {rate(seconds, ours, total)}, {rates}; median of {turns} ratios taken in turns"
                plain = peers.pop(PLAIN)
                best = min(peers, key=lambda side: statistics.median(seconds[peers[side]]))
                for peer, key, bar in ((best, peers[best], 1.0), (PLAIN, plain, 0.9)):
                    who = "the best peer" if peer == best else "plain calls"
                    name = f"{operation}, {kilobytes}, {count} processes, against {who}"
                    claims.append(
                        median_claim(
                            name, ratios(seconds, key, ours), "x", at_least(bar), versions[peer], how
                        )
                    )
            one = (operation, OURS, request, 1)
            for count in PROCESSES[1:]:
                values = ratios(seconds, one, (operation, OURS, request, count))
                name = f"{operation}, {kilobytes}, {count} processes against one"
                how = "of the rate of all together; flat is 1"
                claims.append(median_claim(name, values, "x", at_least(0.9), "", how))
    return claims


def find_versions(directory: Path, ga_program: Path | None) -> dict[str, str]:
    code = "from mpi4py import MPI; print(MPI.Get_library_version())"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=directory
    )
    library = answer.stdout.splitlines()[0]
    versions = {
        MPI_IO: f"{MPI_IO} of {' '.join(library.split()[:3])}",
        PLAIN: f"{PLAIN} (pwrite, pread)",
    }
    if ga_program is not None:
        versions[GA] = f"Global Arrays{debian_version('libglobalarrays-dev')} SF, Open MPI"
    return versions


def run(options: BenchOptions) -> list[Claim]:
    total = (260 if options.quick else 1300) << 20
    scratch = options.scratch / "files"
    scratch.mkdir()
    ga_program, missing = compile_ga("_sf_ga.c", options.scratch)
    if ga_program is None:
        options.say(f"without {GA}: {missing}")
    with jobs(scratch, compile_worker("_sf_worker.cpp", options.scratch), ga_program) as found:
        seconds = measure(found, total, 3 if options.quick else 9, options)
    claims = claims_of(seconds, find_versions(scratch, ga_program), total)
    if ga_program is None:
        claims.append(Claim(f"against {GA}", None, "x", at_least(1.0), "", f"not installed: {missing}"))
    remove_contents(options.scratch)
    return claims
