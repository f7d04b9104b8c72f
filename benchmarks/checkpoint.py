"""Saving and loading a global array through outcore.checkpoint, against the raw device, h5py and numpy.save.

4 GiB of doubles (less on machines with little memory), two processes of Outcore, one of each peer. Saving ends when
the data are on stable storage; loading is cold, into existing memory. All write new files after the old ones are
removed. The peers have no checksums, and lose the old state if the job dies while they save.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from outcore.cli.bench import BenchOptions, Claim, at_least, claim_memory, drop_files
from outcore.job import resources

from ._checkpoint_worker import COLUMNS
from ._workers import Workers, python_worker, raw_rate, remove_contents

REASONS = {
    "save, against numpy": "the device is the limit of both, and NumPy computes no checksums",
}

PROCESSES = 2
OURS, RAW = "ours", "raw device"
SAVE, LOAD, SAVE_AGAIN = "save", "load", "save again"
Times = dict[str, dict[str, list[float]]]  # seconds by side and operation


class Side(Protocol):
    @property
    def ways(self) -> tuple[str, ...]: ...  # its operations in a turn

    def seconds(self, way: str) -> float: ...


class RawDevice:
    """Sequential direct requests of 1 MiB, 8 under way, once over a file of the size of the array."""

    ways = (SAVE, LOAD)

    def __init__(self, directory: Path, size_bytes: int) -> None:
        self.directory, self.size_bytes, self.tool = directory, size_bytes, ""

    def seconds(self, way: str) -> float:
        if way == SAVE:
            remove_contents(self.directory)
        rate = raw_rate(self.directory / "raw", "write" if way == SAVE else "read", self.size_bytes)
        self.tool = rate.tool
        return self.size_bytes / rate.bytes_per_s


class Library:
    """A library in processes that hold the array."""

    def __init__(self, workers: Workers, directory: Path, name: str, size_bytes: int) -> None:
        self.workers, self.directory, self.name, self.size_bytes = workers, directory, name, size_bytes
        self.ways: tuple[str, ...] = (SAVE, LOAD, SAVE_AGAIN) if name == OURS else (SAVE, LOAD)
        self.sure_cold = True

    def seconds(self, way: str) -> float:
        self.workers.wait_until_ready()
        if way == SAVE:
            remove_contents(self.directory)
        else:
            files = [path for path in self.directory.rglob("*") if path.is_file()]
            self.sure_cold &= drop_files(*files)
        claim_memory(self.size_bytes)
        start, end = self.workers.command(f"{way.partition(' ')[0]} {self.name}")
        return end - start


def run(options: BenchOptions) -> list[Claim]:
    rows = rows_for(512 << 20 if options.quick else 4 << 30, resources.total_memory_bytes())
    size_bytes = 8 * COLUMNS * rows
    peers = [name for name in ("h5py", "numpy") if importlib.util.find_spec(name)]
    if "h5py" not in peers:
        options.say("h5py is not here: no comparison with it (pip install h5py)")
    with ExitStack() as stack:

        def start(kind: str, processes: int) -> tuple[Workers, Path]:
            directory = options.scratch / kind
            directory.mkdir()
            command = python_worker(
                "_checkpoint_worker", kind, str(directory), str(rows), mpi_processes=processes
            )
            workers = Workers(kind, [command])
            stack.callback(workers.close)
            return workers, directory

        (options.scratch / "raw").mkdir()
        raw = RawDevice(options.scratch / "raw", size_bytes)
        mine = Library(*start(OURS, PROCESSES), OURS, size_bytes)
        shared = start("peers", 1)
        sides: dict[str, Side] = {RAW: raw, OURS: mine}
        sides |= {name: Library(*shared, name, size_bytes) for name in peers}
        times = take_turns(options, sides, size_bytes)
    return claims(times, size_bytes, raw.tool, mine.sure_cold)


def rows_for(size_bytes: int, memory_bytes: int) -> int:
    """Rows of an array of `size_bytes`, or fewer if the memory has no room for two such arrays and the page
    cache."""
    return min(size_bytes, memory_bytes // 5) // (8 * COLUMNS)


def take_turns(options: BenchOptions, sides: dict[str, Side], size_bytes: int) -> Times:
    """Measures the sides in turns. Each turn begins with another side, so that no side always follows the same
    one."""
    least, most, seconds = (2, 5, 18.0) if options.quick else (3, 7, 300.0)
    times: Times = {name: {way: [] for way in side.ways} for name, side in sides.items()}
    start = time.perf_counter()
    for turn in range(most):
        if turn >= least and time.perf_counter() - start > seconds:
            break
        order = list(sides)
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            for way in sides[name].ways:
                times[name][way].append(sides[name].seconds(way))
        for name, ways in times.items():
            last = ", ".join(f"{way} {size_bytes / runs[-1] / 1e6:.0f}" for way, runs in ways.items())
            options.say(f"turn {turn + 1}, {name}: {last} MB/s")
    return times


def claims(times: Times, size_bytes: int, raw_tool: str, sure_cold: bool) -> list[Claim]:
    def median(name: str, way: str) -> float:
        return statistics.median(times[name][way])

    cold = "pages of the files dropped" if sure_cold else "page cache perhaps NOT dropped"
    how = (
        f"{size_bytes / (1 << 30):.3g} GiB, {PROCESSES} processes of ours, to new files, sync included; {cold}; "
        f"medians of {len(times[OURS][SAVE])} turns; ours "
    )
    result = []
    for way in (SAVE, LOAD):
        mine = median(OURS, way)
        text = f"{how}{size_bytes / mine / 1e6:.0f} MB/s"
        for name in times:
            if name == OURS:
                continue
            bar = at_least(0.9 if name == RAW else 1.0)
            peer = raw_tool if name == RAW else f"{name} {importlib.metadata.version(name)}"
            title = f"{way}, against {'the raw device' if name == RAW else name}"
            result.append(Claim(title, median(name, way) / mine, "x", bar, peer, text))
    again = size_bytes / median(OURS, SAVE_AGAIN) / 1e6
    text = f"{how}; the one before remains until the new one is complete, then goes"
    result.append(Claim("save over a checkpoint", again, "MB/s", None, "", text))
    return result
