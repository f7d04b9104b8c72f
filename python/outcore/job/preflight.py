"""Checks before anything is computed: options without effect, values out of range, and whether files of results can
be written."""

from __future__ import annotations

import errno
import math
import os
import re
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from outcore.base.errors import OutcoreError, as_outcore_error
from outcore.base.sizes import in_words
from outcore.job.resources import parse_bytes

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

T = TypeVar("T")

# Files of arrays and checkpoints, complete or as a killed run has left them.
_OF_ARRAYS = re.compile(r"manifest(\..*)?|\.?[A-Za-z_-]+(\.[0-9]+)+")


_RESULTS_BYTES = 1 << 14  # size of a small results file


def refuse(given: Mapping[str, Any], because: str) -> None:
    """Raises OutcoreError (EINVAL) if one of the options, by name, has a value other than None or False."""
    named = [option for option, value in given.items() if value is not None and value is not False]
    if named:
        raise OutcoreError(errno.EINVAL, "choose options", detail=f"{named[0]} has no effect {because}")


def check_number(option: str, value: float | None, *, below: float = 1.0, zero: bool = False) -> None:
    """Raises OutcoreError (EINVAL) unless the value is positive (or 0), and less than `below`."""
    if value is None:
        return
    if not (math.isfinite(value) and (value >= 0 if zero else value > 0) and value < below):
        raise OutcoreError(
            errno.EINVAL,
            f"{option} {value:g}",
            detail=f"it must be {'0 or more' if zero else 'positive'}, and less than {below:g}",
        )


def check_count(option: str, value: int | None, most: int = (1 << 31) - 1) -> None:
    if value is not None and not 1 <= value <= most:
        raise OutcoreError(errno.EINVAL, f"{option} {value}", detail=f"it must be from 1 to {most}")


def check_size(option: str, value: str | None) -> None:
    """Raises OutcoreError (EINVAL), which names the option, if the value is no number of bytes."""
    if value is None:
        return
    try:
        parse_bytes(value)
    except OutcoreError as error:
        raise OutcoreError(errno.EINVAL, f"{option} {value}", detail=error.detail) from None


def check_file(path: Path | None, attempted: str) -> None:
    """Raises OutcoreError if a file of results could not be written there. Leaves nothing behind."""
    if path is None:
        return
    if not _is_device(path):
        check_file_size(attempted, path, _RESULTS_BYTES)
    existed = os.path.lexists(path)
    try:
        if existed and not path.is_file():  # a device or a pipe must not be opened: its reader would notice
            problem = errno.EISDIR if path.is_dir() else 0 if os.access(path, os.W_OK) else errno.EACCES
            if problem:
                raise OSError(problem, os.strerror(problem))
            return
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
        if not existed:
            path.unlink()
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, attempted, path=path) from error


def files_are_limited() -> bool:
    """Whether the system limits the size of files (ulimit -f)."""
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def check_file_size(attempted: str, path: str | os.PathLike[str], size_bytes: int) -> None:
    """Raises OutcoreError (EFBIG) if no file of this size may be written. `path`: the file, or its directory."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and size_bytes > limit:
        raise OutcoreError(
            errno.EFBIG,
            attempted,
            path=path,
            detail=f"a file of {in_words(size_bytes)}, more than the {in_words(limit)} of ulimit -f "
            "(RLIMIT_FSIZE)",
        )


def check_directory(path: Path | None, attempted: str, *, array: bool = False) -> None:
    """Raises OutcoreError if a directory does not exist and cannot be made, or cannot be written, or, with `array`
    (for an array or a checkpoint), if it has other files. Leaves nothing behind."""
    if path is None:
        return
    try:
        if path.is_dir():
            if not os.access(path, os.W_OK | os.X_OK):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            foreign = [each.name for each in path.iterdir() if array and not _OF_ARRAYS.fullmatch(each.name)]
            if foreign:
                raise OutcoreError(
                    errno.EEXIST,
                    attempted,
                    path=path,
                    detail=f"it holds '{foreign[0]}', which is not part of it",
                )
            return
        path.mkdir()
        path.rmdir()
    except OutcoreError:
        raise
    except OSError as error:
        raise OutcoreError(error.errno or errno.EIO, attempted, path=path) from error


def check_distinct(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Raises OutcoreError (EEXIST) if two files of `outputs`, or one of `outputs` and one of `inputs`, are the
    same. None and devices are ignored."""
    seen = [(name, path) for name, path in inputs.items() if path is not None]
    for name, path in outputs.items():
        if path is None:
            continue
        for other, earlier in seen:
            if os.path.realpath(path) == os.path.realpath(earlier) and not _is_device(path):
                raise OutcoreError(
                    errno.EEXIST, "choose files", path=path, detail=f"{name} would overwrite {other}"
                )
        seen.append((name, path))


def _is_device(path: str | os.PathLike[str]) -> bool:
    return os.path.lexists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def at_root(comm: Intracomm | None, check: Callable[[], T]) -> T:
    """Runs a check at rank 0, which writes files; all processes return its result, or raise its error.
    Collective."""
    if comm is None:
        return check()
    found: tuple[Any, OutcoreError | None] = None, None
    if comm.rank == 0:
        try:
            found = check(), None
        except Exception as error:
            found = None, as_outcore_error(error, "check what is written")
    result, failure = comm.bcast(found)
    if failure is not None:
        failure.collective = True
        raise failure
    return cast("T", result)
