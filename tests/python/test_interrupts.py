"""Ctrl-C and SIGTERM: threads have stopped before the exception leaves, and commands say what ended them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import outcore
from outcore import interrupts, launch
from outcore.chem.ri import team
from outcore.chem.tasks import run_tasks

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
    """Threads that are inside when the signal comes, and leave later than the main thread hears of it."""

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


def test_ctrl_c_in_a_collective_step_stays_what_it_is():
    with outcore.World("self") as world, pytest.raises(KeyboardInterrupt), world.together("step"):
        raise KeyboardInterrupt


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "chain.xyz"
    path.write_text("14\nhydrogen\n" + "".join(f"H 0 0 {0.9 * i}\n" for i in range(14)))
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("storage", "ranks"),
    [
        ("direct", 1),
        ("disk", 1),
        pytest.param("disk", 2, marks=pytest.mark.launcher),
    ],
)
def test_a_command_ends_with_the_status_of_its_signal(chain, tmp_path, number, storage, ranks):
    pytest.importorskip("pyscf")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if ranks > 1:
        launch.mpi_library()
    command = [sys.executable, "-m", "outcore", "scf", str(chain), "--basis", "aug-cc-pvdz"]
    command += ["--integrals", storage, "--scratch", str(scratch)]
    command += ["--ranks", str(ranks)] if ranks > 1 else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while "cycle" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == 128 + number, errors
    for word in ("terminate called", "Input/output error", "Traceback"):
        assert word not in errors
    assert list(scratch.iterdir()) == []
