"""Extended arrays on several processes: filled, moved, added and reduced, against NumPy; all get the
errors."""

import errno

import numpy as np
import pytest

import outcore
from outcore import Array, GlobalArray, Layout, OutcoreError, Tiling
from outcore.conformance.backends import LAYOUTS, O, V, reference

PLACES = ["auto", "process", "node", "global", "disk"]


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="128MB", nodes=request.param) as made:
        yield made


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", ["dense", "labels", "antisymmetric", "pair", "nothing"])
def test_arithmetic_and_reductions(world, name, where):
    layout = LAYOUTS[name]
    x, y = reference(layout, "float64"), reference(layout, "float64", 2)
    with Array.from_numpy(world, x, layout, where) as a, Array.from_numpy(world, y, layout, "disk") as b:
        for found, wanted in ((a + b, x + y), (a * b, x * y), (b - 2 * a, y - 2 * x), (a.transpose(), x.T)):
            assert np.allclose(found.to_numpy(), wanted)
            found.close()
        a.__isub__(b)
        a.axpy(0.5, b)
        x = x - y / 2
        assert np.allclose(a.to_numpy(), x)
        assert np.isclose(a.sum(), x.sum())
        assert np.isclose(a.norm(), np.linalg.norm(x))
        assert np.isclose(a.dot(b), (x * y).sum())
        assert (a.max(), a.min()) == (pytest.approx(x.max()), pytest.approx(x.min()))
        assert len(set(world.gather(a.norm()))) == 1
        a.sync()


@pytest.mark.parametrize("name", ["labels", "antisymmetric"])
def test_it_moves_everywhere(world, name):
    layout = LAYOUTS[name]
    x = reference(layout, "complex64")
    with Array.from_numpy(world, x, layout) as a:
        for where in ("process", "disk", "node", "global", "process", "global", "node", "disk"):
            a.move(where)
            assert a.where == where
            assert np.allclose(a.to_numpy(), x)
            a.sync()


def test_tiles_of_copies_are_not_put(world):
    with Array(world, [O, V], where="process") as a:
        assert a.read_only == (world.size > 1)
        if world.size > 1:
            with pytest.raises(OutcoreError, match=f"there are {world.size} copies"):
                a.put_tile((0, 0), 1.0)
    with Array(world, [O, V], where="node") as a:
        assert a.read_only == (world.nodes > 1)
        if world.nodes > 1:
            with pytest.raises(OutcoreError, match="copies"):
                a.acc_tile((0, 0), 1.0)


def test_a_distribution_says_who_has_what(world):
    layout = Layout([Tiling(8, tile=1)])
    with Array(world, layout, where="global", distribution=[0, 6][: world.size]) as a:
        owners = [a.owner((i,)) for i in range(8)]
        assert owners == ([0] * 6 + [1] * 2 if world.size > 1 else [0] * 8)
        assert [tile for tile in layout.stored if owners[tile[0]] == world.rank] == a.own_tiles()


def test_an_error_of_one_process_is_everybody_s(world):
    def fails(box):
        if world.size == 1 or box[0].start > 0:
            raise ZeroDivisionError("no such tile")
        return np.zeros([b.stop - b.start for b in box])

    for where in ("global", "disk", "node"):
        with pytest.raises(OutcoreError, match="ZeroDivisionError: no such tile"):
            Array.from_function(world, [O, V], fails, where=where)
    with Array.generated(world, [O, V], fails) as a, pytest.raises(OutcoreError, match="no such tile"):
        a.norm()


def test_arguments_that_differ_are_an_error_at_all(world):
    if world.size == 1:
        pytest.skip("one process")
    with pytest.raises(OutcoreError) as caught:
        Array(world, [O, V] if world.rank else [V, O])
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(OutcoreError, match="where='nowhere'"):
        Array(world, [O, V], where="nowhere" if world.rank == world.size - 1 else "disk")


def test_no_memory_at_one_process_is_an_error_at_all(world):
    before = world.budget.used_bytes
    if world.rank == world.size - 1:
        world.budget.reserve(world.budget.limit_bytes - before - 1000, "nearly all")
    try:
        with pytest.raises(OutcoreError) as caught:
            Array(world, [Tiling(100_000, tile=1000)], where="process")
        assert caught.value.errno == errno.ENOMEM
    finally:
        if world.rank == world.size - 1:
            world.budget.release(world.budget.limit_bytes - before - 1000)


def test_a_global_array_is_wrapped_where_it_is(world):
    with GlobalArray(world, (10, 12)) as g:
        x = np.arange(120.0).reshape(10, 12)
        if world.rank == 0:
            g[...] = x
        g.sync()
        a = Array.wrap(world, g, [Tiling(10, tile=3), Tiling(12, tile=5)])
        assert a.where == "global"
        assert np.array_equal(a.to_numpy(), x)
        a *= 2
        assert np.array_equal(g[...], 2 * x)
        a.close()
        g.sync()
        assert not g.closed


def test_persistent_arrays_are_opened_by_any_number_of_processes(world, shared_tmp_path, comm):
    layout = LAYOUTS["antisymmetric"]
    x = reference(layout, "float64")
    path = shared_tmp_path / "t2"
    Array.from_numpy(world, x, layout, path=path, overwrite=True, metadata={"cycle": 3}).close()
    with outcore.World("self", scratch=shared_tmp_path, memory="64MB") as alone, Array.open(alone, path) as a:
        assert a.layout == layout
        assert a.metadata == {"cycle": 3}
        assert np.array_equal(a.to_numpy(), Array.from_numpy(alone, x, layout).to_numpy())
    comm.Barrier()


@pytest.mark.processes(2)
@pytest.mark.parametrize("where", PLACES)
def test_hdf5_there_and_back(world, paths, where):
    layout = LAYOUTS["antisymmetric"]
    x = reference(layout, "float64")
    path = paths.new()
    with Array.from_numpy(world, x, layout, "global") as array:
        array.to_hdf5(path, "t")
        with pytest.raises(OutcoreError) as caught:
            array.to_hdf5(path, "t")
        assert caught.value.errno == errno.EEXIST
    with Array.from_hdf5(world, path, "t", where=where) as back:
        assert back.layout == layout
        assert np.allclose(back.to_numpy(), x)
    with pytest.raises(OutcoreError):
        Array.from_hdf5(world, path, "t", Layout([O, O, V, V], None, "symmetric(0,1)"), where=where)


@pytest.mark.processes(2)
@pytest.mark.parametrize("where", ["process", "node", "global", "disk"])
def test_what_nobody_holds_is_given_back_in_any_order(world, where):
    """Each process releases its results at a different time."""
    x = np.ones((8, 8))
    with Array.from_numpy(world, x, where=where) as a, Array.from_numpy(world, 3 * x, where=where) as b:
        used = []
        for _ in range(2):
            kept = []
            for turn in range(50):
                kept.append(a - b)
                assert kept[-1].norm() == 16
                if turn % (3 + world.rank) == 0:
                    kept.clear()
            outcore.einsum("ij,jk->ik", a, b, memory="8MB")
            kept.clear()
            world.barrier()
            used.append(world.budget.used_bytes)
        assert used[0] == used[1]
