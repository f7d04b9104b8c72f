"""The binary interface of C programs is frozen: functions, constants, layouts of structures and exported names are
those of tests/capi/interface.txt. `python tests/python/test_c_interface.py` adds there what is added on purpose."""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from outcore import _core

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "capi" / "interface.txt"
PACKAGE = Path(_core.__file__).parent
HEADERS = sorted((ROOT / "include" / "outcore" / "c").glob("*.h"))
CLASSIC = [ROOT / "include" / "outcore" / "compat" / f"{name}.h" for name in ("dra", "eaf", "elio", "sf")]
LIBRARIES = ("liboutcore.so", "liboutcore_pario.so", "liboutcore_pario_integer4.so")


def code(header: Path) -> str:
    """A header without comments."""
    return re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)


def functions(header: Path) -> list[str]:
    """Types of functions, without the names of arguments."""
    text = re.sub(r"^\s*#.*$", "", code(header), flags=re.MULTILINE)
    found = []
    for result, name, arguments in re.findall(
        r"(?:^|\s)((?:const )?\w+[ *]+)(\w+)\(([^()]*)\);", text.replace("OUTCORE_API", "")
    ):
        types = [" ".join(each.split()) for each in arguments.split(",")]
        if types != ["void"]:
            types = [re.sub(r"\s*\b\w+(\[\])?$", r"\1", each) for each in types]
        found.append(f"{result.strip()} {name}({', '.join(types)})")
    return found


def structures(header: Path) -> dict[str, list[str]]:
    """Names of the fields of structures."""
    found = {}
    for body, name in re.findall(r"typedef struct[ \w]*\{([^}]*)\} (\w+);", code(header)):
        found[name] = [re.search(r"(\w+)\s*$", field)[1] for field in body.split(";") if field.strip()]  # type: ignore[index]
    return found


def constants(header: Path) -> list[str]:
    return re.findall(r"^#define ((?:OC|DRA|EAF|ELIO)_\w+) \S", code(header), flags=re.MULTILINE)


def measured(headers: list[Path], scratch: Path) -> list[str]:
    """Values of constants, sizes of structures, and of each field its offset and size."""
    lines = [f'#include "{header.relative_to(ROOT / "include")}"' for header in headers]
    lines += ["#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
    for header in headers:
        for name in constants(header):
            lines.append(f'  printf("constant {name} %lld\\n", (long long)({name}));')
        for name, fields in structures(header).items():
            lines.append(f'  printf("structure {name} %zu", sizeof({name}));')
            for field in fields:
                at = f"offsetof({name}, {field}), sizeof((({name}*)0)->{field})"
                lines.append(f'  printf(" {field}@%zu:%zu", {at});')
            lines.append('  printf("\\n");')
    source, program = scratch / "layout.c", scratch / "layout"
    source.write_text("\n".join([*lines, "  return 0;", "}", ""]))
    subprocess.run(["cc", f"-I{ROOT / 'include'}", source, "-o", program], check=True)
    return subprocess.check_output([program], text=True).splitlines()


def exported(library: str) -> list[str]:
    lines = subprocess.check_output(
        ["nm", "-D", "--defined-only", PACKAGE / "lib" / library], text=True
    ).splitlines()
    names = sorted(line.split()[2].partition("@")[0] for line in lines)
    return [name for name in names if not name.startswith("_Z") and not name.startswith("OUTCORE")]


def interface() -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        found = [*measured(HEADERS, Path(scratch)), *measured(CLASSIC, Path(scratch))]
    for header in [*HEADERS, *CLASSIC]:
        found += [f"function {each}" for each in functions(header)]
    for library in LIBRARIES:
        found += [f"{library} {name}" for name in exported(library)]
    return found


needs_tools = pytest.mark.skipif(
    shutil.which("nm") is None or shutil.which("cc") is None, reason="nm or a C compiler is not installed"
)


@needs_tools
def test_the_interface_is_the_frozen_one():
    difference = difflib.unified_diff(
        LIST.read_text().splitlines(), interface(), "frozen", "now", lineterm=""
    )
    assert not list(difference)


@needs_tools
def test_each_function_of_a_header_is_exported_and_the_other_way_round():
    declared = {re.search(r"(\w+)\(", each)[1] for header in HEADERS for each in functions(header)}  # type: ignore[index]
    assert declared == {name for name in exported("liboutcore.so") if name.startswith("oc_")}
    classic = {re.search(r"(\w+)\(", each)[1] for header in CLASSIC for each in functions(header)}  # type: ignore[index]
    assert classic <= set(exported("liboutcore_pario.so"))
    assert exported("liboutcore_pario.so") == exported("liboutcore_pario_integer4.so")


def test_each_function_says_what_it_returns():
    """The comment lists the errors, or refers to a function with the same errors, unless the function returns
    no code."""
    without_code = {"oc_element_bytes", "oc_strerror", "oc_last_error", "oc_version"}
    says = re.compile(r"@return|\bE[A-Z]{3,}\b|[Aa]s (for )?oc_\w+\(\)|what oc_\w+\(\) does")
    declared = re.compile(r"(/\*\*(?:(?!\*/).)*\*/)?\s*OUTCORE_API [^;]*?\b(oc_\w+)\(", re.DOTALL)
    found = [match for header in HEADERS for match in declared.findall(header.read_text())]
    assert len(found) > 100
    assert {name for comment, name in found if not says.search(comment)} == without_code


if __name__ == "__main__":
    LIST.write_text("\n".join(interface()) + "\n")
    sys.exit(0)
