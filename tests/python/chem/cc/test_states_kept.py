"""Searches for states resume from the vectors of another run's checkpoint."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import AMINO, WATER, mean_field, open_mean_field
from eom_support import TIGHT

from outcore import OutcoreError
from outcore.chem.cc import CCSD, inherited
from outcore.chem.cc.excited.states import States
from outcore.chem.cc.keep.kept_states import KeptStates
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "sto-3g")


@pytest.fixture(scope="module")
def amino() -> Any:
    return open_mean_field("UHF", AMINO, "sto-3g")


def start(mf: Any, directory: Path | None, **settings: Any) -> CCSD:
    given: dict[str, Any] = {"memory": "1GB", "threads": 1, **TIGHT, **settings}
    cc = CCSD(mf, 1, comm=None, checkpoint=directory, **given)
    cc.kernel()
    return cc


@pytest.fixture(scope="module")
def amplitudes(water: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves whose amplitudes have converged."""
    directory = tmp_path_factory.mktemp("amplitudes") / "kept"
    with start(water, directory):
        return directory


@pytest.fixture
def kept(amplitudes: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test."""
    return Path(shutil.copytree(amplitudes, tmp_path / "kept"))


@pytest.fixture(scope="module")
def wanted(water: Any) -> Callable[[str], States]:
    """States of a kind, of a search that nothing has ended."""

    @cache
    def found(kind: str) -> States:
        with start(water, None) as cc:
            return cc.states(kind, nroots=2, residual=1e-8)

    return found


class Stopped(Exception):
    pass


def stop_after(number: int) -> Any:
    def tell(found: Any) -> None:
        if found.number == number:
            raise Stopped

    return tell


def stopped(cc: CCSD, kind: str = "ee", number: int = 5) -> None:
    from outcore.chem.cc.excited.settings import StateSettings

    with pytest.raises(Stopped):
        States(cc, kind, StateSettings(nroots=2, residual=1e-8), stop_after(number))


@pytest.mark.parametrize(
    "kind", [pytest.param("ee", marks=pytest.mark.long), "ip", pytest.param("ea", marks=pytest.mark.long)]
)
def test_a_search_goes_on_where_a_run_was_ended(
    water: Any, wanted: Any, kept: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    number = {"ee": 5, "ip": 3, "ea": 2}[kind]
    with start(water, kept) as first:
        stopped(first, kind, number)
    with start(water, kept, storage="disk", block=2) as second:
        assert second.found
        states = second.states(kind, nroots=2, residual=1e-8)
    assert states.found
    # Two more than are left, and two after start vectors were multiplied again.
    assert len(states.iterations) <= len(wanted(kind).iterations) - number + 4
    assert abs(states.energies - wanted(kind).energies).max() < 1e-8


@pytest.mark.parametrize("writes", [pytest.param(1, marks=pytest.mark.long), 4])
def test_a_kill_between_two_commits_leaves_a_start(
    water: Any, wanted: Any, kept: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    put, count = KeptStates.put, [0]

    def stop(self: KeptStates, *given: Any) -> None:
        count[0] += 1
        if count[0] > 40 + writes:
            raise Stopped
        put(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(KeptStates, "put", stop)
        with start(water, kept) as first, pytest.raises(Stopped):
            first.states("ee", nroots=2, residual=1e-8)
    with start(water, kept) as second:
        states = second.states("ee", nroots=2, residual=1e-8)
    assert states.found
    assert abs(states.energies - wanted("ee").energies).max() < 1e-8


_KILLED = """
import os, pickle, signal, sys
sys.path[:0] = pickle.loads(bytes.fromhex(sys.argv[1]))
from outcore.keep import clock
clock.INTERVAL_S = 0.0
import pyscf, test_states_kept as tests
from pathlib import Path
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.states import States

def tell(found):
    if found.number == 4:
        os.kill(os.getpid(), signal.SIGKILL)

molecule, orbitals = pickle.loads(bytes.fromhex(sys.argv[2]))
mol = pyscf.M(**molecule, basis="sto-3g", verbose=0)
mf = mol.UHF() if mol.spin else mol.RHF()
for name, value in orbitals.items():
    setattr(mf, name, value)
States(tests.start(mf, Path(sys.argv[3])), sys.argv[4], StateSettings(nroots=2, residual=1e-8), tell)
"""


@pytest.mark.parametrize(
    ("reference", "kind"), [("water", "ee"), pytest.param("amino", "sf", marks=pytest.mark.long)]
)
def test_a_killed_process_leaves_the_same_states(
    reference: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    mf, kept = request.getfixturevalue(reference), tmp_path / "kept"
    mol = mf.mol
    molecule = {"atom": mol.atom, "charge": mol.charge, "spin": mol.spin}
    orbitals = {name: getattr(mf, name) for name in ("mo_coeff", "mo_energy", "mo_occ", "e_tot", "converged")}
    given = [pickle.dumps(each).hex() for each in (sys.path, (molecule, orbitals))]
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, *given, str(kept), kind],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    with start(mf, None) as cc:
        wanted = cc.states(kind, nroots=2, residual=1e-8)
    with start(mf, kept) as cc:
        states = cc.states(kind, nroots=2, residual=1e-8)
    assert states.found
    assert len(states.iterations) < len(wanted.iterations)
    assert abs(states.energies - wanted.energies).max() < 1e-8


def test_states_that_have_converged_are_taken(water: Any, wanted: Any, kept: Path) -> None:
    for iterations in (None, 1):
        with start(water, kept) as cc:
            states = cc.states("ip", nroots=2, residual=1e-8)
        assert iterations is None or len(states.iterations) == iterations
        assert abs(states.energies - wanted("ip").energies).max() < 1e-8


def test_vectors_of_other_states_are_not_taken(water: Any, kept: Path, tmp_path: Path) -> None:
    with start(water, kept) as cc:
        cc.states("ee", nroots=2, residual=1e-1)
    for kind, roots, taken in (("ee", 2, True), ("ip", 2, False), ("ee", 3, False)):
        copy = shutil.copytree(kept, tmp_path / f"{kind}{roots}")
        with start(water, Path(copy)) as cc:
            assert bool(cc.states(kind, nroots=roots, residual=1e-1).found) == taken


def test_damaged_vectors_are_refused(water: Any, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from outcore.chem.cc.keep import kept_states

    with monkeypatch.context() as patched:
        patched.setattr(kept_states, "_stamp", lambda *_: "another")
        with start(water, kept) as cc:
            cc.states("ip", residual=1e-1)
    with start(water, kept) as cc, pytest.raises(OutcoreError, match="not those that were"):
        cc.states("ip", residual=1e-1)


def test_disks_without_room_are_named_before_the_search(
    water: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs: list[tuple[Path, int]] = []
    monkeypatch.setattr(inherited, "check_room", lambda world, attempted, wanted, **_: needs.extend(wanted))
    with start(water, tmp_path / "kept", storage="disk", conv_tol=1e-3, conv_tol_normt=1e-2) as cc:
        states = cc.states("ip", residual=1e-1)
        vectors = states.plan.entry("ip0").bytes
        disk_bytes = states.plan.disk_bytes
    (scratch, new), (directory, kept_bytes) = needs
    assert directory == tmp_path / "kept"
    assert kept_bytes >= 2 * vectors
    assert 2 * vectors < new < disk_bytes
    assert scratch.is_dir()
