"""Arrows point down only: floors.py [ROOT] reads includes and imports of all rooms, and fails on one that goes up.

A room may use itself and everything on floors below, but not the other rooms of its floor. Imports inside of
functions and those for types alone count as well. What is named by a string, as the subcommands are, is no arrow:
that is how a lower floor reaches what it does not know.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# From the ground up; what stands on one line does not know one another. A room is a folder below src.
CXX_FLOORS = (
    "base",
    "device",
    "transport",
    "gpc",
    "world",
    "store",
    "dio",
    "array file tensor",
    "keep",
    "chem/common",
    "chem/cc chem/ci chem/hf chem/ri",
    "capi",
    "compat",
)

# The room that a public header belongs to.
PUBLIC = {
    "base": "api box budget element_type error file_ranges origin placement request trace",
    "device": "page_cache scratch extend/engine",
    "transport": "extend/messages extend/transport",
    "gpc": "call",
    "world": "world",
    "store": "extend/codec",
    "array": "disk_array disk_array_access distribution global_array node_array sparse_array tiling",
    "file": "exclusive_file record_file shared_file",
    "keep": "checkpoint",
    "capi": "outcore c/call c/checkpoint c/dra c/eaf c/element_type c/error c/file_hints c/ga c/request c/rf c/sf"
    " c/sparse c/version c/world",
    "compat": "compat/chemio compat/dra compat/eaf compat/elio compat/sf",
}

# A room is a module below outcore, and all that is in it unless another line names that.
PYTHON_FLOORS = (
    "_core",
    "base",
    "trace",
    "parallel",
    "job",
    "arrays files",
    "linalg",
    "keep",
    "job.rate_cache",
    "job.machine",  # measures arrays, and keeps what it has measured
    "tensor",
    "chem",
    "chem.ri",
    "chem.ci.hamiltonian",  # what both kinds of CI need
    "chem.ci.determinants",
    "chem.ci.orbitals chem.ci.fcidump",
    "chem.ci chem.mrci chem.hf chem.mp2 chem.cc",
    "chem.least_memory",
    "cli",
    "chem.options",  # what stands from here on is put into the frame of all commands
    "chem.hf.view chem.ri.options chem.ci.options chem.mrci.options chem.cc.options",
    "chem.search",
    "chem.run",
    "chem.hf.command chem.ri.command chem.ci.command chem.mrci.command chem.cc.command",
    "study",
    ". __main__",
)


class Arrow(NamedTuple):
    where: str  # file and line
    room: str
    used: str


def numbered(floors: tuple[str, ...]) -> dict[str, int]:
    return {room: number for number, line in enumerate(floors) for room in line.split()}


def goes_up(arrow: Arrow, floors: dict[str, int]) -> bool:
    return arrow.room != arrow.used and floors[arrow.used] >= floors[arrow.room]


# ---- C++ ----


def cxx_room(path: str) -> str:
    """The room of a file, named as one includes it. Raises KeyError if there is none."""
    if path.startswith("outcore/"):
        name = path.removeprefix("outcore/").rsplit(".", 1)[0]
        for room, headers in PUBLIC.items():
            if name in headers.split():
                return room
        raise KeyError(path)
    for room in numbered(CXX_FLOORS):
        if path.startswith(room + "/"):
            return room
    raise KeyError(path)


def cxx_arrows(root: Path) -> Iterator[Arrow]:
    for folder in ("include", "src"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".hpp", ".cpp", ".h"):
                continue
            name = str(file.relative_to(root / folder))
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if found:
                    yield Arrow(f"{folder}/{name}:{number}", cxx_room(name), cxx_room(found[1]))
                    if folder == "include" and not found[1].startswith("outcore/"):
                        raise KeyError(f"{found[1]}, which is not public, in {folder}/{name}")


# ---- Python ----


def python_room(module: str) -> str:
    """The room of a module, dotted, without `outcore`. Raises KeyError if there is none."""
    if module in ("", "__init__", "__version__"):
        return "."
    floors = numbered(PYTHON_FLOORS)
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in floors:
            return ".".join(parts[:length])
    raise KeyError(f"outcore.{module}")


def imported(node: ast.AST, package: str) -> Iterator[str]:
    """The names below outcore that a statement imports, dotted."""
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
        yield from (f"{base}.{each.name}" for each in node.names)


def python_arrows(root: Path) -> Iterator[Arrow]:
    top = root / "python"
    modules = {".".join(file.relative_to(top).with_suffix("").parts): file for file in top.rglob("*.py")}
    public = public_names(top / "outcore" / "__init__.py")
    for module, file in sorted(modules.items()):
        for node in ast.walk(ast.parse(file.read_text())):
            for name in imported(node, module.rpartition(".")[0]):
                if name.partition(".")[0] != "outcore":
                    continue
                room = python_room(module.partition(".")[2])
                used = python_room(public.get(name, name).partition(".")[2])
                yield Arrow(f"{file.relative_to(root)}:{getattr(node, 'lineno', 0)}", room, used)


def public_names(init: Path) -> dict[str, str]:
    """What `outcore` gives out by itself, and the module that it is in."""
    found = {}
    for node in ast.parse(init.read_text()).body if init.exists() else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            for key, value in ast.literal_eval(node.value).items():
                found[f"outcore.{key}"] = value
    return found


def main(root: Path) -> int:
    wrong = 0
    for arrows, floors in ((cxx_arrows(root), CXX_FLOORS), (python_arrows(root), PYTHON_FLOORS)):
        try:
            for arrow in arrows:
                if goes_up(arrow, numbered(floors)):
                    print(f"{arrow.where}: {arrow.room} uses {arrow.used}, which is not below it")
                    wrong += 1
        except KeyError as error:
            print(f"no room is known of {error.args[0]} (scripts/floors.py has the list)")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)))
