"""Files that a user names are read, or refused by name: nothing waits for a FIFO."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from outcore import OutcoreError, World, hdf5
from outcore.base.plain_file import check_regular, read_bytes
from outcore.chem import basis_file, geometry
from outcore.chem.ci import fcidump
from outcore.chem.mrci import references
from outcore.chem.mrci.orbitals import Choice
from outcore.keep import classic_layout
from outcore.trace import tracefile


def _import_hdf5(path: Path) -> None:
    with World() as world:
        hdf5.import_array(world, path, "a", path=path.parent / "a.array")


READERS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: read_bytes(path, "read", 100),
    "check": lambda path: check_regular(path, "read"),
    "geometry": geometry.read,
    "basis": basis_file.read,
    "references": lambda path: references.of_file(path, Choice(0, 0, 1), 2),
    "FCIDUMP": fcidump.read,
    "trace": tracefile.read,
    "DRA": classic_layout.read_layout,
    "HDF5": _import_hdf5,
}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "FIFO": (os.mkfifo, "it is a FIFO"),
    "directory": (os.mkdir, "directory"),
    "socket": (_socket, "it is a socket"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is a device"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, reader: str, kind: str) -> None:
    make, text = KINDS[kind]
    make(tmp_path / "input.info")
    with pytest.raises(OutcoreError) as caught:
        READERS[reader](tmp_path / "input.info")
    assert text in str(caught.value).replace("Is a directory", "directory")
    assert "input.info" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x7fELF\0\0" + bytes(range(256))], ids=["empty", "binary"])
@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("bytes", "check")])
def test_an_empty_or_binary_file_is_refused_by_name(tmp_path: Path, reader: str, content: bytes) -> None:
    (tmp_path / "input.info").write_bytes(content)
    with pytest.raises(OutcoreError, match=r"input\.info") as caught:
        READERS[reader](tmp_path / "input.info")
    assert caught.value.errno in (errno.EINVAL, errno.EIO)


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    values = np.arange(20, dtype=np.uint8).tobytes()
    (tmp_path / "a").write_bytes(values)
    assert read_bytes(tmp_path / "a", "read", 20) == values
    with pytest.raises(OutcoreError) as caught:
        read_bytes(tmp_path / "a", "read", 19)
    assert caught.value.errno == errno.EFBIG
