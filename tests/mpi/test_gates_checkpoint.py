"""Checkpoints and HDF5 files for which one process gives other arguments."""

from __future__ import annotations

import numpy as np
import pytest
from gates import NAME, PATHS, STRANGE, Calls, unpicklable

from outcore import DiskArray, checkpoint, hdf5

CALLS = Calls()
each = CALLS.each


def store_checkpoint(world, place):
    checkpoint.save(world, place, {"a": np.ones(3), "c": np.ones(3)})


def store_hdf5(world, place):
    h5py = pytest.importorskip("h5py")
    if world.rank == 0:
        with h5py.File(place, "w") as made:
            made["d"] = np.ones((4, 5))
    world.barrier()


@each("name", 5, None, NAME, b"bytes", STRANGE)
@each(
    "arrays",
    None,
    5,
    {"a": np.ones(4)},
    {"a": np.ones(3, np.float32)},
    {"a": np.ones(3, object)},
    {"b": np.ones(3)},
    {"a/b": np.ones(3)},
    {5: np.ones(3)},
    {"a": "text"},
    {},
    {unpicklable: np.ones(3)},
    STRANGE,
)
@each("meta", unpicklable, {1, 2}, "other", STRANGE)
@each("codec", "zip", 5, STRANGE)
@each("placement", "here", 5, STRANGE)
def save(world, paths, name="right", arrays="right", meta=None, **options):
    place = paths.new()
    arrays = {"a": np.ones(3)} if isinstance(arrays, str) else arrays
    checkpoint.save(world, place if name == "right" else name, arrays, meta, **options)


@each("name", 5, None, NAME, b"bytes", "other/name", STRANGE)
@each("key", "b", 5, None, unpicklable, STRANGE)
@each("into", None, 5, np.ones(4), np.ones(3, np.float32), STRANGE)
def load(world, paths, name="right", key="a", into="right"):
    place = paths.made(store_checkpoint, world)
    with checkpoint.load(world, place if isinstance(name, str) and name == "right" else name) as saved:
        assert saved[key].sum() == 3
        saved.read_all(key, np.ones(3) if isinstance(into, str) else into)


@each("file", *PATHS, None)
@each("dataset", 5, None, "other", STRANGE)
@each("compression", "zip", 99, unpicklable, STRANGE)
@each("no_such_option", 1)
def export_to_hdf5(world, paths, file="right", dataset="d", **options):
    pytest.importorskip("h5py")
    place = paths.new()
    with DiskArray(world, (4, 5)) as disk:
        hdf5.export_array(disk, place if file == "right" else file, dataset, **options)


@each("file", *PATHS, None)
@each("dataset", 5, None, "other", STRANGE)
@each("path", *PATHS)
@each("codec", "zip", 5, STRANGE)
@each("no_such_option", 1)
def import_from_hdf5(world, paths, file="right", dataset="d", **options):
    place = paths.made(store_hdf5, world)
    hdf5.import_array(world, place if file == "right" else file, dataset, **options).close()


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)
