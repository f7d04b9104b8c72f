"""Prints text as it is: names of files are not markup, and may contain any bytes."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_LOG_WIDTH = 132  # columns of a log

# Characters that move the cursor or colour a terminal, as escapes: a name of a file may contain them.
_CONTROL = {each: repr(chr(each))[1:-1] for each in (*range(32), 127, *range(0x80, 0xA0))}


def visible(text: str) -> str:
    """The text with control characters as escapes."""
    return text.translate(_CONTROL)


class Printer(Protocol):
    """Shows lines and tables: a Lines, or a console of rich."""

    def print(self, *objects: Any, **options: Any) -> None: ...


class Lines:
    """Shows lines and tables on standard output, without markup. A line with `soft_wrap` is written directly;
    everything else is printed by rich, which takes long to load. Once rich is loaded, it prints lines as well, so
    that they appear above its bars.

    Args:
        quiet: standard output gets nothing.
        log: an open file that gets a copy of everything, with `quiet` too.
    """

    def __init__(self, *, quiet: bool = False, log: TextIO | None = None) -> None:
        self._quiet, self._log = quiet, log

    def print(self, *objects: Any, **options: Any) -> None:
        """As `print` of a console of rich."""
        is_line = len(objects) == 1 and isinstance(objects[0], str) and options == {"soft_wrap": True}
        if "rich" in vars(self) or not is_line:
            self.rich.print(*objects, **options)
            return
        for stream in (None if self._quiet else sys.stdout, self._log):
            if stream is not None:
                stream.write(f"{objects[0]}\n")
                stream.flush()

    @cached_property
    def rich(self) -> Console:
        """A console of rich with the same output, which can show bars."""
        from rich.console import Console

        plain = {"highlight": False, "markup": False, "emoji": False}
        if self._log is None:
            return Console(quiet=self._quiet, **plain)  # type: ignore[arg-type]
        file, copy = self._log, Console(file=self._log, width=_LOG_WIDTH, **plain)  # type: ignore[arg-type]

        class Both(Console):
            def print(self, *objects: Any, **options: Any) -> None:
                super().print(*objects, **options)
                if not any(isinstance(each, Control) for each in objects):  # a Control moves the cursor
                    copy.print(*objects, **options)
                    file.flush()

        from rich.control import Control

        return Both(quiet=self._quiet, **plain)  # type: ignore[arg-type]


def shows_bars() -> bool:
    """Whether standard output is a terminal, or reaches one through a launcher that Outcore has started. A command
    in a notebook (`!outcore ..`) has a terminal that cannot move the cursor: it shows no bars."""
    if os.environ.get("JPY_PARENT_PID"):  # kernels of Jupyter set it, for the processes that they start, too
        return False
    return sys.stdout.isatty() or os.environ.get("TTY_COMPATIBLE") == "1"


class OutputLost(Exception):
    """Standard output cannot be written: its disk is full, it is closed, or its reader has gone; see `errno`. Not
    an OSError, because libraries would catch it and end the process without a message."""

    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.errno = number


class _Output(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputLost(error.errno or errno.EIO) from None


def prepare_streams() -> None:
    """Makes the standard streams accept every string: bytes of names that are no text are written as they are, and
    characters that the encoding of the terminal lacks as escapes. `print` raises OutputLost if standard output
    cannot be written. A closed stream becomes /dev/null, so that no other file gets its number; standard output
    then cannot be written."""
    codecs.register_error("outcore.names", _encode)
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _replace(number, flags)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115, as long as the process
    if sys.stdout is None or _number(sys.stdout) == 1:
        encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
        buffer = io.BufferedWriter(_Output(1, "w", closefd=False))
        sys.stdout = io.TextIOWrapper(buffer, encoding, line_buffering=os.isatty(1))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="outcore.names")


def check_output() -> None:
    """Raises OutputLost if standard output is closed; called before another program inherits it."""
    try:
        os.write(1, b"")
    except OSError as error:
        raise OutputLost(error.errno or errno.EIO) from None


def drop_output() -> None:
    """After an error: writes buffered output, and drops it if standard output cannot be written."""
    try:
        sys.stdout.flush()
    except OutputLost:
        _replace(1, os.O_WRONLY)


def complain(text: str) -> None:
    """Prints a line on standard error; does nothing if that cannot be written."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _replace(2, os.O_WRONLY)


def _replace(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def _number(stream: Any) -> int:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):  # a stream that a test has put there
        return -1


def _encode(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    encoded = b""
    for each in error.object[error.start : error.end]:
        code = ord(each)
        encoded += (
            bytes([code - 0xDC00])  # os.fsdecode turns a byte into such a surrogate
            if 0xDC80 <= code <= 0xDCFF
            else each.encode("ascii", "backslashreplace")
        )
    return encoded, error.end
