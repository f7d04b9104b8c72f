"""Backends for tiles that a program or a package adds."""

from __future__ import annotations

import errno
import subprocess
import sys

import numpy as np
import pytest

import outcore
from outcore import OutcoreError
from outcore.conformance import backends
from outcore.extend import Backend, add_backend
from outcore.parallel.requests import done


class Dictionary(Backend):
    """A backend of one process."""

    def __init__(self, world, layout, dtype, *, limit=None):
        super().__init__(world, layout, dtype)
        self.limit, self.tiles = limit, {}

    def get_async(self, number, out=None):
        shape = self.layout.tile_shape(self.layout.stored[number])
        found = self.tiles.get(number, np.zeros(shape, self.dtype)).copy()
        if out is not None:
            out[...] = found
        return done(found if out is None else out)

    def put_async(self, number, value):
        self.tiles[number] = np.array(value)
        return done()

    def acc_async(self, number, value, alpha=1):
        self.tiles[number] = self.get_async(number).wait() + np.asarray(alpha * value, self.dtype)
        return done()

    def sync(self):
        pass

    def close(self):
        self.tiles.clear()


@pytest.fixture
def world(tmp_path):
    add_backend("dictionary", Dictionary)
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


AXIS = outcore.Tiling(30, tile=10)


def test_what_is_made_of_an_array_lies_where_it_does(world):
    with outcore.Array.from_numpy(world, np.eye(30), (AXIS, AXIS), where="dictionary") as a:
        assert a.where == "dictionary" and isinstance(a.backend, Dictionary)
        with 2 * a + a as b:
            assert b.where == "dictionary"
            assert np.array_equal(b.to_numpy(), 3 * np.eye(30))


def test_options_are_those_of_the_place(world):
    with outcore.Array(world, (AXIS,), where="dictionary", limit=5) as a:
        assert a.backend.limit == 5
    with pytest.raises(TypeError, match="codec"):
        outcore.Array(world, (AXIS,), where="dictionary", codec="blosc2")
    with pytest.raises(OutcoreError, match="with a path"):
        outcore.Array(world, (AXIS,), where="dictionary", path="x")


@pytest.mark.parametrize("planned", [None, "disk"])
def test_contractions_read_and_write_it(world, planned, monkeypatch):
    monkeypatch.setattr(Dictionary, "planned_as", planned)
    x = np.random.default_rng(1).normal(size=(30, 30))
    with (
        outcore.Array.from_numpy(world, x, (AXIS, AXIS), where="dictionary") as a,
        outcore.Array(world, (AXIS, AXIS), where="dictionary") as c,
    ):
        outcore.einsum("ik,kj->ij", a, a, out=c, memory="1MB")
        np.testing.assert_allclose(c.to_numpy(), x @ x)
        plan = str(outcore.einsum.plan("ik,kj->ij", a, a, out=c, memory="1MB"))
        assert f"operand 0: 30x30 float64 {planned or 'process'}" in plan


def test_the_suite_finds_a_back_end_that_does_not_add(world, monkeypatch):
    monkeypatch.setattr(
        Dictionary, "acc_async", lambda self, number, value, alpha=1: self.put_async(number, value)
    )
    with pytest.raises(AssertionError):
        backends.check_accumulates_add_up(world, backends.make_at(world, "dictionary"))


def test_names_are_of_one_place(world):
    for name in ("disk", "auto", "dictionary"):
        with pytest.raises(OutcoreError, match="the name is taken") as raised:
            add_backend(name, lambda *_: None)
        assert raised.value.errno == errno.EEXIST
    with pytest.raises(TypeError, match="cannot be called"):
        add_backend("new", 5)
    with pytest.raises(OutcoreError, match="it may be auto, process, node, global, disk, dictionary"):
        outcore.Array(world, (AXIS,), where="nowhere")


def test_what_is_no_back_end_is_refused(world):
    add_backend("nothing", lambda world, layout, dtype: {})
    with pytest.raises(TypeError, match=r"is no outcore\.extend\.Backend"):
        outcore.Array(world, (AXIS,), where="nothing")


def test_a_package_brings_a_place(tmp_path):
    info = tmp_path / "tiles-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiles\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[outcore.backends]\nmine = tiles_module:Mine\n")
    (tmp_path / "tiles_module.py").write_text(
        "from outcore.tensor.arrays.backends.process import ProcessTiles\nclass Mine(ProcessTiles): pass\n"
    )
    program = (
        "import outcore\nwith outcore.World('self') as world, outcore.Array(world, (4,), where='mine') as a:\n"
        "    print(a.where, type(a.backend).__name__)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["mine", "Mine"]
