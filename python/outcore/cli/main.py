"""The `outcore` command: finds the function of a subcommand, runs it, and prints an error once for the whole job.

A subcommand is a function with typer annotations in a module of its own, imported only when it is called.
"""

from __future__ import annotations

import difflib
import errno
import functools
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, cast

from outcore.base import interrupts
from outcore.base.console import OutputLost, complain, drop_output, prepare_streams, visible

FAILURE, USAGE = 1, 2  # exit statuses
GRACE_S = 5.0  # a process that failed waits this long for the others to fail too, before it ends the job
# After a signal all processes stop computing, then remove their scratch. Slurm kills after 30 s.
SIGNAL_GRACE_S = 20.0

_SIGNALLED = "\0signal "  # begins a message of a process that got a signal; its exit status follows


class Subcommand(NamedTuple):
    module: str
    function: str
    summary: str
    parallel: bool = False  # runs on all processes of a job together


SUBCOMMANDS = {
    "scf": Subcommand(
        "outcore.chem.hf.command", "scf", "Hartree-Fock with two-electron integrals on disk", parallel=True
    ),
    "ri-scf": Subcommand(
        "outcore.chem.ri.command", "ri_scf", "Hartree-Fock with density fitting out of core", parallel=True
    ),
    "rimp2": Subcommand(
        "outcore.chem.ri.command", "rimp2", "RI-MP2 with three-index integrals on disk", parallel=True
    ),
    "fci": Subcommand(
        "outcore.chem.ci.command", "fci", "full CI with vectors in memory or on disk", parallel=True
    ),
    "casscf": Subcommand(
        "outcore.chem.casscf.command",
        "casscf",
        "CASSCF or CASCI with full CI of Outcore, and NEVPT2",
        parallel=True,
    ),
    "ccsd": Subcommand("outcore.chem.cc.command", "ccsd", "coupled cluster out of core", parallel=True),
    "eom": Subcommand(
        "outcore.chem.cc.excited.command", "eom", "excited states and ions of coupled cluster", parallel=True
    ),
    "mrci": Subcommand(
        "outcore.chem.mrci.command", "mrci", "multireference CI with packed vectors", parallel=True
    ),
    "optimize": Subcommand(
        "outcore.chem.optimize.command",
        "optimize",
        "a geometry of least energy, with geomeTRIC",
        parallel=True,
    ),
    "run": Subcommand("outcore.cli.main", "run_file", "the command and the options of an input file"),
    "report": Subcommand("outcore.cli.report", "command", "tables and figures of the I/O of a traced run"),
    "inspect": Subcommand("outcore.cli.inspect", "inspect", "what a disk array or a checkpoint holds"),
    "verify": Subcommand(
        "outcore.cli.inspect", "verify", "check every checksum of a disk array or a checkpoint"
    ),
    "import-dra": Subcommand(
        "outcore.cli.classic", "import_dra", "a disk array from one of Global Arrays", parallel=True
    ),
    "export-dra": Subcommand(
        "outcore.cli.classic", "export_dra", "a disk array to one of Global Arrays", parallel=True
    ),
    "bench": Subcommand("outcore.cli.bench", "command", "measure Outcore beside its peers on this machine"),
    "study": Subcommand(
        "outcore.study.command", "command", "repeat I/O studies of the literature on this machine"
    ),
    "doctor": Subcommand(
        "outcore.cli.doctor", "command", "what Outcore finds on this machine, and what is missing"
    ),
    "clean": Subcommand("outcore.cli.clean", "command", "remove scratch that dead processes have left"),
    "config": Subcommand(
        "outcore.cli.config", "command", "flags to compile and link with the C and C++ library"
    ),
}


class UsageError(Exception):
    """The command line is wrong. Exit status 2."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the `outcore` script. Exit status: 0, 1 failure, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM."""
    prepare_streams()
    try:
        interrupts.end_on_sigterm()
        status = run(list(sys.argv[1:] if arguments is None else arguments), is_process=arguments is None)
        sys.stdout.flush()
        interrupts.ignore()  # the work is done: a signal now could only leave scratch behind
    except (Exception, KeyboardInterrupt) as error:
        try:
            status = report(error)
        except KeyboardInterrupt as signalled:  # before this process could tell the others of the error
            status = report(signalled)
        drop_output()
    sys.exit(status)


def run(arguments: list[str], *, is_process: bool = False) -> int:
    """Runs one command line and returns its exit status; errors are raised. is_process: this process has nothing
    else to do."""
    name = arguments[0] if arguments else "--help"
    if name in COMPLETION:
        return _completion(name, arguments[1:])
    if name in ("--help", "-h", "--version") and len(arguments) > 1:
        raise UsageError(
            f"'{arguments[1]}' has no effect after {name}; outcore COMMAND --help explains a command"
        )
    if name in ("--help", "-h"):
        print(overview())
        return 0
    if name == "--version":
        from importlib.metadata import version

        print(f"outcore {version('outcore')}")
        return 0
    _check_name(name)
    return _run_subcommand(name, arguments[1:], is_process=is_process)


def _check_name(name: str) -> None:
    if name not in SUBCOMMANDS:
        close = difflib.get_close_matches(name, SUBCOMMANDS, 1)
        hint = f"did you mean '{close[0]}'?" if close else "see outcore --help"
        raise UsageError(f"there is no command '{name}', {hint}")


# ---- input files ----


def run_file(arguments: list[str]) -> int:
    """`outcore run FILE [OPTIONS]`: the command, the options and the geometry of an input file (TOML or JSON).
    Options on the command line come after those of the file, and win."""
    from pathlib import Path

    from outcore.cli import input_file

    if not arguments or arguments[0] in ("--help", "-h"):
        print(f"Usage: outcore run FILE [OPTIONS]\n\n{(input_file.__doc__ or '').strip()}")
        print(
            "\nAn AtomicInput of QCSchema (JSON) is answered with an AtomicResult, on standard output or in --json "
            "FILE."
        )
        print("\nOptions that follow FILE win. --write-input FILE of a command writes such a file.")
        return 0
    path = Path(arguments[0])
    found = input_file.read(path)
    if input_file.is_qcschema(found):
        schema = importlib.import_module("outcore.interfaces.qcschema.command")
        return cast(int, schema.run(path, found, arguments[1:]))
    name = found["command"]
    _check_name(name)
    positional = [each.name for each in parameters(name) if not each.opts[0].startswith("-")]
    if name == "run" or not SUBCOMMANDS[name].module.startswith("outcore.chem."):
        raise UsageError(f"{path}: '{name}' takes no input file")
    negated = negations(name)
    start_processes(name, [*input_file.options(path, found, positional, negated), *arguments[1:]])
    with input_file.arguments(path, found, positional, negated) as given:
        return _run_subcommand(name, [*given, *arguments[1:]])


def start_processes(name: str, arguments: list[str]) -> None:
    """Starts the processes of --ranks, before this process makes a file that it could not remove."""
    from outcore.job import launch

    ranks = _command(name).make_context(name, arguments, resilient_parsing=True).params.get("ranks")
    if ranks is not None:
        launch.relaunch(ranks)


# ---- completion ----

COMPLETION = ("--install-completion", "--show-completion")


def _completion(name: str, arguments: list[str]) -> int:
    from outcore.cli import completion

    if len(arguments) > 1:
        raise UsageError(f"'{arguments[1]}' has no effect after {name} {arguments[0]}")
    shell = completion.chosen(arguments[0] if arguments else None)
    options = {
        command: {
            option: (getattr(each, "help", None) or "").partition(".")[0]
            for each in parameters(command)
            for option in (*each.opts, *each.secondary_opts)
            if option.startswith("-")
        }
        for command in SUBCOMMANDS
    }
    text = completion.script(shell, options, {each: command.summary for each, command in SUBCOMMANDS.items()})
    print(text if name == "--show-completion" else completion.install(shell, text))
    return 0


def parameters(name: str) -> list[Any]:
    """Options and arguments of a command, as typer has them."""
    return [] if name == "run" else list(_command(name).params)


def negations(name: str) -> set[str]:
    """Options of a command that negate another one, such as `--no-second-order`."""
    return {option for each in parameters(name) for option in each.secondary_opts}


def _command(name: str) -> Any:
    import typer

    application = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.command(name)(_carrying(_function(SUBCOMMANDS[name])))
    return typer.main.get_command(application)


def overview() -> str:
    """The text of `outcore --help`."""
    width = max(map(len, SUBCOMMANDS))
    listing = "\n".join(f"  {name:<{width}}  {command.summary}" for name, command in SUBCOMMANDS.items())
    return (
        "Outcore: arrays and files larger than memory, for quantum chemistry.\n\n"
        "Usage: outcore COMMAND [OPTIONS]\n\n"
        f"Commands:\n{listing}\n\n"
        "outcore COMMAND --help explains one; outcore --version names the version.\n"
        "outcore --install-completion [bash|zsh|fish] makes the shell complete commands and options; "
        "--show-completion prints the script.\n"
        "OUTCORE_DEBUG=1 shows where an error comes from."
    )


def _run_subcommand(name: str, arguments: list[str], *, is_process: bool = False) -> int:
    from outcore.base import start
    from outcore.job import launch, resources

    start.defer(stays=is_process)
    entry = SUBCOMMANDS[name]
    if name == "run":
        return run_file(arguments)
    if entry.parallel:
        resources.refuse_little_address_space(launch.threads_per_rank())
    if launch.launched():
        launch.limit_threads()
        if entry.parallel:
            launch.world()

    import typer

    with start.loading():
        command = _command(name)
    try:
        result = command.main(arguments, prog_name=f"outcore {name}", standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except _Carried as carried:
        raise carried.error from carried.error.__cause__
    except Exception as error:
        if not isinstance(error, typer.BadParameter.__mro__[1]):  # UsageError, which typer does not export
            raise
        text = cast(typer.BadParameter, error).format_message()
        raise UsageError(f"{text} (see outcore {name} --help)") from error
    return result if isinstance(result, int) else 0


class _Carried(Exception):
    """Carries Ctrl-C, SIGTERM and errors of the system past typer, which turns some of them into exit statuses."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _carrying(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (KeyboardInterrupt, OSError) as error:
            raise _Carried(error) from error

    return run


def _function(entry: Subcommand) -> Callable[..., Any]:
    return cast(Callable[..., Any], getattr(importlib.import_module(entry.module), entry.function))


def _end_all(status: int) -> int:
    """Ends a process that got a signal: the others end with the same status."""
    from outcore import _core
    from outcore.job import launch

    interrupts.begin_to_end(status)
    _core.ends_by_signal()
    if not launch.joined():
        return status
    from outcore.job import world

    world.let_others_fail()
    messages = launch.gather_within(SIGNAL_GRACE_S, f"{_SIGNALLED}{status}")
    if messages is None:
        launch.abort(status)
        return status
    return max(int(each.removeprefix(_SIGNALLED)) for each in messages if each.startswith(_SIGNALLED))


def _explained(error: BaseException) -> BaseException:
    """The error to report: if a package of an optional part is missing, one that says how to install it; if memory
    has run out, one that names the limit; else `error`."""
    from outcore.base import extras
    from outcore.base.errors import OutcoreError, as_outcore_error
    from outcore.job import resources

    found: OutcoreError | None = None
    if isinstance(error, OutputLost):
        found = as_outcore_error(error, "")
    if isinstance(error, ImportError):
        found = extras.missing(error, "start")
    if found is None and not isinstance(error, OutcoreError):
        ours = as_outcore_error(error, "compute")
        if ours.errno in (errno.ENOMEM, errno.EAGAIN):
            limit = resources.hard_allowance()
            limits = "" if limit is None else f"; the limit is {limit.reason}"
            found = OutcoreError(ours.errno, "compute", detail=ours.detail + limits)
    return error if found is None else found.with_traceback(error.__traceback__)


def report(error: BaseException) -> int:
    """Prints an error once for the whole job and returns the exit status. Ends the job if other processes go on."""
    signalled = interrupts.behind(error)
    if signalled is not None:
        return _end_all(interrupts.status_of(signalled))
    from outcore.base.errors import OutcoreError
    from outcore.job import launch

    error = _explained(error)
    if isinstance(error, OutcoreError | UsageError) and not os.environ.get("OUTCORE_DEBUG"):
        message = f"outcore: {visible(str(error))}"
    else:
        message = "".join(traceback.format_exception(error)).rstrip()
    status = USAGE if isinstance(error, UsageError) else FAILURE

    job = launch.launched()
    if job is None or not launch.joined():
        if job is None or job.rank == 0 or not isinstance(error, UsageError):
            complain(message)
        return status
    interrupts.ignore()
    messages = launch.gather_within(GRACE_S, message)
    if messages is not None and any(each.startswith(_SIGNALLED) for each in messages):
        return max(int(each.removeprefix(_SIGNALLED)) for each in messages if each.startswith(_SIGNALLED))
    if messages is None:  # this process alone failed
        complain(message)
        launch.abort(status)
    elif job.rank == 0:
        complain("\n".join(_without_repeats(messages)))
    return status


def _without_repeats(messages: Sequence[str]) -> list[str]:
    """Messages that differ only in the rank become one."""
    said: dict[str, set[str]] = {}
    for message in messages:
        said.setdefault(re.sub(r"rank \d+: ", "", message), set()).add(message)
    return [text if len(alike) > 1 else alike.pop() for text, alike in said.items()]
