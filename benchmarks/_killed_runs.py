"""Runs iterative commands for benchmarks, and kills them in a given iteration."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from outcore.cli.bench import BenchOptions

from ._workers import Failed, watched_peak


class Iteration(Protocol):
    """An iteration, as a line of the command's output reports it."""

    @property
    def number(self) -> int: ...
    @property
    def seconds(self) -> float: ...


Found = TypeVar("Found", bound=Iteration)


def run(
    options: BenchOptions,
    name: str,
    command: list[str],
    of_line: Callable[[str], Found | None],
    killed_in: int | None = None,
    log: Path | None = None,
) -> tuple[list[Found], int]:
    """Runs a command; returns its iterations and its largest resident memory in bytes.

    Args:
        of_line: parses a line of the output; returns None if the line reports no iteration.
        killed_in: number of the iteration in which the command gets SIGKILL; None: it runs to its end.
        log: a file to which the lines of iterations are appended at once.

    Raises Failed if the command ended in another way."""
    found: list[Found] = []
    said: list[str] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    with watched_peak(process.pid) as peak:
        for line in process.stdout:
            said.append(line)
            if (iteration := of_line(line)) is None:
                continue
            found.append(iteration)
            if log is not None:
                with log.open("a") as file:
                    file.write(line)
            options.say(f"{name}: {line.strip()}")
            if killed_in is not None and iteration.number == killed_in - 1:
                time.sleep(iteration.seconds / 2)
                process.send_signal(signal.SIGKILL)
        status = process.wait()
    if status != (0 if killed_in is None else -signal.SIGKILL):
        raise Failed(f"{' '.join(command)} ended with {status}:\n{''.join(said[-20:])}")
    return found, peak()
