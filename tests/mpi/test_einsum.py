"""`einsum` on several processes: NumPy's results, the same errors at all, and no process waits for ever."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from conformance.random_arrays import elements, holding

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.layout.operands import BoxOperand
from outcore.tensor.plan import loop, schedule
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.einsum import einsum
from outcore.tensor.run import contraction


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm):
    with outcore.World(comm, memory="100MB", nodes=request.param) as world:
        yield world


def arrays(world, kind, seed=0):
    random = np.random.default_rng(seed)
    values = random.standard_normal((40, 6, 30)), random.standard_normal((30, 50, 6))
    if kind == "numpy":
        return values, values
    made = []
    for each in values:
        if kind == "disk":
            array = outcore.DiskArray(world, each.shape)
            array.write_all(each)
        elif kind == "tiles":
            array = outcore.Array.from_numpy(
                world, each, [outcore.Tiling(extent, tile=7) for extent in each.shape], where="disk"
            )
        else:
            array = outcore.GlobalArray(world, each.shape)
            if world.rank == 0:
                array[...] = each
            array.sync()
        made.append(array)
    return made, values


@pytest.mark.parametrize("memory", ["20kB", "1MB"])
@pytest.mark.parametrize("kind", ["numpy", "global", "disk", "tiles"])
def test_results_are_those_of_numpy_everywhere(world, kind, memory):
    made, values = arrays(world, kind)
    expected = np.einsum("iak,kja->ji", *values)
    for out in (
        np.ones((50, 40)),
        outcore.DiskArray(world, (50, 40)),
        outcore.GlobalArray(world, (50, 40)),
    ):
        einsum("iak,kja->ji", *made, out=out, memory=memory, world=world)
        np.testing.assert_allclose(out[...], expected, rtol=1e-11, atol=1e-11)
        world.barrier()
        options = {"memory": memory, "world": world, "accumulate": True, "scale": -1, "report": True}
        _, counted = einsum("iak,kja->ji", *made, out=out, **options)
        np.testing.assert_allclose(out[...], 0 * expected, atol=1e-11)
        assert counted.actual.flops == 2 * 40 * 50 * 30 * 6
        if isinstance(out, outcore.DiskArray):
            # Once, or more often where inner indices are dealt out: measured rates decide.
            assert counted.actual.disk_written == counted.predicted.disk_written >= 8 * 40 * 50
        world.barrier()
        if not isinstance(out, np.ndarray):
            out.close()
    if kind != "numpy":
        for array in made:
            array.close()


def test_intermediate_arrays_and_a_symmetric_result(world):
    random = np.random.default_rng(1)
    t = random.standard_normal((4, 4, 9, 9))
    t = t + t.transpose(1, 0, 3, 2)
    b = random.standard_normal((5, 9, 9))
    tilings = [outcore.Tiling(4, tile=2)] * 2 + [outcore.Tiling(9, tile=4)] * 2
    stored = outcore.Array.from_numpy(world, t, outcore.Layout(tilings, symmetry="pair"), where="disk")
    with einsum("ijcd,Qac,Qbd->ijab", stored, b, b, symmetry="pair", memory="60kB") as found:
        whole = found.to_numpy()
        np.testing.assert_allclose(
            whole, np.einsum("ijcd,Qac,Qbd->ijab", t, b, b, optimize=True), rtol=1e-10, atol=1e-10
        )
        world.barrier()
    stored.close()


def test_an_error_of_one_process_is_raised_by_all(world):
    """Only the last process has no budget left."""
    made, _ = arrays(world, "disk")
    out = outcore.DiskArray(world, (50, 40))
    free = world.budget.limit_bytes - world.budget.used_bytes
    mine = world.rank == world.size - 1
    if mine:
        world.budget.reserve(free - 1000, "a test")
    try:
        with pytest.raises(OutcoreError, match="workspace of einsum") as caught:
            einsum("iak,kja->ji", *made, out=out, memory="500kB")
        assert caught.value.errno == errno.ENOMEM
        assert caught.value.rank == world.size - 1
    finally:
        if mine:
            world.budget.release(free - 1000)
    world.barrier()
    for array in (*made, out):
        array.close()


def test_a_write_that_fails_behind_the_next_product_is_raised_by_all(world, monkeypatch):
    made, values = arrays(world, "disk")
    out = outcore.DiskArray(world, (50, 40))
    plan = einsum.plan("iak,kja->ji", *made, out=out, memory="50kB", rates=slow_disk(world, world.node_size))
    (statement,) = plan.statements
    choice = replace(statement.plan.choice, most=(1, 10, 10, 30), parts=1, results=2)
    several = replace(statement.plan, choice=choice, unit=2)
    plan = replace(plan, statements=(replace(statement, plan=several),))
    put = BoxOperand.put

    class Failing:
        def __init__(self, requests):
            self.requests = requests

        def wait(self):
            for request in self.requests:
                request.wait()
            raise OutcoreError(errno.EIO, "write a result")

    monkeypatch.setattr(BoxOperand, "native", lambda self, use: None)
    monkeypatch.setattr(BoxOperand, "put", lambda *given, **add: [Failing(put(*given, **add))])
    with pytest.raises(OutcoreError, match="write a result") as caught:
        einsum("iak,kja->ji", *made, out=out, plan=plan)
    assert caught.value.errno == errno.EIO
    monkeypatch.undo()
    einsum("iak,kja->ji", *made, out=out, plan=plan)
    np.testing.assert_allclose(out[...], np.einsum("iak,kja->ji", *values), rtol=1e-11, atol=1e-11)
    world.barrier()
    for array in (*made, out):
        array.close()


def test_plans_are_the_same_at_all(world):
    made, _ = arrays(world, "disk")
    plan = einsum.plan("iak,kja->ji", *made, memory="50kB")
    assert world.gather(plan.as_json()) == [plan.as_json()] * world.size
    for array in made:
        array.close()


def slow_disk(world, sharing):
    return replace(
        ASSUMED, processes=world.size, nodes=world.node_count, sharing=sharing, read=1e8, write=1e8
    )


@pytest.mark.parametrize("where", ["disk", "global", "tiles"])
def test_processes_of_a_node_read_panels_once(world, where):
    """The bytes moved are those predicted, and fewer than if each process reads for itself."""
    n = 150
    random = np.random.default_rng(5)
    values = random.standard_normal((2, n, n))
    kind = {"global": "global", "disk": "disk", "tiles": "array: disk"}[where]
    a, b = (holding(world, kind, each) for each in values)
    read = {}
    with outcore.DiskArray(world, (n, n)) as out:
        for sharing in dict.fromkeys((1, world.node_size)):
            for accumulate in (False, True):
                rates = slow_disk(world, sharing)
                plan = einsum.plan("ik,kj->ij", a, b, out=out, memory="40kB", rates=rates)
                (statement,) = plan.statements
                assert statement.plan.sharing == sharing
                _, counted = einsum("ik,kj->ij", a, b, out=out, plan=plan, accumulate=accumulate, report=True)
                np.testing.assert_allclose(
                    out[...], (1 + accumulate) * values[0] @ values[1], rtol=1e-10, atol=1e-10
                )
                world.barrier()
                actual = counted.actual
                if not accumulate:
                    read[sharing] = actual.disk_read + actual.network
                    if sharing > 1:
                        predicted = plan.predicted
                        assert read[sharing] == predicted.disk_read + predicted.network
                        assert actual.disk_written == predicted.disk_written == 8 * n * n
    if len(read) > 1:
        assert read[world.node_size] < 1.25 * read[1] / np.sqrt(world.node_size)
    a.close()
    b.close()


class Failing(BoxOperand):
    """The last process of each node cannot read the third box, or is interrupted then."""

    def __init__(self, array, fail):
        super().__init__(array)
        self._fail, self._count = fail, 0

    def native(self, use):
        return None  # so that `get` is called

    def get(self, box, out):
        self._count += 1
        if self.world.node_rank == self.world.node_size - 1 and self._count == 3:
            self._fail()
        return super().get(box, out)


@pytest.mark.parametrize("how", ["raises", "is interrupted", "lacks memory", "cannot begin"])
def test_a_process_that_fails_ends_those_that_share_panels_with_it(world, monkeypatch, how):
    def fail():
        if how == "raises":
            raise OutcoreError(errno.EIO, "read a panel")
        if how == "is interrupted":
            os.kill(os.getpid(), signal.SIGINT)

    def refuse(*_):
        raise OutcoreError(errno.EIO, "read a panel")

    if how == "lacks memory" and world.node_size == 1:
        pytest.skip("no processes share panels")
    left, shared = [], contraction._shared

    def take_all(*given):  # memory of the results, after all have checked that there is enough
        memory = shared(*given)
        left.append(world.budget.limit_bytes - world.budget.used_bytes)
        world.budget.reserve(left[0], "all that is left")
        return memory

    says = {"is interrupted": "", "lacks memory": "workspace of einsum"}.get(how, "read a panel")
    a, b, out = (outcore.DiskArray(world, (300, 300)) for _ in range(3))
    bad = [Failing(each, fail) for each in (a, b)]  # any process reads one of them
    rates = slow_disk(world, world.node_size)
    plan = einsum.plan("ik,kj->ij", *bad, out=out, memory="40kB", rates=rates)
    assert plan.statements[0].plan.sharing == world.node_size
    with monkeypatch.context() as patch:
        if world.node_rank == world.node_size - 1 and how == "cannot begin":
            patch.setattr(loop, "boxes_of", refuse)
        if world.node_rank == world.node_size - 1 and how == "lacks memory":
            patch.setattr(contraction, "_shared", take_all)
        with pytest.raises((OutcoreError, KeyboardInterrupt)) as caught:
            einsum("ik,kj->ij", *bad, out=out, plan=plan)
    assert says in str(caught.value)
    for nbytes in left:
        world.budget.release(nbytes)
    world.barrier()
    einsum("ik,kj->ij", a, b, out=out, plan=plan)  # memory and signal handlers are as before
    world.barrier()
    for array in (a, b, out):
        array.close()


def test_a_plan_for_other_nodes_is_refused(world):
    made, _ = arrays(world, "disk")
    with outcore.DiskArray(world, (50, 40)) as out:
        rates = replace(slow_disk(world, 8), processes=8)
        plan = einsum.plan("iak,kja->ji", *made, out=out, memory="8kB", rates=rates)
        assert plan.statements[0].plan.sharing == 8
        with pytest.raises(OutcoreError, match="8 processes of a node share panels; here a node has"):
            einsum("iak,kja->ji", *made, out=out, plan=plan)
        world.barrier()
    for array in made:
        array.close()


KINDS = ["numpy", "node", "global", "disk", "sparse"]
PLACES = ["process", "node", "global", "disk"]


@pytest.mark.parametrize("kind", [*KINDS, *(f"array: {place}" for place in PLACES)])
def test_results_go_into_arrays_of_all_kinds_that_are_there(world, kind):
    """All copies get the result: each process or each node may have one."""
    random = np.random.default_rng(7)
    a, b, c = (random.standard_normal(shape) for shape in ((20, 30), (30, 16), (20, 16)))
    for accumulate in (False, True):
        out = holding(world, kind, c)
        einsum("ik,kj->ij", a, b, out=out, accumulate=accumulate, scale=0.5, memory=3000, world=world)
        world.barrier()
        found = elements(world, out.view if kind == "node" else out)
        np.testing.assert_allclose(found, 0.5 * (a @ b) + accumulate * c, rtol=1e-12, atol=1e-12)
        world.barrier()
        if kind != "numpy":
            out.close()


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("memory", [60_000, 300_000])
@pytest.mark.parametrize("kind", ["global", "disk"])
def test_half_of_a_symmetric_result_is_made_by_all(world, kind, memory, blocks, monkeypatch):
    options = schedule._all_options
    monkeypatch.setattr(  # whatever is faster
        schedule,
        "_all_options",
        lambda *given, **more: [
            each
            for each in options(*given, **more)
            if each.panels.half and (each.at_once.max() > 1) == blocks
        ],
    )
    random = np.random.default_rng(2)
    values = random.standard_normal((200, 90))
    make = outcore.DiskArray if kind == "disk" else outcore.GlobalArray
    with make(world, values.shape) as a, make(world, (200, 200)) as out:
        if kind == "disk":
            a.write_all(values)
        else:
            if world.rank == 0:
                a[...] = values
            a.sync()
        memory += 8 * blocks  # plans of the same memory are known
        _, counted = einsum("ik,jk->ij", a, a, out=out, memory=memory, report=True)
        (choice,) = [each.plan.choice for each in counted.plan.statements]
        assert choice.half and (choice.block > 1) == blocks
        np.testing.assert_allclose(out[...], values @ values.T, rtol=0, atol=1e-11)
        assert counted.actual.flops == counted.predicted.flops


def test_one_array_at_some_processes_and_two_at_others_is_refused(world):
    """Their plans would differ."""
    if world.size == 1:
        return
    a = np.ones((40, 30))
    second = a if world.rank == 0 else a.copy()
    with pytest.raises(OutcoreError, match="einsum"):
        einsum("ik,jk->ij", a, second, out=np.empty((40, 40)), memory=8000, world=world)


def test_processes_that_add_to_an_array_of_a_node_lose_nothing(world):
    """Inner indices are dealt out, so that all processes add to each element of the result."""
    n, inner = 600, 320
    random = np.random.default_rng(7)
    left = random.integers(-9, 9, (n, inner)).astype(float)
    right = random.integers(-9, 9, (inner, n)).astype(float)
    with outcore.NodeArray(world, (n, n)) as out:
        plan = einsum.plan("ik,kj->ij", left, right, out=out, memory="20MB", world=world)
        (statement,) = plan.statements
        choice = replace(statement.plan.choice, most=(1, n, n, 20), parts=16)
        in_parts = replace(statement, plan=replace(statement.plan, choice=choice))
        for _ in range(10):
            einsum("ik,kj->ij", left, right, out=out, plan=replace(plan, statements=(in_parts,)))
            np.testing.assert_array_equal(out.view, left @ right)
            out.barrier()
