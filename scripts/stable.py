"""The stable interface as text: stable.py [--check] writes docs/reference/stable.txt, or lists changes.

A line is a public name of Python with its parameters, a function of C, or an option of a command. Lines may be
added. One that is removed or altered breaks programs: deprecate first (GOVERNANCE.md).
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "reference" / "stable.txt"

# Public names of Python that are provisional: they may change in any minor release.
PROVISIONAL = ("Labels", "Layout", "Program", "Request", "Symmetry", "classic")

# Methods of these are stable, too: they have PySCF's names.
METHODS = (
    ("outcore.chem.hf", "RHF"),
    ("outcore.chem.hf", "UHF"),
    ("outcore.chem.hf", "ROHF"),
    ("outcore.chem.ri", "RHF"),
    ("outcore.chem.ri", "UHF"),
    ("outcore.chem.mp2", "MP2"),
    ("outcore.chem.cc", "CCSD"),
    ("outcore.chem.ci", "FCI"),
    ("outcore.chem.ci", "FCISolver"),
    ("outcore.chem.mrci", "MRCI"),
    ("outcore.chem.nevpt2", "NEVPT2"),
    ("outcore.chem.nevpt2", "QDNEVPT2"),
)

COMMANDS = ("scf", "ri-scf", "rimp2", "ccsd", "eom", "fci", "casscf", "mrci", "optimize", "run")


def parameters(callable_: object) -> str:
    """Names and kinds; defaults and types may be widened."""
    try:
        signature = inspect.signature(callable_)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a native function, whose docstring begins with them
        first = (getattr(callable_, "__doc__", None) or "").partition("\n")[0]
        return ", ".join(re.findall(r"(\w+): ", first))
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(
        marks.get(each.kind, "") + name + ("=" if each.default is not inspect.Parameter.empty else "")
        for name, each in signature.parameters.items()
        if name not in ("self", "cls")
    )


def of_class(name: str, found: type) -> Iterator[str]:
    yield f"python {name}({parameters(found.__init__)})"
    ours = [each for each in found.__mro__ if each.__module__.startswith("outcore")]
    for attribute in sorted({attribute for each in ours for attribute in vars(each)}):
        if attribute.startswith("_"):
            continue
        value = inspect.getattr_static(found, attribute)
        if callable(getattr(found, attribute, None)):
            yield f"python {name}.{attribute}({parameters(getattr(found, attribute))})"
        elif isinstance(value, property) or not attribute.isupper():
            yield f"python {name}.{attribute}"


def python() -> Iterator[str]:
    import importlib

    import outcore

    for name in outcore.__all__:
        found = getattr(outcore, name)
        if name in PROVISIONAL or name.startswith("_"):
            continue
        if isinstance(found, type):
            yield from of_class(f"outcore.{name}", found)
        elif inspect.ismodule(found):
            for each in sorted(getattr(found, "__all__", ())):
                yield f"python outcore.{name}.{each}({parameters(getattr(found, each))})"
        else:
            yield f"python outcore.{name}({parameters(found)})"
    for module, name in METHODS:
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, type):
            yield from of_class(f"{module}.{name}", found)
        else:
            yield f"python {module}.{name}({parameters(found)})"


def c() -> Iterator[str]:
    for header in sorted((ROOT / "include" / "outcore" / "c").glob("*.h")):
        text = re.sub(r"/\*.*?\*/|^\s*#.*?$", "", header.read_text(), flags=re.DOTALL | re.MULTILINE)
        for found in re.findall(r"OUTCORE_API\s+([^;{]*?\))\s*;", text):
            yield "c " + re.sub(r"\s+", " ", found).replace("( ", "(").strip()


def commands() -> Iterator[str]:
    import subprocess

    wide = os.environ | {"COLUMNS": "300", "TERMINAL_WIDTH": "300"}  # a narrow one cuts names
    for command in COMMANDS:
        said = subprocess.run(
            [sys.executable, "-m", "outcore", command, "--help"],
            env=wide,
            capture_output=True,
            text=True,
            check=True,
        )
        for option in sorted(set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]+)", said.stdout))):
            yield f"command {command} {option}"


def lines() -> list[str]:
    return sorted({*python(), *c(), *commands()})


def main() -> int:
    now = lines()
    if "--check" not in sys.argv[1:]:
        FILE.write_text("\n".join(now) + "\n")
        return 0
    kept = FILE.read_text().splitlines()
    lost, new = sorted(set(kept) - set(now)), sorted(set(now) - set(kept))
    for line in lost:
        print(f"no longer there: {line}\n  (deprecate before: GOVERNANCE.md)", file=sys.stderr)
    for line in new:
        print(f"new: {line}\n  (python scripts/stable.py enters it)")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
