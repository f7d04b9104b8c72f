"""`einsum` on several processes: NumPy's results, the same errors everywhere, nothing left waiting."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from conformance.random_arrays import elements, holding

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.einsum import einsum


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
        einsum("iak,kja->ji", *made, out=out, memory=memory, world=world, accumulate=True, scale=-1)
        np.testing.assert_allclose(out[...], 0 * expected, atol=1e-11)
        counted = einsum.last
        assert counted.actual.flops == 2 * 40 * 50 * 30 * 6
        if isinstance(out, outcore.DiskArray):
            # Once, or more often where inner indices are dealt out: measured rates decide.
            assert counted.actual.disk_written == counted.plan.predicted.disk_written >= 8 * 40 * 50
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
    """The last process alone finds its budget taken."""
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


def test_plans_are_the_same_at_all(world):
    made, _ = arrays(world, "disk")
    plan = einsum.plan("iak,kja->ji", *made, memory="50kB")
    assert world.gather(plan.as_json()) == [plan.as_json()] * world.size
    for array in made:
        array.close()


KINDS = ["numpy", "node", "global", "disk", "sparse"]
PLACES = ["process", "node", "global", "disk"]


@pytest.mark.parametrize("kind", [*KINDS, *(f"array: {place}" for place in PLACES)])
def test_results_go_into_arrays_of_all_kinds_that_are_there(world, kind):
    """All copies of them: each process and each node may have one."""
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
