"""Disks that are full, of which a part is free."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Files of this process do not become longer: a write beyond is EFBIG, as Python ignores the signal of it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_file_system(place: Path) -> Iterator[bool]:
    """A file system of 16 MB at a new directory; whether it could be mounted, which needs root."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "outcore-test", str(place)]
    mounted = os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)
