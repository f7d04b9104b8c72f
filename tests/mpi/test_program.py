"""Programs on several processes: the same numbers with memory of any size; one process resumes the run of
many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conformance.random_arrays import elements, filled, holding

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.plan.rates import ASSUMED


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm):
    with outcore.World(comm, memory="100MB", nodes=request.param) as world:
        yield world


def recorded(world, t2, b, fails=False, **options):
    def step(box, x):
        if fails:
            raise ValueError("stop here")
        return x / (1 + abs(x))

    layout = outcore.Layout(
        [outcore.Tiling(4, tile=2)] * 2 + [outcore.Tiling(9, tile=4)] * 2, symmetry="pair"
    )
    with outcore.Program(world, **options) as p:
        t, bb = p.input(t2, "t2"), p.input(b, "B")
        r, y = p.output(p.array(t2.shape), "r"), p.output(p.array(layout), "y")
        e = p.output(p.array(()), "e")
        for _ in p.iterate(2):
            s = outcore.einsum("ijcd,Qac,Qbd->ijab", t, bb, bb)
            r += 0.5 * s - 0.25 * t
            y += r
            outcore.einsum("ijab,ijab->", r, r, out=e)
        p.map(step, r, out=r, text="step")
    return p, r, y, e


def given():
    random = np.random.default_rng(0)
    t2 = random.standard_normal((4, 4, 9, 9))
    return t2 + t2.transpose(1, 0, 3, 2), random.standard_normal((12, 9, 9))


def check(world, p, r, y, e):
    t2, b = given()
    once = 0.5 * np.einsum("ijcd,Qac,Qbd->ijab", t2, b, b, optimize=True) - 0.25 * t2
    np.testing.assert_allclose(r.result[...], 2 * once / (1 + abs(2 * once)), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(y.result.to_numpy(), 3 * once, rtol=1e-10, atol=1e-10)
    assert p.value(e) == pytest.approx(4 * (once**2).sum())
    world.barrier()
    r.result.close()
    y.result.close()


@pytest.mark.parametrize("memory", ["60kB", "20MB"])
def test_results_are_those_of_numpy(world, memory):
    t2, b = given()
    disk = outcore.DiskArray(world, b.shape)
    disk.write_all(b)
    p, r, y, e = recorded(world, t2, disk, memory=memory)
    plan = p.plan()
    assert world.gather(plan.as_json()) == [plan.as_json()] * world.size
    p.run()
    check(world, p, r, y, e)
    disk.close()


def test_what_many_processes_kept_fewer_go_on_with(world, comm, shared_tmp_path):
    path = str(shared_tmp_path / "kept")
    t2, b = given()
    p, *_ = recorded(world, t2, b, fails=True, memory="20MB", checkpoint=path, every=0)
    with pytest.raises(OutcoreError, match="stop here"):
        p.run()
    world.barrier()
    alone = world.split(0 if world.rank == 0 else -1)
    if alone is not None:
        with alone:
            p, r, y, e = recorded(alone, t2, b, memory="60kB", checkpoint=path, every=0)
            report = p.run(restart=True)
            assert report.restarted
            assert len(report.statements) == 1
            check(alone, p, r, y, e)
    world.barrier()


KINDS = ["numpy", "node", "global", "disk", "sparse", "array: process", "array: node", "array: disk"]


def changed(world, arrays, fails=False, **options):
    """Each input is doubled, and a product is added to it."""

    def half(box, x):
        return x / 2

    def stop(box, x):
        if fails:
            raise ValueError("stop here")
        return x

    with outcore.Program(world, **options) as p:
        inputs = [p.input(array, kind) for kind, array in zip(KINDS, arrays, strict=True)]
        for each in inputs:
            p.map(half, each, out=each)
            p.combine(3 * each, out=each, accumulate=True)
            outcore.einsum("ik,kj->ij", FACTOR, FACTOR, out=each, accumulate=True)
        for each in inputs:
            p.map(stop, each, out=each)
    return p


FACTOR = np.random.default_rng(3).standard_normal((16, 16))
FIRST = np.random.default_rng(4).standard_normal((16, 16))


def check_changed(world, arrays, rounds=1):
    for kind, array in zip(KINDS, arrays, strict=True):
        found = elements(world, array.view if kind == "node" else array)
        np.testing.assert_allclose(found, 2 * FIRST + FACTOR @ FACTOR, rtol=1e-12, atol=1e-12, err_msg=kind)
    world.barrier()
    for array in arrays[1:]:
        array.close()


@pytest.mark.parametrize("memory", ["8kB", "20MB"])
def test_inputs_of_all_kinds_are_changed_in_all_their_copies(world, memory):
    arrays = [holding(world, kind, FIRST) for kind in KINDS]
    changed(world, arrays, memory=memory).run()
    check_changed(world, arrays)


def test_changed_inputs_of_all_kinds_are_kept(world, shared_tmp_path):
    path = shared_tmp_path / "kept"
    with pytest.raises(OutcoreError, match="stop here"):
        changed(
            world, [holding(world, kind, FIRST) for kind in KINDS], fails=True, checkpoint=path, every=0
        ).run()
    world.barrier()
    alone = world.split(0 if world.rank == 0 else -1)
    if alone is not None:
        with alone:
            arrays = [holding(alone, kind, FIRST) for kind in KINDS]
            report = changed(alone, arrays, checkpoint=path, every=0).run(restart=True)
            assert report.restarted
            check_changed(alone, arrays)
    world.barrier()


def test_tiles_that_are_read_again_and_again_are_read_whole(world):
    """Arrays of tiles are not copied by parts that cut tiles."""
    layout = outcore.Layout([outcore.Tiling(16, [0, 3, 16])] * 2)
    tiles = filled(world, "sparse", layout, FIRST)
    with outcore.Program(world, memory="1MB") as p:
        x, y = p.input(tiles, "x"), p.output(p.array((16, 16)), "y")
        for _ in p.iterate(50):
            outcore.einsum("ij,jk->ik", x, FACTOR, out=y)
    p.run()
    np.testing.assert_allclose(elements(world, y.result), FIRST @ FACTOR, rtol=1e-12, atol=1e-12)
    y.result.close()
    tiles.close()


@pytest.mark.parametrize("text", ["ij,jl->il", "ij,il->jl", "ij,ij->"])
def test_operands_that_are_made_where_they_are_used(world, text):
    """Boxes along an axis of the result, and along a summed axis: the contribution of each counts once."""
    random = np.random.default_rng(4)
    a, b = random.standard_normal((200, 3)), random.standard_normal((3, 150))
    c = random.standard_normal({"jl": (150, 4), "il": (200, 4), "ij": (200, 150)}[text[3:5]])
    out = np.ones(np.einsum(text, a @ b, c).shape)  # at each process
    with outcore.Program(world, memory=160_000 // world.size) as p:
        x = outcore.einsum("ik,kj->ij", p.input(a), b)
        y = p.output(outcore.einsum(text, x, c), "y")
        outcore.einsum(text, x, c, out=p.input(out, "out"), accumulate=True)
    plan = p.plan(replace(ASSUMED, read=1e6, write=1e6, processes=world.size))
    assert [each.within is not None for each in plan.statements] == [False, True, True]
    p.run(plan=plan)
    expected = np.einsum(text, a @ b, c)
    np.testing.assert_allclose(p.value(y) if not y.shape else y.result[...], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(out, 1 + expected, rtol=1e-10, atol=1e-10)
    world.barrier()
    if y.shape:
        y.result.close()


def test_a_statement_that_many_have_begun_fewer_finish(world, comm, shared_tmp_path):
    """Additions before the stop count once."""
    slow = replace(ASSUMED, gemm=((16, 1e6), (1024, 1e6)), copy=1e6, processes=world.size)
    path = str(shared_tmp_path / "parts")
    random = np.random.default_rng(6)
    a, b = random.standard_normal((90, 60)), random.standard_normal((60, 70))

    def record(world, memory):
        with outcore.Program(world, memory=memory, checkpoint=path, every=0) as p:
            y = p.output(p.map(lambda box, v: v, np.ones((90, 70))), "y")
            outcore.einsum("ik,kj->ij", p.input(a), b, out=y, accumulate=True)
            n = p.output(outcore.einsum("ij,ij->", y, y), "n")
        return p, y, n

    def stop(now):
        if now.statement.startswith("y +=") and now.fraction > 0.4:
            raise ValueError("stop here")

    p, *_ = record(world, "20kB")
    with pytest.raises(OutcoreError, match="stop here"):
        p.run(plan=p.plan(slow), progress=stop)
    world.barrier()
    alone = world.split(0 if world.rank == 0 else -1)
    if alone is not None:
        with alone:
            p, y, n = record(alone, "60kB")
            begun = []
            assert p.run(restart=True, progress=lambda now: begun.append(now.statement)).restarted
            assert begun[0].startswith("y +=")
            np.testing.assert_allclose(y.result[...], 1 + a @ b, rtol=1e-11, atol=1e-11)
            assert p.value(n) == pytest.approx(((1 + a @ b) ** 2).sum())
            y.result.close()
    world.barrier()
