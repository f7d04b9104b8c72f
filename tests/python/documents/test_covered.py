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
        "measured": [{"place": "tests/python/base", "tests": "12 passed"}],
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


@pytest.mark.parametrize(("run", "said"), [(30, "reached"), (29, "missed")])
def test_the_bar_is_told(root, run, said):
    found = json.loads((root / covered.FILE).read_text())
    found["python"]["rooms"]["outcore/chem/cc"]["run"] = 110 + run
    (root / covered.FILE).write_text(json.dumps(found))
    assert f"The bar is 90 % of the statements: {said}." in covered.table(root, "python")


def test_what_was_not_measured_is_told(root):
    assert covered.table(root, "cpp").startswith("Not measured yet: run `scripts/covered.py cpp`")


PROGRAM = """#include "twice.hpp"
int never(int a) {
  return a + 1;
}
int main(int count, char**) {
  if (count > 1)
    return 1;
  return twice(0);
}
"""


def measuring():
    spec = importlib.util.spec_from_file_location("scripts_covered", ROOT / "scripts" / "covered.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.skipif(shutil.which("gcov") is None, reason="gcov is not installed")
def test_lines_and_branches_of_cpp_that_ran_are_told_from_those_that_did_not(tmp_path, monkeypatch):
    source, build = tmp_path / "src" / "room", tmp_path / "build"
    source.mkdir(parents=True)
    build.mkdir()
    (source / "twice.hpp").write_text("inline int twice(int a) {\n  return 2 * a;\n}\n")
    (source / "a.cpp").write_text(PROGRAM)
    subprocess.run(["g++", "--coverage", "-O0", "-o", "a", source / "a.cpp"], cwd=build, check=True)
    subprocess.run(["./a"], cwd=build, check=True)
    measure = measuring()
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    monkeypatch.setattr(measure, "BUILD", build)
    assert measure._run_in_cpp() == {
        "src/room/a.cpp": (
            {2: False, 3: False, 5: True, 6: True, 7: False, 8: True},
            {(6, 0): False, (6, 1): True},
        ),
        "src/room/twice.hpp": ({1: True, 2: True}, {}),
    }


def test_the_places_have_each_test_in_python_once():
    places = measuring().places()
    files = [
        file
        for place in places
        for file in (ROOT.glob(place) if "*" in place else (ROOT / place).rglob("test_*.py"))
    ]
    wanted = {*(ROOT / "tests" / "python").rglob("test_*.py"), *(ROOT / "tests" / "mpi").rglob("test_*.py")}
    assert len(files) == len(set(files)) and set(files) == wanted
