"""Metadata of arrays: JSON in a file, which anybody may have written."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

from outcore.base.checked import FormatError
from outcore.base.errors import OutcoreError


def parse(text: bytes, path: str | os.PathLike[str]) -> Any:
    """The metadata of an array, parsed; None if the text is empty. Raises OutcoreError (EIO) if it is no JSON."""
    try:
        return parsed(text) if text else None
    except FormatError as error:
        raise OutcoreError(errno.EIO, "read metadata", path=path, detail=f"metadata: {error}") from error


def parsed(text: bytes) -> Any:
    """Parses JSON. Raises FormatError, which says where the fault is."""
    try:
        return json.loads(text.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise FormatError(f"no JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"no text: byte {text[error.start]:#x} at position {error.start}") from error
    except RecursionError as error:
        raise FormatError("nested too deeply") from error
    except (ValueError, MemoryError) as error:  # a number of thousands of digits
        raise FormatError(str(error) or "too large") from error
