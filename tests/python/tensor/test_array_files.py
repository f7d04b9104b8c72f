"""Extended arrays that outlast a run, and those of HDF5 and zarr."""

import errno
import json

import h5py
import numpy as np
import pytest
import zarr

import outcore
from outcore import Array, BlockSparseArray, OutcoreError, Tiling
from outcore.conformance.backends import DTYPES, LAYOUTS, O, V, reference


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


def made(world, name, dtype="float64", **options):
    whole = reference(LAYOUTS[name], dtype)
    return Array.from_numpy(world, whole, LAYOUTS[name], **options), whole


# ---- persistent arrays ----


@pytest.mark.parametrize("name", ["dense", "labels", "antisymmetric", "nothing"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_persistent_array_is_found_again(world, tmp_path, name, dtype):
    array, whole = made(world, name, dtype, path=tmp_path / "a", metadata=[1, "two"])
    array.close()
    with Array.open(world, tmp_path / "a") as found:
        assert (found.layout, found.dtype, found.metadata) == (LAYOUTS[name], np.dtype(dtype), [1, "two"])
        assert np.allclose(found.to_numpy(), whole)
        assert found.read_only
        if found.layout.stored:
            with pytest.raises(OutcoreError) as caught:
                found.put_tile(found.layout.stored[0], 0.0)
            assert caught.value.errno == errno.EROFS


def test_an_array_that_is_moved_to_a_path_lies_there_wherever_there_is_room(world, tmp_path):
    array, whole = made(world, "labels", where="process")
    array.move("auto", path=tmp_path / "a", metadata="moved")
    assert array.where == "disk"
    array.close()
    with Array.open(world, tmp_path / "a") as found:
        assert found.metadata == "moved"
        assert np.array_equal(found.to_numpy(), whole)


def test_an_array_on_disk_without_a_path_has_its_metadata(world):
    with Array(world, LAYOUTS["labels"], where="disk", metadata=[1, "two"]) as array:
        assert array.metadata == [1, "two"]


def test_what_was_flushed_is_found(world, tmp_path):
    array, whole = made(world, "labels", path=tmp_path / "a")
    array.flush({"cycle": 1})
    array *= 2
    array.flush()
    array.close()
    with Array.open(world, tmp_path / "a", read_only=False) as found:
        assert found.metadata == {"cycle": 1}
        assert np.allclose(found.to_numpy(), 2 * whole)
        found.__iadd__(found)
    with Array.open(world, tmp_path / "a") as found:
        assert np.allclose(found.to_numpy(), 4 * whole)
    memory, _ = made(world, "labels", where="process")
    with pytest.raises(OutcoreError, match="does not lie on disk"):
        memory.flush()


def test_elements_stored_with_fewer_digits_stay_within_the_bound(world, tmp_path):
    for dtype, stored in (("float64", "float32"), ("complex128", "complex64")):
        whole = reference(LAYOUTS["pair"], dtype)
        whole.flat[:1] = 0
        array = Array.from_numpy(
            world, whole * 1e-3, LAYOUTS["pair"], store_dtype=stored, path=tmp_path / stored, tolerance=1.0
        )
        assert array.nbytes * 2 == array.layout.elements * np.dtype(dtype).itemsize
        assert f"stored as {stored}" in repr(array)
        bound = array.storage_error
        found = array.to_numpy()
        assert found.dtype == dtype
        for part in (np.real, np.imag):
            exact = part(whole * 1e-3)
            canonical = [array.layout.box(tile) for tile in array.layout.stored]
            assert all(
                (
                    np.abs(part(found)[b] - exact[b]) <= bound.relative * np.abs(exact[b]) + bound.absolute
                ).all()
                for b in canonical
            )
        assert not np.array_equal(found, whole * 1e-3)
        array.close()
        with Array.open(world, tmp_path / stored) as again:
            assert (again.dtype, again.store_dtype) == (np.dtype(dtype), np.dtype(stored))
            assert np.array_equal(again.to_numpy(), found)


@pytest.mark.parametrize("where", ["process", "node", "global", "disk"])
def test_the_bound_holds_for_accumulates_and_for_tiny_numbers(world, where):
    with Array(world, [4], where=where, store_dtype="float32") as array:
        values = np.array([1.0, 1 / 3, 1e-46, -1e-40])
        array.put_tile((0,), values)
        bound = array.storage_error
        error = np.abs(array.get_tile((0,)) - values)
        assert (error <= bound.relative * np.abs(values) + bound.absolute).all()
        array.acc_tile((0,), values, alpha=2.0)
        assert np.allclose(array.get_tile((0,)), 3 * values, rtol=3e-7, atol=1e-44)
        for value in (np.nan, np.inf, -np.inf):
            array.put_tile((0,), np.full(4, value))
            assert np.array_equal(array.get_tile((0,)), np.full(4, value), equal_nan=True)
        with pytest.raises(OutcoreError, match="1e\\+60 is more than float32 holds") as caught:
            array.put_tile((0,), np.array([1.0, np.inf, 1e60, 0]))
        assert caught.value.errno == errno.ERANGE


def test_a_type_that_holds_no_other_is_refused(world):
    for dtype, stored in (("float32", "float64"), ("float64", "complex64"), ("complex128", "float32")):
        with pytest.raises(OutcoreError, match="cannot be stored"):
            Array(world, [3], dtype, store_dtype=stored)
    with pytest.raises(OutcoreError, match="elements of tensors are"):
        Array(world, [3], "int64")


def test_a_plain_or_damaged_array_is_refused_by_name(world, tmp_path):
    BlockSparseArray(world, [[0, 2]], [(0,)], path=tmp_path / "plain").close()
    with pytest.raises(OutcoreError, match="plain block-sparse") as caught:
        Array.open(world, tmp_path / "plain")
    assert caught.value.errno == errno.EINVAL
    facts = {"kind": "extended array", "version": 1, "dtype": "float64", "metadata": None}
    layout = outcore.Layout([2]).as_json()
    for name, change, number in (
        ("newer", {"version": 2, "layout": layout}, errno.ENOTSUP),
        ("without", {}, errno.EIO),
        ("other", {"layout": outcore.Layout([3]).as_json()}, errno.EIO),
        ("type", {"layout": layout, "dtype": "float32"}, errno.EIO),
        ("axes", {"layout": {**layout, "symmetry": [[[1, 0], 1]]}}, errno.EIO),
    ):
        BlockSparseArray(world, [[0, 2]], [(0,)], path=tmp_path / name, metadata=facts | change).close()
        with pytest.raises(OutcoreError) as caught:
            Array.open(world, tmp_path / name)
        assert caught.value.errno == number
        assert name in caught.value.path


def test_arguments_of_places_that_do_not_have_them_are_refused(world, tmp_path):
    for options, message in (
        ({"where": "process", "path": tmp_path / "x"}, "with a path"),
        ({"where": "global", "codec": "blosc2"}, "codec: options of arrays on disk"),
        ({"where": "disk", "distribution": [0]}, "distribution is of where='global'"),
        ({"where": "global", "distribution": [1]}, "rising from 0"),
    ):
        with pytest.raises(OutcoreError, match=message):
            Array(world, [O, V], **options)
    with pytest.raises(OutcoreError, match="has its symmetry"):
        Array(world, LAYOUTS["pair"], symmetry="pair")


# ---- others' arrays ----


def test_arrays_are_wrapped_where_they_are(world, tmp_path):
    x = np.random.default_rng(1).normal(size=(9, 7))
    with outcore.DiskArray(world, (9, 7), chunk=(4, 3)) as d, outcore.GlobalArray(world, (9, 7)) as g:
        d[...] = x
        g[...] = x
        b = BlockSparseArray(world, [[0, 4, 9], [0, 7]], [(1, 0)])
        b.put_tile((1, 0), x[4:])
        lower = np.where(np.arange(9)[:, None] < 4, 0, x)
        mine = x.copy()
        for other, where, whole in (
            (d, "disk", x),
            (g, "global", x),
            (mine, "process", x),
            (b, "disk", lower),
        ):
            with Array.wrap(world, other) as array:
                assert (array.where, array.shape) == (where, (9, 7))
                assert np.array_equal(array.to_numpy(), whole)
                array.__imul__(2)
                assert np.array_equal(np.asarray(array), 2 * whole)
        assert np.array_equal(d[...], 2 * x)
        assert np.array_equal(mine, 2 * x)
        assert np.array_equal(b.get_tile((1, 0)), 2 * x[4:])
        with pytest.raises(OutcoreError, match="no dense layout"):
            Array.wrap(world, d, outcore.Layout([9, 7], np.zeros((1, 1), bool)))
        with pytest.raises(OutcoreError, match="does not store the tiles"):
            Array.wrap(world, b, [9, 7])
    mine.flags.writeable = False
    assert Array.wrap(world, mine).read_only


def test_cuts_of_wrapped_disk_arrays_are_those_of_chunks(world):
    with outcore.DiskArray(world, (3000, 1000), chunk=(100, 64)) as d, Array.wrap(world, d) as array:
        rows, columns = array.layout.tilings
        assert all(cut % 100 == 0 for cut in rows.cuts)
        assert all(cut % 64 == 0 for cut in columns.cuts[:-1])
        assert 1 < len(rows) * len(columns) < 20


def test_a_function_makes_tiles(world):
    def function(box):
        return np.add.outer(*(np.arange(b.start, b.stop, dtype=float) for b in box))

    whole = np.add.outer(np.arange(7.0), np.arange(7.0))
    calls = []
    generated = Array.generated(
        world, [O, O], lambda box: calls.append(box) or function(box), symmetry="pair"
    )
    assert not calls
    assert generated.nbytes == 0
    assert np.array_equal(generated.to_numpy(), whole)
    stored = Array.from_function(world, [O, O], function, where="disk", symmetry="symmetric(0,1)")
    assert np.array_equal(stored.to_numpy(), whole)
    with pytest.raises(OutcoreError, match="does not have the symmetry"):
        Array.from_function(world, [O, O], function, symmetry="antisymmetric(0,1)")
    with pytest.raises(OutcoreError, match=r"made \(2,\) elements"):
        Array.from_function(world, [O, O], lambda box: np.zeros(2))
    with pytest.raises(OutcoreError, match="complex128"):
        Array.from_function(world, [O, O], lambda box: 1j * function(box))


def test_a_numpy_array_that_the_layout_cannot_hold_is_refused(world):
    x = reference(LAYOUTS["antisymmetric"], "float64")
    x[6, 0, 1, 2] += 1e-3
    with pytest.raises(OutcoreError, match=r"tile \(2, 0, 1, 1\).*minus tile.*differs by 0.001"):
        Array.from_numpy(world, x, LAYOUTS["antisymmetric"])
    Array.from_numpy(world, x, LAYOUTS["antisymmetric"], tolerance=0.1).close()
    y = reference(LAYOUTS["labels"], "float64")
    y[LAYOUTS["labels"].box((0, 0, 0))] = np.nan
    with pytest.raises(OutcoreError, match=r"has no such tile; it differs by inf"):
        Array.from_numpy(world, y, LAYOUTS["labels"])
    with pytest.raises(OutcoreError, match="of shape"):
        Array.from_numpy(world, y[1:], LAYOUTS["labels"])


# ---- HDF5 and zarr ----


@pytest.fixture(params=["hdf5", "zarr"])
def kind(request, world, tmp_path):
    """A kind of file: functions that write and read an array, and the view of another program."""
    place = tmp_path / f"file.{request.param}"
    if request.param == "hdf5":
        return (
            lambda array, **options: array.to_hdf5(place, "t", **options),
            lambda *args, **options: Array.from_hdf5(world, place, "t", *args, **options),
            lambda: h5py.File(place, "r")["t"],
            lambda values: h5py.File(place, "w").create_dataset("t", data=values).file.close(),
        )
    return (
        lambda array, **options: array.to_zarr(place, **options),
        lambda *args, **options: Array.from_zarr(world, place, *args, **options),
        lambda: zarr.open_array(place, mode="r"),
        lambda values: zarr.create_array(store=str(place), shape=values.shape, dtype=values.dtype,
                                         overwrite=True).__setitem__(..., values),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["dense", "labels", "antisymmetric", "nothing"])
def test_there_and_back(world, kind, name):
    write, read, others, _ = kind
    array, whole = made(world, name, where="disk")
    write(array)
    assert np.allclose(others()[...], whole)
    for where in ("auto", "process", "node", "global", "disk"):
        with read(where=where) as back:
            assert back.layout == array.layout
            assert where in ("auto", back.where)
            assert np.array_equal(back.to_numpy(), array.to_numpy())
    with pytest.raises(OutcoreError) as caught:
        write(array)
    assert caught.value.errno == errno.EEXIST


def test_arrays_of_others_are_read_as_what_they_are_said_to_be(world, kind):
    _, read, _, make = kind
    x = reference(LAYOUTS["antisymmetric"], "float64")
    make(x)
    assert read().layout.is_dense
    with read(LAYOUTS["antisymmetric"]) as array:
        assert array.layout.elements < x.size
        assert np.allclose(array.to_numpy(), x)
    x[0, 1, 0, 1] += 1
    x[1, 0, 0, 1] += 1
    make(x)
    with pytest.raises(OutcoreError, match=r"does not have the symmetry|differs by"):
        read(LAYOUTS["antisymmetric"])


def test_what_is_not_there_or_no_array_is_refused(world, kind, tmp_path):
    write, read, _, make = kind
    with pytest.raises(OutcoreError) as caught:
        read()
    assert caught.value.errno == errno.ENOENT
    array, _ = made(world, "dense")
    with pytest.raises(OutcoreError):
        write(array, chunks="nonsense")
    make(np.array([b"text"]))
    with pytest.raises(OutcoreError, match="elements of tensors are"):
        read()


def test_a_damaged_layout_is_refused(world, tmp_path):
    array, _ = made(world, "dense")
    array.to_hdf5(tmp_path / "a.h5", "t")
    for damage in ("{", json.dumps({"tilings": []}), json.dumps([])):
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["t"].attrs["outcore_layout"] = damage
        with pytest.raises(OutcoreError, match="outcore_layout"):
            Array.from_hdf5(world, tmp_path / "a.h5", "t")
    with pytest.raises(OutcoreError, match="'u'"):
        Array.from_hdf5(world, tmp_path / "a.h5", "u")


def test_names_say_where_it_lies(world, tmp_path):
    axis = Tiling(100, tile=50, name="o")
    array = Array(world, [axis, axis], where="disk", symmetry="symmetric(0,1)")
    assert repr(array) == "<outcore.Array (100, 100) float64, 3 of 4 tiles, 0.1 MB, disk>"
