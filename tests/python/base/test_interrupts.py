"""Ctrl-C and SIGTERM: threads have stopped before the exception is raised, and commands name the signal."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import outcore
from outcore.base import interrupts
from outcore.job import launch
from outcore.parallel import team
from outcore.parallel.tasks import run_tasks

DEADLINE_S = 120


@pytest.fixture
def counter():
    with outcore.World("self") as world:
        counter = world.counter()
        counter.reset()
        yield counter


def signal_when(event, *numbers):
    """Sends signals to this process once the event has come."""

    def send():
        event.wait()
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.05)

    sender = threading.Thread(target=send)
    sender.start()
    return sender


class Work:
    """Threads that run when the signal comes, and end later than the main thread sees it."""

    def __init__(self):
        self.begun, self.inside, self.calls = threading.Event(), set(), 0

    def __call__(self, thread, *_):
        self.calls += 1
        self.inside.add(thread)
        self.begun.set()
        time.sleep(0.4)
        self.inside.discard(thread)


@pytest.mark.parametrize("times", [1, 3])
def test_tasks_have_stopped_when_ctrl_c_leaves(counter, times):
    work = Work()
    sender = signal_when(work.begun, *[signal.SIGINT] * times)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(counter, [1.0] * 1000, 2, work)
    assert not work.inside
    assert work.calls < 20
    sender.join()
    counter.reset()
    run_tasks(counter, [1.0], 2, lambda *_: None)  # usable afterwards


def test_team_has_stopped_when_ctrl_c_leaves():
    work = Work()
    sender = signal_when(work.begun, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        team.each(range(1000), 2, work)
    assert not work.inside
    assert work.calls < 20
    sender.join()


def test_progress_that_raises_stops_the_tasks(counter):
    work = Work()

    def progress(_share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(counter, [1.0] * 1000, 2, work, progress)
    assert not work.inside


def test_sigterm_is_an_exception_of_its_own(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        interrupts.end_on_sigterm()
        with pytest.raises(interrupts.Terminated) as caught:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        assert interrupts.status_of(caught.value) == 143
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_handler_of_the_program_stays():
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        handler = signal.getsignal(signal.SIGTERM)
        interrupts.end_on_sigterm()
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("signalled", "status"), [("KeyboardInterrupt", 130), ("interrupts.Terminated", 143)]
)
def test_an_error_while_a_signal_is_handled_is_reported_as_the_signal(signalled, status):
    """As in a library that fails while it handles Ctrl-C."""
    code = f"""
from outcore.base import interrupts
from outcore.cli import main

def run(_, **__):
    try:
        raise {signalled}
    except KeyboardInterrupt:
        raise AttributeError("no attribute")

main.run = run
main.main([])
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (status, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_result_changes_nothing(number):
    code = f"""
import os
from outcore.cli import main

main.run = lambda _, **__: 0
try:
    main.main([])
finally:
    os.kill(os.getpid(), {int(number)})
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_scratch_is_removed_before_the_last_steps_of_an_exit(tmp_path):
    """A launcher may kill a process there, as soon as another one has ended."""
    code = f"""
import atexit, os
atexit.register(lambda: print(os.listdir({str(tmp_path)!r})))
import outcore
world = outcore.World("self", scratch={str(tmp_path)!r})
file = outcore.ExclusiveFile("left", scratch={str(tmp_path)!r})
print(len(os.listdir({str(tmp_path)!r})))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["1", "[]"]


@pytest.mark.launcher
def test_a_job_that_is_ended_as_one_process_got_a_signal_has_its_status(tmp_path):
    script = f"""
import time
import outcore
from outcore.base import interrupts
from outcore.job import world as worlds

worlds.EXIT_GRACE_S = 0.2
world = outcore.World(scratch={str(tmp_path)!r})
file = outcore.ExclusiveFile("left", scratch={str(tmp_path)!r})
world.barrier()
if world.rank == 1:
    interrupts.begin_to_end(143)
else:
    time.sleep({DEADLINE_S})
"""
    command = [str(launch.find_launcher()), "-n", "2", sys.executable, "-c", script]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    assert ended.returncode == 143, ended.stderr
    assert "without closing its world" not in ended.stderr


def test_ctrl_c_in_a_collective_step_stays_what_it_is():
    with outcore.World("self") as world, pytest.raises(KeyboardInterrupt), world.together("step"):
        raise KeyboardInterrupt


def chain(place, atoms):
    """A chain of hydrogen atoms."""
    path = place / "chain.xyz"
    path.write_text(f"{atoms}\nhydrogen\n" + "".join(f"H 0 0 {0.9 * i}\n" for i in range(atoms)))
    return path


def ended_by(number, command, cycles=0, **environment):
    """Exit status and messages of a command that gets a signal after it has printed this many cycles of its
    SCF."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        said = ""
        while "cycle" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        for _ in range(cycles):
            assert process.stdout.readline().strip()
        process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    return process.returncode, errors


@pytest.mark.parametrize(
    ("storage", "ranks", "number"),
    [
        ("direct", 1, signal.SIGINT),
        ("disk", 1, signal.SIGTERM),
        pytest.param("disk", 4, signal.SIGINT, marks=pytest.mark.launcher),
        pytest.param("direct", 1, signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("disk", 1, signal.SIGINT, marks=pytest.mark.long),
        pytest.param("disk", 4, signal.SIGTERM, marks=[pytest.mark.launcher, pytest.mark.long]),
    ],
)
def test_a_command_ends_with_the_status_of_its_signal(tmp_path, number, storage, ranks):
    pytest.importorskip("pyscf")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if ranks > 1:
        launch.mpi_library()
    command = [sys.executable, "-m", "outcore", "scf", str(chain(tmp_path, 10)), "--basis"]
    command += ["aug-cc-pvdz", "--storage", storage, "--scratch", str(scratch)]
    command += ["--ranks", str(ranks)] if ranks > 1 else []
    status, errors = ended_by(number, command)
    assert status == 128 + number, errors
    for word in ("terminate called", "Input/output error", "Traceback"):
        assert word not in errors
    assert list(scratch.iterdir()) == []


@pytest.mark.launcher
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_the_status_is_that_of_the_signal_with_open_mpi(tmp_path, number, open_mpi):
    pytest.importorskip("pyscf")
    command = [sys.executable, "-m", "outcore", "scf", str(chain(tmp_path, 10)), "--basis", "aug-cc-pvdz"]
    command += ["--storage", "disk"]
    status, errors = ended_by(number, [*command, "--scratch", str(tmp_path), "--ranks", "2"], **open_mpi)
    assert status == 128 + number, errors
    for word in ("terminate called", "Input/output error", "Traceback"):
        assert word not in errors
    assert [each.name for each in tmp_path.iterdir()] == ["chain.xyz"]


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_a_run_goes_on_from_what_one_kept_that_a_signal_ended(tmp_path, number):
    pytest.importorskip("pyscf")
    command = [sys.executable, "-m", "outcore", "scf", str(chain(tmp_path, 14)), "--basis", "6-31g"]
    command += ["--conv-tol", "1e-10"]
    energies = []
    for name in ("whole", "ended"):
        kept = [*command, "--checkpoint", str(tmp_path / name), "--json", str(tmp_path / f"{name}.json")]
        if name == "ended":
            status, errors = ended_by(number, kept, cycles=2)
            assert status == 128 + number, errors
            kept += ["--restart", str(tmp_path / name)]
        again = subprocess.run(kept, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
        assert again.returncode == 0, again.stderr
        energies.append(json.loads((tmp_path / f"{name}.json").read_text())["energy_hartree"])
    assert energies[1] == pytest.approx(energies[0], abs=2e-9)


@pytest.mark.launcher
def test_a_signal_for_one_process_ends_all(tmp_path):
    launcher, marks = str(launch.find_launcher()), tmp_path / "marks"
    marks.mkdir()
    script = f"""
import os, pathlib, time
import outcore

with outcore.World() as world:
    world.barrier()
    pathlib.Path({str(marks)!r}, str(world.rank)).write_text(str(os.getpid()))
    for _ in range({10 * DEADLINE_S}):
        world.barrier()
        time.sleep(0.1)
"""
    job = subprocess.Popen(
        [launcher, "-n", "3", sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        while len(os.listdir(marks)) < 3 or not all(each.read_text() for each in marks.iterdir()):
            assert job.poll() is None
            time.sleep(0.05)
        processes = [int((marks / str(rank)).read_text()) for rank in range(3)]
        os.kill(processes[1], signal.SIGTERM)
        job.communicate(timeout=DEADLINE_S)
    finally:
        job.kill()
    assert job.returncode != 0
    for _ in range(100):
        if not any(os.path.exists(f"/proc/{each}") for each in processes):
            break
        time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{each}") for each in processes)
