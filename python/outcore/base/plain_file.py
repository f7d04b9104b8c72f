"""Files that are read or written as a whole, wherever a user or somebody else has put them."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from outcore.base.errors import OutcoreError


def read_bytes(path: str | os.PathLike[str], attempted: str, max_bytes: int) -> bytes:
    """All of a regular file. Raises OutcoreError: what opening and reading raise, EINVAL (a directory, FIFO or
    device, on which nothing waits), EFBIG (more than `max_bytes`, before memory is taken for it)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                raise OutcoreError(errno.EINVAL, attempted, path=path, detail="it is not a regular file")
            if about.st_size > max_bytes:
                raise OutcoreError(
                    errno.EFBIG,
                    attempted,
                    path=path,
                    size_bytes=about.st_size,
                    detail=f"at most {max_bytes} bytes are read",
                )
            return file.read(max_bytes)
    except OutcoreError:
        raise
    except MemoryError as error:
        raise OutcoreError(errno.ENOMEM, attempted, path=path) from error
    except (OSError, ValueError) as error:  # a zero byte in the name
        number = getattr(error, "errno", None) or errno.EINVAL
        raise OutcoreError(
            number, attempted, path=path, detail="" if number != errno.EINVAL else str(error)
        ) from error


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """A text file to write, which takes the name at the end, or leaves what was there if anything is raised. The
    user's own symbolic link stays, and leads to the new file; a device or FIFO is written to."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
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


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Puts the names of what was made in a directory on stable storage. Raises OutcoreError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        # File systems that cannot do it need it not; a directory that may not be read, such as that of homes, is
        # the business of others.
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.EACCES):
            raise OutcoreError(error.errno or errno.EIO, "flush", path=path) from error
