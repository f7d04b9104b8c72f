"""Measured facts, [M1], [M2], .. in docs/develop/measured.md, and the code that cites them."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = ("include", "src", "bindings", "python", "benchmarks", "cmake")
SUFFIXES = (".hpp", ".cpp", ".h", ".py", ".cmake")


def citations(root: Path) -> dict[int, list[str]]:
    """The files that cite each fact."""
    found: dict[int, list[str]] = {}
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                for cited in sorted({int(each) for each in re.findall(r"\[M(\d+)\]", path.read_text())}):
                    found.setdefault(cited, []).append(str(path.relative_to(root)))
    return found


def titles(root: Path) -> dict[int, str]:
    text = (root / "docs" / "develop" / "measured.md").read_text()
    return {int(n): title for n, title in re.findall(r"^## \[M(\d+)\] (.+)$", text, re.MULTILINE)}


def cited_by(root: Path, fact: str) -> str:
    files = citations(root).get(int(fact.removeprefix("M")), [])
    return "**Code.** " + (", ".join(f"`{name}`" for name in files) or "nothing cites it") + "."


def overview(root: Path, _: str) -> str:
    return "\n".join(f"- [M{number}] {title}" for number, title in titles(root).items())
