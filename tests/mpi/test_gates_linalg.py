"""Mathematics on arrays for which one process gives other operands."""

from __future__ import annotations

import numpy as np
import pytest
from gates import STRANGE, Calls, unpicklable

from outcore import GlobalArray
from outcore import linalg as am

# All calls go through one gate; test_gates_world.py and others have it on more processes.
pytestmark = pytest.mark.processes(2)

CALLS = Calls()
each = CALLS.each


@each("value", "x", 2.0, unpicklable, STRANGE, 1j)
@each("section", np.s_[1:3])
def fill(world, paths, value=1.0, section=...):
    with GlobalArray(world, (6, 5)) as a:
        am.fill(a.section(section), value)
        am.scale(a.section(section), value)


@each("alpha", "x", 2.0, unpicklable, STRANGE)
def scale(world, paths, alpha=3.0):
    with GlobalArray(world, (6, 5)) as a:
        am.scale(a, alpha)


def operands(world):
    """Three arrays, and others that do not fit them."""
    made = [GlobalArray(world, (5, 5)) for _ in range(3)]
    for array in made:
        am.fill(array, 1.0)
    return made


WRONG_OPERANDS = ("none", None, 5, STRANGE, "section")


def given(value, array):
    """An operand; "section": a part of the right one."""
    return array.section(np.s_[1:3]) if value == "section" else array if value == "right" else value


ELEMENTWISE = {
    "add": am.add,
    "multiply": am.multiply,
    "divide": am.divide,
    "maximum": am.maximum,
    "minimum": am.minimum,
    "apply": lambda out, a, b: am.apply(np.add, out, a, b),
}


def elementwise(name):
    def call(world, paths, out="right", a="right", b="right"):
        x, y, z = operands(world)
        ELEMENTWISE[name](given(out, x), given(a, y), given(b, z))

    call.__name__ = name
    for argument in ("out", "a", "b"):
        each(argument, *WRONG_OPERANDS)(call)


for _name in ELEMENTWISE:
    elementwise(_name)


@each("alpha", "x", 2.0, unpicklable, STRANGE)
@each("beta", "x", 2.0, unpicklable, STRANGE)
def add_multiples(world, paths, alpha=1.0, beta=1.0):
    x, y, z = operands(world)
    am.add(x, y, z, alpha=alpha, beta=beta)


@each("function", None, 5, STRANGE.refuse, lambda x: "text", lambda x: x[:1, :1, None])
def apply(world, paths, function=np.exp):
    x, y, _ = operands(world)
    am.apply(function, x, y)


@each("a", *WRONG_OPERANDS)
@each("out", *WRONG_OPERANDS)
def take_absolute_values(world, paths, out="right", a="right"):
    x, y, _ = operands(world)
    am.absolute(given(out, x), given(a, y))
    am.reciprocal(given(out, x), given(a, y))
    am.transpose(given(out, x), given(a, y))


@each("axes", "x", (0,), (0, 0), (0, 5), (1, 0), 5, unpicklable, STRANGE)
@each("a", *WRONG_OPERANDS)
@each("out", *WRONG_OPERANDS)
def copy(world, paths, out="right", a="right", axes=None):
    x, y, _ = operands(world)
    am.copy(given(out, x), given(a, y), axes)


@each("a", *WRONG_OPERANDS)
@each("b", *WRONG_OPERANDS)
@each("conjugate", True, unpicklable)
def dot(world, paths, a="right", b="right", conjugate=False):
    x, y, _ = operands(world)
    am.dot(given(a, x), given(b, y), conjugate=conjugate)


@each("a", "section")
def reduce_to_numbers(world, paths, a="right"):
    x, _, _ = operands(world)
    am.sum(given(a, x))
    am.min(given(a, x))
    am.max(given(a, x))


@each("kind", "two", "max", 5, unpicklable, STRANGE)
@each("a", "section")
def norm(world, paths, a="right", kind="one"):
    x, _, _ = operands(world)
    am.norm(given(a, x), kind)


@each("out", "section")
@each("hermitian", True, unpicklable)
def symmetrize(world, paths, out="right", hermitian=False):
    x, _, _ = operands(world)
    am.symmetrize(given(out, x), hermitian=hermitian)


@each("a", *WRONG_OPERANDS)
@each("b", *WRONG_OPERANDS)
@each("out", *WRONG_OPERANDS)
@each("alpha", "x", unpicklable, STRANGE)
@each("beta", "x", unpicklable, STRANGE)
@each("transpose_a", True, unpicklable)
def matmul(world, paths, out="right", a="right", b="right", alpha=1.0, beta=0.0, transpose_a=False):
    x, y, z = operands(world)
    am.matmul(given(out, x), given(a, y), given(b, z), alpha=alpha, beta=beta, transpose_a=transpose_a)


@each("a", *WRONG_OPERANDS)
@each("vectors", *WRONG_OPERANDS)
@each("b", *WRONG_OPERANDS)
def eigh(world, paths, a="right", vectors="right", b="right"):
    pytest.importorskip("scipy")
    x, y, z = operands(world)
    for matrix in (x, z):
        for i in range(5):
            if world.rank == 0:
                matrix[i, i] = 10.0 + i
    world.barrier()
    am.eigh(given(a, x), given(vectors, y), given(b, z))


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)
