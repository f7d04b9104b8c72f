"""Input files: a command, its options and its geometry in one file."""

import json
from pathlib import Path

import pytest

from outcore.base.errors import OutcoreError
from outcore.cli import input_file
from outcore.cli import main as cli

WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"


def write(path, text):
    path.write_text(text)
    return path


def test_keys_are_options_and_text_is_a_geometry(tmp_path):
    path = write(
        tmp_path / "a.toml",
        f"command = 'fci'\ngeometry = '''\n{WATER}'''\nbasis = '6-31g'\nfrozen = 1\n"
        "energy_only = true\nuhf = false\nconv-tol = 1e-10\nactive = [2, 2]\n",
    )
    found = input_file.read(path)
    with input_file.arguments(path, found, ["geometry"]) as given:
        assert given[1:] == [
            "--basis=6-31g", "--frozen=1", "--energy-only", "--conv-tol=1e-10", "--active=2,2",
        ]  # fmt: skip
        geometry = Path(given[0])
        assert geometry.read_text() == WATER
        assert geometry.name == "a.xyz"
    assert not geometry.exists()


def test_false_is_said_by_the_option_that_says_no(tmp_path):
    path = write(tmp_path / "a.toml", "command = 'scf'\nsecond-order = false\nuhf = false\n")
    found = input_file.read(path)
    assert input_file.options(path, found, (), cli.negations("scf")) == ["--no-second-order"]


def test_what_is_written_is_read(tmp_path):
    values = {"geometry": WATER, "basis": 'a "quoted" \\ name', "memory": "1GB", "frozen": 2, "triples": True}
    for name in ("a.toml", "a.json"):
        path = tmp_path / name
        path.write_text(input_file.text(path, "ccsd", values))
        assert input_file.read(path) == {"command": "ccsd"} | values


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("a.txt", "", "its name has to end in .toml or .json"),
        ("a.toml", "command = ", "Invalid value"),
        ("a.json", "[1]", "it has no 'command'"),
        ("a.toml", "basis = 'x'", "it has no 'command'"),
        ("a.json", json.dumps({"command": "scf", "basis": {"H": "sto-3g"}}), "basis is neither text"),
        ("a.json", json.dumps({"command": "scf", "geometry": [1, 2]}), "geometry is no text"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path, name, text, wrong):
    path = write(tmp_path / name, text)
    with (
        pytest.raises(OutcoreError, match=wrong) as refused,
        input_file.arguments(path, input_file.read(path), ["geometry"]),
    ):
        pass
    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OutcoreError, match=r"none\.toml: No such file"):
        input_file.read(tmp_path / "none.toml")


def test_a_command_without_input_files_is_refused(tmp_path):
    path = write(tmp_path / "a.toml", "command = 'doctor'\n")
    with pytest.raises(cli.UsageError, match="'doctor' takes no input file"):
        cli.run(["run", str(path)])


def test_an_option_that_is_none_is_a_usage_error(tmp_path):
    path = write(tmp_path / "a.toml", "command = 'scf'\ngeometry = 'w.xyz'\nbasiss = 'sto-3g'\n")
    with pytest.raises(cli.UsageError, match="basiss"):
        cli.run(["run", str(path)])


def test_a_command_writes_the_file_that_repeats_it(tmp_path, capsys):
    geometry, path = write(tmp_path / "w.xyz", WATER), tmp_path / "w.toml"
    given = [
        "ri-scf",
        str(geometry),
        "--basis",
        "sto-3g",
        "--auxbasis",
        "def2-svp-jkfit",
        "--memory",
        "2500MB",
    ]
    assert cli.run([*given, "--write-input", str(path)]) == 0
    assert "wrote" in capsys.readouterr().out
    assert input_file.read(path) == {
        "command": "ri-scf",
        "geometry": WATER,
        "basis": "sto-3g",
        "auxbasis": "def2-svp-jkfit",
        "memory": "2500MB",
    }
    geometry.unlink()
    assert cli.run(["run", str(path), "--quiet", "--json", str(tmp_path / "r.json")]) == 0
    said = capsys.readouterr().out
    assert [line.split()[:2] for line in said.splitlines()] == [["SCF", "energy"], ["run", "time"]]
    assert json.loads((tmp_path / "r.json").read_text())["converged"] is True
