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
        disk.write_all(data)
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
        disk.read_all(back)
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


# ---- what others put into HDF5 files ----


def imported(world, path, name):
    with hdf5.import_array(world, path, name) as disk:
        return disk[...]


def file_with(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file.create_dataset(name, data=data)
    return path


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_elements_of_any_byte_order_are_those_that_were_written(world, tmp_path, kind, order):
    data = (np.arange(60).reshape(5, 12) * (1 - 2j if kind[0] == "c" else 1)).astype(order + kind)
    back = imported(world, file_with(tmp_path / "x.h5", t2=data), "t2")
    assert back.dtype == np.dtype(kind)
    assert np.array_equal(back, data)


@pytest.mark.parametrize(
    ("kind", "wider"), [("?", "uint8"), ("f2", "float32"), ("u2", "int32"), ("u4", "int64"), (">u4", "int64")]
)
def test_types_that_arrays_do_not_have_become_wider_ones(world, tmp_path, kind, wider):
    data = np.array([0, 1, 1, 0], kind)
    if data.dtype.kind == "u":
        data[1] = np.iinfo(data.dtype).max
    back = imported(world, file_with(tmp_path / "x.h5", x=data), "x")
    assert back.dtype == wider
    assert np.array_equal(back, data)


def test_enumerations_are_their_numbers(world, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        kind = h5py.enum_dtype({"up": 1, "down": -1}, "i2")
        file.create_dataset("x", data=np.array([1, -1, 1], "i2"), dtype=kind)
    assert imported(world, tmp_path / "x.h5", "x").tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    "value", [-76.5, np.float32(0.25), np.int64(3), np.array(2 + 1j), np.array(7.0, ">f8")]
)
def test_scalar_is_an_array_of_one_element(world, tmp_path, value):
    back = imported(world, file_with(tmp_path / "x.h5", x=value), "x")
    assert back.shape == (1,)
    assert back[0] == value


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (3, 7)},
        {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (20, 1), "compression": "lzf"},
        {"chunks": (5, 5), "maxshape": (None, None)},
    ],
)
def test_chunked_and_compressed_sets(world, tmp_path, options, monkeypatch):
    monkeypatch.setattr(hdf5, "PIECE_BYTES", 1000)
    data = elements((20, 30), ">f8")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=data, **options)
    assert np.array_equal(imported(world, tmp_path / "x.h5", "x"), data)


def refused(world, tmp_path, name, text, number=errno.EINVAL):
    with pytest.raises(OutcoreError, match=text) as caught:
        hdf5.import_array(world, tmp_path / "x.h5", name, path=tmp_path / "array")
    assert caught.value.errno == number
    assert f"'{name}'" in str(caught.value)
    assert not (tmp_path / "array").exists()


def test_what_has_no_numbers_is_refused_by_name(world, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["text"] = "water"
        file["texts"] = np.array([b"a", b"bc"])
        file["unicode"] = np.array(["a", "bc"], dtype=h5py.string_dtype())
        file["pairs"] = np.zeros(3, [("i", "i4"), ("energy", "f8")])
        file["parts"] = np.zeros(3, [("real", "f8"), ("imag", "f8")])
        file.create_dataset("lists", (2,), h5py.vlen_dtype("f8"))
        file.create_dataset("links", (2,), h5py.ref_dtype)
        file.create_dataset("regions", (2,), h5py.regionref_dtype)
        file["opaque"] = np.zeros(2, "V5")
        file.create_dataset("matrices", (4,), np.dtype(("f8", (3, 3))))
        file["large"] = np.array([1 << 63], "u8")
        file["long"] = np.array([1.0], "longdouble")
        file["nothing"] = h5py.Empty("f8")
        file["none"] = np.zeros((0, 3))
        file["deep"] = np.zeros((1,) * 9)
        file["group/inner"] = 1.0
        file["type"] = np.dtype("f8")
    for name in ("text", "texts", "unicode"):
        refused(world, tmp_path, name, "its elements are strings")
    refused(world, tmp_path, "pairs", "compound, of i, energy")
    refused(world, tmp_path, "parts", "compound, of real, imag")
    refused(world, tmp_path, "lists", "lists of different lengths")
    refused(world, tmp_path, "links", "references")
    refused(world, tmp_path, "regions", "references")
    refused(world, tmp_path, "opaque", "opaque")
    refused(world, tmp_path, "large", "uint64")
    refused(world, tmp_path, "nothing", "empty, with no shape")
    with hdf5.import_array(world, tmp_path / "x.h5", "none") as found:
        assert found.shape == (0, 3)
    refused(world, tmp_path, "deep", "9 dimensions")
    refused(world, tmp_path, "group", "no dataset but a group, with inner")
    refused(world, tmp_path, "type", "no dataset but a datatype")
    if np.dtype("longdouble").itemsize > 8:
        refused(world, tmp_path, "long", "its elements are float")
    refused(world, tmp_path, "group/none", "it has deep, group/inner, large", errno.ENOENT)


def test_a_view_of_what_is_not_there_is_refused(world, tmp_path):
    data = elements((4, 5))
    file_with(tmp_path / "part.h5", x=data)
    layout = h5py.VirtualLayout((4, 5), "f8")
    layout[...] = h5py.VirtualSource("part.h5", "x", (4, 5))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_virtual_dataset("view", layout)
    assert np.array_equal(imported(world, tmp_path / "x.h5", "view"), data)
    (tmp_path / "part.h5").unlink()
    refused(world, tmp_path, "view", r"x of .*part\.h5 is not there", errno.ENOENT)


def test_a_link_to_nothing_is_a_missing_dataset(world, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["soft"] = h5py.SoftLink("/none")
        file["other"] = h5py.ExternalLink("none.h5", "/x")
    refused(world, tmp_path, "soft", "its link leads nowhere", errno.ENOENT)
    refused(world, tmp_path, "other", "its link leads nowhere", errno.ENOENT)


def test_a_foreign_attribute_is_no_metadata(world, tmp_path):
    file_with(tmp_path / "x.h5", x=1.0)
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["x"].attrs["outcore metadata"] = "{"
    refused(world, tmp_path, "x", "attribute 'outcore metadata': no JSON")


def test_a_file_that_is_no_hdf5_is_an_argument_that_is_wrong(world, tmp_path):
    (tmp_path / "x.h5").write_text("text")
    with pytest.raises(OutcoreError) as caught:
        hdf5.import_array(world, tmp_path / "x.h5", "a")
    assert caught.value.errno == errno.EINVAL


# ---- export ----


def test_options_of_a_dataset_are_those_of_h5py(world, tmp_path):
    data = elements((20, 30))
    with DiskArray(world, data.shape) as disk:
        disk[...] = data
        hdf5.export_array(disk, tmp_path / "x.h5", "a/b", chunks=(10, 10), compression="gzip")
        with pytest.raises(OutcoreError, match="Compression filter") as caught:
            hdf5.export_array(disk, tmp_path / "x.h5", "c", compression="none at all")
        assert caught.value.errno == errno.EINVAL
    with h5py.File(tmp_path / "x.h5") as file:
        assert (file["a/b"].chunks, file["a/b"].compression) == ((10, 10), "gzip")
        assert np.array_equal(file["a/b"], data)
        assert "c" not in file


def test_an_export_that_fails_leaves_no_dataset(world, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "no room, say")

    with DiskArray(world, (20, 30)) as disk:
        with monkeypatch.context() as patch:
            patch.setattr(h5py.Dataset, "__setitem__", fail)
            with pytest.raises(OutcoreError) as caught:
                hdf5.export_array(disk, tmp_path / "x.h5", "a")
        assert caught.value.errno == errno.ENOSPC
        hdf5.export_array(disk, tmp_path / "x.h5", "a")


@pytest.mark.parametrize("dtype", ["int16", "float32", "complex128"])
def test_h5py_takes_arrays_as_data(world, tmp_path, dtype):
    data = elements((6, 7), dtype)
    with DiskArray(world, data.shape, dtype) as disk, outcore.GlobalArray(world, (6, 7), "int32") as memory:
        disk[...] = data
        memory[...] = 3
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("x", data=disk)
            file.create_dataset("packed", data=disk, chunks=disk.chunks, compression="gzip")
            file["y"] = disk
            file.create_dataset("g", data=memory)
            assert np.array_equal(file["x"], data)
            assert np.array_equal(file["packed"], data)
            assert np.array_equal(file["y"], data)
            assert file["x"].dtype == dtype
            assert np.array_equal(file["g"], np.full((6, 7), 3))
