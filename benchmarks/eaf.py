"""Exclusive access files against gfortran direct access (the ChemIO comparison) and the raw device.

Records of 1.6 kB to 1.6 MB, in sequence and in random order, written, read from the disk and read from memory,
by two programs of one language class: ours in C through the C interface, the peer in Fortran, both compiled
here with -O2. Each times itself from open to close, so that what was written behind counts; neither syncs.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from outcore.bench import BenchOptions, Claim, at_least, device_rate, drop_page_cache, tool_version

RECORDS_BYTES = (1_600, 16_000, 160_000, 1_600_000)
ORDERS = ("sequential", "random")
OPERATIONS = ("write", "cold read", "warm read")
# The peer's only knob, read at its start. Its default is 128 KiB; small is better for random records (a large one
# is read whole for each of them), large for sequential ones.
PEER_BUFFERS_BYTES: dict[str, tuple[int | None, ...]] = {
    "sequential": (None, 8192, 1 << 20),
    "random": (None, 8192),
}
EQUAL = 0.95  # ratios from here on count as equal


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
    """The compiled programs, the directory they work in, and how large a file they make."""

    directory: Path
    ours: Path
    peer: Path | None
    sure_cold: bool = True
    peer_version: str = ""

    def seconds(self, who: str, buffer_bytes: int | None, case: Case, size_bytes: int) -> float:
        """One run, prepared so that it finds the file as the case wants it. Both programs write the same bytes
        and read the same file: disks and page caches are not equally fast with all files."""
        target = self.directory / "records"
        if case.operation == "write":
            target.unlink(missing_ok=True)
            os.sync()
            _claim_memory(size_bytes)
        elif case.operation == "cold read":
            self.sure_cold &= drop_page_cache(target)
            _claim_memory(size_bytes)
        else:
            drop_page_cache(target)
            _load_into_page_cache(target)
        environment = dict(os.environ)
        if buffer_bytes is not None:
            environment["GFORTRAN_UNFORMATTED_BUFFER_SIZE"] = str(buffer_bytes)
        program, place = (self.ours, self.directory) if who == "ours" else (self.peer, target)
        assert program is not None
        arguments = [
            case.operation.split()[-1],
            case.order,
            case.record_bytes,
            size_bytes // case.record_bytes,
        ]
        answer = subprocess.run(
            [program, place, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise RuntimeError(f"{who}, {case.name}: {answer.stderr.strip()}")
        return float(answer.stdout)


def _claim_memory(size_bytes: int) -> None:
    """A virtual machine gives free memory back to its host, and who gets it next pays for it: not those who are
    measured. Free memory is kept by processor, so each takes and frees a part."""

    def take(processor: int, size: int) -> None:
        os.sched_setaffinity(0, {processor})  # of this thread
        np.ones(size, np.uint8)

    processors = os.sched_getaffinity(0)
    with ThreadPoolExecutor(len(processors)) as pool:
        list(pool.map(lambda each: take(each, 2 * size_bytes // len(processors)), processors))


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
class Result:
    """Median seconds of one case: ours, and the peer's with each size of its buffer."""

    case: Case
    size_bytes: int
    ours: float
    peer: dict[int | None, float]

    @property
    def best(self) -> float:
        return min(self.peer.values(), default=math.nan)

    @property
    def ratio(self) -> float:
        return self.best / self.ours

    def rate(self, seconds: float) -> str:
        return f"{self.size_bytes / seconds / 1e6:.0f}"


def measure(
    programs: Programs, case: Case, size_bytes: int, settings: Sequence[int | None], repeats: int
) -> Result:
    """Ours and the peer in turn, so that a change of the machine hits all alike; each turn begins with another,
    so that nobody always comes after the same."""
    size_bytes -= size_bytes % case.record_bytes
    runs: list[tuple[str, int | None]] = [("ours", None), *(("peer", each) for each in settings)]
    times: dict[tuple[str, int | None], list[float]] = {run: [] for run in runs}
    if case.operation == "cold read":  # the first reader of new data waits longer on some disks
        drop_page_cache(programs.directory / "records")
        _load_into_page_cache(programs.directory / "records")
    for turn in range(repeats):
        first = turn % len(runs)
        for run in runs[first:] + runs[:first]:
            times[run].append(programs.seconds(*run, case, size_bytes))
    ours, *peer = (statistics.median(times[run]) for run in runs)
    return Result(case, size_bytes, ours, dict(zip(settings, peer, strict=True)))


def record_results(options: BenchOptions, programs: Programs) -> list[Result]:
    start = time.perf_counter()
    results = []
    for record_bytes, order in itertools.product(RECORDS_BYTES, ORDERS):
        full_bytes = 200_000_000 if record_bytes == RECORDS_BYTES[0] else 1_000_000_000
        size_bytes = 64_000_000 if options.quick else full_bytes
        settings = PEER_BUFFERS_BYTES[order][: 2 if options.quick else None] if programs.peer else ()
        for operation in OPERATIONS:
            late = options.quick and time.perf_counter() - start > 28
            repeats = (1 if late else 2) if options.quick else 7
            results.append(
                measure(programs, Case(record_bytes, order, operation), size_bytes, settings, repeats)
            )
        options.say(f"{order} records of {record_bytes / 1000:g} kB measured")
    return results


def show_records(results: list[Result]) -> None:
    table = Table("record", "order", "operation", "ours MB/s", box=box.SIMPLE)
    settings = list(results[0].peer)
    for each in settings:
        table.add_column("gfortran" if each is None else f"buffer {each >> 10} KiB")
    table.add_column("ratio to best")
    for result in results:
        case = result.case
        peers = [result.rate(result.peer[each]) if each in result.peer else "-" for each in settings]
        ratio = f"{result.ratio:.2f}" if settings else "-"
        table.add_row(
            f"{case.record_bytes / 1000:g} kB",
            case.order,
            case.operation,
            result.rate(result.ours),
            *peers,
            ratio,
        )
    Console(stderr=True, soft_wrap=True).print(table)


def record_claims(programs: Programs, results: list[Result]) -> list[Claim]:
    mean_name, cold_name = "all records, geometric mean", "cold random read of 1.6 kB"
    if programs.peer is None:
        missing = "not measured: gfortran is not installed"
        names = {mean_name: 1.5, cold_name: 4.0}
        return [
            Claim(name, None, "x", at_least(bar), "gfortran direct access", missing)
            for name, bar in names.items()
        ]
    installed = f"{programs.peer_version} direct access"
    tuned = f"{installed}, buffer tuned to the case"
    cold = (
        "after dropping the page cache"
        if programs.sure_cold
        else "page cache perhaps NOT dropped (needs root)"
    )
    how = (
        f"{results[0].size_bytes / 1e6:.0f} to {results[-1].size_bytes / 1e6:.0f} MB, open to close without sync; "
        f"writes to a fresh file; cold: {cold}; warm: in the page cache; medians, programs in turn"
    )
    key = Case(1_600, "random", "cold read")
    cold_random = next(result for result in results if result.case == key)

    def mean(seconds: Callable[[Result], float]) -> float:
        return math.exp(statistics.fmean(math.log(seconds(result) / result.ours) for result in results))

    plain = ", peer as installed"
    return [
        Claim(mean_name, mean(lambda result: result.best), "x", at_least(1.5), tuned, how),
        Claim(mean_name + plain, mean(lambda result: result.peer[None]), "x", at_least(1.5), installed, how),
        Claim(cold_name, cold_random.best / cold_random.ours, "x", at_least(4.0), tuned, how),
        Claim(
            cold_name + plain, cold_random.peer[None] / cold_random.ours, "x", at_least(4.0), installed, how
        ),
        *(Claim(result.case.name, result.ratio, "x", at_least(EQUAL), tuned, how) for result in results),
    ]


# ---- raw device


@contextmanager
def huge_pages(count: int) -> Iterator[bool]:
    """Reserves huge pages for programs that must be given them. False without the right to."""
    setting = Path("/proc/sys/vm/nr_hugepages")
    try:
        before = setting.read_text()
        setting.write_text(str(int(before) + count))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        setting.write_text(before)


def stream_rate(program: Path, directory: Path, operation: str, seconds: float, size_bytes: int) -> float:
    """Bytes a second of our nonblocking direct requests of 1 MiB, 8 under way, over and over a file."""
    command = [str(program), str(directory), operation, str(size_bytes), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def raw_claims(options: BenchOptions) -> list[Claim]:
    """Both on one file, in memory of huge pages, in short turns: the rate of a disk changes within seconds."""
    seconds, size_bytes, repeats = (0.3, 256 << 20, 7) if options.quick else (1.0, 1 << 30, 15)
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
    results = record_results(options, programs)
    show_records(results)
    (options.scratch / "records").unlink(missing_ok=True)
    return record_claims(programs, results) + claims
