"""Processes of a parallel job: starts them (`--ranks N`), finds out whether this process is one of them, and makes
them fail together.

A process that no launcher started never imports mpi4py, so one process needs no MPI.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from outcore.base import interrupts
from outcore.base.console import check_output
from outcore.base.errors import OutcoreError
from outcore.base.extras import install, needed
from outcore.job.resources import bound_cores, cores, spare_address_space

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

# The thread counts of the numerical libraries that a process may load.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Idle threads of OpenBLAS wait in a loop for so long, as a power of two of the processor's cycles. By default that
# is 26: after each call they hold the cores for tens of milliseconds that other threads of the process need.
SPIN_VARIABLE, _SPIN = "OPENBLAS_THREAD_TIMEOUT", "14"

_PR_SET_PDEATHSIG = 1  # of prctl: sets the signal that the child gets when its parent has ended

_INSTALL = f"install it with: {install('mpi')}"

# Variables in which launchers give rank and number of processes: MPICH, Intel MPI and Cray; Open MPI.
# Slurm's come last and are those of a job step, because those of the job are also set in a batch script.
_RANK_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
_LOCAL_COUNT_VARIABLES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE")


_forked_with_mpi: set[int] = set()  # processes whose parent had MPI


def _after_fork() -> None:
    if "mpi4py.MPI" in sys.modules:
        _forked_with_mpi.add(os.getpid())


os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True)
class Job:
    """Facts from the launcher: the rank of this process, the number of processes, and how many share its node."""

    rank: int
    size: int
    local_size: int


def launched(environment: Mapping[str, str] = os.environ) -> Job | None:
    """The parallel job this process belongs to, or None if it is on its own."""
    for rank_name, size_name in _RANK_VARIABLES:
        rank, size = environment.get(rank_name, ""), environment.get(size_name, "")
        if rank.isdigit() and size.isdigit() and int(size) > 1:
            return Job(int(rank), int(size), _local_size(environment, int(size)))
    return None


def _local_size(environment: Mapping[str, str], size: int) -> int:
    for name in _LOCAL_COUNT_VARIABLES:
        digits = environment.get(name, "").partition("(")[0].partition(",")[0]  # Slurm writes "4(x2),3"
        if digits.isdigit() and int(digits) > 0:
            return int(digits)
    return size


def threads_per_rank() -> int:
    """Threads that this process should compute with: OMP_NUM_THREADS if set, else its share of the cores."""
    chosen = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    job = launched()
    if job is None or _bound_by_launcher():
        return cores()
    return max(1, cores() // job.local_size)


def _bound_by_launcher() -> bool:
    """True if the launcher gave this process its own cores, which must not be divided again."""
    try:
        return bound_cores() < bound_cores(os.getppid())
    except OSError:
        return False


def limit_threads() -> None:
    """Tells numerical libraries that are not loaded yet this process's share of the cores, and that idle threads
    leave them, unless the user did."""
    _set_threads(os.environ, threads_per_rank())
    spare_address_space()


def _set_threads(environment: MutableMapping[str, str], threads: int) -> None:
    """Sets the variables of all libraries that the user has not set: to OMP_NUM_THREADS if that is set, else to
    `threads`."""
    chosen = environment.get("OMP_NUM_THREADS") or str(threads)
    for name in THREAD_VARIABLES:
        if not environment.get(name):
            environment[name] = chosen
    if not environment.get(SPIN_VARIABLE):
        environment[SPIN_VARIABLE] = _SPIN


def relaunch(ranks: int) -> None:
    """Makes this command run on `ranks` processes: replaces this process by the launcher of the MPI that
    mpi4py uses, which runs the same command line of the interpreter in each.

    Returns when there is nothing to do: one rank, or already inside a job of that size. Output and exit status
    are the launcher's, but a signal gives 128 + its number with every launcher. If this process is killed, the
    others end with it.
    Raises OutcoreError if the job has another size, or if MPI or its launcher cannot be used.
    """
    if ranks < 1:
        raise OutcoreError(errno.EINVAL, f"--ranks {ranks}", detail="at least one process is needed")
    job = launched()
    if job is not None and job.size != ranks:
        raise OutcoreError(
            errno.EINVAL,
            f"--ranks {ranks}",
            detail=f"the launcher has started {job.size} processes already: leave --ranks out",
        )
    if job is not None or ranks == 1:
        return
    launcher = find_launcher()
    command = [sys.executable, "-u", *sys.orig_argv[1:]]
    check_output()
    sys.stdout.flush()
    sys.stderr.flush()
    start = [str(launcher), "-n", str(ranks), *command]
    if launcher_kind(launcher) == "Open MPI":
        sys.exit(_in_front_of(start, _rank_environment(ranks)))
    os.execve(launcher, start, _rank_environment(ranks))


def _in_front_of(command: list[str], environment: Mapping[str, str]) -> int:
    """Runs Open MPI's launcher and returns its exit status; after a signal 128 + its number, where the launcher
    returns 1.

    This process stays and sends a signal to the processes of the job itself: the launcher would kill them 0.2 s
    after it has passed a signal on, before they have removed their scratch. The launcher has a process group of its
    own, so that it does not get the Ctrl-C of the terminal.
    """
    received: list[int] = []
    parent = os.getpid()

    def end_with_parent() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=end_with_parent,  # noqa: PLW1509 (there is no other thread yet)
    )

    def pass_on(number: int, _frame: object) -> None:
        started = [] if received else _children(child.pid)
        received.append(number)
        if not started:  # no process has started yet, or this is the second signal
            child.send_signal(number)
            return
        for process in started:
            with suppress(ProcessLookupError):
                os.kill(process, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    status = child.wait()
    interrupts.ignore()
    if received:
        return 128 + received[0]
    return status if status >= 0 else 128 - status  # as a shell reports it


def _children(process: int) -> list[int]:
    """Children of all threads of a process; an empty list if it has ended."""
    found: list[int] = []
    for each in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended
            found += map(int, each.read_text().split())
    return found


def _rank_environment(ranks: int) -> dict[str, str]:
    environment = dict(os.environ)
    _set_threads(environment, max(1, cores() // ranks))
    if sys.stdout.isatty():  # the ranks write to a pipe of the launcher: tell them of the terminal behind it
        size = shutil.get_terminal_size()
        environment.setdefault("COLUMNS", str(size.columns))
        environment.setdefault("LINES", str(size.lines))
        environment.setdefault("TTY_COMPATIBLE", "1")
    return environment


def find_launcher() -> Path:
    """The mpiexec that belongs to the MPI library that mpi4py loads. Raises OutcoreError if there is none."""
    library = mpi_library()
    beside = Path(sys.executable).parent / "mpiexec"
    on_path = shutil.which("mpiexec")
    refused = []
    for candidate in dict.fromkeys([beside, *([Path(on_path)] if on_path else [])]):
        if not os.access(candidate, os.X_OK):
            continue
        kind = launcher_kind(candidate)
        if kind == library_kind(library):
            return candidate
        refused.append(f"{candidate} is of {kind}")
    found = "; ".join(refused) or "no mpiexec was found"
    raise OutcoreError(
        None,
        "find the launcher mpiexec",
        detail=f"mpi4py uses {library}, which needs a launcher of its own family, but {found}; {_INSTALL}",
    )


@cache
def mpi_library() -> str:
    """Name and version of the MPI library that mpi4py loads. Another process loads it to find out, because it would
    affect the program that replaces this process. Raises OutcoreError if mpi4py or its MPI is missing."""
    if importlib.util.find_spec("mpi4py") is None:
        raise needed("mpi4py", "start several processes")
    question = (
        "import mpi4py; mpi4py.rc.initialize = False\n"
        "from mpi4py import MPI; print(MPI.Get_library_version())"
    )
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = answer.stderr.strip().rpartition("\n")[2] or f"exit status {answer.returncode}"
        raise OutcoreError(None, "load MPI through mpi4py", detail=f"{reason}; {_INSTALL}")
    words = answer.stdout.split("\x00")[0].splitlines()[0].split(",")[0].split()
    return " ".join(word for word in words if word != "Version:")


def library_kind(version: str) -> str:
    """The family of launchers that can start processes of this library."""
    return "Open MPI" if "open mpi" in version.lower() else "MPICH"


@cache
def launcher_kind(launcher: Path) -> str:
    """The family of a launcher, from its output with --version."""
    answer = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False, timeout=30)
    text = (answer.stdout + answer.stderr).lower()
    if any(name in text for name in ("openrte", "open mpi", "prrte", "open-mpi")):
        return "Open MPI"
    if any(name in text for name in ("hydra", "mpich", "intel(r) mpi")):
        return "MPICH"
    return "an unknown MPI"


@cache
def world() -> Intracomm | None:
    """The communicator of all processes of the job, or None for a process on its own.

    Collective: every process of the job calls it early. Raises OutcoreError if mpi4py cannot be used, or if
    the launcher belongs to another MPI than mpi4py (then MPI tells each process that it is alone).
    """
    job = launched()
    if job is None:
        return None
    if importlib.util.find_spec("mpi4py") is None:
        raise needed("mpi4py", f"join a job of {job.size} processes")
    from outcore import _core

    with _core.AwaitedCall("MPI_Init"):
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise OutcoreError(None, "load MPI through mpi4py", detail=f"{error}; {_INSTALL}") from error
    if MPI.COMM_WORLD.size != job.size:
        by_slurm = "SLURM_STEP_ID" in os.environ
        way = (
            "give srun the MPI type pmi2 for MPICH, pmix for Open MPI"
            if by_slurm
            else f"use --ranks {job.size} instead of it"
        )
        raise OutcoreError(
            errno.EINVAL,
            f"join a job of {job.size} processes",
            detail=f"the MPI of mpi4py sees {MPI.COMM_WORLD.size}: the launcher is of another MPI, {way}",
        )
    _core.set_process_rank(job.rank, job.size)
    with suppress(OutcoreError):  # raised for an MPI that a world refuses
        _core.watch_in_finalize()
    with _core.AwaitedCall("the first exchange of the processes"):
        _side_channel()
    return MPI.COMM_WORLD


def load_transport(comm: Intracomm) -> None:
    """Loads the part of this library that calls MPI. Collective: if one process fails, for instance because it can
    open no more files, the others do not wait for it. Raises OutcoreError, at all processes that of the lowest
    failing rank."""
    from outcore import _core

    if os.getpid() in _forked_with_mpi:
        return  # a world refuses the MPI of the parent process
    failure = None
    try:
        _core.watch_in_finalize()
    except OutcoreError as error:
        failure = error
    with _core.AwaitedCall("the first exchange of a world"):
        failures = [each for each in comm.allgather(failure) if each is not None]
    if failures:
        failures[0].collective = True
        raise failures[0]


def joined() -> bool:
    """True once `world` has connected this process with the others."""
    return world.cache_info().currsize > 0 and world() is not None


@cache
def _side_channel() -> Intracomm:
    """A communicator apart from all others, for `gather_within`."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.Dup()


def gather_within(grace_s: float, message: str) -> list[str] | None:
    """The messages of all processes, in order of rank, if each calls this within `grace_s` seconds; None if
    others are still at work. After None this process has to end the job (`abort`)."""
    channel = _side_channel()
    arrived = channel.Ibarrier()
    deadline = time.monotonic() + grace_s
    while not arrived.Test():
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)
    return channel.allgather(message)


def abort(status: int) -> None:
    """Ends all processes of the job, once this one has removed its scratch."""
    from mpi4py import MPI

    from outcore import _core

    _core.remove_process_directories()
    MPI.COMM_WORLD.Abort(status)
