"""Files that a user names are read, or refused by name: nothing waits for a FIFO."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from outcore import OutcoreError, World, hdf5
from outcore.base.plain_file import check_regular, read_bytes, replaced, write_text
from outcore.chem import basis_file, geometry
from outcore.chem.ci import fcidump
from outcore.chem.mrci import references
from outcore.chem.mrci.spaces import OrbitalChoice
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
    "references": lambda path: references.of_file(path, OrbitalChoice(0, 0, 1), 2),
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


# ---- writing ----


def _put(path: Path, text: str) -> None:
    with replaced(path, "write a test") as new:
        assert new.suffix == path.suffix
        new.write_text(text)


WRITERS: dict[str, Callable[[Path, str], None]] = {
    "text": lambda path, text: write_text(path, "write a test", text),
    "replaced": _put,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_replaced_and_a_link_stays(tmp_path: Path, writer: str) -> None:
    file, link = tmp_path / "a.json", tmp_path / "link.json"
    file.write_text("old and longer")
    link.symlink_to(file)
    WRITERS[writer](link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.json", "link.json"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_directory_is_no_file_to_write(tmp_path: Path, writer: str) -> None:
    with pytest.raises(OutcoreError) as caught:
        WRITERS[writer](tmp_path, "new")
    assert caught.value.errno == errno.EISDIR
    assert caught.value.path == str(tmp_path)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_disk_that_is_full_is_named(writer: str) -> None:
    with pytest.raises(OutcoreError, match="/dev/full") as caught:
        WRITERS[writer](Path("/dev/full"), "new")
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("writer", WRITERS)
def test_a_fifo_is_written_to(tmp_path: Path, writer: str) -> None:
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    WRITERS[writer](fifo, "new")
    reader.join(20)
    assert read == ["new"]
    assert fifo.is_fifo()


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_was_there_stays_if_a_writer_fails(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.trexio").write_text("old")

    def fail() -> None:
        with replaced(tmp_path / "a.trexio", "write a test") as new:
            if kind == "directory":
                new.mkdir()
            (new / "part" if new.is_dir() else new).write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [each.name for each in tmp_path.iterdir()] == ["a.trexio"]
    assert (tmp_path / "a.trexio").read_text() == "old"


def test_an_error_names_the_file_that_the_user_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.json"

    def fail() -> None:
        with replaced(path, "write a test") as new:
            raise OutcoreError(errno.EIO, "write something", path=new, detail="why")

    with pytest.raises(OutcoreError, match="why") as caught:
        fail()
    assert caught.value.path == str(path)
