"""A write that fails for lack of room gives its space back, so that a later one that fits succeeds."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager

import numpy as np
import pytest

import outcore
from outcore import OutcoreError

LIMIT = 4 << 20
LARGE = np.ones(8 << 20, np.uint8)
SMALL = np.full(1 << 20, 7, np.uint8)


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="200MB") as world:
        yield world


@contextmanager
def limited():
    """Limits the length of files of this process, as on a nearly full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def taken(path):
    return sum(
        os.stat(os.path.join(top, name)).st_blocks * 512 for top, _, names in os.walk(path) for name in names
    )


def refused(call):
    with pytest.raises(OutcoreError) as caught:
        call()
    assert caught.value.errno == errno.EFBIG


def check(tmp_path, calls):
    before = taken(tmp_path)
    with limited():
        for call in calls * 2:
            refused(call)
            assert taken(tmp_path) <= before + (64 << 10)


def test_exclusive_file(tmp_path):
    file = outcore.ExclusiveFile("x", scratch=tmp_path)
    file.write(SMALL, 0)
    check(tmp_path, [lambda: file.write(LARGE, 1 << 20), lambda: file.write_async(LARGE, 1 << 20).wait()])
    back = np.zeros_like(SMALL)
    file.read(back, 0)
    assert np.array_equal(back, SMALL)
    file.delete()


def test_shared_file(world, tmp_path):
    with outcore.SharedFile(world, "s") as file:
        file.write(SMALL, 0)
        check(tmp_path, [lambda: file.write(LARGE, 1 << 20), lambda: file.write_async(LARGE, 1 << 20).wait()])
        back = np.zeros_like(SMALL)
        file.read(back, 0)
        assert np.array_equal(back, SMALL)


def test_record_file(world, tmp_path):
    with outcore.RecordFile(world, "r", 8) as records:
        records[0] = SMALL
        check(tmp_path, [lambda: records.put(1, LARGE), lambda: records.put(0, LARGE)])
        assert records[0] == SMALL.tobytes()
        assert 1 not in records
        with limited():
            records[1] = SMALL  # a write that fits finds room
        assert records[1] == SMALL.tobytes()


def test_checkpoint(world, tmp_path):
    small = {"a": SMALL}
    outcore.checkpoint.save(world, tmp_path / "kept", small)
    check(
        tmp_path,
        [
            lambda: outcore.checkpoint.save(world, tmp_path / "new", {"b": LARGE}),
            lambda: outcore.checkpoint.save(world, tmp_path / "kept", {"a": SMALL, "b": LARGE}),
        ],
    )
    with limited():
        outcore.checkpoint.save(world, tmp_path / "new", small)
    for name in ("kept", "new"):
        with outcore.checkpoint.load(world, tmp_path / name) as state:
            assert np.array_equal(state["a"][...], SMALL)
