"""The frame of every method's command: options, header, progress, results, and its end."""

from __future__ import annotations

import inspect
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
import typer

import outcore
from outcore.base import interrupts
from outcore.base.errors import OutcoreError
from outcore.cli.main import SUBCOMMANDS, _function
from outcore.cli.run import JobOptions, Run, with_options

METHODS = [name for name, entry in SUBCOMMANDS.items() if entry.module.startswith("outcore.chem.")]
DEADLINE_S = 120


@dataclass(frozen=True, kw_only=True)
class Options(JobOptions):
    orbitals: Annotated[int, typer.Option(help="How many.")]
    level: Annotated[int, typer.Option(help="Which.")] = 2


@pytest.fixture
def world():
    with outcore.World("self") as world:
        yield world


def test_a_command_has_the_options_of_its_method_and_then_those_of_every_job():
    @with_options
    def command(options: Options, title: str = "none") -> int:
        """A command for the tests."""
        return options.orbitals + options.level + len(title)

    parameters = inspect.signature(command).parameters
    of_job = list(inspect.signature(JobOptions).parameters)
    assert list(parameters) == ["orbitals", "level", *of_job, "title"]
    assert command.__doc__ == "A command for the tests."
    given = {name: None for name in of_job}
    assert command(orbitals=5, level=1, title="four", **given) == 10


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_asked_for_the_same_in_the_same_words(name):
    parameters = inspect.signature(_function(SUBCOMMANDS[name])).parameters
    hints = inspect.get_annotations(JobOptions, eval_str=True)
    asked = {field.name for field in fields(JobOptions)}
    assert name == "eom" or asked <= set(parameters)  # where some have no effect
    for option in asked & set(parameters):
        found, wanted = parameters[option].annotation, hints[option]
        assert found.__origin__ == wanted.__origin__
        assert vars(found.__metadata__[0]) == vars(wanted.__metadata__[0])
        assert parameters[option].default == getattr(JobOptions, option)


def test_options_out_of_range_and_files_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(OutcoreError, match="--threads 0"):
        Run(Options(orbitals=1, threads=0))
    with pytest.raises(OutcoreError, match="write results"):
        Run(Options(orbitals=1, json_file=tmp_path / "none" / "x"))


def test_header_and_memory_say_what_was_used(world, capsys, tmp_path):
    results = tmp_path / "results.json"
    with Run(Options(orbitals=1, threads=3, memory="500MB", json_file=results)) as run:
        run.header("CI/sto-3g", "scratch /tmp")
        run.results["energy_hartree"] = -1.5
        run.finish(world)
    title, how, end = capsys.readouterr().out.splitlines()
    assert (title, how) == ("CI/sto-3g", "1 process x 3 threads, memory 500MB, scratch /tmp")
    assert re.fullmatch(
        r"run time \S+ s, memory \d+ MB of 500 MB; disk: .* at most, .* written, .* read", end
    )
    found = json.loads(results.read_text())
    assert found["energy_hartree"] == -1.5
    assert found["memory_budget_bytes"] == 500_000_000
    assert found["peak_memory_bytes"] > 1e6 and found["run_seconds"] > 0


def test_a_quiet_run_says_its_end_alone_and_its_log_has_all(world, capsys, tmp_path):
    log = tmp_path / "log"
    with Run(Options(orbitals=1, quiet=True, log=log)) as run:
        run.say("iteration 1")
        with run.progress("sigma") as tell:
            tell(0.5)
        run.finish(world)
    said = capsys.readouterr().out
    assert said.startswith("run time ") and said.count("\n") == 1
    assert log.read_text().splitlines()[0] == "iteration 1"
    assert log.read_text().endswith(said)


def test_a_log_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(OutcoreError, match="write the log"):
        Run(Options(orbitals=1, log=tmp_path / "none" / "log"))


def test_an_estimate_leaves_its_numbers_alone(world, capsys, tmp_path):
    results = tmp_path / "results.json"
    with Run(Options(orbitals=1, estimate=True, json_file=results)) as run:
        run.results["disk_bytes"] = 7
        run.finish(world)
    assert capsys.readouterr().out == ""
    found = json.loads(results.read_text())
    assert found["disk_bytes"] == 7 and "run_seconds" not in found


def test_results_that_cannot_be_written_are_an_error(world, tmp_path):
    results = tmp_path / "there" / "results.json"
    results.parent.mkdir()
    run = Run(Options(orbitals=1, json_file=results))
    results.parent.rmdir()
    with pytest.raises(OutcoreError, match="write results"):
        run.finish(world)


def test_progress_shows_its_part_and_all_of_it_in_the_end_on_terminals_alone(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Run(Options(orbitals=1)).progress("sigma") as tell:
        tell(0.25)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    run = Run(Options(orbitals=1))
    with run.progress("[red]sigma") as tell:
        tell(0.25)
    with run.stages() as told:
        told("alpha", 0.5)
        told("beta", 1.0)
    shown = capsys.readouterr().out
    assert "[red]sigma" in shown and "100%" in shown
    assert "alpha" in shown and " 50%" in shown and "beta" in shown


@pytest.mark.parametrize(
    ("error", "name"), [(KeyboardInterrupt, "Ctrl-C"), (interrupts.Terminated, "SIGTERM")]
)
def test_a_run_that_is_ended_says_by_what_and_what_there_is(capsys, error, name):
    run = Run(Options(orbitals=1))
    run.kept_at = Path("/kept")
    with pytest.raises(error), run:
        raise error
    said = capsys.readouterr().out
    assert said.startswith(f"ended by {name} after ") and said.endswith("what was complete is in /kept\n")


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "chain.xyz"
    path.write_text("14\nhydrogen\n" + "".join(f"H 0 0 {0.9 * i}\n" for i in range(14)))
    return path


def density_fitting(method, chain, place, *arguments):
    """A command whose scratch and results lie in `place`."""
    scratch = place / "scratch"
    scratch.mkdir()
    command = [
        sys.executable,
        "-m",
        "outcore",
        method,
        str(chain),
        "--basis",
        "cc-pvdz",
        "--conv-tol",
        "1e-11",
    ]
    command += ["--storage", "disk", "--scratch", str(scratch), "--json", str(place / "results.json")]
    return [*command, *arguments]


def energy_in(place):
    return json.loads((place / "results.json").read_text())["energy_hartree"]


@pytest.fixture(scope="module")
def undisturbed(chain, tmp_path_factory):
    """For each method the energy of an uninterrupted run of one process."""

    @cache
    def energy(method):
        place = tmp_path_factory.mktemp("undisturbed")
        command = density_fitting(method, chain, place)
        assert subprocess.run(command, check=False, capture_output=True, timeout=DEADLINE_S).returncode == 0
        return energy_in(place)

    return energy


@pytest.mark.parametrize(
    ("method", "ranks", "number"),
    [
        ("ri-scf", 1, signal.SIGINT),
        pytest.param("rimp2", 2, signal.SIGTERM, marks=[pytest.mark.launcher, pytest.mark.long]),
        pytest.param("ri-scf", 1, signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("rimp2", 1, signal.SIGINT, marks=pytest.mark.long),
        pytest.param("rimp2", 1, signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("rimp2", 2, signal.SIGINT, marks=[pytest.mark.launcher, pytest.mark.long]),
    ],
)
def test_density_fitting_ends_with_the_status_of_a_signal_and_goes_on(
    chain, undisturbed, tmp_path, number, method, ranks
):
    pytest.importorskip("pyscf")
    kept = tmp_path / "kept"
    command = density_fitting(method, chain, tmp_path, "--checkpoint", str(kept))
    command += ["--ranks", str(ranks)] if ranks > 1 else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (line := process.stdout.readline()).startswith("    2 "):  # the second cycle
            assert line
        process.send_signal(number)
        said, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == 128 + number, errors
    if ranks == 1:
        assert f"what was complete is in {kept}" in said
    for word in ("terminate called", "Input/output error", "Traceback"):
        assert word not in errors
    assert list((tmp_path / "scratch").iterdir()) == []
    again = subprocess.run(command, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    assert again.returncode == 0, again.stderr
    assert "found in" in again.stdout
    assert energy_in(tmp_path) == pytest.approx(undisturbed(method), abs=1e-9)
