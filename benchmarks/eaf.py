"""Exclusive access files against gfortran direct access (the ChemIO comparison) and the raw device.

Two programs write records of 1.6 kB to 1.6 MB and read them from the disk and from memory, in sequence and in
random order. Outcore's program is in C, through the C interface, the peer's in Fortran; both are compiled on
this machine with -O2. Each times itself from open to close, so that delayed writes count; neither syncs.

The peer has one setting, the size of its buffer, fixed for a process. A pilot finds the size that is best over all
cases and the size that is best for each case. These, and the peer as installed, are then measured against
Outcore in new runs, because the fastest of several equal candidates in the pilot may be fast by chance. A
program with several kinds of I/O has one buffer for all of them, so the mean over all cases counts against the
best single size, and each case by itself against the size that is best for it.
Source: ChemIO (Nieplocha, Foster, Kendall 1998), Figs 3 and 4.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from outcore.cli.bench import (
    BenchOptions,
    Claim,
    at_least,
    claim_memory,
    device_rate,
    drop_page_cache,
    huge_pages,
    tool_version,
)

REASONS = {
    "sequential cold read of .*": "the thread that reads ahead waits for a core on a busy machine [M2]",
    "all records, geometric mean.*": (
        "what the page cache holds moves at the speed of its copy on both sides"
    ),
    "random warm read of .*": "lock and counters of a call are a tenth of the copy of a small record [M13]",
}

RECORDS_BYTES = (1_600, 16_000, 160_000, 1_600_000)
ORDERS = ("sequential", "random")
OPERATIONS = ("write", "cold read", "warm read")
# None: the default, 128 KiB. A small buffer is better for random records, because each of them fills a large buffer
# whole; a large one is better for sequential records.
PEER_BUFFERS_BYTES: tuple[int | None, ...] = (None, 8192, 1 << 20)
EQUAL = 0.95  # ratios above this count as equal
OURS = "ours"
Runner = str | int | None  # OURS, or the peer with this buffer


@dataclass(frozen=True)
class Case:
    record_bytes: int
    order: str
    operation: str

    @property
    def name(self) -> str:
        return f"{self.order} {self.operation} of {self.record_bytes / 1000:g} kB"


@dataclass
class Programs:
    """The compiled programs and the directory that they work in."""

    directory: Path
    ours: Path
    peer: Path | None
    sure_cold: bool = True
    peer_version: str = ""

    def seconds(self, who: Runner, case: Case, size_bytes: int, most: float | None = None) -> float:
        """One run, after preparing the file and the cache as the case requires. Both programs write the same bytes
        and read the same file, because disks and page caches are not equally fast with all files. A run of more
        than `most` seconds is stopped and counts as `most`."""
        target = self.directory / "records"
        if case.operation == "write":
            target.unlink(missing_ok=True)
            os.sync()
            claim_memory(2 * size_bytes)
        elif case.operation == "cold read":
            self.sure_cold &= drop_page_cache(target)
            claim_memory(2 * size_bytes)
        environment = dict(os.environ)
        if isinstance(who, int):
            environment["GFORTRAN_UNFORMATTED_BUFFER_SIZE"] = str(who)
        program, place = (self.ours, self.directory) if who == OURS else (self.peer, target)
        assert program is not None
        arguments = [
            case.operation.split()[-1],
            case.order,
            case.record_bytes,
            size_bytes // case.record_bytes,
        ]
        try:
            answer = subprocess.run(
                [program, place, *map(str, arguments)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=most,
            )
        except subprocess.TimeoutExpired:
            assert most is not None
            return most
        if answer.returncode != 0:
            raise RuntimeError(f"{who}, {case.name}: {answer.stderr.strip()}")
        return float(answer.stdout)


def _load_into_page_cache(path: Path) -> None:
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _native() -> tuple[Path, Path]:
    """Directories of the headers and of the library of the native module in use."""
    from outcore import _core

    package = Path(_core.__file__).parent
    return package / "include", package / "lib"


def compile_ours(directory: Path, source_name: str) -> Path:
    include, library = _native()
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc) to compile the caller of the C interface")
    source = Path(__file__).with_name(source_name)
    target = (directory / source_name).with_suffix(".program")
    options = ["-O2", "-x", "c", "-std=c99", f"-I{include}"]
    link = ["-x", "none", f"-L{library}", "-loutcore", f"-Wl,-rpath,{library}"]
    subprocess.run([compiler, *options, source, "-o", target, *link], check=True)
    return target


def compile_peer(directory: Path) -> Path | None:
    if shutil.which("gfortran") is None:
        return None
    target = directory / "peer.program"
    source = Path(__file__).with_name("_eaf_peer.f90")
    subprocess.run(["gfortran", "-O2", f"-J{directory}", source, "-o", target], check=True)
    return target


# ---- records


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    small_bytes: int  # size of the file with the smallest records
    large_bytes: int  # size of all other files
    least: int  # runs of each program in one case
    most: int = 60
    noise: float = 0  # a case ends when the standard error of its ratios is as small as this
    seconds: float = math.inf  # for one case, after which no new turn begins
    seconds_a_run: float | None = None  # a longer run is stopped

    def size_bytes(self, record_bytes: int) -> int:
        size = self.small_bytes if record_bytes == RECORDS_BYTES[0] else self.large_bytes
        return size - size % record_bytes


PILOT = Effort(50_000_000, 200_000_000, least=3, most=3, seconds_a_run=3)
FULL = Effort(200_000_000, 1_000_000_000, least=7, noise=0.015, seconds=40)
QUICK_PILOT = Effort(8_000_000, 16_000_000, least=1, most=1, seconds_a_run=0.3)
QUICK = Effort(32_000_000, 64_000_000, least=2, seconds=0)


@dataclass(frozen=True)
class Result:
    """Seconds of the runs of one case, one per turn."""

    case: Case
    size_bytes: int
    times: dict[Runner, list[float]]

    def median(self, who: Runner) -> float:
        return statistics.median(self.times[who])

    def rate(self, who: Runner) -> str:
        return f"{self.size_bytes / self.median(who) / 1e6:.0f}"

    def ratios(self, who: Runner) -> list[float]:
        return [peer / ours for peer, ours in zip(self.times[who], self.times[OURS], strict=True)]

    def ratio(self, who: Runner) -> float:
        """The peer's time over Outcore's: the median of the ratios of successive runs."""
        return statistics.median(self.ratios(who))

    def noise(self, who: Runner) -> float:
        """Relative standard error of the ratio, for a median of normally distributed values."""
        ratios = self.ratios(who)
        middle = statistics.median(ratios)
        deviation = 1.48 * statistics.median(abs(each - middle) for each in ratios)
        return 1.25 * deviation / middle / math.sqrt(len(ratios))


def measure(programs: Programs, case: Case, runners: Sequence[Runner], effort: Effort) -> Result:
    """Measures all runners in turns, so that a change of the machine's speed affects all alike. Each turn begins
    with another runner, so that none always follows the same one. Ends when the ratios are known well enough."""
    start = time.perf_counter()
    result = Result(case, effort.size_bytes(case.record_bytes), {who: [] for who in runners})
    if case.operation != "write":  # the first reader of new data waits longer on some disks
        drop_page_cache(programs.directory / "records")
        _load_into_page_cache(programs.directory / "records")
    for turn in range(effort.most):
        if turn >= effort.least:
            known = all(result.noise(who) <= effort.noise for who in runners if who != OURS)
            if known or time.perf_counter() - start > effort.seconds:
                break
        first = turn % len(runners)
        for who in [*runners[first:], *runners[:first]]:
            result.times[who].append(programs.seconds(who, case, result.size_bytes, effort.seconds_a_run))
    return result


@dataclass(frozen=True)
class Tuning:
    """The peer's best buffer over all cases, and its best buffer for each case."""

    overall: int | None
    of_case: dict[Case, int | None]


def tune(programs: Programs, cases: Sequence[Case], effort: Effort) -> Tuning:
    pilot = [measure(programs, case, PEER_BUFFERS_BYTES, effort) for case in cases]
    return Tuning(
        min(PEER_BUFFERS_BYTES, key=lambda each: sum(math.log(result.median(each)) for result in pilot)),
        {result.case: min(PEER_BUFFERS_BYTES, key=result.median) for result in pilot},
    )


def show_records(results: Sequence[Result], tuning: Tuning | None) -> None:
    heads = ["record", "order", "operation", "ours MB/s"]
    if tuning:
        best = f"best of all ({_buffer(tuning.overall)})"
        heads += ["as installed", best, "best of case", "ratio", "ratio to best of case", "noise"]
    table = Table(*heads, box=box.SIMPLE)
    for result in results:
        case = result.case
        cells = [f"{case.record_bytes / 1000:g} kB", case.order, case.operation, result.rate(OURS)]
        if tuning:
            of_case = tuning.of_case[case]
            cells += [result.rate(None), result.rate(tuning.overall)]
            cells += [f"{result.rate(of_case)} ({_buffer(of_case)})"]
            cells += [f"{result.ratio(each):.2f}" for each in (tuning.overall, of_case)]
            cells += [f"{100 * result.noise(of_case):.1f} % of {len(result.times[OURS])}"]
        table.add_row(*cells)
    Console(stderr=True, soft_wrap=True).print(table)


def _buffer(size_bytes: int | None) -> str:
    return "128 KiB" if size_bytes is None else f"{size_bytes >> 10} KiB"


def record_claims(programs: Programs, results: Sequence[Result], tuning: Tuning | None) -> list[Claim]:
    mean_name, cold_name = "all records, geometric mean", "cold random read of 1.6 kB"
    if tuning is None:
        missing = "not measured: gfortran is not installed"
        names = {mean_name: 1.5, cold_name: 4.0}
        return [
            Claim(name, None, "x", at_least(bar), "gfortran direct access", missing)
            for name, bar in names.items()
        ]
    installed = f"{programs.peer_version} direct access"
    overall = f"{installed}, buffer of {_buffer(tuning.overall)}, best over all cases"
    of_case = f"{installed}, buffer best for the case"
    cold = (
        "after dropping the page cache"
        if programs.sure_cold
        else "page cache perhaps NOT dropped (needs root)"
    )
    how = (
        f"{results[0].size_bytes / 1e6:.0f} to {results[-1].size_bytes / 1e6:.0f} MB, open to close without sync; "
        f"writes to a fresh file; cold: {cold}; warm: in the page cache; programs in turn, medians of the ratios "
        f"of neighbours, buffers chosen in other runs"
    )
    key = Case(1_600, "random", "cold read")
    cold_random = next(result for result in results if result.case == key)

    def mean(ratio: Callable[[Result], float]) -> float:
        return math.exp(statistics.fmean(math.log(ratio(result)) for result in results))

    def against_best(result: Result) -> float:
        return result.ratio(tuning.of_case[result.case])

    ways: list[tuple[str, str, Callable[[Result], float]]] = [
        (", peer as installed", installed, lambda result: result.ratio(None)),
        (", best single buffer", overall, lambda result: result.ratio(tuning.overall)),
    ]
    return [
        *(Claim(mean_name + way, mean(ratio), "x", at_least(1.5), peer, how) for way, peer, ratio in ways),
        Claim(mean_name + ", best buffer for each case", mean(against_best), "x", None, of_case, how),
        *(
            Claim(cold_name + way, ratio(cold_random), "x", at_least(4), peer, how)
            for way, peer, ratio in ways
        ),
        *(Claim(each.case.name, against_best(each), "x", at_least(EQUAL), of_case, how) for each in results),
    ]


# ---- raw device


def stream_rate(program: Path, directory: Path, operation: str, seconds: float, size_bytes: int) -> float:
    """Bytes per second of Outcore's nonblocking direct requests of 1 MiB, 8 under way, repeatedly over a file."""
    command = [str(program), str(directory), operation, str(size_bytes), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def raw_claims(options: BenchOptions) -> list[Claim]:
    """Both sides on one file, with memory in huge pages, in short turns, because the rate of a disk changes within
    seconds."""
    seconds, size_bytes, repeats = (0.3, 256 << 20, 5) if options.quick else (0.5, 1 << 30, 41)
    claims = []
    path = options.scratch / "raw"
    path.write_bytes(np.random.default_rng(1).bytes(size_bytes))
    program = compile_ours(options.scratch, "_eaf_stream.c")
    with huge_pages(8) as huge:
        theirs = "too" if huge and shutil.which("fio") else "NOT"
        for operation in ("read", "write"):
            pairs = []
            for turn in range(repeats):
                first = (
                    stream_rate(program, options.scratch, operation, seconds, size_bytes)
                    if turn % 2
                    else None
                )
                raw = device_rate(
                    options.scratch,
                    operation,
                    size_bytes=size_bytes,
                    seconds=seconds,
                    path=path,
                    huge_pages=huge,
                )
                ours = first or stream_rate(program, options.scratch, operation, seconds, size_bytes)
                pairs.append((ours, raw.bytes_per_s))
            ours, fio = (statistics.median(column) for column in zip(*pairs, strict=True))
            options.say(
                f"{operation} in 1 MiB requests: ours {ours / 1e6:.0f} MB/s, {raw.tool} {fio / 1e6:.0f} MB/s"
            )
            how = (
                f"direct, 1 MiB, 8 under way, {seconds:g} s in turn, {repeats} times, on one file of "
                f"{size_bytes >> 20} MiB; buffers of ours in huge pages, of the peer {theirs}; "
                f"median of the ratios of neighbours"
            )
            ratio = statistics.median(ours / raw for ours, raw in pairs)
            name = f"{operation} in 1 MiB requests against the raw device"
            claims.append(Claim(name, ratio, "x", at_least(EQUAL), raw.tool, how))
    path.unlink()
    return claims


def run(options: BenchOptions) -> list[Claim]:
    programs = Programs(
        options.scratch, compile_ours(options.scratch, "_eaf_ours.c"), compile_peer(options.scratch)
    )
    programs.peer_version = f"gfortran {tool_version('gfortran', '-dumpfullversion')}"
    if programs.peer is None:
        options.say("gfortran is not installed: its side of the comparison is missing")
    if shutil.which("fio") is None:
        options.say("fio is not installed: the raw rate is measured by threads of our own")
    claims = raw_claims(options)
    cases = [Case(*each) for each in itertools.product(RECORDS_BYTES, ORDERS, OPERATIONS)]
    tuning = tune(programs, cases, QUICK_PILOT if options.quick else PILOT) if programs.peer else None
    options.say("the peer is tuned" if tuning else "the peer is missing")
    results = []
    for case in cases:
        peers = (None, tuning.overall, tuning.of_case[case]) if tuning else ()
        runners: list[Runner] = list(dict.fromkeys((OURS, *peers)))
        result = measure(programs, case, runners, QUICK if options.quick else FULL)
        ratios = (
            f"{_buffer(each)} {result.ratio(each):.2f}" for each in runners[1:] if not isinstance(each, str)
        )
        options.say(
            f"{case.name}: {result.rate(OURS)} MB/s; to the peer with a buffer of {', '.join(ratios)}"
        )
        results.append(result)
    show_records(results, tuning)
    (options.scratch / "records").unlink(missing_ok=True)
    return record_claims(programs, results, tuning) + claims
