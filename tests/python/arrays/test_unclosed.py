"""Persistent arrays that their program leaves open: a normal end commits them, an error leaves them as they
were."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from outcore import Array, BlockSparseArray, DiskArray, OutcoreError, World
from outcore.job.unclosed import only_flushed

X = np.ones((4, 4))


def disk(world, path, **options):
    array = DiskArray(world, (4, 4), path=path, **options)
    array[...] = X
    return array


def sparse(world, path, **options):
    array = BlockSparseArray(world, [[0, 4], [0, 4]], [(0, 0)], path=path, **options)
    array.put_tile((0, 0), X)
    return array


def extended(world, path, **options):
    return Array.from_numpy(world, X, path=path, **options)


KINDS = [(disk, DiskArray), (sparse, BlockSparseArray), (extended, Array)]


def found(path, kind=DiskArray):
    with World("self") as world, kind.open(world, path) as array:
        return array.to_numpy()


@pytest.mark.parametrize(("make", "kind"), KINDS)
def test_the_end_of_the_world_commits(tmp_path, make, kind):
    with World("self", scratch=tmp_path) as world:
        array = make(world, tmp_path / "a")
        with pytest.warns(ResourceWarning, match=r"the array in .*/a was not closed: the end of its world"):
            world.close()
    array.close()  # is no error, and does nothing more
    assert np.array_equal(found(tmp_path / "a", kind), X)


@pytest.mark.parametrize(("make", "kind"), KINDS)
def test_an_array_that_nobody_holds_is_there_when_it_is_opened(tmp_path, make, kind):
    with World("self", scratch=tmp_path) as world:
        make(world, tmp_path / "a")
        with pytest.warns(ResourceWarning, match="committed, as no process holds it any more"):
            array = kind.open(world, tmp_path / "a")
        assert np.array_equal(array.to_numpy(), X)


@pytest.mark.parametrize(("make", "kind"), KINDS)
def test_an_error_leaves_what_was_committed_last(tmp_path, make, kind):
    with (
        pytest.warns(RuntimeWarning, match=r"/a was left open by an error: it keeps the state that was"),
        pytest.raises(KeyError),
        World("self", scratch=tmp_path) as world,
    ):
        array = make(world, tmp_path / "a")
        array.flush()
        if kind is DiskArray:
            array[...] = 2 * X
        else:
            array.put_tile((0, 0), 2 * X)
        raise KeyError
    assert np.array_equal(found(tmp_path / "a", kind), X)


@pytest.mark.parametrize(("make", "kind"), KINDS)
def test_an_error_in_the_block_of_an_array_leaves_it_too(tmp_path, make, kind):
    with (
        pytest.warns(RuntimeWarning, match="/a was left open by an error"),
        World("self", scratch=tmp_path) as world,
        pytest.raises(KeyError),
        make(world, tmp_path / "a"),
    ):
        raise KeyError
    with pytest.raises(OutcoreError, match="never committed"):
        found(tmp_path / "a", kind)


def test_what_is_closed_dropped_removed_or_only_read_is_not_told_of(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with World("self", scratch=tmp_path) as world:
            disk(world, tmp_path / "closed").close()
            sparse(world, tmp_path / "dropped").drop()
            disk(world, tmp_path / "removed").remove()
            read = DiskArray.open(world, tmp_path / "closed")
            with pytest.raises(KeyError), disk(world, tmp_path / "after an error") as later:
                raise KeyError
            later.close()
            assert read[0, 0] == 1
    assert found(tmp_path / "after an error")[0, 0] == 1
    assert not (tmp_path / "removed").exists()


def test_arrays_that_nobody_closes_give_their_memory_back(tmp_path):
    with World("self", scratch=tmp_path, memory="16MB") as world, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for number in range(30):
            DiskArray(world, 4, path=tmp_path / "a", overwrite=True, cache_bytes="2MB")[0] = number
        with DiskArray.open(world, tmp_path / "a") as array:
            assert array[0] == 29


@pytest.mark.parametrize(("last", "value"), [("", 1), ("del d", 1), ("raise ValueError", None)])
def test_the_end_of_the_interpreter(tmp_path, last, value):
    program = f"""import outcore
world = outcore.World("self")
d = outcore.DiskArray(world, 3, path="a")
d[...] = 1.0
{last}
"""
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", program]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if value is None:
        assert "RuntimeWarning: the array in a was left open by an error" in ended.stderr
        assert not os.path.exists(tmp_path / "a" / "manifest")
    else:
        assert (
            "ResourceWarning: the array in a was not closed: the end of its world commits it" in ended.stderr
        )
        assert found(tmp_path / "a")[0] == 1


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize("kind", [DiskArray, BlockSparseArray, Array])
def test_an_empty_path_is_refused(kind, open_):
    with World("self") as world, pytest.raises(OutcoreError, match="path is empty"):
        if open_:
            kind.open(world, "")
        else:
            kind(world, *{BlockSparseArray: ([[0, 2]], [(0,)])}.get(kind, ((2,),)), path="")


def test_a_forked_child_leaves_the_arrays_of_its_parent(tmp_path):
    with World("self", scratch=tmp_path) as world:
        array = disk(world, tmp_path / "a")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                world.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        array[0, 0] = 7
        array.close()
    assert found(tmp_path / "a")[0, 0] == 7


@pytest.mark.parametrize(("make", "kind"), KINDS)
def test_what_is_flushed_alone_can_be_opened_after_the_end_of_its_world(tmp_path, make, kind):
    with pytest.raises(KeyError), World("self", scratch=tmp_path) as world:
        array = only_flushed(make(world, tmp_path / "a"))
        array.flush()
        raise KeyError
    with World("self") as world, kind.open(world, tmp_path / "a", read_only=False) as again:
        assert np.array_equal(again.to_numpy(), X)
    array.close()  # is no error, and does nothing more
