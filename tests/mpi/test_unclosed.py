"""Persistent arrays that are left open, on several processes."""

import warnings

import numpy as np
import pytest

import outcore
from outcore import Array, DiskArray, OutcoreError

pytestmark = pytest.mark.processes(2)
X = np.ones((4, 4))


def made(comm, scratch):
    return outcore.World(comm, memory="64MB", scratch=scratch)


def value_in(comm, path):
    with made(comm, None) as world, DiskArray.open(world, path) as array:
        return array[0, 0]


def test_processes_may_let_go_of_an_array_at_different_times(comm, shared_tmp_path):
    with made(comm, shared_tmp_path) as world, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        before = None
        for number in range(6):
            array = DiskArray(world, (4, 4), path=shared_tmp_path / f"a{number}", cache_bytes="2MB")
            array[comm.rank] = 2.0
            world.barrier()
            if comm.rank == 0:
                del array  # into which the other process still puts its parts
            else:
                array[0] = 3.0
            world.barrier()
            array = None
            DiskArray(world, 4).close()
            before = before or world.budget.used_bytes
            assert world.budget.used_bytes == before
            with DiskArray.open(world, shared_tmp_path / f"a{number}") as array:
                assert array[0, 0] == 3.0
        tiles = Array.from_numpy(world, X, path=shared_tmp_path / "tiles")
        assert tiles.sum() == 16
    with made(comm, shared_tmp_path) as world, Array.open(world, shared_tmp_path / "tiles") as again:
        assert again.sum() == 16


def test_an_error_at_one_process_leaves_the_last_state(comm, shared_tmp_path):
    path = shared_tmp_path / "a"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with made(comm, shared_tmp_path) as world:
                array = DiskArray(world, (4, 4), path=path)
                array.write_all(X)
                array.flush()
                array.write_all(2 * X)
                if comm.rank == comm.size - 1:
                    raise KeyError
        except KeyError:
            pass
    lost = [str(each.message) for each in told if each.category is RuntimeWarning]
    assert len(lost) == (comm.rank == 0)
    assert all("it keeps the state that was committed last" in each for each in lost)
    comm.Barrier()
    assert value_in(comm, path) == 1


def test_an_empty_path_is_refused_at_all(comm, shared_tmp_path):
    with made(comm, shared_tmp_path) as world, pytest.raises(OutcoreError, match="path is empty"):
        DiskArray(world, 3, path="" if comm.rank == 0 else shared_tmp_path / "a")
