"""A team of threads: errors are collected, nothing is left behind, BLAS is as before."""

import errno
import subprocess
import sys
import threading

import pytest

from outcore import OutcoreError
from outcore.parallel import team


def running():
    return {each for each in threading.enumerate() if each is not threading.current_thread()}


def test_every_thread_works_once():
    seen = []
    team.run(4, lambda thread, _: seen.append(thread))
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("failing", [0, 2])
def test_an_error_of_any_thread_is_raised_once_all_have_ended(failing, watched):
    before, told = running(), []

    def work(thread, stopped):
        if thread == failing:
            raise OSError(f"thread {thread}")
        while not stopped():
            pass

    with pytest.raises(OSError, match=f"thread {failing}"):
        team.run(3, work, watch=(lambda: None) if watched else None, stop=lambda: told.append(1))
    assert running() == before
    assert told


def test_a_thread_that_cannot_be_started_is_an_error_and_leaves_no_other(monkeypatch):
    start, count = threading.Thread.start, [0]

    def limited(self):
        count[0] += 1
        if count[0] == 2:
            raise RuntimeError("can't start new thread")
        start(self)

    before = running()

    def work(_thread, stopped):
        while not stopped():
            pass

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(OutcoreError, match="start the thread outcore-team") as refused:
        team.run(4, work)
    assert refused.value.errno == errno.EAGAIN
    assert running() == before


def test_a_watch_that_raises_ends_the_team():
    before = running()

    def watch():
        raise ValueError("watch")

    def work(_thread, stopped):
        while not stopped():
            pass

    with pytest.raises(ValueError, match="watch"):
        team.run(2, work, watch=watch)
    assert running() == before


def test_there_are_no_more_threads_than_items():
    found = []
    team.each([1], 4, lambda thread, item: found.append((thread, item, threading.current_thread())))
    assert found == [(0, 1, threading.current_thread())]


def test_items_that_raise_are_an_error():
    def items():
        yield 1
        raise OSError("items")

    with pytest.raises(OSError, match="items"):
        team.each(items(), 3, lambda *_: None)


def test_a_stop_iteration_of_the_work_is_an_error_not_the_end():
    def work(_thread, item):
        if item == 3:
            raise StopIteration

    with pytest.raises(StopIteration):
        team.each(range(10), 1, work)


def test_blas_has_one_thread_inside_and_its_own_afterwards(monkeypatch):
    # Whatever fixture of other tests is active meanwhile.
    monkeypatch.setattr(team, "_one_thread", team._OneThread())
    functions = team._openblas(len(sys.modules))
    if not functions:
        pytest.skip("NumPy has no OpenBLAS")
    before = [get() for get, _ in functions]
    for _, put in functions:
        put(2)
    several = [get() for get, _ in functions]  # fewer where a library was loaded for one
    try:
        inside = []
        team.run(2, lambda *_: inside.append([get() for get, _ in functions]))
        assert inside == [[1] * len(functions)] * 2
        outer = team.blas_of_one_thread()
        with outer:
            with team.blas_of_one_thread():
                pass
            assert [get() for get, _ in functions] == [1] * len(functions)
        assert [get() for get, _ in functions] == several
    finally:
        for (_, put), threads in zip(functions, before, strict=True):
            put(threads)


LOADED_LATER = """
import os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "2"
from outcore.parallel import team

def threads():
    return [get() for get, _ in team._openblas(len(sys.modules))]

with team.blas_of_one_thread():
    few = len(threads())
import scipy.linalg
before = threads()
with team.blas_of_one_thread():
    inside = threads()
assert len(before) > few and inside == [1] * len(before) and threads() == before, (few, before, inside)
"""


def test_a_blas_that_is_loaded_later_is_found():
    pytest.importorskip("scipy")
    if not team._openblas(len(sys.modules)):
        pytest.skip("NumPy has no OpenBLAS")
    subprocess.run([sys.executable, "-c", LOADED_LATER], check=True, timeout=120)
