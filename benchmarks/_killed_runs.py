"""Commands of iterations that are killed in one of them, and given again, for benchmarks."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from outcore.cli.bench import BenchOptions

from ._workers import Failed, resident_peak


class Iteration(Protocol):
    """What a command says of one."""

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
) -> tuple[list[Found], int]:
    """Iterations of a command, and the most bytes that it had resident.

    Args:
        of_line: the iteration that a line of its output tells of; None: of none.
        killed_in: number of the iteration in whose middle it gets SIGKILL; None: it comes to its end.

    Raises Failed (the command ended in another way)."""
    found: list[Found] = []
    said: list[str] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    most = 0
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        most = max(most, resident_peak(process.pid))
        if (iteration := of_line(line)) is None:
            continue
        found.append(iteration)
        options.say(f"{name}: {line.strip()}")
        if killed_in is not None and iteration.number == killed_in - 1:
            time.sleep(iteration.seconds / 2)
            process.send_signal(signal.SIGKILL)
    status = process.wait()
    if status != (0 if killed_in is None else -signal.SIGKILL):
        raise Failed(f"{' '.join(command)} ended with {status}:\n{''.join(said[-20:])}")
    return found, most
