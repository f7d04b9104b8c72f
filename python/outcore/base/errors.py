"""The one exception of Outcore. The native core raises it too."""

from __future__ import annotations

import errno as _errno
import os
from typing import Any

from outcore import _core
from outcore.base.console import OutputLost


class OutcoreError(OSError):
    """An operation failed; `str()` says what, where and how much.

    Attributes: `errno` (None if no error number of the system describes the error), `strerror` and `filename` as
    for every `OSError`; `attempted` (a verb phrase), `path`, `offset` and `size_bytes` (None if they do not apply),
    `detail`, `rank` (of the process where it was raised), `collective` (true if all processes have raised it, so
    that no process has to tell the others). It survives pickling, so that processes can send it to each other.
    """

    attempted: str
    path: str
    offset: int | None
    size_bytes: int | None
    detail: str
    rank: int
    collective: bool = False

    def __init__(
        self,
        errno: int | None,
        attempted: str,
        *,
        path: str | os.PathLike[str] = "",
        offset: int | None = None,
        size_bytes: int | None = None,
        detail: str = "",
        rank: int | None = None,
    ) -> None:
        path = os.fspath(path)
        if errno is None:
            super().__init__(attempted)
            self.filename = path or None
        else:
            super().__init__(errno, os.strerror(errno), path or None)
        self.attempted = attempted
        self.path = path
        self.offset = offset
        self.size_bytes = size_bytes
        self.detail = detail
        self.rank = _core.process_rank() if rank is None else rank
        self._message = _core.error_message(
            errno,
            printable(attempted),
            printable(path),
            -1 if offset is None else offset,
            -1 if size_bytes is None else size_bytes,
            printable(detail),
            self.rank,
        )

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errno, self.attempted), self.__dict__ | {"filename": self.filename}


def printable(text: str) -> str:
    """The text as valid UTF-8: it may contain names of files, whose bytes need not be UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # other surrogates, which stand for no byte
        return text.encode("utf-8", "replace").decode("utf-8")


class NotConverged(OutcoreError):
    """An iteration has not converged within its limit of cycles. `errno` is None."""


def as_outcore_error(error: BaseException, attempted: str) -> OutcoreError:
    """Any error as an OutcoreError, with the errno that it has or that its class corresponds to, or none."""
    if isinstance(error, OutcoreError):
        return error
    if isinstance(error, OutputLost):
        return OutcoreError(error.errno, "write to standard output")
    number = getattr(error, "errno", None)
    if not isinstance(number, int) or number <= 0:
        number = _errno_of(error)
    detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return OutcoreError(number, attempted, detail=detail)


Fields = tuple[int, str, str, int, int, str, int]


def as_fields(error: BaseException | None, attempted: str) -> Fields:
    """The fields of an error, which native code sends to other processes. errno: 0 if there is no error, -1 if the
    error has none."""
    if error is None:
        return 0, "", "", -1, -1, "", 0
    if not isinstance(error, Exception):  # Ctrl-C
        error = OutcoreError(_errno.EINTR, attempted, detail=type(error).__name__)
    error = as_outcore_error(error, attempted)
    offset = -1 if error.offset is None else error.offset
    size_bytes = -1 if error.size_bytes is None else error.size_bytes
    what, path, detail = (printable(each) for each in (error.attempted, error.path, error.detail))
    return error.errno or -1, what, path, offset, size_bytes, detail, error.rank


def _errno_of(error: BaseException) -> int | None:
    if isinstance(error, MemoryError) or "failed to map segment" in str(error):  # while a library is loaded
        return _errno.ENOMEM
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return _errno.EAGAIN
    kinds = TypeError | ValueError | LookupError | OverflowError
    return _errno.EINVAL if isinstance(error, kinds) else None
