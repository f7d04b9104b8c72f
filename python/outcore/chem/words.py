"""Text of input files that other programs and people have written: lines, words and numbers."""

from __future__ import annotations

import errno
import re
import unicodedata
from pathlib import Path

from outcore.base import plain_file
from outcore.base.errors import OutcoreError

LIMIT_BYTES = 64 << 20  # largest input file: it is read whole

_BLANK = " \t\f\v"  # separators of words; other blanks of Unicode are refused where a number is expected
_BREAK = re.compile("\r\n|\n|\r")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def read_lines(path: Path, attempted: str) -> list[str]:
    """Lines of a text in UTF-8, UTF-16 with a byte-order mark, or Latin-1. Only line feeds and carriage returns
    end a line, so that a form feed or a separator of Unicode inside a line shifts no line numbers.

    Raises OutcoreError: as `plain_file.read_bytes`, and EINVAL for a file that is empty or no text.
    """
    content = plain_file.read_bytes(path, attempted, LIMIT_BYTES)
    if not content:
        raise OutcoreError(errno.EINVAL, attempted, path=path, detail="it is empty")
    try:
        lines = _BREAK.split(_decoded(content))
    except UnicodeDecodeError as error:
        raise OutcoreError(
            errno.EINVAL, attempted, path=path, detail=f"it is not a text file: {error}"
        ) from error
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise OutcoreError(
                errno.EINVAL,
                attempted,
                path=path,
                detail=f"it is not a text file: line {number} has a null character",
            )
    return lines


def _decoded(content: bytes) -> str:
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe\0\0", "utf-32-le"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def split(line: str) -> list[str]:
    """Words between blanks, tabs and form feeds."""
    return [word for word in re.split(f"[{_BLANK}]+", line) if word]


def number(word: str) -> float | None:
    """A finite decimal number as programs in C and Fortran write it, "1.0D-3" too; None for anything else, such as
    digits that are not ASCII, "1_0", "nan", "inf" and "1,5". Python itself would take some of them."""
    if not _NUMBER.fullmatch(word):
        return None
    value = float(word.replace("D", "e").replace("d", "e"))
    return value if abs(value) < float("inf") else None


def integer(word: str) -> int | None:
    """An integer in digits of ASCII that fits into 32 bits; None for anything else."""
    if not _INTEGER.fullmatch(word) or len(word) > 11:
        return None
    value = int(word)
    return value if abs(value) < 1 << 31 else None


def quoted(text: str, most: int = 60) -> str:
    """The text in quotes for an error: cut, with escapes for invisible characters."""
    short = text if len(text) <= most else text[:most] + "..."
    return "'" + "".join(each if each.isprintable() else repr(each)[1:-1] for each in short) + "'"


def oddity(text: str) -> str:
    """Names the first character that is not ASCII, with a colon before; empty if all are."""
    for each in text:
        if ord(each) > 126:
            return (
                f": the character {quoted(each)} is {unicodedata.name(each, 'unnamed')} (U+{ord(each):04X})"
            )
    return ""
