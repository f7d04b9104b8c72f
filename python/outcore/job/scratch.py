"""Where scratch files go."""

from __future__ import annotations

import errno
import os

from outcore import _core
from outcore.base.errors import OutcoreError


def find_scratch(directory: str | os.PathLike[str] | None = None) -> str:
    """The scratch directory to use: the one given, which has to be a directory that can be written to, else the
    fastest of this node. Raises OutcoreError."""
    if directory is None:
        return str(_core.default_scratch())
    problem = None
    if not os.path.exists(directory):
        problem = errno.ENOENT, "no such directory"
    elif not os.path.isdir(directory):
        problem = errno.ENOTDIR, "it has to be a directory"
    elif not os.access(directory, os.W_OK | os.X_OK):
        problem = errno.EACCES, "not writable"
    if problem is not None:
        raise OutcoreError(problem[0], "use scratch directory", path=directory, detail=problem[1])
    return os.path.abspath(directory)
