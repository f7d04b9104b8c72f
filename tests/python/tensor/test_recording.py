"""Statements that cannot be recorded raise an error where they are written: a program never differs from its
text."""

from operator import methodcaller, mul

import numpy as np
import pytest

import outcore
from outcore import OutcoreError


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with outcore.World("self", scratch=tmp_path_factory.mktemp("scratch"), memory="500MB") as world:
        yield world


def program(world):
    p = outcore.Program(world)
    return p, p.input(np.ones((2, 2)), "a"), p.output(p.array((2, 2)), "r")


def result(p, r):
    p.run()
    found = r.result[0, 0]
    r.result.close()
    return found


OF_A_NUMBER = {
    "int": int,
    "float": float,
    "complex": complex,
    "bool": bool,
    "str": str,
    "format": lambda k: f"{k}",
    "index": lambda k: [1, 2][k],
    "slice": lambda k: [1, 2][:k],
    "range": range,
    "hash": hash,
    "asarray": np.asarray,
    "array": lambda k: np.array([k, 1]),
    "NumPy's number times it": lambda k: np.float64(2) * k,
    "array of NumPy": lambda k: k + np.ones(2),
    "in": lambda k: k in [0, 1],
    "==": lambda k: k == 0,
    "<": lambda k: k > 1,
    "iteration": list,
    **{
        name: methodcaller(f"__{name}__", 2)
        for name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"]
    },
    **{name: methodcaller(f"__{name}__") for name in ("neg", "pos", "abs", "invert")},
    "from the right": lambda k: 2 - k,
}


def test_the_number_of_a_loop_is_no_number(world):
    p, a, r = program(world)
    for k in p.iterate(3):
        for name, use in OF_A_NUMBER.items():
            with pytest.raises(OutcoreError, match="the number of a loop, which is recorded once"):
                pytest.fail(f"{name}: {use(k)!r}")
        for use in (lambda k: k * a, lambda k: a * k, lambda k: (2 * a) * k, p.iterate):
            with pytest.raises(OutcoreError):
                use(k)
        r += a
    assert result(p, r) == 3


OF_AN_ARRAY = {
    "==": lambda a, r: a == r,
    "!=": lambda a, r: a != r,
    "<": lambda a, r: a < r,
    "in": lambda a, r: a in [r],
    "if": lambda a, r: 1 if a else 2,
    "not": lambda a, r: not a,
    "len": lambda a, _: len(a),
    "iteration": lambda a, r: list(a),
    "element": lambda a, r: a[0],
    "asarray": lambda a, r: np.asarray(a),
    "array of arrays": lambda a, r: np.array([a, r]),
    "norm": lambda a, r: np.linalg.norm(a),
    "ufunc": np.add,
    "float": lambda a, r: float(a),
    "int": lambda a, r: int(a),
    "product": mul,
    "times an array of NumPy": lambda a, r: np.ones((2, 2)) * a,
    "power": lambda a, r: a**2,
}


@pytest.mark.parametrize("of", [lambda a, r: a, lambda a, r: a + r])
def test_arrays_and_sums_have_no_values_while_they_are_recorded(world, of):
    p, a, r = program(world)
    for name, use in OF_AN_ARRAY.items():
        with pytest.raises((OutcoreError, TypeError)):
            pytest.fail(f"{name}: {use(of(a, r), r)!r}")
    assert {a: 1}[a] == 1
    r += np.float64(2) * of(a, r)
    assert p.statements and result(p, r) == 2


def test_a_loop_counts_in_an_array(world):
    p, a, r = program(world)
    k, one = p.array((), name="k"), p.input(np.ones(()))
    for _ in p.iterate(3):
        p.einsum(",ij->ij", k, a, out=r, accumulate=True)
        k += one
    assert result(p, r) == 0 + 1 + 2
    assert result(p, r) == 3  # and in another run


def leave_by_break(p, a, r):
    for _ in p.iterate(10):
        r += a
        break


def leave_by_return(p, a, r):
    for _ in p.iterate(2):
        for _ in p.iterate(10):
            r += a
            return


def leave_by_an_exception(p, a, r):
    try:
        for _ in p.iterate(10):
            r += a
            raise KeyError
    except KeyError:
        pass


def leave_an_inner_one(p, a, r):
    for _ in p.iterate(2):
        leave_by_break(p, a, r)


def ask_for_one_number(p, a, r):
    next(p.iterate(10))
    r += a


def hold_the_loop(p, a, r):
    a.kept = loop = p.iterate(10)
    for _ in loop:
        r += a
        break


@pytest.mark.parametrize(
    "leave",
    [
        leave_by_break,
        leave_by_return,
        leave_by_an_exception,
        leave_an_inner_one,
        ask_for_one_number,
        hold_the_loop,
    ],
)
def test_a_loop_that_is_left_is_an_error(world, leave):
    with pytest.raises(OutcoreError, match=r"record a program.*loop"), outcore.Program(world) as p:
        a, r = p.input(np.ones((2, 2)), "a"), p.output(p.array((2, 2)), "r")
        leave(p, a, r)
    with pytest.raises(OutcoreError, match="record a program"):
        p.plan()
    with pytest.raises(OutcoreError, match="record a program"):
        p.run()


def test_the_next_statement_behind_a_loop_that_is_left_is_an_error(world):
    p, a, r = program(world)
    leave_by_break(p, a, r)
    for statement in (
        lambda: r.__iadd__(a),
        lambda: p.einsum("ij->ij", a),
        lambda: p.output(a),
        lambda: p.input(np.ones(2)),
        lambda: p.iterate(2).__next__(),
    ):
        with pytest.raises(OutcoreError, match="was left by break"):
            statement()


def test_a_loop_without_statements_is_an_error(world):
    p, _, _ = program(world)
    with pytest.raises(OutcoreError, match="a loop without statements"):
        for _ in p.iterate(3):
            pass


WITHIN = {
    "list": list,
    "enumerate": lambda loop: list(enumerate(loop)),
    "zip": lambda loop: list(zip(loop, [1, 2, 3], strict=False)),
    "list comprehension": lambda loop: [1 for _ in loop],
    "set comprehension": lambda loop: {1 for _ in loop},
    "dict comprehension": lambda loop: {id(k): 2 for k in loop},
    "generator": lambda loop: sum(1 for _ in loop),
    "iter": iter,
    "star": lambda loop: [*loop],
    "map": lambda loop: list(map(str, loop)),
}


@pytest.mark.parametrize("name", WITHIN)
def test_a_loop_within_another_iterator_is_an_error(world, name):
    p, _, _ = program(world)
    with pytest.raises(OutcoreError, match=r"is written `for _ in p\.iterate\(n\):`"):
        WITHIN[name](p.iterate(3))


def double_by_multiplying(p, a, r):
    n = 1
    for _ in p.iterate(3):
        n *= 2
        r += n * a


def halve_a_step(p, a, r):
    step = np.float64(1.0)
    for _ in p.iterate(3):
        r += float(step) * a
        step = step / 2


def count_within(p, a, r):
    n = 0
    for _ in p.iterate(3):
        for _ in range(2):
            r += n * a
            n = n + 1


@pytest.mark.parametrize("count", [double_by_multiplying, halve_a_step, count_within])
def test_a_number_that_a_body_reads_and_changes_is_an_error(world, count):
    p, a, r = program(world)
    with pytest.raises(OutcoreError, match="is another number at the end of a loop than at its begin"):
        count(p, a, r)
    with pytest.raises(OutcoreError, match="is another number"):
        p.run()


def test_a_number_that_each_run_of_a_body_gives_first_is_allowed(world):
    p, a, r = program(world)
    for i in range(5):
        r += i * a
    for _ in p.iterate(3):
        for i in range(3):
            r += i * a
    assert result(p, r) == 10 + 3 * 3


def test_else_of_a_loop_runs_once(world):
    p, a, r = program(world)
    for _ in p.iterate(3):
        r += a
    r += 10 * a
    assert result(p, r) == 13


def test_a_name_that_a_body_reads_and_gives_to_another_array_is_an_error(world):
    p, a, r = program(world)
    with pytest.raises(OutcoreError, match="'r' is another array at the end"):
        for _ in p.iterate(3):
            r = r + a
    p, a, r = program(world)
    t = p.array((2, 2), name="t")
    with pytest.raises(OutcoreError, match="'t' is another array at the end"):
        for _ in p.iterate(3):
            new = p.einsum("ij,jk->ik", t, a)
            t = new
    p, a, r = program(world)
    w = p.einsum("ij,jk->ik", a, a)
    r += w
    for _ in p.iterate(3):
        w = p.einsum("ij,kj->ik", a, a)  # a name that is used again, and another array
        r += w
    assert result(p, r) == 2 + 3 * 2


def test_factors_of_an_array_are_recorded_in_place(world):
    p, a, r = program(world)
    r += a
    for _ in p.iterate(3):
        r *= -2
    assert result(p, r) == -8


def test_sums_whose_arrays_have_changed_are_errors(world):
    p, a, r = program(world)
    total = r + a
    r += a
    with pytest.raises(OutcoreError, match="r was changed after a sum with it was written"):
        r += total
    for _ in p.iterate(2):
        inner = 2 * a
        r += inner
    with pytest.raises(OutcoreError, match="a sum with a was written in a loop and is used after it"):
        r += inner
    before = r + a
    x = p.array((2, 2), name="x")
    with pytest.raises(OutcoreError, match="a sum with r was written before a loop"):
        for _ in p.iterate(2):
            x += before
            r += a


def test_statements_outside_of_the_block_are_errors(world):
    with outcore.Program(world) as p:
        a, r = p.input(np.ones((2, 2)), "a"), p.output(p.array((2, 2)), "r")
        for _ in p.iterate(2):
            r += a
    for statement in (lambda: r.__iadd__(a), lambda: p.array((3,)), lambda: outcore.einsum("ij->ji", a)):
        with pytest.raises(OutcoreError, match="its block is over"):
            statement()
    with p:  # goes on
        r += a
    assert result(p, r) == 3


def test_what_runs_records_nothing(world):
    with outcore.Program(world) as p:
        a, r = p.input(np.ones((2, 2)), "a"), p.output(p.array((2, 2)), "r")
        for _ in p.iterate(2, until=lambda i: bool(p.array((2,)))):
            r += a
    with pytest.raises(OutcoreError, match="its block is over"):
        p.run()


def test_a_block_that_an_exception_has_left_is_no_program(world):
    with pytest.raises(KeyError), outcore.Program(world) as p:
        p.output(p.array((2, 2)), "r")
        raise KeyError
    with pytest.raises(OutcoreError, match="its block was left by KeyError"):
        p.run()


def test_outputs_are_arrays_of_the_program(world):
    p, a, r = program(world)
    other = program(world)[1]
    for each in (a + r, np.ones(2), None, other):
        with pytest.raises(OutcoreError, match="an array of the program"):
            p.output(each)
