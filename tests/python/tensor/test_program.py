"""Programs: the same numbers as NumPy's with memory of any size, placements, lifetimes, and resuming after a
kill."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest

import outcore
from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program import place
from outcore.tensor.program.program_plan import ProgramPlan


@pytest.fixture
def world():
    with outcore.World("self", memory="200MB") as world:
        yield world


def arrays(o=4, v=9, q=12):
    random = np.random.default_rng(0)
    return random.standard_normal((o, o, v, v)), random.standard_normal((q, v, v))


def recorded(world, t2, b, rounds=3, **options):
    with outcore.Program(world, **options) as p:
        t, bb = p.input(t2, "t2"), p.input(b, "B")
        r = p.output(p.array(t.shape), "r")
        e = p.output(p.array(()), "e")
        for _ in p.iterate(rounds):
            w = outcore.einsum("Qac,Qbd->acbd", bb, bb)
            s = outcore.einsum("ijcd,acbd->ijab", t, w)
            r += 0.5 * s - 0.25 * t
            outcore.einsum("ijab,ijab->", r, r, out=e)
        q = p.output(p.map(lambda box, x: 2 * x, r), "q")
    return p, r, e, q


def expected(t2, b, rounds=3):
    w = np.einsum("Qac,Qbd->acbd", b, b)
    return rounds * (0.5 * np.einsum("ijcd,acbd->ijab", t2, w, optimize=True) - 0.25 * t2)


@pytest.mark.parametrize("shape", [(700, 900), (5, 7000), (40, 30, 50), (3,)])
def test_new_arrays_on_disk_are_planned_with_the_chunks_that_they_get(world, shape):
    with outcore.DiskArray(world, shape) as array:
        assert array.chunk == _core.usual_chunk(shape, 8)


@pytest.mark.parametrize("memory", ["1MB", "1600kB"])
def test_a_product_moves_the_bytes_that_its_program_predicts(world, memory):
    values = np.random.default_rng(3).standard_normal((600, 600))
    with outcore.DiskArray(world, values.shape, chunk=(256, 256)) as a:
        a.write_all(values)
        with outcore.Program(world, memory=memory) as p:
            x = p.input(a, "x")
            y = p.output(outcore.einsum("ik,kj->ij", x, x), "y")
        report = p.run()
        assert np.allclose(y.result[...], values @ values)
        close(y)
    assert report.moved_bytes == report.plan.moved_bytes > 3 * values.nbytes


def close(*variables):
    for variable in variables:
        if not isinstance(variable.result, np.ndarray):
            variable.result.close()


@pytest.mark.parametrize("memory", ["20kB", "150kB", "20MB"])
def test_results_are_those_of_numpy_in_memory_of_any_size(world, memory):
    t2, b = arrays()
    with outcore.DiskArray(world, b.shape) as on_disk:
        on_disk.write_all(b)
        p, r, e, q = recorded(world, t2, on_disk, memory=memory)
        plan = p.plan()
        report = p.run(plan=plan)
        whole = expected(t2, b)
        np.testing.assert_allclose(r.result[...], whole, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(q.result[...], 2 * whole, rtol=1e-10, atol=1e-10)
        assert p.value(e) == pytest.approx((whole**2).sum())
        assert len(report.statements) == 3 * sum(not s.skipped for s in plan.statements[:-1]) + 1
        assert max(plan.memory) <= plan.memory_bytes
        assert report.moved_bytes == pytest.approx(plan.moved_bytes, rel=0.02, abs=1)
        assert plan.bound_bytes == b.nbytes
        close(r, q)


def test_what_fits_is_in_memory_and_what_does_not_is_on_disk(world):
    t2, b = arrays()
    p, *_ = recorded(world, t2, b, memory="50MB")
    assert set(p.plan(ASSUMED).where.values()) == {"process"}
    p, *_ = recorded(world, t2, b, memory="20kB")
    assert p.plan(ASSUMED).where["r"] == "disk"


def test_a_disk_array_that_is_read_again_and_again_is_copied_into_memory(world):
    random = np.random.default_rng(1)
    with outcore.DiskArray(world, (300, 300)) as a, outcore.DiskArray(world, (300, 20)) as x:
        a.write_all(random.standard_normal((300, 300)))
        x.write_all(random.standard_normal((300, 20)))
        with outcore.Program(world, memory="10MB") as p:
            matrix, y = p.input(a, "a"), p.output(p.array((300, 20)), "y")
            for _ in p.iterate(50):
                outcore.einsum("ij,jk->ik", matrix, x, out=y)
        plan = p.plan(ASSUMED)
        assert "a" in plan.copied
        p.run(plan=plan)
        np.testing.assert_allclose(y.result[...], a[...] @ x[...], rtol=1e-11, atol=1e-11)
        close(y)


def test_plans_are_values(world):
    p, *_ = recorded(world, *arrays(), memory="1MB")
    plan = p.plan(ASSUMED)
    assert ProgramPlan.from_json(plan.as_json()) == plan
    assert "in all" in plan.table()
    with pytest.raises(OutcoreError, match="read the plan"):
        ProgramPlan.from_json("{}")
    older = json.dumps(json.loads(plan.as_json()) | {"format": 2})
    with pytest.raises(OutcoreError, match="format 2; this program knows") as refused:
        ProgramPlan.from_json(older)
    assert refused.value.errno == errno.ENOTSUP
    other, *_ = recorded(world, *arrays(), rounds=2)
    with pytest.raises(OutcoreError, match="the plan is of another program"):
        other.run(plan=plan)


def test_a_plan_is_of_arrays_of_one_size(world):
    """A plan with boxes of an array would omit a part of a larger array."""
    programs = []
    for n in (90, 180):
        with outcore.Program(world, memory="20kB") as p:
            outcore.einsum(
                "ij,jl->il", np.ones((n, 70)), np.ones((70, 3)), out=p.output(p.array((n, 3)), "x")
            )
        programs.append(p)
    assert programs[0].text() == programs[1].text()
    with pytest.raises(OutcoreError, match="the plan is of another program") as caught:
        programs[1].run(plan=programs[0].plan(ASSUMED))
    assert caught.value.errno == errno.EINVAL


def test_programs_with_other_factors_are_other_programs(world):
    def with_factor(factor):
        with outcore.Program(world) as p:
            p.combine(factor * p.input(np.ones(3), "one"), out=p.array((3,), name="x"))
        return p

    assert with_factor(1 / 3).fingerprint() == with_factor(1 / 3).fingerprint()
    assert with_factor(1 / 3).fingerprint() != with_factor(1 / 3 + 1e-9).fingerprint()


def test_lives_end_with_the_last_use_and_cover_loops(world):
    p, r, e, q = recorded(world, *arrays())
    w, s = p.variables[4:6]
    assert p.life(w) == (0, 1)  # made anew in each iteration
    assert p.life(s) == (1, 2)
    assert p.life(r) == (0, 4)
    assert p.life(q) == (4, 4)
    assert p.life(e) == (0, 4)


def test_until_ends_a_loop(world):
    t2 = arrays()[0]
    seen = []
    with outcore.Program(world) as p:
        t = p.input(t2, "t")
        r, n = p.output(p.array(t2.shape), "r"), p.array((), name="n")
        for _ in p.iterate(100, until=lambda i: seen.append((i, float(p.value(n)))) or i == 3):
            r += t
            outcore.einsum("ijab,ijab->", r, r, out=n)
    p.run()
    np.testing.assert_allclose(r.result[...], 4 * t2)
    assert [i for i, _ in seen] == [0, 1, 2, 3]
    assert seen[1][1] == pytest.approx(4 * (t2**2).sum())
    close(r)


def test_loops_within_loops(world):
    with outcore.Program(world) as p:
        x, one = p.output(p.array((3,)), "x"), p.input(np.ones(3), "one")
        for _ in p.iterate(4):
            x += one
            for _ in p.iterate(5):
                x += 10 * one
        for _ in p.iterate(0):
            x += 1000 * one
    p.run()
    np.testing.assert_allclose(x.result[...], 4 * 51)
    close(x)


def test_progress_knows_the_statement_and_the_time_left(world):
    told = []
    p, r, _, q = recorded(world, *arrays(), memory="150kB")
    plan = p.plan(ASSUMED)
    p.run(plan=plan, progress=told.append)
    fractions = [each.fraction for each in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    assert told[0].seconds_left > told[-1].seconds_left == pytest.approx(0, abs=1e-9)
    statements = [each.statement for each in told if each.task == each.tasks]
    assert statements == [str(each) for each in p.statements[:4]] * 3 + [str(p.statements[4])]
    close(r, q)


@pytest.mark.parametrize(
    ("following", "rounds", "runs"),
    [
        (0, {}, [0, 0, 0, 0]),
        (1, {1: 2}, [3, 10, 10, 0]),  # in the third round of the outer loop, the inner one begins
        (2, {1: 2, 0: 4}, [3, 2 * 5 + 5, 2 * 5 + 4, 0]),
        (3, {}, [3, 15, 15, 0]),
        (4, {}, [3, 15, 15, 1]),
    ],
)
def test_what_has_run_before_a_statement(world, following, rounds, runs):
    with outcore.Program(world) as p:
        x, one = p.array((3,)), p.input(np.ones(3))
        for _ in p.iterate(3):
            x += one
            for _ in p.iterate(5):
                x += 10 * one
                x += one
        x += one
    assert [p.runs_before(s, following, rounds) for s in range(4)] == runs


def test_empty_loops_are_left_out_and_those_around_them_are_not(world):
    with outcore.Program(world) as p:
        x, one = p.output(p.array((3,)), "x"), p.input(np.ones(3), "one")
        for _ in p.iterate(4):
            x += one
            for _ in p.iterate(0):
                x += 1000 * one
                for _ in p.iterate(2):
                    x += 1000 * one
        for _ in p.iterate(2):
            for _ in p.iterate(0):
                x += 1000 * one
        for _ in p.iterate(0):
            for _ in p.iterate(0):
                x += 1000 * one
            x += 1000 * one
    p.run()
    np.testing.assert_allclose(x.result[...], 4)
    close(x)


def test_a_sum_of_real_and_complex_arrays(world):
    with outcore.Program(world) as p:
        real, other = p.input(np.ones(3), "real"), p.input(1j * np.ones(3), "other")
        x = p.output(p.combine(2 * real + other), "x")
    p.run()
    np.testing.assert_array_equal(x.result[...], [2 + 1j] * 3)
    close(x)


def test_tiles_and_symmetry(world):
    t2 = arrays()[0]
    t2 = t2 + t2.transpose(1, 0, 3, 2)
    layout = outcore.Layout(
        [outcore.Tiling(4, tile=2)] * 2 + [outcore.Tiling(9, tile=4)] * 2, symmetry="pair"
    )
    stored = outcore.Array.from_numpy(world, t2, layout, where="disk")
    for memory in ("60kB", "20MB"):
        with outcore.Program(world, memory=memory) as p:
            t, r = p.input(stored, "t"), p.output(p.array(layout), "r")
            r += 2 * t
            d = p.map(lambda box, x: x / (1 + abs(x)), t, out=p.array(layout))
            r -= d
        p.run()
        np.testing.assert_allclose(r.result.to_numpy(), 2 * t2 - t2 / (1 + abs(t2)), rtol=1e-12)
        close(r)
    stored.close()


@pytest.mark.parametrize("symmetry", [None, "symmetric(0,1)"])
def test_sums_of_what_need_not_have_the_symmetry_of_the_result_are_refused(world, symmetry):
    axis = outcore.Tiling(6, tile=2)
    with outcore.Program(world) as p:
        x = p.array(outcore.Layout([axis, axis], None, symmetry), name="x")
        y = p.array(outcore.Layout([axis, axis], None, "antisymmetric(0,1)"), name="y")
        for record in (
            lambda: p.combine(2 * y + x, out=y),
            lambda: y.__iadd__(x),
            lambda: y.__setitem__(..., x),
        ):
            with pytest.raises(
                OutcoreError, match=r"x need not have the symmetry of y .* \(1, 0\)"
            ) as caught:
                record()
            assert caught.value.errno == errno.EINVAL
        assert not p.statements


def test_functions_of_what_lacks_the_permutations_of_the_result_are_refused(world):
    layouts = [
        outcore.Layout([outcore.Tiling(6, tile=2)] * 2, None, symmetry)
        for symmetry in (None, "symmetric(0,1)", "antisymmetric(0,1)")
    ]
    values = np.random.default_rng(1).standard_normal((6, 6))
    symmetric, odd = values + values.T, values - values.T
    given = [
        outcore.Array.from_numpy(world, *each) for each in zip((symmetric, odd), layouts[1:], strict=True)
    ]
    with outcore.Program(world) as p:
        x, s, a = p.array(layouts[0], name="x"), p.input(given[0], "s"), p.input(given[1], "a")
        with pytest.raises(OutcoreError, match="x need not have the symmetry of a") as caught:
            p.map(lambda box, x: x, x, out=a)
        assert caught.value.errno == errno.EINVAL
        made = p.output(p.array(layouts[2]), "made")
        p.map(lambda box, x, y: x * y, s, a, out=made)
        p.combine(p.input(odd, "dense") * 2, out=made, accumulate=True)
    p.run()
    np.testing.assert_allclose(made.result.to_numpy(), symmetric * odd + 2 * odd)
    close(made)
    for each in given:
        each.close()


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda p, t: outcore.einsum("ijab,ijab->ab", t, t, out=t), "the result has shape"),
        (lambda p, t: outcore.einsum("ijab->ijab", t, out=t), "the result, t, is an operand"),
        (lambda p, t: outcore.einsum("ijab,kl->ij", t), "2 operands, 1"),
        (lambda p, t: outcore.einsum("ijab->ijab", t * 1j, out=p.array((4, 4, 9, 9))), "of type complex"),
        (
            lambda p, t: outcore.einsum(
                "ijaa->ij", t, out=p.array(outcore.Layout([4, 4], None, "symmetric(0,1)"))
            ),
            "need not have the symmetry",
        ),
        (lambda p, t: p.array((2, 2), name="t"), "two arrays have the name 't'"),
        (lambda p, t: p.map(lambda box, x: x, t, out=p.array((2, 2), name="u")), "t has shape"),
        (lambda p, t: t.__setitem__(0, t), "all of it"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_recorded(world, write, words):
    t2, _ = arrays()
    with outcore.Program(world) as p:
        t = p.input(t2, "t")
        with pytest.raises(OutcoreError, match=words) as caught:
            write(p, t)
        assert caught.value.errno == errno.EINVAL


def test_tilings_that_differ_are_refused_when_they_are_recorded(world):
    a, b = (outcore.Array(world, [outcore.Tiling(6, tile=tile)] * 2) for tile in (2, 3))
    with outcore.Program(world) as p:
        x, y = p.input(a, "a"), p.input(b, "b")
        with pytest.raises(OutcoreError, match=r"tilings of axis 'j' differ: cuts .* in a, .* in b"):
            outcore.einsum("ij,jk->ik", x, y)
        with pytest.raises(OutcoreError, match=r"differ: cuts .* in b, .* in a"):
            x += y
    a.close()
    b.close()


def test_too_little_memory_and_disk_say_what_is_needed(world):
    t2, b = arrays()
    p, *_ = recorded(world, t2, b, memory=20)
    with pytest.raises(OutcoreError, match=r"with all arrays on disk .* takes \d+ bytes") as caught:
        p.plan(ASSUMED)
    assert caught.value.errno == errno.ENOMEM
    (needed,) = re.findall(r"takes (\d+) bytes", str(caught.value))
    p, *_ = recorded(world, t2, b, memory=int(needed))
    assert max(p.plan(ASSUMED).memory) <= int(needed)
    p, *_ = recorded(world, t2, b, memory=int(needed) // 2)
    with pytest.raises(OutcoreError, match=f"takes {needed} bytes"):
        p.plan(ASSUMED)
    p, *_ = recorded(world, t2, b, memory="30kB", disk="10kB")
    with pytest.raises(OutcoreError, match=r"on disk there are 0\.01 MB") as caught:
        p.plan(ASSUMED)
    assert caught.value.errno == errno.ENOSPC


def test_an_error_of_a_function_is_the_error_of_the_run(world):
    def wrong(box, x):
        raise ValueError("no such number")

    with outcore.Program(world) as p:
        p.output(p.map(wrong, np.ones((3, 3))), "x")
    with pytest.raises(OutcoreError, match="no such number"):
        p.run()


# ---- going on ----

PROGRAM = """
import os, signal, sys
import numpy as np
import outcore

def build(world, path, memory, dies_at):
    count = [0]
    def step(box, x):
        count[0] += 1
        if dies_at and count[0] == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1
    random = np.random.default_rng(5)
    a = random.standard_normal((30, 30)) / 10
    with outcore.Program(world, memory=memory, checkpoint=path, every=0) as p:
        x = p.output(p.array((30, 30)), "x")
        y = p.array(outcore.Layout([outcore.Tiling(30, tile=8)] * 2, symmetry="symmetric(0,1)"), name="y")
        n = p.output(p.array(()), "n")
        m = p.input(a, "a")
        p.map(step, x, out=x, text="first")
        for _ in p.iterate(2):
            z = outcore.einsum("ij,jk->ik", m, x)
            p.map(step, z, out=x, text="step")
            outcore.einsum("ij,kj->ik", x, x, out=y, accumulate=True)
            outcore.einsum("ij,ij->", x, x, out=n, accumulate=True)
        w = p.output(outcore.einsum("ij,jk->ik", y, m), "w")
    return p, x, n, w

def reference():
    random = np.random.default_rng(5)
    a = random.standard_normal((30, 30)) / 10
    x, y, n = np.ones((30, 30)), 0, 0.0
    for _ in range(2):
        x = a @ x + 1
        y = y + x @ x.T
        n += (x * x).sum()
    return x, n, y @ a
"""


@pytest.mark.parametrize("dies_at", [pytest.param(1, marks=pytest.mark.long), 3])
def test_a_killed_program_goes_on_with_any_memory(tmp_path, dies_at):
    path = tmp_path / "kept"
    code = PROGRAM + textwrap.dedent(f"""
    with outcore.World("self", memory="100MB") as world:
        p, *_ = build(world, {str(path)!r}, "20MB", {dies_at})
        p.run()
    """)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    names: dict = {}
    exec(PROGRAM, names)
    x_values, n_value, w_values = names["reference"]()
    with outcore.World("self", memory="100MB") as world:
        p, x, n, w = names["build"](world, str(path), "60kB", 0)
        report = p.run(restart=True)
        assert report.restarted == (dies_at > 1)
        assert len(report.statements) < 10 or dies_at == 1
        np.testing.assert_allclose(x.result[...], x_values, rtol=1e-11)
        np.testing.assert_allclose(w.result[...], w_values, rtol=1e-11, atol=1e-11)
        assert p.value(n) == pytest.approx(n_value)
        close(x, w)
        again, x, n, w = names["build"](world, str(path), "1MB", 0)
        assert again.run(restart=True).statements == ()
        np.testing.assert_allclose(w.result[...], w_values, rtol=1e-11, atol=1e-11)
        close(x, w)


def test_another_program_does_not_go_on_from_it(world, tmp_path):
    path = str(tmp_path / "kept")
    for text, fails in (("one", False), ("two", True)):
        with outcore.Program(world, checkpoint=path) as p:
            x = p.output(p.map(lambda box, a: a, np.ones(3), text=text), "x")
        if fails:
            with pytest.raises(OutcoreError, match="of another program"):
                p.run(restart=True)
        else:
            p.run(restart=True)
            close(x)
    assert os.path.exists(path)


def test_what_was_killed_in_its_first_checkpoint_begins_anew(world, tmp_path):
    path = tmp_path / "kept"
    path.mkdir()
    with outcore.Program(world, checkpoint=path) as p:
        x = p.output(p.map(lambda box, a: a + 1, np.ones(3)), "x")
    assert not p.run(restart=True).restarted
    assert (x.result[...] == 2).all()
    close(x)


def test_tiles_of_another_layout_are_not_gone_on_with(world, tmp_path):
    path = tmp_path / "kept"
    for symmetry, fails in (("symmetric(0,1)", False), (None, True)):
        layout = outcore.Layout([outcore.Tiling(4, tile=2)] * 2, symmetry=symmetry)
        with outcore.Program(world, checkpoint=path) as p:
            y = p.output(p.array(layout), "y")
            y += p.input(np.ones((4, 4)), "one")
        if fails:
            with pytest.raises(OutcoreError, match="of another program"):
                p.run(restart=True)
        else:
            p.run()
            close(y)


def test_a_statement_gets_the_memory_that_its_exact_plan_needs(world):
    """The memory at a point of the planner may be too small: processes that share panels may divide a result
    unevenly."""
    given = outcore.Array.from_numpy(world, np.ones((75, 7, 11)), where="disk")
    with outcore.Program(world) as p:
        b = p.input(given, "b")
        p.output(outcore.einsum("Qia,Qjb->ijab", b, b), "k")
    solver = place.Solver(p, 20_000_000, replace(ASSUMED, processes=2, sharing=2))
    way = min(solver.ways()[0], key=lambda each: each.workspace_bytes)
    exact = solver._ways.exact(0, replace(way, workspace_bytes=1000))
    assert exact.workspace_bytes > 1000
    assert solver._ways.exact(0, exact).workspace_bytes == exact.workspace_bytes, "it can be planned"
