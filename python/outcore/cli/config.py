"""`outcore config`: where the C and C++ library is, for compilers."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from outcore import _core

# The headers and the library are installed beside the native module.
_ROOT = Path(_core.__file__).resolve().parent
INCLUDE, LIBRARY = _ROOT / "include", _ROOT / "lib"


def cflags() -> str:
    return f"-I{INCLUDE}"


def libs() -> str:
    return f"-L{LIBRARY} -Wl,-rpath,{LIBRARY} -loutcore"


def command(
    cflags_: Annotated[bool, typer.Option("--cflags", help="Flags for the compiler.")] = False,
    libs_: Annotated[bool, typer.Option("--libs", help="Flags for the linker.")] = False,
    version_: Annotated[bool, typer.Option("--version", help="Version of Outcore.")] = False,
) -> None:
    """Print flags to compile and link with Outcore: cc prog.c $(outcore config --cflags --libs)."""
    wanted = [text() for chosen, text in ((cflags_, cflags), (libs_, libs)) if chosen]
    if version_:
        wanted.append(version("outcore"))
    if not wanted:
        raise typer.BadParameter("say what to print: --cflags, --libs or --version")
    print(*wanted)
