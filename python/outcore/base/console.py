"""What is printed is text as it is: names of files are not markup, and may be any bytes."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_LOG_WIDTH = 132  # columns of a log

# Characters that move the cursor or colour a terminal, as escapes; a name may have them, a line of ours does not.
_CONTROL = {each: repr(chr(each))[1:-1] for each in (*range(32), 127, *range(0x80, 0xA0))}


def visible(text: str) -> str:
    """The text with control characters as escapes."""
    return text.translate(_CONTROL)


def make_console(*, quiet: bool = False, log: TextIO | None = None) -> Console:
    """For tables and lines, without markup. `log`: an open file that gets them, too, whether it is quiet or not."""
    from rich.console import Console

    plain = {"highlight": False, "markup": False, "emoji": False}
    if log is None:
        return Console(quiet=quiet, **plain)  # type: ignore[arg-type]
    file, copy = log, Console(file=log, width=_LOG_WIDTH, **plain)  # type: ignore[arg-type]

    class Both(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*objects, **options)
            if not any(isinstance(each, Control) for each in objects):  # which moves the cursor of a terminal
                copy.print(*objects, **options)
                file.flush()

    from rich.control import Control

    return Both(quiet=quiet, **plain)  # type: ignore[arg-type]


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
