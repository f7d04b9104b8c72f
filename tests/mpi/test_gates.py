"""Collective calls of which one process makes a wrong one: all raise the same OutcoreError, and can go on.

Each function below makes one kind of call, rightly; what stands above it says what one process gives instead. An
argument that names the processes (a world, an array that is written) is always right: without it nobody is told.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from outcore import (
    BlockSparseArray,
    DiskArray,
    GlobalArray,
    NodeArray,
    OutcoreError,
    RecordFile,
    SharedFile,
    World,
    checkpoint,
    hdf5,
    trace,
)
from outcore import linalg as am


class Strange:
    """Raises something of its own, whatever is asked of it."""

    class Error(Exception):
        pass

    def refuse(self, *_):
        raise self.Error("not with me")

    __fspath__ = __index__ = __array__ = __iter__ = __reduce__ = __len__ = __getitem__ = refuse


def unpicklable():
    """It cannot be sent, and JSON cannot hold it either."""


STRANGE = Strange()
unpicklable.__qualname__ = "nowhere"
NAME = "\ud800"  # stands for no bytes


class Places:
    """Names of files, the same at all processes."""

    def __init__(self, directory):
        self.directory, self._numbers, self._made = directory, itertools.count(), {}

    def new(self):
        return self.directory / f"place{next(self._numbers)}"

    def made(self, make, world):
        """Where `make(world, place)`, which is called once, has made something."""
        if make not in self._made:
            self._made[make] = self.new()
            make(world, self._made[make])
        return self._made[make]


@pytest.fixture
def world(comm, shared_tmp_path):
    with World(comm, memory="200MB", scratch=shared_tmp_path, nodes="hosts") as made:
        yield made


@pytest.fixture
def places(shared_tmp_path):
    return Places(shared_tmp_path)


Call = Callable[..., None]
WRONG: dict[Call, list[dict[str, Any]]] = {}
"""Of each call: arguments that one process gives, where the others give none."""


def wrong(**arguments):
    """Arguments that are only wrong together, or at one process, of the call below."""

    def add(call):
        WRONG.setdefault(call, []).append(arguments)
        return call

    return add


def each(name, *values):
    """Several wrong values of one argument of the call below."""

    def add(call):
        WRONG.setdefault(call, []).extend({name: value} for value in values)
        return call

    return add


# ---- worlds ----


@each("nodes", "racks", 5, STRANGE)
@each("memory", "much", -1, 0, [], STRANGE)
@each("scratch", 5, "/no/such/place", NAME, STRANGE)
def make_a_world(world, places, **options):
    with World(world.comm, **options) as made:
        made.barrier()


@each("color", "red", 1.5, 1 << 40, None, STRANGE)
@each("key", "first", 1 << 40)
@each("scratch", 5, "/no/such/place", NAME, STRANGE)
def split(world, places, color=0, key=0, scratch=None):
    with world.split(color, key, scratch) as part:
        part.barrier()


@each("root", 99, -1, 1.5, "first", 1 << 40, STRANGE)
@wrong(root=1)
def broadcast(world, places, root=0):
    assert world.broadcast(world.rank, root) == root


@each("value", unpicklable, STRANGE)
def gather(world, places, value=1):
    assert world.gather(value) == [1] * world.size


@each("value", "text", np.ones(3), np.ones(2, np.float32), 1.0, np.ones(2, object), STRANGE)
@each("op", "mean", 5, "max", STRANGE)
def all_reduce(world, places, value=(1, 2), op="sum"):
    world.all_reduce(np.asarray(value) if isinstance(value, tuple) else value, op)


@each("what", "other work", 5)
@each("argument", 2, unpicklable, STRANGE)
@each("step", STRANGE.refuse, 5)
def together(world, places, what="work", argument=1, step=int):
    with world.together(what, argument):
        step()


@each("name", 5, None, "other", NAME, STRANGE)
@each("procedure", None, 5)
def register(world, places, name="right", procedure=print):
    new = str(places.new())
    world.register(new if name == "right" else name, procedure)


@each("name", 5, "another", NAME, STRANGE)
def unregister(world, places, name="right"):
    served = str(places.new())
    world.register(served, lambda *_: None)
    world.unregister(served if name == "right" else name)


# ---- arrays in memory ----


@each("shape", "large", (4, -1), (), (5, 6), (4.5, 5), (1,) * 9, (1 << 70,), None, STRANGE)
@each("dtype", "float16", "no type", "int32", object(), 5, STRANGE)
@each("block", "x", (2, 2), (2, 2, 2), 0, STRANGE)
@each("distribution", 3, [[0, 9], [0]], [[0]], STRANGE)
@wrong(block=2, distribution=[[0], [0]])
def make_a_global_array(world, places, shape=(4, 5), dtype="float64", **options):
    with GlobalArray(world, shape, dtype, **options) as made:
        made.sync()


@each("shape", "large", (4, -1), (), (5, 6), (4.5, 5), (1,) * 9, (1 << 70,), None, STRANGE)
@each("dtype", "float16", "no type", "int32", object(), STRANGE)
def make_a_node_array(world, places, shape=(4, 5), dtype="float64"):
    with NodeArray(world, shape, dtype) as made:
        made.barrier()


@each("value", "x", 2.0, unpicklable, STRANGE, 1j)
@each("section", np.s_[1:3])
def fill(world, places, value=1.0, section=...):
    with GlobalArray(world, (6, 5)) as a:
        am.fill(a.section(section), value)
        am.scale(a.section(section), value)


@each("alpha", "x", 2.0, unpicklable, STRANGE)
def scale(world, places, alpha=3.0):
    with GlobalArray(world, (6, 5)) as a:
        am.scale(a, alpha)


def operands(world):
    """Three arrays, and others that do not go with them."""
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
    def call(world, places, out="right", a="right", b="right"):
        x, y, z = operands(world)
        ELEMENTWISE[name](given(out, x), given(a, y), given(b, z))

    call.__name__ = name
    for argument in ("out", "a", "b"):
        each(argument, *WRONG_OPERANDS)(call)


for _name in ELEMENTWISE:
    elementwise(_name)


@each("alpha", "x", 2.0, unpicklable, STRANGE)
@each("beta", "x", 2.0, unpicklable, STRANGE)
def add_multiples(world, places, alpha=1.0, beta=1.0):
    x, y, z = operands(world)
    am.add(x, y, z, alpha=alpha, beta=beta)


@each("function", None, 5, STRANGE.refuse, lambda x: "text", lambda x: x[:1, :1, None])
def apply(world, places, function=np.exp):
    x, y, _ = operands(world)
    am.apply(function, x, y)


@each("a", *WRONG_OPERANDS)
@each("out", *WRONG_OPERANDS)
def take_absolute_values(world, places, out="right", a="right"):
    x, y, _ = operands(world)
    am.absolute(given(out, x), given(a, y))
    am.reciprocal(given(out, x), given(a, y))
    am.transpose(given(out, x), given(a, y))


@each("axes", "x", (0,), (0, 0), (0, 5), (1, 0), 5, unpicklable, STRANGE)
@each("a", *WRONG_OPERANDS)
@each("out", *WRONG_OPERANDS)
def copy(world, places, out="right", a="right", axes=None):
    x, y, _ = operands(world)
    am.copy(given(out, x), given(a, y), axes)


@each("a", *WRONG_OPERANDS)
@each("b", *WRONG_OPERANDS)
@each("conjugate", True, unpicklable)
def dot(world, places, a="right", b="right", conjugate=False):
    x, y, _ = operands(world)
    am.dot(given(a, x), given(b, y), conjugate=conjugate)


@each("a", "section")
def reduce_to_numbers(world, places, a="right"):
    x, _, _ = operands(world)
    am.sum(given(a, x))
    am.min(given(a, x))
    am.max(given(a, x))


@each("kind", "two", "max", 5, unpicklable, STRANGE)
@each("a", "section")
def norm(world, places, a="right", kind="one"):
    x, _, _ = operands(world)
    am.norm(given(a, x), kind)


@each("out", "section")
@each("hermitian", True, unpicklable)
def symmetrize(world, places, out="right", hermitian=False):
    x, _, _ = operands(world)
    am.symmetrize(given(out, x), hermitian=hermitian)


@each("a", *WRONG_OPERANDS)
@each("b", *WRONG_OPERANDS)
@each("out", *WRONG_OPERANDS)
@each("alpha", "x", unpicklable, STRANGE)
@each("beta", "x", unpicklable, STRANGE)
@each("transpose_a", True, unpicklable)
def matmul(world, places, out="right", a="right", b="right", alpha=1.0, beta=0.0, transpose_a=False):
    x, y, z = operands(world)
    am.matmul(given(out, x), given(a, y), given(b, z), alpha=alpha, beta=beta, transpose_a=transpose_a)


@each("a", *WRONG_OPERANDS)
@each("vectors", *WRONG_OPERANDS)
@each("b", *WRONG_OPERANDS)
def eigh(world, places, a="right", vectors="right", b="right"):
    pytest.importorskip("scipy")
    x, y, z = operands(world)
    for matrix in (x, z):
        for i in range(5):
            if world.rank == 0:
                matrix[i, i] = 10.0 + i
    world.barrier()
    am.eigh(given(a, x), given(vectors, y), given(b, z))


# ---- arrays on disk ----

PATHS = (5, NAME, "zero\0inside", b"bytes", "other/name", STRANGE)
SIZES = ("much", -1, [], STRANGE)


@each("shape", "large", (4, -1), (0, 5), (), (5, 6), (4.5, 5), (1,) * 9, (1 << 70,), None, STRANGE)
@each("dtype", "float16", "no type", "int32", object(), STRANGE)
@each("path", *PATHS)
@each("chunk", "x", (2, 2), (0, 1), (1,), 5.5, STRANGE)
@each("typical", "x", (0, 1), (1,), 5.5, STRANGE)
@each("codec", "zip", 5, "blosc2", NAME, STRANGE)
@each("placement", "here", 5, "shared", NAME, STRANGE)
@each("overwrite", True, "yes", 5, STRANGE)
@each("expected_bytes", "x", 100, 1.5, 1 << 70, STRANGE)
@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
@each("identity", 5, "\n", "x" * 300, "other", NAME, STRANGE)
@each("contained", 1000, -1, "x", 1.5, STRANGE)
def make_a_disk_array(world, places, shape=(4, 5), dtype="float64", **options):
    with DiskArray(world, shape, dtype, **options) as made:
        made.stored_bytes()


def store(world, place):
    DiskArray(world, (4, 5), path=place).close()


def store_sparse(world, place):
    BlockSparseArray(world, TILINGS, [(0, 1)], path=place).close()


def store_checkpoint(world, place):
    checkpoint.save(world, place, {"a": np.ones(3), "c": np.ones(3)})


def store_hdf5(world, place):
    h5py = pytest.importorskip("h5py")
    if world.rank == 0:
        with h5py.File(place, "w") as made:
            made["d"] = np.ones((4, 5))
    world.barrier()


@each("path", *PATHS, None)
@each("read_only", False, "yes", 5, STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
@each("contained", 1000, 1, "x", STRANGE)
def open_a_disk_array(world, places, path="right", **options):
    place = places.made(store, world)
    with DiskArray.open(world, place if path == "right" else path, **options) as opened:
        opened.stored_bytes()


@each("parent", None, 5, STRANGE)
def share(world, places, parent="right"):
    with world.split(0) as part, DiskArray(part, (4, 5)) as made:
        made.share(world if parent == "right" else parent)


TRANSFERRED = (
    None,
    5,
    "text",
    [1.0],
    np.ones((4, 5), np.float32),
    np.ones((5, 5)),
    np.ones((4, 5, 1)),
    STRANGE,
)
BOXES = ("x", 1.5, np.s_[2:9], np.s_[::2], np.s_[1:3], (1, 2, 3), [1, 2], STRANGE)
ORDERS = ("x", (0,), (0, 0), (0, 1 << 40), (1, 0), 5, 1.5, STRANGE)


@each("source", *TRANSFERRED)
@each("box", *BOXES)
@each("order", *ORDERS)
def write_a_global_array(world, places, source="right", box=..., order=None):
    with DiskArray(world, (4, 5)) as disk, GlobalArray(world, (4, 5)) as g:
        disk.write_all(g if isinstance(source, str) and source == "right" else source, box, order=order)


@each("target", *TRANSFERRED)
@each("box", *BOXES)
@each("order", *ORDERS)
def read_a_global_array(world, places, target="right", box=..., order=None):
    with DiskArray(world, (4, 5)) as disk, GlobalArray(world, (4, 5)) as g:
        disk.read_all(g if isinstance(target, str) and target == "right" else target, box, order=order)


BLOCKS = (None, 5, "text", [1.0], np.ones((1, 5), np.float32), np.ones((2, 5)), np.ones((1, 5, 1)), STRANGE)


@each("source", *BLOCKS)
@each("box", "x", 1.5, np.s_[2:9], np.s_[::2], np.s_[:], (1, 2, 3), [1, 2], STRANGE)
@each("order", "x", (0,), (0, 0), (0, 1 << 40), 5, 1.5, STRANGE)
def write_a_block(world, places, source="right", box="right", order=None):
    rows = np.s_[world.rank : world.rank + 1]
    right = isinstance(source, str) and source == "right"
    with DiskArray(world, (4, 5)) as disk:
        block = np.ones((1, 5)) if right else source
        disk.write_all(block, rows if isinstance(box, str) and box == "right" else box, order=order)


READ_ONLY = np.ones((1, 5))
READ_ONLY.flags.writeable = False


@each("target", *BLOCKS, READ_ONLY)
@each("box", "x", 1.5, np.s_[2:9], np.s_[::2], np.s_[:], (1, 2, 3), [1, 2], STRANGE)
@each("order", "x", (0,), (0, 0), (0, 1 << 40), 5, 1.5, STRANGE)
def read_a_block(world, places, target="right", box="right", order=None):
    rows = np.s_[world.rank : world.rank + 1]
    right = isinstance(target, str) and target == "right"
    with DiskArray(world, (4, 5)) as disk:
        block = np.ones((1, 5)) if right else target
        disk.read_all(block, rows if isinstance(box, str) and box == "right" else box, order=order)


@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
def flush_a_disk_array(world, places, metadata="right"):
    with DiskArray(world, (4, 5), path=places.new()) as disk:
        disk.flush(metadata)
        disk.flush()


# ---- block-sparse arrays ----

TILINGS = [[0, 3, 4, 10], [0, 5, 7]]


@each(
    "tilings",
    5,
    "text",
    [[0, 3, 4, 10]],
    [[0, 3, 10], [0, 5, 7]],
    [[0, 4, 3], [0, 1]],
    [[0.5, 1]],
    [],
    STRANGE,
)
@each("nonzero", 5, "text", np.ones((2, 2), bool), [(9, 9)], [(0, 0)], [(0.5, 1)], STRANGE)
@each("dtype", "float16", "no type", "int32", object(), STRANGE)
@each("path", *PATHS)
@each("codec", "zip", 5, "blosc2", NAME, STRANGE)
@each("placement", "here", 5, "shared", NAME, STRANGE)
@each("overwrite", True, "yes", 5, STRANGE)
@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
def make_a_block_sparse_array(
    world, places, tilings=TILINGS, nonzero=((0, 1), (2, 1)), dtype="float64", **options
):
    with BlockSparseArray(world, tilings, nonzero, dtype, **options) as made:
        made.stored_bytes()


@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
def flush_a_block_sparse_array(world, places, metadata="right"):
    with BlockSparseArray(world, TILINGS, [(0, 1)], path=places.new()) as b:
        b.flush(metadata)
        b.flush()


@each("path", *PATHS, None)
@each("read_only", False, "yes", 5, STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
def open_a_block_sparse_array(world, places, path="right", **options):
    place = places.made(store_sparse, world)
    with BlockSparseArray.open(world, place if path == "right" else path, **options) as opened:
        opened.stored_bytes()


# ---- files ----


@each("name", 5, None, "", "other", NAME, STRANGE)
@each("hard_limit", *SIZES, "1MB")
@each("soft_limit", *SIZES, "1MB")
@each("reserve", "yes", 5, STRANGE)
@each("typical_request", *SIZES, "1MB")
@each("placement", "here", 5, NAME, STRANGE)
@each("components_per_node", "x", -1, 3, 1 << 40, 1.5, STRANGE)
@each("page_cache", "never", 5, NAME, STRANGE)
@each("client_cache_bytes", *SIZES)
def make_a_shared_file(world, places, name="file", **options):
    with SharedFile(world, name, **options) as made:
        made.flush()


@each("name", 5, None, "", "other", NAME, STRANGE)
@each("records", "x", -1, 9, 1.5, 1 << 70, None, STRANGE)
@each("hard_limit", *SIZES, "100MB")
@each("soft_limit", *SIZES, "1MB")
@each("typical_record", *SIZES, "1MB")
@each("placement", "here", 5, NAME, STRANGE)
@each("page_cache", "never", 5, NAME, STRANGE)
def make_a_record_file(world, places, name="file", records=4, **options):
    with RecordFile(world, name, records, **options) as made:
        made.flush()


# ---- checkpoints, HDF5, traces ----


@each("name", 5, None, NAME, b"bytes", STRANGE)
@each(
    "arrays",
    None,
    5,
    {"a": np.ones(4)},
    {"a": np.ones(3, np.float32)},
    {"a": np.ones(3, object)},
    {"b": np.ones(3)},
    {"a/b": np.ones(3)},
    {5: np.ones(3)},
    {"a": "text"},
    {},
    {unpicklable: np.ones(3)},
    STRANGE,
)
@each("meta", unpicklable, {1, 2}, "other", STRANGE)
@each("codec", "zip", 5, STRANGE)
@each("placement", "here", 5, STRANGE)
def save(world, places, name="right", arrays="right", meta=None, **options):
    place = places.new()
    arrays = {"a": np.ones(3)} if isinstance(arrays, str) else arrays
    checkpoint.save(world, place if name == "right" else name, arrays, meta, **options)


@each("name", 5, None, NAME, b"bytes", "other/name", STRANGE)
@each("key", "b", 5, None, unpicklable, STRANGE)
@each("into", None, 5, np.ones(4), np.ones(3, np.float32), STRANGE)
def load(world, places, name="right", key="a", into="right"):
    place = places.made(store_checkpoint, world)
    with checkpoint.load(world, place if isinstance(name, str) and name == "right" else name) as saved:
        assert saved[key].sum() == 3
        saved.read_all(key, np.ones(3) if isinstance(into, str) else into)


@each("file", *PATHS, None)
@each("dataset", 5, None, "other", STRANGE)
@each("compression", "zip", 99, unpicklable, STRANGE)
@each("no_such_option", 1)
def export_to_hdf5(world, places, file="right", dataset="d", **options):
    pytest.importorskip("h5py")
    place = places.new()
    with DiskArray(world, (4, 5)) as disk:
        hdf5.export_array(disk, place if file == "right" else file, dataset, **options)


@each("file", *PATHS, None)
@each("dataset", 5, None, "other", STRANGE)
@each("path", *PATHS)
@each("codec", "zip", 5, STRANGE)
@each("no_such_option", 1)
def import_from_hdf5(world, places, file="right", dataset="d", **options):
    place = places.made(store_hdf5, world)
    hdf5.import_array(world, place if file == "right" else file, dataset, **options).close()


# ---- the tests ----


def error_of(call, *arguments, **more):
    """What this process has raised, for comparison with the others."""
    try:
        call(*arguments, **more)
    except OutcoreError as error:
        return error.errno, error.rank, str(error)
    return "no error"


def all_say_the_same(world, said):
    return isinstance(said, tuple) and set(world.gather(said)) == {said}


@pytest.mark.parametrize("who", ["first", "last"])
@pytest.mark.parametrize("call", WRONG, ids=lambda call: call.__name__)
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, places, call, who):
    strays = world.rank == (0 if who == "first" else world.size - 1)
    for arguments in WRONG[call]:
        print(arguments)  # which is shown if it hangs
        said = error_of(call, world, places, **(arguments if strays else {}))
        assert all_say_the_same(world, said), (arguments, said)
        world.barrier()
        call(world, places)


@pytest.mark.parametrize("who", ["first", "last"])
def test_what_cannot_be_pickled_is_an_error_where_it_is_not_even_sent(world, who):
    root = 0 if who == "first" else world.size - 1
    said = error_of(world.broadcast, unpicklable, root)
    assert all_say_the_same(world, said), said
    assert said[1] == root
    assert world.broadcast(world.rank, root) == root


def test_the_process_that_failed_knows_by_what(world):
    last = world.size - 1
    with pytest.raises(OutcoreError, match="not with me") as caught:
        DiskArray(world, (4, 5), path=STRANGE if world.rank == last else "/no/such/place")
    assert caught.value.rank == last
    assert isinstance(caught.value.__cause__, Strange.Error) == (world.rank == last)


class Interrupted(os.PathLike):
    """Somebody presses Ctrl-C while it is asked for its name."""

    def __fspath__(self):
        raise KeyboardInterrupt

    __array__ = __fspath__


def _step(world, place):
    with world.together("step"):
        os.fspath(place)


def _transfer(world, place):
    with DiskArray(world, (4, 5)) as disk, GlobalArray(world, (4, 5)) as g:
        disk.write_all(g, order=place if isinstance(place, Interrupted) else None)


INTERRUPTED = {
    "constructor": lambda world, place: DiskArray(world, (4, 5), path=place).close(),
    "opening": DiskArray.open,
    "step": _step,
    "reduction": lambda world, place: world.all_reduce(place if isinstance(place, Interrupted) else 1),
    "transfer": _transfer,
}


@pytest.mark.parametrize("call", INTERRUPTED.values(), ids=INTERRUPTED)
@pytest.mark.parametrize("who", ["first", "last"])
def test_ctrl_c_stays_what_it_is_and_is_an_error_at_the_others(world, places, call, who):
    rank = 0 if who == "first" else world.size - 1
    place = places.new()
    with pytest.raises(KeyboardInterrupt if world.rank == rank else OutcoreError) as caught:
        call(world, Interrupted() if world.rank == rank else place)
    error = caught.value.__cause__ or caught.value.__context__ if world.rank == rank else caught.value
    if error is not None:
        assert "KeyboardInterrupt" in str(error)
    del caught, error
    world.barrier()


@pytest.mark.parametrize("path", [5, STRANGE, "/no/such/directory/trace.json"])
def test_a_trace_that_the_first_process_cannot_write_is_an_error_at_all(comm, world, path):
    said = error_of(trace.save, path, comm)
    assert all_say_the_same(world, said), said
