"""Benchmarks: what a benchmark is, how it is found and run, and functions that several of them need.

A benchmark is a module `benchmarks/NAME.py` with a docstring (its first line is shown in the list) and

    def run(options: BenchOptions) -> list[Claim]

It compares in one run, reports its steps with `options.say`, and leaves nothing in `options.scratch`. `REASONS`
says why a bar may be missed (see explained). A benchmark that takes long consists of cases (`options.case`), and
sets `HAS_CASES = True`; results of its cases are kept in the directory of `--keep`.
Modules whose name starts with an underscore are helpers.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import importlib.util
import json
import math
import mmap
import os
import pkgutil
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
import typer

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.cli import bench_cases
from outcore.cli.bench_cases import Cases
from outcore.job import resources

QUICK_LIMIT_S = 50.0  # --quick has to end within this time


@dataclass(frozen=True)
class Threshold:
    """A bar that a value has to reach: `value DIRECTION number`."""

    direction: Literal[">=", "<="]
    number: float

    def holds(self, value: float) -> bool:
        return value >= self.number if self.direction == ">=" else value <= self.number


def at_least(number: float) -> Threshold:
    return Threshold(">=", number)


def at_most(number: float) -> Threshold:
    return Threshold("<=", number)


Interval = tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """One measured number. `value` is None if it could not be measured here, and `how` says why; `bar` is None
    for a number that is only reported. `peer` names the program it is compared with, and its version, or is empty.
    `interval`: where the value lies (see median_interval); a bar is missed only if the whole interval misses it, so
    that noise alone does not decide. `reason`: why the bar is missed (see explained)."""

    name: str
    value: float | None
    unit: str
    bar: Threshold | None
    peer: str
    how: str
    interval: Interval | None = None
    reason: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bar is reached; None if there is no bar or no value."""
        if self.bar is None or self.value is None:
            return None
        return any(self.bar.holds(each) for each in self.interval or [self.value])

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "interval": self.interval,
            "unit": self.unit,
            "bar": self.bar and self.bar.number,
            "direction": self.bar and self.bar.direction,
            "holds": self.holds,
            "peer": self.peer,
            "how": self.how,
        } | ({"reason": self.reason} if self.reason else {})

    @staticmethod
    def of_json(found: Mapping[str, Any]) -> Claim:
        bar = None if found["bar"] is None else Threshold(found["direction"], found["bar"])
        interval = None if found["interval"] is None else (found["interval"][0], found["interval"][1])
        names = ("name", "value", "unit", "peer", "how")
        return Claim(
            **{name: found[name] for name in names},
            bar=bar,
            interval=interval,
            reason=found.get("reason", ""),
        )


def explained(claims: Iterable[Claim], reasons: Mapping[str, str]) -> list[Claim]:
    """The claims, each missed bar with its reason. `reasons`: texts by regular expressions for the whole name of a
    claim; the first that matches counts. A benchmark gives them as `REASONS`."""

    def one(claim: Claim) -> Claim:
        if claim.holds is not False:
            return claim
        fits = (text for pattern, text in reasons.items() if re.fullmatch(pattern, claim.name))
        return replace(claim, reason=claim.reason or next(fits, ""))

    return [one(claim) for claim in claims]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class BenchOptions:
    """`quick`: end within QUICK_LIMIT_S, with smaller data and fewer repeats. `scratch`: an existing, empty
    directory, removed by the runner. `say`: prints a line of progress."""

    quick: bool
    scratch: Path
    say: Callable[[str], None] = _say
    cases: Cases = field(default_factory=Cases)

    def case(self, name: str, measure: Callable[[], Any]) -> Any:
        """The result of `measure`, which must be JSON; an earlier run may have kept it."""
        return self.cases.run(name, measure, self.say)

    def claims(self, name: str, measure: Callable[[], list[Claim]]) -> list[Claim]:
        """As `case`, for a list of claims."""
        found = self.case(name, lambda: [claim.as_json() for claim in measure()])
        return [Claim.of_json(each) for each in found]

    def ran(self, name: str, results: Mapping[str, Any], **other: float) -> None:
        """Keeps memory, disk space and time of a whole run of a command, for the table of memory in the documents.
        results: the results file of the command (`--json`); values in `other`, such as the peak of several runs,
        replace those of the file."""
        keys = ("memory_budget_bytes", "peak_memory_bytes", "peak_disk_bytes", "run_seconds")
        used = {key: results.get(key) for key in keys} | other
        self.cases.runs.append(
            {"name": name, "functions": results.get("molecule", {}).get("functions")} | used
        )

    def place(self, name: str) -> Path:
        """A directory for files with which a case can continue: beside the kept results, else in scratch. The
        benchmark removes it once the result of the case is kept."""
        place = self.scratch / "case" if self.cases.directory is None else self.cases.path(name)
        place.mkdir(parents=True, exist_ok=True)
        return place


# ---- what several benchmarks need ----


def drop_page_cache(*paths: Path) -> bool:
    """Makes the next reads come from the disk: drops the page cache of the machine, or, if it may not do that, the
    cached pages of the files `paths`. Returns whether it is certain that this worked."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return True
    except OSError:
        pass
    return bool(paths) and all([_drop_file(path) for path in paths])


def drop_files(*paths: Path) -> bool:
    """Makes the next reads of these files come from the disk, and leaves programs in the page cache, since their
    loading is not measured; if that does not work, drops as much as it can. Returns whether it is certain that this
    worked."""
    os.sync()
    return all([_drop_file(path) for path in paths if path.stat().st_size]) or drop_page_cache(*paths)


def _drop_file(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return _cached_pages(fd) == 0
    finally:
        os.close(fd)


def _cached_pages(fd: int) -> int:
    """Number of pages of a file in the page cache. It asks with mincore: a read, even a nonblocking one, makes the
    kernel read ahead, and so would load the pages that it asks about."""
    size = os.fstat(fd).st_size
    if size == 0:
        return 0
    resident = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as mapped:
        view = np.frombuffer(mapped, np.uint8)
        addresses = [ctypes.c_void_p(each.ctypes.data) for each in (view, resident)]
        if ctypes.CDLL(None, use_errno=True).mincore(addresses[0], ctypes.c_size_t(size), addresses[1]):
            raise OSError(ctypes.get_errno(), "mincore")
        del view  # a mapping with a view cannot be closed
    return int(np.count_nonzero(resident & 1))


def claim_memory(size_bytes: int) -> None:
    """Allocates and frees memory. A virtual machine gives free memory back to its host, and the next process that
    allocates it waits; so this process waits before the measurement begins (see free_memory_kept). The kernel keeps
    free memory by processor, so each processor allocates and frees a part."""

    def take(processor: int, size: int) -> None:
        os.sched_setaffinity(0, {processor})  # of this thread
        np.ones(size, np.uint8)

    processors = os.sched_getaffinity(0)
    with ThreadPoolExecutor(len(processors)) as pool:
        list(pool.map(lambda each: take(each, size_bytes // len(processors)), processors))


_KEPT_MS = Path("/sys/module/page_reporting/parameters/min_free_ms")


@contextmanager
def free_memory_kept(setting: Path = _KEPT_MS) -> Iterator[None]:
    """Inside the block a virtual machine gives memory back to its host only after it has been free for 100 s, if
    the kernel has this setting and the process may change it. A process that allocates memory which was given back
    waits for the host, up to ten times as long as for the copy into it. [M36]"""
    try:
        before = setting.read_text()
        setting.write_text("100000")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        setting.write_text(before)


@contextmanager
def huge_pages(count: int) -> Iterator[bool]:
    """Reserves huge pages for programs that use reserved ones. Yields False if this process may not reserve them,
    or if memory is too fragmented."""
    setting = Path("/proc/sys/vm/nr_hugepages")
    try:
        before = setting.read_text()
        Path("/proc/sys/vm/compact_memory").write_text("1")
        setting.write_text(str(int(before) + count))
    except OSError:
        yield False
        return
    try:
        yield _free_huge_pages() >= count
    finally:
        setting.write_text(before)


def _free_huge_pages() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("HugePages_Free:"):
            return int(line.split()[1])
    return 0


def median_interval(values: Sequence[float]) -> Interval:
    """Two of the values, between which the median of their distribution lies with a probability of 95 % or more: by
    the sign test, for any distribution (Conover, Practical Nonparametric Statistics). The smallest and the largest,
    if there are fewer than six."""
    ordered, n = sorted(values), len(values)
    outside, chance = 0, 0.0
    while 2 * outside + 2 <= n:
        chance += math.comb(n, outside) / 2**n
        if chance > 0.025:
            break
        outside += 1
    first = max(outside - 1, 0)
    return ordered[first], ordered[n - 1 - first]


def median_claim(
    name: str, values: Sequence[float], unit: str, bar: Threshold | None, peer: str, how: str
) -> Claim:
    """The median of values measured one after another, with its interval."""
    low, high = median_interval(values)
    how += f"; {'95 %' if len(values) >= 6 else 'all'} between {low:.4g} and {high:.4g}"
    return Claim(name, statistics.median(values), unit, bar, peer, how, (low, high))


def interleave(
    callables: Mapping[str, Callable[[], float | None]],
    repeats: int,
    before: Callable[[], object] | None = None,
) -> dict[str, float]:
    """Median time in seconds of each callable, run in turn (a b a b ...) so that a change of the machine hits
    all alike. `before` runs untimed before each. A callable that times itself returns its seconds."""
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}, at least 1 is needed")
    times: dict[str, list[float]] = {name: [] for name in callables}
    for _ in range(repeats):
        for name, function in callables.items():
            if before is not None:
                before()
            start = time.perf_counter()
            own = function()
            times[name].append(time.perf_counter() - start if own is None else own)
    return {name: statistics.median(values) for name, values in times.items()}


@dataclass(frozen=True)
class DeviceRate:
    bytes_per_s: float
    tool: str  # "fio 3.33" or "own threads"


def device_rate(
    directory: Path,
    operation: Literal["read", "write"],
    *,
    block_bytes: int = 1 << 20,
    depth: int = 8,
    size_bytes: int = 1 << 30,
    random: bool = False,
    seconds: float | None = 3.0,
    path: Path | None = None,
    huge_pages: bool = False,
) -> DeviceRate:
    """Measures the rate of the device under `directory` with direct I/O, `depth` requests of `block_bytes` under
    way, on a file of `size_bytes`: `path`, or one that is made and removed here. fio measures if it is installed,
    else threads of this process. `seconds`: passes over the file are repeated for this time; None: one pass, which
    ends with fsync if it writes. `huge_pages`: fio's buffers are in huge pages, if the system has reserved enough;
    if another program has taken them, in ordinary pages.

    A new file has space allocated to it before the time begins. It may still be written slower than one that
    has been written before: the disk, or the host of a virtual one, allocates its space when it is first used."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        path = path or Path(place, "raw")
        if shutil.which("fio"):
            return _fio_rate(path, operation, block_bytes, depth, size_bytes, random, seconds, huge_pages)
        return _own_rate(path, operation, block_bytes, depth, size_bytes, random, seconds)


def _fio_rate(
    path: Path,
    operation: str,
    block_bytes: int,
    depth: int,
    size_bytes: int,
    random: bool,
    seconds: float | None,
    huge_pages: bool,
) -> DeviceRate:
    engine = "io_uring" if _core.engine_name() == "uring" else "libaio"  # io_uring is forbidden in containers
    command = [
        "fio", "--name=raw", f"--filename={path}", f"--rw={'rand' if random else ''}{operation}",
        f"--bs={block_bytes}", f"--iodepth={depth}", f"--size={size_bytes}", "--direct=1", f"--ioengine={engine}",
        "--output-format=json", "--fallocate=posix",
        *(["--end_fsync=1"] if seconds is None else [f"--runtime={round(seconds * 1000)}ms", "--time_based"]),
        *(["--iomem=shmhuge"] if huge_pages else []),
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    # The results count, not the exit status: it is 0 after some failed runs, and not 0 after some good ones.
    begin, end = answer.stdout.find("{"), answer.stdout.rfind("}")
    result = json.loads(answer.stdout[begin : end + 1]) if 0 <= begin < end else {}
    if not result or result["jobs"][0][operation]["bw_bytes"] == 0:
        if huge_pages and "huge pages" in answer.stderr:
            return _fio_rate(path, operation, block_bytes, depth, size_bytes, random, seconds, False)
        raise RuntimeError(f"{' '.join(command)}: {(answer.stderr or answer.stdout).strip()[-500:]}")
    return DeviceRate(
        float(result["jobs"][0][operation]["bw_bytes"]), result["fio version"].replace("-", " ")
    )


def _own_rate(
    path: Path,
    operation: str,
    block_bytes: int,
    depth: int,
    size_bytes: int,
    random: bool,
    seconds: float | None,
) -> DeviceRate:
    import mmap
    import random as generator

    blocks = max(1, size_bytes // block_bytes)
    written = path.exists() and path.stat().st_size >= blocks * block_bytes
    order = list(range(blocks))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    os.posix_fallocate(fd, 0, blocks * block_bytes)
    # An anonymous map is aligned to pages, as direct I/O needs. Each thread has its own: reads must not collide.
    buffers = [mmap.mmap(-1, block_bytes) for _ in range(depth)]

    def pass_over(lane: int, write: bool, deadline: float) -> int:
        moved = 0
        for block in order[lane::depth]:
            if time.perf_counter() > deadline:
                break
            call = os.pwritev if write else os.preadv
            moved += call(fd, [buffers[lane]], block * block_bytes)
        return moved

    def pass_of_all(pool: ThreadPoolExecutor, write: bool, deadline: float) -> int:
        return sum(pool.map(lambda lane: pass_over(lane, write, deadline), range(depth)))

    try:
        with ThreadPoolExecutor(depth) as pool:
            if operation == "read" and not written:
                pass_of_all(pool, True, float("inf"))
            if random:
                generator.Random(1).shuffle(order)
            moved, start = 0, time.perf_counter()
            if seconds is None:
                moved = pass_of_all(pool, operation == "write", float("inf"))
                os.fsync(fd)
            while seconds is not None and time.perf_counter() - start < seconds:
                moved += pass_of_all(pool, operation == "write", start + seconds)
            return DeviceRate(moved / (time.perf_counter() - start), "own threads")
    finally:
        os.close(fd)


def tool_version(command: str, *arguments: str) -> str | None:
    """First line that `command --version` (or `command` with `arguments`) prints; None if it is not installed."""
    if shutil.which(command) is None:
        return None
    answer = subprocess.run(
        [command, *(arguments or ("--version",))], capture_output=True, text=True, check=False
    )
    lines = (answer.stdout or answer.stderr).strip().splitlines()
    return lines[0] if lines else command


# ---- running them ----


def benchmarks() -> dict[str, str]:
    """Names of all benchmarks, with the first line of the docstring of each."""
    found = {}
    for module in pkgutil.iter_modules([str(_directory())]):
        if not module.name.startswith("_"):
            text = (_directory() / f"{module.name}.py").read_text().lstrip()
            found[module.name] = text.removeprefix('"""').splitlines()[0].removesuffix('"""')
    return found


def _directory() -> Path:
    """The directory of the benchmarks: installed beside this package, or at the root of the checkout."""
    here = Path(__file__).resolve().parents[1]
    for directory in (here / "benchmarks", here.parent.parent / "benchmarks"):
        if (directory / "__init__.py").is_file():
            return directory
    raise FileNotFoundError(f"no benchmarks beside {here}")


def load(name: str) -> ModuleType:
    """The benchmark module `name`. Relative imports of helpers in the same directory work."""
    package = "outcore.benchmarks"
    if package not in sys.modules:
        place = _directory()
        spec = importlib.util.spec_from_file_location(
            package, place / "__init__.py", submodule_search_locations=[str(place)]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[package] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{package}.{name}")


def machine(scratch: Path) -> dict[str, Any]:
    """The machine on which the numbers are measured."""
    from outcore.cli.doctor import scratch_facts

    return {
        "processor": bench_cases.processor(),
        "cores": resources.cores(),
        "memory_bytes": resources.total_memory_bytes(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "scratch": scratch_facts(scratch),
    }


def run_benchmark(name: str, *, quick: bool, scratch: Path, keep: Path | None = None) -> dict[str, Any]:
    """Runs one benchmark in a directory of its own inside `scratch`; returns the contents of the JSON file.
    `keep`: directory for results of its cases. Raises OutcoreError (EINVAL) if `keep` is given and it has none."""
    module = load(name)
    if keep is not None and not getattr(module, "HAS_CASES", False):
        raise OutcoreError(errno.EINVAL, f"--keep {keep}", detail=f"{name} has no cases that could be kept")
    facts = machine(scratch)
    date = bench_cases.now()
    cases = Cases(None if keep is None else keep / name, quick, scratch)
    with tempfile.TemporaryDirectory(prefix=f"bench-{name}-", dir=scratch) as place:
        start = time.perf_counter()
        with free_memory_kept():
            claims: list[Claim] = module.run(BenchOptions(quick=quick, scratch=Path(place), cases=cases))
        seconds = time.perf_counter() - start
    claims = explained(claims, getattr(module, "REASONS", {}))
    return {
        "bench": name,
        "date": date,
        "machine": facts,
        "commit": bench_cases.commit(),
        "quick": quick,
        "seconds": round(seconds, 1),
        "claims": [claim.as_json() for claim in claims],
    } | {name: found for name, found in (("cases", cases.done), ("runs", cases.runs)) if found}


def show(claims: Sequence[Mapping[str, Any]]) -> None:
    """Prints claims as a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table("claim", "value", "bar", "holds", "compared with", box=box.SIMPLE)
    for claim in claims:
        value = "not measured" if claim["value"] is None else f"{claim['value']:.4g} {claim['unit']}".rstrip()
        if claim["interval"]:
            value += " ({:.3g} to {:.3g})".format(*claim["interval"])
        bar = "" if claim["bar"] is None else f"{claim['direction']} {claim['bar']:g}"
        holds = {True: "yes", False: "NO", None: ""}[claim["holds"]]
        table.add_row(claim["name"], value, bar, holds, claim["peer"])
    console = Console(soft_wrap=True, markup=False, emoji=False)
    console.print(table)
    for claim in claims:
        if claim.get("reason"):
            console.print(f"{claim['name']}: missed, {claim['reason']}")


def command(
    name: Annotated[
        str | None, typer.Argument(help="Benchmark to run; see --list.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    quick: Annotated[bool, typer.Option(help=f"Smaller data, within {QUICK_LIMIT_S:g} seconds.")] = False,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result there.")
    ] = None,
    scratch: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to measure (default: the scratch directory).")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep results of finished cases there, and skip cases kept there."),
    ] = None,
) -> int:
    """Measure Outcore beside its peers on this machine. Exit status 1 if a claim does not hold."""
    known = benchmarks()
    if list_ and (name or quick or json_ or scratch or keep):
        raise typer.BadParameter("--list runs nothing: a name and other options have no effect with it")
    if list_:
        width = max(map(len, known), default=0)
        for each, summary in known.items():
            print(f"{each:<{width}}  {summary}")
        return 0
    if name not in known:
        raise typer.BadParameter(f"{name or 'no name given'}: the benchmarks are {', '.join(known)}")
    if emulated := _core.emulation():
        detail = f"peers would not be subject to it; unset OUTCORE_THROTTLE and OUTCORE_REQUESTS ({emulated})"
        raise OutcoreError(errno.EINVAL, "measure on an emulated storage", detail=detail)
    from outcore.job.preflight import check_file
    from outcore.job.scratch import find_scratch

    check_file(json_, "write the result")
    result = run_benchmark(name, quick=quick, scratch=Path(find_scratch(scratch)), keep=keep)
    show(result["claims"])
    if json_ is not None:
        json_.write_text(json.dumps(result, indent=2) + "\n")
    return int(any(claim["holds"] is False for claim in result["claims"]))
