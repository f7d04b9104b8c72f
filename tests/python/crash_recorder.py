"""The recorder of tests/crash, for a program that was started with it before the C library.

    LD_PRELOAD=.../liboutcore_crash_recorder.so OUTCORE_ENGINE=threads python ...

States are numbers below 64. One recording at a time gives images: disk contents that are possible after a
loss of power.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

if os.environ.get("OUTCORE_ENGINE") != "threads":
    sys.exit(
        "OUTCORE_ENGINE is not 'threads': what io_uring writes is not recorded, and its loss would be reported"
    )

_library = ctypes.CDLL(None)
for _name in ("end", "syncs", "examine"):
    getattr(_library, f"outcore_crash_{_name}").restype = ctypes.c_uint64
_library.outcore_crash_sync_name.restype = ctypes.c_char_p
_Look = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64)

mistakes: list[str] = []  # the faults of images


def temporary() -> tempfile.TemporaryDirectory[str]:
    """A directory in memory, which allows many images a second."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def begin(directory: str) -> None:
    """Begins to record operations in an empty directory."""
    _library.outcore_crash_begin(directory.encode())


def go_on(step: int, directory: str) -> None:
    """Begins to record operations in a directory with the files of a program that was killed after this many
    steps of the last recording."""
    _library.outcore_crash_go_on(ctypes.c_uint64(step), directory.encode())


def allow(*states: int) -> None:
    """Allows these states from now on."""
    _library.outcore_crash_allow(ctypes.c_uint64(sum(1 << state for state in set(states))))


def end() -> int:
    """Ends the recording; returns the number of steps."""
    return int(_library.outcore_crash_end())


def syncs() -> list[str]:
    """The synced files, in this order."""
    count = _library.outcore_crash_syncs()
    return [_library.outcore_crash_sync_name(ctypes.c_uint64(sync)).decode() for sync in range(count)]


def examine(look: Callable[[Path], int], images: int, without: int = -1) -> tuple[int, int]:
    """Returns the number of images, and the number of wrong ones. `look` returns the state of an image, or
    raises an error. `without`: leave out one of the syncs."""

    def right(name: bytes, allowed: int) -> int:
        try:
            state = look(Path(name.decode()))
            if allowed >> state & 1:
                return 1
            mistakes.append(f"state {state} must not be found")
        except Exception as error:
            mistakes.append(f"{type(error).__name__}: {error}")
        return 0

    wrong = ctypes.c_uint64()
    made = _library.outcore_crash_examine(
        ctypes.c_uint64(images),
        ctypes.c_uint64(1),
        ctypes.c_int64(without),
        _Look(right),
        ctypes.byref(wrong),
    )
    return int(made), wrong.value
