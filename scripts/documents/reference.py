"""Reference of the command line, from its definition, and of C and C++, from the headers."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

# ---- command line ----


def commands(root: Path, _: str) -> str:
    from outcore.cli.main import SUBCOMMANDS

    return "\n\n".join(_command(name) for name in SUBCOMMANDS)


def _command(name: str) -> str:
    import typer

    from outcore.cli.main import SUBCOMMANDS

    entry = SUBCOMMANDS[name]
    if name == "run":  # its options are those of another command
        from outcore.cli import input_file
        from outcore.cli.main import run_file

        return f"## outcore run\n\n{_cell(run_file.__doc__ or '')}\n\n{(input_file.__doc__ or '').strip()}"
    application = typer.Typer(add_completion=False)
    application.command(name)(getattr(importlib.import_module(entry.module), entry.function))
    command = typer.main.get_command(application)
    lines = [f"## outcore {name}", "", _cell(command.help or entry.summary), ""]
    parameters = [each for each in command.params if "--help" not in each.opts]
    if parameters:
        lines += ["| option | meaning |", "|---|---|"]
    for each in parameters:
        lines.append(f"| {_option(each)} | {_cell(getattr(each, 'help', None) or '')}{_default(each)} |")
    return "\n".join(lines).rstrip()


def _option(parameter: object) -> str:
    opts = [*parameter.opts, *parameter.secondary_opts]  # type: ignore[attr-defined]
    if not opts[0].startswith("-"):
        return f"`{opts[0].upper()}`"
    takes = "" if getattr(parameter, "is_flag", False) else f" {_metavar(parameter)}"
    return ", ".join(f"`{each}{takes}`" for each in opts)


def _metavar(parameter: object) -> str:
    if given := getattr(parameter, "metavar", None):
        return str(given)
    kind = str(parameter.type.name)  # type: ignore[attr-defined]
    words = {"str": "TEXT", "text": "TEXT", "int": "N", "integer": "N", "float": "X", "path": "PATH"}
    return words.get(kind.strip("<>"), kind.upper())


def _default(parameter: object) -> str:
    value = parameter.default  # type: ignore[attr-defined]
    flag = getattr(parameter, "is_flag", False)
    if parameter.required:  # type: ignore[attr-defined]
        return " Required."
    if getattr(parameter, "show_default", None) is False:  # the help has the default
        return ""
    return (
        f" Default: `{value}`." if isinstance(value, int | float | str) and not flag and value != "" else ""
    )


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|").replace("<", "&lt;")


# ---- C ----

_COMMENT = re.compile(r"/\*\*<?(.*?)\*/", re.DOTALL)
_PARTS = {
    "version": "Version",
    "error": "Errors",
    "request": "Requests",
    "element_type": "Types of elements",
    "world": "Worlds, counters and locks",
    "ga": "Global arrays",
    "dra": "Disk arrays",
    "sparse": "Block-sparse arrays",
    "eaf": "Exclusive access files",
    "sf": "Shared files",
    "rf": "Record files",
    "call": "Procedure calls",
}


def c_interface(root: Path, _: str) -> str:
    """Every function with its comment; every structure as a table."""
    lines: list[str] = []
    for stem, title in _PARTS.items():
        text = (root / "include" / "outcore" / "c" / f"{stem}.h").read_text()
        lines += [
            f"## {title}",
            "",
            *_c_header(text.partition('extern "C" {')[2].replace("OUTCORE_API ", "")),
        ]
    return "\n".join(lines)


def _c_header(body: str) -> Iterator[str]:
    for comment, code in _declarations(body):
        name = re.search(r"\boc_\w+", code)
        if name is None:
            continue
        if code.startswith("typedef struct"):
            title = re.search(r"}\s*(\w+)$", code)
            yield from [f"### {title[1] if title else name[0]}", "", _plain(comment), "", *_fields(code), ""]
        else:
            prototype = re.sub(r"\s+", " ", code)
            yield from [f"### {name[0]}", "", "```c", f"{prototype};", "```", "", _plain(comment), ""]


def _declarations(body: str) -> Iterator[tuple[str, str]]:
    for match in re.finditer(
        r"/\*\*(?!<)((?:[^*]|\*(?!/))*)\*/\s*(typedef struct.*?}\s*\w+|[a-zA-Z][^;{#/]*);", body, re.DOTALL
    ):
        yield match[1], match[2].strip()


def _fields(code: str) -> list[str]:
    rows = ["| field | meaning |", "|---|---|"]
    before = re.compile(r"/\*\*(?!<)(.*?)\*/\s*([^;]*);", re.DOTALL)
    after = re.compile(r"([^;{}]*);\s*(?:/\*\*<(.*?)\*/)?", re.DOTALL)
    inner = code[code.index("{") + 1 : code.rindex("}")]
    told = {re.sub(r"\s+", " ", field): comment for comment, field in before.findall(inner)}
    rest = before.sub(lambda match: f"{match[2]};", inner)
    for field, comment in after.findall(rest):
        name = re.sub(r"\s+", " ", field).strip()
        if name:
            rows.append(f"| `{name}` | {_cell(_plain(comment or told.get(name, '')))} |")
    return rows


def _plain(comment: str) -> str:
    """A comment for doxygen as Markdown."""
    text = "\n".join(re.sub(r"^\s*\*?\s*", "", line) for line in comment.strip().splitlines())
    text = re.sub(r"@brief\s+", "", text)
    text = re.sub(r"^\s*@param(?:\[\w+\])?\s+([\w,]+)", r"- `\1`:", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*@return\s+", "\n*Returns* #OC_OK, or: ", text, flags=re.MULTILINE)
    text = re.sub(r"#(OC_\w+)", r"`\1`", text)
    text = re.sub(r"^([^-\s].*)\n(- `)", r"\1\n\n\2", text, flags=re.MULTILINE)
    return text.strip()


# ---- C++ ----


def cpp_interface(root: Path, _: str) -> str:
    """The declarations of each public header, each with the first sentence of its comment."""
    lines = []
    include = root / "include"
    for path in sorted((include / "outcore").rglob("*.hpp")):
        text = path.read_text().partition("#ifdef OUTCORE_SKELETONS")[0]
        found = list(_classes(text))
        head = re.match(r"(?://.*\n)+", text)
        about = re.sub(r"\s*\n?//\s?", " ", head[0]).strip() if head else ""
        lines += [f"## `{path.relative_to(include)}`", "", _cell(about), ""]
        if found:
            lines += ["| name | what it is |", "|---|---|"]
            lines += [f"| `{name}` | {_cell(comment)} |" for name, comment in found]
            lines.append("")
    return "\n".join(lines)


def _classes(text: str) -> Iterator[tuple[str, str]]:
    kinds = r"(?:class|struct|enum class)\s+(?:OUTCORE_\w+\s+)?"
    pattern = rf"((?:^///.*\n)*)^(?:template <.*>\n)?{kinds}(\w+)[^;{{\n]*\{{"
    for match in re.finditer(pattern, text, re.MULTILINE):
        comment = re.sub(r"\s*\n?///\s?", " ", match[1]).strip()
        yield match[2], comment.partition(". ")[0].rstrip(".")
