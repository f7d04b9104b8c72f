"""Arrows point down only: floors.py [ROOT] reads includes and imports of all rooms, and fails on one that goes up.

A room may use itself and everything on floors below, but not the other rooms of its floor. Imports inside functions
and imports for types only count as well, and so does a module that a string names, such as those of subcommands. A
lower room may use a higher one only by such a string: BY_NAME has these arrows, and no others are allowed.

Files of a room that use each other, directly or through others, are a circle, which is refused. Imports for types
only do not count there. CIRCLES lists the existing circles; one that does not exist any more must be removed there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

# From the ground up; rooms on one line do not use each other. A room is a folder below src.
CXX_FLOORS = (
    "base",
    "device",
    "transport",
    "gpc",
    "world",
    "store",
    "dio",
    "array file",
    "tensor",
    "keep",
    "chem/common",
    "chem/cc chem/ci chem/hf chem/mrci chem/ri",
    "capi",
    "compat",
)

# The room that a public header belongs to.
PUBLIC = {
    "base": "api box budget element_type error file_ranges memory origin placement request trace",
    "device": "page_cache scratch extend/engine",
    "transport": "extend/messages extend/transport",
    "gpc": "call",
    "world": "world",
    "store": "extend/codec",
    "array": "disk_array disk_array_access distribution global_array node_array sparse_array tiling",
    "file": "exclusive_file record_file shared_file",
    "tensor": "einsum",
    "keep": "checkpoint",
    "capi": "outcore c/call c/checkpoint c/dra c/eaf c/einsum c/element_type c/error c/file_hints c/ga c/request"
    " c/rf c/sf c/sparse c/version c/world",
    "compat": "compat/chemio compat/dra compat/eaf compat/elio compat/sf",
}

# A room is a module below outcore with all modules in it, except those that another line names.
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
    "job.machine",  # measures arrays, and keeps the rates
    "tensor.layout",
    "tensor.arrays tensor.plan",
    "tensor.run",
    "tensor.program",
    "tensor",
    "extend",
    "conformance",
    "chem.formats",
    "chem",
    "chem.ri",
    "chem.gradients",
    "chem.ci.hamiltonian chem.ci.space",  # both kinds of CI need these and the next ones
    "chem.ci.determinants chem.ci.target",
    "chem.ci.orbitals chem.ci.fcidump",
    "chem.ci.before",
    "chem.ci chem.mrci chem.hf chem.mp2 chem.cc",
    "chem.nevpt2 chem.casscf",
    "chem.least_memory",
    "cli",
    "chem.options",  # modules from here on are put into the frame of all commands
    "chem.gradients.options",
    "chem.hf.view chem.ri.options chem.ci.options chem.mrci.options chem.cc.options",
    "chem.cc.excited.options chem.casscf.options",
    "chem.search",
    "chem.run",
    "chem.optimize",
    "chem.gradients.command chem.cc.excited.shown",
    "chem.hf.command chem.ri.command chem.ci.command chem.mrci.command chem.cc.command chem.optimize.command",
    "chem.cc.excited.command chem.casscf.command",
    "study",
    "interfaces",
    ". __main__",
)

# Rooms that use others only by strings.
BY_NAME = {
    "keep": "tensor.arrays",  # checkpoints and HDF5 files of extended arrays
    "chem": "chem.gradients",  # gradients of a mean field
    "chem.ci": "chem.mrci",  # the former name
    "cli": "chem.hf.command chem.ri.command chem.ci.command chem.cc.command chem.mrci.command"
    " chem.cc.excited.command chem.casscf.command chem.optimize.command study interfaces",
}

# Files that use each other.
CIRCLES = (
    "outcore.chem.driver outcore.chem.mean_field outcore.chem.reference",
    "outcore.tensor.arrays.array outcore.tensor.arrays.files",
    "outcore.trace.report outcore.trace.tables outcore.trace.tracefile",
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
    """The room of a file, named as in an include. Raises KeyError if there is none."""
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


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


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


def python_modules(root: Path) -> dict[str, Path]:
    top = root / "python"
    return {".".join(file.relative_to(top).with_suffix("").parts): file for file in sorted(top.rglob("*.py"))}


def named(node: ast.AST) -> str | None:
    """The string, if it names a module below outcore, or a name in one; else None."""
    value = node.value if isinstance(node, ast.Constant) else None
    if not isinstance(value, str) or not re.fullmatch(r"outcore(\.\w+)+", value):
        return None
    try:
        python_room(value.partition(".")[2])
    except KeyError:  # the string names something else
        return None
    return value


def is_by_name(arrow: Arrow) -> bool:
    return arrow.used in BY_NAME.get(arrow.room, "").split()


def python_arrows(root: Path) -> Iterator[Arrow]:
    public = public_names(root / "python" / "outcore" / "__init__.py")
    for module, file in python_modules(root).items():
        room = python_room(module.partition(".")[2])
        path = file.relative_to(root)
        for node in ast.walk(parsed(file)):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            name = named(node)
            if name is not None:
                arrow = Arrow(where, room, python_room(name.partition(".")[2]))
                if not is_by_name(arrow):
                    yield arrow
            for name in imported(node, module.rpartition(".")[0]):
                if name.partition(".")[0] != "outcore":
                    continue
                yield Arrow(where, room, python_room(public.get(name, name).partition(".")[2]))


def public_names(init: Path) -> dict[str, str]:
    """The public names of `outcore`, each with its module."""
    found = {}
    for node in ast.parse(init.read_text()).body if init.exists() else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            for key, value in ast.literal_eval(node.value).items():
                found[f"outcore.{key}"] = value
    return found


# ---- circles ----


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def used_at_run_time(node: ast.AST, package: str) -> Iterator[str]:
    """As `imported`, for a whole file, except imports for types only."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for each in getattr(node, field, ()):
            if not is_for_types(each):
                yield from imported(each, package)
                yield from used_at_run_time(each, package)


def python_uses(root: Path) -> dict[str, set[str]]:
    """For each file, the files that it imports; for a package its `__init__`, if a name of that is imported."""
    modules = {name.removesuffix(".__init__"): file for name, file in python_modules(root).items()}
    uses: dict[str, set[str]] = {}
    for module, file in modules.items():
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        names = used_at_run_time(parsed(file), package)
        found = {name if name in modules else name.rpartition(".")[0] for name in names}
        uses[module] = (found & modules.keys()) - {module, "outcore"}  # `outcore` loads names at first use
    return uses


def cxx_uses(root: Path) -> dict[str, set[str]]:
    uses: dict[str, set[str]] = {}
    for folder in ("include", "src"):
        for file in sorted((root / folder).rglob("*.h*")):
            names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read_text(), re.MULTILINE)
            uses[str(file.relative_to(root / folder))] = set(names)
    return {name: found & uses.keys() for name, found in uses.items()}


def circles(uses: dict[str, set[str]]) -> list[str]:
    """Names of files that reach each other, in order, each set on a line."""
    reached: dict[str, set[str]] = {}
    for start in uses:
        found, ahead = set[str](), [start]
        while ahead:
            for each in uses[ahead.pop()] - found:
                found.add(each)
                ahead.append(each)
        reached[start] = found
    return sorted(
        {
            " ".join(sorted(each for each in found if start in reached[each]))
            for start, found in reached.items()
            if start in found
        }
    )


def main(root: Path) -> int:
    wrong = 0
    found = circles(python_uses(root)) + circles(cxx_uses(root))
    for circle in sorted(set(found) - set(CIRCLES)):
        print(f"a circle: {circle}")
        wrong += 1
    whole = (root / "scripts" / "floors.py").exists()
    for circle in sorted(set(CIRCLES) - set(found)) if whole else ():
        print(f"no circle any more: take it off the list in scripts/floors.py: {circle}")
        wrong += 1
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
