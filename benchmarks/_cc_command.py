"""Runs the commands `outcore ccsd` and `outcore eom` for benchmarks, watches their memory, and goes on with
calculations that were interrupted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from outcore.base import interrupts
from outcore.cli.bench import BenchOptions, Claim, at_most
from outcore.cli.bench_cases import commit, now
from outcore.job.resources import parse_bytes

from ._cc_programs import CORES, Job
from ._workers import Failed, resident_peak

FAILURE = 1  # exit status, also of a run that has not converged
_WATCH_S = 1.0
_ITERATION = re.compile(r" *\d+ +-\d+\.\d{10} +\S+ +\S+ +[\d.]+$")


@dataclass
class Part:
    """One command of a calculation, until it ended or was interrupted. peak_bytes: the most resident memory."""

    date: str
    commit: str
    seconds: float = 0.0
    iterations: int = 0
    peak_bytes: int = 0


def run(
    options: BenchOptions,
    job: Job,
    memory: str,
    *more: str,
    good: tuple[int, ...] = (0,),
    command: str = "ccsd",
) -> tuple[Part, Any]:
    """Runs one command to its end; returns its part and its results (--json). Raises Failed if its exit status is
    not one of `good`."""
    part = Part(now(), commit())
    return part, _run(options, job, memory, part, lambda: None, (command, *more), good)


def run_in_parts(options: BenchOptions, job: Job, memory: str, *more: str) -> tuple[list[Part], Any]:
    """Runs `outcore ccsd`, which goes on from the checkpoint of interrupted parts. Returns all parts and the
    results of the last one."""
    place = options.place(job.name)
    file = place / "parts.json"
    parts = [Part(**each) for each in json.loads(file.read_text())] if file.is_file() else []
    parts.append(Part(now(), commit()))

    def keep() -> None:
        new = file.with_suffix(".new")
        new.write_text(json.dumps([asdict(part) for part in parts]))
        os.replace(new, file)

    more = ("ccsd", *more, "--checkpoint", str(place / "checkpoint"))
    return parts, _run(options, job, memory, parts[-1], keep, more, (0,))


def _run(
    options: BenchOptions,
    job: Job,
    memory: str,
    part: Part,
    keep: Callable[[], None],
    words: tuple[str, ...],
    good: tuple[int, ...],
) -> Any:
    results = options.scratch / "results.json"
    which, *more = words
    command = [
        sys.executable, "-m", "outcore", which, str(job.write(options.scratch)), "--basis", job.basis,
        "--frozen", "auto", "--memory", memory, "--threads", str(CORES), "--scratch", str(options.scratch),
        "--json", str(results), *more,
    ]  # fmt: skip
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    ended = threading.Event()

    def see() -> None:
        part.seconds = round(time.perf_counter() - begin, 1)
        part.peak_bytes = max(part.peak_bytes, resident_peak(process.pid))
        keep()

    def watch() -> None:
        while not ended.wait(_WATCH_S):
            see()
            if interrupted():
                process.kill()

    said = []
    with interrupts.held() as interrupted:  # `timeout` signals twice, and the part must be saved
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                part.iterations += bool(_ITERATION.match(line))
                options.say(f"{job.name}, {memory}: {line.rstrip()}")
            status = process.wait()
        finally:
            ended.set()
            watcher.join()
            process.kill()
            process.wait()
            see()
    if status not in good or not results.exists():
        raise Failed(f"{' '.join(command)} ended with {status}:\n{''.join(said[-20:])}")
    found: dict[str, Any] = json.loads(results.read_text())
    part.peak_bytes = max(part.peak_bytes, found["peak_memory_bytes"])
    results.unlink()
    (options.scratch / "molecule.xyz").unlink()
    return found


def peak_claim(job: Job, memory: str, peak_bytes: int) -> Claim:
    how = f"{peak_bytes / 1e6:.0f} MB resident at most, SCF included"
    name = f"{job.name}: peak memory over --memory {memory}"
    return Claim(name, peak_bytes / parse_bytes(memory), "", at_most(1.0), "", how)
