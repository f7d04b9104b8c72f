"""Extended arrays with faults: budgets, full and damaged disks, processes that are killed."""

import errno
import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from conformance.full_disk import files_of_at_most

import outcore
from outcore import Array, OutcoreError, Tiling

AXIS = Tiling(600, tile=200)


@pytest.fixture
def world(tmp_path):
    with outcore.World("self", scratch=tmp_path, memory="64MB") as made:
        yield made


def started(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def test_a_dropped_array_is_what_was_committed_last(world, tmp_path):
    path = tmp_path / "kept"
    array = Array(world, [AXIS], path=path)
    array.put_tile((0,), np.ones(200))
    array.drop()
    with pytest.raises(OutcoreError) as caught:  # never committed
        Array.open(world, path)
    assert caught.value.errno == errno.ENOENT
    array = Array(world, [AXIS], path=path, overwrite=True)
    for value in (1.0, 2.0):
        for tile in range(3):
            array.put_tile((tile,), np.full(200, value))
        if value == 1.0:
            array.flush("one")
    array.drop()
    array.drop()
    with Array.open(world, path) as found:
        assert found.metadata == "one"
        assert (found.to_numpy() == 1.0).all()


# ---- memory ----

PASSES = """
import sys
import numpy as np
import outcore
from outcore import Array, Tiling

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

def ones(box):
    return np.ones([side.stop - side.start for side in box])

with outcore.World("self", scratch=sys.argv[1], memory="48MB") as world:
    def passes(axis):
        a = Array.from_function(world, [axis, axis], ones, where="disk")
        a *= 2
        b = a + a
        turned = b.transpose()
        found = a.norm(), a.dot(turned), b.max(), b[7, ::500].sum()
        b.move("disk")
        for each in (a, b, turned):
            each.close()
        return found
    passes(Tiling(20, tile=10))  # what is loaded and made once
    before = status("VmRSS")
    n = 4096
    found = passes(Tiling(n, tile=256))
    assert found == (2.0 * n, 8.0 * n * n, 4.0, 4.0 * -(-n // 500)), found
    print(status("VmHWM") - before, world.budget.peak_bytes)
"""


@pytest.mark.memory
def test_what_is_resident_stays_within_the_budget(tmp_path):
    """Three arrays of 134 MB each, on disk, with 48 MB."""
    with started(PASSES, tmp_path) as process:
        text, _ = process.communicate()
    assert process.returncode == 0
    resident, accounted = map(int, text.split())
    assert resident < 48_000_000
    assert accounted <= 48_000_000


def test_memory_is_given_back(world):
    Array(world, [AXIS], where="disk").close()  # after which the world has the services of all disk arrays
    before = world.budget.used_bytes
    for where in ("process", "global", "node"):
        array = Array(world, [AXIS, AXIS], where=where)
        assert world.budget.used_bytes >= before + 600 * 600 * 8
        array.move("disk")
        array.close()
        assert world.budget.used_bytes < before + 600 * 600 * 8
        array.close()


def test_what_does_not_fit_is_refused_with_the_numbers(world):
    large = [Tiling(4000, tile=400)] * 2
    for where in ("process", "global", "node"):
        with pytest.raises(OutcoreError) as caught:
            Array(world, large, where=where)
        assert caught.value.errno == errno.ENOMEM
        assert "128" in str(caught.value)
    with Array(world, large) as array:
        assert array.where == "disk"
        with pytest.raises(OutcoreError) as caught:
            array.move("process")
        assert caught.value.errno == errno.ENOMEM
        assert array.where == "disk"
        array.put_tile((0, 0), 1.0)
        assert array[0, 0] == 1.0


# ---- disks ----


def test_a_full_disk_is_an_error_and_what_was_committed_stays(world, tmp_path):
    array = Array(world, [AXIS, AXIS], path=tmp_path / "a", cache_bytes="1MB")
    array.fill(1.0)
    array.flush({"state": 1})
    with files_of_at_most(3_000_000), pytest.raises(OutcoreError) as caught:
        for state in range(2, 6):
            array.fill(float(state))
            array.flush({"state": state})
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    with Array.open(world, tmp_path / "a") as found:
        assert (found.to_numpy() == found.metadata["state"]).all()


def test_a_damaged_tile_is_an_error_that_names_it(world, tmp_path):
    values = np.random.default_rng(1).normal(size=(600, 600))
    Array.from_numpy(world, values, [AXIS, AXIS], path=tmp_path / "a").close()
    damaged = 0
    for file in [path for path in (tmp_path / "a").rglob("*") if path.is_file()]:
        content = bytearray(file.read_bytes())
        place = content.find(values[300, 300:304].tobytes())
        if place >= 0:
            content[place] ^= 0x10
            file.write_bytes(content)
            damaged += 1
    assert damaged == 1
    with Array.open(world, tmp_path / "a") as array:
        for want in (array.norm, array.to_numpy, array.sum, lambda: array + array, array.copy):
            with pytest.raises(OutcoreError) as caught:
                want()
            assert caught.value.errno == errno.EIO
            assert str(tmp_path / "a") in str(caught.value)


# ---- processes ----

STATES = """
import sys
import outcore
from outcore import Array, Tiling

with outcore.World("self", scratch=sys.argv[1], memory="64MB") as world:
    axis = Tiling(200, tile=60)
    array = Array(world, [axis, axis], path=sys.argv[2], overwrite=True, symmetry="symmetric(0,1)")
    array.fill(0.0)
    array.flush({"state": 0})
    print("ready", flush=True)
    for state in range(1, 1_000_000):
        array.fill(float(state))
        array.flush({"state": state})
"""


def test_a_killed_process_leaves_a_whole_state(world, tmp_path):
    chance = random.Random(1)
    states = []
    for kill in range(int(os.environ.get("OUTCORE_KILLS", "4"))):
        path = tmp_path / f"a{kill}"
        with started(STATES, tmp_path, path) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.0, 0.15))
            process.kill()
        with Array.open(world, path) as found:
            states.append(found.metadata["state"])
            assert (found.to_numpy() == states[-1]).all()
    assert max(states) > 0
