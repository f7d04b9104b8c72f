"""HDF5 files from and to disk arrays."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import outcore
from outcore import DiskArray, OutcoreError, hdf5

h5py = pytest.importorskip("h5py")


@pytest.fixture
def world(tmp_path):
    with outcore.World(scratch=tmp_path) as world:
        yield world


def elements(shape, dtype="float64"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex128"])
def test_an_exported_array_is_read_by_h5py(world, tmp_path, dtype):
    data = elements((20, 30, 4), dtype)
    with DiskArray(world, data.shape, dtype) as disk:
        disk.write(data).wait()
        hdf5.export_array(disk, tmp_path / "x.h5", "t2")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["t2"].dtype == dtype
        assert np.array_equal(file["t2"][...], data)


def test_a_dataset_is_imported_in_pieces(world, tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "PIECE_BYTES", 3000)
    data = elements((50, 60))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/t2"] = data
    with hdf5.import_array(world, tmp_path / "x.h5", "group/t2", chunk=(8, 8)) as disk:
        back = np.zeros_like(data)
        disk.read(back).wait()
        assert disk.chunk == (8, 8)
        assert np.array_equal(back, data)


def test_what_an_array_holds_goes_with_it(world, tmp_path):
    with DiskArray(world, 10, path=tmp_path / "a", metadata={"what": "t1"}) as disk:
        hdf5.export_array(disk, tmp_path / "x.h5", "t1")
    with hdf5.import_array(world, tmp_path / "x.h5", "t1", path=tmp_path / "b") as disk:
        assert disk.metadata == {"what": "t1"}


def test_a_dataset_is_never_overwritten(world, tmp_path):
    with DiskArray(world, 10) as disk:
        hdf5.export_array(disk, tmp_path / "x.h5", "a")
        with pytest.raises(OutcoreError) as caught:
            hdf5.export_array(disk, tmp_path / "x.h5", "a")
    assert caught.value.errno == errno.EEXIST


def test_a_missing_dataset_is_named_with_those_that_are_there(world, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["t2"] = np.zeros(3)
    with pytest.raises(OutcoreError, match=r"'t3'.*t2"):
        hdf5.import_array(world, tmp_path / "x.h5", "t3")


def test_a_file_that_is_no_hdf5_is_an_error_of_ours(world, tmp_path):
    (tmp_path / "x.h5").write_text("text")
    with pytest.raises(OutcoreError, match=r"x\.h5"):
        hdf5.import_array(world, tmp_path / "x.h5", "a")


def test_an_import_that_fails_leaves_no_array(world, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["t2"] = np.zeros((50, 60))

    def fail(*_):
        raise OSError(errno.EIO, "a bad sector, say")

    with monkeypatch.context() as patch:
        patch.setattr(h5py.Dataset, "__getitem__", fail)
        with pytest.raises(OutcoreError, match="bad sector"):
            hdf5.import_array(world, tmp_path / "x.h5", "t2", path=tmp_path / "array")
    hdf5.import_array(world, tmp_path / "x.h5", "t2", path=tmp_path / "array").close()


def test_a_file_that_cannot_be_closed_is_an_error_of_ours(world, tmp_path, monkeypatch):
    close = h5py.File.close

    def fail(self):
        close(self)
        raise OSError(errno.ENOSPC, "no room, say")

    with DiskArray(world, 10) as disk:
        monkeypatch.setattr(h5py.File, "close", fail)
        with pytest.raises(OutcoreError) as caught:
            hdf5.export_array(disk, tmp_path / "x.h5", "a")
    assert caught.value.errno == errno.ENOSPC
