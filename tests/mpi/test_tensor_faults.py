"""Contractions and programs where something goes wrong: one clear error, the same at all processes; none is left
waiting."""

import errno
import os
import re
import signal
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conformance.full_disk import files_of_at_most
from conformance.random_arrays import elements

import outcore
from outcore import Array, DiskArray, Layout, OutcoreError, Program, Tiling, _core
from outcore.tensor.plan.rates import ASSUMED

TILES, OTHER_TILES = [Tiling(8, tile=3)] * 2, [Tiling(8, tile=4)] * 2
VALUES = np.random.default_rng(1).standard_normal((8, 8))


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="100MB", nodes=request.param) as made:
        yield made


def refused(world, call, number, words):
    """All processes have the same error."""
    with pytest.raises(OutcoreError, match=words) as caught:
        call()
    assert caught.value.errno == number
    texts = {re.sub("^rank [0-9]*: ", "", each) for each in world.gather(str(caught.value))}
    assert len(texts) == 1, texts
    assert world.all_reduce(1) == world.size  # all are here, and in step


def given(world):
    """Arrays of one matrix: with tiles, with other tiles, on disk, on the same disk but with tiles."""
    a = Array.from_numpy(world, VALUES, TILES, where="disk")
    b = Array.from_numpy(world, VALUES, OTHER_TILES, where="global")
    d = DiskArray(world, (8, 8))
    d.write_all(VALUES)
    return a, b, d, Array.wrap(world, d, TILES)


def constant():
    made = np.zeros((8, 8))
    made.flags.writeable = False
    return made


def made(world, **options):
    return Array(world, TILES, **options)


# The statement, with arrays a, b (other tiles), d, w (d with tiles); the error; its words.
WRONG = {
    "a letter of the output": (
        lambda world, f, a, b, d, w: f("ik,kj->ix", a, a),
        errno.EINVAL,
        "'x' of the output is in no operand",
    ),
    "axes": (
        lambda world, f, a, b, d, w: f("ikl,kj->ij", a, a),
        errno.EINVAL,
        "operand 0 has 2 axes, its subscripts 'ikl'",
    ),
    "operands": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a),
        errno.EINVAL,
        "subscripts of 2 operands, 1 are given",
    ),
    "extents": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a, np.ones((7, 8))),
        errno.EINVAL,
        "'k' has extent 8, and 7 in operand 1",
    ),
    "tilings": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a, b),
        errno.EINVAL,
        "the tilings of axis 'k' differ",
    ),
    "a complex factor": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a, a, out=made(world), scale=1j),
        errno.EINVAL,
        "a result of type complex128 into .* of float64",
    ),
    "symmetry": (
        lambda world, f, a, b, d, w: f(
            "ik,kj->ij", a, a, out=made(world, symmetry="symmetric(0,1)", where="disk")
        ),
        errno.EINVAL,
        r"need not have the symmetry of `out` that permutes axes as \(1, 0\)",
    ),
    "the result is an operand": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a, d, out=a),
        errno.EINVAL,
        "the result.* is ",
    ),
    "elements of an operand": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", d, a, out=w),
        errno.EINVAL,
        "or has elements of it",
    ),
    "the same memory": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", (x := VALUES.copy()), a, out=x[:, ::-1]),
        errno.EINVAL,
        "or has elements of it",
    ),
    "a constant": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a, d, out=constant()),
        errno.EROFS,
        "cannot be given the result",
    ),
    "a function": (
        lambda world, f, a, b, d, w: f(
            "ik,kj->ij", a, d, out=Array.generated(world, TILES, lambda box: VALUES[box])
        ),
        errno.EROFS,
        "cannot be given the result",
    ),
    "a list": (
        lambda world, f, a, b, d, w: f("ik,kj->ij", a, d, out=VALUES.tolist()),
        errno.EROFS,
        "cannot be given the result",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_before_anything_is_changed(world, name):
    call, number, words = WRONG[name]
    arrays = given(world)

    def recorded(subscripts, *operands, out=None, **options):
        with Program(world) as p:
            variables = [p.input(each) for each in operands]
            same = [v for v, each in zip(variables, operands, strict=True) if each is out]
            target = None if out is None else same[0] if same else p.input(out)
            outcore.einsum(subscripts, *variables, out=target, **options)

    for function in (outcore.einsum, recorded):
        refused(world, lambda function=function: call(world, function, *arrays), number, words)
    for each in arrays[:3]:
        whole = each[...] if isinstance(each, DiskArray) else each.to_numpy()
        assert np.array_equal(whole, VALUES)
    world.barrier()
    for each in reversed(arrays):
        each.close()


def test_sums_and_functions_that_do_not_fit_are_refused_when_they_are_recorded(world):
    a, b, d, w = given(world)
    for write, number, words in (
        (lambda p: p.combine(p.input(a) + p.input(b)), errno.EINVAL, "tilings of axis 'a' differ"),
        (
            lambda p: p.map(lambda box, x: x, a, out=p.array(Layout(OTHER_TILES))),
            errno.EINVAL,
            "tilings of axis 'a' differ",
        ),
        (
            lambda p: p.combine(1j * p.input(a), out=p.array((8, 8))),
            errno.EINVAL,
            "complex128 into .* float64",
        ),
        (lambda p: p.combine(2 * p.input(a), out=p.input(constant())), errno.EROFS, "cannot be given"),
        (
            lambda p: (p.input(d), p.map(lambda box, x: x, a, out=p.input(w))),
            errno.EINVAL,
            "or has elements of it",
        ),
        (
            lambda p: (p.map(lambda box, x: x, a, out=p.input(w)), p.input(d)),
            errno.EINVAL,
            "or has elements of it",
        ),
    ):
        with Program(world) as p:
            refused(world, lambda p=p, write=write: write(p), number, words)
    for each in (w, d, b, a):
        each.close()


def test_options_that_a_program_does_not_take_are_refused(world):
    with Program(world) as p:
        x = p.input(VALUES)
        for options in (
            {"symmetrize": True},
            {"symmetry": "symmetric(0,1)"},
            {"memory": "1MB"},
            {"threads": 1},
        ):
            refused(
                world,
                lambda options=options: outcore.einsum("ik,kj->ij", x, x, **options),
                errno.EINVAL,
                f"{next(iter(options))}: a program decides",
            )


def test_memory_below_the_least_says_what_it_takes_and_that_is_enough(world):
    with Array.from_numpy(world, VALUES, TILES, where="disk") as a, DiskArray(world, (8, 8)) as out:
        for memory in (1, 50, 100):  # processes of a node that share panels take less
            with pytest.raises(OutcoreError, match=r"the smallest panels take [0-9]+ bytes") as caught:
                outcore.einsum("ik,kj->ij", a, a, out=out, memory=memory)
            assert caught.value.errno == errno.ENOMEM
            least = int(re.search(r"take ([0-9]+) bytes", str(caught.value))[1])
            assert memory < least < 1000
        outcore.einsum("ik,kj->ij", a, a, out=out, memory=least)
        assert np.allclose(out[...], VALUES @ VALUES)
        refused(
            world,
            lambda: outcore.einsum("ik,kj->ij", a, a, out=out, memory=9),
            errno.ENOMEM,
            "smallest panels",
        )


def test_an_operand_that_fails_at_one_process_is_an_error_of_all(world):
    def fails(box):
        if world.rank == world.size - 1 and box[0].start > 0:
            raise ZeroDivisionError("no such tile")
        return VALUES[box]

    a = Array.generated(world, TILES, lambda box: VALUES[box])
    bad = Array.generated(world, TILES, fails)
    with Array(world, TILES, where="disk") as out:
        if world.size == 1:
            refused(world, lambda: outcore.einsum("ik,kj->ij", bad, a, out=out), errno.EINVAL, "no such tile")
        else:  # unless that process gets no task
            errors = world.gather(
                _error_of(lambda: outcore.einsum("ik,kj->ij", bad, a, out=out, memory="1kB"))
            )
            assert len({each is None for each in errors}) == 1
            assert all(each is None or "no such tile" in each for each in errors)
        outcore.einsum("ik,kj->ij", a, a, out=out)
        assert np.allclose(out.to_numpy(), VALUES @ VALUES)
        out.sync()


def test_a_disk_that_is_full_at_one_process_is_an_error_of_all(world):
    side = Tiling(512, tile=64)
    a = Array.from_numpy(world, np.ones((512, 512)), [side, side], where="disk")
    out = Array(world, [side, side], where="disk", cache_bytes=70_000)
    is_full = world.rank == world.size - 1
    with files_of_at_most(20_000) if is_full else nullcontext():
        error = _error_of(lambda: outcore.einsum("ik,kj->ij", a, a, out=out, memory="500kB"))
    texts = {error and re.sub("^rank [0-9]*: ", "", error) for error in world.gather(error)}
    assert len(texts) == 1
    assert error is not None and "File too large" in error
    with suppress(OutcoreError):  # of other tiles that could not be written
        out.close()
    with Array(world, [side, side], where="disk", cache_bytes=70_000) as out:
        outcore.einsum("ik,kj->ij", a, a, out=out, memory="500kB")
        assert np.allclose(out.to_numpy(), 512)
        out.sync()
    a.close()


# ---- programs that something ends at one process: one error at all, and what was kept goes on ----


def doubled(world, values, path, step=lambda box, x: x):
    """x = 2 ((v + 1) v), in steps that are kept; `step` is called for each box of the second one."""
    n = len(values)
    with Program(world, memory="150kB", checkpoint=path, every=0) as p:
        v, x = p.input(values, "v"), p.output(p.array((n, n)), "x")
        w = p.map(lambda box, block: block + 1, v, text="first")
        y = p.map(step, w, text="step")
        outcore.einsum("ik,kj->ij", y, v, out=x, scale=2)
    return p, x


def goes_on(world, values, path, least):
    """Resumes with another number of processes, in the files that a failed run has left."""
    world.barrier()
    alone = world.split(0 if world.rank == 0 else -1)
    if alone is not None:
        with alone:
            p, x = doubled(alone, values, path)
            report = p.run(plan=p.plan(ASSUMED), restart=True)
            assert report.restarted == (least > 0)
            assert len(report.statements) <= 3 - least
            assert np.allclose(x.result[...], 2 * (values + 1) @ values)
            x.result.close()
    world.barrier()


def slow(world):
    """Rates at which a plan puts arrays of a program on disk."""
    return replace(ASSUMED, processes=world.size, nodes=world.node_count, sharing=1)


LARGE = np.random.default_rng(2).standard_normal((256, 256))


@pytest.mark.parametrize("how", ["is full", "is interrupted", "raises"])
def test_a_program_that_ends_at_one_process_ends_at_all_and_goes_on(world, shared_tmp_path, how):
    path, done = shared_tmp_path / "kept", ExitStack()

    def step(box, x):
        if box[0].start == box[1].start == 0:  # one process has that
            if how == "is interrupted":
                os.kill(os.getpid(), signal.SIGINT)
            elif how == "raises":
                raise ZeroDivisionError("cannot go on")
        return x

    def fill_disk(now):  # of process 0
        if how == "is full" and "step" in now.statement:
            done.enter_context(files_of_at_most(1000))

    p, _ = doubled(world, LARGE, path, step)
    plan = p.plan(slow(world))
    assert plan.where["x"] == "disk"
    error = None
    with done:
        try:
            p.run(plan=plan, progress=fill_disk)
        except (OutcoreError, KeyboardInterrupt) as caught:
            error = type(caught), re.sub("^rank [0-9]*: ", "", str(caught))
    found = world.gather(error)
    assert None not in found
    if how == "is full":
        assert len(set(found)) == 1
        assert "File too large" in found[0][1]
    elif how == "raises":
        assert all("cannot go on" in text for _, text in found)
    else:
        assert KeyboardInterrupt in [kind for kind, _ in found]
    goes_on(world, LARGE, path, 1)


def test_a_damaged_operand_of_a_program_is_an_error_of_all_that_names_it(world, shared_tmp_path):
    path, kept = shared_tmp_path / "operand", shared_tmp_path / "kept"
    axis = Tiling(256, tile=64)
    Array.from_numpy(world, LARGE, [axis, axis], path=path).close()
    place = LARGE[200, 64:68].tobytes()
    flipped = bytes([place[0] ^ 0x10]) + place[1:]

    def damage(old, new):
        if world.rank == 0:
            files = [each for each in path.rglob("*") if each.is_file()]
            (file,) = [each for each in files if old in each.read_bytes()]
            file.write_bytes(file.read_bytes().replace(old, new))
        world.barrier()

    def record(array):
        with Program(world, memory="150kB", checkpoint=kept, every=0) as p:
            v, x = p.input(array, "v"), p.output(p.array((256, 256)), "x")
            w = p.map(lambda box, block: 2 * block, p.input(LARGE, "w"), text="first")
            outcore.einsum("ik,kj->ij", v, w, out=x)
        return p, x

    damage(place, flipped)
    with Array.open(world, path) as array:
        p, _ = record(array)
        refused(world, lambda: p.run(plan=p.plan(slow(world))), errno.EIO, str(path))
    damage(flipped, place)
    with Array.open(world, path) as array:
        p, x = record(array)
        report = p.run(plan=p.plan(slow(world)), restart=True)
        assert report.restarted
        assert len(report.statements) == 1
        assert np.allclose(x.result[...], 2 * LARGE @ LARGE)
        world.barrier()
        x.result.close()


def test_a_disk_that_is_too_small_at_one_process_is_said_before_the_start(world, monkeypatch):
    with Program(world, memory="100kB", disk="1MB") as p:
        v, x = p.input(LARGE, "v"), p.output(p.array((256, 256)), "x")
        outcore.einsum("ik,kj->ij", v, v, out=x)
    plan = p.plan(slow(world))
    assert plan.disk_bytes > 0
    p.disk = int(plan.disk_bytes) - 1
    refused(world, lambda: p.plan(slow(world)), errno.ENOSPC, "its arrays take")
    if world.rank == world.size - 1:
        monkeypatch.setattr(
            _core, "file_system", lambda path: SimpleNamespace(free_bytes=1000, network=False)
        )
    refused(world, lambda: p.run(plan=plan), errno.ENOSPC, "arrays take")
    assert p.report is None


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("where", ["process", "global", "disk"])
def test_no_numbers_and_infinities_pass(world, where):
    """Through products in panels, sums and functions, into copies and tiles of all processes."""
    values = VALUES + VALUES.T
    for (i, j), value in (((0, 5), np.nan), ((2, 7), np.inf)):
        values[i, j] = values[j, i] = value
    layout = Layout(TILES, symmetry="symmetric(0,1)")
    with np.errstate(invalid="ignore"):
        product, added = values @ VALUES, 2 * values + VALUES
    with Array.from_numpy(world, values, layout, where=where) as a:
        for memory, scale in (("2kB", 0), ("1MB", -0.5)):
            expected = scale * product
            with outcore.einsum("ik,kj->ij", a, VALUES, scale=scale, memory=memory) as found:
                np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12)
                world.barrier()
            with Program(world, memory=memory) as p:
                x, y = p.input(a), p.input(VALUES)
                z = p.output(p.combine(2 * x + y))
                u = p.output(outcore.einsum("ik,kj->ij", x, y, scale=scale))
            p.run(plan=p.plan(slow(world)))
            for variable, exact in ((z, added), (u, expected)):
                np.testing.assert_allclose(elements(world, variable.result), exact, rtol=1e-12)
                variable.result.close()


def _error_of(call):
    try:
        call()
    except OutcoreError as error:
        return str(error)
    return None
