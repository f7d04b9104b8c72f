"""Writes the parts of the documents that are generated: python scripts/documents [--check].

A part stands between `<!-- generated: KIND ARGUMENT -->` and `<!-- end -->` in a Markdown file. Its text comes from
benchmarks/results, the studies, the command line, the headers, and the comments that cite measured facts.
`--check` writes nothing, and fails if a part is out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import facts
import front
import plots
import reference
import results

ROOT = Path(__file__).resolve().parents[2]
PART = re.compile(r"<!-- generated: ([a-z-]+)(?: ([^>\n]+?))? -->\n(.*?)<!-- end -->", re.DOTALL)

KINDS: dict[str, Callable[[Path, str], str]] = {
    "result": results.result,
    "iterations": results.iterations,
    "curves": lambda root, name: plots.images(root, name) or results.missing(name.partition(" ")[0]),
    "headlines": front.headlines,
    "decide": front.decide,
    "random-programs": results.random_programs,
    "chemio": results.chemio,
    "passion": results.passion,
    "commands": reference.commands,
    "c": reference.c_interface,
    "cpp": reference.cpp_interface,
    "cited-by": facts.cited_by,
    "facts": facts.overview,
}


def generated(text: str) -> str:
    """A document with all its parts as they are to be."""

    def part(match: re.Match[str]) -> str:
        kind, argument = match[1], match[2] or ""
        body = KINDS[kind](ROOT, argument).strip()
        return f"<!-- generated: {kind}{' ' * bool(argument)}{argument} -->\n{body}\n<!-- end -->"

    return PART.sub(part, text)


def main() -> int:
    check = "--check" in sys.argv[1:]
    try:
        wanted = {path: generated(path.read_text()) for path in documents()}
    except front.Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    wanted |= plots.all_plots(ROOT)
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


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


if __name__ == "__main__":
    sys.exit(main())
