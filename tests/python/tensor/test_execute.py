"""The order of operations of a product: panels are read ahead, results are written behind."""

from __future__ import annotations

import errno
import re
import threading
from dataclasses import replace

import numpy as np
import pytest

import outcore
from outcore import _core
from outcore.base.errors import OutcoreError
from outcore.tensor.layout.canonical import binary
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.operands import BoxOperand, LocalOperand, plain
from outcore.tensor.plan import gemm
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.product_plan import Planned, ProductPlan, make_plan
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.einsum import einsum
from outcore.tensor.run.execute import Product

SLOW = replace(ASSUMED, read=1e8, write=1e8)


class Recorded(LocalOperand):
    """An array that claims to lie on disk. `events`: the calls on it, in order; `waits`: called with the
    number of a result when that is waited for."""

    def __init__(self, array, events, fails_at=None, waits=lambda number: None):
        super().__init__(array)
        self._waits = waits
        self.facts = replace(self.facts, where="disk")
        self._events, self._fails_at, self._puts = events, fails_at, 0

    def native(self, use):
        return None  # so that functions are called

    def get(self, box, out):
        self._events.append(("get", tuple(box)))
        return super().get(box, out)

    def prefetch(self, boxes):
        self._events += [("hint", tuple(box)) for box in boxes]

    def put(self, box, value, *, add):
        number, before = self._puts, value.copy()
        self._puts += 1
        self._events.append(("put", number))
        outer = self

        class Request:
            def wait(self):
                outer._events.append(("wait", number))
                outer._waits(number)
                if number == outer._fails_at:
                    raise OutcoreError(errno.EIO, "write", detail=f"result {number}")
                assert np.array_equal(value, before)  # the next result is made elsewhere
                LocalOperand.put(outer, box, before, add=add)

        return [Request()]


def of_matrices(n, *facts):
    extents = dict.fromkeys("ijk", n)
    return ProductProblem(binary("ik", "kj", "ij", extents), extents, *facts)


def product(events, results, n=30, fails_at=None, inner=10):
    random = np.random.default_rng(3)
    a, b = random.standard_normal((2, n, n))
    out = Recorded(np.zeros((n, n)), events, fails_at)
    left, right = Recorded(a, []), Recorded(b, [])
    problem = of_matrices(n, left.facts, right.facts, out.facts)
    choice = Choice("result", False, (1, 10, n, inner), (1, 1, 1, 1), results=results)
    plan = make_plan(problem, 10**6, ASSUMED, choice)
    return Product(Planned(problem, plan), left, right, out), a @ b, out


@pytest.mark.parametrize("results", [1, 2])
def test_a_result_is_written_while_the_next_is_made_where_memory_is_for_both(results, monkeypatch):
    begun = [threading.Event() for _ in range(3)]
    others = []
    multiply = gemm.multiply

    def noted(left, right, out, scale, *, add):
        if not add:
            next(each for each in begun if not each.is_set()).set()
        multiply(left, right, out, scale, add=add)

    def waits(number):
        if number < 2:
            others.append(begun[number + 1].wait(20 if results == 2 else 0))

    monkeypatch.setattr(gemm, "has_blas", lambda: False)
    monkeypatch.setattr(gemm, "multiply", noted)
    events = []
    job, wanted, out = product(events, results)
    out._waits = waits
    counted = job.run()
    assert others == [results == 2] * 2
    assert [number for what, number in events if what == "put"] == [0, 1, 2]
    assert np.allclose(out.array, wanted)
    assert counted.disk_written == 8 * 30 * 30


@pytest.mark.parametrize("fails_at", [0, 1, 2])
@pytest.mark.parametrize("results", [1, 2])
def test_a_write_that_fails_is_raised_and_none_is_left_under_way(results, fails_at):
    events = []
    job, _, _ = product(events, results, fails_at=fails_at)
    with pytest.raises(OutcoreError, match=f"result {fails_at}") as caught:
        job.run()
    assert caught.value.errno == errno.EIO
    begun = {number for what, number in events if what == "put"}
    assert {number for what, number in events if what == "wait"} == begun


def test_owners_are_told_what_will_be_read():
    events = []
    job, wanted, out = product([], 2, inner=3)
    left = job._arrays[0]
    left._events = events
    job.run()
    assert np.allclose(out.array, wanted)
    gets = [box for what, box in events if what == "get"]
    hints = [box for what, box in events if what == "hint"]
    assert set(hints) <= set(gets)
    assert len(set(hints)) >= len(set(gets)) - 3 * 2  # the first of each piece of work are asked for at once
    first = {box: place for place, (what, box) in reversed(list(enumerate(events))) if what == "get"}
    for place, (what, box) in enumerate(events):
        assert what == "get" or place < first[box] or gets.count(box) > 1


def test_memory_for_a_second_result_is_taken_where_that_is_worth_it():
    def problem(where):
        disk = plain((2000, 2000), np.dtype(np.float64), "disk")
        return of_matrices(2000, disk, disk, replace(disk, where=where))

    memory, slow = 20_000_000, replace(ASSUMED, write=2e8)
    found = make_plan(problem("disk"), memory, slow)
    assert found.choice.results == 2
    assert found.workspace_bytes <= memory
    planned = Planned(problem("disk"), found)
    one = Planned(problem("disk"), replace(found, choice=replace(found.choice, results=1)))
    assert planned.workspace_bytes - one.workspace_bytes == 8 * planned.largest[2]
    inside = make_plan(problem("process"), memory, slow)
    assert inside.choice.results == Planned(problem("process"), inside).at_once
    with pytest.raises(OutcoreError, match=r"take \d+ bytes") as caught:
        make_plan(problem("disk"), 45, slow)
    needed = int(re.findall(r"take (\d+) bytes", str(caught.value))[0])
    least = make_plan(problem("disk"), needed, slow)
    assert least.choice.results == 1
    assert least.workspace_bytes <= needed
    assert ProductPlan.from_json(found.as_json()) == found


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


def test_a_program_goes_on_after_a_write_that_failed(world, tmp_path, monkeypatch):
    """Statements whose results were not all written are not known as done."""
    n = 200
    values = np.random.default_rng(1).standard_normal((n, n))
    fails = [True]
    put = BoxOperand.put
    puts = []

    def failing(self, box, value, *, add):
        puts.append(box)
        if fails[0] and len(puts) == 4:
            raise OutcoreError(errno.EIO, "write a result")
        return put(self, box, value, add=add)

    monkeypatch.setattr(BoxOperand, "native", lambda self, use: None)
    monkeypatch.setattr(BoxOperand, "put", failing)
    with outcore.DiskArray(world, (n, n)) as a, outcore.DiskArray(world, (n, n)) as out:
        a.write_all(values)

        def program():
            with outcore.Program(world, memory="60kB", checkpoint=tmp_path / "kept", every=0) as p:
                x, z = p.input(a, "a"), p.input(out, "z")
                einsum("ij,jk->ik", x, x, out=z)
            return p

        p = program()
        with pytest.raises(OutcoreError, match="write a result"):
            p.run(plan=p.plan(SLOW))
        fails[0] = False
        p = program()
        p.run(plan=p.plan(SLOW), restart=True)
        assert len(puts) > 4
        assert np.allclose(out[...], values @ values)


@pytest.mark.parametrize("where", ["process", "node"])
def test_native_code_adds_to_arrays_in_memory(where, monkeypatch):
    """Python's interpreter takes no part in the steps."""
    monkeypatch.setattr(_core.Boxes, "of_python", forbidden)
    random = np.random.default_rng(2)
    a, b = random.standard_normal((2, 30, 30))
    tilings = [outcore.Tiling(30, tile=7)] * 2
    with outcore.World("self") as world:
        out = outcore.Array.from_numpy(world, np.ones((30, 30)), tilings, where=where)
        einsum("ik,kj->ij", a, b, out=out, accumulate=True, memory="20kB")
        np.testing.assert_allclose(out.to_numpy(), 1 + a @ b, rtol=1e-12)
        out.close()


def forbidden(moves):
    raise AssertionError(f"Python would move boxes of {moves}")


@pytest.mark.parametrize("where", ["process", "node"])
def test_adds_of_native_code_and_of_threads_are_all_there(where):
    n, turns = 60, 200
    ones, tilings = np.ones((n, n)), [outcore.Tiling(n, tile=20)] * 2
    with outcore.World("self") as world, outcore.Array(world, tilings, where=where) as out:

        def add():
            tile = np.ones((20, 20))
            for turn in range(turns):
                out.acc_tile((turn % 3, turn % 2), tile)

        thread = threading.Thread(target=add)
        thread.start()
        for _ in range(turns):
            einsum("ik,kj->ij", ones, ones, out=out, accumulate=True, memory="100kB")
        thread.join()
        assert out.to_numpy().sum() == turns * (n**3 + 400)
