"""Contractions and programs on full and damaged disks, ended by Ctrl-C, and with elements that are no numbers."""

import errno
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conformance.full_disk import files_of_at_most

import outcore
from outcore import Array, Layout, OutcoreError, Program, Tiling, _core
from outcore.base.sizes import in_words
from outcore.tensor.plan.rates import ASSUMED

N = 512
VALUES = np.random.default_rng(1).standard_normal((N, N))
AXIS = Tiling(N, tile=128)


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


def on_disk(world, values):
    array = outcore.DiskArray(world, values.shape, values.dtype)
    array.write_all(values)
    return array


# ---- full disks ----


def test_a_result_that_the_disk_does_not_hold_is_an_error_and_operands_stay(world):
    with on_disk(world, VALUES) as a:
        before = world.budget.used_bytes
        with (
            files_of_at_most(1_000_000),
            pytest.raises(OutcoreError) as caught,
            Array(world, [AXIS, AXIS], where="disk") as out,
        ):
            outcore.einsum("ik,kj->ij", a, a, out=out, memory="1MB")
        assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
        assert world.budget.used_bytes == before
        with Array(world, [AXIS, AXIS], where="disk") as out:
            outcore.einsum("ik,kj->ij", a, a, out=out, memory="1MB")
            assert np.allclose(out.to_numpy(), VALUES @ VALUES)
        assert np.array_equal(a[...], VALUES)


def powers(world, a, path, step=lambda box, x: x):
    """x = a, a a, a a a, .., with a checkpoint of each; `step` is called for each box of each."""
    with Program(world, memory="1500kB", checkpoint=path, every=0) as p:
        m, x = p.input(a, "a"), p.output(p.array((N, N)), "x")
        x += m
        for _ in p.iterate(3):
            y = outcore.einsum("ij,jk->ik", x, m, scale=1 / N)
            p.map(step, y, out=x, text="step")
    return p, x


def cube():
    return VALUES @ VALUES @ VALUES @ VALUES / N**3


def check_going_on(world, a, path, least):
    """A run resumes where the one before had an error; it needs at most `least` statements."""
    p, x = powers(world, a, path)
    report = p.run(plan=p.plan(ASSUMED), restart=True)
    assert len(report.statements) <= least
    assert np.allclose(x.result[...], cube())
    x.result.close()


def test_a_disk_that_gets_full_leaves_what_was_kept(world, tmp_path):
    path = tmp_path / "kept"
    with on_disk(world, VALUES) as a:
        steps, disk = [], ExitStack()

        def step(box, x):
            steps.append(box)
            if sum(each[0].start == each[1].start == 0 for each in steps) == 2:  # the second iteration
                disk.enter_context(files_of_at_most(100_000))
            return x

        p, _ = powers(world, a, path, step)
        with disk, pytest.raises(OutcoreError) as caught:
            p.run(plan=p.plan(ASSUMED))
        assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
        check_going_on(world, a, path, 5)


def test_a_disk_that_is_too_small_is_said_before_the_start(world, monkeypatch):
    with on_disk(world, VALUES) as a:
        p, _ = powers(world, a, None)
        plan = p.plan(ASSUMED)
        assert plan.disk_bytes > 0
        monkeypatch.setattr(
            _core, "file_system", lambda path: SimpleNamespace(free_bytes=1_000_000, network=False)
        )
        needed = re.escape(in_words(plan.disk_bytes))
        with pytest.raises(OutcoreError, match=rf"arrays take {needed}, there are 1\.00 MB") as caught:
            p.run(plan=plan)
        assert caught.value.errno == errno.ENOSPC
        assert p.report is None


# ---- damaged disks ----


def damage(files, values):
    """Flips a bit of these elements wherever they are found; returns how often."""
    damaged = 0
    for file in files:
        content = file.read_bytes()
        place = content.find(values.tobytes())
        if place >= 0:
            with file.open("r+b", buffering=0) as opened:
                opened.seek(place)
                opened.write(bytes([content[place] ^ 0x10]))
            damaged += 1
    return damaged


def files_in(directory):
    return [path for path in directory.rglob("*") if path.is_file()]


def own_files(directory):
    """Open files of this process in a directory, also those without a name."""
    found = []
    for link in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # that of this list
            if str(directory) in os.readlink(link) and link.stat().st_size:
                found.append(link)
    return found


def test_a_damaged_operand_is_an_error_that_names_it(world, tmp_path):
    path = tmp_path / "a"
    Array.from_numpy(world, VALUES, [AXIS, AXIS], path=path).close()
    assert damage(files_in(path), VALUES[300, 256:260]) == 1
    with Array.open(world, path) as a, on_disk(world, VALUES) as out:
        with Program(world) as p:
            p.output(outcore.einsum("ik,kj->ij", p.input(a), VALUES))
        for call in (
            lambda: outcore.einsum("ik,kj->ij", a, VALUES, out=out),
            lambda: p.run(plan=p.plan(ASSUMED)),
        ):
            with pytest.raises(OutcoreError) as caught:
                call()
            assert caught.value.errno == errno.EIO
            assert str(path) in str(caught.value)
        assert damage(files_in(path), np.frombuffer(_flipped(VALUES[300, 256:260]))) == 1
        with outcore.einsum("ik,kj->ij", a, VALUES) as found:
            assert np.allclose(found.to_numpy(), VALUES @ VALUES)


def _flipped(values):
    content = bytearray(values.tobytes())
    content[0] ^= 0x10
    return bytes(content)


def test_a_damaged_intermediate_is_an_error_and_what_was_kept_goes_on(world, tmp_path):
    path, scratch = tmp_path / "kept", tmp_path / "scratch"
    scratch.mkdir()
    found = []

    def step(box, x):
        if not found:
            found.append(damage(own_files(scratch), VALUES[300, 300:304] / N))
        return x

    with outcore.World("self", scratch=scratch, memory="64MB") as other, on_disk(other, VALUES) as a:
        with Program(other, memory="200kB", checkpoint=path, every=0) as p:
            m, x, y = p.input(a, "a"), p.output(p.array((N, N)), "x"), p.output(p.array((N, N)), "y")
            p.combine(m * (1 / N), out=x)
            p.map(step, m, out=y, text="step")
            outcore.einsum("ij,jk->ik", x, m, out=y)
        plan = p.plan(ASSUMED)
        assert plan.where["x"] == "disk"
        with pytest.raises(OutcoreError) as caught:
            p.run(plan=plan)
        assert found == [1], caught.value
        assert caught.value.errno == errno.EIO
        with Program(other, memory="20MB", checkpoint=path, every=0) as p:
            m, x, y = p.input(a, "a"), p.output(p.array((N, N)), "x"), p.output(p.array((N, N)), "y")
            p.combine(m * (1 / N), out=x)
            p.map(lambda box, x: x, m, out=y, text="step")
            outcore.einsum("ij,jk->ik", x, m, out=y)
        report = p.run(plan=p.plan(ASSUMED), restart=True)
        assert report.restarted
        assert np.allclose(y.result[...], VALUES @ VALUES / N)
        x.result.close()
        y.result.close()


# ---- Ctrl-C ----

INTERRUPTED = """
import sys, time
import numpy as np
import outcore
from outcore.base.sizes import in_words
from outcore.tensor.plan.rates import ASSUMED

with outcore.World("self", scratch=sys.argv[1], memory="64MB") as world:
    def slow(box, x):
        print("under way", flush=True)
        time.sleep(0.2)
        return x

    with outcore.Program(world, memory="1MB", checkpoint=sys.argv[2], every=0) as p:
        x = p.output(p.array((512, 512)), "x")
        x += p.input(np.ones((512, 512)), "one")
        for _ in p.iterate(1000):
            p.map(slow, x, out=x, text="slow")
    p.run(plan=p.plan(ASSUMED))
"""


def test_ctrl_c_ends_a_program_which_can_go_on(world, tmp_path):
    path = tmp_path / "kept"
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, tmp_path, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "under way\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said
    with Program(world, checkpoint=path) as p:
        x = p.output(p.array((N, N)), "x")
        x += p.input(np.ones((N, N)), "one")
        for _ in p.iterate(1000):
            p.map(lambda box, x: x, x, out=x, text="slow")
    report = p.run(plan=p.plan(ASSUMED), restart=True)
    assert report.restarted
    assert (x.result[...] == 1).all()
    x.result.close()


# ---- no numbers ----


def strange(symmetry=None, sparsity=None):
    layout = Layout([Tiling(9, tile=4)] * 2, sparsity, symmetry)
    values = np.random.default_rng(3).standard_normal((9, 9))
    values = sum(sign * np.transpose(values, axes) for axes, sign in layout.symmetry.elements.items())
    for tile in np.ndindex(*layout.grid):
        if not layout.there[tile]:
            values[layout.box(tile)] = 0
    signs = layout.symmetry.elements.get((1, 0), 1)
    for (i, j), value in (((0, 5), np.nan), ((2, 8), np.inf)):
        values[i, j], values[j, i] = value, signs * value
    return layout, values


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("where", ["process", "global", "disk"])
@pytest.mark.parametrize("scale", [pytest.param(1, marks=pytest.mark.long), 0, -0.5])
@pytest.mark.parametrize(
    ("symmetry", "sparsity"),
    [
        (None, None),
        ("symmetric(0,1)", None),
        ("antisymmetric(0,1)", None),
        (None, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]),
        ("symmetric(0,1)", [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]),
    ],
)
def test_no_numbers_and_infinities_pass(world, symmetry, sparsity, scale, where):
    """As in NumPy; but an absent tile is zero whatever it is multiplied by."""
    layout, values = strange(symmetry, sparsity)
    other = np.random.default_rng(4).standard_normal((9, 9))
    with np.errstate(invalid="ignore"):
        expected = scale * (values @ other)
        total = scale * values + other
    with Array.from_numpy(world, values, layout, where=where) as a:
        for memory in ("2kB", "1MB"):
            found = outcore.einsum("ik,kj->ij", a, other, scale=scale, memory=memory)
            np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12, atol=1e-12)
            found.close()
            local = np.full((9, 9), np.nan)
            outcore.einsum("ik,kj->ij", other, other, out=local, accumulate=True, scale=scale, memory=memory)
            assert np.isnan(local).all()
            with Program(world, memory=memory) as p:
                x, y = p.input(a, "x"), p.input(other, "y")
                product = p.output(outcore.einsum("ik,kj->ij", x, y, scale=scale), "product")
                added = p.output(p.combine(scale * x + y), "added")
            p.run(plan=p.plan(ASSUMED))
            for variable, exact in ((product, expected), (added, total)):
                result = variable.result
                whole = result.to_numpy() if isinstance(result, Array) else result[...]
                np.testing.assert_allclose(whole, exact, rtol=1e-12, atol=1e-12)
                result.close()


@pytest.mark.parametrize("sign", ["symmetric", "antisymmetric"])
def test_infinite_complex_numbers_have_a_symmetry(world, sign):
    values = np.zeros((9, 9), complex)
    values[2, 3] = values[2, 8] = np.inf
    values[4, 5] = complex(1, np.inf)
    values = values + values.T if sign == "symmetric" else values - values.T
    layout = Layout([Tiling(9, tile=4)] * 2, symmetry=f"{sign}(0,1)")
    with Array.from_numpy(world, values, layout) as a:
        np.testing.assert_array_equal(a.to_numpy(), values)
        a.check_symmetry()
