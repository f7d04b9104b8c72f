"""Forked children: objects of their parent raise errors at once, and stay as they are."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outcore
from outcore import OutcoreError
from outcore.job import launch

LIMIT_S = 60.0
REFUSED, OTHER, NO_ERROR = 10, 20, 30

Use = Callable[[], Any]


def ended(child: int) -> int:
    """The exit status of a child. A child that hangs is killed: -9."""
    for _ in range(int(LIMIT_S / 0.02)):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -9


def in_child(use: Use) -> int:
    child = os.fork()
    if child == 0:
        status = OTHER
        try:
            use()
            status = NO_ERROR
        except OutcoreError as error:
            if error.errno == errno.EBADF and str(os.getppid()) in str(error):
                status = REFUSED
        finally:
            os._exit(status)
    return ended(child)


@pytest.fixture
def world(tmp_path):
    with outcore.World(memory="500MB", scratch=tmp_path) as opened:
        yield opened


def uses_of_a_world(world: outcore.World, _path: Path) -> list[Use]:
    counter, lock = world.counter(), world.lock()
    world.register("answer", lambda _caller, header, _payload: header)
    call = world.call(0, "answer", b"x")
    return [
        world.barrier,
        world.flush,
        lambda: world.gather(1),
        lambda: world.broadcast(1),
        lambda: world.all_reduce(1),
        lambda: world.split(0),
        lambda: world.register("other", lambda *_: b""),
        lambda: world.call(0, "answer", b"x"),
        call.wait,
        call.test,
        counter.next,
        counter.reset,
        lock.acquire,
        lambda: outcore.GlobalArray(world, (5,)),
        lambda: outcore.DiskArray(world, (5,)),
        lambda: outcore.NodeArray(world, (5,)),
        lambda: outcore.RecordFile(world, "other", records=5),
        lambda: outcore.SharedFile(world, "other"),
    ]


def uses_of_a_disk_array(world: outcore.World, path: Path) -> list[Use]:
    array = outcore.DiskArray(world, (40, 50), path=path / "array")
    array[...] = 1.0
    array.flush()
    transfer = array.write_all_async(np.full((40, 50), 2.0))
    request = array.put_async(np.s_[:1], np.full((1, 50), 2.0))
    return [
        lambda: array[...],
        lambda: array[0],
        lambda: array.__setitem__(0, 5.0),
        lambda: array.write_all_async(np.zeros((40, 50))),
        lambda: array.read_all_async(np.zeros((40, 50))),
        array.sync,
        array.flush,
        array.remove,
        transfer.wait,
        transfer.test,
        request.wait,
        lambda: outcore.DiskArray.open(world, path / "array"),
    ]


def uses_of_a_global_array(world: outcore.World, _path: Path) -> list[Use]:
    array = outcore.GlobalArray(world, (40, 50))
    return [
        lambda: array[...],
        lambda: array.__setitem__(0, 5.0),
        lambda: array.local,
        array.sync,
    ]


def uses_of_a_node_array(world: outcore.World, _path: Path) -> list[Use]:
    array = outcore.NodeArray(world, (40, 50))
    return [lambda: array.view, array.barrier]


def uses_of_a_sparse_array(world: outcore.World, _path: Path) -> list[Use]:
    array = outcore.BlockSparseArray(world, [[0, 4, 8], [0, 4, 8]], [(0, 0), (1, 1)])
    tile = np.ones((4, 4))
    array.put_tile((0, 0), tile)
    return [
        lambda: array.get_tile((0, 0)),
        lambda: array.put_tile((0, 0), tile),
        lambda: array.acc_tile((0, 0), tile),
        lambda: array.put_tile_async((0, 0), tile),
        array.to_numpy,
        array.sync,
        array.flush,
    ]


def uses_of_a_record_file(world: outcore.World, _path: Path) -> list[Use]:
    file = outcore.RecordFile(world, "records", records=10)
    file[0] = np.ones(1000)
    put, get = file.put_async(3, np.ones(1000)), file.get_into_async(0, np.empty(1000))
    return [
        lambda: file[0],
        lambda: file.__setitem__(1, np.ones(1000)),
        lambda: file.__delitem__(0),
        lambda: 0 in file,
        file.sync,
        file.flush,
        put.wait,
        get.wait,
    ]


def uses_of_a_shared_file(world: outcore.World, _path: Path) -> list[Use]:
    file = outcore.SharedFile(world, "shared")
    file.write(np.ones(1000), 0)
    write, read = file.write_async(np.ones(1000), 0), file.read_async(np.empty(1000), 0)
    return [
        write.wait,
        read.test,
        lambda: file.read(np.empty(1000), 0),
        lambda: file.write(np.zeros(1000), 0),
        file.length,
        file.sync,
        file.flush,
    ]


def uses_of_an_exclusive_file(_world: outcore.World, path: Path) -> list[Use]:
    file = outcore.ExclusiveFile("exclusive", scratch=path)
    file.write(np.ones(1000), 0)
    write, read = file.write_async(np.ones(1000), 8000), file.read_async(np.empty(1000), 0)
    return [
        write.wait,
        read.test,
        lambda: file.read(np.empty(1000), 0),
        lambda: file.write(np.zeros(1000), 0),
        file.flush,
    ]


def uses_of_a_checkpoint(world: outcore.World, path: Path) -> list[Use]:
    outcore.checkpoint.save(world, path / "checkpoint", {"x": np.ones(3)}, 1)
    loaded = outcore.checkpoint.load(world, path / "checkpoint")
    return [
        lambda: outcore.checkpoint.save(world, path / "checkpoint", {"x": np.zeros(3)}, 2),
        lambda: outcore.checkpoint.load(world, path / "checkpoint"),
        lambda: loaded["x"],
    ]


EVERYTHING = [
    uses_of_a_world,
    uses_of_a_disk_array,
    uses_of_a_global_array,
    uses_of_a_node_array,
    uses_of_a_sparse_array,
    uses_of_a_record_file,
    uses_of_a_shared_file,
    uses_of_an_exclusive_file,
    uses_of_a_checkpoint,
]


@pytest.mark.parametrize("make", EVERYTHING)
def test_every_use_in_a_child_is_an_error_that_names_the_parent(world, tmp_path, make):
    uses = make(world, tmp_path)
    assert [in_child(use) for use in uses] == [REFUSED] * len(uses)


def test_what_a_child_has_tried_changes_nothing(world, tmp_path):
    array = outcore.DiskArray(world, (8, 1000))
    array[...] = 0.0
    records = outcore.RecordFile(world, "records", records=10)
    records[0] = np.ones(1000)
    for use in (
        lambda: array.__setitem__(3, 7.0),
        lambda: records.__setitem__(1, np.full(1000, 2.0)),
    ):
        assert in_child(use) == REFUSED
    records[2] = np.full(1000, 3.0)
    assert (array[...] == 0).all()
    assert [np.frombuffer(records[each]).mean() for each in (0, 2)] == [1.0, 3.0]
    assert 1 not in records


JOB = """
import os, sys, threading
import numpy as np
import outcore

with outcore.World(memory="500MB", scratch=sys.argv[1]) as world:
    array = outcore.DiskArray(world, (200, 1000))
    kept = outcore.DiskArray(world, (20, 20), path=sys.argv[1] + "/kept")
    shared = outcore.GlobalArray(world, (50, 50))
    records = outcore.RecordFile(world, "records", records=10)
    file = outcore.SharedFile(world, "shared")
    kept[...] = 1.0
    kept.flush()
    kept[...] = 2.0
    stop = threading.Event()

    def work():
        while not stop.is_set():
            array[...] = 1.0
            records[0] = np.ones(10000)
            file.write(np.ones(10000), 0)
            world.barrier()

    workers = [threading.Thread(target=work)]
    for each in workers:
        each.start()
    children = []
    for _ in range(20):
        transfer = records.put_async(5, np.ones(10))
        child = os.fork()
        if child == 0:
            BODY
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stop.set()
    for each in workers:
        each.join()
    array[...] = 4.0
    assert (array[...] == 4).all() and (np.frombuffer(records[0]) == 1).all()
    assert os.path.isdir(os.path.dirname(sys.argv[1]))
    kept.flush()
    print(statuses)
with outcore.World(memory="500MB") as world, outcore.DiskArray.open(world, sys.argv[1] + "/kept") as kept:
    print(kept[...].mean())
"""


@pytest.mark.parametrize(
    "body",
    ["sys.exit(3)", "del array, kept, shared, records, file, transfer, world; sys.exit(3)", "os._exit(3)"],
    ids=["exit", "garbage", "_exit"],
)
def test_a_child_ends_and_leaves_everything_while_threads_of_its_parent_work(tmp_path, body):
    job = subprocess.run(
        [sys.executable, "-c", JOB.replace("BODY", body), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.split("\n")[:2] == [str([3] * 20), "2.0"]
    assert job.stderr == ""


def test_a_child_that_leaves_with_blocks_by_an_exception_shows_that_one(world, tmp_path):
    child = os.fork()
    if child == 0:
        status = OTHER
        try:
            with outcore.World("self", scratch=tmp_path):
                pass
            with world:
                raise KeyError("mine")
        except KeyError:
            status = REFUSED
        finally:
            os._exit(status)
    assert ended(child) == REFUSED
    world.barrier()


def test_a_child_has_a_world_of_its_own(world, tmp_path):
    outcore.DiskArray(world, (5,))

    def use():
        with outcore.World("self", scratch=tmp_path) as own, outcore.DiskArray(own, (10, 10)) as array:
            array[...] = 3.0
            assert (array[...] == 3).all()
            with outcore.ExclusiveFile("own", scratch=tmp_path) as file:
                file.write(np.ones(10), 0)

    assert in_child(use) == NO_ERROR


def test_a_grandchild_is_refused_what_its_grandparent_made(world):
    array = outcore.DiskArray(world, (5,))

    def use():
        child = os.fork()
        if child == 0:
            try:
                array[...] = 1.0
            except OutcoreError as error:
                os._exit(REFUSED if error.errno == errno.EBADF else OTHER)
            os._exit(NO_ERROR)
        os._exit(ended(child))

    assert in_child(use) == REFUSED


def _write(number: int) -> float:
    _arrays[0][number] = float(number)
    return float(_arrays[0][number].mean())


_arrays: list[Any] = []


def test_workers_of_multiprocessing_get_the_error_and_their_parent_hears_it(world):
    array = outcore.DiskArray(world, (8, 10))
    array[...] = 0.0
    _arrays[:] = [array]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        with pytest.raises(OutcoreError, match="forked") as caught:
            pool.map(_write, range(8))
        assert caught.value.errno == errno.EBADF
    assert (array[...] == 0).all()


SPAWNED = """
import multiprocessing, sys
import numpy as np
import outcore

def work(argument):
    number, scratch = argument
    with outcore.World("self", memory="100MB", scratch=scratch) as world:
        with outcore.DiskArray(world, (10,), path=f"{scratch}/part.{number}") as part:
            part[...] = float(number)
            part.flush()
    return number

if __name__ == "__main__":
    with outcore.World("self", memory="100MB", scratch=sys.argv[1]) as world:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            numbers = pool.map(work, [(each, sys.argv[1]) for each in range(3)])
        parts = [outcore.DiskArray.open(world, f"{sys.argv[1]}/part.{each}") for each in numbers]
        print([float(each[...].mean()) for each in parts])
"""


def test_spawned_workers_have_worlds_of_their_own(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(SPAWNED)
    job = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.strip() == "[0.0, 1.0, 2.0]"


PARALLEL = """
import os, sys
import outcore

with outcore.World(memory="200MB", scratch=sys.argv[1]) as world:
    array = outcore.GlobalArray(world, (10,))
    child = os.fork()
    if child == 0:
        try:
            array.sync()
        except outcore.OutcoreError as error:
            try:
                outcore.World()
            except outcore.OutcoreError as second:
                os._exit(10 if "forked" in str(error) and "forked" in str(second) else 20)
        os._exit(30)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    array.sync()
    statuses = world.gather(status)
    if world.rank == 0:
        print(statuses, flush=True)
"""


@pytest.mark.launcher
def test_a_child_of_a_process_under_mpi_is_refused_and_the_job_goes_on(tmp_path):
    job = subprocess.run(
        [str(launch.find_launcher()), "-n", "2", sys.executable, "-c", PARALLEL, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.strip() == "[10, 10]"


def test_an_scf_of_the_parent_is_refused_in_a_child(tmp_path):
    pyscf = pytest.importorskip("pyscf")
    from outcore.chem.hf import scf

    mol = pyscf.M(atom="He 0 0 0", basis="cc-pvdz", verbose=0)
    with scf.RHF(mol, storage="disk", scratch=tmp_path) as mf:
        energy = mf.kernel()
        density = mf.make_rdm1()
        assert in_child(lambda: mf.get_jk(dm=density)) == REFUSED
        assert abs(mf.kernel() - energy) < 1e-9


def test_a_child_that_lives_on_keeps_no_lock_of_its_parent(tmp_path):
    with outcore.World("self", scratch=tmp_path) as world:
        path = tmp_path / "array"
        array = outcore.DiskArray(world, (10,), path=path)
        array[...] = np.ones(10)
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writes, b"x")
            signal.alarm(60)
            signal.pause()
        try:
            os.read(reads, 1)
            array.close()
            with outcore.DiskArray.open(world, path, read_only=False) as again:
                again[0] = 2.0
                assert again[...].sum() == 11.0
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reads)
            os.close(writes)


def test_a_child_that_lives_on_holds_no_checkpoint_of_its_parent(tmp_path):
    name = tmp_path / "checkpoint"
    with outcore.World("self", scratch=tmp_path) as world:
        outcore.checkpoint.save(world, name, {"n": np.ones(5)}, 1)
        loaded = outcore.checkpoint.load(world, name)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            signal.pause()
        try:
            loaded.close()
            outcore.checkpoint.save(world, name, {"n": np.zeros(5)}, 2)
            assert sorted(each for each in os.listdir(name) if each.startswith("arrays.")) == ["arrays.2"]
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
