"""The page of test coverage."""

import importlib.util
import json
import shutil
import subprocess

import pytest
from blocks import ROOT, script

covered = script("covered")
FOUND = {
    "python": {
        "date": "2026-01-02",
        "commit": "abc12345",
        "rooms": {
            "outcore/base": {"statements": 50, "run": 40, "branches": 10, "branches_run": 5},
            "outcore/chem/cc": {"statements": 150, "run": 150, "branches": 0, "branches_run": 0},
        },
        "measured": [{"place": "tests/python/base", "tests": "12 passed", "cpu_seconds": 3}],
    }
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / covered.FILE).parent.mkdir(parents=True)
    (tmp_path / covered.FILE).write_text(json.dumps(FOUND))
    return tmp_path


def test_a_row_has_counts_and_shares(root):
    rows = covered.table(root, "python").splitlines()
    assert "| `outcore/base` | 50 | 40 | 80.0 % | 10 | 50.0 % |" in rows
    assert "| `outcore/chem/cc` | 150 | 150 | 100.0 % | 0 |  |" in rows
    assert "| **all** | 200 | 190 | 95.0 % | 10 | 50.0 % |" in rows


def test_the_table_says_when_and_what_was_run(root):
    text = covered.table(root, "python")
    assert text.startswith("Measured 2026-01-02, commit abc12345.")
    assert "- `tests/python/base`: 12 passed" in text


def test_what_was_not_measured_is_told(root):
    assert covered.table(root, "cpp").startswith("Not measured yet: run `scripts/covered.py cpp`")


PROGRAM = """#include "twice.hpp"
int never(int a) {
  return a + 1;
}
int main() {
  return twice(0);
}
"""


@pytest.mark.skipif(shutil.which("gcov") is None, reason="gcov is not installed")
def test_lines_of_cpp_that_ran_are_told_from_those_that_did_not(tmp_path, monkeypatch):
    source, build = tmp_path / "src" / "room", tmp_path / "build"
    source.mkdir(parents=True)
    build.mkdir()
    (source / "twice.hpp").write_text("inline int twice(int a) {\n  return 2 * a;\n}\n")
    (source / "a.cpp").write_text(PROGRAM)
    subprocess.run(["g++", "--coverage", "-O0", "-o", "a", source / "a.cpp"], cwd=build, check=True)
    subprocess.run(["./a"], cwd=build, check=True)
    spec = importlib.util.spec_from_file_location("scripts_covered", ROOT / "scripts" / "covered.py")
    measured = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measured)
    monkeypatch.setattr(measured, "ROOT", tmp_path)
    monkeypatch.setattr(measured, "BUILD", build)
    assert measured._lines_run() == {
        "src/room/a.cpp": {2: False, 3: False, 5: True, 6: True},
        "src/room/twice.hpp": {1: True, 2: True},
    }
