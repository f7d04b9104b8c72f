"""An array times itself: half of a symmetric result is made, and put twice; how little such a product may move."""

from __future__ import annotations

import errno
import math

import numpy as np
import pytest

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.plan.bound import OF_ONE_ARRAY, MovedOnce, least_bytes, of_symmetric
from outcore.tensor.plan.plan import Plan
from outcore.tensor.program.einsum import einsum

SHAPES = {
    "ik,jk->ij": (400, 300),
    "ki,kj->ij": (300, 400),
    "ki,kj->ji": (300, 400),
    "aik,ajk->ij": (3, 400, 100),
    "bik,bjk->bij": (2, 400, 200),
    "Qia,Qjb->iajb": (300, 20, 21),
    "ikl,jkl->ij": (400, 15, 20),
}


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", memory="50MB", scratch=tmp_path) as made:
        yield made


def values(shape, dtype="float64"):
    random = np.random.default_rng(7)
    found = random.standard_normal(shape)
    return (found + 1j * random.standard_normal(shape) if dtype == "complex128" else found).astype(dtype)


def on_disk(world, array):
    made = outcore.DiskArray(world, array.shape, array.dtype)
    made.write_all(array)
    return made


def halves(plan):
    return [each.plan.choice.half for each in plan.statements]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("expression", SHAPES)
def test_results_are_those_of_numpy(world, expression, place, dtype):
    a = values(SHAPES[expression], dtype)
    given = a if place == "memory" else on_disk(world, a)
    expected = np.einsum(expression, a, a)
    out = np.empty_like(expected) if place == "memory" else outcore.DiskArray(world, expected.shape, dtype)
    memory = expected.nbytes // 3
    plan = einsum.plan(expression, given, given, out=out, memory=memory)
    assert halves(plan) == [True]
    _, counted = einsum(expression, given, given, out=out, plan=plan, report=True)
    found = out[...]
    assert np.allclose(found, expected, rtol=0, atol=1e-11)
    assert counted.actual.disk == plan.predicted.disk
    whole = 2 * np.einsum(expression, np.ones(a.shape), np.ones(a.shape)).sum()
    assert counted.actual.flops == plan.predicted.flops < 0.8 * whole


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_half_is_added_to_what_is_there(world, place):
    a, before = values((400, 300)), values((400, 400))
    out = before.copy() if place == "memory" else on_disk(world, before)
    _, counted = einsum("ik,jk->ij", a, a, out=out, memory="400kB", accumulate=True, scale=-2, report=True)
    assert halves(counted.plan) == [True]
    assert np.allclose(out[...], before - 2 * a @ a.T, rtol=0, atol=1e-11)


def test_tiles_of_extended_arrays(world):
    a = values((80, 60))
    given = outcore.Array.from_numpy(
        world, a, [outcore.Tiling(80, tile=9), outcore.Tiling(60, tile=11)], where="disk"
    )
    out = outcore.Array(world, [outcore.Tiling(80, tile=9)] * 2, where="disk")
    plan = einsum.plan("ik,jk->ij", given, given, out=out, memory="30kB")
    assert halves(plan) == [True]
    einsum("ik,jk->ij", given, given, out=out, plan=plan)
    assert np.allclose(out.to_numpy(), a @ a.T, rtol=0, atol=1e-11)


@pytest.mark.parametrize("expression", ["ik,kj->ij", "kil,jlk->ij", "ijk,ijl->ikjl"])
def test_where_exchange_makes_another_result_all_of_it_is_made(world, expression):
    a = values((30, 30) if expression == "ik,kj->ij" else (24, 24, 24))
    expected = np.einsum(expression, a, a)
    plan = einsum.plan(expression, a, a, memory=expected.nbytes // 2)
    found = einsum(expression, a, a, plan=plan)
    assert np.allclose(found, expected, rtol=0, atol=1e-11)
    if expression != "ijk,ijl->ikjl":
        assert halves(plan) == [False]


def test_equal_arrays_are_not_one(world):
    a = values((400, 300))
    assert halves(einsum.plan("ik,jk->ij", a, a.copy(), memory="400kB")) == [False]


def test_the_plan_of_one_array_is_refused_for_two(world):
    a = values((400, 300))
    plan = einsum.plan("ik,jk->ij", a, a, memory="400kB")
    assert halves(plan) == [True]
    with pytest.raises(OutcoreError, match="multiplied by itself") as caught:
        einsum("ik,jk->ij", a, a.copy(), plan=plan)
    assert caught.value.errno == errno.EINVAL
    assert halves(Plan.from_json(plan.as_json())) == [True]


def test_programs_move_what_they_have_planned(world):
    a = values((400, 300))
    given = outcore.Array.from_numpy(world, a, [outcore.Tiling(n, tile=20) for n in a.shape], where="disk")
    with outcore.Program(world, memory="400kB") as p:
        found = einsum("ik,jk->ij", given, given)
    plan = p.plan()
    p.run()
    assert np.allclose(found.to_numpy(), a @ a.T, rtol=0, atol=1e-11)
    assert p.report.moved_bytes == pytest.approx(plan.moved_bytes, rel=0.05)


# ---- bounds ----


def test_a_symmetric_result_has_the_bound_of_beaumont_and_others():
    rows, inner, words = 4000, 3000, 10**6
    moved = MovedOnce(8.0 * rows * inner, 8.0 * rows * inner, 0.0, one_array=True)
    found = least_bytes(of_symmetric(rows) * rows * rows * inner, moved, 8.0 * words, 8)
    assert found == pytest.approx(8 * (rows * (rows - 1) * inner / math.sqrt(2 * words) - 2 * words))


def test_an_array_that_fits_is_read_once():
    moved = MovedOnce(800.0, 800.0, 80.0, one_array=True)
    assert least_bytes(OF_ONE_ARRAY * 1000, moved, 1e6, 8) == 880


@pytest.mark.parametrize("memory", [60_000, 120_000, 400_000, 2_000_000])
@pytest.mark.parametrize("expression", ["ik,jk->ij", "ik,kj->ij"])
def test_no_run_moves_less_than_the_bound(world, expression, memory):
    a = on_disk(world, values((250, 250)))
    out = outcore.DiskArray(world, (250, 250))
    plan = einsum.plan(expression, a, a, out=out, memory=memory)
    _, counted = einsum(expression, a, a, out=out, plan=plan, report=True)
    assert counted.actual.disk == plan.predicted.disk >= plan.bound_bytes > 0
