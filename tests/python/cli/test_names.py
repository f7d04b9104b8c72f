"""Names of files are printed and used unchanged: brackets, blanks, escapes, and bytes that are no text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from outcore import _core
from outcore.base import console
from outcore.cli import main as cli

H2 = "2\n\nH 0 0 0\nH 0 0 0.74\n"
STRANGE = ["mol[opt] :heart:b", "[bold]", "\u00fc\n\x1b[31m", "q'\"$;&" + "l" * 230]


@pytest.mark.parametrize("name", STRANGE)
def test_commands_print_names_as_they_are(tmp_path, monkeypatch, capsys, name):
    pytest.importorskip("pyscf")
    monkeypatch.chdir(tmp_path)
    scratch = Path(f"{name}[", "b]", name)
    scratch.mkdir(parents=True)
    Path(f"{name}.xyz").write_text(H2)
    common = [f"{name}.xyz", "--basis", "sto-3g", "--scratch", str(scratch), "--json", f"{name}.json"]
    assert cli.run(["scf", *common, "--checkpoint", str(scratch / "kept")]) == 0
    assert json.loads(Path(f"{name}.json").read_text())["converged"]
    assert cli.run(["scf", *common, "--restart", str(scratch / "kept")]) == 0
    assert cli.run(["ri-scf", *common]) == 0
    output = capsys.readouterr().out
    shown = console.visible(name)
    assert f"/sto-3g  {shown}.xyz: 2 atoms" in output
    assert f") of {shown}[/b]/{shown}/kept\n" in output
    assert f"scratch {console.visible(str(scratch.absolute()))}\n" in output


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_that_are_no_text_are_used_and_printed(tmp_path, encoding):
    pytest.importorskip("pyscf")
    place = os.path.join(os.fsencode(tmp_path), b"\xff[/b]\xfe")
    os.makedirs(place)
    geometry = os.path.join(place, b"h\xe9.xyz")
    with open(geometry, "w") as file:
        file.write(H2)
    command = [os.fsencode(sys.executable), b"-m", b"outcore", b"ri-scf", geometry, b"--basis", b"sto-3g"]
    command += [b"--scratch", place, b"--checkpoint", os.path.join(place, b"kept\xfd")]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"  h\xe9.xyz: 2 atoms" in done.stdout and b"scratch " + place in done.stdout
    failed = subprocess.run([*command, b"--scratch", place + b"none"], capture_output=True, check=False)
    assert failed.returncode == 1 and failed.stderr.startswith(b"outcore: use scratch directory")
    assert failed.stderr.count(b"\n") == 1


def test_the_core_takes_and_gives_names_that_are_no_text(tmp_path):
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    place.mkdir()
    assert _core.file_system(str(place)).total_bytes > 0
    file = _core.ExclusiveFile("data", scratch=str(place))
    try:
        assert os.fsencode(file.path).startswith(os.fsencode(place))
    finally:
        file.delete()
