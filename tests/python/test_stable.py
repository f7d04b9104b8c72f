"""The stable interface: no line of it is removed or altered."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "stable.py"


def load():
    spec = importlib.util.spec_from_file_location("stable", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stable_interface_is_still_there():
    answer = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_what_is_gone_is_named(tmp_path, monkeypatch, capsys):
    stable = load()
    monkeypatch.setattr(stable, "FILE", tmp_path / "stable.txt")
    monkeypatch.setattr(stable, "lines", lambda: ["c int oc_new(int handle)"])
    monkeypatch.setattr(sys, "argv", ["stable.py", "--check"])
    stable.FILE.write_text("c int oc_old(int handle)\n")
    assert stable.main() == 1
    told = capsys.readouterr()
    assert "no longer there: c int oc_old" in told.err and "new: c int oc_new" in told.out


def test_parameters_are_part_of_a_line():
    assert load().parameters(lambda self, a, b=1, *rest, **more: None) == "a, b=, *rest, **more"
