"""Classic disk resident arrays: read from files of Global Arrays' DRA, and written for it."""

from __future__ import annotations

import errno
import os
import subprocess

import global_arrays
import numpy as np
import pytest

import outcore
from outcore import OutcoreError
from outcore.cli.main import run
from outcore.keep import classic, classic_layout

CASES = (
    (1, 1, 1004, (50,)),
    (1, 1, 1001, (37, 41)),
    (2, 2, 1003, (37, 29, 5)),
    (4, 3, 1007, (9, 8, 7, 6)),
    (2, 1, 1002, (3, 4, 3, 2, 3, 4, 5)),
)


@pytest.fixture(scope="module")
def exchange(tmp_path_factory):
    global_arrays.require()
    return global_arrays.compiled("exchange_program.c", tmp_path_factory.mktemp("classic") / "exchange")


@pytest.fixture(scope="module")
def relinked(tmp_path_factory):
    """The same program with liboutcore_pario."""
    global_arrays.require()
    place = tmp_path_factory.mktemp("classic")
    return global_arrays.compiled("exchange_program.c", place / "relinked", *global_arrays.ours())


@pytest.fixture
def world():
    with outcore.World() as world:
        yield world


def counted(shape, dtype):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


# ---- with the original


@pytest.mark.parametrize(("processes", "files", "kind", "shape"), CASES)
def test_what_the_original_wrote_and_reads(
    exchange, world, tmp_path, monkeypatch, processes, files, kind, shape
):
    monkeypatch.setattr(classic, "PIECE_BYTES", 2000)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    global_arrays.run(processes, exchange, "write", theirs, files, kind, *shape)
    assert theirs.exists() == (files == 1)
    dtype = classic_layout.TYPES[kind]
    with classic.import_dra(world, theirs) as array:
        assert (array.shape, array.dtype.name) == (shape, dtype)
        assert array.metadata == f"pario {kind}\nexchanged"
        np.testing.assert_array_equal(array[...], counted(shape, dtype))
        classic.export_dra(array, ours, files=files)
    said = global_arrays.run(processes, exchange, "read", ours, files, kind, *shape)
    assert "0 wrong" in said


def test_commands(exchange, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    global_arrays.run(2, exchange, "write", tmp_path / "t2", 2, 1004, 30, 20)
    assert run(["import-dra", "t2.info"]) == 0
    assert run(["export-dra", "t2.array", "back"]) == 0
    assert "t2.array: float64[30, 20], 0.0 MB" in capsys.readouterr().out
    assert "0 wrong" in global_arrays.run(1, exchange, "read", tmp_path / "back", 1, 1004, 30, 20)
    with pytest.raises(OutcoreError, match=r"t2\.array: File exists"):
        run(["import-dra", "t2.info"])


# ---- by programs of Global Arrays that are linked to ours


def test_any_number_of_processes_reopens(relinked, world, tmp_path):
    shape = (40, 30, 20)
    global_arrays.run(2, relinked, "write", tmp_path / "a", 1, 1004, *shape)
    for processes in (1, 3):
        assert global_arrays.run(processes, relinked, "read", tmp_path / "a", 1, 1004, *shape) == "0 wrong\n"
    with outcore.DiskArray.open(world, tmp_path / "a") as array:
        np.testing.assert_array_equal(array[...], counted(shape, "float64"))
        assert array.metadata == "pario 1004\nexchanged"


def test_what_was_imported_is_opened(relinked, exchange, world, tmp_path):
    global_arrays.run(2, exchange, "write", tmp_path / "a", 1, 1001, 30, 20)
    classic.import_dra(world, tmp_path / "a", tmp_path / "b").close()
    assert global_arrays.run(2, relinked, "read", tmp_path / "b", 1, 1001, 30, 20) == "0 wrong\n"


def test_a_full_disk_is_a_code(relinked, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "outcore-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        said = global_arrays.run(2, relinked, "write", place / "a", 1, 1004, 1000, 1000)
        assert f"create: {errno.ENOSPC}\nwrite: {errno.EBADF}\n" in said
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


# ---- without it


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("shape", [(7,), (100, 3), (13, 11, 5)])
def test_a_round_trip(world, tmp_path, files, shape):
    with outcore.DiskArray(world, shape, "float64", metadata={"of": "Python"}) as array:
        array[...] = counted(shape, "float64")
        array.sync()
        classic.export_dra(array, tmp_path / "a", files=files)
    with classic.import_dra(world, tmp_path / "a.info", tmp_path / "back") as back:
        np.testing.assert_array_equal(back[...], counted(shape, "float64"))
        assert back.metadata == "pario 1004\na"


def test_an_array_that_is_there_stays(world, tmp_path):
    with outcore.DiskArray(world, (4, 4)) as array:
        classic.export_dra(array, tmp_path / "a")
        with pytest.raises(OutcoreError, match=r"a\.info: File exists"):
            classic.export_dra(array, tmp_path / "a")
        classic.export_dra(array, tmp_path / "a", overwrite=True)


def test_files_of_an_array_before_are_not_read(world, tmp_path):
    shape = (40, 30)
    with outcore.DiskArray(world, shape) as array:
        array[...] = counted(shape, "float64")
        array.sync()
        classic.export_dra(array, tmp_path / "a", files=4)
        classic.export_dra(array, tmp_path / "a", files=2, overwrite=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.0", "a.1", "a.info"]
    (tmp_path / "a.2").write_bytes(bytes(8 * 1200))  # as the original leaves them
    with classic.import_dra(world, tmp_path / "a") as back:
        np.testing.assert_array_equal(back[...], counted(shape, "float64"))


def test_a_file_of_each_node(world, tmp_path):
    """The .info file does not tell the number of nodes."""
    shape = (40, 30)
    with outcore.DiskArray(world, shape) as array:
        array[...] = counted(shape, "float64")
        array.sync()
        classic.export_dra(array, tmp_path / "a", files=3)
    info = tmp_path / "a.info"
    assert " 3 3 \n" in info.read_text()
    info.write_text(info.read_text().replace(" 3 3 \n", " 1 1 \n"))
    with classic.import_dra(world, info) as back:
        np.testing.assert_array_equal(back[...], counted(shape, "float64"))
    (tmp_path / "a.3").write_bytes(bytes(8 * 1200))
    with pytest.raises(OutcoreError, match=r"a\.0 has \d+ bytes, not \d+"):
        classic.import_dra(world, info)
    for each in tmp_path.glob("a.[0-9]"):
        each.unlink()
    with pytest.raises(OutcoreError, match=r"neither .* is there"):
        classic.import_dra(world, info)


@pytest.mark.parametrize(
    ("dtype", "shape", "words"),
    [("int8", (3,), "elements are int8"), ("float64", (1,) * 8, "8 axes"), ("int16", (3,), "int16")],
)
def test_what_the_original_does_not_have_is_refused(world, tmp_path, dtype, shape, words):
    with outcore.DiskArray(world, shape, dtype) as array, pytest.raises(OutcoreError, match=words) as raised:
        classic.export_dra(array, tmp_path / "a")
    assert raised.value.errno == errno.EINVAL
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("info", "number", "words"),
    [
        ("", errno.EINVAL, "no .info"),
        ("2 4 4 1004 1 4 4 1\nx\n", errno.EINVAL, "no .info"),
        ("8 4 4\n", errno.EINVAL, "no .info"),
        ("2 4 4 9999 1 4 4 1 1 \nx\n", errno.EINVAL, "its type is 9999"),
        ("2 4 4 1004 1 0 4 1 1 \nx\n", errno.EINVAL, "that of its bricks"),
        ("2 4 5 1004 1 4 4 1 1 \nx\n", errno.EIO, "has 128 bytes, not 160"),
        ("2 4 4 1004 1 2 4 2 2 \nx\n", errno.EIO, r"a\.0 is not there"),
    ],
)
def test_damage_is_named(world, tmp_path, info, number, words):
    (tmp_path / "a.info").write_text(info)
    (tmp_path / "a").write_bytes(bytes(128))
    with pytest.raises(OutcoreError, match=words) as raised:
        classic.import_dra(world, tmp_path / "a", tmp_path / "back")
    assert raised.value.errno == number
    assert not (tmp_path / "back").exists()


def test_no_array(world, tmp_path):
    with pytest.raises(OutcoreError, match=r"nothing\.info: No such file") as raised:
        classic.import_dra(world, tmp_path / "nothing")
    assert raised.value.errno == errno.ENOENT
