"""Disks that fill before and during searches for states: errors name them, and a run goes on from what is kept."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cc_support import WATER, mean_field
from eom_support import TIGHT

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.states import States
from outcore.chem.cc.plan import fitting
from outcore.keep import clock

Values = np.ndarray[Any, np.dtype[Any]]

ROOTS: Any = {"nroots": 2, "residual": 1e-8}


@pytest.fixture(scope="module")
def water() -> Any:
    return mean_field(WATER, "sto-3g")


@pytest.fixture(autouse=True)
def written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of arrays on disk are small, and each finished vector is committed."""
    for each in ("CACHE_BYTES", "_LARGEST_CACHE"):
        monkeypatch.setattr(fitting, each, 512)
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)


@pytest.fixture
def start(water: Any, small_disk: Path, tmp_path: Path) -> Callable[[str], CCSD]:
    """A calculation with converged amplitudes, whose `full` place (scratch or checkpoint) is the small disk."""

    def made(full: str) -> CCSD:
        places = {name: small_disk if name == full else tmp_path for name in ("scratch", "checkpoint")}
        cc = CCSD(
            water,
            1,
            comm=None,
            storage="disk",
            memory="1GB",
            threads=1,
            scratch=str(places["scratch"]),
            checkpoint=places["checkpoint"] / "kept",
            **TIGHT,
        )
        cc.kernel()
        return cc

    return made


@pytest.fixture(scope="module")
def whole(water: Any) -> Any:
    """States that no disk has ended, by their kind, and properties of the ions."""
    with CCSD(water, 1, comm=None, storage="disk", memory="1GB", threads=1, **TIGHT) as cc:
        cc.kernel()
        singlets = cc.states("ee", **ROOTS)
        ions = cc.states("ip", **ROOTS)
        return {"ee": singlets, "ip": ions, "properties": ions.properties()}


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            with suppress(OSError):
                while file.write(b"x" * size):
                    pass


def make_room(disk: Path) -> None:
    (disk / "filler").unlink()


def fill_after(number: int, disk: Path) -> Callable[[Any], None]:
    """Fills the disk after this iteration."""

    def tell(found: Any) -> None:
        if found.number == number:
            fill(disk)

    return tell


def check_named(error: OutcoreError, disk: Path) -> None:
    assert error.errno == errno.ENOSPC
    assert str(disk) in str(error)
    assert "No space left on device" in str(error)


@pytest.mark.parametrize("again", ["the same object", pytest.param("another run", marks=pytest.mark.long)])
def test_a_search_goes_on_when_there_is_room_again(
    start: Any, whole: Any, small_disk: Path, again: str
) -> None:
    """The checkpoint grows with each vector. Scratch of so few vectors has all of its blocks early."""
    full, number = "checkpoint", 4
    with start(full) as cc:
        with pytest.raises(OutcoreError) as caught:
            States(cc, "ee", StateSettings(**ROOTS), fill_after(number, small_disk))
        check_named(caught.value, small_disk)
        make_room(small_disk)
        if again == "the same object":
            states = cc.states("ee", **ROOTS)
    if again == "another run":
        with start(full) as cc:
            assert cc.found
            states = cc.states("ee", **ROOTS)
    assert states.found
    assert abs(states.energies - whole["ee"].energies).max() < 1e-8


@pytest.mark.parametrize("full", ["scratch", pytest.param("checkpoint", marks=pytest.mark.long)])
def test_a_search_for_left_vectors_goes_on_when_there_is_room_again(
    start: Any, whole: Any, small_disk: Path, full: str
) -> None:
    with start(full) as cc:
        states = cc.states("ip", **ROOTS)
        with pytest.raises(OutcoreError) as caught:
            states.properties(fill_after(2, small_disk))
        check_named(caught.value, small_disk)
    make_room(small_disk)
    with start(full) as cc:
        states = cc.states("ip", **ROOTS)
        assert len(states.iterations) == 1
        found = states.properties()
        assert len(found.iterations) < len(whole["properties"].iterations)
        assert abs(found.pole_strengths - whole["properties"].pole_strengths).max() < 1e-6


@pytest.mark.parametrize("full", [pytest.param("scratch", marks=pytest.mark.long), "checkpoint"])
def test_a_disk_without_room_is_named_before_the_search(
    start: Any, whole: Any, small_disk: Path, full: str
) -> None:
    with start(full) as cc:
        fill(small_disk)
        iterations = list[Any]()
        with pytest.raises(OutcoreError, match="arrays take") as caught:
            States(cc, "ip", StateSettings(**ROOTS), iterations.append)
        check_named(caught.value, small_disk)
        assert not iterations
        make_room(small_disk)
        assert abs(cc.states("ip", **ROOTS).energies - whole["ip"].energies).max() < 1e-8


def test_a_commit_that_fails_leaves_the_vectors_before(start: Any, whole: Any, small_disk: Path) -> None:
    """The disk fills after the first of the vectors of one commit."""
    from outcore.chem.cc.keep.kept_states import KeptStates

    put, serials = KeptStates.put, list[int]()

    def stop(self: KeptStates, *given: Any) -> None:
        put(self, *given)
        serials.append(self._serial)
        if self._serial == 12:
            fill(small_disk)

    with start("checkpoint") as cc, pytest.MonkeyPatch.context() as patched:
        patched.setattr(KeptStates, "put", stop)
        with pytest.raises(OutcoreError) as caught:
            cc.states("ee", **ROOTS)
        check_named(caught.value, small_disk)
    assert serials.count(12) == 1
    make_room(small_disk)
    with start("checkpoint") as cc:
        states = cc.states("ee", **ROOTS)
    assert states.found
    assert abs(states.energies - whole["ee"].energies).max() < 1e-8
