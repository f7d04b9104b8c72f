"""One calculation for another program: runs a command line, in this process or in processes of its own."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from outcore.base.errors import NotConverged, OutcoreError
from outcore.cli import input_file, main
from outcore.interfaces.methods import NamedMethod
from outcore.job import launch

GEOMETRY = "molecule.xyz"
_FILES = ("json", "log", "quiet", "write_input", "estimate", "no_solve")  # options about output and files
_ATTEMPTED = "choose keywords"
_RESOURCES = (errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN)
_INPUT = (errno.EINVAL, errno.ENOTSUP, errno.ENOENT, errno.EISDIR, errno.EACCES)


@dataclass(frozen=True)
class Done:
    """results: as `--json` writes them. said: the output of the command at this process. warnings: why the results
    are doubtful."""

    results: dict[str, Any]
    said: str

    @property
    def warnings(self) -> list[str]:
        found: list[str] = self.results.get("warnings", [])
        return found


def options(method: NamedMethod, keywords: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command: the keywords of a user, the options of the method, and those that the other program
    sets (`own`). An option whose value is None is left out.

    Raises OutcoreError (EINVAL) for keywords that the other program or the method sets, and for those that the
    command does not have."""
    chosen = {name: value for name, value in {**method.options, **own}.items() if value is not None}
    known = _names(method.command)
    given: dict[str, Any] = {}
    for key, value in keywords.items():
        name = str(key).replace("-", "_")
        if name in _FILES:
            raise refused(f"'{key}' has no effect here")
        if name in own or name in method.options or name == "geometry":
            raise refused(f"'{key}' is set by the method, the molecule or the calling program")
        if name not in known:
            command = f"outcore {method.command}"
            raise refused(f"'{command}' has no option '{key}' (see {command} --help)")
        given[name] = os.fspath(value) if isinstance(value, os.PathLike) else value
    return given | chosen


def refused(detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _ATTEMPTED, detail=detail)


def _names(command: str) -> set[str]:
    """Options as they are named on the command line, with underscores."""
    every = (each for parameter in main.parameters(command) for each in parameter.opts)
    return {each.removeprefix("--").replace("-", "_") for each in every if each.startswith("--")}


def words(command: str, given: Mapping[str, Any]) -> list[str]:
    """Options as on a command line. Raises OutcoreError (EINVAL) for values that no option takes."""
    try:
        return input_file.options(Path("keywords"), given, (), main.negations(command))
    except OutcoreError as error:
        raise refused(error.detail) from error


def compute(command: str, given: Mapping[str, Any], geometry: str, more: Sequence[str] = ()) -> Done:
    """Runs a command with these options, followed by `more` as on a command line, on the text of an XYZ file.

    It runs in this process; with the option `ranks`, if no launcher has started this process, in processes of its
    own. Collective under a launcher. Raises the errors of the command: OutcoreError, and UsageError for wrong
    options."""
    arguments = [*words(command, given), *more]
    with TemporaryDirectory(prefix="outcore-job-") as folder:
        xyz, results = Path(folder, GEOMETRY), Path(folder, "results.json")
        xyz.write_text(geometry)
        line = [command, str(xyz), *arguments, "--json", str(results)]
        said = _apart(line) if _asks_for_processes(given) else _here(line)
        text = results.read_text() if results.exists() else None
    comm = launch.world()
    if comm is not None:
        text = comm.bcast(text)
    if text is None:
        raise refused("the options ask for no results")
    return Done(json.loads(text), said)


def _asks_for_processes(given: Mapping[str, Any]) -> bool:
    return given.get("ranks", 1) != 1 and launch.launched() is None


def _here(line: list[str]) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        main.run(line)
    return said.getvalue()


def _apart(line: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "outcore", *line],
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    detail = done.stderr.strip().removeprefix("outcore: ")
    if done.returncode == main.USAGE:
        raise main.UsageError(detail)
    attempted = f"run outcore {line[0]}"
    if done.returncode and "converge" in detail:
        raise NotConverged(None, attempted, detail=detail)
    if done.returncode and not Path(line[-1]).exists():  # the message has the system's text for the errno
        number = next((each for each in (*_RESOURCES, *_INPUT) if os.strerror(each) in detail), None)
        raise OutcoreError(number, attempted, detail=detail)
    return done.stdout


def kind_of(error: BaseException) -> str:
    """The kind of an error: "input", "resource", "convergence" or "unknown"."""
    if isinstance(error, main.UsageError):
        return "input"
    if isinstance(error, NotConverged):
        return "convergence"
    number = getattr(error, "errno", None)
    if number in _RESOURCES or isinstance(error, MemoryError):
        return "resource"
    if number in _INPUT:
        return "input"
    return "unknown"
