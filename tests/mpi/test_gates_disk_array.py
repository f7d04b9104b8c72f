"""Disk arrays that one process makes, opens or moves in another way."""

from __future__ import annotations

import numpy as np
import pytest
from gates import NAME, PATHS, SIZES, STRANGE, Calls, Strange, unpicklable

from outcore import DiskArray, GlobalArray, OutcoreError

CALLS = Calls()
each = CALLS.each


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
def make_a_disk_array(world, paths, shape=(4, 5), dtype="float64", **options):
    with DiskArray(world, shape, dtype, **options) as made:
        made.stored_bytes()


def store(world, place):
    DiskArray(world, (4, 5), path=place).close()


@each("path", *PATHS, None)
@each("read_only", False, "yes", 5, STRANGE)
@each("cache_bytes", *SIZES)
@each("client_cache_bytes", *SIZES)
@each("contained", 1000, 1, "x", STRANGE)
def open_a_disk_array(world, paths, path="right", **options):
    place = paths.made(store, world)
    with DiskArray.open(world, place if path == "right" else path, **options) as opened:
        opened.stored_bytes()


@each("parent", None, 5, STRANGE)
def share(world, paths, parent="right"):
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
def write_a_global_array(world, paths, source="right", box=..., order=None):
    with DiskArray(world, (4, 5)) as disk, GlobalArray(world, (4, 5)) as g:
        disk.write_all(g if isinstance(source, str) and source == "right" else source, box, order=order)


@each("target", *TRANSFERRED)
@each("box", *BOXES)
@each("order", *ORDERS)
def read_a_global_array(world, paths, target="right", box=..., order=None):
    with DiskArray(world, (4, 5)) as disk, GlobalArray(world, (4, 5)) as g:
        disk.read_all(g if isinstance(target, str) and target == "right" else target, box, order=order)


BLOCKS = (None, 5, "text", [1.0], np.ones((1, 5), np.float32), np.ones((2, 5)), np.ones((1, 5, 1)), STRANGE)


@each("source", *BLOCKS)
@each("box", "x", 1.5, np.s_[2:9], np.s_[::2], np.s_[:], (1, 2, 3), [1, 2], STRANGE)
@each("order", "x", (0,), (0, 0), (0, 1 << 40), 5, 1.5, STRANGE)
def write_a_block(world, paths, source="right", box="right", order=None):
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
def read_a_block(world, paths, target="right", box="right", order=None):
    rows = np.s_[world.rank : world.rank + 1]
    right = isinstance(target, str) and target == "right"
    with DiskArray(world, (4, 5)) as disk:
        block = np.ones((1, 5)) if right else target
        disk.read_all(block, rows if isinstance(box, str) and box == "right" else box, order=order)


@each("metadata", unpicklable, {1, 2}, "other", STRANGE)
def flush_a_disk_array(world, paths, metadata="right"):
    with DiskArray(world, (4, 5), path=paths.new()) as disk:
        disk.flush(metadata)
        disk.flush()


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)


def test_the_process_that_failed_knows_by_what(world):
    last = world.size - 1
    with pytest.raises(OutcoreError, match="not with me") as caught:
        DiskArray(world, (4, 5), path=STRANGE if world.rank == last else "/no/such/place")
    assert caught.value.rank == last
    assert isinstance(caught.value.__cause__, Strange.Error) == (world.rank == last)
