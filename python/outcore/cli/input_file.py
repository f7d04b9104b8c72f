"""Input files: the options of one command and its geometry, as TOML or JSON.

    command = "ccsd"
    geometry = '''
    3
    water
    O 0 0 0.1173
    H 0 0.7572 -0.4692
    H 0 -0.7572 -0.4692
    '''
    basis = "cc-pvdz"
    triples = true
    memory = "2GB"

A key is an option without its dashes. `geometry` is the text of an XYZ file, or the path of one. Paths are relative
to the directory that the command runs in, as on the command line.
"""

from __future__ import annotations

import errno
import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from outcore.base import plain_file
from outcore.base.errors import OutcoreError

GEOMETRY = "geometry"
MAX_BYTES = 1 << 24
_READ = "read an input file"


def read(path: Path) -> dict[str, Any]:
    """The contents of an input file. Raises OutcoreError (path and reason) if it cannot be read, or is no table."""
    parse: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": json.loads}
    if path.suffix not in parse:
        raise _ending(path, _READ)
    try:
        found = parse[path.suffix](plain_file.read_bytes(path, _READ, MAX_BYTES).decode())
    except (ValueError, RecursionError) as error:  # wrong TOML, JSON or UTF-8
        raise _wrong(path, str(error)) from error
    if isinstance(found, dict) and is_qcschema(found):
        return found
    if not isinstance(found, dict) or not isinstance(found.get("command"), str):
        raise _wrong(path, "it has no 'command', such as command = \"scf\"")
    return found


def is_qcschema(found: Mapping[str, Any]) -> bool:
    """Whether an input is a QCSchema document, which has no `command`."""
    named = str(found.get("schema_name", "")).startswith("qcschema")
    return named or ("molecule" in found and not found.keys().isdisjoint(("driver", "specification")))


def options(
    path: Path, found: Mapping[str, Any], positional: Sequence[str], negations: Collection[str] = ()
) -> list[str]:
    """The options of an input file as on a command line, without positional arguments. negations: options such as
    `--no-second-order`, which stand for a value of false; false for any other option gives no word.

    Raises OutcoreError for values that no option takes."""
    given: list[str] = []
    for key, value in found.items():
        name = f"--{key.replace('_', '-')}"
        if key == "command" or key in positional:
            continue
        if value is True:
            given.append(name)
        elif value is False:
            given += [each for each in (f"{name[:2]}no-{name[2:]}",) if each in negations]
        else:
            given.append(f"{name}={_word(path, key, value)}")
    return given


@contextmanager
def arguments(
    path: Path, found: Mapping[str, Any], positional: Sequence[str], negations: Collection[str] = ()
) -> Iterator[list[str]]:
    """The command line of an input file. Inside the block the text of a geometry is in a temporary file.

    Args:
        positional: keys that are positional arguments of the command, not options.

    Raises OutcoreError for values that no option takes."""
    given = {key: _word(path, key, found[key]) for key in positional if key in found}
    others = options(path, found, positional, negations)
    with TemporaryDirectory(prefix="outcore-input-") as place:
        if "\n" in given.get(GEOMETRY, ""):
            geometry = Path(place, path.stem + ".xyz")
            geometry.write_text(given[GEOMETRY].lstrip("\n"))
            given[GEOMETRY] = str(geometry)
        yield [*given.values(), *others]


def _word(path: Path, key: str, value: Any) -> str:
    plain = str if key == GEOMETRY else str | int | float
    if (
        isinstance(value, list)
        and value
        and key != GEOMETRY
        and all(isinstance(each, plain) for each in value)
    ):
        return ",".join(map(str, value))
    if isinstance(value, plain):
        return str(value)
    raise _wrong(
        path, f"{key} is {'no text' if key == GEOMETRY else 'neither text, number, true, false, nor a list'}"
    )


def text(path: Path, command: str, values: Mapping[str, Any]) -> str:
    """The text of an input file with these options, TOML or JSON by the ending of `path`. Raises OutcoreError for
    another ending."""
    plain = {"command": command} | {
        name: value if isinstance(value, bool | int | float) else str(value) for name, value in values.items()
    }
    if path.suffix == ".json":
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    if path.suffix != ".toml":
        raise _ending(path, "write an input file")
    return "".join(f"{name} = {_toml(value)}\n" for name, value in plain.items())


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    word = str(value)
    if "\n" in word and "'''" not in word:
        return f"'''\n{word.rstrip()}\n'''"
    return json.dumps(word, ensure_ascii=False)


def _wrong(path: Path, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, _READ, path=path, detail=detail)


def _ending(path: Path, attempted: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, attempted, path=path, detail="its name has to end in .toml or .json")
