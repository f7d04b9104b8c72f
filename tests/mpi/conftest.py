"""Tests that run in every process of a job at once: `mpiexec -n N python -m pytest tests/mpi`.

Rank 0 reports; another rank says something only if one of its tests failed. A test that leaves a process
waiting is ended, with the whole job, by its time limit. A test with the marker `processes(N)` runs on at most
N processes: further ones would do nothing new there.
"""

from __future__ import annotations

import io
import itertools
import sys
import time
from contextlib import ExitStack

import pytest
from _pytest.terminal import TerminalReporter
from conformance.full_disk import small_file_system

from outcore import World
from outcore.job import launch

TEST_LIMIT_S = 120

_said = io.StringIO()  # the reports of a rank other than 0; shown if a test fails there


@pytest.fixture(scope="session")
def comm():
    """The communicator of the job."""
    world = launch.world()
    if world is None:
        pytest.skip("runs under a launcher: mpiexec -n 2 python -m pytest tests/mpi")
    return world


@pytest.fixture
def small_disk(comm, shared_tmp_path):
    """A file system of 16 MB at one path for all processes of this host."""
    place = shared_tmp_path / "small"
    with ExitStack() as mounts:
        mounted = comm.rank == 0 and mounts.enter_context(small_file_system(place))
        if not comm.bcast(mounted):
            pytest.skip("NOT TESTED: a disk that is really full needs root to be mounted")
        yield place
        comm.Barrier()


@pytest.fixture(scope="session")
def computed_once(comm):
    """`computed_once(key, compute)`: rank 0 runs `compute()`, once for each key of a module, and every rank
    gets its result or its error. The others sleep meanwhile: within MPI they would take turns with it on the
    same cores."""
    kept = {}

    def at_first(compute):
        try:
            return compute(), None
        except Exception as error:
            return None, error

    def value(key, compute):
        place = compute.__module__, key
        if place not in kept:
            result = at_first(compute) if comm.rank == 0 else None
            arrived = comm.Ibarrier()
            while not arrived.Test():
                time.sleep(0.01)
            found, error = comm.bcast(result)
            if error is not None:
                raise error
            kept[place] = found
        return kept[place]

    return value


@pytest.fixture(autouse=True, scope="module")
def pyscf_of_one_thread(request):
    if "pyscf" in sys.modules:
        request.getfixturevalue("one_thread")


@pytest.fixture(autouse=True)
def together(comm):
    """Starts each test at the same time at all ranks, so that a failure in one does not disturb the next."""
    comm.Barrier()


@pytest.fixture
def shared_tmp_path(comm, tmp_path):
    """One empty directory for all processes."""
    return comm.bcast(tmp_path)


class Paths:
    """Names of files, the same at all processes."""

    def __init__(self, directory):
        self.directory, self._numbers, self._made = directory, itertools.count(), {}

    def new(self):
        return self.directory / f"path{next(self._numbers)}"

    def made(self, make, world):
        """The path where `make(world, path)`, which is called once, has made a file."""
        if make not in self._made:
            self._made[make] = self.new()
            make(world, self._made[make])
        return self._made[make]


@pytest.fixture
def paths(shared_tmp_path):
    return Paths(shared_tmp_path)


@pytest.fixture
def world(comm, shared_tmp_path):
    """A world of all processes, for modules without their own fixture."""
    with World(comm, memory="200MB", scratch=shared_tmp_path, nodes="hosts") as made:
        yield made


def pytest_collection_modifyitems(config, items):
    job = launch.launched()
    size = job.size if job is not None else 1
    others = [
        each for each in items if (mark := each.get_closest_marker("processes")) and size > mark.args[0]
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [each for each in items if each not in others]
    for item in items:
        # A process stuck inside MPI does not come back to Python's signal handlers: only a thread can end it.
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TEST_LIMIT_S, method="thread"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    job = launch.launched()
    if job is not None and job.rank > 0:
        config.option.xmlpath = None  # the report file is rank 0's


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    launch.world()  # before any error at a single process
    job = launch.launched()
    if job is not None and job.rank > 0:
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(TerminalReporter(config, _said), "terminalreporter")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """Waits for all ranks, or ends the job: others would wait for ever for a process that leaves early."""
    if launch.joined() and launch.gather_within(TEST_LIMIT_S, "end") is None:
        launch.abort(1)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    job = launch.launched()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if job is not None and job.rank > 0 and (reporter.stats.get("failed") or reporter.stats.get("error")):
        print(f"==== rank {job.rank} ====\n{_said.getvalue()}", file=sys.__stderr__, flush=True)
