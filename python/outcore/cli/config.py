"""`outcore config`: where the C, C++ and Fortran library is, for compilers."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from outcore import _core

# The headers and the library are installed beside the native module.
_ROOT = Path(_core.__file__).resolve().parent
INCLUDE, LIBRARY = _ROOT / "include", _ROOT / "lib"
FORTRAN = INCLUDE / "outcore" / "outcore.f90"
CMAKE, PKGCONFIG = LIBRARY / "cmake", LIBRARY / "pkgconfig"  # for CMAKE_PREFIX_PATH and PKG_CONFIG_PATH


def cflags() -> str:
    return f"-I{INCLUDE}"


def cxxflags() -> str:
    return f"-std=c++20 {cflags()}"


def libs() -> str:
    return f"-L{LIBRARY} -Wl,-rpath,{LIBRARY} -loutcore"


def pario_flags(integer4: bool) -> str:
    """Flags that a program of Global Arrays needs, before -lga."""
    name = "outcore_pario_integer4" if integer4 else "outcore_pario"
    return (
        f"-I{INCLUDE / 'outcore' / 'compat'} {cflags()} {libs().replace('-loutcore', f'-l{name} -loutcore')}"
    )


def fortran_modules(compiler: str, integer8: bool) -> Path:
    """The directory with the modules for a compiler and a size of INTEGER; the first call compiles them.

    Raises RuntimeError with the compiler's message.
    """
    about = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    mark = hashlib.sha256(f"{about}{integer8}{FORTRAN.read_text()}".encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "outcore" / f"fortran-{mark}"
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent) as made:
            place = Path(made) / "modules"
            place.mkdir()
            for command in (
                [compiler, "-O1", "-fPIC", *_integer8(integer8), "-c", str(FORTRAN), "-o", "outcore.o"],
                ["ar", "rc", "liboutcore_fortran.a", "outcore.o"],
            ):
                answer = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
                if answer.returncode != 0:
                    raise RuntimeError(f"{' '.join(command)}: {answer.stderr.strip()}")
            try:
                place.rename(cache)
            except OSError:  # another process was first
                if not cache.exists():
                    raise
    return cache


def _integer8(integer8: bool) -> list[str]:
    return ["-fdefault-integer-8"] if integer8 else []


def command(
    cflags_: Annotated[bool, typer.Option("--cflags", help="Flags for the compiler.")] = False,
    cxxflags_: Annotated[bool, typer.Option("--cxxflags", help="Flags for the C++ compiler.")] = False,
    libs_: Annotated[bool, typer.Option("--libs", help="Flags for the linker.")] = False,
    fflags_: Annotated[bool, typer.Option("--fflags", help="Flags for the Fortran compiler.")] = False,
    flibs_: Annotated[bool, typer.Option("--flibs", help="Flags to link a Fortran program.")] = False,
    compiler: Annotated[
        str, typer.Option("--fc", metavar="COMMAND", help="The Fortran compiler; else $FC, else gfortran.")
    ] = "",
    integer8: Annotated[
        bool, typer.Option("--integer8", help="For programs compiled with -fdefault-integer-8.")
    ] = False,
    pario: Annotated[
        bool,
        typer.Option("--pario", help="Flags for the classic names of EAF, SF, DRA and ELIO: before -lga."),
    ] = False,
    pario4: Annotated[
        bool, typer.Option("--pario4", help="The same for Global Arrays with INTEGER of 4 bytes.")
    ] = False,
    cmake_dir: Annotated[
        bool,
        typer.Option("--cmake-dir", help="For CMake: cmake -Doutcore_ROOT=$(outcore config --cmake-dir)."),
    ] = False,
    pkgconfig_dir: Annotated[
        bool,
        typer.Option(
            "--pkgconfig-dir", help="For pkg-config: PKG_CONFIG_PATH=$(outcore config --pkgconfig-dir)."
        ),
    ] = False,
    version_: Annotated[bool, typer.Option("--version", help="Version of Outcore.")] = False,
) -> None:
    """Print flags to compile and link with Outcore: cc prog.c $(outcore config --cflags --libs),
    c++ prog.cpp $(outcore config --cxxflags --libs), or gfortran prog.f90 $(outcore config --fflags --flibs)."""
    flags = ((cflags_, cflags), (cxxflags_, cxxflags), (libs_, libs))
    wanted = [text() for chosen, text in flags if chosen]
    if fflags_ or flibs_:
        try:
            modules = fortran_modules(compiler or os.environ.get("FC") or "gfortran", integer8)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            typer.echo(f"outcore config: the Fortran modules cannot be compiled: {error}", err=True)
            raise typer.Exit(1) from error
        if fflags_:
            wanted.append(" ".join([f"-I{modules}", *_integer8(integer8)]))
        if flibs_:
            wanted.append(f"-L{modules} -loutcore_fortran {libs()}")
    wanted += [pario_flags(integer4) for chosen, integer4 in ((pario, False), (pario4, True)) if chosen]
    wanted += [str(path) for chosen, path in ((cmake_dir, CMAKE), (pkgconfig_dir, PKGCONFIG)) if chosen]
    if version_:
        wanted.append(version("outcore"))
    if not wanted:
        raise typer.BadParameter(
            "say what to print: --cflags, --cxxflags, --libs, --fflags, --flibs, --pario, a directory, or --version"
        )
    print(*wanted)
