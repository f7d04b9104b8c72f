"""Checkpoints and HDF5 files of arrays of every kind, also of those without elements or axes."""

import numpy as np
import pytest

import outcore
from outcore import (
    Array,
    BlockSparseArray,
    DiskArray,
    GlobalArray,
    NodeArray,
    OutcoreError,
    World,
    checkpoint,
    hdf5,
)

SHAPES = [(), (0,), (3, 0), (2, 3)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World("self", scratch=tmp_path_factory.mktemp("scratch"), memory="64MB") as made:
        yield made


def elements(shape):
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)


def made(world, kind, values):
    if kind in ("process", "node", "global", "disk"):
        return Array.from_numpy(world, values, where=kind)
    array = kind(world, values.shape)
    if kind is NodeArray:
        array.view[...] = values
    else:
        array[...] = values
    return array


KINDS = [GlobalArray, DiskArray, NodeArray, "process", "node", "global", "disk"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_saved_and_exported(world, tmp_path, kind, shape):
    x = elements(shape)
    array = made(world, kind, x)
    assert array.shape == array.to_numpy().shape == shape
    assert np.array_equal(array.to_numpy(), x)
    hdf5.export_array(array, tmp_path / "x.h5", "x")
    with hdf5.import_array(world, tmp_path / "x.h5", "x") as found:
        assert found.shape == (shape or (1,))
        assert np.array_equal(found.to_numpy().reshape(shape), x)
    assert np.array_equal(Array.from_hdf5(world, tmp_path / "x.h5", "x").to_numpy(), x)
    checkpoint.save(world, tmp_path / "saved", {"x": array})
    with checkpoint.load(world, tmp_path / "saved") as saved:
        again = saved["x"]
        assert again.shape == shape
        assert np.array_equal(np.asarray(again), x)
        assert isinstance(again, Array) == isinstance(array, Array)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("where", ["process", "node", "global", "disk"])
def test_arithmetic_without_elements_or_axes(world, where, shape):
    x = elements(shape)
    a = Array.from_numpy(world, x, where=where)
    a += a
    assert np.array_equal((2 * a - 1).to_numpy(), 4 * x - 1)
    assert (a.sum(), a.T.shape) == (2 * x.sum(), shape[::-1])
    assert a.norm() == pytest.approx(2 * np.linalg.norm(x.ravel()))
    assert a.dot(a) == pytest.approx(4 * (x * x).sum())
    a.move("disk")
    assert np.array_equal(a[...], 2 * x)


NUMBERS = {
    "wrapped": lambda world: Array.wrap(world, np.array(3.0)),
    "a wrapped global array": lambda world: Array.wrap(world, made(world, GlobalArray, np.array(3.0))),
    "float32": lambda world: Array.from_numpy(world, np.array(3.0), store_dtype="float32"),
    "of a function": lambda world: Array.from_function(world, (), lambda box: 3.0),
    "generated": lambda world: Array.generated(world, (), lambda box: np.array(3.0)),
    **{
        where: lambda world, where=where: Array.from_numpy(world, np.array(3.0), where=where)
        for where in ("process", "node", "global", "disk")
    },
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_is_an_array_without_axes(world, kind):
    a, one, two = NUMBERS[kind](world), np.array(1.0), np.ones(2)
    out = np.empty(())
    assert a.get_tile((), out) is out
    for found in (out, a.get_tile(()), a.to_numpy(), a.transpose().to_numpy(), (2 * a - a).to_numpy()):
        assert (found.shape, found) == ((), 3)
    assert outcore.einsum(",->", a, a) == 9
    assert outcore.einsum(",i->i", a, two).to_numpy().tolist() == [3, 3]
    if kind != "generated":
        a += 1
        a.put_tile((), a.get_tile(()) + one)
        a.acc_tile((), one)
        a.sync()
        outcore.einsum("i,i->", two, two, out=a, accumulate=True)
        assert a[()] == 8
        outcore.einsum("i,i->", two, two, out=a)
        assert a[()] == 2


def test_products_over_no_elements_are_zero(world):
    a, b = (Array.from_numpy(world, np.ones(shape)) for shape in ((0, 3), (0, 2)))
    assert outcore.einsum("ji,jk->ik", a, b).to_numpy().tolist() == [[0, 0]] * 3
    assert outcore.einsum("ij,kl->ik", a, b).shape == (0, 0)
    assert outcore.einsum("ij,ij->", a, a) == 0
    none = np.ones((0, 2))
    assert outcore.einsum("ik,kj->ij", none, none.T, symmetry="pair", world=world).shape == (0, 0)


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_arrays_of_numpy_without_elements_are_wrapped(world, shape):
    wrapped = Array.wrap(world, np.zeros(shape))
    wrapped += 1
    assert (wrapped.shape, wrapped.to_numpy().shape, wrapped.sum()) == (shape, shape, 0)


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_persistent_arrays_without_elements_open_again(world, tmp_path, shape):
    DiskArray(world, shape, path=tmp_path / "d", metadata="none").close()
    with DiskArray.open(world, tmp_path / "d") as found:
        assert (found.shape, found.metadata, found[...].shape) == (shape, "none", shape)
    Array(world, shape, path=tmp_path / "a").close()
    with Array.open(world, tmp_path / "a") as found:
        assert found.shape == shape
    Array.from_numpy(world, np.array(7.0), path=tmp_path / "b").close()
    with Array.open(world, tmp_path / "b") as found:
        assert (found.shape, found[()]) == ((), 7)
    with pytest.raises(OutcoreError, match="a persistent array has 1 to 8 dimensions"):
        DiskArray(world, (), path=tmp_path / "c")


def test_a_checkpoint_keeps_what_an_extended_array_is(world, tmp_path):
    x = elements((4, 4))
    x += x.T
    symmetric = Array.from_numpy(world, x, [outcore.Tiling(4, tile=3)] * 2, symmetry="symmetric(0,1)")
    single = Array.from_numpy(world, x, store_dtype="float32")
    sparse = BlockSparseArray(world, [[0, 2, 4], [0, 3]], [(1, 0)])
    sparse.put_tile((1, 0), np.ones((2, 3)))
    meta = {
        "energy": np.float64(-1.5),
        "cycle": np.int64(3),
        "converged": np.bool_(True),
        "list": [np.float32(0.5)],
    }
    checkpoint.save(world, tmp_path / "saved", {"a": symmetric, "b": single, "c": sparse}, meta)
    with checkpoint.load(world, tmp_path / "saved") as saved:
        assert saved.meta == {"energy": -1.5, "cycle": 3, "converged": True, "list": [0.5]}
        assert saved["a"].layout == symmetric.layout
        assert np.array_equal(saved["a"].to_numpy(), x)
        assert saved["b"].store_dtype == np.float32
        assert saved["c"].layout.stored == [(1, 0)]
        assert np.array_equal(saved["c"].to_numpy(), sparse.to_numpy())
        with saved.open("a") as file:  # dense, as other languages read it
            assert np.array_equal(file[...], x)


@pytest.mark.parametrize("dtype", ["?", "u1", "<f2", ">f8", ">i4", "u2", "i8", "<c8"])
def test_files_of_other_numbers_become_extended_arrays(world, tmp_path, dtype):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = x
    zarr.create_array(store=str(tmp_path / "x.zarr"), data=x)
    for found in (
        Array.from_hdf5(world, tmp_path / "x.h5", "x"),
        Array.from_zarr(world, tmp_path / "x.zarr"),
    ):
        assert found.dtype.kind == ("c" if dtype == "<c8" else "f")
        assert np.array_equal(found.to_numpy(), x)


def test_integers_that_no_float_holds_are_refused(world, tmp_path):
    h5py = pytest.importorskip("h5py")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.array([2**60 + 1])
    with pytest.raises(OutcoreError, match=r"integers above 2\^53 are not held"):
        Array.from_hdf5(world, tmp_path / "x.h5", "x")


def test_numpy_arrays_are_repeated_along_axes_as_numpy_does(world):
    x = elements((4, 3))
    a = Array.from_numpy(world, x, [outcore.Tiling(4, tile=3), outcore.Tiling(3, tile=2)])
    row, column = np.arange(3.0), np.arange(4.0)[:, None]
    assert np.array_equal((a + row).to_numpy(), x + row)
    assert np.array_equal((column * a).to_numpy(), column * x)
    a -= column
    assert np.array_equal(a.to_numpy(), x - column)
    with pytest.raises(TypeError, match="are not assigned: use put_tile"):
        a[...] = column


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_any_array_is_a_factor_of_a_contraction(world, kind):
    number = made(world, kind, np.array(3.0))
    two = Array.from_numpy(world, np.full(2, 2.0))
    assert outcore.einsum(",i->i", number, two).to_numpy().tolist() == [6, 6]


def test_a_masked_array_is_no_array_of_a_checkpoint(world, tmp_path):
    with pytest.raises(OutcoreError, match="whose mask would be lost"):
        checkpoint.save(world, tmp_path / "a", {"a": np.ma.masked_array([1.0, 2.0], [0, 1])})


def test_facts_may_be_numbers_of_more_digits_if_none_is_lost(world, tmp_path):
    checkpoint.save(world, tmp_path / "a", {}, {"x": np.longdouble(1.25)})
    with checkpoint.load(world, tmp_path / "a") as saved:
        assert saved.meta["x"] == 1.25
    with pytest.raises(OutcoreError, match="more digits"):
        checkpoint.save(world, tmp_path / "b", {}, {"x": np.longdouble(1) / 3})


def test_a_group_is_no_array(world, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("group")
    with pytest.raises(OutcoreError, match="no array but a group"):
        Array.from_hdf5(world, tmp_path / "a.h5", "group")
