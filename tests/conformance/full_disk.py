"""Disks that are full except for a small part."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Limits the length of files of this process: a write beyond is EFBIG, as Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fill(disk: Path) -> Path:
    """Fills the file system of a directory to its last byte, with a file in it that is returned."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            with suppress(OSError):
                while file.write(b"x" * size):
                    pass
    return filler


@contextmanager
def small_file_system(place: Path) -> Iterator[bool]:
    """Mounts a file system of 16 MB at a new directory; returns whether it could, which needs root."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "outcore-test", str(place)]
    mounted = os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)
