"""Writes the Fortran modules: generate.py HEADERS OUTPUT.

The interfaces of the C functions come from the headers in the folder HEADERS. The modules are the *.f90.in beside
this file, in the order of MODULES; lines between `!@each` and `!@end` are repeated for every kind of element, or
for those that `!@each` names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_BOTH = ("ga", "dra", "sparse", "checkpoint", "einsum", "eaf", "sf", "rf")
MODULES = ("base", "request", "world", "transfers", *_BOTH, "outcore")
HEADERS = ("version", "error", "request", "world", *_BOTH)

# Suffix of names, declaration, the C constant, bytes of an element.
KINDS = (
    ("r32", "real(real32)", "oc_float32", "4"),
    ("r64", "real(real64)", "oc_float64", "8"),
    ("c32", "complex(real32)", "oc_complex64", "8"),
    ("c64", "complex(real64)", "oc_complex128", "16"),
    ("i32", "integer(int32)", "oc_int32", "4"),
    ("i64", "integer(int64)", "oc_int64", "8"),
)

_VALUES = {"int": "integer(c_int)", "int64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)"}


def interfaces(headers: Path) -> Iterator[str]:
    """One for each function of C, whose pointers are all addresses here."""
    for stem in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (headers / f"{stem}.h").read_text(), flags=re.DOTALL)
        for result, name, given in re.findall(r"OUTCORE_API ([\w *]+?)\b(oc_\w+)\(([^)]*)\);", text):
            yield from _interface(result.strip(), name, [each.strip() for each in given.split(",")])


def _interface(result: str, name: str, given: list[str]) -> Iterator[str]:
    names, kinds = [], []
    for each in given:
        if each == "void":
            continue
        kind, _, argument = each.rpartition("*") if "*" in each else each.rpartition(" ")
        names.append(argument.strip())
        kinds.append("type(c_ptr)" if "*" in each else _VALUES[kind.strip()])
    yield f"    function {name}( &"
    yield f"      {', '.join(names)}) bind(c) result(its_result)"
    yield "      import :: c_int, c_int64_t, c_size_t, c_ptr"
    for kind, argument in zip(kinds, names, strict=True):
        yield f"      {kind}, value :: {argument}"
    yield f"      {'type(c_ptr)' if '*' in result else _VALUES[result]} :: its_result"
    yield "    end function"


def expanded(lines: list[str]) -> Iterator[str]:
    kept: list[str] | None = None
    wanted: list[str] = []
    for line in lines:
        if line.strip().startswith("!@each"):
            kept = []
            wanted = line.split()[1:]
        elif line.strip() == "!@end":
            assert kept is not None
            for suffix, declaration, constant, size in KINDS:
                if wanted and suffix not in wanted:
                    continue
                for each in kept:
                    replaced = each.replace("@n@", suffix).replace("@t@", declaration)
                    yield replaced.replace("@c@", constant).replace("@b@", size)
            kept = None
        elif kept is not None:
            kept.append(line)
        else:
            yield line


def names(before: str, after: str = "") -> str:
    return ", ".join(f"{before}{suffix}{after}" for suffix, *_ in KINDS)


def main(headers: Path, output: Path) -> None:
    lines = []
    for name in MODULES:
        text = (Path(__file__).parent / f"{name}.f90.in").read_text()
        # @all(x_)@: the specific procedures x_r32, x_r64, ..
        text = re.sub(r"@all\((\w+)\)@", lambda found: names(found[1]), text)
        text = text.replace("    !@interfaces\n", "\n".join(interfaces(headers)) + "\n")
        lines += [*expanded(text.splitlines()), ""]
    for line in lines:
        assert len(line) <= 132, line
    output.write_text("\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
