"""Files that a run has open, and damage to them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


def damage(path):
    """Flips one bit in each 64 bytes, because some bytes are no longer used."""
    data = np.fromfile(path, np.uint8)
    data[40::64] ^= 4
    path.write_bytes(data.tobytes())


def find_open(directory):
    """Files of a directory that this process has open, also those without a name, each once."""
    found = {}
    for each in Path("/proc/self/fd").iterdir():
        if each.exists() or each.is_symlink():
            target = os.readlink(each) if each.is_symlink() else ""
            if target.startswith(str(directory)) and os.stat(each).st_size:
                found[os.stat(each).st_ino] = each
    return found.values()
