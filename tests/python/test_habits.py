"""Tools of developers beside the sources: presets, hooks, subjects of commits, the citation."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRESETS = ROOT / "CMakePresets.json"
SUBJECTS = ROOT / "scripts" / "commit_subjects.py"

yaml = pytest.importorskip("yaml")


def in_checkout() -> bool:
    return PRESETS.exists() and shutil.which("git") is not None and (ROOT / ".git").exists()


pytestmark = pytest.mark.skipif(not in_checkout(), reason="not a checkout")


# ---- presets


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "dev",
            {"CMAKE_BUILD_TYPE": "Release", "OUTCORE_TESTS": "ON", "OUTCORE_SANITIZE": ""},
            marks=pytest.mark.long,
        ),
        ("release", {"CMAKE_BUILD_TYPE": "Release", "OUTCORE_TESTS": "OFF", "OUTCORE_SANITIZE": ""}),
        pytest.param(
            "asan",
            {"CMAKE_BUILD_TYPE": "RelWithDebInfo", "OUTCORE_SANITIZE": "address,undefined"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "tsan",
            {"CMAKE_BUILD_TYPE": "RelWithDebInfo", "OUTCORE_SANITIZE": "thread"},
            marks=pytest.mark.long,
        ),
        ("tidy", {"CMAKE_CXX_CLANG_TIDY": "clang-tidy;--quiet", "OUTCORE_TESTS": "OFF"}),
    ],
)
def test_a_preset_configures(tmp_path, name: str, expected: dict[str, str]) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["cmake", "--preset", name, "-B", str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (tmp_path / "CMakeCache.txt").read_text(), re.MULTILINE))
    assert {key: cache[key] for key in expected} == expected


@pytest.mark.parametrize("program", ["cmake --build", "ctest"])
def test_presets_to_build_and_test_are_those_that_configure(program: str) -> None:
    presets = json.loads(PRESETS.read_text())
    visible = {
        kind: {each["name"]: each for each in presets[kind] if not each.get("hidden")}
        for kind in ("configurePresets", "buildPresets", "testPresets")
    }
    kind = "testPresets" if program == "ctest" else "buildPresets"
    listed = subprocess.check_output([*program.split(), "--list-presets"], cwd=ROOT, text=True)
    assert set(re.findall(r'"(\w+)"', listed)) == set(visible[kind])
    assert {each["configurePreset"] for each in visible[kind].values()} == set(visible[kind])
    assert set(visible["configurePresets"]) == set(visible["buildPresets"])


# ---- hooks


def test_hooks_run_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        command = hook["entry"].replace(".venv/bin/python", "$(VENV_PYTHON)").replace(".venv", "$(VENV)")
        assert f"\t{command}" in makefile or f"\t@{command}" in makefile, command


def test_pre_commit_takes_the_file_of_hooks() -> None:
    pytest.importorskip("pre_commit")
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(ROOT / ".pre-commit-config.yaml")]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


# ---- subjects


def judged(tmp_path: Path, message: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message)
    command = [sys.executable, str(SUBJECTS), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "subject",
    [
        "device: flush staging before close",
        "transport/mpi: " + "x" * 57,
        "store, device: name what is full",
        "ci: run it twice",
        "lint: look at subjects",
        'Revert "Something of before."',
        "fixup! whatever it was.",
    ],
)
def test_a_good_subject_is_accepted(tmp_path, subject: str) -> None:
    assert judged(tmp_path, f"{subject}\n\nThe body may say anything.\n# and git a comment\n").returncode == 0


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("transport/mpi: " + "x" * 58, "73 characters, at most 72"),
        ("device: flush staging before close.", "ends with a period"),
        ("Flush staging before close", "no room as prefix"),
        ("device:flush staging", "no room as prefix"),
        ("device: ", "no room as prefix"),
        ("cellar: flush staging", "no folder of the tree is called 'cellar'"),
        ("device, cellar: flush staging", "no folder of the tree is called 'cellar'"),
    ],
)
def test_a_bad_subject_is_refused(tmp_path, subject: str, why: str) -> None:
    answer = judged(tmp_path, f"\n# a comment of git\n{subject}\n\ndevice: a body\n")
    assert answer.returncode == 1
    assert why in answer.stderr and subject.strip() in answer.stderr


# ---- citation


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert citation["title"].lower() == project["name"] and citation["version"] == project["version"]
    assert citation["abstract"] == project["description"]
    assert citation["message"] and all(each.get("name") for each in citation["authors"])
    assert citation["license"] == "Apache-2.0" and "Apache License" in (ROOT / "LICENSE").read_text()[:200]
    required = {"cff-version", "type", "title", "version", "message", "authors", "license"}
    assert (
        required
        <= set(citation)
        <= required | {"abstract", "keywords", "repository-code", "doi", "date-released"}
    )


# ---- maps of methods


@pytest.mark.parametrize("method", ["hf", "ri", "mp2", "cc", "ci", "mrci"])
def test_the_map_of_a_method_names_all_its_files(method: str) -> None:
    place = ROOT / "python" / "outcore" / "chem" / method
    text = ast.get_docstring(ast.parse((place / "__init__.py").read_text())) or ""
    lines = text.partition("Files:\n")[2].splitlines()
    named = {name for line in lines if line.endswith(":") for name in line.strip()[:-1].split(", ")}
    rooms = {path.parent.name for path in place.glob("*/__init__.py")}
    assert named == {path.stem for path in place.glob("*.py")} - {"__init__"} | rooms


# ---- names of classes


# Classes with the same name share an idea, and exist several times for a reason; any other name belongs to
# one class.
SHARED_IDEAS = {
    "Checkpoint": "what is kept of a run and found again: of arrays, of coupled cluster on them, of an SCF",
    "Densities": "density matrices of a state: of CI by pairs of spins, and what gradients contract",
    "Forecast": "what a run will take, in what its method has",
    "GivenOrbitals": "orbitals before an SCF, as the spaces of a kind of CI are chosen among them",
    "Gradients": "nuclear gradients of an object, as PySCF calls the class",
    "Iteration": "what one iteration tells: of a search, which CI extends, or of amplitudes",
    "JKRequest": "J and K that the first process asks for: of stored integrals, of fitted ones",
    "KeptStates": "states of a CI in a directory: of full vectors, of records",
    "NaturalOrbitals": "orbitals that diagonalize the density of a state, with their occupations",
    "Operator": "a Hamiltonian as its products with vectors, of the form that a method has",
    "Options": "what a command is asked for",
    "Orbitals": "irreps of orbitals, in an order: of full CI, of internal and external ones",
    "Plan": "how something is carried out in a memory",
    "Search": "of `davidson.Search`: passes over vectors of the form that a method has",
    "SearchOptions": "of `davidson.Limits`: how a search goes over vectors of the form that a method has",
    "Settings": "how a method computes",
}
# The same in C++, for classes that are neither inside others nor local to a file.
SHARED_IDEAS_IN_CPP = {
    "Code": "numbers of errors as a classic library has them",
    "Counter": "public: a number that processes count up, and one that counts operations",
    "Integrals": "of a Hamiltonian, as a kind of CI takes them",
    "Kernel": "tasks of a product of a Hamiltonian with a vector, of a kind of CI",
    "Space": "determinants of a kind of CI",
}


def test_classes_of_one_name_share_an_idea() -> None:
    bearers = Counter(
        node.name
        for path in (ROOT / "python" / "outcore").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert sorted(name for name, count in bearers.items() if count > 1) == sorted(SHARED_IDEAS)


def cpp_classes(text: str) -> Iterator[tuple[str, str]]:
    """Namespace and name of each class with a body that is neither inside another one nor in a namespace without a
    name."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    scopes: list[str] = []  # "": neither a namespace nor a class of one
    for head, brace in re.findall(r"([^;{}]*)([;{}])", text):
        if brace == "}" and scopes:
            scopes.pop()
        if brace != "{":
            continue
        space = re.search(r"\bnamespace\s+([\w:]+)\s*$", head)
        kind = re.search(
            r"(?<!friend )\b(?:class|struct|union|enum class|enum)\s+(?:OUTCORE_\w+\s+)*(\w+)"
            r"\s*(?:final\s*)?(?::[^:].*)?$",
            head,
            re.DOTALL,
        )
        if kind and all(scopes) and "template <>" not in head:
            yield "::".join(scopes), kind[1]
        scopes.append(space[1] if space else "")


def test_cpp_classes_of_one_name_share_an_idea() -> None:
    files = (path for top in ("include", "src", "bindings") for path in (ROOT / top).rglob("*.[ch]pp"))
    bearers = Counter(name for _, name in {each for path in files for each in cpp_classes(path.read_text())})
    assert sorted(name for name, count in bearers.items() if count > 1) == sorted(SHARED_IDEAS_IN_CPP)


def test_classes_inside_others_or_of_one_file_are_passed_over() -> None:
    text = """
    namespace a::b {
    // class Said {
    class OUTCORE_API One final : public Other { struct Inside { int x; }; };
    enum class Two : int { x };
    template <> struct Special<int> { };
    namespace { struct Hidden { }; }
    void f() { struct Local { }; }
    }
    struct Outside { };
    """
    assert list(cpp_classes(text)) == [("a::b", "One"), ("a::b", "Two"), ("", "Outside")]


# ---- examples


def test_examples_give_typed_memory() -> None:
    texts = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.*"), ROOT / "README.md"]
    assert not [path for path in texts if path.is_file() and "reinterpret_cast" in path.read_text()]


def test_headers_of_users_include_no_transport():
    headers = list((ROOT / "include" / "outcore").glob("*.hpp"))
    assert headers
    assert not [
        each.name for each in headers if '#include "outcore/extend/transport.hpp"' in each.read_text()
    ]
