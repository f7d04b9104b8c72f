"""States of EOM-CCSD on several processes: energies are those of one process."""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "cc"))
from cc_support import AMINO, WATER, mean_field, open_mean_field

from outcore import OutcoreError
from outcore.chem.cc import CCSD
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.states import States
from outcore.chem.cc.plan import fitting
from outcore.keep import clock

# Steps are the same for all processes wherever arrays are alike, so they may end early.
SETTINGS = {"memory": "4GB", "threads": 1, "conv_tol": 1e-3, "conv_tol_normt": 1e-2}
EE, TRIPLETS, IP, EA, SF = ("ee", None), ("ee", 3), ("ip", None), ("ea", None), ("sf", None)
KINDS = {"memory": (EE,), "disk": (EE, TRIPLETS, IP)}
# Converged, with integrals in double precision: energies do not depend on the steps.
TIGHT = SETTINGS | {"conv_tol": 1e-11, "conv_tol_normt": 1e-9, "ladder": "rebuild"}
TWO: Any = {"nroots": 2, "residual": 1e-10}


def energies(mf: Any, comm: Any, where: str = "disk", **settings: Any) -> list[float]:
    """Energies of states of each kind."""
    with CCSD(mf, 1, comm=comm, **SETTINGS | settings) as cc:
        cc.kernel()
        return [
            float(cc.states(kind, multiplicity=multiplicity, residual=3e-2).energies[0])
            for kind, multiplicity in KINDS[where]
        ]


def make(where: str) -> tuple[Any, list[float]]:
    mf = mean_field(WATER, "sto-3g")
    return mf, energies(mf, None, where, **placed(where))


def placed(where: str) -> dict[str, Any]:
    return {"ladder": where, "block": 1, "storage": "disk" if where == "disk" else "auto"}


@pytest.mark.parametrize("where", [pytest.param("memory", marks=pytest.mark.long), "disk"])
def test_energies_do_not_depend_on_processes(comm: Any, computed_once: Any, where: str) -> None:
    mf, expected = computed_once(f"states of water, {where}", lambda: make(where))
    found = energies(mf, comm, where, **placed(where))
    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def converged(mf: Any, comm: Any, kinds: tuple[Any, ...], **settings: Any) -> list[float]:
    """Energies of two states of each kind."""
    with CCSD(mf, 1, comm=comm, **TIGHT | settings) as cc:
        cc.kernel()
        every = [cc.states(kind, multiplicity=each, **TWO) for kind, each in kinds]
        return [float(energy) for states in every for energy in states.energies]


def make_converged(reference: str, kinds: tuple[Any, ...]) -> tuple[Any, list[float]]:
    mf = mean_field(WATER, "sto-3g") if reference == "water" else open_mean_field("UHF", AMINO, "sto-3g")
    return mf, converged(mf, None, kinds)


@pytest.mark.processes(2)  # some thousand small contractions
@pytest.mark.parametrize(
    ("reference", "kinds"),
    [
        pytest.param("water", (EE,), marks=pytest.mark.long),
        ("water", (IP, EA)),
        pytest.param("amino", (IP,), marks=pytest.mark.long),
        pytest.param("water", (TRIPLETS,), marks=pytest.mark.long),
        pytest.param("amino", (SF,), marks=pytest.mark.long),
        pytest.param("amino", (EE,), marks=pytest.mark.long),
        pytest.param("amino", (EA,), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_converged_energies_do_not_depend_on_processes_memory_and_tiles(
    comm: Any, computed_once: Any, reference: str, kinds: tuple[Any, ...]
) -> None:
    """One process has all arrays in memory."""
    mf, expected = computed_once(f"{reference}, {kinds}", lambda: make_converged(reference, kinds))
    found = converged(mf, comm, kinds, storage="disk", block=2)
    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def test_a_search_of_one_process_goes_on_at_all(
    comm: Any, computed_once: Any, shared_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = computed_once("water", lambda: mean_field(WATER, "sto-3g"))
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    settings: Any = TIGHT | {"checkpoint": shared_tmp_path / "kept"}

    def begin() -> list[float]:
        def stop(found: Any) -> None:
            if found.number == 2:
                raise KeyboardInterrupt

        with CCSD(mf, 1, comm=None, **settings) as cc:
            cc.kernel()
            with pytest.raises(KeyboardInterrupt):
                States(cc, "ee", StateSettings(**TWO), stop)
        with CCSD(mf, 1, comm=None, **TIGHT) as cc:
            cc.kernel()
            return [float(each) for each in cc.states("ee", **TWO).energies]

    expected = computed_once("a search that was ended", begin)
    with CCSD(mf, 1, comm=comm, **settings) as cc:
        cc.kernel()
        states = cc.states("ee", **TWO)
    assert states.found
    assert states.energies == pytest.approx(expected, rel=0, abs=1e-9)


@pytest.mark.processes(2)
@pytest.mark.parametrize("full", ["scratch", pytest.param("checkpoint", marks=pytest.mark.long)])
def test_all_get_the_error_of_a_disk_that_fills(
    comm: Any,
    computed_once: Any,
    small_disk: Path,
    shared_tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    full: str,
) -> None:
    """It names the disk; another run goes on from what is kept."""
    mf, expected = computed_once(f"water, {(IP,)}", lambda: make_converged("water", (IP,)))
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    for each in ("CACHE_BYTES", "_LARGEST_CACHE"):
        monkeypatch.setattr(fitting, each, 512)
    places = {name: small_disk if name == full else shared_tmp_path for name in ("scratch", "checkpoint")}
    settings: Any = TIGHT | {"storage": "disk", "scratch": str(places["scratch"])}
    settings["checkpoint"] = places["checkpoint"] / "kept"
    filler = small_disk / "filler"

    def fill(found: Any) -> None:
        if found.number == (1 if full == "scratch" else 3) and comm.rank == 0:
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                for size in (1 << 16, 1):
                    with suppress(OSError):
                        while file.write(b"x" * size):
                            pass
        comm.Barrier()

    with CCSD(mf, 1, comm=comm, **settings) as cc:
        cc.kernel()
        with pytest.raises(OutcoreError) as caught:
            States(cc, "ip", StateSettings(**TWO), fill)
    assert comm.allgather(caught.value.errno) == [errno.ENOSPC] * comm.size
    assert str(small_disk) in str(caught.value)
    comm.Barrier()
    if comm.rank == 0:
        filler.unlink()
    comm.Barrier()
    with CCSD(mf, 1, comm=comm, **settings) as cc:
        cc.kernel()
        states = cc.states("ip", **TWO)
    assert states.found
    assert states.energies == pytest.approx(expected, rel=0, abs=1e-9)


def strengths(mf: Any, comm: Any) -> list[float]:
    with CCSD(mf, 1, comm=comm, **SETTINGS | placed("disk")) as cc:
        cc.kernel()
        states = cc.states("ee", residual=1e-2)
        return [float(each) for each in states.properties().oscillator_strengths]


def make_strengths() -> tuple[Any, list[float]]:
    mf = mean_field(WATER, "sto-3g")
    return mf, strengths(mf, None)


@pytest.mark.processes(2)  # some thousand small contractions
def test_strengths_do_not_depend_on_processes(comm: Any, computed_once: Any) -> None:
    mf, expected = computed_once("strengths of water", make_strengths)
    found = strengths(mf, comm)
    assert found == pytest.approx(expected, abs=1e-7)


def open_energies(comm: Any, mf: Any, kinds: tuple[str, ...]) -> list[float]:
    with CCSD(mf, 1, comm=comm, **SETTINGS | placed("disk") | {"ladder": "rebuild", "block": 4}) as cc:
        cc.kernel()
        return [float(cc.states(kind, residual=3e-2).energies[0]) for kind in kinds]


def make_open(kinds: tuple[str, ...]) -> tuple[Any, list[float]]:
    mf = open_mean_field("UHF", AMINO, "sto-3g")
    return mf, open_energies(None, mf, kinds)


@pytest.mark.processes(2)  # some thousand small contractions
@pytest.mark.parametrize(
    "kinds", [("ee", "sf"), pytest.param(("ip", "ea"), marks=pytest.mark.long)], ids=", ".join
)
def test_energies_of_open_shells_do_not_depend_on_processes(
    comm: Any, computed_once: Any, kinds: tuple[str, ...]
) -> None:
    mf, expected = computed_once(f"states of amino, {kinds}", lambda: make_open(kinds))
    found = open_energies(comm, mf, kinds)
    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def poles(mf: Any, comm: Any, kind: str) -> list[float]:
    with CCSD(mf, 0, comm=comm, **SETTINGS | placed("disk") | {"ladder": "rebuild"}) as cc:
        cc.kernel()
        found = cc.states(kind, residual=1e-2).properties()
        return [*map(float, found.pole_strengths), *map(float, found.dipoles[0])]


def make_poles(kind: str) -> tuple[Any, list[float]]:
    mf = open_mean_field(*IONS[kind], "sto-3g")
    return mf, poles(mf, None, kind)


THREE = "H 0 0 0; H 0 0.1 0.9; H 1.0 0.1 0"
FIVE = f"{THREE}; H 0.9 0.2 1.2; H 1.8 0.9 0.4"
IONS = {"ea": ("RHF", (FIVE, -1, 0)), "ip": ("UHF", (THREE, 0, 1))}


@pytest.mark.processes(2)  # some thousand small contractions
@pytest.mark.parametrize("kind", ["ea", pytest.param("ip", marks=pytest.mark.long)])
def test_ions_do_not_depend_on_processes(comm: Any, computed_once: Any, kind: str) -> None:
    mf, expected = computed_once(f"poles, {kind}", lambda: make_poles(kind))
    assert poles(mf, comm, kind) == pytest.approx(expected, rel=0, abs=1e-8)
