"""Long statements are carried out in parts, with a checkpoint between them: a program that is killed in the
middle resumes there, and nothing is added twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import outcore
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.parts import Parts

PROGRAM = """
import os, signal, sys
from dataclasses import replace
import numpy as np
import outcore
from outcore.tensor.plan.rates import ASSUMED

# A slow machine: the program takes long enough to be cut into parts.
SLOW = replace(ASSUMED, gemm=((16, 2e5), (1024, 2e5)), copy=2e5, read=2e6, write=2e6)

def build(world, path, memory):
    random = np.random.default_rng(5)
    a, b, c = (random.standard_normal(shape) for shape in ((90, 60), (60, 70), (70, 3)))
    out = np.ones((90, 70))
    with outcore.Program(world, memory=memory, checkpoint=path, every=0) as p:
        m = p.input(a, "m")
        y = p.input(out, "y")
        n = p.output(p.array(()), "n")
        x = p.output(p.array((90, 3)), "x")
        outcore.einsum("ik,kj->ij", m, b, out=y, accumulate=True)
        outcore.einsum("ij,ij->", y, y, out=n, accumulate=True)
        p.map(lambda box, v: 2 * v + 1, y, out=y, text="twice")
        z = outcore.einsum("ik,kj->ij", m, b)
        outcore.einsum("ij,jl->il", z, c, out=x, accumulate=True)
    return p, out, n, x

def reference():
    random = np.random.default_rng(5)
    a, b, c = (random.standard_normal(shape) for shape in ((90, 60), (60, 70), (70, 3)))
    y = 1 + a @ b
    return 2 * y + 1, (y * y).sum(), a @ b @ c

def run(world, path, memory, statement, **rates):
    # Dies when the second part is done and not kept.
    from outcore.tensor.program.program_run import _Run

    keep, count = _Run._is_done, [0]

    def is_done(self, number, letter, place):
        if str(self.program.statements[number]).startswith(statement):
            count[0] += 1
            if count[0] == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        keep(self, number, letter, place)

    _Run._is_done = is_done
    p, *_ = build(world, path, memory)
    plan = p.plan(replace(SLOW, **rates))
    assert (plan.statements[-1].within is not None) == bool(rates)
    p.run(plan=plan)
"""


def check(p, out, n, x):
    names: dict = {}
    exec(PROGRAM, names)
    y_values, n_value, x_values = names["reference"]()
    np.testing.assert_allclose(out, y_values, rtol=1e-11, atol=1e-11)
    assert p.value(n) == pytest.approx(n_value)
    np.testing.assert_allclose(x.result[...], x_values, rtol=1e-10, atol=1e-10)
    x.result.close()


@pytest.mark.parametrize(
    ("statement", "memory", "rates"),
    [
        ("y +=", "60kB", {}),
        ("n +=", "60kB", {}),
        ("y = twice", "9kB", {}),
        pytest.param("x +=", "30kB", {}, marks=pytest.mark.long),
        ("x +=", "30kB", {"copy": 1e9, "read": 1e3, "write": 1e3}),  # with an operand made in boxes
    ],
)
def test_a_killed_statement_goes_on_where_it_was(tmp_path, monkeypatch, statement, memory, rates):
    path = tmp_path / "kept"
    code = (
        PROGRAM
        + f"""
with outcore.World("self", memory="100MB") as world:
    run(world, {str(path)!r}, "20kB", {statement!r}, **{rates!r})
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    names: dict = {}
    exec(PROGRAM, names)
    parts = []
    part = Parts._part
    monkeypatch.setattr(
        Parts,
        "_part",
        lambda self, s, placed, within, others, letter, range_, watch: (
            parts.append((str(s), [range_, *others.values()])),
            part(self, s, placed, within, others, letter, range_, watch),
        )[1],
    )
    with outcore.World("self", memory="100MB") as world:
        p, out, n, x = names["build"](world, path, memory)
        assert p.run(plan=p.plan(ASSUMED), restart=True).restarted
        ranges = next(ranges for text, ranges in parts if text.startswith(statement))
        assert any(begin > 0 for begin, _ in ranges)  # not from its beginning
        check(p, out, n, x)


def test_parts_are_not_made_where_they_would_take_longer(tmp_path):
    """Statements are not cut without a checkpoint, nor if they take less time than the interval of
    checkpoints."""
    names: dict = {}
    exec(PROGRAM, names)
    with outcore.World("self", memory="100MB") as world:
        for every, path in ((1e6, tmp_path / "kept"), (0, None)):
            p, out, n, x = names["build"](world, path, "60kB")
            p.every = every
            calls = []
            done = Parts._carry_out
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    Parts,
                    "_carry_out",
                    lambda self, s, *rest, f=done, calls=calls: (calls.append(s), f(self, s, *rest))[1],
                )
                plan = p.plan(replace(names["SLOW"], read=1e15, write=1e15))
                p.run(plan=plan)
            boxes = sum(2 * len(each.within.cuts) - 3 for each in plan.statements if each.within is not None)
            assert len(calls) == len(p.statements) - sum(each.skipped for each in plan.statements) + boxes
            check(p, out, n, x)
            assert os.path.exists(tmp_path / "kept")


def test_results_with_a_symmetry_are_made_in_parts(tmp_path, monkeypatch):
    """Sections of an array, or two sections of one array, do not show its symmetry."""
    random = np.random.default_rng(2)
    axis, other = outcore.Tiling(20, tile=10), outcore.Tiling(60, tile=10)
    x, s = random.standard_normal((20, 900)), random.standard_normal((20, 20, 60))
    s = s + s.transpose(1, 0, 2)
    parts = []
    part = Parts._part
    monkeypatch.setattr(
        Parts, "_part", lambda self, each, *rest: (parts.append(str(each)[0]), part(self, each, *rest))[1]
    )
    slow = replace(ASSUMED, gemm=((16, 1e5), (1024, 1e5)), copy=1e5)
    with (
        outcore.World("self", memory="100MB") as world,
        outcore.Array.from_numpy(world, s, [axis, axis, other], symmetry="symmetric(0,1)") as symmetric,
    ):
        with outcore.Program(world, memory="1MB", checkpoint=tmp_path / "kept", every=0) as p:
            a, layout = p.input(x, "a"), outcore.Layout([axis, axis], None, "symmetric(0,1)")
            y, z = (p.output(p.array(layout), name) for name in "yz")
            outcore.einsum("ia,ja->ij", a, a, out=y)
            outcore.einsum("ija,ab->ij", p.input(symmetric, "s"), np.ones((60, 5)), out=z)
        p.run(plan=p.plan(slow))
        assert min(parts.count("y"), parts.count("z")) > 1
        np.testing.assert_allclose(y.result.to_numpy(), x @ x.T)
        np.testing.assert_allclose(z.result.to_numpy(), 5 * s.sum(2), atol=1e-12)
        y.result.close()
        z.result.close()
