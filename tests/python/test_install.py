"""The installed files for users of C++ and C: a project outside of the tree builds with them and runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from outcore import _core

PROJECT = Path(__file__).resolve().parents[1] / "install"
PREFIX = Path(_core.__file__).resolve().parent  # of lib and include
LIBRARY = PREFIX / "lib" / "liboutcore.so"
OUTCORE = [sys.executable, "-m", "outcore"]


def check(program: Path, error: str) -> None:
    assert error in subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_find_package(tmp_path):
    place = subprocess.check_output([*OUTCORE, "config", "--cmake-dir"], text=True).strip()
    subprocess.run(["cmake", "-S", PROJECT, "-B", tmp_path, f"-Doutcore_ROOT={place}"], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    check(tmp_path / "in_cxx", "[0:4, 0:4]")
    check(tmp_path / "in_c", "Bad file descriptor")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_find_package_refuses_another_version(tmp_path):
    for each in PROJECT.iterdir():
        shutil.copy(each, tmp_path)
    lists = tmp_path / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("outcore 0.1", "outcore 9.9"))
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}"]
    assert "9.9" in subprocess.run(command, check=False, capture_output=True, text=True).stderr


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
def test_pkg_config(tmp_path):
    place = subprocess.check_output([*OUTCORE, "config", "--pkgconfig-dir"], text=True).strip()
    environment = os.environ | {"PKG_CONFIG_PATH": place}
    command = ["pkg-config", "--cflags", "--libs", "outcore"]
    flags = subprocess.check_output(command, env=environment, text=True).split()
    compilers = [("c++", "cc"), *([("clang++", "clang")] if shutil.which("clang++") else [])]
    programs = (("-std=c++20", "program.cpp", "[0:4, 0:4]"), ("-std=c11", "program.c", "Bad file descriptor"))
    for compiler, (standard, name, error) in (
        (each, program) for pair in compilers for each, program in zip(pair, programs, strict=True)
    ):
        program = tmp_path / name.replace(".", "_")
        subprocess.run([compiler, standard, PROJECT / name, "-o", program, *flags], check=True)
        check(program, error)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("mpi", ["ON", "OFF"])
def test_a_build_without_mpi_has_no_library_for_it(tmp_path, mpi):
    """`OUTCORE_MPI=OFF` is for packages without MPI; the headers of an MPI are given, and not looked at."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "mpi.h").write_text("#define MPICH_NUMVERSION 40200300\n")
    options = {
        "OUTCORE_MPI": mpi,
        "OUTCORE_MPI_INCLUDES": tmp_path / "include",
        "OUTCORE_PYTHON": "OFF",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "Python_EXECUTABLE": sys.executable,
    }
    given = [f"-D{name}={value}" for name, value in options.items()]
    command = ["cmake", "-S", PROJECT.parents[1], "-B", tmp_path / "build", *given]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    commands = (tmp_path / "build" / "compile_commands.json").read_text()
    assert ("outcore_mpi_" in commands) == (mpi == "ON")
    assert ("OUTCORE_MPI is off" in said) == (mpi == "OFF")


def test_only_public_headers_are_installed():
    public = {
        str(each.relative_to(PROJECT.parents[1] / "include"))
        for each in (PROJECT.parents[1] / "include").rglob("*.h*")
    }
    installed = {str(each.relative_to(PREFIX / "include")) for each in (PREFIX / "include").rglob("*.h*")}
    assert installed == public


# ---- what the library gives out ----


def exported() -> set[str]:
    """Names of functions and data, without arguments."""
    lines = subprocess.check_output(["nm", "-DC", "--defined-only", LIBRARY], text=True).splitlines()
    return {line.split(" ", 2)[2] for line in lines}


def words(folder: str, mark: str) -> set[str]:
    """The classes and functions that are marked in headers."""
    found = set()
    for header in (PROJECT.parents[1] / folder).rglob("*.h*"):
        text = re.sub(r"^#.*", "", header.read_text(), flags=re.MULTILINE)
        for statement in re.findall(rf"{mark}\s([^;{{]*)", text):
            name = re.match(r"[\w:]+(?=\s*(final|:|$))", statement) if "(" not in statement else None
            name = name or re.search(r"(operator\W+|\w+)\s*\(", statement)
            if name:
                found.add(name[0].split("(")[0].strip())
    return found


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_only_what_is_marked_is_exported():
    allowed = words("include", "OUTCORE_API") | words("src", "OUTCORE_SIBLING")
    strangers = set()
    for name in exported():
        # outcore::room::Class::function(..), perhaps a template behind what it returns, or typeinfo for a class:
        # one of the names must be marked.
        called = name.split("(")[0].replace("[abi:cxx11]", "")
        ours = re.search(r"(?:^|for |to | )outcore::([\w:~=]+)(<.*>)?$", called)
        parts = ours[1].split("::") if ours else [name]
        if not allowed & set(parts):
            strangers.add(name)
    assert not strangers


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_what_stands_behind_a_class_is_not_exported():
    """Except the state of requests, from which the libraries for MPI derive classes."""
    behind = {
        name for name in exported() if re.search(r"outcore::\w[\w:]*::(State|Transfer)\b", name.split("(")[0])
    }
    assert not {name for name in behind if "outcore::Request::State" not in name}


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_what_siblings_need_is_all_that_is_exported_beside_the_interface():
    needed = set()
    for library in (Path(_core.__file__), *LIBRARY.parent.glob("outcore_mpi_*.so")):
        needed |= set(
            re.findall(r"\w+", subprocess.check_output(["nm", "-DC", "--undefined-only", library], text=True))
        )
    assert words("src", "OUTCORE_SIBLING") <= needed
