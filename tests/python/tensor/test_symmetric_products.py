"""An array times itself: half of a symmetric result is computed, and put twice; lower bounds of the
traffic."""

from __future__ import annotations

import errno
from dataclasses import replace

import numpy as np
import pytest

import outcore
from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import numbered, plain
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.plan import Plan, contract
from outcore.tensor.plan.product_plan import Held, Planned, make_plan
from outcore.tensor.plan.rates import ASSUMED
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


@pytest.mark.parametrize(
    ("place", "dtype"),
    [
        ("memory", "float64"),
        ("disk", "float64"),
        ("memory", "complex128"),
        pytest.param("disk", "complex128", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("expression", SHAPES)
def test_results_are_those_of_numpy(world, expression, place, dtype):
    a = values(SHAPES[expression], dtype)
    given = a if place == "memory" else on_disk(world, a)
    expected = np.einsum(expression, a, a)
    out = np.empty_like(expected) if place == "memory" else outcore.DiskArray(world, expected.shape, dtype)
    memory = expected.nbytes // 3
    plan = einsum.plan(expression, given, given, out=out, memory=memory, rates=ASSUMED)
    assert halves(plan) == [True]
    _, counted = einsum(expression, given, given, out=out, plan=plan, report=True)
    found = out[...]
    assert np.allclose(found, expected, rtol=0, atol=1e-11)
    assert counted.actual.disk == plan.predicted.disk
    whole = 2 * np.einsum(expression, np.ones(a.shape), np.ones(a.shape)).sum()
    assert counted.actual.flops == plan.predicted.flops < 0.8 * whole


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_half_is_added_to_what_is_there(world, place, monkeypatch):
    a, before = values((400, 300)), values((400, 400))
    out = before.copy() if place == "memory" else on_disk(world, before)
    monkeypatch.setattr("outcore.tensor.program.einsum.rates_of", lambda _: ASSUMED)
    _, counted = einsum("ik,jk->ij", a, a, out=out, memory="400kB", accumulate=True, scale=-2, report=True)
    assert halves(counted.plan) == [True]
    assert np.allclose(out[...], before - 2 * a @ a.T, rtol=0, atol=1e-11)


def test_tiles_of_extended_arrays(world):
    a = values((80, 60))
    given = outcore.Array.from_numpy(
        world, a, [outcore.Tiling(80, tile=9), outcore.Tiling(60, tile=11)], where="disk"
    )
    out = outcore.Array(world, [outcore.Tiling(80, tile=9)] * 2, where="disk")
    plan = einsum.plan("ik,jk->ij", given, given, out=out, memory="30kB", rates=ASSUMED)
    assert halves(plan) == [True]
    einsum("ik,jk->ij", given, given, out=out, plan=plan)
    assert np.allclose(out.to_numpy(), a @ a.T, rtol=0, atol=1e-11)


@pytest.mark.parametrize("expression", ["ik,kj->ij", "kil,jlk->ij", "ijk,ijl->ikjl"])
def test_where_exchange_makes_another_result_all_of_it_is_made(world, expression):
    a = values((30, 30) if expression == "ik,kj->ij" else (24, 24, 24))
    expected = np.einsum(expression, a, a)
    plan = einsum.plan(expression, a, a, memory=expected.nbytes // 2, rates=ASSUMED)
    found = einsum(expression, a, a, plan=plan)
    assert np.allclose(found, expected, rtol=0, atol=1e-11)
    if expression != "ijk,ijl->ikjl":
        assert halves(plan) == [False]


def test_equal_arrays_are_not_one(world):
    a = values((400, 300))
    assert halves(einsum.plan("ik,jk->ij", a, a.copy(), memory="400kB", rates=ASSUMED)) == [False]


def test_the_plan_of_one_array_is_refused_for_two(world):
    a = values((400, 300))
    plan = einsum.plan("ik,jk->ij", a, a, memory="400kB", rates=ASSUMED)
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


# ---- triangle blocks ----


def in_blocks(given, out):
    """A plan whose tasks make four panels of 60 rows and columns each."""
    choice = Choice("result", False, (1, 60, 60, 25), (1, 1, 1, 1), results=4, half=True, block=4)
    facts = numbered([given, given, out], [operand(each).facts for each in (given, given, out)])
    expression = parse("ik,jk->ij", [given.shape, given.shape])
    return contract(expression, facts, 1 << 20, ASSUMED, choices=[choice])


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_result_in_triangle_blocks_is_that_of_numpy(world, dtype, place):
    a = values((420, 200), dtype)
    given = a if place == "memory" else on_disk(world, a)
    out = np.zeros((420, 420), dtype) if place == "memory" else outcore.DiskArray(world, (420, 420), dtype)
    plan = in_blocks(given, out)
    _, counted = einsum("ik,jk->ij", given, given, out=out, plan=plan, report=True)
    assert np.allclose(out[...], a @ a.T, rtol=0, atol=1e-11)
    assert counted.actual.disk == plan.predicted.disk
    assert counted.actual.copied == plan.predicted.copied
    # Seven blocks of three panels each, of which the last range of inner indices is sometimes here already.
    read = plan.predicted.disk_read if place == "disk" else plan.predicted.copied - out.nbytes
    assert 2.6 * a.nbytes < read <= 3 * a.nbytes


def test_plans_in_blocks_are_values(world):
    given, out = on_disk(world, values((420, 200))), outcore.DiskArray(world, (420, 420))
    plan = in_blocks(given, out)
    assert Plan.from_json(plan.as_json()) == plan
    assert "einsum ik,jk->ij" in plan.text()  # of one panel after another, which C knows


def test_panels_of_one_array_serve_on_both_sides(world):
    """On the diagonal a panel is read once."""
    a = on_disk(world, values((400, 300)))
    out = outcore.DiskArray(world, (400, 400))
    plan = einsum.plan("ik,jk->ij", a, a, out=out, memory="2MB", rates=ASSUMED)
    assert plan.predicted.disk_read == a.nbytes
    _, counted = einsum("ik,jk->ij", a, a, out=out, plan=plan, report=True)
    assert counted.actual.disk_read == a.nbytes


def square_of_one_array(rows, inner):
    one = replace(plain((rows, inner), np.dtype(float), "disk"), array=0)
    extents = {"i": rows, "j": rows, "k": inner}
    out = plain((rows, rows), np.dtype(float), "disk")
    return ProductProblem(binary("ik", "jk", "ij", extents), extents, one, one, out)


@pytest.mark.parametrize("share", [0.1, 1 / 30, 0.01])
def test_the_search_takes_triangle_blocks_where_they_read_less(share):
    rows = inner = 16000
    problem = square_of_one_array(rows, inner)
    memory = int(share * 2 * 8 * rows * inner)
    found = make_plan(problem, memory, ASSUMED)
    simple = make_plan(replace(problem, simple=True), memory, ASSUMED)
    assert found.choice.half and found.choice.block > 1
    assert found.bound_bytes <= found.predicted.disk < 0.9 * simple.predicted.disk
    assert found.workspace_bytes <= memory


@pytest.mark.parametrize("times", [24, 38, 53, 100, 116, 140])
def test_blocks_come_near_the_bound_where_the_disk_takes_longest(times):
    """Of an operand so many times as large as memory, which has just the pairs of a line of a plane."""
    problem = square_of_one_array(6000, 6000)
    rates = replace(ASSUMED, gemm=((16, 1e15),), read=1e7, write=1e7)
    plan = make_plan(problem, 8 * 6000 * 6000 // times, rates)
    assert 1 < plan.over_bound < 1.25


@pytest.mark.parametrize("rows, block", [(60, 4), (20, 40), (14, 16)])
def test_panels_that_are_counted_are_those_of_the_slots(rows, block):
    problem = square_of_one_array(420, 200)
    choice = Choice("result", False, (1, rows, rows, 40), (1, 1, 1, 1), results=block, half=True, block=block)
    planned = Planned(problem, make_plan(problem, 1 << 20, ASSUMED, choice))
    assert planned.at_once > 1
    held, (steps,) = Held(planned.plan.slots[0]), planned.dealt(1)
    come = [
        held.take(panel)[1] for task in planned.tasks for step in task for _, panel in planned.wanted(step)
    ]
    assert _core.fetched_panels(steps, planned.plan.slots).ravel().tolist() == come


@pytest.mark.parametrize("slots", [(1, 0), (0, 2), (2, -1)])
def test_panels_of_a_step_without_room_are_not_counted(slots):
    with pytest.raises(OutcoreError, match="no room for those of a step") as caught:
        _core.fetched_panels(np.zeros((1, 4), np.int32), slots)
    assert caught.value.errno == errno.EINVAL


# ---- bounds ----


@pytest.mark.parametrize("memory", [60_000, 120_000, 400_000, 2_000_000])
@pytest.mark.parametrize("expression", ["ik,jk->ij", "ik,kj->ij"])
def test_no_run_moves_less_than_the_bound(world, expression, memory):
    a = on_disk(world, values((250, 250)))
    out = outcore.DiskArray(world, (250, 250))
    plan = einsum.plan(expression, a, a, out=out, memory=memory, rates=ASSUMED)
    _, counted = einsum(expression, a, a, out=out, plan=plan, report=True)
    assert counted.actual.disk == plan.predicted.disk >= plan.bound_bytes > 0
