"""The classic names of parallel I/O: liboutcore_pario against Global Arrays, in the same programs.

Each program is compiled twice and uses Global Arrays for its memory in both cases: once EAF, SF and DRA come from
Global Arrays, once from Outcore. Two processes under Open MPI, and one for exclusive files. Both programs take
turns.

A section of 5000x5000 doubles goes to and from a disk array of 10000x10000, aligned and offset by one: written to
a new array, with a sync at the end, and read cold; then slices of 9000x1 and 1x9000. An asynchronous write of the
whole section must return at once, and go on while both processes compute. Records of an exclusive file are written,
read cold and read from memory. Shared files move requests of 32 and 64 kB. Last, the time of calls of the C
interface is compared with that of the same calls in C++.
Source: ChemIO (Nieplocha, Foster, Kendall 1998).
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outcore import _core
from outcore.cli.bench import BenchOptions, Claim, at_least, at_most, claim_memory, drop_files, median_claim

from ._ga_programs import compile_ga, debian_version, ga_command
from ._workers import Failed, Workers, raw_rate, remove_contents

OURS, THEIRS, RAW = "ours", "theirs", "raw device"
SIDES = (OURS, THEIRS)
PROCESSES = 2
PLACES = {"aligned": (0, 0), "offset by one": (1, 1)}
RECORDS_BYTES = (1_600, 16_000, 160_000, 1_600_000)
REQUESTS = (32 << 10, 64 << 10)

Programs = dict[str, Path]
Seconds = dict[tuple[str, ...], list[float]]  # by case and side


@dataclass(frozen=True)
class Effort:
    section: int  # side length of the square section
    turns: int
    slices: int
    file_bytes: int  # of the exclusive file
    shared_bytes: int


FULL = Effort(5000, 7, 9, 200 << 20, 650 << 20)
QUICK = Effort(1500, 2, 3, 16 << 20, 65 << 20)


def run(options: BenchOptions) -> list[Claim]:
    effort = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(dir=options.scratch) as place:
        try:
            programs = {
                source: both(source, Path(place)) for source in ("_dra_ga.c", "_pario_eaf.c", "_sf_ga.c")
            }
        except Failed as error:
            return [
                *call_claims(options),
                Claim("against Global Arrays", None, "x", at_least(1.0), "", str(error)),
            ]
        peer = f"Global Arrays{debian_version('libglobalarrays-dev')}, Open MPI"
        claims = [
            *disk_array_claims(options, effort, programs["_dra_ga.c"], peer),
            *exclusive_file_claims(options, effort, programs["_pario_eaf.c"], peer),
            *shared_file_claims(options, effort, programs["_sf_ga.c"], peer),
            *call_claims(options),
        ]
    remove_contents(options.scratch)
    return claims


def both(source: str, scratch: Path) -> Programs:
    found: Programs = {}
    for side in SIDES:
        program, reason = compile_ga(source, scratch, classic=side == OURS)
        if program is None:
            raise Failed(reason)
        found[side] = program
    return found


def ratios(seconds: Seconds, *case: str) -> list[float]:
    """Their times over ours, turn by turn."""
    return [a / b for a, b in zip(seconds[*case, THEIRS], seconds[*case, OURS], strict=True)]


def turns_of(sides: Sequence[str], turns: int) -> Iterator[str]:
    """Each turn begins with another side."""
    for turn in range(turns):
        first = turn % len(sides)
        yield from [*sides[first:], *sides[:first]]


# ---- disk arrays


def disk_array_claims(
    options: BenchOptions, effort: Effort, programs: Programs, peer: str
) -> Iterator[Claim]:
    section, array = effort.section, 2 * effort.section
    source = options.scratch / "source"
    np.random.default_rng(31).random((section, section)).tofile(source)
    seconds: Seconds = defaultdict(list)
    raw = options.scratch / "raw"
    with ExitStack() as stack:
        places, workers = {}, {}
        for side in SIDES:
            places[side] = options.scratch / f"arrays_{side}"
            places[side].mkdir()
            task = [places[side], source, section, array, section, 0, 0]
            command = ga_command(programs[side], PROCESSES, *map(str, task))
            workers[side] = Workers(side, [command])
            stack.callback(workers[side].close)

        def timed(side: str, command: str) -> float:
            start, end = workers[side].command(command)
            return end - start

        def drop(side: str) -> None:
            drop_files(*(path for path in places[side].rglob("*") if path.is_file()))

        for each in workers.values():
            each.wait_until_ready()
        for side in turns_of((*SIDES, RAW), effort.turns):
            claim_memory(2 * 8 * section**2)
            if side == RAW:
                raw.unlink(missing_ok=True)
                for operation in ("write", "read"):
                    rate = raw_rate(raw, operation, 8 * section**2 >> 20 << 20)
                    seconds[operation, RAW].append(8 * section**2 / rate.bytes_per_s)
                continue
            for name, (row, column) in PLACES.items():
                remove_contents(places[side])
                seconds["write", name, side].append(timed(side, f"write {row} {column}"))
                drop(side)
                seconds["read", name, side].append(timed(side, f"read {row} {column}"))
        raw.unlink(missing_ok=True)
        options.say("sections measured")
        yield from section_claims(seconds, effort, peer)
        yield from slice_claims(options, effort, workers, drop, places, peer)
        yield from async_claims(seconds, effort, timed, places[OURS])
    for place in places.values():
        shutil.rmtree(place)
    source.unlink()


def section_claims(seconds: Seconds, effort: Effort, peer: str) -> Iterator[Claim]:
    size = 8 * effort.section**2
    for operation, words in (("write", "write with sync"), ("read", "cold read")):
        device = statistics.median(seconds[operation, RAW])
        for name in PLACES:
            rates = ", ".join(
                f"{side} {size / statistics.median(seconds[operation, name, side]) / 1e6:.0f} MB/s"
                for side in SIDES
            )
            how = f"{rates}, raw device {size / device / 1e6:.0f} MB/s"
            values = ratios(seconds, operation, name)
            # The bar: 1.2 times their rate, or 0.9 of the raw device, whichever is less.
            theirs = statistics.median(seconds[operation, name, THEIRS])
            bar = min(1.2, 0.9 * theirs / device)
            title = f"DRA {words} of {effort.section}x{effort.section}, {name}"
            yield median_claim(title, values, "x", at_least(round(bar, 3)), peer, how)


def slice_claims(
    options: BenchOptions,
    effort: Effort,
    workers: dict[str, Workers],
    drop: Callable[[str], None],
    places: dict[str, Path],
    peer: str,
) -> Iterator[Claim]:
    seconds: Seconds = defaultdict(list)
    array, length = 2 * effort.section, 2 * effort.section * 9 // 10
    for side in SIDES:
        remove_contents(places[side])
        workers[side].command("fill")
    for turn in range(effort.slices):
        index = (turn * 2 + 1) * array // (2 * effort.slices) + turn
        for side in SIDES:
            for axis in ("tall", "wide"):
                workers[side].command("open")
                drop(side)
                start, end = workers[side].command(f"slice {axis} {index} {length}")
                seconds[axis, side].append(end - start)
                workers[side].command("close")
    options.say("slices measured")
    for axis, shape, bar in (("tall", f"{length}x1", at_least(5.0)), ("wide", f"1x{length}", None)):
        times = ", ".join(f"{side} {1e3 * statistics.median(seconds[axis, side]):.2f} ms" for side in SIDES)
        yield median_claim(f"DRA slice {shape}, cold", ratios(seconds, axis), "x", bar, peer, times)


def async_claims(
    seconds: Seconds, effort: Effort, timed: Callable[[str, str], float], place: Path
) -> Iterator[Claim]:
    remove_contents(place)
    write = statistics.median(seconds["write", "aligned", OURS])
    begin, hidden = [], defaultdict(list)
    for _ in range(effort.turns):
        begin.append(1e3 * timed(OURS, "begin"))
        for computing in (1, PROCESSES):
            alone = timed(OURS, f"overlap 1e-6 {computing}")
            together = timed(OURS, f"overlap {alone:.6f} {computing}")
            hidden[computing].append((2 * alone - together) / alone)
    size = 8 * effort.section**2 / 1e6
    how = f"until NDRA_Write returns, of {size:.0f} MB, which take {write:.2f} s with the sync"
    yield median_claim(f"DRA asynchronous write of {size:.0f} MB returns", begin, "ms", at_most(1.0), "", how)
    cores = len(os.sched_getaffinity(0))
    part = f"of the time of a write by {PROCESSES} processes on {cores} cores, how much is hidden behind "
    # A write needs processor time; a core is free for it only if not all processes compute.
    how = part + "as much computation of one of them; the other sleeps"
    yield median_claim(
        "DRA asynchronous write overlaps, one process computes", hidden[1], "of 1", at_least(0.5), "", how
    )
    how = part + "as much computation of all"
    yield median_claim(
        "DRA asynchronous write overlaps, all processes compute", hidden[PROCESSES], "of 1", None, "", how
    )


# ---- exclusive files


def exclusive_file_claims(
    options: BenchOptions, effort: Effort, programs: Programs, peer: str
) -> Iterator[Claim]:
    seconds: Seconds = defaultdict(list)
    for side in turns_of(SIDES, effort.turns):
        for size in RECORDS_BYTES:
            for order in ("sequential", "random"):
                path = options.scratch / f"records_{side}"
                path.unlink(missing_ok=True)
                for operation in ("write", "cold read", "warm read"):
                    if operation == "cold read":
                        drop_files(path)
                    elif operation == "warm read":
                        path.read_bytes()  # a cold read may have gone past the page cache
                    verb = operation.split()[-1]
                    command = [programs[side], path, verb, order, size, effort.file_bytes // size]
                    done = subprocess.run(
                        list(map(str, command)), capture_output=True, text=True, check=False
                    )
                    if done.returncode != 0:
                        raise Failed(f"{side}, {operation}: {done.stderr}")
                    seconds[str(size), order, operation, side].append(float(done.stdout))
                path.unlink(missing_ok=True)
    options.say("exclusive files measured")
    means = []
    for size in RECORDS_BYTES:
        times = {
            f"{order} {operation}": statistics.median(ratios(seconds, str(size), order, operation))
            for order in ("sequential", "random")
            for operation in ("write", "cold read", "warm read")
        }
        logs = list(map(math.log, times.values()))
        means += logs
        how = "geometric mean of " + ", ".join(f"{name} {value:.2f}" for name, value in times.items())
        mean = math.exp(statistics.fmean(logs))
        yield Claim(f"EAF, records of {size / 1000:g} kB", mean, "x", at_least(0.95), peer, how)
    how = f"of {len(means)} cases"
    yield Claim("EAF, geometric mean", math.exp(statistics.fmean(means)), "x", at_least(1.3), peer, how)


# ---- shared files


def shared_file_claims(
    options: BenchOptions, effort: Effort, programs: Programs, peer: str
) -> Iterator[Claim]:
    seconds: Seconds = defaultdict(list)
    place = options.scratch / "shared"
    place.mkdir()
    with ExitStack() as stack:
        workers = {}
        for side in SIDES:
            workers[side] = Workers(side, [ga_command(programs[side], PROCESSES, str(place))])
            stack.callback(workers[side].close)
            workers[side].wait_until_ready()
        for side in turns_of(SIDES, effort.turns):
            claim_memory(2 * effort.shared_bytes)
            for request in REQUESTS:
                for operation in ("write", "read"):
                    start, end = workers[side].command(f"{operation} ga {request} {effort.shared_bytes}")
                    seconds[operation, str(request), side].append(end - start)
                workers[side].command("end ga")
    shutil.rmtree(place)
    options.say("shared files measured")
    for request in REQUESTS:
        for operation in ("write", "read"):
            case = (operation, str(request))
            medians = {side: statistics.median(seconds[*case, side]) for side in SIDES}
            rates = ", ".join(
                f"{side} {effort.shared_bytes / medians[side] / 1e6:.0f} MB/s" for side in SIDES
            )
            values = ratios(seconds, *case)
            yield median_claim(
                f"SF {operation} of {request >> 10} kB, {PROCESSES} processes",
                values,
                "x",
                at_least(0.95),
                peer,
                rates,
            )


# ---- calls


def call_claims(options: BenchOptions) -> Iterator[Claim]:
    package = Path(_core.__file__).parent
    place, compiler = Path(__file__).with_name("_pario_calls.cpp"), shutil.which("g++")
    if compiler is None:
        yield Claim("a call of C beside C++", None, "us", at_most(0.2), "", "g++ is not installed")
        return
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        program = Path(scratch) / "calls"
        library = package / "lib"
        command = [compiler, "-O2", "-std=c++20", f"-I{package / 'include'}", str(place), "-o", str(program)]
        command += [f"-L{library}", "-loutcore", f"-Wl,-rpath,{library}"]
        subprocess.run(command, check=True)
        done = subprocess.run([program, scratch], check=True, capture_output=True, text=True)
    names = ("read of 64 bytes of an exclusive file", "get of one element of a global array")
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        in_c, more = map(float, line.split())
        how = f"{in_c:.3f} us in C; median of differences of turns of 20000 calls"
        yield Claim(f"C beside C++: {name}", more, "us", at_most(0.2), "", how)
