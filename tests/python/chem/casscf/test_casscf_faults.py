"""The command `outcore casscf` with a full disk, flipped bits, kills, bad input, and other means than before."""

from __future__ import annotations

import errno
import random
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from conformance.full_disk import fill

from outcore.base.errors import OutcoreError
from outcore.chem.casscf.kept import KeptOrbitals
from outcore.chem.ci.fci import FCI
from outcore.chem.nevpt2.perturbers import Perturbers
from outcore.cli import main as cli
from outcore.keep import clock

pytest.importorskip("pyscf")

WATER = "3\nwater\nO 0 0 0\nH 0 0.757 0.587\nH 0 -0.757 0.587\n"
LIH = "2\nlithium hydride\nLi 0 0 0\nH 0 0 1.6\n"
HNO = "3\nnitroxyl\nH 0.93 0 -0.45\nN 0 0 0\nO 0 0 1.21\n"
OPTIMISED = ("--cas", "4,4")
# More determinants than the start has.
LARGE = ("--cas", "10,8", "--casci")
PERTURBED = ("--cas", "4,4", "--casci", "--nevpt2")
DEADLINE_S = 120


@pytest.fixture
def kept(tmp_path):
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


def energies(found):
    return [*found["energies_hartree"], *found.get("nevpt2_energies_hartree", [])]


def before(monkeypatch, owner, name, call, act):
    """Acts before a call of a function, counted from 1."""
    function, calls = getattr(owner, name), []

    def counted(*given, **more):
        calls.append(given)
        if len(calls) == call:
            act()
        return function(*given, **more)

    monkeypatch.setattr(owner, name, counted)


def stop():
    raise KeyboardInterrupt


# What is kept: geometry, options, and where a run of it is after something has been kept.
KEPT = {
    "orbitals": (LIH, ("--cas", "2,2"), KeptOrbitals, "save", 3),
    "states": (HNO, LARGE, FCI, "_told", 3),
    "perturbers": (WATER, PERTURBED, Perturbers, "moments", 2),
}


@pytest.mark.parametrize("what", KEPT)
def test_a_disk_that_fills_is_told_and_leaves_what_was_kept(run, small_disk, monkeypatch, what):
    text, arguments, *moment = KEPT[what]
    kept, filler = small_disk / "kept", small_disk / "filler"
    kept.mkdir()
    expected = energies(run(text, *arguments))
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with monkeypatch.context() as patched:
        before(patched, *moment, lambda: fill(small_disk))
        with pytest.raises(OutcoreError, match="No space left on device") as raised:
            run(text, *arguments, "--checkpoint", str(kept))
    assert raised.value.errno == errno.ENOSPC
    assert str(kept) in str(raised.value)
    filler.unlink()
    assert energies(run(text, *arguments, "--checkpoint", str(kept))) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("what", KEPT)
def test_flipped_bits_are_found_and_the_file_is_named(run, kept, monkeypatch, what):
    text, arguments, *moment = KEPT[what]
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        before(patched, *moment, stop)
        run(text, *arguments, "--checkpoint", str(kept))
    files = [each for each in kept.rglob("*") if each.is_file() and is_of(what, each.relative_to(kept))]
    for file in files:
        values = bytearray(file.read_bytes())
        for at in range(0, len(values), 61):
            values[at] ^= 4
        file.write_bytes(values)
    assert files
    with pytest.raises(OutcoreError) as raised:
        run(text, *arguments, "--checkpoint", str(kept))
    assert str(kept) in str(raised.value)


def is_of(what, path):
    """Whether a kept file has elements of this."""
    first = path.parts[0]
    return (
        path.name != "manifest"
        and {
            "orbitals": first == "casscf",
            "states": first.startswith("ci.") and "states" in str(path),
            "perturbers": first.startswith("nevpt2."),
        }[what]
    )


@pytest.mark.parametrize("what", ["states", "perturbers"])
def test_other_memory_and_threads_go_on(run, kept, capsys, monkeypatch, what):
    text, arguments, *moment = KEPT[what]
    expected = energies(run(text, *arguments))
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        before(patched, *moment, stop)
        run(text, *arguments, "--memory", "1GB", "--checkpoint", str(kept))
    capsys.readouterr()
    found = run(text, *arguments, "--memory", "2GB", "--threads", "2", "--checkpoint", str(kept))
    assert energies(found) == pytest.approx(expected, abs=1e-8)
    told = capsys.readouterr().out
    assert "of another run" in told if what == "states" else "not used" not in told


@pytest.fixture(scope="module")
def optimised(tmp_path_factory):
    """What a run keeps that has ended."""
    place = tmp_path_factory.mktemp("optimised")
    (place / "kept").mkdir()
    (place / "molecule.xyz").write_text(WATER)
    command = ["casscf", str(place / "molecule.xyz"), "--basis", "sto-3g", "--threads", "1", *OPTIMISED]
    assert cli.run([*command, "--checkpoint", str(place / "kept")]) == 0
    return place / "kept"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (("--cas", "2,2"), "active space"),
        (("--basis", "6-31g"), "another basis"),
        (("--charge", "2"), "charge = 0, now it is 2"),
        (("--roots", "2"), "weights"),
        (("--irrep", "B1"), "irrep"),
        (("--integrals", "ri"), "auxiliary basis"),
    ],
)
def test_orbitals_of_another_problem_are_refused_by_name(run, optimised, tmp_path, changed, told):
    kept = shutil.copytree(optimised, tmp_path / "kept")
    with pytest.raises(OutcoreError, match=told) as raised:
        run(WATER, *OPTIMISED, "--checkpoint", str(kept), *changed)
    assert raised.value.errno == errno.EINVAL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cas", "12,8"], "12 of 10 electrons leave no pairs"),
        (["--cas", "4,0"], "two numbers are needed"),
        (["--cas", "-2,2"], "two numbers are needed"),
        (["--active", "3,3"], "3"),
        (["--active", "3-1"], "3-1"),
        (["--active", "A1=2,B1=1", "--core", "Q=1"], "irrep Q"),
        (["--active", "A1=9", "--cas", "4,9"], "9 orbitals of A1, but the molecule has 4"),
        (["--cas", "4,4", "--spin", "1"], "10 electrons cannot have 1 unpaired"),
        (["--cas", "2,2", "--spin", "4"], "singly occupied, and must be active"),
        (
            ["--cas", "4,4", "--states", "A1:6:1"],
            "7 orbitals cannot hold 8 electrons of one spin, as 2S = 6 needs",
        ),
        (
            ["--cas", "6,4", "--states", "A1:4:1"],
            "4 orbitals cannot hold 5 electrons of one spin, as 2S = 4 needs",
        ),
        (
            ["--avas", "O 2p", "--states", "A:10:1"],
            "7 orbitals cannot hold 10 electrons of one spin, as 2S = 10 needs",
        ),
        (["--avas", "Zz 9q"], "'Zz 9q' is not among the atomic orbitals"),
        (["--avas", "O 2p", "--avas-threshold", "1.5"], "--avas-threshold 1.5"),
        (["--cas", "4,4", "--roots", "30"], "there are 10 determinants|find 30 roots"),
        (["--cas", "4,4", "--roots", "2", "--weights", "0.5,x"], "add up to 1"),
        (["--cas", "4,4", "--roots", "2", "--weights", "1.5,-0.5"], "a number of 0 or more"),
        (["--cas", "4,4", "--roots", "2", "--weights", "nan,1"], "add up to 1"),
        (["--cas", "4,4", "--roots", "3", "--weights", "0.5,0.5"], "for each of several --roots"),
        (["--cas", "4,4", "--nevpt2", "--frozen", "9"], "9 frozen"),
        (["--cas", "4,4", "--checkpoint", "/no/such/place"], "No such file or directory|no such directory"),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong(run, arguments, message):
    with pytest.raises(OutcoreError, match=message):
        run(WATER, *arguments)


# A run that dies after so many seconds of computing: like SIGKILL, nothing is told and nothing is closed.
DIES = """
import signal, sys
from outcore.cli import main
from outcore.keep import clock
clock.INTERVAL_S = 0.0
if float(sys.argv[1]):
    signal.setitimer(signal.ITIMER_VIRTUAL, float(sys.argv[1]))
sys.exit(main.run(sys.argv[2:]))
"""


@pytest.mark.long
def test_kills_at_random_moments_change_no_energy(run, tmp_path, kept):
    arguments = ("--cas", "6,5", "--nevpt2")
    expected = energies(run(WATER, *arguments))
    command = ["casscf", str(tmp_path / "molecule.xyz"), "--basis", "sto-3g", "--threads", "1", *arguments]

    def ended(seconds, *more):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        process = subprocess.run(
            [sys.executable, "-c", DIES, str(seconds), *command, *more],
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            stdin=subprocess.DEVNULL,
        )
        assert process.returncode in (0, -signal.SIGVTALRM), process.stderr
        return process.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    _, whole = ended(0)
    moments = random.Random(47)
    codes = [ended(whole * moments.uniform(0.3, 1.0), "--checkpoint", str(kept))[0] for _ in range(5)]
    assert codes.count(-signal.SIGVTALRM) >= 2
    assert energies(run(WATER, *arguments, "--checkpoint", str(kept))) == pytest.approx(expected, abs=1e-6)
