"""The frame of every method's command: its options, its output, its results, and its end.

    @dataclass(frozen=True, kw_only=True)
    class Options(JobOptions):
        basis: Annotated[str, typer.Option(help="Basis set.")]

    @with_options
    def command(options: Options) -> int:
        with Run(options) as run:
            run.header(f"RHF/{options.basis}", f"scratch {world.scratch}")
            with run.progress("integrals") as progress:
                store(progress)
            run.say("energy ..")
            run.results["energy_hartree"] = energy
            run.finish(world)
        return 0

Ctrl-C and SIGTERM end a run with 130 and 143 at all processes; complete parts stay in the directory where they are
kept.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TextIO, get_type_hints

import typer

from outcore import _core
from outcore.base import interrupts, plain_file
from outcore.base.console import Lines, shows_bars, visible
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.cli import input_file
from outcore.job import launch, preflight, resources
from outcore.job.resources import parse_bytes
from outcore.trace import report

if TYPE_CHECKING:
    from outcore.job.world import World
    from outcore.parallel.tasks import Progress

SCHEMA = "outcore-results-1"  # schema of the results file: docs/reference/results.schema.json
MAX_THREADS = 1024  # per process: a larger number is a typing error
REPORTS = ("short", "full")

_MEMORY = "Memory of all processes together, start-up included, e.g. 2GB. Default: half of the free memory."


# ---- options ----


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options of every method. Each method derives a class of its own. without: fields that the command of a method
    does not have."""

    without: ClassVar[tuple[str, ...]] = ()

    ranks: Annotated[
        int | None, typer.Option(help="Processes to start; leave out under mpiexec or srun.")
    ] = None
    threads: Annotated[
        int | None, typer.Option(help="Threads of each process. Default: its share of the cores.")
    ] = None
    memory: Annotated[str | None, typer.Option(help=_MEMORY)] = None
    scratch: Annotated[
        str | None, typer.Option(help="Scratch directory. Default: the fastest node-local one.")
    ] = None
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Print memory, disk, bytes moved and time, and compute nothing."),
    ] = False
    report: Annotated[
        str,
        typer.Option(help="Report after the run: 'short' fits a screen; 'full' adds all counters."),
    ] = REPORTS[0]
    json_file: Annotated[Path | None, typer.Option("--json", help="Write results here.")] = None
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but warnings, errors and the end of the run.")
    ] = False
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all output of the run here, with --quiet too.")
    ] = None
    write_input: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write these options and the geometry here (TOML), for 'outcore run FILE', and compute nothing.",
        ),
    ] = None

    def check(self) -> None:
        """Raises OutcoreError for values that are out of range or have no effect, before anything is done."""
        preflight.check_count("--threads", self.threads, MAX_THREADS)
        preflight.check_size("--memory", self.memory)
        if self.report not in REPORTS:
            raise OutcoreError(
                errno.EINVAL, f"--report {self.report}", detail=f"it may be {' or '.join(REPORTS)}"
            )

    def reads(self) -> dict[str, Any]:
        """Files that the command reads, by a name for messages."""
        return {}

    def writes(self) -> dict[str, Any]:
        """Files that the command writes at its end, by their options."""
        return {"--json": self.json_file, "--log": self.log}

    def check_targets(self) -> None:
        """Raises OutcoreError if a file of `writes` cannot be written. Only the process that writes calls it."""
        preflight.check_distinct(self.reads(), self.writes())
        preflight.check_file(self.json_file, "write results")
        preflight.check_file(self.log, "write the log")

    def check_memory(self, processes: int) -> None:
        """Raises OutcoreError (EINVAL) for more memory than the machine has; an estimate may be for another one."""
        if self.estimate:
            return
        share, machine = (self.memory_bytes or 0) // processes, resources.total_memory_bytes()
        if share > machine:
            each = "" if processes == 1 else f" for each of {processes} processes"
            raise OutcoreError(
                errno.EINVAL,
                f"--memory {self.memory}",
                detail=f"it is {in_words(share)}{each}, of {in_words(machine)} that there are",
            )

    @property
    def full(self) -> bool:
        """Whether the user wants details."""
        return self.report == "full"

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory is None else parse_bytes(self.memory)


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """Replaces the first parameter of a command, a JobOptions, by one parameter for each field of its class: fields
    of the method first, then those of every job."""
    first, *others = inspect.signature(command, eval_str=True).parameters.values()
    cls: type[JobOptions] = first.annotation
    hints = get_type_hints(cls, include_extras=True)
    of_job = [each.name for each in fields(JobOptions)]
    named = {each.name: each for each in fields(cls) if each.name not in cls.without}
    common = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if named[name].default is MISSING else named[name].default,
            annotation=hints[name],
        )
        for name in [*(name for name in named if name not in of_job), *of_job]
    ]
    parameters = common + [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in others]

    def flat(**given: Any) -> int:
        if given["write_input"] is not None:
            return _write_input(command.__name__.replace("_", "-"), parameters, given)
        options = cls(**{each.name: given.pop(each.name) for each in common})
        return command(options, **given)

    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": int}
    return flat


def _write_input(name: str, parameters: Sequence[inspect.Parameter], given: dict[str, Any]) -> int:
    """Writes the options that were given as an input file. Raises OutcoreError if it cannot."""
    path: Path = given["write_input"]
    defaults = {each.name: each.default for each in parameters}
    values = {
        _option(parameter): given[parameter.name]
        for parameter in parameters
        if parameter.name != "write_input" and given[parameter.name] != defaults[parameter.name]
    }
    if isinstance(geometry := values.get(input_file.GEOMETRY), Path):
        values[input_file.GEOMETRY] = plain_file.read_bytes(
            geometry, "read the geometry", input_file.MAX_BYTES
        ).decode(errors="replace")
    preflight.check_file(path, "write an input file")
    job = launch.launched()
    if job is None or job.rank == 0:
        plain_file.write_text(path, "write an input file", input_file.text(path, name, values))
        print(f"wrote {path}; outcore run {path} computes it")
    return 0


def _option(parameter: inspect.Parameter) -> str:
    """The name of an option on the command line, without dashes."""
    declared = parameter.annotation.__metadata__[0].param_decls or ()
    named = [each for each in declared if each.startswith("--")]
    return named[0].removeprefix("--") if named else parameter.name.replace("_", "-")


# ---- a run ----


class _LogFile(io.FileIO):
    """Raises OutcoreError at the first write that fails, and ignores later ones: the message about the error need
    not go into the log."""

    _is_lost = False

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        while left and not self._is_lost:
            try:
                left = left[super().write(left) or 0 :]
            except OSError as error:
                self._is_lost = True
                raise OutcoreError(error.errno or errno.EIO, "write the log", path=str(self.name)) from error
        return len(data)


def _open_log(path: Path) -> TextIO:
    return io.TextIOWrapper(_LogFile(path, "w"), "utf-8", "backslashreplace", write_through=True)


class Run:
    """One run of a method, from its options to its results. The constructor starts the processes of --ranks, and
    checks the options, at all of them.

    Args:
        give_back: memory that arrays free goes back to the system at once (`resources.give_back_freed_memory`).

    `finish` writes `results`; rank 0 prints lines. `energies`: keys of results that the summary at the end shows,
    with the name of each there; a list of energies has one for each root.
    """

    energies: Mapping[str, str] = MappingProxyType({})

    def __init__(self, options: JobOptions, *, give_back: bool = True) -> None:
        if options.ranks is not None:
            launch.relaunch(options.ranks)
        self._start = time.monotonic()
        _core.trace_reset()  # counters are of this run
        launch.limit_threads()
        if give_back:
            resources.give_back_freed_memory()
        options.check()
        self.options = options
        self.comm = launch.world()
        preflight.at_root(self.comm, options.check_targets)
        processes = 1 if self.comm is None else self.comm.size
        preflight.at_root(self.comm, lambda: options.check_memory(processes))
        self.root = self.comm is None or self.comm.rank == 0
        self._log = _open_log(options.log) if self.root and options.log is not None else None
        self.console = Lines(quiet=not self.root or options.quiet, log=self._log)
        self.final = Lines(quiet=not self.root, log=self._log)  # lines that --quiet prints, too
        self.results: dict[str, Any] = {"schema": SCHEMA, **_origin()}
        self.kept_at: Path | None = None  # directory where complete parts stay if a signal ends the run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        signalled = interrupts.behind(error)
        if signalled is not None:
            signal = "SIGTERM" if isinstance(signalled, interrupts.Terminated) else "Ctrl-C"
            kept = "" if self.kept_at is None else f"; what was complete is in {self.kept_at}"
            self.say(f"ended by {signal} after {self.seconds:.1f} s{kept}")

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._start

    def say(self, line: str) -> None:
        self.console.print(visible(line), soft_wrap=True)

    def warn(self, line: str) -> None:
        """Prints why a result is doubtful, with --quiet too, and adds it to the results."""
        self.final.print(visible(f"warning: {line}"), soft_wrap=True)
        self.results.setdefault("warnings", []).append(line)

    def header(self, title: str, *details: str) -> None:
        """Prints the method and the resources: processes, threads, memory."""
        options, processes = self.options, 1 if self.comm is None else self.comm.size
        threads = options.threads or launch.threads_per_rank()
        what = (
            f"{processes} {'process' if processes == 1 else 'processes'} x {threads} "
            f"{'thread' if threads == 1 else 'threads'}",
            f"memory {options.memory or 'half of the free memory'}",
            *details,
        )
        self.results |= {
            "method": title.partition("  ")[0],
            "processes": processes,
            "threads_of_a_process": threads,
        }
        self.say(title)
        self.say(", ".join(what))

    @contextmanager
    def progress(self, label: str) -> Iterator[Progress]:
        """A bar with the time that is left. Any thread reports the fraction that is done; at the end of the block
        it is 1."""
        with self.stages() as tell:
            tell(label, 0.0)
            yield lambda fraction: tell(label, fraction)
            tell(label, 1.0)

    @contextmanager
    def stages(self, *, stay: bool = True) -> Iterator[Callable[[str, float], None]]:
        """As `progress`, for several parts; each gets a bar of its own at its first report. `stay`: the bars stay
        on the screen; else only that of the current part is shown, and disappears at the end. Bars are for
        terminals: they are not written into a file or a pipe."""
        if not self.root or not shows_bars():
            yield lambda label, fraction: None
            return
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
        bars: dict[str, Any] = {}
        with Progress(
            *columns, TimeRemainingColumn(), console=self.console.rich, transient=not stay
        ) as progress:

            def tell(label: str, fraction: float) -> None:
                if label not in bars:
                    if not stay:
                        for each in bars.values():
                            progress.update(each, visible=False)
                    bars[label] = progress.add_task(visible(label), total=1.0)
                progress.update(bars[label], completed=fraction)

            yield tell

    def finish(self, world: World) -> None:
        """Prints the summary of the run, and writes the file of results; after an estimate, only the file.
        Collective."""
        if not self.options.estimate:
            read, written = disk_traffic(world)
            self.results |= {
                "run_seconds": self.seconds,
                "peak_memory_bytes": peak_memory_bytes(world),
                "memory_budget_bytes": self.options.memory_bytes,
                "peak_disk_bytes": peak_disk_bytes(world),
                "disk_read_bytes": read,
                "disk_written_bytes": written,
            }
            for line in self._summary(world.size):
                self.final.print(line, soft_wrap=True)
        with world.together("write results"):
            if self.options.json_file is not None and world.rank == 0:
                from importlib.metadata import version  # slow to load

                self.results["version"] = version("outcore")
                text = json.dumps(self.results, indent=2) + "\n"
                plain_file.write_text(self.options.json_file, "write results", text)

    def _summary(self, processes: int) -> Iterator[str]:
        """One block for every method: energies, memory, disk, time."""
        found = self.results
        for key, name in self.energies.items():
            values = found.get(key)
            if values is None:
                continue
            converged = found.get("scf_converged" if key == "scf_energy_hartree" else "converged")
            state = ", not converged" if converged is False else ""
            several = values if isinstance(values, list) else [values]
            for root, energy in enumerate(several, 1):
                title = f"{name} of root {root}" if isinstance(values, list) else name
                yield f"{title:<26}{energy:18.10f} Eh{state}"
        budget = found["memory_budget_bytes"]
        given = "" if budget is None else f" of {in_words(budget)}"
        shared = ", shared memory counted for each process" if processes > 1 else ""
        moved = f"{in_words(found['disk_written_bytes'])} written, {in_words(found['disk_read_bytes'])} read"
        yield (
            f"run time {found['run_seconds']:.1f} s, memory {in_words(found['peak_memory_bytes'])}{given}{shared}; "
            f"disk: {in_words(found['peak_disk_bytes'])} at most, {moved}"
        )


def peak_memory_bytes(world: World) -> int:
    """The most memory that the processes have held, added up: pages that they share count for each. Collective."""
    return int(world.all_reduce(resources.peak_resident_bytes()))


def peak_disk_bytes(world: World) -> int:
    """The most disk space that files of each process took while they were open for writing, scratch and kept ones,
    added up: a file that several processes write counts for each. Collective."""
    return int(world.all_reduce(_core.peak_disk_bytes()))


def disk_traffic(world: World) -> tuple[int, int]:
    """Bytes that all processes asked disks to read and to write, since the counters were reset. Collective."""
    counted = _core.trace_snapshot()["layers"]["device"]
    sums = [sum(counted[operation]["bytes"] for operation in kind) for kind in (report.READS, report.WRITES)]
    read, written = (int(world.all_reduce(each)) for each in sums)
    return read, written


def _origin() -> dict[str, Any]:
    """Facts about the origin of a file of results; its version is filled in when it is written."""
    return {
        "version": None,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "host": platform.node(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
