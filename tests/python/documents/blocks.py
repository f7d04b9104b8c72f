"""The code blocks of the documents, and the treatment of each language.

    python            a whole program, which runs
    console           lines after `$ ` run; the lines below must occur in their output, in this order; `..` is any
                      text
    c, cpp, fortran   whole programs are compiled, linked and run: of MPI on two processes, of C++ by GCC, and in
                      long tests by Clang; declarations are compiled
    sh, slurm         not run, as they install things or need a cluster; their syntax is checked
    toml              an input file
    cmake, mermaid, text   not checked here

Blocks of a document run in its order, in a directory of its own that has `examples` of the checkout. A block of one
line, `--8<-- "examples/x.py"`, shows that file: a command of the document must name it, and so runs it.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
LANGUAGES = ("python", "console", "c", "cpp", "fortran", "sh", "slurm", "toml", "cmake", "mermaid", "text")

_SHOWN = re.compile(r'\s*--8<-- "([^"\n]+)"\s*')
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def documents() -> list[Path]:
    """All documents except the reports that `outcore study` writes."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(path for path in found if path.parent.parent.name != "studies")


def blocks(document: Path) -> list[Block]:
    text = document.read_text()
    return [
        Block(match[2], match[3], text.count("\n", 0, match.start()) + 1) for match in _FENCE.finditer(text)
    ]


def shown(block: Block) -> str | None:
    """The file that a block includes, if it does nothing else."""
    found = _SHOWN.fullmatch(block.text)
    return found[1] if found else None


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that its output must have."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


_ENERGY = re.compile(r"-?\d+\.\d{10}")  # Hartree
_ROUNDING = 1.5e-10  # one unit in the last digit, which depends on the BLAS


def says(output: str, wanted: list[str]) -> bool:
    """Whether an output has these lines in this order; others may stand between. `..` is any text."""
    lines = iter(" ".join(line.split()) for line in output.splitlines())
    return all(text.strip() == ".." or any(_is(line, text) for line in lines) for text in wanted)


def _is(line: str, text: str) -> bool:
    parts = re.split(r"\.{2,}", " ".join(text.split()))
    exact = (f"({_ENERGY.pattern})".join(map(re.escape, _ENERGY.split(part))) for part in parts)
    found = re.fullmatch(".*".join(exact), line)
    return found is not None and all(
        abs(float(mine) - float(other)) < _ROUNDING
        for mine, other in zip(found.groups(), _ENERGY.findall(text), strict=True)
    )


def script(name: str) -> ModuleType:
    """A module of scripts/documents, which finds its neighbours."""
    place = str(ROOT / "scripts" / "documents")
    if place not in sys.path:
        sys.path.insert(0, place)
    return importlib.import_module(name)
