"""Processes that a benchmark keeps while its sides take turns, so that their start is not measured.

A worker is `main()` of a module in this directory. It reads commands of one line from its standard input and
answers each with one line, `START END GOOD`: when it began and ended, in seconds of the system's clock, and 1, or 0
if data were wrong. Under MPI the first process reads the commands for all.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.cli.bench import DeviceRate, device_rate, huge_pages
from outcore.job.launch import find_launcher, launched

Answer = tuple[float, float, bool]
_WATCH_S = 0.1


class Failed(RuntimeError):
    """A process ended unexpectedly or produced wrong data."""


def python_worker(module: str, *arguments: str, mpi_processes: int = 1) -> list[str]:
    """The command that runs `main()` of a module in this directory."""
    code = "import sys; from outcore.cli import bench; bench.load(sys.argv.pop(1)).main()"
    command = [sys.executable, "-c", code, module, *arguments]
    return command if mpi_processes == 1 else [str(find_launcher()), "-n", str(mpi_processes), *command]


def resident_peak(pid: int) -> int:
    """The largest resident memory of a process so far, in bytes; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0


@contextmanager
def watched_peak(pid: int) -> Iterator[Callable[[], int]]:
    """Looks at a process ten times a second inside the block; gives a function that returns its largest resident
    memory so far, in bytes. A process that gets SIGKILL cannot report its memory itself."""
    most, ended = 0, threading.Event()

    def look() -> int:
        nonlocal most
        most = max(most, resident_peak(pid))
        return most

    def watch() -> None:
        while not ended.wait(_WATCH_S):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield look
    finally:
        ended.set()
        watcher.join()


def compile_worker(source: str, directory: Path) -> Path:
    """Compiles a C++ file of this directory with Outcore and the launcher's MPI; returns the program."""
    compiler = find_launcher().with_name("mpicxx")
    if not shutil.which(compiler):
        raise OutcoreError(errno.ENOENT, f"compile {source}", path=str(compiler))
    package = Path(_core.__file__).parent
    library, target = package / "lib", directory / Path(source).stem
    command = [str(compiler), "-O2", "-std=c++20", f"-I{package / 'include'}"]
    command += [str(Path(__file__).with_name(source)), "-o", str(target)]
    command += [f"-L{library}", "-loutcore", f"-Wl,-rpath,{library}"]
    subprocess.run(command, check=True)
    return target


class Workers:
    """The benchmark's end of the pipes: sends the same commands to all its processes."""

    def __init__(self, name: str, commands: Sequence[Sequence[str]]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the processes)
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                env={**os.environ, **one_thread},
            )
            for command in commands
        ]
        self._ready = False

    @property
    def count(self) -> int:
        return len(self._processes)

    def wait_until_ready(self) -> None:
        if not self._ready:
            self._answers(self._processes, "start")
            self._ready = True

    def command(self, command: str, first_only: bool = False) -> tuple[float, float]:
        """Returns when the first process began and when the last one ended. Raises Failed."""
        self.wait_until_ready()
        processes = self._processes[:1] if first_only else self._processes
        for process in processes:
            assert process.stdin is not None
            try:
                process.stdin.write(command + "\n")
                process.stdin.flush()
            except BrokenPipeError as error:
                raise Failed(f"{self.name}: ended before {command}: {self._last_words()}") from error
        return self._answers(processes, command)

    def _answers(self, processes: Sequence[subprocess.Popen[str]], command: str) -> tuple[float, float]:
        times = []
        for process in processes:
            assert process.stdout is not None
            answer = process.stdout.readline().split()
            if len(answer) != 3:
                raise Failed(f"{self.name}: {command} ended with {self._last_words()}")
            if answer[2] != "1":
                raise Failed(f"{self.name}: {command} brought other data than were written")
            times.append((float(answer[0]), float(answer[1])))
        return min(start for start, _ in times), max(end for _, end in times)

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:].strip() or "no message"

    def close(self) -> None:
        """Ends the processes. A second call does nothing."""
        for process in self._processes:
            assert process.stdin is not None
            if process.stdin.closed:
                continue
            try:
                process.stdin.write("quit\n")
                process.stdin.close()
            except BrokenPipeError:
                pass
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._errors.close()


def serve(start: Callable[[], Callable[[str], Answer | None]]) -> None:
    """The worker's end of the pipes. `start` prepares the worker and returns the function that runs a command; that
    returns None for an answer without times. In an MPI job all processes run commands; the first one answers."""
    job = launched()
    obey = start()
    _answer(None)
    next_line = _broadcast_lines() if job else _lines()
    while (line := next_line().strip()) != "quit":
        _answer(obey(line))


def _answer(answer: Answer | None) -> None:
    job = launched()
    if job is None or job.rank == 0:
        start, end, good = answer or (0.0, 0.0, True)
        print(f"{start:.9f} {end:.9f} {good:d}", flush=True)


def _lines() -> Callable[[], str]:
    return lambda: sys.stdin.readline() or "quit"


def _broadcast_lines() -> Callable[[], str]:
    """Gives the lines that the first process reads to all processes. Waiting processes sleep: in MPI they would
    keep their cores busy."""
    from mpi4py import MPI

    channel = MPI.COMM_WORLD.Dup()
    read = _lines()

    def next_line() -> str:
        buffer = bytearray(200)
        if channel.rank == 0:
            text = read().encode()
            buffer[: len(text)] = text
        request = channel.Ibcast(buffer)
        while not request.Test():
            time.sleep(2e-3)
        return buffer.rstrip(b"\0").decode()

    return next_line


def sync(directory: Path | str) -> None:
    """Syncs the whole file system at once, which is faster than file by file."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), "syncfs", str(directory))
    finally:
        os.close(fd)


def raw_rate(path: Path, operation: Literal["read", "write"], size_bytes: int) -> DeviceRate:
    """Sequential direct requests of 1 MiB, 8 under way, once over a file, in huge pages where the system has some.
    Tries again if another process took the reserved pages (MPI does so when it starts)."""
    for attempts_left in (2, 1, 0):
        with huge_pages(8) as huge:
            try:
                return device_rate(
                    path.parent,
                    operation,
                    size_bytes=size_bytes,
                    seconds=None,
                    path=path,
                    huge_pages=huge,
                )
            except RuntimeError:
                if attempts_left == 0:
                    raise
    raise AssertionError


def remove_contents(directory: Path) -> None:
    """Empties a directory and syncs."""
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    os.sync()
