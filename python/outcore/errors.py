"""The one exception of Outcore. The native core raises it too."""

from __future__ import annotations

import os
from typing import Any

from . import _core


class OutcoreError(OSError):
    """An operation failed; `str()` says what, where and how much.

    Attributes: `errno`, `strerror` and `filename` as for every `OSError`; `attempted` (a verb phrase),
    `path`, `offset` and `size_bytes` (None if they do not apply), `detail`, `rank` (where it was raised),
    `collective` (true if all processes have raised it, so that nobody has to tell the others).
    Survives pickling, so that it can travel between processes.
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
        errno: int,
        attempted: str,
        *,
        path: str | os.PathLike[str] = "",
        offset: int | None = None,
        size_bytes: int | None = None,
        detail: str = "",
        rank: int | None = None,
    ) -> None:
        path = os.fspath(path)
        super().__init__(errno, os.strerror(errno), path or None)
        self.attempted = attempted
        self.path = path
        self.offset = offset
        self.size_bytes = size_bytes
        self.detail = detail
        self.rank = _core.process_rank() if rank is None else rank
        self._message = _core.error_message(
            errno,
            _printable(attempted),
            _printable(path),
            -1 if offset is None else offset,
            -1 if size_bytes is None else size_bytes,
            _printable(detail),
            self.rank,
        )

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errno, self.attempted), self.__dict__ | {"filename": self.filename}


def _printable(text: str) -> str:
    """Names of files, which may be in any of the texts, are bytes that need not be UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # other surrogates, which stand for no byte
        return text.encode("utf-8", "replace").decode("utf-8")
