"""Advice in messages can be followed: the named commands, options, packages and variables exist."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from outcore.base import extras
from outcore.cli.main import SUBCOMMANDS

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python/outcore"
DEBIAN = {"liburing-dev", "gfortran"}  # looked up by hand
NO_COMMANDS = {"metadata", "checkpoint", "import", "is", "package"}  # names in files, words of prose
OTHERS = {"bench.py", "bench_cases.py", "study"}  # they start other programs, with options of their own


def strings(path: Path) -> Iterator[str]:
    """All strings of a source except its documentation."""
    if path.suffix != ".py":
        for line in path.read_text().splitlines():
            if not line.lstrip().startswith(("//", "#include")):
                yield from re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        return
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | inner:
            yield node.value


def sources() -> list[Path]:
    found = list(PACKAGE.rglob("*.py"))
    for folder in ("src", "bindings", "include"):
        found += [each for each in (ROOT / folder).rglob("*.[ch]pp")]
    return found


@pytest.fixture(scope="module")
def texts() -> list[tuple[Path, str]]:
    return [(path, text) for path in sources() for text in strings(path)]


def options() -> set[str]:
    """Options of all commands."""
    import typer

    found = {"--help", "--version"}
    for name, entry in SUBCOMMANDS.items():
        application = typer.Typer()
        application.command(name)(getattr(importlib.import_module(entry.module), entry.function))
        for parameter in typer.main.get_command(application).params:
            found |= {*parameter.opts, *parameter.secondary_opts}
    return found


def test_commands_that_are_named_exist(texts):
    named = [
        (path.name, word)
        for path, text in texts
        for word in re.findall(r"\boutcore ([a-z][a-z0-9-]*)", text)
        if word not in NO_COMMANDS
    ]
    assert ("doctor.py", "scf") in named  # it looks where they are
    assert [each for each in named if each[1] not in SUBCOMMANDS] == []


def test_benchmarks_that_are_named_exist(texts):
    named = {word for _, text in texts for word in re.findall(r"\boutcore bench ([a-z][a-z0-9_-]*)", text)}
    assert named
    for name in named:
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()


def test_options_that_are_named_exist(texts):
    known = options()
    named = [
        (path.name, word)
        for path, text in texts
        if path.suffix == ".py" and not OTHERS & {path.name, path.parent.name}
        for word in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)
    ]
    assert ("integrals.py", "--scratch") in named
    assert [each for each in named if each[1] not in known] == []


def test_packages_that_are_named_are_those_that_are_needed(texts):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, packages in extras.EXTRAS.items():
        assert list(packages) == declared[name]
        assert not any("outcore" in package for package in packages)  # no index has it
    for path, text in texts:
        assert "outcore[" not in text, path


def test_system_packages_that_are_named_are_known(texts):
    named = {word for _, text in texts for word in re.findall(r"\bapt install ([a-z0-9.+-]+)", text)}
    assert named
    assert named <= DEBIAN


def test_variables_that_are_named_are_read(texts):
    everything = "\n".join(path.read_text() for path in sources())
    named = {word for _, text in texts for word in re.findall(r"\bOUTCORE_[A-Z_]+\b", text)}
    assert "OUTCORE_SCRATCH" in named
    for name in named:
        assert re.search(
            rf'(getenv\(|environ\.get\(|environ\[|environ\.pop\(|Environment\(|in os\.environ.*)"?{name}'
            rf'|"{name}"',
            everything,
        ), name
