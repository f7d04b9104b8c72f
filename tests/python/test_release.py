"""One version in all files; a tag needs it, and a dated section of the changelog."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")


def load():
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load()


@pytest.fixture
def root(tmp_path) -> Path:
    """A copy of the files that name a version, with a dated changelog."""
    for name in release.versions(ROOT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("(not released)", "(2027-01-31)", 1))
    return tmp_path


def version(root: Path) -> str:
    return release.versions(root)["pyproject.toml"]


def test_all_files_of_this_checkout_name_one_version():
    assert not list(release.faults(ROOT, ""))


def test_a_release_with_a_dated_changelog_may_be_tagged(root):
    assert not list(release.faults(root, f"v{version(root)}"))


def test_a_version_that_is_not_released_may_not_be_tagged(root):
    text = (root / "CHANGELOG.md").read_text().replace("(2027-01-31)", "(not released)")
    (root / "CHANGELOG.md").write_text(text)
    (fault,) = release.faults(root, f"v{version(root)}")
    assert "CHANGELOG.md begins with" in fault and "not released" in fault


@pytest.mark.parametrize("tag", ["v99.0.0", "0.1.0"])
def test_another_tag_is_refused(root, tag):
    (fault,) = release.faults(root, tag)
    assert fault == f"the tag is {tag}, the version {version(root)}"


@pytest.mark.parametrize("name", [each for each in release.versions(ROOT) if each != "pyproject.toml"])
def test_a_file_with_another_version_is_named(root, name):
    major = version(root).partition(".")[0]
    if name == release.HEADER:
        text = (root / name).read_text().replace(f"OC_VERSION_MAJOR {major}", "OC_VERSION_MAJOR 77")
    else:
        text = (root / name).read_text().replace(version(root), "77.1.0", 1)
    (root / name).write_text(text)
    (fault,) = release.faults(root, "")
    assert fault.startswith(f"{name} has the version 77.")


def test_a_tag_is_checked_before_wheels_are_built():
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())["jobs"]["wheels"][
        "steps"
    ]
    commands = [step.get("run", "") for step in steps]
    check = next(i for i, each in enumerate(commands) if "scripts/release.py" in each)
    assert check < commands.index("make wheels")


# ---- metadata


def test_authors_and_addresses_are_those_of_the_citation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    paper = yaml.safe_load((ROOT / "paper" / "paper.md").read_text().split("---\n")[1])
    authors = [each["name"] for each in citation["authors"]]
    assert [each["name"] for each in project["authors"]] == authors
    assert [each["name"] for each in paper["authors"]] == authors
    assert project.get("urls", {}).get("Repository") == citation.get("repository-code")
    assert set(citation["keywords"]) <= set(project["keywords"])


def test_the_licence_is_an_expression_without_classifiers():
    """PEP 639: `license` and `license-files`; classifiers of licences are not to be used beside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == yaml.safe_load((ROOT / "CITATION.cff").read_text())["license"]
    assert all((ROOT / each).is_file() for each in project["license-files"])
    assert not [each for each in project["classifiers"] if each.startswith("License ::")]


def test_classifiers_name_the_versions_of_python_that_wheels_are_tested_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "tests" / "install" / "test_wheels.py").read_text()
    tested = re.findall(r"\(3, (\d+)\)", re.search(r"^VERSIONS = (.*)$", text, re.MULTILINE)[1])
    named = [
        each for each in project["classifiers"] if each.startswith("Programming Language :: Python :: 3.")
    ]
    assert named == [f"Programming Language :: Python :: 3.{minor}" for minor in tested]
    assert project["requires-python"] == f">=3.{tested[0]}"


def test_all_extras_are_in_all_of_them():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"outcore\[(.*)\]", everything)[1].split(",")
    assert set(named) == set(extras) - {"all", "dev", "docs", "peers"}
