"""Random products of two arrays, in random panels and in those of the search: against NumPy, and planned
against actual traffic. More of them by OUTCORE_PRODUCTS=1000."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import outcore
from outcore.base.errors import OutcoreError
from outcore.tensor.arrays.extended import operand
from outcore.tensor.layout.expression import parse
from outcore.tensor.layout.operands import numbered
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.plan import contract, products
from outcore.tensor.plan.rates import ASSUMED
from outcore.tensor.program.einsum import einsum

EXAMPLES = int(os.environ.get("OUTCORE_PRODUCTS", "10"))

often = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with outcore.World("self", memory="60MB", scratch=tmp_path_factory.mktemp("scratch")) as made:
        yield made


class Case:
    """Subscripts and arrays, which are closed at the end."""

    def __init__(self, world, draw, stack):
        self.world, self.stack = world, stack
        words = self.words(draw)
        self.subscripts = "{},{}->{}".format(*words)
        self.dtype = draw(st.sampled_from(["float64", "float32", "complex128", "complex64"]))
        other = draw(st.sampled_from([self.dtype, "float32", "float64"]))
        random = np.random.default_rng(draw(st.integers(0, 99)))
        shapes = [[self.extents[letter] for letter in word] for word in words]
        first = self.random(random, shapes[0], self.dtype)
        second = first if self.alike else self.random(random, shapes[1], other)
        kinds = st.sampled_from(["memory", "disk", "global", "tiles"])
        self.tile = draw(st.integers(1, 4))
        self.values = [first, second]
        made = self.made(draw(kinds), first)
        is_one = self.alike and draw(st.booleans())
        self.operands = [made, made if is_one else self.made(draw(kinds), second)]
        self.before = self.random(random, shapes[2], np.result_type(first, second))
        self.out = self.made(draw(kinds), self.before)
        self.accumulate = draw(st.booleans())
        self.scale = draw(st.sampled_from([1, -0.5]))

    def words(self, draw):
        """Letters of left, right and result. `alike`: the operands have the same elements."""
        rows, inner = draw(st.sampled_from(["a", "ab"])), draw(st.sampled_from(["k", "kl"]))
        columns, batch = draw(st.sampled_from(["c", "cd"])), draw(st.sampled_from(["", "", "z"]))
        self.extents = {letter: draw(st.integers(1, 13)) for letter in "abcdklz"}
        self.alike = draw(st.booleans())
        left = "".join(draw(st.permutations(batch + rows + inner)))
        if self.alike:
            columns = {"a": "c", "ab": "cd"}[rows]
            self.extents |= {"c": self.extents["a"], "d": self.extents["b"]}
            right = left.translate(str.maketrans("ab", "cd"))
        else:
            right = "".join(draw(st.permutations(batch + inner + columns)))
        return left, right, "".join(draw(st.permutations(batch + rows + columns)))

    @staticmethod
    def random(random, shape, dtype):
        found = random.integers(-4, 5, shape) / 4
        if np.dtype(dtype).kind == "c":
            found = found + 1j * random.integers(-4, 5, shape) / 4
        return found.astype(dtype)

    def made(self, kind, values):
        if kind == "memory":
            return values.copy()
        if kind == "tiles":
            tilings = [outcore.Tiling(n, tile=self.tile) for n in values.shape]
            made = outcore.Array.from_numpy(self.world, values, tilings, where="disk")
        elif kind == "disk":
            made = outcore.DiskArray(self.world, values.shape, values.dtype)
            made.write_all(values)
        else:
            made = outcore.GlobalArray(self.world, values.shape, values.dtype)
            made[...] = values
        return self.stack.enter_context(made)

    @property
    def expected(self):
        found = self.scale * np.einsum(self.subscripts, *self.values)
        return found + self.before if self.accumulate else found

    def planned(self, memory, choice=None):
        arrays = [*self.operands, self.out]
        facts = numbered(arrays, [operand(each).facts for each in arrays])
        expression = parse(self.subscripts, [each.shape for each in facts[:-1]])
        choices = None if choice is None else [choice]
        plan = contract(expression, facts, memory, ASSUMED, choices=choices, adds=self.accumulate)
        return plan, products(plan, expression, facts)

    def check(self, plan):
        options = {"out": self.out, "plan": plan, "accumulate": self.accumulate, "scale": self.scale}
        _, counted = einsum(self.subscripts, *self.operands, **options, world=self.world, report=True)
        found = self.out.to_numpy() if isinstance(self.out, outcore.Array) else np.asarray(self.out[...])
        np.testing.assert_allclose(found, self.expected, rtol=0, atol=1e-4)
        for name in ("disk_read", "disk_written", "network", "copied", "flops"):
            assert getattr(counted.actual, name) == getattr(plan.predicted, name), name


@often
@given(st.data())
def test_any_panels_give_the_same_result_and_move_what_was_said(world, data):
    draw = data.draw
    with ExitStack() as stack:
        case = Case(world, draw, stack)
        _, (found,) = case.planned(1 << 22)
        half = found.problem.is_symmetric and draw(st.booleans())
        most = [draw(st.integers(1, 40)) for _ in range(4)]
        block = draw(st.integers(1, 9))
        keep = "result" if block > 1 else draw(st.sampled_from(["result", "left"] + ["right"] * (not half)))
        parts = draw(st.integers(1, 3)) if keep == "result" else 1
        pieces = [1, *(draw(st.integers(1, 2)) for _ in range(3))]
        if half:  # rows and columns are cut alike
            most[2], pieces[2] = most[1], pieces[1]
        choice = Choice(keep, False, tuple(most), tuple(pieces), parts, 9, draw(st.booleans()), half, block)
        plan, (planned,) = case.planned(1 << 22, choice)
        assert planned.at_once <= max(1, block)
        results = planned.at_once * draw(st.integers(1, 2))
        plan, _ = case.planned(1 << 22, replace(choice, results=results))
        case.check(plan)


@often
@given(st.data())
def test_plans_of_the_search_fit_and_move_no_less_than_the_bound(world, data):
    with ExitStack() as stack:
        case = Case(world, data.draw, stack)
        memory = data.draw(st.integers(200, 30_000))
        try:
            plan, (planned,) = case.planned(memory)
        except OutcoreError as error:
            assert error.errno == errno.ENOMEM
            return
        assert planned.workspace_bytes == planned.plan.workspace_bytes <= memory
        assert planned.at_once <= planned.plan.choice.results
        assert plan.predicted.disk >= plan.bound_bytes * (1 - 1e-12)
        case.check(plan)
