"""Checkpoints on several processes: saved with some, loaded with others, damaged, interrupted."""

import errno
import subprocess
import sys

import numpy as np
import pytest

import outcore
from outcore import DiskArray, GlobalArray, OutcoreError, checkpoint
from outcore.base.errors import as_fields


@pytest.fixture(params=["hosts", "processes"])
def world(comm, shared_tmp_path, request):
    with outcore.World(comm, memory="500MB", scratch=shared_tmp_path, nodes=request.param) as world:
        yield world


@pytest.fixture
def name(shared_tmp_path):
    return shared_tmp_path / "job.checkpoint"


def filled(world, shape, value):
    array = GlobalArray(world, shape)
    array.local[...] = value
    array.sync()
    return array


def test_arrays_of_all_kinds_come_back(world, name):
    table = np.arange(12).reshape(3, 4)
    with filled(world, (50, 60), 2.5) as g, DiskArray(world, (40, 70), "int32", chunk=(16, 16)) as d:
        d.write_all(np.full((40, 70), 7, np.int32))
        arrays = {
            "t2": g,
            "integrals": d,
            "table": table,
            "empty": np.zeros((0, 3)),
            "scalar": np.float64(1.5),
        }
        checkpoint.save(world, name, arrays, {"cycle": 3})
    with checkpoint.load(world, name) as saved:
        assert saved.meta == {"cycle": 3}
        assert list(saved) == list(arrays)
        with saved["t2"] as t2:
            assert (t2[...] == 2.5).all()
            assert t2.shape == (50, 60)
            world.barrier()
        with saved["integrals"] as integrals:
            assert integrals.chunk == (16, 16)
            back = np.zeros((40, 70), np.int32)
            integrals.read_all(back)
            assert (back == 7).all()
        assert np.array_equal(saved["table"], table)
        assert saved["empty"].shape == (0, 3)
        assert saved["scalar"] == 1.5


def test_a_checkpoint_is_read_into_arrays_that_are_there(world, name):
    with filled(world, (20, 30), 4.0) as g:
        checkpoint.save(world, name, {"a": g})
    with filled(world, (20, 30), 0.0) as g:
        checkpoint.load(world, name).read_all("a", g)
        assert (g[...] == 4.0).all()
        world.barrier()


def test_the_newest_takes_the_place_of_the_one_before(comm, world, name):
    for cycle in range(3):
        with filled(world, (10, 10), cycle) as g:
            checkpoint.save(world, name, {"g": g}, cycle)
    saved = checkpoint.load(world, name)
    assert (saved.meta, saved.generation) == (2, 3)
    assert len(list(name.glob("arrays.*"))) == 1
    comm.Barrier()


def test_a_save_that_fails_leaves_the_one_before(world, name, monkeypatch):
    with filled(world, (10, 10), 1.0) as g:
        checkpoint.save(world, name, {"g": g}, "first")
        full = as_fields(OutcoreError(errno.ENOSPC, "write", detail="no room, say"), "")
        monkeypatch.setattr(DiskArray, "write_all_async", lambda self, *_, **__: self._native.refuse(full))
        with pytest.raises(OutcoreError, match="no room"):
            checkpoint.save(world, name, {"g": g}, "second")
        monkeypatch.undo()
    saved = checkpoint.load(world, name)
    assert saved.meta == "first"
    with saved["g"] as g:
        assert (g[...] == 1.0).all()
        world.barrier()


def test_names_that_differ_between_processes_are_refused(world, name):
    with pytest.raises(OutcoreError) as caught:
        checkpoint.save(world, name, {f"a{world.rank}": np.zeros(3)})
    assert caught.value.errno == errno.EINVAL


def test_a_name_that_is_a_path_is_refused(world, name):
    with pytest.raises(OutcoreError, match="letters"):
        checkpoint.save(world, name, {"../evil": np.zeros(3)})


def test_no_checkpoint_is_an_error_at_all(world, name):
    with pytest.raises(OutcoreError) as caught:
        checkpoint.load(world, name)
    assert caught.value.errno == errno.ENOENT


def test_a_disk_array_is_no_checkpoint_and_is_not_overwritten(world, name):
    DiskArray(world, 10, path=name).close()
    with pytest.raises(OutcoreError, match="no checkpoint"):
        checkpoint.load(world, name)
    with pytest.raises(OutcoreError) as caught:
        checkpoint.save(world, name, {"a": np.zeros(3)})
    assert caught.value.errno == errno.EEXIST


def test_one_process_loads_what_several_saved(comm, world, name):
    with filled(world, (50, 60), 2.5) as g:
        checkpoint.save(world, name, {"t2": g})
    code = f"""
import outcore
with outcore.World() as world, outcore.checkpoint.load(world, {str(name)!r})["t2"] as t2:
    assert world.size == 1 and (t2[...] == 2.5).all()
"""
    if comm.rank == 0:
        environment = {"PATH": "/usr/bin:/bin"}  # as if no launcher had started it
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    comm.Barrier()


def test_what_a_killed_first_save_left_is_replaced(comm, world, name):
    if comm.rank == 0:
        name.mkdir()
        (name / "component.0").write_bytes(b"half")
    comm.Barrier()
    checkpoint.save(world, name, {"a": np.arange(3)}, "whole")
    assert checkpoint.load(world, name).meta == "whole"


def test_a_directory_of_something_else_is_not_replaced(comm, world, name):
    if comm.rank == 0:
        name.mkdir()
        (name / "thesis.tex").write_text("text")
    comm.Barrier()
    with pytest.raises(OutcoreError, match=r"thesis\.tex"):
        checkpoint.save(world, name, {"a": np.arange(3)})
    assert (name / "thesis.tex").exists()


def test_a_global_array_without_elements_comes_back(world, name):
    with GlobalArray(world, (0, 4)) as nothing, filled(world, (3, 4), 1.0) as g:
        checkpoint.save(world, name, {"nothing": nothing, "g": g})
    saved = checkpoint.load(world, name)
    with saved["nothing"] as nothing, saved["g"] as g:
        assert nothing.shape == (0, 4)
        assert (g[...] == 1.0).all()
        world.barrier()


def test_words_that_one_process_cannot_keep_are_an_error_at_all(world, name):
    checkpoint.save(world, name, {"a": np.zeros(3)}, "first")
    with pytest.raises(OutcoreError, match="meta") as caught:
        checkpoint.save(world, name, {"a": np.ones(3)}, object() if world.rank == 1 else "second")
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(OutcoreError, match=r"letters|other arguments"):
        checkpoint.save(world, name, {world.rank: np.ones(3)})
    assert checkpoint.load(world, name).meta == "first"
