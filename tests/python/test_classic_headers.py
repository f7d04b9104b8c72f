"""The classic names are those of Global Arrays: no prototype, constant or declaration of its public headers
is missing in ours, or differs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from outcore import _core

THEIRS = Path("/usr/include")
OURS = Path(__file__).parents[2] / "include" / "outcore" / "compat"
LIBRARIES = Path(_core.__file__).parent / "lib"
HEADERS = ("eaf.h", "sf.h", "dra.h", "elio.h")
# Of its own use, in the libraries of the original.
INSIDE = {"drai_create_", "drai_inquire_", "drai_open_", "elio_set_cb"}

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.skipif(not (THEIRS / "dra.fh").exists(), reason="NOT TESTED without libglobalarrays-dev"),
]


def source(folder: Path, header: str, place: Path) -> Path:
    """A source that includes a header; headers of Outcore include each other by paths from the parent
    directory."""
    made = place / "one.c"
    made.write_text(f'#include "{folder / header}"\n')
    return made


def prototypes(folder: Path, header: str, place: Path) -> dict[str, str]:
    """Prototypes in the compiler's form; the original's type `logical` is that of its library."""
    listed = place / "prototypes"
    command = ["gcc", f"-I{OURS.parents[1]}", "-aux-info", listed, "-fsyntax-only"]
    subprocess.run([*command, source(folder, header, place)], check=True)
    found = {}
    for file, text in re.findall(r"/\* (\S+):\d+:\S+ \*/ extern (.*);", listed.read_text()):
        if Path(file) == folder / header:
            name = re.search(r"(\w+) \(", text)
            assert name
            same = re.sub(r"\(void\)|\(/\* \?\?\? \*/\)", "()", text)
            found[name[1]] = re.sub(r"\blogical\b", "long int", same)
    return found


def constants(folder: Path, header: str, place: Path) -> dict[str, str]:
    """Macros that are numbers, perhaps by the name of another one."""
    command = ["gcc", f"-I{OURS.parents[1]}", "-dM", "-E", source(folder, header, place)]
    text = subprocess.check_output(command, text=True)
    defined = dict(re.findall(r"^#define ((?:EAF|SF|DRA|ELIO|CHEMIO)_\w+)[ \t]+(\S+)", text, re.MULTILINE))

    def resolved(value: str) -> str:
        return resolved(defined[value]) if value in defined else value

    return {
        name: resolved(value) for name, value in defined.items() if re.fullmatch(r"-?\d+", resolved(value))
    }


def declarations(header: Path) -> set[tuple[str, str]]:
    """Type and name, and `external` and name, in a header file of Fortran."""
    found = set()
    pattern = r"^\s+(integer|logical|double precision|external)\s+([\w, ]+)"
    for kind, names in re.findall(pattern, header.read_text().lower(), re.MULTILINE):
        found |= {(kind, name.strip()) for name in names.split(",")}
    return found


@pytest.mark.parametrize("header", HEADERS)
def test_prototypes(header, tmp_path):
    theirs = prototypes(THEIRS, header, tmp_path)
    ours = prototypes(OURS, header, tmp_path)
    assert len(theirs) > 10
    assert {name: ours.get(name) for name in theirs} == theirs


@pytest.mark.parametrize("header", HEADERS)
def test_constants(header, tmp_path):
    theirs = constants(THEIRS, header, tmp_path)
    ours = constants(OURS, header, tmp_path)
    assert theirs or header == "sf.h"
    assert {name: ours.get(name) for name in theirs} == theirs


@pytest.mark.parametrize("header", ["eaf.fh", "sf.fh", "dra.fh"])
def test_declarations_of_fortran(header):
    theirs = declarations(THEIRS / header)
    assert len(theirs) > 15
    assert theirs - declarations(OURS / header) == set()


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")
@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("eaf.fh", ("eaf_rw", "eaf_w", "eaf_r", "EAF_RW", "EAF_W", "EAF_R")),
        ("dra.fh", ("dra_req_invalid", "DRA_RW", "DRA_W", "DRA_R")),
        ("sf.fh", ("kind(sf_create(0))",)),
    ],
)
def test_values_of_fortran(header, names, tmp_path):
    """Values as a compiler finds them; the functions are declared, as `implicit none` requires."""
    printed = [value for name in names for value in ("'" + name + "'", name)]
    source = tmp_path / "values.F"
    source.write_text(
        "      program values\n      implicit none\n"
        f'#include "{header}"\n' + "".join(f"      print *, {value}\n" for value in printed) + "      end\n"
    )
    found = []
    for folder in (THEIRS, OURS):
        flags = ["-cpp", "-fdefault-integer-8", f"-I{folder}"]
        subprocess.run(["gfortran", *flags, source, "-o", tmp_path / "values"], check=True)
        found.append(subprocess.check_output([tmp_path / "values"], text=True))
    assert found[0] == found[1]
    assert len(found[0].split()) == 2 * len(names)


@pytest.mark.parametrize("library", ["liboutcore_pario.so", "liboutcore_pario_integer4.so"])
def test_names_of_the_library_are_exported(library):
    """The names that programs may call, of the interfaces of C and Fortran."""
    archives = sorted(Path("/usr/lib").glob("*/libga-openmpi.a"))
    if not archives:
        pytest.skip("NOT TESTED without libga-openmpi.a")
    listed = subprocess.run(
        ["nm", "--defined-only", archives[0]], capture_output=True, text=True, check=False
    )
    names = re.findall(
        r" T ((?:n?dra|eaf|sf)_\w+_|N?DRA_\w+|EAF_\w+|SF_\w+|elio_\w+)$", listed.stdout, re.MULTILINE
    )
    exported = subprocess.check_output(["nm", "-D", "--defined-only", LIBRARIES / library], text=True)
    assert len(names) > 90
    assert set(names) - INSIDE - set(re.findall(r" T (\w+)$", exported, re.MULTILINE)) == set()
