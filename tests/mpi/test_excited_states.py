"""States of EOM-CCSD on several processes: energies are those of one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyscf")
sys.path.append(str(Path(__file__).parents[1] / "python" / "chem" / "cc"))
from cc_support import AMINO, WATER, mean_field, open_mean_field

from outcore.chem.cc import CCSD
from outcore.chem.cc.excited.settings import StateSettings
from outcore.chem.cc.excited.states import States
from outcore.keep import clock

# Steps are the same for all processes wherever arrays are alike, so they may end early.
SETTINGS = {"memory": "4GB", "threads": 1, "conv_tol": 1e-3, "conv_tol_normt": 1e-2}
EE, TRIPLETS = ("ee", None), ("ee", 3)
KINDS = {"memory": (EE,), "disk": (EE, TRIPLETS, ("ip", None), ("ea", None))}


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


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_energies_do_not_depend_on_processes(comm: Any, computed_once: Any, where: str) -> None:
    mf, expected = computed_once(f"states of water, {where}", lambda: make(where))
    found = energies(mf, comm, where, **placed(where))
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_search_of_one_process_goes_on_at_all(
    comm: Any, computed_once: Any, shared_tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mf = computed_once("water", lambda: mean_field(WATER, "sto-3g"))
    monkeypatch.setattr(clock, "INTERVAL_S", 0.0)
    settings: Any = SETTINGS | {"checkpoint": shared_tmp_path / "kept"}

    def begin() -> list[float]:
        def stop(found: Any) -> None:
            if found.number == 2:
                raise KeyboardInterrupt

        with CCSD(mf, 1, comm=None, **settings) as cc:
            cc.kernel()
            with pytest.raises(KeyboardInterrupt):
                States(cc, "ee", StateSettings(residual=1e-7), stop)
        with CCSD(mf, 1, comm=None, **SETTINGS) as cc:
            cc.kernel()
            return [float(cc.states("ee", residual=1e-7).energies[0])]

    (expected,) = computed_once("a search that was ended", begin)
    with CCSD(mf, 1, comm=comm, **settings) as cc:
        cc.kernel()
        states = cc.states("ee", residual=1e-7)
    assert states.found
    assert states.energies[0] == pytest.approx(expected, abs=1e-7)


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
    with CCSD(mf, 1, comm=comm, **SETTINGS | placed("disk") | {"block": 4}) as cc:
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
    assert found == pytest.approx(expected, abs=1e-7)


def poles(mf: Any, comm: Any, kind: str) -> list[float]:
    with CCSD(mf, 0, comm=comm, **SETTINGS | placed("disk")) as cc:
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
@pytest.mark.parametrize("kind", IONS)
def test_ions_do_not_depend_on_processes(comm: Any, computed_once: Any, kind: str) -> None:
    mf, expected = computed_once(f"poles, {kind}", lambda: make_poles(kind))
    assert poles(mf, comm, kind) == pytest.approx(expected, abs=1e-5)
