"""What is printed is text as it is: names of files are not markup, and may be any bytes."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Characters that move the cursor or colour a terminal, as escapes; a name may have them, a line of ours does not.
_CONTROL = {each: repr(chr(each))[1:-1] for each in (*range(32), 127, *range(0x80, 0xA0))}


def visible(text: str) -> str:
    """The text with control characters as escapes."""
    return text.translate(_CONTROL)


def make_console(*, quiet: bool = False) -> Console:
    """For tables and lines, without markup."""
    from rich.console import Console

    return Console(quiet=quiet, highlight=False, markup=False, emoji=False)


def accept_any_text() -> None:
    """Makes the standard streams take every string: bytes of names that are no text are written as they are, and
    what the encoding of the terminal lacks as escapes."""
    codecs.register_error("outcore.names", _encode)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="outcore.names")


def _encode(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    encoded = b""
    for each in error.object[error.start : error.end]:
        code = ord(each)
        encoded += (
            bytes([code - 0xDC00])  # what os.fsdecode makes of a byte
            if 0xDC80 <= code <= 0xDCFF
            else each.encode("ascii", "backslashreplace")
        )
    return encoded, error.end
