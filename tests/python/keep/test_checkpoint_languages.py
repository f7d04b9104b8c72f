"""Checkpoints that C saves and Python reads, and the reverse."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore import _core

FLOAT64, INT32 = 7, 3
KINDS = {0: "global", 1: "disk", 2: "values"}


@pytest.fixture(scope="module")
def c():
    """The C interface of the library that is loaded."""
    library = ctypes.CDLL(str(Path(_core.__file__).parent / "lib" / "liboutcore.so"))
    library.oc_last_error.restype = ctypes.c_char_p
    return library


@pytest.fixture
def world(c):
    handle = ctypes.c_int()
    assert c.oc_world_self(None, ctypes.byref(handle)) == 0
    yield handle
    assert c.oc_world_close(handle) == 0


def save(c, world, path, metadata, values):
    """Saves values, and a global array that holds them."""
    array, saving = ctypes.c_int(), ctypes.c_int()
    shape = (ctypes.c_int64 * values.ndim)(*values.shape)
    zero = (ctypes.c_int64 * values.ndim)()
    memory = values.ctypes.data_as(ctypes.c_void_p)
    assert c.oc_ga_create(world, FLOAT64, values.ndim, shape, None, ctypes.byref(array)) == 0
    assert c.oc_ga_put(array, zero, shape, memory, None) == 0
    assert c.oc_checkpoint_begin(world, os.fsencode(path), None, ctypes.byref(saving)) == 0
    assert c.oc_checkpoint_add_ga(saving, b"t2", array) == 0
    assert c.oc_checkpoint_add_values(saving, b"copy", FLOAT64, values.ndim, shape, memory) == 0
    code = c.oc_checkpoint_commit(saving, metadata)
    assert c.oc_ga_close(array) == 0
    return code


def opened(c, world, path):
    saved = ctypes.c_int()
    code = c.oc_checkpoint_open(world, os.fsencode(path), ctypes.byref(saved))
    return saved if code == 0 else code


def metadata_of(c, saved):
    text = ctypes.create_string_buffer(200)
    assert c.oc_checkpoint_metadata(saved, text, ctypes.c_size_t(200), None) == 0
    return text.value.decode()


def test_python_reads_what_c_saved(c, world, tmp_path):
    values = np.arange(12.0).reshape(3, 4)
    text = 'cycle 12 of "größe"'
    assert save(c, world, tmp_path / "job", text.encode(), values) == 0
    with outcore.World() as mine, outcore.checkpoint.load(mine, tmp_path / "job") as saved:
        assert saved.meta == text
        assert list(saved) == ["t2", "copy"]
        with saved["t2"] as array:
            np.testing.assert_array_equal(array.local, values)
        np.testing.assert_array_equal(saved["copy"], values)


def test_c_reads_what_python_saved(c, world, tmp_path):
    path = tmp_path / "job"
    with outcore.World() as mine, outcore.GlobalArray(mine, (3, 4)) as array:
        array.local[...] = np.arange(12.0).reshape(3, 4)
        number, empty = np.array([5], "int32"), np.empty((0, 3))
        arrays = {"t2": array, "number": number, "energy": np.float64(-76.25), "empty": empty}
        outcore.checkpoint.save(mine, path, arrays, {"cycle": 12, "mixing": None})
    saved = opened(c, world, path)
    assert metadata_of(c, saved) == '{"cycle": 12, "mixing": null}'
    kind, rank, shape = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int64 * 8)()
    forms = {}
    for name in arrays:
        places = (ctypes.byref(kind), None, ctypes.byref(rank), shape)
        assert c.oc_checkpoint_inquire(saved, name.encode(), *places) == 0
        forms[name] = KINDS[kind.value], tuple(shape[: rank.value])
    assert forms == {
        "t2": ("global", (3, 4)),
        "number": ("values", (1,)),
        "energy": ("values", ()),
        "empty": ("values", (0, 3)),
    }
    found = np.zeros((3, 4))
    size = ctypes.c_int64(found.nbytes)
    assert c.oc_checkpoint_read_values(saved, b"t2", found.ctypes.data_as(ctypes.c_void_p), size) == 0
    np.testing.assert_array_equal(found, np.arange(12.0).reshape(3, 4))
    assert c.oc_checkpoint_close(saved) == 0


def test_c_goes_on_from_python_and_python_from_c(c, world, tmp_path):
    path, values = tmp_path / "job", np.ones((2, 2))
    with outcore.World() as mine:
        outcore.checkpoint.save(mine, path, {"t2": values}, 1)
        assert save(c, world, path, b"two", 2 * values) == 0
        outcore.checkpoint.save(mine, path, {"t2": 3 * values}, 3)
        with outcore.checkpoint.load(mine, path) as held:
            assert held.generation == 3
            assert save(c, world, path, b"four", 4 * values) == 0
            np.testing.assert_array_equal(held["t2"], 3 * values)  # C keeps what Python has open
    assert {each.name for each in path.glob("arrays.*")} == {"arrays.3", "arrays.4"}


def test_both_write_the_same(c, world, tmp_path):
    values, found = np.arange(12.0).reshape(3, 4), []
    with outcore.World() as mine:
        with outcore.GlobalArray(mine, (3, 4)) as array:
            outcore.checkpoint.save(mine, tmp_path / "python", {"t2": array, "copy": values}, "text")
        assert save(c, world, tmp_path / "c", b"text", values) == 0
        for name in ("python", "c"):
            with outcore.DiskArray.open(mine, tmp_path / name) as root:
                facts = root.metadata
                found.append((root.shape, root.dtype, root.generation, facts))
            for array in facts["arrays"].values():
                array["identity"], number = array["identity"].rsplit(" ", 1)
                assert len(number) == 16
                assert int(number, 16)
    assert found[0] == found[1]
    assert list(found[0][3]["arrays"]) == list(found[1][3]["arrays"])


def test_damage_is_named(c, world, tmp_path):
    path, values = tmp_path / "job", np.ones((20, 20))
    assert save(c, world, path, b"one", values) == 0
    assert save(c, world, tmp_path / "other", b"one", values) == 0
    (path / "arrays.1" / "copy").rename(tmp_path / "gone")
    (tmp_path / "other" / "arrays.1" / "copy").rename(path / "arrays.1" / "copy")
    saved = opened(c, world, path)
    found, size = np.zeros_like(values), ctypes.c_int64(values.nbytes)
    assert (
        c.oc_checkpoint_read_values(saved, b"copy", found.ctypes.data_as(ctypes.c_void_p), size) == errno.EIO
    )
    assert b"it is array copy of generation 1 of checkpoint" in c.oc_last_error()
    assert c.oc_checkpoint_close(saved) == 0
    (path / "arrays.1").rename(path / "arrays.x")
    assert opened(c, world, path) == errno.EIO
    assert b"its arrays are not there" in c.oc_last_error()
    (path / "arrays.1").symlink_to(path / "arrays.x")
    assert opened(c, world, path) == errno.EINVAL


def test_a_full_disk_leaves_the_previous_checkpoint(c, world, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "outcore-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        small = np.full((100, 100), 7.0)
        assert save(c, world, place / "job", b"one", small) == 0
        assert save(c, world, place / "job", b"two", np.ones((1000, 1000))) == errno.ENOSPC
        assert b"No space left on device" in c.oc_last_error()
        assert [each.name for each in (place / "job").glob("arrays.*")] == ["arrays.1"]
        saved = opened(c, world, place / "job")
        assert metadata_of(c, saved) == "one"
        assert c.oc_checkpoint_close(saved) == 0
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
