"""Writes the parts of the documents that are generated: python scripts/documents [--check].

A part stands between `<!-- generated: KIND ARGUMENT -->` and `<!-- end -->` in a Markdown file. Its text comes from
benchmarks/results, the studies, the command line, the headers, the comments that cite measured facts, and from what
scripts/covered.py and scripts/tested.py have kept.
`--check` writes nothing, and fails if a part is out of date.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

import covered
import facts
import front
import memory
import plots
import reference
import results
import tested
import triangles

ROOT = Path(__file__).resolve().parents[2]
PART = re.compile(r"<!-- generated: ([a-z-]+)(?: ([^>\n]+?))? -->\n(.*?)<!-- end -->", re.DOTALL)

KINDS: dict[str, Callable[[Path, str], str]] = {
    "result": results.result,
    "iterations": results.iterations,
    "scale": results.scale,
    "curves": lambda root, name: plots.images(root, name) or results.missing(name.partition(" ")[0]),
    "headlines": front.headlines,
    "machines": front.machines,
    "decide": front.decide,
    "covered": covered.table,
    "tested": tested.table,
    "memory": memory.memory_table,
    "random-programs": results.random_programs,
    "triangles": triangles.table,
    "chemio": results.chemio,
    "passion": results.passion,
    "commands": reference.commands,
    "c": reference.c_interface,
    "cpp": reference.cpp_interface,
    "cited-by": facts.cited_by,
    "facts": facts.overview,
}


def generated(text: str) -> str:
    """A document with all its generated parts up to date."""

    def part(match: re.Match[str]) -> str:
        kind, argument = match[1], match[2] or ""
        body = KINDS[kind](ROOT, argument).strip()
        return f"<!-- generated: {kind}{' ' * bool(argument)}{argument} -->\n{body}\n<!-- end -->"

    return PART.sub(part, text)


def main() -> int:
    check = "--check" in sys.argv[1:]
    warn_of_length()
    try:
        wanted = {path: generated(path.read_text()) for path in documents()}
    except front.Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    wanted |= plots.all_plots(ROOT)
    if undrawn := diagrams():
        print(
            f"{', '.join(undrawn)}: not drawn from the text beside it; run scripts/diagrams.sh",
            file=sys.stderr,
        )
        return 1
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    unknown = [path for path in plots.directory(ROOT).glob("*.svg") if path not in wanted]
    for path in stale + unknown:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is out of date: run python scripts/documents", file=sys.stderr)
            continue
        print(name)
        if path in unknown:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
    return int(check and bool(stale or unknown))


def warn_of_length() -> None:
    """Warns if a page that a reader reads in one go becomes too long; a reviewer decides."""
    for name, most in (("README.md", 400), ("ARCHITECTURE.md", 1200)):
        text = PART.sub("", (ROOT / name).read_text())
        if (words := len(re.findall(r"\S*\w\S*", text))) > most:
            print(f"{name} has {words} words beside what is generated, more than {most}", file=sys.stderr)


def diagrams() -> list[str]:
    """Diagrams that were drawn from another text than the present one."""

    def drawn(text: Path) -> bool:
        mark = f"<!-- of {hashlib.sha256(text.read_bytes()).hexdigest()[:16]} -->\n"
        picture = text.with_suffix(".svg")
        return picture.is_file() and picture.read_text().endswith(mark)

    texts = sorted((ROOT / "docs" / "diagrams").glob("*.mmd"))
    return [str(text.relative_to(ROOT)) for text in texts if not drawn(text)]


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), ROOT / "paper" / "paper.md", *sorted((ROOT / "docs").rglob("*.md"))]


if __name__ == "__main__":
    sys.exit(main())
