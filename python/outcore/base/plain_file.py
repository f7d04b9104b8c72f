"""Files that are read or written as a whole, wherever a user or somebody else has put them."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from outcore.base.errors import OutcoreError


def read_bytes(path: str | os.PathLike[str], attempted: str, max_bytes: int) -> bytes:
    """The contents of a regular file. Raises OutcoreError: the errors of opening and reading, EISDIR, EINVAL (a
    FIFO, socket or device, which the message names; the call does not wait for it), EFBIG (longer than `max_bytes`;
    raised before memory is taken for it)."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            size_bytes = _regular(os.fstat(file.fileno()), path, attempted).st_size
            if size_bytes > max_bytes:
                raise OutcoreError(
                    errno.EFBIG,
                    attempted,
                    path=path,
                    size_bytes=size_bytes,
                    detail=f"at most {max_bytes} bytes are read",
                )
            return file.read(max_bytes)
    except (OSError, ValueError, MemoryError) as error:
        raise _as_ours(error, path, attempted) from error


def check_regular(path: str | os.PathLike[str], attempted: str) -> None:
    """Checks a file before a library opens it, because the library would wait for a FIFO. Raises OutcoreError, as
    `read_bytes` does, if the path is not there, or leads to no regular file."""
    try:
        _regular(os.stat(path), path, attempted)
    except (OSError, ValueError) as error:
        raise _as_ours(error, path, attempted) from error


def _regular(about: os.stat_result, path: str | os.PathLike[str], attempted: str) -> os.stat_result:
    mode = about.st_mode
    if stat.S_ISREG(mode):
        return about
    if stat.S_ISDIR(mode):
        raise OutcoreError(errno.EISDIR, attempted, path=path)
    kind = next((kind for test, kind in _KINDS if test(mode)), "no regular file")
    raise OutcoreError(errno.EINVAL, attempted, path=path, detail=f"it is {kind}")


_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _as_ours(
    error: OSError | ValueError | MemoryError, path: str | os.PathLike[str], attempted: str
) -> OutcoreError:
    if isinstance(error, OutcoreError):
        return error
    if isinstance(error, MemoryError):
        return OutcoreError(errno.ENOMEM, attempted, path=path)
    if isinstance(error, OSError) and error.errno == errno.ENXIO:  # a socket, which nobody opens
        return OutcoreError(errno.EINVAL, attempted, path=path, detail="it is a socket")
    if isinstance(error, OSError) and error.errno:
        return OutcoreError(error.errno, attempted, path=path)
    return OutcoreError(errno.EINVAL, attempted, path=path, detail=str(error))  # a zero byte in the name


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A text file to write. It gets the name at the end of the block; if the block raises, the old file stays. A
    symbolic link of the user stays, and leads to the new file. A device, a FIFO, or a file in a directory where
    this process may not create files, is written in place."""
    target = os.path.realpath(path)
    in_place = not os.path.isfile(target) or not os.access(os.path.dirname(target), os.W_OK | os.X_OK)
    if os.path.exists(target) and in_place:
        with open(target, "w", encoding="utf-8") as file:
            yield file
        return
    part = f"{target}.{secrets.token_hex(4)}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            yield file
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def write_text(path: str | os.PathLike[str], attempted: str, text: str) -> None:
    """Writes a whole file, as `written` does. Raises OutcoreError."""
    try:
        with written(path) as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise _as_ours(error, path, attempted) from error


@contextmanager
def replaced(path: str | os.PathLike[str], attempted: str) -> Iterator[Path]:
    """The name of a new file, or directory, for libraries that write by name. The new file replaces `path` at the
    end of the block; if the block raises, the new file is removed, and the old one stays. Both names have the same
    suffix. A device or FIFO is written in place.

    Raises OutcoreError with `path`: EISDIR, and errors of the system."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OutcoreError(errno.EISDIR, attempted, path=path)
    in_place = target.exists() and not target.is_file()
    new = target if in_place else target.with_name(f".{secrets.token_hex(4)}-{target.name}")
    try:
        yield new
        if not in_place:
            new.replace(target)
    except OutcoreError as error:
        if error.path != str(new):
            raise
        raise OutcoreError(error.errno, attempted, path=path, detail=error.detail) from error
    except OSError as error:  # HDF5 raises it without a number
        detail = "" if error.errno else str(error)
        raise OutcoreError(error.errno or errno.EIO, attempted, path=path, detail=detail) from error
    finally:
        if in_place:
            pass
        elif new.is_dir():
            shutil.rmtree(new, ignore_errors=True)
        else:
            new.unlink(missing_ok=True)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Puts the names of new files of a directory on stable storage. Raises OutcoreError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        # A file system that cannot do it does not need it; a directory that this process may not read, such as
        # /home, belongs to others, who made the names in it.
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.EACCES):
            raise OutcoreError(error.errno or errno.EIO, "flush", path=path) from error
