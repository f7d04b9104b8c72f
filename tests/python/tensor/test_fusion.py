"""Intermediate arrays that are never stored: the statements that use them compute them in boxes, or recompute
them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.fusion import candidates
from outcore.tensor.program.place import Solver

SLOW = replace(ASSUMED, read=1e6, write=1e6)  # a disk that does not pay
FAST = replace(ASSUMED, read=1e15, write=1e15)


@pytest.fixture
def world():
    with outcore.World("self", memory="200MB") as world:
        yield world


def matrices(*shapes):
    random = np.random.default_rng(3)
    return [random.standard_normal(shape) for shape in shapes]


def without(program, rates):
    """The best plan in which every array is stored."""
    solver = Solver(program, program.memory, rates)
    stored = Solver(program, program.memory, rates)
    stored.made_within.clear()
    stored.longer.clear()
    return solver.solve(), stored.solve()


def on_disk(world, values):
    array = outcore.DiskArray(world, values.shape)
    array.write_all(values)
    return array


def chain(world, first, second, third, text, memory, **options):
    with outcore.Program(world, memory=memory, **options) as p:
        a, b, c = (p.input(each, name) for each, name in zip((first, second, third), "abc", strict=True))
        x = outcore.einsum("ik,kj->ij", a, b)
        y = p.output(outcore.einsum(text, x, c), "y")
    return p, y


@pytest.mark.parametrize("text", ["ij,jl->il", "ij,il->jl", "ij,ij->ij"])
def test_what_one_statement_uses_is_made_box_by_box(world, text):
    a, b = matrices((400, 3), (3, 300))
    (c,) = matrices({"jl": (300, 5), "il": (400, 5), "ij": (400, 300)}[text[3:5]])
    arrays = [on_disk(world, each) for each in (a, b, c)]
    p, y = chain(world, *arrays, text, "200kB")
    plan, stored = without(p, SLOW)
    within = plan.statements[1].within
    assert within is not None
    assert len(within.cuts) > 3
    assert plan.statements[0].skipped
    assert "x3" not in plan.where
    assert plan.moved_bytes < stored.moved_bytes - 2 * 8 * 400 * 300 * 0.9  # neither written nor read
    assert max(plan.memory) <= 200_000
    report = p.run(plan=plan)
    expected = np.einsum(text, a @ b, c)
    np.testing.assert_allclose(y.result[...], expected, rtol=1e-10, atol=1e-10)
    assert report.moved_bytes == pytest.approx(plan.moved_bytes, rel=0.02)
    y.result.close()
    for array in arrays:
        array.close()


def test_the_operand_of_a_function_is_made_box_by_box(world):
    a, b, c = matrices((400, 3), (3, 300), (400, 300))
    seen = []

    def function(box, x, y):
        seen.append(box)
        np.testing.assert_array_equal(y, c[box])
        return x + y

    with outcore.Program(world, memory="300kB") as p:
        m = p.input(a)
        x = outcore.einsum("ik,kj->ij", m, b)
        y = p.output(p.map(function, x, on_disk(world, c)), "y")
        y += 2 * outcore.einsum("ik,kj->ij", m, b)
    plan = p.plan(SLOW)
    assert sum(each.skipped for each in plan.statements) == 2
    p.run(plan=plan)
    np.testing.assert_allclose(y.result[...], 3 * (a @ b) + c, rtol=1e-10, atol=1e-10)
    assert sum(math.prod(side.stop - side.start for side in box) for box in seen) == 400 * 300
    y.result.close()


def test_what_is_cheap_is_made_again_in_each_iteration(world):
    a, b, c = matrices((400, 2), (2, 300), (300, 2))
    for rates, again in ((SLOW, True), (FAST, False)):
        with outcore.Program(world, memory="200kB") as p:
            x = outcore.einsum("ik,kj->ij", p.input(a), b)
            y = p.output(p.array((400, 2)), "y")
            for _ in p.iterate(4):
                outcore.einsum("ij,jl->il", x, c, out=y, accumulate=True)
        plan = p.plan(rates)
        assert plan.statements[0].skipped == again
        assert len(p.run(plan=plan).statements) == (4 if again else 5)
        np.testing.assert_allclose(y.result[...], 4 * a @ b @ c, rtol=1e-10, atol=1e-10)
        y.result.close()


def test_tiles_are_not_cut(world):
    a, b, c = matrices((60, 4), (4, 60), (60, 6))
    rows = outcore.Tiling(60, [0, 7, 19, 20, 44, 60])
    tiled = [
        outcore.Array.from_numpy(world, a, [rows, outcore.Tiling(4)], "disk"),
        outcore.Array.from_numpy(world, c, [outcore.Tiling(60, tile=9), outcore.Tiling(6)], "disk"),
    ]
    layout = outcore.Layout([rows, 6])
    with outcore.Program(world, memory="28kB") as p:
        x = outcore.einsum("ik,kj->ij", p.input(tiled[0]), b)
        y = p.output(p.array(layout), "y")
        outcore.einsum("ij,jl->il", x, tiled[1], out=y)
    plan = p.plan(SLOW)
    within = plan.statements[1].within
    assert within is not None
    assert set(within.cuts) <= set(rows.cuts if within.axis == 0 else tiled[1].layout.tilings[0].cuts)
    p.run(plan=plan)
    np.testing.assert_allclose(y.result.to_numpy(), a @ b @ c, rtol=1e-10, atol=1e-10)
    y.result.close()


def numbers(program):
    return set(candidates(program))


def test_what_cannot_be_left_out_is_stored(world):
    (a,) = matrices((20, 20))
    with outcore.Program(world, memory="1MB") as p:
        m = p.input(a, "m")
        changed = p.array((20, 20), name="changed")
        changed[...] = m
        first = outcore.einsum("ij,jk->ik", changed, m)  # of an array that changes before it is used
        changed += m
        outcore.einsum("ij,jk->ik", first, m, out=changed)
        twice = outcore.einsum("ij,jk->ik", m, m)
        p.output(outcore.einsum("ij,jk->ik", twice, twice), "y")
        carried = p.array((20, 20), name="carried")
        for _ in p.iterate(2):
            outcore.einsum("ij,jk->ik", carried, m, out=p.array((20, 20)))
            outcore.einsum("ij,jk->ik", m, m, out=carried)
        inner = outcore.einsum("ij,jk->ik", m, m)
        for _ in p.iterate(2):
            outcore.einsum("ij,jk->ik", inner, m, out=changed)
    assert numbers(p) == {inner.number}
    p.run()
    np.testing.assert_allclose(p.variables[-1].shape, (20, 20))


def program_of(world, kind, memory):
    a, b, c = matrices((60, 4), (4, 50), (50, 30))
    with outcore.Program(world, memory=memory) as p:
        m, n, k = p.input(on_disk(world, a), "m"), p.input(b, "n"), p.input(on_disk(world, c), "k")
        x = outcore.einsum("ik,kj->ij", m, n)
        if kind == "two":
            y = outcore.einsum("ij,jl->il", x, k)
            p.output(outcore.einsum("ij,il->jl", x, y), "z")
        elif kind == "chain":
            y = outcore.einsum("ij,jl->il", x, k)
            z = outcore.einsum("il,jl->ij", y, k)
            p.output(outcore.einsum("ij,ij->j", z, x), "z")
        else:
            z = p.output(p.array((60, 30)), "z")
            for _ in p.iterate(3):
                outcore.einsum("ij,jl->il", x, k, out=z, accumulate=True)
    return p


@pytest.mark.parametrize(
    ("kind", "memory"),
    [
        *(("two", 9_000), ("two", 60_000), ("chain", 20_000), ("loop", 9_000), ("loop", 20_000)),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("two", 20_000), ("chain", 9_000), ("chain", 60_000), ("loop", 60_000))
        ),
    ],
)
def test_the_solver_finds_what_trying_everything_finds(world, kind, memory):
    """Over all placements, all arrays that can be left out, and all plans of each statement."""
    p = program_of(world, kind, memory)
    solver = Solver(p, memory, SLOW)
    ways = solver.ways()
    best = math.inf
    made = list(solver.made_within)
    for choice in itertools.product((False, True), repeat=len(solver.movable)):
        inside = dict(zip(solver.movable, choice, strict=True))
        for leaves in itertools.product((False, True), repeat=len(made)):
            out = {n for n, left in zip(made, leaves, strict=True) if left}
            if any(inside[n] for n in out):
                continue
            longer = {n: s for (n, x), s in solver.longer.items() if x in out}
            total = sum(solver.cost_inside(n) for n, there in inside.items() if there)
            for s, found in enumerate(ways):
                live = {*solver.living(s), *(n for n, extra in longer.items() if s in extra)}
                held = sum(solver.share(n) for n in live if inside[n])
                total += min(
                    (
                        solver.cost(s, way)
                        for way in found
                        if all(inside[n] == there and n not in out for n, there in way.inside.items())
                        and way.skips == any(solver.made_within[n].producer == s for n in out)
                        and (way.within.variable if way.within else None)
                        == next(
                            (
                                solver.made_within[n].variable.name
                                for n in out
                                if s in solver.made_within[n].consumers
                            ),
                            None,
                        )
                        and held + way.workspace_bytes <= memory
                    ),
                    default=math.inf,
                )
            best = min(best, total)
    taken, inside = solver.choose()
    cost = sum(solver.cost(s, way) for s, way in enumerate(taken))
    cost += sum(solver.cost_inside(n) for n, there in inside.items() if there)
    assert cost == pytest.approx(best, rel=1e-3)
    p.run(plan=solver.solve())


def test_what_was_not_kept_is_made_again_when_a_run_goes_on_and_the_reverse(world, tmp_path):
    """The stopped run and the resumed run leave out different arrays."""
    a, b, c = matrices((200, 2), (2, 150), (150, 3))
    for number, (first, second) in enumerate([(SLOW, FAST), (FAST, SLOW)]):
        path = tmp_path / str(number)
        for rates, fails in ((first, True), (second, False)):

            def stop(box, x, fails=fails):
                if fails:
                    raise ValueError("stop here")
                return x

            with outcore.Program(world, memory="60kB", checkpoint=path, every=0) as p:
                x = outcore.einsum("ik,kj->ij", p.input(a), b)
                z = p.output(p.array((3,)), "z")
                p.map(stop, z, out=z, text="stop")
                y = p.output(outcore.einsum("ij,jl->il", x, c), "y")
            plan = p.plan(rates)
            assert plan.statements[0].skipped == (rates is SLOW)
            if fails:
                with pytest.raises(OutcoreError, match="stop here"):
                    p.run(plan=plan)
        assert p.run(plan=plan, restart=True).restarted
        np.testing.assert_allclose(y.result[...], a @ b @ c, rtol=1e-10, atol=1e-10)
        y.result.close()
        z.result.close()
