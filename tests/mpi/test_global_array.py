"""Global and node arrays on several processes, once on one node and once with each process as a node."""

from __future__ import annotations

import errno
import threading
import time

import numpy as np
import pytest

from outcore import Distribution, GlobalArray, NodeArray, OutcoreError, World
from outcore import linalg as am

MEMORY = 64 << 20


@pytest.fixture(scope="module", params=["hosts", "processes"])
def world(request, comm):
    with World(comm, memory=MEMORY, nodes=request.param) as made:
        yield made


def positions(shape, dtype="float64"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def distributions(world, shape):
    """Arguments for a distribution of each kind."""
    cuts = [shape[0] * rank // world.size for rank in range(world.size)]
    yield {}
    yield {"block": 2}
    yield {"distribution": [sorted(set(cuts)), *([0] for _ in shape[1:])]}


def holding(world, values, **how):
    """An array with these values, each put by the process that holds it."""
    array = GlobalArray(world, values.shape, values.dtype, **how)
    parts = array.distribution.parts_of(world.rank, [0] * array.ndim, list(array.shape))
    for begin, end, _ in parts:
        box = tuple(map(slice, begin, end))
        array.put(box, values[box])
    array.sync()
    return array


def random_index(generator, shape):
    """Slices of any step, and integers."""
    index = []
    for extent in shape:
        if generator.random() < 0.2:
            index.append(int(generator.integers(-extent, extent)))
        else:
            bounds = [int(x) for x in generator.integers(-extent - 1, extent + 2, 2)]
            index.append(slice(*bounds, int(generator.choice([-3, -2, -1, 1, 1, 2, 4]))))
    return tuple(index)


def same_error(world, number, call, *texts):
    """The error is the same at all processes, word for word."""
    with pytest.raises(OutcoreError) as caught:
        call()
    assert caught.value.errno == number
    assert len(set(world.gather(str(caught.value)))) == 1
    for text in texts:
        assert text in str(caught.value)


# ---- transfers ----


@pytest.mark.parametrize("seed", range(5))
def test_sections_are_those_of_numpy(world, seed):
    generator = np.random.default_rng([seed, world.rank])
    shape = tuple(int(x) for x in np.random.default_rng(seed).integers(1, 9, 3))
    values = positions(shape)
    for how in distributions(world, shape):
        with holding(world, values, **how) as array:
            for _ in range(20):
                index = random_index(generator, shape)
                assert np.array_equal(array[index], values[index]), index


@pytest.mark.parametrize("seed", range(5))
def test_sections_are_written_as_numpy_does(world, seed):
    generator = np.random.default_rng(seed)
    shape = tuple(int(x) for x in generator.integers(1, 9, 3))
    for how in distributions(world, shape):
        expected = positions(shape)
        with holding(world, expected, **how) as array:
            for turn in range(10):
                index = random_index(generator, shape)
                value = generator.standard_normal(np.shape(expected[index]))
                expected[index] = value
                if turn % world.size == world.rank:
                    array[index] = value
                array.sync()
                assert np.array_equal(array[...], expected), index
                array.sync()


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_accumulates_of_all_processes_add_up(world, dtype):
    for how in distributions(world, (11, 7)):
        with GlobalArray(world, (11, 7), dtype, **how) as array:
            value = positions((9, 4), dtype)
            for _ in range(10):
                array.acc(np.s_[1:10, 2:6], value, alpha=3)
            array.sync()
            assert np.array_equal(array[1:10, 2:6], 30 * world.size * value)
            assert not array[:, :2].any()
            array.sync()


def test_accumulates_of_strided_sections_add_up(world):
    with GlobalArray(world, (12, 10)) as array:
        array.acc(np.s_[::3, ::-2], positions((4, 5)))
        array.sync()
        expected = np.zeros((12, 10))
        expected[::3, ::-2] = world.size * positions((4, 5))
        assert np.array_equal(array[...], expected)


def test_scattered_elements_arrive_and_add_up(world):
    shape = (13, 9)
    generator = np.random.default_rng(4)
    flat = generator.permutation(117)[:50]
    indices = np.column_stack(np.unravel_index(flat, shape))
    for how in distributions(world, shape):
        with GlobalArray(world, shape, **how) as array:
            if world.rank == world.size - 1:
                array.scatter(indices, flat + 1.0)
            array.sync()
            array.scatter_acc(indices, np.ones(50), alpha=0.5)
            array.sync()
            assert np.array_equal(array.gather(indices), flat + 1 + world.size / 2)
            assert np.count_nonzero(array[...]) == 50


def test_read_increments_hand_out_each_number_once(world):
    with GlobalArray(world, (5,), "int64") as array:
        mine = [array.read_increment(4) for _ in range(100)]
        taken = [number for numbers in world.gather(mine) for number in numbers]
        assert sorted(taken) == list(range(100 * world.size))


def test_many_transfers_are_under_way_at_once(world):
    values = positions((64, 64))
    with holding(world, values, block=5) as array:
        boxes = [np.s_[i : i + 7, 3 * j : 3 * j + 11] for i in range(0, 50, 5) for j in range(10)]
        requests = [array.get_async(box) for box in boxes]
        for box, request in reversed(list(zip(boxes, requests, strict=True))):
            assert np.array_equal(request.wait(), values[box])


def test_a_get_needs_no_help_of_its_target(world, shared_tmp_path):
    """The last process makes no call of the library until the others have got its elements."""
    values = positions((world.size, 1000))
    with holding(world, values) as array:
        last = world.size - 1
        if world.rank == last:
            deadline = time.monotonic() + 60
            while len(list(shared_tmp_path.iterdir())) < last:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        else:
            for _ in range(20):
                assert np.array_equal(array[last, :], values[last])
            (shared_tmp_path / str(world.rank)).touch()
        array.sync()


def test_a_request_outlives_its_array(world):
    values = positions((20, 20))
    request = holding(world, values).get_async(...)
    assert np.array_equal(request.wait(), values)
    world.barrier()


def test_patches_are_written_in_place(world):
    with GlobalArray(world, (8, 6), "int64") as array:
        array.local[...] = world.rank
        array.sync()
        for rank in range(world.size):
            begin, end = array.distribution.patch(rank)
            assert (array[tuple(map(slice, begin, end))] == rank).all()
        owners = [[array.distribution.owner([i, j]) for j in range(6)] for i in range(8)]
        assert np.array_equal(array[...], owners)


def test_arrays_that_nobody_closed_give_their_memory_back(world):
    for _ in range(10):  # together several times the budget
        array = GlobalArray(world, (world.size, 4 << 20), "int32")
        array.local[...] = 1
        world.barrier()
        del array
    with GlobalArray(world, (world.size, 4 << 20), "int32") as array:
        assert not array.local.any()


# ---- mathematics ----


def some(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


def test_mathematics_is_that_of_numpy(world):
    x, y = some((17, 13), 1), some((17, 13), 2)
    for how in distributions(world, x.shape):
        for other in distributions(world, x.shape):
            with (
                holding(world, x, **how) as a,
                holding(world, y, **other) as b,
                GlobalArray(world, x.shape, **how) as c,
                GlobalArray(world, x.shape[::-1], **other) as t,
            ):
                am.add(c, a, b, alpha=2, beta=-1)
                assert np.allclose(c[...], 2 * x - y)
                am.apply(lambda p, q: np.exp(p) * q, c, a, b)
                assert np.allclose(c[...], np.exp(x) * y)
                am.transpose(t, a)
                assert np.array_equal(t[...], x.T)
                assert np.isclose(am.dot(a, b), (x * y).sum())
                assert np.isclose(am.norm(a), np.linalg.norm(x))
                assert (am.min(a), am.max(a)) == (x.min(), x.max())
                world.barrier()


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex128"])
def test_mathematics_of_sections_is_that_of_numpy(world, dtype):
    x, y = (10 * some((17, 13), seed) for seed in (1, 2))
    x, y = x.astype(dtype), y.astype(dtype)
    here, there = np.s_[2:11, 3:12], np.s_[5:14, 1:10]
    for how in distributions(world, x.shape):
        with holding(world, x, **how) as a, holding(world, y) as b, holding(world, y, **how) as c:
            expected = y.copy()
            am.add(c.section(here), a.section(there), b.section(here), alpha=2, beta=-1)
            expected[here] = 2 * x[there] - y[here]
            am.scale(c.section(there), 3)
            expected[there] *= 3
            am.copy(c.section(np.s_[0:2, :]), a.section(np.s_[9:11, :]))
            expected[0:2] = x[9:11]
            am.fill(c.section(np.s_[16:, 5:]), 4)
            expected[16:, 5:] = 4
            assert np.allclose(c[...], expected)
            dot = (x[there] * y[here]).sum()
            assert np.isclose(am.dot(a.section(there), b.section(here)), dot, rtol=1e-4)
            world.barrier()


def test_products_are_those_of_numpy(world, monkeypatch):
    monkeypatch.setattr("outcore.linalg.matrices.TILE", 5)
    monkeypatch.setattr("outcore.linalg.matrices.DEPTH", 4)
    x, y = some((17, 13), 1), some((17, 11), 2)
    for how in distributions(world, (13, 11)):
        with holding(world, x) as a, holding(world, y, **how) as b, GlobalArray(world, (13, 11), **how) as c:
            am.matmul(c, a, b, transpose_a=True)
            assert np.allclose(c[...], x.T @ y)
            world.barrier()


def test_matrices_become_symmetric(world, monkeypatch):
    monkeypatch.setattr("outcore.linalg.matrices.FETCH_ELEMENTS", 9)
    x = some((14, 14), 1)
    for how in distributions(world, x.shape):
        with holding(world, x, **how) as a:
            am.symmetrize(a)
            assert np.allclose(a[...], (x + x.T) / 2)
            world.barrier()


def test_eigenvalues_are_known_to_all(world):
    pytest.importorskip("scipy")
    x = some((12, 12), 1)
    x = x + x.T
    with holding(world, x, block=3) as a, GlobalArray(world, (12, 12)) as v:
        values = am.eigh(a, v)
        assert np.allclose(values, np.linalg.eigvalsh(x))
        assert np.allclose(x @ v[...], v[...] * values)


# ---- errors ----


def test_more_than_the_budget_is_refused_at_all(world):
    same_error(world, errno.ENOMEM, lambda: GlobalArray(world, (1 << 30,)), "[1073741824]")
    with GlobalArray(world, 10) as array:  # the world is as before
        array.sync()


def test_different_arguments_are_refused_at_all(world):
    last = world.size - 1
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, 10 + (world.rank == last)), "other arguments")
    same_error(
        world, errno.EINVAL, lambda: GlobalArray(world, 10, "float32" if world.rank == last else "float64")
    )
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, 10, block=1 + world.rank))


def test_other_arrays_of_the_same_shape_are_refused_at_all(world):
    with GlobalArray(world, 10) as a, GlobalArray(world, 10) as b:
        same_error(world, errno.EINVAL, lambda: am.fill(b if world.rank else a, 1), "other arguments")


def test_arguments_that_are_wrong_at_one_process_are_refused_at_all(world):
    last = world.rank == world.size - 1
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, (2.5,) if last else (2,)))
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, 10, "float16" if last else "float64"))
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, (1,) * (9 if last else 8)))


def test_wrong_arguments_are_refused_at_all(world):
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, 10, "float16"), "float16")
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, (1,) * 9), "9 dimensions")
    too_many = Distribution.regular([99], world.size + 1)
    same_error(world, errno.EINVAL, lambda: GlobalArray(world, 99, distribution=too_many))


def test_another_collective_call_at_one_process_is_refused_at_all(world):
    with GlobalArray(world, 10) as array:
        same_error(
            world,
            errno.EINVAL,
            lambda: am.fill(array, 1) if world.rank else am.scale(array, 2),
            "instead",
        )
        same_error(world, errno.EINVAL, lambda: am.fill(array, world.rank), "other arguments")


def test_a_function_that_fails_at_one_process_fails_at_all(world):
    def fail_at_the_last(values):
        if world.rank == world.size - 1:
            raise ZeroDivisionError("only here")
        return values

    with GlobalArray(world, (4 * world.size, 3)) as array:
        same_error(world, None, lambda: am.apply(fail_at_the_last, array, array), "only here")
        am.fill(array, 2)
        assert am.sum(array) == 24 * world.size


def test_a_closed_array_says_so_at_all(world):
    array = GlobalArray(world, 10)
    array.close()
    with pytest.raises(OutcoreError, match="closed"):
        array.sync()
    same_error(world, errno.EBADF, lambda: am.fill(array, 1), "closed")


# ---- node arrays ----


def test_processes_of_a_node_share_a_node_array(world):
    used = world.budget.used_bytes
    with NodeArray(world, (world.node_size, 1001)) as array:
        array.view[world.node_rank, :] = world.rank
        array.barrier()
        mates = [rank for rank, node in enumerate(world.gather(world.node)) if node == world.node]
        assert np.array_equal(array.view[:, 1000], mates)
        array.barrier()
    assert world.budget.used_bytes == used


def test_nodes_do_not_wait_for_one_another(world):
    for _ in range(world.node + 1):  # a different number of calls on each node
        with NodeArray(world, 10 + world.node) as array:
            array.barrier()
    world.barrier()


def test_different_shapes_on_one_node_are_refused_there(world):
    if world.node_size == 1:
        pytest.skip("each process is a node")
    with pytest.raises(OutcoreError, match="other arguments"):
        NodeArray(world, 10 + world.node_rank)
    with pytest.raises(OutcoreError, match="node array"):
        NodeArray(world, 1 << 40)
    world.barrier()


@pytest.mark.parametrize("dropped", [False, True])
def test_closing_completes_requests_that_nobody_waited_for(world, dropped):
    values = positions((40, 30))
    array = GlobalArray(world, values.shape)
    array.put(np.s_[...], values) if world.rank == 0 else None
    array.sync()
    found = [np.zeros_like(values) for _ in range(20)]
    requests = [array.get_async(np.s_[...], out=each) for each in found]
    if dropped:
        requests.clear()  # which keep their memory until they are complete
    array.close()
    for each in found:
        assert (each == values).all()
    for request in requests:
        request.wait()
        assert request.test()
    with pytest.raises(OutcoreError) as caught:
        array.get(np.s_[...])
    assert caught.value.errno == errno.EBADF


def test_closing_waits_for_other_threads(world):
    values = positions((40, 30))
    array = GlobalArray(world, values.shape)
    errors: list[int | None] = []

    def use():
        try:
            while True:
                array.put(np.s_[...], values)
                array.acc(np.s_[...], values)
                array.get(np.s_[...])
        except OutcoreError as error:
            errors.append(error.errno)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for each in threads:
        each.start()
    array.close()
    with GlobalArray(world, values.shape) as after:  # in the same memory
        for each in threads:
            each.join()
        assert errors == [errno.EBADF] * 3
        after.sync()
        assert (after.get(np.s_[...]) == 0).all()
