"""Options that have no effect or cannot be kept are refused, before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import main as cli
from outcore.job import preflight

WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"


@pytest.fixture
def water(tmp_path) -> Path:
    pytest.importorskip("pyscf")
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


@pytest.fixture
def refused(capsys):
    """The error of a command line; no result may be printed before it."""

    def call(*arguments: str) -> str:
        with pytest.raises((OutcoreError, cli.UsageError)) as caught:
            cli.run([str(each) for each in arguments])
        output = capsys.readouterr().out
        assert "energy" not in output and "estimate" not in output and "stored" not in output
        return str(caught.value)

    return call


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--uhf --rhf", "--uhf and --rhf exclude each other"),
        ("--rohf --rhf", "--rohf and --rhf exclude each other"),
        ("--rohf --uhf", "--uhf and --rohf exclude each other"),
        ("--disk 1GB", "--disk has no effect with --storage disk"),
        ("--storage direct --disk 1GB", "--disk has no effect with --storage direct"),
        ("--storage direct --record-bytes 64KiB", "--record-bytes has no effect"),
        ("--storage direct --prefetch 4", "--prefetch has no effect"),
        ("--storage direct --page-cache direct", "--page-cache has no effect"),
        ("--storage direct --records own", "--records has no effect"),
        ("--storage direct --keep-integrals .", "--keep-integrals has no effect"),
        ("--keep-integrals / --scratch .", "--scratch has no effect with --keep-integrals"),
        ("--restart none --guess atom", "--guess has no effect with --restart"),
        ("--error 1e-8 --screening 1e-8", "not both"),
        ("--storage tape", "storage 'tape'"),
        ("--storage memory", "Hartree-Fock has disk, mixed, direct, auto"),
        ("--integrals disk", "--integrals"),
        ("--storage tape --estimate", "storage 'tape'"),
        ("--error nan", "--error nan"),
        ("--error 0", "--error 0"),
        ("--screening inf", "--screening inf"),
        ("--screening -1", "--screening -1"),
        ("--trace none/trace.json", "write trace none/trace.json: No such file"),
        ("--trace .", "write trace .: Is a directory"),
        ("--checkpoint none/orbitals", "write checkpoint none/orbitals: No such file"),
        ("--checkpoint /proc/orbitals", "write checkpoint /proc/orbitals"),
        ("--checkpoint water.xyz", "--checkpoint would overwrite the geometry"),
        ("--json ./water.xyz", "--json would overwrite the geometry"),
        ("--json out --trace out", "--trace would overwrite --json"),
        ("--checkpoint other", "other/orbitals: File exists (it holds 'water.xyz', which is not part of it)"),
        ("--keep-integrals /proc/kept", "keep integrals /proc/kept"),
        ("--restart none", "none/orbitals: No such file"),
        ("--record-bytes 4kB", "records must be"),
        ("--prefetch 1", "at least 2 records"),
        ("--page-cache none", "page_cache 'none'"),
        ("--records here", "records 'here'"),
    ],
)
def test_scf_refuses(water, refused, monkeypatch, options, text):
    monkeypatch.chdir(water.parent)
    (water.parent / "other" / "orbitals").mkdir(parents=True)
    (water.parent / "other" / "orbitals" / "water.xyz").touch()
    assert text in refused("scf", water, "--basis", "sto-3g", *options.split())


@pytest.mark.parametrize("command", ["scf", "ri-scf", "rimp2"])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--guess foo", "the start guesses are minao, atom"),
        ("--guess vsap", "the start guesses are"),
        ("--restart none --guess atom", "--guess has no effect with --restart"),
        ("--checkpoint none/orbitals", "write checkpoint none/orbitals: No such file"),
        ("--checkpoint water.xyz", "--checkpoint would overwrite the geometry"),
        ("--storage tape", "storage 'tape'"),
        ("--storage memory", "does not have it"),
        ("--threshold 1e-9", "No such option"),
        ("--guess chkfile", "--restart starts from orbitals"),
        ("--conv-tol 0", "--conv-tol 0"),
        ("--conv-tol nan", "--conv-tol nan"),
        ("--max-cycle 0", "--max-cycle 0"),
        ("--threads 0", "--threads 0"),
        ("--threads 100000", "--threads 100000"),
        ("--memory 1e999", "--memory 1e999: Invalid argument (write it as"),
        ("--memory 1e30", "less than 2^63"),
        ("--ranks 0", "--ranks 0"),
        ("--memory none", "--memory none: Invalid argument (write it as"),
        ("--scratch none", "use scratch directory"),
        ("--json none/results.json", "write results none/results.json: No such file"),
        ("--json .", "write results .: Is a directory"),
        ("--json /proc/results.json", "write results /proc/results.json"),
        ("--json water.xyz", "--json would overwrite the geometry"),
        ("--frame 2", "there is no --frame 2"),
        ("--unit nm", "neither angstrom nor bohr"),
        ("--ecp lanl2dz", "no effective core potential for O, H"),
        ("--spin 1", "cannot have 1 unpaired"),
    ],
)
def test_every_method_refuses(water, refused, monkeypatch, command, options, text):
    monkeypatch.chdir(water.parent)
    assert text in refused(command, water, "--basis", "sto-3g", *options.split())


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [
        ("ri-scf", "--auxbasis nope", "unknown auxiliary basis 'nope'"),
        ("ri-scf", "--screening -1e-9", "--screening -1e-09"),
        ("ri-scf", "--screening nan", "--screening nan"),
        ("ri-scf", "--storage tape", "storage 'tape'"),
        ("rimp2", "--auxbasis nope", "unknown auxiliary basis 'nope'"),
        ("rimp2", "--jkbasis nope", "unknown auxiliary basis 'nope'"),
        ("rimp2", "--frozen 9", "9 frozen, but only 5 are occupied"),
        ("rimp2", "--frozen 9 --estimate", "9 frozen, but only 5 are occupied"),
        ("rimp2", "--frozen core", "neither a number"),
        ("rimp2", "--frozen -1", "neither a number"),
        ("rimp2", "--scs 1", "two numbers are needed"),
        ("rimp2", "--scs nan,1", "two numbers are needed"),
        ("rimp2", "--checkpoint none/kept", "write checkpoint none/kept: No such file"),
        ("ri-scf", "--checkpoint water.xyz", "--checkpoint would overwrite the geometry"),
    ],
)
def test_fitted_methods_refuse(water, refused, monkeypatch, command, options, text):
    monkeypatch.chdir(water.parent)
    assert text in refused(command, water, "--basis", "cc-pvdz", *options.split())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("bench --list --quick", "--list runs nothing"),
        ("bench dio --json none/result.json", "write the result none/result.json"),
        ("study chemio-hf --repeats 2", "chemio-hf makes each run once"),
        ("study passion --out /proc/none", "write the study /proc/none"),
        ("study chemio-hf --out /dev/null", "write the study /dev/null"),
        ("study passion --only=", "the sections of passion"),
        ("--help scf", "'scf' has no effect after --help"),
        ("--version scf", "'scf' has no effect after --version"),
    ],
)
def test_other_commands_refuse(refused, tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    assert text in refused(*arguments.split())
    assert not any(tmp_path.iterdir())


def test_a_scratch_directory_that_is_that_of_the_integrals_is_no_contradiction(water):
    place = str(water.parent)
    common = ["scf", str(water), "--basis", "sto-3g", "--keep-integrals", place]
    assert cli.run([*common, "--scratch", place + "/."]) == 0


def test_checks_of_what_is_to_be_written_leave_nothing_and_change_nothing(tmp_path):
    there, missing, place = tmp_path / "there", tmp_path / "missing", tmp_path / "place"
    there.write_text("kept")
    for path in (there, missing, Path("/dev/null"), None):
        preflight.check_file(path, "write")
    preflight.check_directory(place, "write")
    preflight.check_directory(tmp_path, "write")
    assert there.read_text() == "kept" and os.listdir(tmp_path) == ["there"]


def test_what_a_killed_run_has_left_of_a_checkpoint_is_no_hindrance(tmp_path):
    for name in ("arrays.3", "component.0", "table.0.12", "manifest.new"):
        (tmp_path / name).touch()
    preflight.check_directory(tmp_path, "write checkpoint", array=True)


def test_one_device_may_take_several_files():
    preflight.check_distinct({}, {"--json": "/dev/null", "--trace": "/dev/null"})


def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    preflight.check_file(tmp_path / "pipe", "write")
